# What the course can do; `make` alone lists it.
# Another Python: make PYTHON=python3.12 lab. Another port: make PORT=8900 lab.
# On a machine without a browser (a server, say): make BROWSER=no lab.
# One lesson only: make KEY=05 notebooks (exercises, site, findings too).
PYTHON ?= python3
PORT ?=
KEY =
SUBMISSIONS ?= submissions/
OUT ?= grades/
ROUNDS ?= 1
unexport PYTHONDONTWRITEBYTECODE    # tests start hundreds of processes: compile what they import once

BOOTSTRAP = $(PYTHON) course_tools/bootstrap.py
RUN = @$(BOOTSTRAP) run --
TEST = @$(BOOTSTRAP) run --extra test --

.PHONY: help lab test test-all check notebooks diagrams exercises grade bench site findings studies clean distclean

help:
	@awk -F ':.*## ' '/^## / { printf "\n%s\n", substr($$0, 4) } \
		/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

## To learn

lab: ## set up, and open the course in JupyterLab (PORT=8900 BROWSER=no)
	@$(BOOTSTRAP) lab $(if $(PORT),--port $(PORT)) $(if $(filter no,$(BROWSER)),--no-browser)

## To teach

grade: ## grade a class (SUBMISSIONS=submissions/ OUT=grades/)
	@$(BOOTSTRAP) run -- course grade $(SUBMISSIONS) --out $(OUT)

## To write and to test

check: ## the fast part of `make test`, under two minutes
	$(TEST) python -m ruff check .
	$(TEST) python -m mypy
	$(TEST) python -m pytest -m "not lessons and not browser and not slow"

test: ## set up, and test everything: lint, types, unit tests, every lesson, the grader, the browser
	$(TEST) python -m ruff check .
	$(TEST) python -m mypy
	$(TEST) python -m pytest tests/test_lessons.py -n 2 --maxschedchunk 1
	$(TEST) python -m pytest -m "not lessons and not thorough" -n 2 --dist loadgroup

test-all: test ## `make test`, then the same with more seeds and larger classes
	$(TEST) python -m pytest -m thorough -n 2 --dist loadgroup

notebooks: ## execute the lessons and store their outputs (KEY=05: one lesson; FRESH=1: store all new outputs)
	$(RUN) python -m course_tools.authoring notebooks $(KEY) $(if $(FRESH),--fresh)

exercises: ## generate exercises/ from solutions/
	$(RUN) python -m course_tools.authoring exercises $(KEY)

diagrams: ## draw notebooks/images/
	$(RUN) python -m course_tools.authoring diagrams $(KEY)

findings: ## measure the lessons' findings again, with five seeds (WIDEN=1: make no range smaller)
	$(RUN) python -m course_tools.authoring findings $(KEY) $(if $(WIDEN),--widen)

studies: ## run the studies and store their tables (KEY=04_length: one; without: those that have changed)
	$(RUN) python -m course_tools.authoring studies $(KEY)

site: ## build the book, the course as a site, in site/ (KEY=05: one lesson)
	@$(BOOTSTRAP) run --extra site -- python -m course_tools.authoring site $(KEY)

bench: ## compare the speed of the Transformer with torch's, and of the grader with nbgrader's (ROUNDS=3)
	$(TEST) python -m course_tools.benchmarks.transformer
	$(TEST) python -m course_tools.benchmarks.grader --rounds $(ROUNDS) --growth 20 500

## To tidy up

clean: ## remove caches and what was generated, keep .venv
	@rm -rf site artefacts build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache
	@find . -name .venv -prune -o -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv
	@rm -rf .venv

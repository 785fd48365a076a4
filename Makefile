# The verbs of the course; `make` alone lists them.
# Another Python: make PYTHON=python3.12 lab. Another port: make PORT=8900 lab.
# Without a browser of its own (on a server, say): make BROWSER=no lab.
# One lesson only: make KEY=05 notebooks (exercises, site, claims too).
PYTHON ?= python3
PORT ?=
KEY =
SUBMISSIONS ?= submissions/
OUT ?= grades/
ROUNDS ?= 1

BOOTSTRAP = $(PYTHON) course_lib/bootstrap.py
RUN = @$(BOOTSTRAP) run --
TEST = @$(BOOTSTRAP) run --extra test --

.PHONY: help lab test check notebooks diagrams exercises grade bench site claims clean distclean

help:
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

lab: ## set up, and open the course in JupyterLab (PORT=8900 BROWSER=no)
	@$(BOOTSTRAP) lab $(if $(PORT),--port $(PORT)) $(if $(filter no,$(BROWSER)),--no-browser)

test: ## set up, and prove everything: lint, unit tests, every lesson, the grader, the browser
	$(TEST) python -m ruff check .
	$(TEST) python -m pytest -m lessons -n 2 --maxschedchunk 1
	$(TEST) python -m pytest -m "not lessons"

check: ## the fast part of test, under two minutes
	$(TEST) python -m ruff check .
	$(TEST) python -m pytest -m "not lessons and not browser and not slow"

notebooks: ## execute the lessons and store their outputs (KEY=05: one lesson; FRESH=1: keep no stored output)
	$(RUN) python -m course_lib.authoring notebooks $(KEY) $(if $(FRESH),--fresh)

diagrams: ## draw notebooks/images/
	$(RUN) python -m course_lib.authoring diagrams $(KEY)

exercises: ## make exercises/ from solutions/
	$(RUN) python -m course_lib.authoring exercises $(KEY)

grade: ## grade a class (SUBMISSIONS=submissions/ OUT=grades/)
	@$(BOOTSTRAP) run -- course grade $(SUBMISSIONS) --out $(OUT)

bench: ## how fast the Transformer is, beside torch's; how fast the grader, beside nbgrader (ROUNDS=3)
	$(TEST) python -m course_lib.speed.bench
	$(TEST) python -m course_lib.grading.bench --rounds $(ROUNDS) --growth 20 500

site: ## the lessons as pages to read, in site/
	$(RUN) python -m course_lib.authoring site $(KEY)

claims: ## measure anew what the lessons claim
	$(RUN) python -m course_lib.authoring claims $(KEY)

clean: ## remove caches and what was generated, keep .venv
	@rm -rf site artefacts build dist *.egg-info .pytest_cache .ruff_cache
	@find . -name .venv -prune -o -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

distclean: clean ## clean, and remove .venv
	@rm -rf .venv

"""pyproject.toml, constraints.txt, environment.yml, Makefile and CI say the same, and it is installed."""

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

from course_tools import bootstrap, installed

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
VERBS = {"lab", "test", "check", "notebooks", "exercises", "grade", "bench", "site", "findings", "clean"}


def test_constraints_are_exact_pins_in_order():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    exact = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*==[0-9][0-9a-z.]*")
    assert [line for line in lines if not exact.fullmatch(line)] == []
    names = [line.split("==")[0] for line in lines]
    assert names == sorted(set(names))


@pytest.mark.parametrize("line", sum(EXTRAS.values(), PROJECT["dependencies"]))
def test_every_direct_requirement_is_pinned_within_its_range(line):
    requirement = Requirement(line)
    assert installed.pins()[installed.normal(requirement.name)] in requirement.specifier


def test_torch_is_exact_in_both():
    assert "torch==2.13.0" in PROJECT["dependencies"]
    assert installed.pins()["torch"] == "2.13.0"


def test_the_python_range_is_that_of_pyproject_everywhere():
    """bootstrap.py reads it, and what takes it from there is not tested: the release, Gradescope's set-up."""
    assert bootstrap.python_range("<3.15,>=3.11") == ((3, 11), (3, 14))
    assert bootstrap.python_range(PROJECT["requires-python"]) == (bootstrap.OLDEST, bootstrap.NEWEST)
    assert metadata.metadata("course-lib")["Requires-Python"] in (
        PROJECT["requires-python"], ",".join(reversed(PROJECT["requires-python"].split(","))))
    assert f"python {PROJECT['requires-python']}" in CONDA["dependencies"]
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == [
        f"{major}.{minor}" for major, minor in (bootstrap.OLDEST, bootstrap.NEWEST)]
    for page in ("README.md", "course_lib/runtime.py"):
        assert bootstrap.PYTHONS in (ROOT / page).read_text(encoding="utf-8"), page
    runtime = (ROOT / "course_lib/runtime.py").read_text(encoding="utf-8")
    assert f"{bootstrap.OLDEST} <= sys.version_info[:2] <= {bootstrap.NEWEST}" in runtime


@pytest.mark.parametrize("path", [
    "README.md", ".devcontainer/devcontainer.json", ".github/ISSUE_TEMPLATE/problem.yml",
    ".github/workflows/pages.yml", "course_tools/bootstrap.py",
    "course_tools/exports/templates/grade.yml", "course_tools/exports/templates/release_README.md",
    "course_tools/exports/templates/setup.sh.j2"])
def test_a_python_that_is_named_is_one_that_the_course_runs_on(path):
    text = (ROOT / path).read_text(encoding="utf-8")
    named = re.findall(r"[Pp]y(?:thon)?(?:-version)?[\": :-]{0,4}3\.(\d+)", text)
    older = {"6", "7"} if path.endswith("bootstrap.py") else set()    # whose syntax it keeps to
    assert named and {int(minor) for minor in {*named} - older} <= {
        *range(bootstrap.OLDEST[1], bootstrap.NEWEST[1] + 1)}


def test_the_version_is_the_last_one_of_the_changelog():
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## \[(\d[^]]*)\]", changes, re.MULTILINE)[0] == PROJECT["version"]


def test_only_verbs_that_test_install_what_tests_need():
    """make notebooks and the like leave a learner's environment as it is; make site adds Sphinx."""
    for verb in ("lab", "grade", "notebooks", "exercises", "site", "findings", "check"):
        done = subprocess.run(["make", "-n", verb], cwd=ROOT, capture_output=True, text=True, check=True)
        assert ("--extra test" in done.stdout) == (verb == "check"), done.stdout
        assert ("--extra site" in done.stdout) == (verb == "site"), done.stdout


def test_authoring_needs_no_package_of_the_tests():
    """Imported with every package away that only the extra brings."""
    extra = sorted(name.replace("-", "_") for name in needed("test") - needed())
    code = (f"import sys\nfor name in {extra}: sys.modules[name] = None\n"
            "import course_tools.authoring.__main__, course_tools.cli, course_tools.lab")
    assert "nbgrader" in extra
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_conda_installs_this_project_with_the_constraints():
    pip = next(part["pip"] for part in CONDA["dependencies"] if isinstance(part, dict))
    assert pip == ["-c constraints.txt", "-e .[test]"] and "pip" in CONDA["dependencies"]
    assert set(EXTRAS) == {"test", "cluster", "site"}    # a new one: see bootstrap.py


def needed(*extras):
    """The names of course-lib's requirements, and of theirs, that hold on this machine."""
    names, seen, todo = set(), set(), [(Requirement("course-lib"), set(extras))]
    while todo:
        requirement, extras = todo.pop()
        for line in metadata.requires(requirement.name) or []:
            new = Requirement(line)
            holds = new.marker is None or any(new.marker.evaluate({"extra": e}) for e in extras | {""})
            wanted = (installed.normal(new.name), frozenset(new.extras))    # once with extras, once without
            if holds and wanted not in seen:
                seen.add(wanted)
                names.add(wanted[0])
                todo.append((new, new.extras))
    return {name for name in names if not re.match("nvidia-|cuda-|triton|appnope|pywinpty", name)}


def test_what_is_installed_is_what_constraints_say():
    assert installed.differences(["test"]) == []
    assert needed("test") - set(installed.pins()) == set()
    older = {"overrides", "importlib-metadata", "lazy-importer", "zipp"}  # what Python has itself since 3.12
    assert set(installed.pins()) - needed("test") <= (older if sys.version_info >= (3, 12) else set())
    assert set(EXTRAS["cluster"] + EXTRAS["site"]) <= set(EXTRAS["test"])  # so that they are tested


def test_a_difference_is_told_by_name(tmp_path, monkeypatch):
    for name in ("pyproject.toml", "constraints.txt"):
        text = (ROOT / name).read_text(encoding="utf-8").replace('"torch==2.13.0",', '"no-such-thing",')
        text = text.replace("\ntqdm==", "\nno-such-thing==1.0\ntqdm==0.")
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(installed, "ROOT", tmp_path)
    assert [line.split(",")[0] for line in installed.differences()] == [
        "no-such-thing: missing", f"tqdm: {metadata.version('tqdm')}"]


def test_make_lists_its_verbs_and_knows_them():
    listed = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert VERBS <= set(re.findall(r"^  make (\w+) +\S", listed, re.MULTILINE))
    subprocess.run(["make", "-n", *sorted(VERBS)], cwd=ROOT, capture_output=True, check=True)


def ci(folder, python, make="", apt_get=""):
    """.ci/run on a machine whose make and apt-get do this."""
    programs = {"make": f'echo "make $*, browser $COURSE_REQUIRE_BROWSER"; {make}', "chromium": "",
                "sudo": 'shift; "$@"', "apt-get": f'echo "apt-get $*"; {apt_get}'}
    for name, body in programs.items():
        (folder / name).write_text("#!/bin/sh\n" + body + "\n")
        (folder / name).chmod(0o755)
    env = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", PYTHON=python)
    return subprocess.run([ROOT / ".ci/run"], env=env, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("status", [0, 2])
def test_ci_runs_make_test_and_passes_its_failure_on(status, tmp_path):
    done = ci(tmp_path, sys.executable, make=f"exit {status}")
    assert done.returncode == status, done.stderr
    assert done.stdout.endswith(f"make PYTHON={sys.executable} test, browser 1\n")


def test_ci_installs_what_is_missing_and_stops_where_that_fails(tmp_path):
    done = ci(tmp_path, "no-such-python", apt_get='[ "$1" != install ]')
    assert done.returncode != 0 and "make" not in done.stdout
    assert done.stdout.startswith("apt-get update\napt-get install -y --no-install-recommends python3 ")


def test_notebooks_are_read_without_building_a_grammar_first():
    """Later versions of jsonschema take 0.9 s for this at every start of JupyterLab, `course` and pytest."""
    line = "import nbformat, sys; sys.exit('rfc3987_syntax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line]).returncode == 0


SHARED = """
import pytest

@pytest.fixture(scope="module")
def expensive():
    pass

@pytest.mark.parametrize("number", range(8))
def test_one(number, expensive):
    pass
"""


def test_tests_that_share_an_expensive_fixture_go_to_one_worker(tmp_path):
    """With versions of pytest and pytest-xdist that do not suit each other, groups are silently ignored."""
    (tmp_path / "test_shared.py").write_text(SHARED, encoding="utf-8")
    (tmp_path / "conftest.py").write_bytes((ROOT / "conftest.py").read_bytes())
    line = [sys.executable, "-m", "pytest", "-v", "-n", "2", "--dist", "loadgroup", "-p", "no:cacheprovider"]
    done = subprocess.run(line, cwd=tmp_path, text=True, capture_output=True,
                          env={key: value for key, value in os.environ.items() if "PYTEST" not in key})
    workers = re.findall(r"\[(gw\d)\].* PASSED", done.stdout)
    assert len(workers) == 8 and len(set(workers)) == 1, done.stdout


@pytest.mark.parametrize("verb, workflow", [("test", "ci"), ("test-all", "nightly")])
def test_what_a_workflow_calls_is_a_verb_of_the_makefile(verb, workflow):
    text = (ROOT / ".github/workflows" / f"{workflow}.yml").read_text()
    called = re.search(r"run: (?:VERB=(\S+) )?\.ci/run$", text, re.MULTILINE)
    assert (called[1] or "test") == verb
    assert 'make PYTHON="$PYTHON" "${VERB:-test}"' in (ROOT / ".ci/run").read_text()
    assert re.search(rf"^{verb}:.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)

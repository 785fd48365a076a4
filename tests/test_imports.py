"""Imports run one way: a part of course_lib imports only what is listed for it here."""

import ast
import graphlib
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
TEACHING = {"claims", "data", "decoding", "metrics", "models", "plots", "shapes", "training", "widgets"}
TOOLS = {"answers", "authoring", "backups", "bootstrap", "checks", "cli", "exercise", "exports", "grading",
         "installed", "lab", "markdown", "saving", "terminal", "update"}

# Everything may import runtime and its own part.
MAY_IMPORT = {
    "runtime": set(), "data": set(), "shapes": set(), "training": set(), "plots": set(), "claims": set(),
    "models": {"shapes"}, "decoding": {"shapes"}, "metrics": {"shapes"},
    "widgets": {"plots"},
    "checks": TEACHING, "exercise": set(), "markdown": set(), "saving": set(), "backups": set(),
    "benchmarks": {"checks", "data", "decoding", "exercise", "grading", "models"},
    "terminal": set(), "update": {"backups", "exercise"},
    "answers": {"checks", "exercise"},
    "capstone": {"answers", "checks", "data", "decoding", "metrics", "plots"},
    "grading": TEACHING | {"backups", "checks", "exercise", "markdown"},
    "authoring": {"backups", "capstone", "checks", "claims", "data", "exercise", "markdown", "plots",
                  "saving"},
    "exports": {"authoring", "bootstrap", "checks", "exercise", "grading"},
    "cli": TEACHING | TOOLS,
    "jupyter": set(), "bootstrap": {"installed"}, "installed": set(), "lab": {"bootstrap", "installed"},
}
HELPERS = TEACHING | {"runtime"}  # the small package that lessons import
FOR_EXERCISES = {"checks", "answers", "capstone"}  # what their cells import beyond that


def imported(source, package=()):
    """The parts of course_lib that a module or cell imports.  package: its own, ('course_lib', 'data')."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = list(package[:len(package) - node.level + 1]) if node.level else []
            base += (node.module or "").split(".") if node.module else []
            names = [[*base, alias.name] for alias in node.names]
        else:
            continue
        found |= {name[1] if len(name) > 1 else "everything" for name in names if name[:1] == ["course_lib"]}
    return found


def part(path):
    """The part of course_lib that a file belongs to."""
    return path.relative_to(ROOT / "course_lib").parts[0].removesuffix(".py")


FILES = [path for path in sorted((ROOT / "course_lib").rglob("*.py"))
         if path != ROOT / "course_lib/__init__.py" and "templates" not in path.parts]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_part_may(path):
    assert part(path) in MAY_IMPORT, f"say in tests/test_imports.py what {part(path)} may import"
    package = ("course_lib", *path.relative_to(ROOT / "course_lib").parts[:-1])
    allowed = MAY_IMPORT[part(path)] | {"runtime", part(path)}
    beyond = imported(path.read_text(encoding="utf-8"), package) - allowed
    assert not beyond, f"{part(path)} may not import {beyond} of course_lib"


@pytest.mark.parametrize("path", [path for folder in ("notebooks", "solutions", "exercises")
                                  for path in sorted((ROOT / folder).glob("*.ipynb"))],
                         ids=lambda path: f"{path.parent.name}-{path.stem[:2]}")
def test_a_notebook_imports_helpers_and_no_tools(path):
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    found = set().union(*(imported(source) for source in cells if not source.startswith(("!", "%"))))
    beyond = set() if path.parent.name == "notebooks" else FOR_EXERCISES
    if path.stem.startswith("00"):
        beyond = {"checks"}
    assert found and found <= HELPERS | beyond, f"not for notebooks: {found - HELPERS - beyond}"


def test_the_map_tells_what_the_helper_package_is_and_how_large():
    sentence = re.search(r"Lessons import a small helper package of about ([\d,]+) lines: (.*?)\. ",
                         (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert set(re.findall(r"`(\w+)`", sentence[2])) == HELPERS
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in FILES if part(path) in HELPERS)
    assert abs(lines / int(sentence[1].replace(",", "")) - 1) < 0.1, f"it has {lines} lines"


def test_the_map_names_files_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [row for row in text.splitlines() if re.match(r"\| \d+ \|", row)]
    named = [name for row in rows for name in re.findall(r"`([\w/]+(?:\.py|/))`", row.split("|")[3])]
    assert len(rows) > 10 and len(named) > 15
    for name in named:
        assert list((ROOT / "course_lib").glob(name.replace("NN", "[0-9][0-9]").replace("name", "*"))), name


def test_no_files_import_each_other_in_a_circle():
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
               for path in FILES}
    graph = {name: used_modules(path, modules) - {name} for name, path in modules.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, which names the files


def used_modules(path, modules):
    """Those of `modules` that a file imports, wherever in it."""
    package, found = path.relative_to(ROOT).parts[:-1], set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = list(package[:len(package) - node.level + 1]) if node.level else []
            base = ".".join(base + (node.module.split(".") if node.module else []))
            for alias in node.names:  # a module of the package, or a name that its __init__ defines
                found.add(f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base)
    return found & modules.keys()


@pytest.mark.parametrize("source, found", [
    ("from course_lib import plots", {"plots"}), ("import course_lib.grading.grade", {"grading"}),
    ("from course_lib.models import rnn", {"models"}), ("from ..checks import judge", {"checks"}),
    ("from . import spec", {"models"}), ("from .. import runtime", {"runtime"}),
    ("import course_lib", {"everything"}),
    ("def f():\n    from ..grading import grade", {"grading"}), ("import torch", set()),
])
def test_an_import_is_found_however_it_is_written(source, found):
    assert imported(source, ("course_lib", "models")) == found

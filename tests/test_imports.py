"""Imports run one way: course_lib imports nothing of course_tools, and a part of either package imports only
what is listed for it here."""

import ast
import graphlib
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("course_lib", "course_tools")

# Everything may import course_lib.runtime and its own part; all of course_tools its EVERYWHERE too.
LIBRARY = {
    "runtime": set(), "data": set(), "shapes": set(), "training": set(), "plots": set(), "findings": set(),
    "studies": set(), "claims": {"findings"},
    "models": {"shapes"}, "decoding": {"shapes"}, "metrics": {"shapes"}, "widgets": {"plots"},
}
TOOLS = {    # beside all of course_lib
    "items": {"judging"}, "judging": {"items"}, "old_names": {"answers", "capstone", "judging"},
    "exercise": set(), "markdown": set(), "saving": set(), "backups": set(), "terminal": set(),
    "doctor": {"bootstrap", "exercise", "grading", "installed"},
    "jupyter": set(), "installed": set(), "bootstrap": {"installed"}, "lab": {"bootstrap", "installed"},
    "update": {"backups", "exercise"},
    "answers": {"exercise", "items", "judging"},
    "capstone": {"answers", "items", "judging"},
    "grading": {"backups", "exercise", "items", "judging", "markdown"},
    "learner": {"backups", "exercise", "grading", "items", "judging"},
    "benchmarks": {"exercise", "grading", "items", "judging"},
    "authoring": {"backups", "capstone", "exercise", "items", "judging", "markdown", "saving"},
    "exports": {"authoring", "bootstrap", "exercise", "grading", "items", "judging"},
}
EVERYWHERE = {"files", "templates"}    # one atomic writer, one Jinja
TOOLS |= {part: set() for part in EVERYWHERE}
TOOLS["cli"] = {*TOOLS} - {"benchmarks", "old_names"}
FOR_EXERCISES = {"judging", "answers", "capstone"}    # what their cells import beyond course_lib


def imported(source, package=()):
    """{(package, part)} of both packages that a module or cell imports; package: its own, as a tuple."""
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
        found |= {(name[0], name[1] if len(name) > 1 else "everything")
                  for name in names if name[0] in PACKAGES}
    return found


def place(path):
    """(package, part) of a file."""
    package, part = path.relative_to(ROOT).parts[:2]
    return package, part.removesuffix(".py")


FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))
         if path.parent != ROOT / package or path.name != "__init__.py"]
FILES = [path for path in FILES if "templates" not in path.parts]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_what_its_part_may(path):
    package, part = place(path)
    rules = LIBRARY if package == "course_lib" else TOOLS
    assert part in rules, f"say in tests/test_imports.py what {part} may import"
    allowed = {(package, other) for other in {*rules[part], part}} | {("course_lib", "runtime")}
    if package == "course_tools":
        allowed |= {("course_lib", other) for other in LIBRARY}
        allowed |= {("course_tools", other) for other in EVERYWHERE}
    beyond = imported(path.read_text(encoding="utf-8"), path.relative_to(ROOT).parts[:-1]) - allowed
    assert not beyond, f"{package}.{part} may not import {beyond}"


def test_files_are_replaced_and_jinja_is_set_up_in_one_place_each():
    def using(pattern):
        return {path.name for path in FILES if re.search(pattern, path.read_text(encoding="utf-8"))}
    assert using(r"\bos\.(replace|rename)\(|\.with_name\(f\"\.") == {"files.py"}
    assert using(r"\bimport jinja2\b|\bfrom jinja2\b") == {"templates.py"}


@pytest.mark.parametrize("path", [path for folder in ("notebooks", "solutions", "exercises")
                                  for path in sorted((ROOT / folder).glob("*.ipynb"))],
                         ids=lambda path: f"{path.parent.name}-{path.stem[:2]}")
def test_a_notebook_imports_helpers_and_no_tools(path):
    cells = [cell.source for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    found = set().union(*(imported(source) for source in cells if not source.startswith(("!", "%"))))
    allowed = set() if path.parent.name == "notebooks" else FOR_EXERCISES
    if path.stem.startswith("00"):
        allowed = {"judging"}
    beyond = found - {("course_lib", part) for part in LIBRARY} - {("course_tools", part) for part in allowed}
    assert found and not beyond, f"not for notebooks: {beyond}"


def test_the_helper_package_is_small_and_the_map_says_how_large():
    sentence = re.search(r"`course_lib` is what notebooks import, about ([\d,]+) lines: (.*?)\. ",
                         (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert set(re.findall(r"`(\w+)`", sentence[2])) == set(LIBRARY)
    lines = sum(len(path.read_text(encoding="utf-8").splitlines())
                for path in (ROOT / "course_lib").rglob("*.py"))
    assert lines <= 4900 and abs(lines / int(sentence[1].replace(",", "")) - 1) < 0.1, f"it has {lines} lines"


def test_the_map_names_files_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = [row for row in text.splitlines() if re.match(r"\| \d+ \|", row)]
    named = [name for row in rows for name in re.findall(r"`([\w/]+(?:\.py|/))`", row.split("|")[3])]
    assert len(rows) > 10 and len(named) > 15
    named += re.findall(r"`(course_(?:lib|tools)/[\w/.]*)`", text)
    for name in named:
        pattern = name.replace("NN", "[0-9][0-9]").replace("name", "*").rstrip("/")
        folder = ROOT if name.startswith("course_") else ROOT / "course_tools"
        assert list(folder.glob(pattern)), name


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
    ("from course_lib import plots", {("course_lib", "plots")}),
    ("import course_tools.grading.grade", {("course_tools", "grading")}),
    ("from course_lib.models import rnn", {("course_lib", "models")}),
    ("from ..items import registry", {("course_tools", "items")}),
    ("from . import spec", {("course_tools", "judging")}),
    ("from .. import exercise", {("course_tools", "exercise")}),
    ("import course_lib", {("course_lib", "everything")}),
    ("def f():\n    from ..grading import grade", {("course_tools", "grading")}), ("import torch", set()),
])
def test_an_import_is_found_however_it_is_written(source, found):
    assert imported(source, ("course_tools", "judging")) == found


def test_a_notebook_from_before_the_split_finds_what_it_imports():
    from course_lib.answers import earlier_answers
    from course_lib.checks import check

    from course_tools import answers, judging
    assert check is judging.check and earlier_answers is answers.earlier_answers


@pytest.mark.parametrize("path", sorted((ROOT / "tests").rglob("*.py")), ids=lambda path: path.stem)
def test_no_test_imports_another_test(path):
    """What tests share is in tests/support."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert not [name for name in names if name.startswith("test_")]

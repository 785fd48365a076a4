"""Lessons and solutions still give the outputs that they are stored with; exercises fail until answered."""

import os
import subprocess
import sys
from xml.etree import ElementTree

import nbformat
import pytest
import short_capstone
from lint_rules import ROOT, code
from move_widgets import widget_calls

from course_tools import exercise

STORED = [path for folder in ("notebooks", "solutions")    # the last lessons take longest: they start first
          for path in sorted((ROOT / folder).glob("*.ipynb"), reverse=True)]
EXERCISES = sorted((ROOT / "exercises").glob("*.ipynb"))
pytestmark = pytest.mark.lessons


def nbval(path, mode, tmp_path, folder=ROOT, plugin=None):
    """Run nbval as a user types it.  Returns {cell: what it failed with, or None}, and what it printed.

    plugin: a module of tests/ that pytest loads.
    """
    report = tmp_path / "report.xml"
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("PYTEST_") and key != "COURSE_SEED"}
    line = [sys.executable, "-m", "pytest", mode, "--nbval-current-env", "--nbval-cell-timeout=600",
            "-p", "no:cacheprovider", f"--junitxml={report}", str(path)]
    if plugin:
        line[3:3] = ["-p", plugin]
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "tests"), environment["PYTHONPATH"]])
    done = subprocess.run(line, cwd=folder, env=environment, text=True, capture_output=True)
    cells = {int(case.get("name").removeprefix("Cell ")): case.findtext("failure")
             for case in ElementTree.parse(report).iter("testcase")}
    return cells, done.stdout


def test_there_are_lessons_solutions_and_exercises():
    assert [path.parent.name for path in STORED].count("notebooks") >= 2
    solutions = sorted(path.stem for path in STORED if path.parent.name == "solutions")
    assert solutions == [path.stem for path in EXERCISES] != []


@pytest.mark.parametrize("path", STORED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_it_gives_the_outputs_that_are_stored_and_then_its_widgets_move(path, tmp_path, monkeypatch):
    monkeypatch.delenv("COURSE_STATIC")    # the root's conftest.py sets it, for whoever types pytest --nbval
    notebook = exercise.read(path)
    widgets = widget_calls(notebook)
    cells, printed = nbval(path, "--nbval", tmp_path, plugin="move_widgets" if widgets else None)
    failed = [number for number, failure in cells.items() if failure]
    assert not failed, f"cells {failed} differ, or a widget fails:\n{printed[-6000:]}"
    assert list(cells) == list(range(len(code(notebook)) + bool(widgets))), printed[-3000:]


@pytest.fixture
def copy(request, tmp_path):
    """A copy of an exercise.  The capstone trains only for a moment: in the solution it trains to the end."""
    target, notebook = tmp_path / request.param.name, exercise.read(request.param)
    for cell in notebook.cells:
        if "capstone.train(" in cell.source:
            cell.source = short_capstone.SOURCE
    nbformat.write(notebook, target)
    return target


def put_to_work(cells):
    return [number for number, cell in enumerate(cells) if "put-to-work" in cell.metadata.get("tags", ())]


def places(cells, kind):
    return [number for number, cell in enumerate(cells) if exercise.grade_id(cell, kind)]


@pytest.mark.parametrize("copy", EXERCISES, indirect=True, ids=lambda path: path.stem)
def test_an_exercise_fails_in_every_check_and_half_answered_it_is_put_to_work(copy, tmp_path):
    """An empty answer is called one; code with a planted bug is told what it does.  What the answers are put
    to runs all the same, with the library's parts.  Then, in the same kernel, with every second answer."""
    notebook = exercise.read(copy)
    empty, half = code(notebook), half_answered(copy)
    notebook.cells = [*empty, nbformat.v4.new_code_cell("%reset -f"), *half]
    nbformat.write(notebook, copy)
    cells, printed = nbval(copy, "--nbval-lax", tmp_path, tmp_path)
    assert list(cells) == list(range(len(empty) + 1 + len(half))), printed
    assert not any(cells[number] for number in range(len(empty), len(cells))), printed[-6000:]

    assert cells[0] is None and not any(cells[number] for number in places(empty, "solution"))
    planted = {exercise.grade_id(cell) for cell in empty
               if exercise.grade_id(cell, "solution") and exercise.STUB not in cell.source}
    for number in places(empty, "grade"):
        name = exercise.grade_id(empty[number], "grade").removeprefix("check_")
        said = cells[number] or "nothing: the check passes"
        assert f"✗ {name}" in said, f"cell {number} says {said}"
        assert ("not answered yet" in said) == (name not in planted), f"cell {number} says {said}"
        assert "course_tools/judging" not in said, f"a traceback:\n{said}"
    work = put_to_work(empty)
    assert work and not any(cells[number] for number in work), printed[-6000:]


def half_answered(copy):
    """The code cells of a sheet with every second answer, without checks."""
    answers = answers_of(copy)
    cells = [cell for cell in code(exercise.read(copy)) if not exercise.grade_id(cell, "grade")
             and cell.metadata.get("tags") in (None, ["try-it", "put-to-work"])]
    for number in places(cells, "solution")[::2]:
        cells[number].source = answers[exercise.grade_id(cells[number])]
    for cell in cells:
        cell.id += "-half"
    assert put_to_work(cells)
    return cells


def answers_of(copy):
    """{item: the answer cell of the solution}"""
    solution = exercise.read(ROOT / "solutions" / copy.name)
    return {exercise.grade_id(cell): cell.source for cell in solution.cells if exercise.grade_id(cell)}


@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_an_exercise_with_the_solutions_answers_is_the_solution(path):
    """So what is known of the solution, which is executed above, holds for it: every check passes."""
    notebook, answers = exercise.read(path), answers_of(path)
    for number in places(code(notebook), "solution"):
        cell = code(notebook)[number]
        answer = answers[exercise.grade_id(cell)]
        assert cell.source == exercise.handed_out(answer) != answer
        cell.source = answer
    solution = code(exercise.read(ROOT / "solutions" / path.name))
    assert [cell.source for cell in code(notebook)] == [cell.source for cell in solution]

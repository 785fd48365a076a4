"""A class of hostile, broken and odd notebooks, each between two innocent ones: what is forged earns
nothing, what harms costs its own item, and what is honest keeps its points.
"""

import re
import sys

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("what contains them is made of what Linux has", allow_module_level=True)

from hostile_notebooks import as_bytes, cases
from odd_notebooks import ALL, NONE, POINTS, RIGHT, SOLUTION, STEM, notebook

from course_tools import exercise
from course_tools.grading import classroom, submissions

pytestmark = pytest.mark.slow
CASES = cases()
BASE = exercise.derive(SOLUTION)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """({name: its part of results.json}, {name: the pages' text}, what the grader was before and after)."""
    folder = tmp_path_factory.mktemp("hostile")
    names = {}
    for number, (name, case) in enumerate(CASES.items()):
        for student, content in ((f"{number:03} hostile", case.make(BASE)),
                                 (f"{number:03} innocent", notebook(BASE, RIGHT))):
            path = folder / "in" / student / f"{STEM}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_bytes(as_bytes(content))
            names[student] = name if "hostile" in student else student
    before = psutil.Process().memory_info().rss
    results, now = classroom.grade_class(folder / "in", folder / "out", seed=5, timeout=2, workers=2)
    grown = psutil.Process().memory_info().rss - before
    pages = {path.parent.name: path.read_text(encoding="utf-8") for path in folder.glob("out/**/*.html")}
    return {names[one["student"]]: one for one in results["submissions"]}, pages, grown


def earned(result):
    return {item["name"] for item in result["items"] if item["points"]}


@pytest.mark.parametrize("name", CASES)
def test_it_earns_what_it_deserves_and_is_told_why(graded, name):
    result, case = graded[0][name], CASES[name]
    told = {item["name"]: item["message"] for item in result["items"]}
    assert earned(result) == case.earns, told
    assert result["score"] == sum(POINTS[item] for item in case.earns)
    assert result["max_score"] == sum(POINTS.values())
    assert all(0 < len(text) <= 1500 and "Traceback" not in text for text in told.values())
    assert re.search(case.says, result.get("message") or told["rnn_step"]), told


def test_the_innocent_are_unharmed(graded):
    innocent = {name: earned(one) for name, one in graded[0].items() if "innocent" in name}
    assert len(innocent) == len(CASES)
    assert {name for name, items in innocent.items() if items != ALL} == set()


def test_the_grader_is_unharmed(graded):
    results, pages, grown = graded
    assert len(results) == 2 * len(CASES) == len(pages) - 1
    assert {one["status"] for one in results.values()} == {"graded", "unreadable"}
    assert grown < 300e6
    assert not any("<script>" in page or "\x1b" in page for page in pages.values())


def test_there_are_enough_of_them():
    assert sum(case.earns != ALL for case in CASES.values()) >= 40
    assert sum(case.earns == NONE for case in CASES.values()) >= 40
    assert submissions.safe("000 hostile") == "000 hostile"

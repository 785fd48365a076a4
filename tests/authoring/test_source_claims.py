"""What the course is to teach: each row of source_claims.csv is told in its lesson, at the cell it names.

A row of a lesson that is being rewritten may lack its anchor until the lesson is listed in lint_budget.THIRD.
"""

import csv
from pathlib import Path

import lint_budget
import pytest
from lint_rules import ROOT

from course_tools import exercise

ROWS = list(csv.DictReader((Path(__file__).with_name("source_claims.csv")).read_text("utf-8").splitlines()))
REWRITTEN_NOW = {"01", "02", "03", "04"}    # each leaves when THIRD has it


def problem(row, cells, may_wait):
    """What is wrong with a row.  cells: the ids of its lesson's cells."""
    missing = [anchor for anchor in row["anchor"].split() if anchor not in cells]
    if missing:
        return f"lesson {row['lesson']} has no cell {', '.join(missing)}, which should tell {row['claim']}"
    if not row["anchor"] and row["lesson"] not in may_wait:
        return f"name the cell of lesson {row['lesson']} that tells {row['claim']}"
    return None


def cells_of(lesson):
    (path,) = (ROOT / "notebooks").glob(f"{lesson}_*.ipynb")
    return {cell.id for cell in exercise.read(path).cells}


def test_every_claim_of_the_sources_is_told_where_it_should_be():
    cells = {lesson: cells_of(lesson) for lesson in {row["lesson"] for row in ROWS}}
    problems = [problem(row, cells[row["lesson"]], REWRITTEN_NOW - lint_budget.THIRD) for row in ROWS]
    assert [found for found in problems if found] == []
    assert len(ROWS) == 41


@pytest.mark.parametrize("lesson, anchor, may_wait, says", [
    ("01", "", {"01"}, None), ("01", "there", set(), None), ("01", "there also", set(), None),
    ("01", "", set(), "name the cell"), ("01", "there gone", {"01"}, "has no cell gone"),
    ("05", "", {"01"}, "name the cell")])
def test_a_claim_that_is_told_nowhere_is_found(lesson, anchor, may_wait, says):
    found = problem({"claim": "A1", "lesson": lesson, "anchor": anchor}, {"there", "also"}, may_wait)
    assert (says in found) if says else found is None

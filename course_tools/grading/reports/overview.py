"""The class on one page, without names: how the points are distributed, and what to teach again."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...items import registry
from ..results import ItemScore, SubmissionScore, Summary
from .feedback_pages import KINDS, TEMPLATES, Exercises, by_kind

BINS = 10  # bars of the distribution
REASONS = 3  # shown for each item
AGAIN = 5  # mistakes listed as worth teaching again
PLANTED = "planted_bug"  # as in judging/judge.py, which is not imported here because it imports torch
FEWEST, TENTH = 3, 0.1  # occurrences that make a mistake one of them, and their fraction of the class
WEAKER = 0.1  # a class is weak in a kind of items if it has so much less of their points than of any other

# Each item of each notebook is counted in exactly one of these columns.
COLUMNS = {"passed": "passed", "mistake": "known mistake", "wrong": "other mistake", "error": "error",
           "timeout": "timed out", "free_call": "library call", "missing": "not answered",
           "unreadable": "unreadable", "failed": "not graded", "absent": "no notebook"}
REASON = {"wrong": "wrong, but none of the known mistakes",
          "error": "raised an error, or could not be compared",
          "timeout": "ran out of time", "free_call": "called a library function that does the whole job"}


def page(graded: Summary, exercises: Exercises | None = None) -> str:
    """overview.html of a summary (results.json).  exercises: as they were handed out."""
    exercises, submissions = exercises or {}, graded["submissions"]
    students = len({one["student"] for one in submissions})
    stems = sorted({one["exercise"] for one in submissions if one["exercise"]})
    parts = [exercise([one for one in submissions if one["exercise"] == stem], stem, students)
             for stem in stems]
    for part in parts:
        known = exercises.get(part["exercise"])
        part["title"] = known.title if known else part["exercise"].replace("_", " ")
    least = max(FEWEST, TENTH * students)
    again = sorted((reason for part in parts for item in part["items"] for reason in item["reasons"]
                    if reason["named"] and reason["count"] >= least), key=lambda reason: -reason["count"])
    graded_ones = [one for one in submissions if one["status"] == "graded" and one["exercise"] in exercises]
    kinds = by_kind(graded_ones, exercises)
    return TEMPLATES.get_template("overview.html.j2").render(
        parts=parts, again=again[:AGAIN], students=students, least=least, files=len(submissions),
        strange=sum(not one["exercise"] for one in submissions), kinds=kinds, asks=KINDS, weak=weakest(kinds),
        columns=COLUMNS, caution=graded.get("caution")) + "\n"


def weakest(kinds: Mapping[str, Mapping[str, int]]) -> str | None:
    """The kind of items of which the class has clearly the smallest share of the points, else None."""
    if not kinds:
        return None
    lowest, *others = sorted(kinds, key=lambda kind: share(kinds[kind]))
    return lowest if others and share(kinds[others[0]]) - share(kinds[lowest]) >= WEAKER else None


def share(total: Mapping[str, int]) -> float:
    return total["points"] / total["max_points"]


def exercise(results: Sequence[SubmissionScore], stem: str, students: int) -> dict[str, Any]:
    """What the page says about one exercise.  results: its submissions, at least one.  students: how many."""
    graded = [one for one in results if one["status"] == "graded"]
    shares = [one["score"] / one["max_score"] if one["max_score"] else 0.0 for one in graded]
    bins = Counter(min(int(share * BINS), BINS - 1) for share in shares)
    highest = max(bins.values(), default=1)
    names = [item["name"] for item in max(results, key=lambda one: len(one["items"]))["items"]]
    items = [item(results, name, stem, students) for name in names]
    notebooks = Counter(_state(one) for one in results)
    notebooks["missing"] = students - len(results)
    return {"exercise": stem, "notebooks": notebooks, "graded": len(graded), "worth": results[0]["max_score"],
            "mean": statistics.mean([one["score"] for one in graded] or [0]),
            "median": statistics.median([one["score"] for one in graded] or [0]),
            "bars": [{"from": 100 * at // BINS, "to": 100 * (at + 1) // BINS, "count": bins[at],
                      "height": 100 * bins[at] / highest} for at in range(BINS)],
            "items": items, "used": [name for name in COLUMNS if any(item["counts"][name] for item in items)]}


def item(results: Sequence[SubmissionScore], name: str, stem: str, students: int) -> dict[str, Any]:
    """What the page says about one item.  "counts" has every student once, "reasons" the most common ones."""
    answers = [item for one in results for item in one["items"] if item["name"] == name]
    counts = Counter(column(one) for one in answers)
    counts["absent"] = students - len(answers)
    wrong = Counter(_reason(one) for one in answers if column(one) in ("mistake", *REASON))
    remarks = Counter(one["remark"] for one in answers if one["passed"] and one.get("remark"))
    return {"name": name, "counts": counts, "class": sum(counts.values()), "remarks": remarks.most_common(),
            "reasons": [{"item": name, "exercise": stem.split("_")[0], "named": named, "text": text,
                         "count": count, "share": 100 * count / students}
                        for (named, text), count in wrong.most_common(REASONS)]}


def column(one: ItemScore) -> str:
    """The key in COLUMNS that an item of a result is counted under."""
    if one["passed"]:
        return "passed"
    if one["mistake"]:
        return "mistake"
    return one["status"] if one["status"] in COLUMNS else "failed"


def _state(one: SubmissionScore) -> str:
    """What became of a notebook, in words."""
    return one["status"] if one["status"] in ("graded", "unreadable") else "not graded"


def _reason(one: ItemScore) -> tuple[bool, str]:
    """(whether it is a known mistake, what went wrong in words that apply to the whole class)"""
    if one["mistake"] == PLANTED:  # students are not told, but this page is for the teacher
        return True, registry.find(one["name"])[1].planted.sentence
    if one["mistake"]:
        return True, one["message"].split("\n")[0]
    return False, REASON[column(one)]

"""The HTML pages: feedback for a student, and the teacher's index.  Each page is a single file."""

import functools
import re
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import exercise, markdown, templates
from ..results import Evidence, ItemResult, Result, SubmissionScore, Summary

TEMPLATES = templates.environment(Path(__file__).parent / "templates")
KINDS = {"build": "what the lesson shows", "transfer": "what follows from the lesson and is not in it",
         "debug": "a planted bug to find and to repair"}
HEADING = re.compile(r"^#+ *(.*)\n*")
NO_EVIDENCE: Evidence = {"difference": None, "inputs": None, "line": None}
UNKNOWN = "Not an exercise of the course"
SYNTAX = re.compile(r"\(line (\d+) of the cell\)")


@dataclass(frozen=True)
class HandedOut:
    """What a page takes from the original exercise.  tasks: {item: the task's text as HTML}.  kinds: {item:
    "build", "transfer" or "debug"}."""

    title: str
    tasks: dict[str, str]
    kinds: dict[str, str]


Exercises = Mapping[str | None, HandedOut]  # by their stems


def handed_out(stem: str) -> HandedOut:
    """Of this exercise; if this copy of the course does not have it, only a title from its name."""
    tasks, kinds, text, headings = dict[str, str](), dict[str, str](), "", list[re.Match[str] | None]()
    try:
        cells = exercise.pristine(stem).cells
    except exercise.NotebookError:
        cells = []
    for cell in cells:
        if cell.cell_type == "markdown" and not (cell.metadata.get("course") or {}).get("hints"):
            text = cell.source
            headings.append(HEADING.match(text))
            head = exercise.TASK.match(text)
            kinds.update({head[1]: head[3]} if head else {})
        elif name := exercise.grade_id(cell):
            tasks[name] = markdown.render(HEADING.sub("", text))
    first = next(filter(None, headings), None)
    title = first[1] if first else f"Exercise {stem.replace('_', ' ')}" if stem else UNKNOWN
    return HandedOut(title, tasks, kinds)


def feedback(result: Result, original: HandedOut, date: str | None = None) -> str:
    """One student's page on one exercise.

    original: the exercise as it was handed out.  date: when the file was saved, in words.
    """
    stem = result["exercise"] or ""
    items: list[dict[str, Any]] = [
             {"answer": None, "section": None, "remark": None, **item, "raised": raising_line(item),
              "task": original.tasks.get(item["name"]), "kind": original.kinds.get(item["name"]),
              "evidence": item.get("evidence") or NO_EVIDENCE,
              "message": [line.strip() for line in item["message"].split("\n")]}
             for item in result["items"]]
    anchors = headings(exercise.ROOT / "notebooks" / f"{stem}.ipynb") if published(stem) else {}
    for item in items:
        item["anchor"] = anchors.get(item["section"]) or (item["section"] or "").replace(" ", "-")
    known = {"message": None, **result, "number": stem.split("_")[0], "title": original.title,
             "items": items, "kinds": by_kind([result], {result["exercise"]: original}),
             "date": date, "lesson": f"notebooks/{stem}.ipynb", "address": published(stem)}
    return TEMPLATES.get_template("feedback.html.j2").render(known) + "\n"


def by_kind(results: Iterable[Result | SubmissionScore], exercises: Exercises) -> dict[str, dict[str, int]]:
    """{kind: {"points", "max_points", "items", "passed", "missing"}} of the items of these results, for the
    kinds that occur in them."""
    totals = {kind: dict.fromkeys(("points", "max_points", "items", "passed", "missing"), 0)
              for kind in KINDS}
    for result in results:
        for item in result["items"]:
            total = totals.get(exercises[result["exercise"]].kinds.get(item["name"], ""))
            if total is not None:
                total["points"] += item["points"]
                total["max_points"] += item["max_points"]
                total["items"] += 1
                total["passed"] += item["passed"]
                total["missing"] += item["status"] == "missing"
    return {kind: total for kind, total in totals.items() if total["items"]}


def raising_line(item: ItemResult) -> int | None:
    """The number of the line in the answer that raised an error; None if none did, or if ambiguous."""
    syntax = SYNTAX.search(item["message"])
    if syntax:
        return int(syntax[1])
    raised = (item.get("evidence") or NO_EVIDENCE)["line"]
    lines = [line.strip() for line in (item.get("answer") or "").split("\n")]
    return lines.index(raised) + 1 if raised and lines.count(raised) == 1 else None


def published(stem: str) -> str | None:
    """The address of a lesson's page, if pyproject.toml says where the course is published, else None."""
    try:
        project = tomllib.loads((exercise.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return f"{project['urls']['Documentation'].rstrip('/')}/notebooks/{stem}.html"
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return None


@functools.cache
def headings(path: Path) -> dict[str, str | None]:
    """{heading: id of its cell} of a lesson: the anchors of its published page."""
    try:
        cells = exercise.read(path).cells
    except exercise.NotebookError:
        return {}
    return {line.lstrip("# "): cell.get("id") for cell in cells if cell.cell_type == "markdown"
            for line in cell.source.split("\n") if line.startswith("#")}


def date_of(path: Path) -> str | None:
    """When a file was saved, '22 November 2026, 08:12', or None."""
    try:
        return time.strftime("%d %B %Y, %H:%M", time.localtime(path.stat().st_mtime)).lstrip("0")
    except (OSError, ValueError):
        return None


def index(graded: Summary, hrefs: Sequence[str]) -> str:
    """The teacher's page: every student with a link to each page.

    hrefs: the address of each submission's page, in the order of the summary.
    """
    students: dict[str, list[dict[str, Any]]] = {}
    for one, href in zip(graded["submissions"], hrefs, strict=True):
        page = {**one, "href": href, "number": (one["exercise"] or "").split("_")[0]}
        students.setdefault(one["student"], []).append(page)
    return TEMPLATES.get_template("index.html.j2").render(students=students, graded=graded) + "\n"

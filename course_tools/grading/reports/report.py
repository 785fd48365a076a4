"""Write the results of a class: grades.csv, results.json, junit.xml, and pages for students and teacher."""

import csv
import io
import json
import re
import xml.etree.ElementTree as xml
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import quote

from .. import caution
from ..results import ItemScore, Result, SubmissionScore, Summary
from ..submissions import Submission
from . import feedback_pages, overview
from .gradebook import Gradebook

SCHEMA = Path(__file__).parent / "results.schema.json"  # of results.json, for scripts that read it
COLUMNS = ["student", "exercise", "item", "points", "max_points", "status", "mistake", "message"]


def summary(seed: int, results: Iterable[Result]) -> Summary:
    """results.json.  A submission has a "message" if it was not graded."""
    results = list(results)
    sandboxes = sorted({result["sandbox"] for result in results if result["sandbox"] is not None})
    cautions = [caution(one) for one in sandboxes if caution(one)]
    return {"seed": seed, "sandbox": "; ".join(sandboxes) or "nothing was run",
            "caution": cautions[0] if cautions else None, "submissions": list(map(_submission, results))}


def _submission(result: Result) -> SubmissionScore:
    scored: SubmissionScore = {
        "student": result["student"], "exercise": result["exercise"], "path": result["path"],
        "status": result["status"], "score": result["score"], "max_score": result["max_score"], "items": [
            {"name": item["name"], "points": item["points"], "max_points": item["max_points"],
             "passed": item["passed"], "mistake": item["mistake"], "message": item["message"],
             "status": item["status"], "remark": item.get("remark")} for item in result["items"]]}
    return {**scored, "message": result["message"]} if "message" in result else scored


def write_all(book: Gradebook, graded: Summary, results: Mapping[Submission, Result]) -> None:
    """Write all files for the summary `graded` into the gradebook."""
    hrefs = []
    stems = {result["exercise"] for result in results.values()}
    exercises = {stem: feedback_pages.handed_out(stem or "") for stem in stems}
    for submission, result in results.items():
        path = book.path(submission, ".html")
        hrefs.append(quote(path.relative_to(book.folder).as_posix()))
        date = feedback_pages.date_of(submission.path)
        book.write(path, feedback_pages.feedback(result, exercises[result["exercise"]], date))
    book.write(book.folder / "results.json", json.dumps(graded, indent=1) + "\n")
    book.write(book.folder / "grades.csv", table(graded))
    book.write(book.folder / "junit.xml", junit(graded))
    book.write(book.folder / "index.html", feedback_pages.index(graded, hrefs))
    book.write(book.folder / "overview.html", overview.page(graded, exercises))


def table(graded: Summary) -> str:
    """The text of grades.csv: one row for each item, and one for a submission without items."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for one in graded["submissions"]:
        for item in one["items"] or [_nothing(one, "")]:
            row = [one["student"], one["exercise"], item["name"], item["points"], item["max_points"],
                   item["status"], item["mistake"], item["message"]]
            rows.writerow([cell(value) for value in row])
    return text.getvalue()


def cell(value: str | int | None) -> str | int:
    """A value as a cell that no spreadsheet interprets as a formula."""
    if isinstance(value, str) and value.lstrip()[:1] in tuple("=+-@") or str(value)[:1] in ("\t", "\r", "\n"):
        return f"'{value}"
    return "" if value is None else value


def junit(graded: Summary) -> str:
    """JUnit XML: one suite for each submission, one case for each item."""
    root = xml.Element("testsuites", name="course grade")
    for one in graded["submissions"]:
        items = one["items"] or [_nothing(one, "notebook")]
        name = f"{one['student']}/{one['exercise'] or one['path']}"
        suite = xml.SubElement(root, "testsuite", name=_text(name), tests=str(len(items)), errors="0",
                               failures=str(sum(not item["passed"] for item in items)))
        for item in items:
            case = xml.SubElement(suite, "testcase", classname=_text(name), name=item["name"])
            if not item["passed"]:
                failure = xml.SubElement(case, "failure", type=item["status"], message=_text(item["message"]))
                failure.text = _text(item["message"])
    xml.indent(root)
    return xml.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _nothing(one: SubmissionScore, name: str) -> ItemScore:
    """What stands in place of the items of a submission that has none."""
    return {"name": name, "points": 0, "max_points": 0, "passed": False, "status": one["status"],
            "mistake": None, "message": one.get("message", ""), "remark": None}


def _text(text: str) -> str:
    """Text without the characters that XML cannot contain."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)

"""Write the results of a class: grades.csv, results.json, junit.xml, and pages for students and teacher."""

import csv
import io
import json
import re
import xml.etree.ElementTree as xml
from urllib.parse import quote

from .. import caution
from . import feedback_pages, overview

COLUMNS = ["student", "exercise", "item", "points", "max_points", "status", "mistake", "message"]
ITEM = ["name", "points", "max_points", "passed", "mistake", "message", "status", "remark"]


def summary(seed, results):
    """results.json as a dict.  A submission has a "message" if it was not graded."""
    sandboxes = sorted({result["sandbox"] for result in results} - {None})
    cautions = [caution(one) for one in sandboxes if caution(one)]
    return {"seed": seed, "sandbox": "; ".join(sandboxes) or "nothing was run",
            "caution": cautions[0] if cautions else None, "submissions": [
        {**{key: result[key] for key in ("student", "exercise", "path", "status", "score", "max_score")},
         **({"message": result["message"]} if "message" in result else {}),
         "items": [{key: item.get(key) for key in ITEM} for item in result["items"]]} for result in results]}


def write_all(book, graded, results):
    """Write all files for the summary `graded` into the gradebook.  results: {submission: result}."""
    hrefs = []
    stems = {result["exercise"] for result in results.values()}
    sheets = {stem: feedback_pages.sheet(stem or "") for stem in stems}
    for submission, result in results.items():
        path = book.path(submission, ".html")
        hrefs.append(quote(path.relative_to(book.folder).as_posix()))
        date = feedback_pages.date_of(submission.path)
        book.write(path, feedback_pages.feedback(result, sheets[result["exercise"]], date))
    book.write(book.folder / "results.json", json.dumps(graded, indent=1) + "\n")
    book.write(book.folder / "grades.csv", table(graded))
    book.write(book.folder / "junit.xml", junit(graded))
    book.write(book.folder / "index.html", feedback_pages.index(graded, hrefs))
    book.write(book.folder / "overview.html", overview.page(graded, sheets))


def table(graded):
    """The text of grades.csv: one row for each item, and one for a submission without items."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for one in graded["submissions"]:
        nothing = {"name": "", "points": 0, "max_points": 0, "status": one["status"], "mistake": None,
                   "message": one.get("message", "")}
        for item in one["items"] or [nothing]:
            row = [one["student"], one["exercise"], item["name"], item["points"], item["max_points"],
                   item["status"], item["mistake"], item["message"]]
            rows.writerow([cell(value) for value in row])
    return text.getvalue()


def cell(value):
    """A value as a cell that no spreadsheet interprets as a formula."""
    if isinstance(value, str) and value.lstrip()[:1] in tuple("=+-@") or str(value)[:1] in ("\t", "\r", "\n"):
        return f"'{value}"
    return "" if value is None else value


def junit(graded):
    """JUnit XML: one suite for each submission, one case for each item."""
    root = xml.Element("testsuites", name="course grade")
    for one in graded["submissions"]:
        items = one["items"] or [{"name": "notebook", "passed": False, "status": one["status"],
                                  "message": one.get("message", "")}]
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


def _text(text):
    """Text without the characters that XML cannot contain."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text)

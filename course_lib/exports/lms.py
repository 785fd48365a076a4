"""`course export canvas|moodle CSV --grades DIR`: the points of a class as those systems import them.

A student is known by the name of the folder that was graded.  What Canvas and Moodle call the files
of a bulk download is understood, so that their own numbers come back to them.
"""

import csv
import html
import io
import json
import re
from pathlib import Path

from ..grading.report import cell
from . import ExportError, new_file

CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
CANVAS_NAME = re.compile(r"(?P<name>.+?)_(?:LATE_)?(?P<id>\d+)_\d+(?:[_-]+\d+)?")
MOODLE = ["Identifier", "Full name", "Email address", "ID number"]
MOODLE_NAME = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_file_?")


def write(out, target, only, grades):
    """Write the CSV.  only: [stem] for one exercise.  grades: a folder that `course grade` wrote."""
    found = read(Path(grades))
    told = [one for one in found if one["exercise"] and one["status"] in ("graded", "unreadable")]
    marks = [one for one in told if not only or one["exercise"] in only]
    if not marks:
        raise ExportError(f"{grades}: no graded notebook in it" + (f" of {only[0]}" if only else ""))
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows([cell(value) for value in row] for row in FORMATS[target](marks))
    with new_file(out) as part:
        part.write_text(text.getvalue(), encoding="utf-8", newline="")
    students = len({one["student"] for one in marks})
    return (f"{out}: {students} students, {len(marks)} notebooks"
            + (f"; {len(found) - len(told)} that could not be graded left out" if told != found else ""))


def read(folder):
    """The submissions of results.json in a folder.  Raises ExportError if it is not there, or damaged."""
    path = folder / "results.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["submissions"]
        for one in found:
            _need(one, student=str, exercise=(str, type(None)), path=str, status=str, score=int,
                  max_score=int, items=list)
            for item in one["items"]:
                _need(item, name=str, points=int, max_points=int, passed=bool, message=str, status=str)
    except (FileNotFoundError, NotADirectoryError):
        raise ExportError(f"{folder}: no results.json in it; first: course grade SUBMISSIONS "
                          f"--out {folder}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ExportError(f"{path}: not what course grade writes; grade again into a new folder") from None
    return found


def _need(found, **kinds):
    if not all(isinstance(found[key], kind) for key, kind in kinds.items()):
        raise ValueError


def canvas(marks):
    """The rows for Canvas: header, points possible, a row for each student."""
    exercises = _worth(marks)
    yield [*CANVAS, *map(_title, exercises)]
    yield ["    Points Possible", "", "", "", "", *exercises.values()]
    for student, mine in _by_student(marks).items():
        known = CANVAS_NAME.fullmatch(student)
        who = [known["name"], known["id"], "", ""] if known else [student, "", "", student]
        who[0] = who[0].replace("Points Possible", "Points-Possible")  # the second line's mark
        yield [*who, "", *(mine[stem]["score"] if stem in mine else "" for stem in exercises)]


def moodle(marks):
    """The rows for Moodle.  One exercise: its grading worksheet; several: for the gradebook's import."""
    exercises = _worth(marks)
    if len(exercises) == 1:
        yield [*MOODLE, "Grade", "Maximum Grade", "Last modified (grade)", "Feedback comments"]
    else:
        yield MOODLE + [f"{_title(stem)}{end}" for stem in exercises for end in ("", " feedback comments")]
    for student, mine in _by_student(marks).items():
        known = MOODLE_NAME.fullmatch(student)
        who = [f"Participant {known['id']}", known["name"], "", ""] if known else [
            "", "", student if "@" in student else "", "" if "@" in student else student]
        for stem, worth in exercises.items():
            score, text = (mine[stem]["score"], comment(mine[stem])) if stem in mine else ("", "")
            who += [score, worth, "", text] if len(exercises) == 1 else [score, text]
        yield who


def comment(one):
    """What a student reads in Moodle about one notebook: HTML, a line for each item."""
    lines = [f"{'✓' if item['points'] else '✗'} {item['name']} {item['points']}/{item['max_points']}"
             f"{'' if item['points'] else ': ' + item['message']}" for item in one["items"]]
    return "<br>".join(html.escape(line, quote=False).replace("\n", "<br>") for line in lines)


def _title(stem):
    """'01 long term dependency'"""
    return stem.replace("_", " ")


def _worth(marks):
    """{exercise: its points}, in order."""
    return dict(sorted((one["exercise"], one["max_score"]) for one in marks))


def _by_student(marks):
    """{student: {exercise: result}}, in order."""
    found = {}
    for one in sorted(marks, key=lambda one: one["student"]):
        found.setdefault(one["student"], {})[one["exercise"]] = one
    return found


FORMATS = {"canvas": canvas, "moodle": moodle}

"""`course export canvas|moodle CSV --grades DIR`: the points of a class, in the format those systems import.

Students are identified by the name of the folder that was graded.  The file names of bulk downloads from
Canvas and Moodle are understood, so that the systems get their own IDs back.  Students choose how the name
of a file ends, so only the part that the system put in front of it is read as an ID, and an ID claimed by
the notebooks of two students is left out.
"""

import csv
import html
import io
import json
import re
from pathlib import Path

from ..grading.reports.report import cell
from . import ExportError, new_file

CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
# Canvas names an upload NAME[_LATE]_USER_FILE_its-own-name, or anon_CODE_FILE_... where students are
# anonymous, and itself reads the first two numbers (canvas-lms, lib/content_zipper.rb).
CANVAS_NAME = re.compile(r"(?!(?:LATE_)?anon_)(?P<name>.+?)(?:_LATE)?_(?P<id>[0-9]+)_[0-9]+(?:[_-].*)?", re.S)
MOODLE = ["Identifier", "Full name", "Email address", "ID number"]
MOODLE_NAME = re.compile(r"(?P<name>.+?)_(?P<id>[0-9]+)_assignsubmission_file(?:_.*)?", re.S)


def write(out, target, only, grades):
    """Write the CSV.  only: [stem] for one exercise.  grades: a folder that `course grade` wrote."""
    found = read(Path(grades))
    gradable = [one for one in found if one["exercise"] and one["status"] in ("graded", "unreadable")]
    marks = [one for one in gradable if not only or one["exercise"] in only]
    if not marks:
        raise ExportError(f"{grades}: contains no graded notebook" + (f" for {only[0]}" if only else ""))
    layout, pattern = FORMATS[target]
    marks = [{**one, "known": pattern.fullmatch(one["student"])} for one in marks]
    disputed = _disputed(marks)
    kept = [one for one in marks if not one["known"] or one["known"]["id"] not in disputed]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows([cell(value) for value in row] for row in layout(kept))
    with new_file(out) as part:
        part.write_text(text.getvalue(), encoding="utf-8", newline="")
    left_out = len(found) - len(gradable)
    return (f"{out}: {len(_by_student(kept))} students, {len(kept)} notebooks"
            + (f"; {left_out} left out, because they could not be graded" if left_out else "")
            + "".join(f"\n{target} ID {number} was left out, because more than one notebook claims it: "
                      f"{', '.join(paths)}" for number, paths in disputed.items()))


def _disputed(marks):
    """{ID: paths} for every ID claimed by two names, or by two notebooks of one exercise."""
    claims = {}
    for one in marks:
        if one["known"]:
            claims.setdefault(one["known"]["id"], []).append(one)
    return {number: [one["path"] for one in theirs] for number, theirs in sorted(claims.items())
            if len({one["known"]["name"] for one in theirs}) > 1
            or len({one["exercise"] for one in theirs}) < len(theirs)}


def read(folder):
    """The submissions of results.json in a folder.  Raises ExportError if the file is missing or damaged."""
    path = folder / "results.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["submissions"]
        for one in found:
            _need(one, student=str, exercise=(str, type(None)), path=str, status=str, score=int,
                  max_score=int, items=list)
            for item in one["items"]:
                _need(item, name=str, points=int, max_points=int, passed=bool, message=str, status=str)
    except (FileNotFoundError, NotADirectoryError):
        raise ExportError(f"{folder}: contains no results.json. First run: course grade SUBMISSIONS "
                          f"--out {folder}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ExportError(f"{path}: was not written by course grade. Grade again into a new folder") from None
    return found


def _need(found, **kinds):
    if not all(isinstance(found[key], kind) for key, kind in kinds.items()):
        raise ValueError


def canvas(marks):
    """The rows for Canvas: header, points possible, a row for each student."""
    exercises = _worth(marks)
    yield [*CANVAS, *map(_title, exercises)]
    yield ["    Points Possible", "", "", "", "", *exercises.values()]
    for student, known, theirs in _by_student(marks):
        who = [known["name"], known["id"], "", ""] if known else [student, "", "", student]
        who[0] = who[0].replace("Points Possible", "Points-Possible")  # the second line's mark
        yield [*who, "", *(theirs[stem]["score"] if stem in theirs else "" for stem in exercises)]


def moodle(marks):
    """The rows for Moodle.  One exercise: its grading worksheet; several: for the gradebook's import."""
    exercises = _worth(marks)
    if len(exercises) == 1:
        yield [*MOODLE, "Grade", "Maximum Grade", "Last modified (grade)", "Feedback comments"]
    else:
        yield MOODLE + [f"{_title(stem)}{end}" for stem in exercises for end in ("", " feedback comments")]
    for student, known, theirs in _by_student(marks):
        who = [f"Participant {known['id']}", known["name"], "", ""] if known else [
            "", "", student if "@" in student else "", "" if "@" in student else student]
        for stem, max_points in exercises.items():
            score, text = (theirs[stem]["score"], comment(theirs[stem])) if stem in theirs else ("", "")
            who += [score, max_points, "", text] if len(exercises) == 1 else [score, text]
        yield who


def comment(one):
    """The feedback that a student reads in Moodle about one notebook: HTML, one line for each item."""
    lines = []
    for item in one["items"]:
        say = item.get("remark") if item["points"] else item["message"]
        lines.append(f"{'✓' if item['points'] else '✗'} {item['name']} {item['points']}/{item['max_points']}"
                     + (f": {say}" if say else ""))
    return "<br>".join(html.escape(line, quote=False).replace("\n", "<br>") for line in lines)


def _title(stem):
    """'01 long term dependency'"""
    return stem.replace("_", " ")


def _worth(marks):
    """{exercise: its points}, in order."""
    return dict(sorted((one["exercise"], one["max_score"]) for one in marks))


def _by_student(marks):
    """[(student, their name and ID in the system or None, {exercise: result})], in order."""
    found = {}
    for one in sorted(marks, key=lambda one: one["student"]):
        who = one["known"]["id"] if one["known"] else one["student"]
        found.setdefault((bool(one["known"]), who), []).append(one)
    return [(theirs[0]["student"], theirs[0]["known"], {one["exercise"]: one for one in theirs})
            for theirs in found.values()]


FORMATS = {"canvas": (canvas, CANVAS_NAME), "moodle": (moodle, MOODLE_NAME)}

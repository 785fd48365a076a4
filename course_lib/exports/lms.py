"""`course export canvas|moodle CSV --grades DIR`: the points of a class as those systems import them.

A student is known by the name of the folder that was graded.  What Canvas and Moodle call the files
of a bulk download is understood, so that their own numbers come back to them.  A student chooses how
the name of a file ends: only what the system itself put in front of it is read as a number, and a
number that two students' notebooks claim is left out.
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
# Canvas names an upload NAME[_LATE]_USER_FILE_its-own-name, or anon_CODE_FILE_... where students are
# anonymous, and itself reads the first two numbers (canvas-lms, lib/content_zipper.rb).
CANVAS_NAME = re.compile(r"(?!(?:LATE_)?anon_)(?P<name>.+?)(?:_LATE)?_(?P<id>[0-9]+)_[0-9]+(?:[_-].*)?", re.S)
MOODLE = ["Identifier", "Full name", "Email address", "ID number"]
MOODLE_NAME = re.compile(r"(?P<name>.+?)_(?P<id>[0-9]+)_assignsubmission_file(?:_.*)?", re.S)


def write(out, target, only, grades):
    """Write the CSV.  only: [stem] for one exercise.  grades: a folder that `course grade` wrote."""
    found = read(Path(grades))
    told = [one for one in found if one["exercise"] and one["status"] in ("graded", "unreadable")]
    marks = [one for one in told if not only or one["exercise"] in only]
    if not marks:
        raise ExportError(f"{grades}: no graded notebook in it" + (f" of {only[0]}" if only else ""))
    layout, pattern = FORMATS[target]
    marks = [{**one, "known": pattern.fullmatch(one["student"])} for one in marks]
    disputed = _disputed(marks)
    kept = [one for one in marks if not one["known"] or one["known"]["id"] not in disputed]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows([cell(value) for value in row] for row in layout(kept))
    with new_file(out) as part:
        part.write_text(text.getvalue(), encoding="utf-8", newline="")
    return (f"{out}: {len(_by_student(kept))} students, {len(kept)} notebooks"
            + (f"; {len(found) - len(told)} that could not be graded left out" if told != found else "")
            + "".join(f"\n{target} ID {number} left out, for more than one notebook claims it: "
                      f"{', '.join(paths)}" for number, paths in disputed.items()))


def _disputed(marks):
    """{ID: paths} of every ID that two names claim, or two notebooks of one exercise."""
    claims = {}
    for one in marks:
        if one["known"]:
            claims.setdefault(one["known"]["id"], []).append(one)
    return {number: [one["path"] for one in mine] for number, mine in sorted(claims.items())
            if len({one["known"]["name"] for one in mine}) > 1
            or len({one["exercise"] for one in mine}) < len(mine)}


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
    for student, known, mine in _by_student(marks):
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
    for student, known, mine in _by_student(marks):
        who = [f"Participant {known['id']}", known["name"], "", ""] if known else [
            "", "", student if "@" in student else "", "" if "@" in student else student]
        for stem, worth in exercises.items():
            score, text = (mine[stem]["score"], comment(mine[stem])) if stem in mine else ("", "")
            who += [score, worth, "", text] if len(exercises) == 1 else [score, text]
        yield who


def comment(one):
    """What a student reads in Moodle about one notebook: HTML, a line for each item."""
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
    """[(student, what the system calls them or None, {exercise: result})], in order."""
    found = {}
    for one in sorted(marks, key=lambda one: one["student"]):
        who = one["known"]["id"] if one["known"] else one["student"]
        found.setdefault((bool(one["known"]), who), []).append(one)
    return [(mine[0]["student"], mine[0]["known"], {one["exercise"]: one for one in mine})
            for mine in found.values()]


FORMATS = {"canvas": (canvas, CANVAS_NAME), "moodle": (moodle, MOODLE_NAME)}

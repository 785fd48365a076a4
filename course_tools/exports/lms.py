"""`course export canvas|moodle CSV --grades DIR`: the points of a class, in the format those systems import.

Students are identified by the name of the folder that was graded.  The file names of bulk downloads from
Canvas and Moodle are understood, so that the systems get their own IDs back.  Students choose how the name
of a file ends, so only the part that the system put in front of it is read as an ID, and an ID claimed by
the notebooks of two students is left out.
"""

import csv
import functools
import html
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import fastjsonschema

from ..grading.reports.report import SCHEMA, cell
from ..grading.results import SubmissionScore, Summary
from . import ExportError, new_file

CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
# Canvas names an upload NAME[_LATE]_USER_FILE_its-own-name, or anon_CODE_FILE_... where students are
# anonymous, and itself reads the first two numbers (canvas-lms, lib/content_zipper.rb).
CANVAS_NAME = re.compile(r"(?!(?:LATE_)?anon_)(?P<name>.+?)(?:_LATE)?_(?P<id>[0-9]+)_[0-9]+(?:[_-].*)?", re.S)
MOODLE = ["Identifier", "Full name", "Email address", "ID number"]
MOODLE_NAME = re.compile(r"(?P<name>.+?)_(?P<id>[0-9]+)_assignsubmission_file(?:_.*)?", re.S)


@dataclass(frozen=True)
class Mark:
    """A submission that has points.  identity: the name and the ID by which the system knows the student."""

    submission: SubmissionScore
    stem: str
    identity: re.Match[str] | None


Row: TypeAlias = Sequence[str | int]


def write(out: Path, target: str, only: Sequence[str] | None, grades: str | Path) -> str:
    """Write the CSV.  only: [stem] for one exercise.  grades: a folder that `course grade` wrote."""
    submissions = read(Path(grades))
    layout, pattern = FORMATS[target]
    gradable = [Mark(one, one["exercise"], pattern.fullmatch(one["student"])) for one in submissions
                if one["exercise"] and one["status"] in ("graded", "unreadable")]
    marks = [mark for mark in gradable if not only or mark.stem in only]
    if not marks:
        raise ExportError(f"{grades}: contains no graded notebook" + (f" for {only[0]}" if only else ""))
    disputed = _disputed(marks)
    kept = [mark for mark in marks if not mark.identity or mark.identity["id"] not in disputed]
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerows([cell(value) for value in row] for row in layout(kept))
    with new_file(out) as part:
        part.write_text(text.getvalue(), encoding="utf-8", newline="")
    left_out = len(submissions) - len(gradable)
    return (f"{out}: {len(_by_student(kept))} students, {len(kept)} notebooks"
            + (f"; {left_out} left out, because they could not be graded" if left_out else "")
            + "".join(f"\n{target} ID {number} was left out, because more than one notebook claims it: "
                      f"{', '.join(paths)}" for number, paths in disputed.items()))


def _disputed(marks: Iterable[Mark]) -> dict[str, list[str]]:
    """{ID: paths} for every ID claimed by two names, or by two notebooks of one exercise."""
    claims: dict[str, list[tuple[str, Mark]]] = {}
    for mark in marks:
        if mark.identity:
            claims.setdefault(mark.identity["id"], []).append((mark.identity["name"], mark))
    return {number: [mark.submission["path"] for _, mark in theirs]
            for number, theirs in sorted(claims.items())
            if len({name for name, _ in theirs}) > 1
            or len({mark.stem for _, mark in theirs}) < len(theirs)}


def read(folder: Path) -> list[SubmissionScore]:
    """The submissions of results.json in a folder.  Raises ExportError if the file is missing or damaged."""
    path = folder / "results.json"
    try:
        summary: Summary = json.loads(path.read_text(encoding="utf-8"))
        _is_valid()(summary)
    except (FileNotFoundError, NotADirectoryError):
        raise ExportError(f"{folder}: contains no results.json. First run: course grade SUBMISSIONS "
                          f"--out {folder}") from None
    except (ValueError, RecursionError):  # of JSON, and of its schema
        raise ExportError(f"{path}: was not written by course grade. Grade again into a new folder") from None
    return summary["submissions"]


@functools.cache
def _is_valid() -> Callable[[object], object]:
    """Raises ValueError for what is not of the form of results.json."""
    return fastjsonschema.compile(json.loads(SCHEMA.read_text(encoding="utf-8")))


def canvas(marks: Sequence[Mark]) -> Iterator[Row]:
    """The rows for Canvas: header, points possible, a row for each student."""
    exercises = _worth(marks)
    yield [*CANVAS, *map(_title, exercises)]
    yield ["    Points Possible", "", "", "", "", *exercises.values()]
    for student, known, theirs in _by_student(marks):
        who = [known["name"], known["id"], "", ""] if known else [student, "", "", student]
        who[0] = who[0].replace("Points Possible", "Points-Possible")  # the second line's mark
        yield [*who, "", *(theirs[stem]["score"] if stem in theirs else "" for stem in exercises)]


def moodle(marks: Sequence[Mark]) -> Iterator[Row]:
    """The rows for Moodle.  One exercise: its grading worksheet; several: for the gradebook's import."""
    exercises = _worth(marks)
    if len(exercises) == 1:
        yield [*MOODLE, "Grade", "Maximum Grade", "Last modified (grade)", "Feedback comments"]
    else:
        yield MOODLE + [f"{_title(stem)}{end}" for stem in exercises for end in ("", " feedback comments")]
    for student, known, theirs in _by_student(marks):
        row: list[str | int] = [f"Participant {known['id']}", known["name"], "", ""] if known else [
            "", "", student if "@" in student else "", "" if "@" in student else student]
        for stem, max_points in exercises.items():
            score, text = (theirs[stem]["score"], comment(theirs[stem])) if stem in theirs else ("", "")
            row += [score, max_points, "", text] if len(exercises) == 1 else [score, text]
        yield row


def comment(one: SubmissionScore) -> str:
    """The feedback that a student reads in Moodle about one notebook: HTML, one line for each item."""
    lines = []
    for item in one["items"]:
        say = item.get("remark") if item["points"] else item["message"]
        lines.append(f"{'✓' if item['points'] else '✗'} {item['name']} {item['points']}/{item['max_points']}"
                     + (f": {say}" if say else ""))
    return "<br>".join(html.escape(line, quote=False).replace("\n", "<br>") for line in lines)


def _title(stem: str) -> str:
    """'01 long term dependency'"""
    return stem.replace("_", " ")


def _worth(marks: Iterable[Mark]) -> dict[str, int]:
    """{exercise: its points}, in order."""
    return dict(sorted((mark.stem, mark.submission["max_score"]) for mark in marks))


def _by_student(marks: Iterable[Mark]
                ) -> list[tuple[str, re.Match[str] | None, dict[str, SubmissionScore]]]:
    """[(student, their name and ID in the system or None, {exercise: submission})], in order."""
    students: dict[tuple[bool, str], list[Mark]] = {}
    for mark in sorted(marks, key=lambda mark: mark.submission["student"]):
        who = mark.identity["id"] if mark.identity else mark.submission["student"]
        students.setdefault((bool(mark.identity), who), []).append(mark)
    return [(theirs[0].submission["student"], theirs[0].identity,
             {mark.stem: mark.submission for mark in theirs})
            for theirs in students.values()]


Layout: TypeAlias = Callable[[Sequence[Mark]], Iterator[Row]]
FORMATS: dict[str, tuple[Layout, re.Pattern[str]]] = {
    "canvas": (canvas, CANVAS_NAME), "moodle": (moodle, MOODLE_NAME)}

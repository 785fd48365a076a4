"""`course export gradescope ZIP [KEY]`: an autograder for Gradescope that runs our grader.

The zip holds setup.sh, run_autograder and a release of the course.  There, run_autograder calls
`python -m course_tools.exports.gradescope SUBMISSION RESULTS STEM ...`.
"""

import json
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import bootstrap, files
from ..grading import GradingError
from ..grading.classroom import grade_class
from ..grading.merge import points
from ..grading.results import ItemScore, SubmissionScore
from . import new_file, release, rendered, stems

SCRIPTS = ("setup.sh", "run_autograder")
THEN = (1980, 1, 1, 0, 0, 0)  # the same course always gives the same zip
NOT_THERE = "no notebook of this exercise was handed in."


def write(out: Path, target: str, only: Sequence[str] | None, grades: str | Path | None) -> str:
    """Write the autograder's zip.  only: the exercises to grade, by default all."""
    only = only or stems()
    with tempfile.TemporaryDirectory(prefix="course-gradescope-") as folder, new_file(out) as part:
        release.fill(Path(folder))
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in SCRIPTS:
                text = rendered(name, stems=only, oldest=bootstrap.OLDEST, newest=bootstrap.NEWEST,
                                pythons=bootstrap.PYTHONS)
                _add(archive, name, text.encode(), 0o755)
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file():
                    _add(archive, f"course/{path.relative_to(folder).as_posix()}", path.read_bytes(), 0o644)
    max_points = sum(sum(points(stem).values()) for stem in only)
    return (f"{out}: grades {', '.join(only)}. In Gradescope, create a Programming Assignment with "
            f"{max_points} points")


def _add(archive: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, THEN)
    entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def results(graded: Sequence[SubmissionScore], only: Sequence[str]) -> dict[str, Any]:
    """Gradescope's results.json as a dict: a test for each item of the exercises in `only`.

    graded: the submissions of results.json.  Of several notebooks for one exercise, the first counts.
    """
    tests, notes = [], []
    for stem in only:
        notebooks = [one for one in graded if one["exercise"] == stem]
        items: list[ItemScore] = notebooks[0]["items"] if notebooks else [
            {"name": name, "points": 0, "max_points": max_points, "passed": False, "mistake": None,
             "message": NOT_THERE, "status": "missing", "remark": None}
            for name, max_points in points(stem).items()]
        tests += [_test(stem, item) for item in items]
        if len(notebooks) > 1:
            counted = Path(notebooks[0]["path"]).name
            notes.append(f"There are {len(notebooks)} notebooks for {stem}. This one counts: {counted}")
    notes += [f"{Path(one['path']).name}: {one.get('message', 'not part of this assignment')}"
              for one in graded
              if one["exercise"] not in only]
    return {"score": sum(test["score"] for test in tests), "tests": tests,
            "output": "\n".join(notes) or "Only the answer cells were graded, on new random inputs.",
            "output_format": "text", "test_output_format": "text",
            "visibility": "visible", "stdout_visibility": "hidden"}


def _test(stem: str, item: ItemScore) -> dict[str, Any]:
    return {"name": f"{stem.split('_')[0]} {item['name']}", "score": item["points"],
            "max_score": item["max_points"], "status": "passed" if item["passed"] else "failed",
            "output": item["message"], "visibility": "visible"}


def main(submission: str, target: str, *only: str) -> None:
    """Grade the notebooks in the folder `submission`, and write results.json to `target`."""
    with tempfile.TemporaryDirectory(prefix="course-gradescope-") as folder:
        try:
            graded = grade_class(submission, Path(folder, "grades"))[0]["submissions"]
        except GradingError as problem:  # no notebook in it, which every item reports
            print(problem, file=sys.stderr)
            graded = []
    files.write(target, json.dumps(results(graded, only), indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""`course export gradescope ZIP [KEY]`: an autograder for Gradescope, graded by our grader.

The zip holds setup.sh, run_autograder and a release of the course.  There, run_autograder calls
`python -m course_lib.exports.gradescope SUBMISSION RESULTS STEM ...`.
"""

import json
import sys
import tempfile
import zipfile
from pathlib import Path

from ..grading import GradingError
from ..grading.classroom import grade_class
from ..grading.gradebook import write as write_whole
from ..grading.merge import points
from . import new_file, release, stems, template

SCRIPTS = ("setup.sh", "run_autograder")
THEN = (1980, 1, 1, 0, 0, 0)  # the same course, the same zip
NOT_THERE = "no notebook of this exercise was handed in."


def write(out, target, only, grades):
    """Write the autograder's zip.  only: the exercises that are asked for, all without it."""
    only = only or stems()
    with tempfile.TemporaryDirectory(prefix="course-gradescope-") as folder, new_file(out) as part:
        release.fill(Path(folder))
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in SCRIPTS:
                _add(archive, name, template(f"{name}.j2").render(stems=only).encode(), 0o755)
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file():
                    _add(archive, f"course/{path.relative_to(folder).as_posix()}", path.read_bytes(), 0o644)
    worth = sum(sum(points(stem).values()) for stem in only)
    return f"{out}: grades {', '.join(only)}. In Gradescope: a Programming Assignment of {worth} points"


def _add(archive, name, content, mode):
    entry = zipfile.ZipInfo(name, THEN)
    entry.external_attr, entry.compress_type = mode << 16, zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)


def results(graded, only):
    """Gradescope's results.json as a dict: a test for each item of the exercises in `only`.

    graded: the submissions of results.json.  Of several notebooks for one exercise the first counts.
    """
    tests, notes = [], []
    for stem in only:
        mine = [one for one in graded if one["exercise"] == stem]
        items = mine[0]["items"] if mine else [
            {"name": name, "points": 0, "max_points": worth, "passed": False, "message": NOT_THERE}
            for name, worth in points(stem).items()]
        tests += [_test(stem, item) for item in items]
        if len(mine) > 1:
            notes.append(f"{len(mine)} notebooks of {stem}; this one counts: {Path(mine[0]['path']).name}")
    notes += [f"{Path(one['path']).name}: {one.get('message', 'not asked for')}" for one in graded
              if one["exercise"] not in only]
    return {"score": sum(test["score"] for test in tests), "tests": tests,
            "output": "\n".join(notes) or "Only the answer cells were graded, on inputs drawn anew.",
            "output_format": "text", "test_output_format": "text",
            "visibility": "visible", "stdout_visibility": "hidden"}


def _test(stem, item):
    return {"name": f"{stem.split('_')[0]} {item['name']}", "score": item["points"],
            "max_score": item["max_points"], "status": "passed" if item["passed"] else "failed",
            "output": item["message"], "visibility": "visible"}


def main(submission, target, *only):
    """Grade what lies in the folder `submission`, and write results.json to `target`."""
    with tempfile.TemporaryDirectory(prefix="course-gradescope-") as folder:
        try:
            graded = grade_class(submission, Path(folder, "grades"))[0]["submissions"]
        except GradingError as problem:  # no notebook in it: said so for each item
            print(problem, file=sys.stderr)
            graded = []
    write_whole(target, json.dumps(results(graded, only), indent=1))


if __name__ == "__main__":
    main(*sys.argv[1:])

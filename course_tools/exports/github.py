"""`course export github DIR`: a workflow that grades exercises/ on every push to a student's repository.

The repository is a release of the course.  The workflow's last step calls
`python -m course_tools.exports.github GRADES --threshold 60`.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ..grading.results import SubmissionScore
from . import TEMPLATES, ExportError, new_file
from .lms import read

MARKS = {True: "✅", False: "❌"}


def write(out: Path, target: str, only: Sequence[str] | None, grades: str | Path | None) -> str:
    """Write DIR/.github/workflows/grade.yml."""
    path = out / ".github" / "workflows" / "grade.yml"
    with new_file(path) as part:
        part.write_bytes((TEMPLATES / "grade.yml").read_bytes())
    return f"{path}: commit this file to the students' repository, which is a release (course release DIR)"


def summary(submissions: Sequence[SubmissionScore], threshold: float) -> tuple[str, bool]:
    """(the job summary in Markdown, whether the threshold is reached), for the exercises started."""
    begun = [one for one in submissions if any(item["status"] != "missing" for item in one["items"])]
    score, possible = sum(one["score"] for one in begun), sum(one["max_score"] for one in begun)
    percent = 100 * score / possible if possible else 0.0
    reached = percent >= threshold
    lines = [f"# {MARKS[reached]} {score} of {possible} points ({percent:.0f} %)", "",
             f"{len(begun)} of {len(submissions)} exercises started. "
             f"Threshold: {threshold:g} % of the points."]
    for one in begun:
        title = _plain(one["exercise"] or one["path"])
        lines += ["", f"## {title}: {one['score']} of {one['max_score']}", "",
                  "| | item | points | |", "|---|---|---|---|"]
        lines += [f"| {MARKS[item['passed']]} | `{item['name']}` | {item['points']} of "
                  f"{item['max_points']} | {_plain(item['message'])} |" for item in one["items"]]
    return "\n".join(lines) + "\n", reached


def _plain(text: str) -> str:
    """Text for a Markdown table, shown as it is: no markup, no HTML, one line."""
    text = " ".join(text.split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*\[\]|~@#$!])", lambda mark: f"&#{ord(mark[1])};", text)


def main(argv: Sequence[str] | None = None) -> int:
    """Write the job summary.  The exit status is 1 below the threshold, 2 for wrong use."""
    parser = argparse.ArgumentParser(prog="python -m course_tools.exports.github")
    parser.add_argument("grades", type=Path)
    parser.add_argument("--threshold", type=float, default=60.0)
    options = parser.parse_args(argv)
    try:
        if not 0 <= options.threshold <= 100:
            raise ExportError(f"the threshold is {options.threshold:g} %, but it must be between 0 and 100")
        text, reached = summary(read(options.grades), options.threshold)
    except ExportError as problem:
        print(problem, file=sys.stderr)
        return 2
    print(text)
    if os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(os.environ["GITHUB_STEP_SUMMARY"], "a", encoding="utf-8") as file:
            file.write(text)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())

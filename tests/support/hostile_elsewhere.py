"""The hostile, broken and odd notebooks with this grader and with nbgrader: the table in docs/teaching.md.

    python tests/support/hostile_elsewhere.py [--only WORD] > table.md    takes 15 minutes, as root

nbgrader runs notebooks as whoever calls it, so it gets its own processes, file names of its own to
spoil (HOME, the course folder) and limits on memory; still, run this where nothing of value is.
An innocent notebook stands after every fifth.
"""

import argparse
import collections
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

from hostile_notebooks import as_bytes, cases
from odd_notebooks import ALL, NONE, RIGHT, SOLUTION, STEM, notebook

from course_tools import exercise
from course_tools.grading import classroom

OWN_PROCESSES = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child",
                 "sh", "-c", '"$@"; exit $?', "sh"]
NBGRADER = [sys.executable, "-m", "nbgrader"]
EVERY = 5


def handed_in(only):
    """[(student, deserved items, make)], the innocent among them."""
    found = []
    for number, (name, case) in enumerate(cases().items()):
        if only in name:
            found.append((f"{number:03} {name}", case.earns, case.make))
        if only in name and number % EVERY == EVERY - 1:
            found.append((f"{number:03} innocent", ALL, lambda base: notebook(base, RIGHT)))
    return found


def fill(folder, found, base, inner=""):
    for student, _, make in found:
        path = folder / student / inner / f"{STEM}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(as_bytes(make(base)))


def ours(folder, found):
    """{student: items that earned points}"""
    fill(folder / "in", found, exercise.derive(SOLUTION))
    results, _ = classroom.grade_class(folder / "in", folder / "out", seed=5, timeout=5, workers=2)
    return {one["student"]: {item["name"] for item in one["items"] if item["points"]}
            for one in results["submissions"]}, set()


def nbgrader(folder, found):
    """({student: items that earned points}, the students whose notebook ended the grader)"""
    course = folder / "course"
    subprocess.run([sys.executable, "-m", "course_tools.cli", "export", "nbgrader", course], check=True,
                   stdout=sys.stderr)
    with open(course / "nbgrader_config.py", "a") as config:
        config.write("c.Execute.timeout = 15\n")
    run(course, "generate_assignment", STEM)
    fill(course / "submitted", found, exercise.read(course / "release" / STEM / f"{STEM}.ipynb"), STEM)
    ended = set()
    while True:  # a grader that was ended goes on without the notebook that ended it
        status = run(course, "autograde", STEM)
        there, failed = names(course / "autograded"), names(course / "failed")
        left = sorted(names(course / "submitted") - there - failed)
        if not left:
            break
        killed = status < 0 or status > 128
        latest = max(there, key=lambda name: (course / "autograded" / name).stat().st_mtime, default=left[0])
        ended.add(latest if killed else left[0])
        shutil.rmtree(course / "submitted" / (latest if killed else left[0]))
    return points(course / "gradebook.db"), ended


def names(folder):
    return {path.name for path in folder.glob("*")}


def run(course, *verb):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
    home = course.parent / "home"
    home.mkdir(exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([*OWN_PROCESSES, *NBGRADER, *verb], cwd=course, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                          env={**os.environ, "HOME": str(home), "PATH": path}, preexec_fn=limit)
    for failed in re.findall(r"error processing assignment: .*/submitted/([^/]+)/", done.stderr):
        (course / "failed" / failed).mkdir(parents=True, exist_ok=True)
    print(done.stderr[-3000:], file=sys.stderr, flush=True)
    return done.returncode


def points(book):
    """{student: items that earned points} in nbgrader's data base"""
    found = collections.defaultdict(set)
    query = """select s.student_id, b.name, coalesce(g.manual_score, g.auto_score, 0) from grade g
               join submitted_notebook n on g.notebook_id = n.id
               join submitted_assignment s on n.assignment_id = s.id join base_cell b on g.cell_id = b.id"""
    with sqlite3.connect(book) as base:
        for student, name, score in base.execute(query):
            found[student] |= {name.removeprefix("check_")} if score and score > 0 else set()
    return found


def table(found, told):
    """The table, and who got what they should not have, by group of cases."""
    groups = {student: student.split(" ", 1)[1].split(",")[0] for student, _, _ in found}
    yield "| notebooks | | " + " | ".join(told) + " |\n|---|---|" + "---|" * len(told)
    measures = {"points beyond what is deserved": lambda earned, due: earned - due,
                "points lost that are deserved": lambda earned, due: due - earned}
    for group in dict.fromkeys(groups.values()):
        mine = [(student, due) for student, due, _ in found if groups[student] == group]
        for measure, of in measures.items():
            if measure.endswith("beyond what is deserved") and group in ("odd", "innocent"):
                continue
            if any(due - NONE for _, due in mine) or "beyond" in measure:
                hit = [[student for student, due in mine if of(earned.get(student, set()), due)]
                       for earned, _ in told.values()]
                yield f"| {len(mine)} {group} | {measure} | {' | '.join(str(len(one)) for one in hit)} |"
                for name, one in zip(told, hit, strict=True):
                    print(f"{name}, {group}, {measure}: {'; '.join(one)}", file=sys.stderr)
    ended = " | ".join(str(len(one)) for _, one in told.values())
    yield f"| | notebooks that ended the grader | {ended} |"


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--only", default="", help="cases whose name holds this word")
    found = handed_in(asked.parse_args().only)
    with tempfile.TemporaryDirectory(prefix="course-hostile-", ignore_cleanup_errors=True) as folder:
        told = {}
        for name, grade in {"this grader": ours, "nbgrader": nbgrader}.items():
            place = Path(folder, name.split()[0])
            place.mkdir()
            told[name] = grade(place, found)
        print("\n".join(table(found, told)))
        for name, (_, ended) in told.items():
            print(f"{name}, ended by: {'; '.join(sorted(ended))}", file=sys.stderr)


if __name__ == "__main__":
    main()

"""`course release DIR`: what students get, the course without its solutions, with a README of its own.

Everything else works there: the lessons, the exercises, `course status, check, hint, reset, update`, and
grading too.  The checks hold the right answers by design, and course_lib is in the release.
"""

import re
import shutil

from .. import exercise
from ..bootstrap import PYTHONS
from . import TEMPLATES, ExportError, new_folder, stems

FILES = ("LICENSE", "LICENSE-CONTENT", "Makefile", "conftest.py", "constraints.txt", "environment.yml",
         "pyproject.toml", ".gitattributes", ".gitignore")
FOLDERS = ("course_lib", "docs")
TESTS = {"release_conftest.py": "conftest.py", "release_tests.py": "test_release.py"}
TRACES = shutil.ignore_patterns("__pycache__", ".*", "*.pyc", "*~", "teaching.md")
AUTHORING = re.compile(r"^(notebooks|diagrams|exercises|grade|bench|site|claims):.*\n(\t.*\n)*\n?",
                       re.MULTILINE)  # verbs of the Makefile
LESSONS = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)  # the table in README.md
LENGTH = "line-length = 110\n"  # of ruff; what a student writes there is nobody's to lint
UNLINTED = 'extend-exclude = ["exercises", "notebooks", ".pristine", ".course", "backups"]\n'


def release(target):
    """Write the release into the new or empty folder `target`.  Returns the line to tell the teacher."""
    with new_folder(target) as folder:
        fill(folder)
    return (f"{target}: {len(stems())} exercises, no solutions. Try it as a student: "
            f"make -C {target} lab")


def fill(folder):
    """Write a release into an empty folder.  Raises ExportError if this is no whole copy of the course."""
    home = exercise.ROOT
    needed = ("README.md", *FILES, *FOLDERS, "notebooks")
    lost = [name for name in needed if name[0] != "." and not (home / name).exists()]
    if lost:
        raise ExportError(f"{home}: no whole copy of the course, it lacks {', '.join(lost)}")
    for name in FILES:
        if (home / name).exists():
            shutil.copy(home / name, folder / name)
    for name in FOLDERS:
        shutil.copytree(home / name, folder / name, ignore=TRACES)
    _readme(home, folder)
    _lessons(home, folder)
    _exercises(folder)
    _tests(folder)


def _readme(home, folder):
    """A student's README, with README.md's table of the lessons; a Makefile without the authors' verbs."""
    lessons = next(table for table in LESSONS.findall((home / "README.md").read_text(encoding="utf-8"))
                   if "notebooks/" in table)
    page = (TEMPLATES / "release_README.md").read_text(encoding="utf-8")
    page = page.replace("@LESSONS@", lessons.strip()).replace("@PYTHONS@", PYTHONS)
    (folder / "README.md").write_text(page, encoding="utf-8", newline="\n")
    verbs = AUTHORING.sub("", (home / "Makefile").read_text(encoding="utf-8"))
    (folder / "Makefile").write_text(verbs, encoding="utf-8", newline="\n")


def _lessons(home, folder):
    """The lessons as they are stored: the working copy of whoever releases may hold other files."""
    (folder / "notebooks").mkdir()
    if (home / "notebooks" / "images").exists():
        shutil.copytree(home / "notebooks" / "images", folder / "notebooks" / "images", ignore=TRACES)
    for path in sorted((home / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        shutil.copy(path, folder / "notebooks")


def _exercises(folder):
    """Every exercise twice: to work in, and as it was handed out, for `course reset` and the grader."""
    for name in ("exercises", exercise.PRISTINE):
        (folder / name).mkdir()
        for stem in stems():
            text = exercise.text(exercise.pristine(stem))
            (folder / name / f"{stem}.ipynb").write_text(text, encoding="utf-8", newline="\n")


def _tests(folder):
    """The tests that make sense there, and a ruff that leaves a student's exercises alone."""
    (folder / "tests").mkdir()
    for source, name in TESTS.items():
        shutil.copy(TEMPLATES / source, folder / "tests" / name)
    project = folder / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    if UNLINTED not in text:
        project.write_text(text.replace(LENGTH, LENGTH + UNLINTED), encoding="utf-8", newline="\n")

"""`course release DIR`: the folder for students, which is the course without solutions, with its own README.

Everything else works there: the lessons, the exercises, `course status, check, hint, reset, update`, and
even grading.  The checks contain the right answers by design, and both packages are part of the release.
"""

import re
import shutil
from pathlib import Path

from .. import exercise
from ..bootstrap import PYTHONS
from . import TEMPLATES, ExportError, new_folder, stems

FILES = ("LICENSE", "LICENSE-CONTENT", "Makefile", "lab.cmd", "conftest.py", "constraints.txt",
         "environment.yml", "pyproject.toml", ".gitattributes", ".gitignore")
FOLDERS = ("course_lib", "course_tools", "docs")
TESTS = {"release_conftest.py": "conftest.py", "release_tests.py": "test_release.py"}
LEFT_OUT = shutil.ignore_patterns("__pycache__", ".*", "*.pyc", "*~", "teaching.md", "syllabus.md")
AUTHORING = re.compile(r"^(notebooks|diagrams|exercises|grade|bench|site|findings|test-all):.*\n(\t.*\n)*\n?",
                       re.MULTILINE)  # verbs of the Makefile
LESSONS = re.compile(r"(?:^\|.*\n)+", re.MULTILINE)  # the table in README.md
LENGTH = "line-length = 110\n"  # of ruff; what students write should not be linted
UNLINTED = 'extend-exclude = ["exercises", "notebooks", ".pristine", ".course", "backups"]\n'


def release(target: str | Path) -> str:
    """Write the release into the new or empty folder `target`.  Returns the line to print."""
    with new_folder(target) as folder:
        fill(folder)
    return (f"{target}: {len(stems())} exercises, no solutions. Try it as a student: "
            f"make -C {target} lab")


def fill(folder: Path) -> None:
    """Write a release into an empty folder.  Raises ExportError if this copy of the course is incomplete."""
    home = exercise.ROOT
    needed = ("README.md", *FILES, *FOLDERS, "notebooks")
    lost = [name for name in needed if name[0] != "." and not (home / name).exists()]
    if lost:
        raise ExportError(f"{home}: this copy of the course is incomplete; it lacks {', '.join(lost)}")
    for name in FILES:
        if (home / name).exists():
            shutil.copy(home / name, folder / name)
    for name in FOLDERS:
        shutil.copytree(home / name, folder / name, ignore=LEFT_OUT)
    _readme(home, folder)
    _lessons(home, folder)
    _exercises(folder)
    _tests(folder)


def _readme(home: Path, folder: Path) -> None:
    """A README for students, with the lesson table from README.md; a Makefile without authors' commands."""
    lessons = next(table for table in LESSONS.findall((home / "README.md").read_text(encoding="utf-8"))
                   if "notebooks/" in table)
    page = (TEMPLATES / "release_README.md").read_text(encoding="utf-8")
    page = page.replace("@LESSONS@", lessons.strip()).replace("@PYTHONS@", PYTHONS)
    (folder / "README.md").write_text(page, encoding="utf-8", newline="\n")
    verbs = AUTHORING.sub("", (home / "Makefile").read_text(encoding="utf-8"))
    (folder / "Makefile").write_text(verbs, encoding="utf-8", newline="\n")


def _lessons(home: Path, folder: Path) -> None:
    """The lessons as they are stored; the teacher's working copy may contain other files."""
    (folder / "notebooks").mkdir()
    for name in ("images", "studies", "weights"):
        if (home / "notebooks" / name).exists():
            shutil.copytree(home / "notebooks" / name, folder / "notebooks" / name, ignore=LEFT_OUT)
    for pattern in ("[0-9][0-9]_*.ipynb", "capstone.html"):
        for path in sorted((home / "notebooks").glob(pattern)):
            shutil.copy(path, folder / "notebooks")


def _exercises(folder: Path) -> None:
    """Every exercise twice: one copy to work in, and the original for `course reset` and the grader."""
    for name in ("exercises", exercise.PRISTINE):
        (folder / name).mkdir()
        for stem in stems():
            text = exercise.text(exercise.pristine(stem))
            (folder / name / f"{stem}.ipynb").write_text(text, encoding="utf-8", newline="\n")


def _tests(folder: Path) -> None:
    """The tests that make sense there, and settings of ruff that leave students' exercises alone."""
    (folder / "tests").mkdir()
    for source, name in TESTS.items():
        shutil.copy(TEMPLATES / source, folder / "tests" / name)
    project = folder / "pyproject.toml"
    text = project.read_text(encoding="utf-8")
    if UNLINTED not in text:
        project.write_text(text.replace(LENGTH, LENGTH + UNLINTED), encoding="utf-8", newline="\n")

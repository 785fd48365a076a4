"""The course for others: what students get, and what other systems read.

release    what students get            nbgrader   a course for nbgrader
gradescope an autograder for Gradescope  github     a workflow for a student's repository
lms        CSV of the grades for Canvas and Moodle
"""

import contextlib
import importlib
import os
import shutil
from pathlib import Path

import jinja2

from .. import exercise

TEMPLATES = Path(__file__).parent / "templates"
PART = ".course-part"  # what is being written; a run that was killed leaves it behind
TARGETS = {"nbgrader": "nbgrader", "gradescope": "gradescope", "github": "github",
           "canvas": "lms", "moodle": "lms"}  # {target: its module here}


class ExportError(ValueError):
    """What was asked for can't be written, and why, in one line."""


def export(target, out, key=None, grades=None):
    """Write the course for `target` to `out`.  Returns the line to tell the teacher.  Raises ExportError.

    key: the one exercise that is meant, where a target may be for one.  grades: the folder of results.
    """
    if target not in TARGETS:
        raise ExportError(f"can't export to {target!r}; there are: {', '.join(TARGETS)}")
    module, takes = importlib.import_module(f".{TARGETS[target]}", __name__), TARGETS[target] == "lms"
    if key and not takes and target != "gradescope":
        raise ExportError(f"{target} takes all exercises: leave {key!r} out")
    if takes != (grades is not None):
        raise ExportError(f"{target} needs the results: --grades DIR" if takes else
                          f"--grades is for canvas and moodle, not for {target}")
    stems = [resolve(key)] if key else None
    return module.write(Path(out), target, stems, grades)


def stems():
    """The exercises that this copy of the course holds, in order.  Raises ExportError if there is none."""
    found = {path.stem for folder in ("solutions", exercise.PRISTINE)
             for path in (exercise.ROOT / folder).glob("[0-9][0-9]_*.ipynb")}
    if not found:
        raise ExportError(f"{exercise.ROOT}: neither solutions/ nor {exercise.PRISTINE}/ in it, "
                          "so no copy of the course that exercises can be taken from")
    return sorted(found)


def resolve(key):
    """The stem of one of `stems` that '01', '1' or a whole name means.  Raises ValueError."""
    from ..checks import resolve
    stem, known = resolve(key), stems()
    if stem not in known:
        raise ExportError(f"this copy of the course lacks the exercise {stem}; it has: {', '.join(known)}")
    return stem


def template(name):
    """A template of this package.  It makes scripts and settings, no pages: nothing is escaped."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), keep_trailing_newline=True,
                                     undefined=jinja2.StrictUndefined, trim_blocks=True, autoescape=False)
    return environment.get_template(name)


@contextlib.contextmanager
def new_folder(target):
    """An empty folder to fill; what it holds at the end becomes the content of `target`, all or nothing.

    Raises ExportError if `target` is no empty folder.
    """
    target, made = Path(target), not Path(target).exists()
    if target.exists() and not target.is_dir():
        raise ExportError(f"{target}: a file, not a folder")
    if not made and {path.name for path in target.iterdir()} - {PART}:
        raise ExportError(f"{target}: not empty; give a new or an empty folder")
    part = target / PART
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        for path in sorted(part.iterdir()):
            path.rename(target / path.name)
        part.rmdir()
    except BaseException:
        shutil.rmtree(target if made else part, ignore_errors=True)
        raise


@contextlib.contextmanager
def new_file(target):
    """A path to write to; the file becomes `target`, whole or not at all.  Raises ExportError."""
    target = Path(target)
    if target.exists() or target.is_symlink():
        raise ExportError(f"{target}: exists already; remove it, or give another name")
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{PART}.{os.getpid()}")
    try:
        yield part
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise

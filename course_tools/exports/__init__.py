"""Export the course: the release for students, and formats that other systems read.

release.py makes the folder for students.  nbgrader.py, gradescope.py and github.py export the exercises to
other graders, lms.py exports the grades to Canvas and Moodle; templates/ holds their files.  Begin with
`export` below.
"""

import contextlib
import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from .. import exercise, files, templates

TEMPLATES = Path(__file__).parent / "templates"
PART = ".course-part"  # what is being written; a run that was killed leaves it behind
TARGETS = {"nbgrader": "nbgrader", "gradescope": "gradescope", "github": "github",
           "canvas": "lms", "moodle": "lms"}  # {target: its module here}


class ExportError(ValueError):
    """The export cannot be written; the message says why, in one line."""


def export(target: str, out: str | Path, key: str | None = None, grades: str | Path | None = None) -> str:
    """Write the course for `target` to `out`.  Returns the line to print.  Raises ExportError.

    key: export only this exercise, for targets that allow it.  grades: the folder of results.
    """
    if target not in TARGETS:
        raise ExportError(f"cannot export to {target!r}. Choose one of: {', '.join(TARGETS)}")
    module, takes = importlib.import_module(f".{TARGETS[target]}", __name__), TARGETS[target] == "lms"
    if key and not takes and target != "gradescope":
        raise ExportError(f"{target} always gets all exercises. Leave {key!r} out")
    if takes != (grades is not None):
        raise ExportError(f"{target} needs the results. Add --grades DIR" if takes else
                          f"--grades applies to canvas and moodle, not to {target}")
    stems = [resolve(key)] if key else None
    line: str = module.write(Path(out), target, stems, grades)
    return line


def stems() -> list[str]:
    """The exercises in this copy of the course, in order.  Raises ExportError if there are none."""
    there = {path.stem for folder in ("solutions", exercise.PRISTINE)
             for path in (exercise.ROOT / folder).glob("[0-9][0-9]_*.ipynb")}
    if not there:
        raise ExportError(f"{exercise.ROOT}: contains neither solutions/ nor {exercise.PRISTINE}/, so no "
                          "exercises can be exported from this copy of the course")
    return sorted(there)


def resolve(key: str) -> str:
    """The stem among `stems` that '01', '1' or a full name stands for.  Raises ValueError."""
    from ..items import registry
    stem, known = str(registry.resolve(key)), stems()
    if stem not in known:
        raise ExportError(f"this copy of the course does not have the exercise {stem}. It has: "
                          f"{', '.join(known)}")
    return stem


def rendered(name: str, **values: object) -> str:
    """The text of a script or of settings, from the template `name`.j2."""
    made = templates.environment(TEMPLATES, escape=False).get_template(f"{name}.j2")
    return made.render(values) + "\n"


@contextlib.contextmanager
def new_folder(target: str | Path) -> Iterator[Path]:
    """An empty folder to fill; in the end its content becomes the content of `target`, all or nothing.

    Raises ExportError if `target` is not an empty folder.
    """
    target, made = Path(target), not Path(target).exists()
    if target.exists() and not target.is_dir():
        raise ExportError(f"{target}: this is a file, not a folder")
    if not made and {path.name for path in target.iterdir()} - {PART}:
        raise ExportError(f"{target}: this folder is not empty. Choose a new or an empty folder")
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
def new_file(target: str | Path) -> Iterator[Path]:
    """A path to write to; the file becomes `target`, completely or not at all.  Raises ExportError."""
    target = Path(target)
    if target.exists() or target.is_symlink():
        raise ExportError(f"{target}: already exists. Remove it, or choose another name")
    with files.replacing(target) as part:
        yield part

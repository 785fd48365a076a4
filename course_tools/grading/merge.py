"""The notebook that is graded: the original exercise, with the answers of a submission in its answer cells.

Nothing else from a submission is ever run, so edited, moved, duplicated or deleted cells change nothing.
"""

import copy
import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from .. import exercise

CHECK = "check_"  # the grade_id of an item's check cell is this and its name


@dataclass
class Merged:
    """notebook: the cells to run, in order.  given: {name: source} where an answer was handed in.
    notes: {name: what was unusual about its cell}.  points: {name: points} of every item.
    """

    notebook: dict
    given: dict
    notes: dict
    points: dict

    @property
    def untouched(self):
        """True if no answer was started, so that there is nothing to run."""
        return not self.given

    def digest(self):
        """A hash of all that determines the verdicts, except the seed: answers, cells, the course's code."""
        text = json.dumps([[cell.source for cell in self.notebook.cells], self.notes, code_digest()])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def merge(path, stem):
    """The Merged notebook of the submission at `path`.  Raises NotebookError if either can't be read."""
    submission, pristine = exercise.read(path, whole=False), _handed_out(stem)
    stubs = {exercise.grade_id(cell): cell.source for cell in pristine.cells if exercise.grade_id(cell)}
    answers, notes = exercise.answers(submission, stubs)
    given = {name: source for name, source in answers.items()
             if source.strip() and source.strip() != stubs[name].strip()}
    merged = copy.copy(pristine)
    merged.cells = [copy.deepcopy(cell) for cell in pristine.cells
                    if cell.cell_type == "code" and "try-it" not in cell.metadata.get("tags", [])]
    for cell in merged.cells:
        cell.source = given.get(exercise.grade_id(cell), cell.source)
    return Merged(merged, given, notes, _points(pristine))


def points(stem):
    """{name: points} of the items of an exercise; empty if this copy of the course lacks it."""
    try:
        return _points(_handed_out(stem))
    except exercise.NotebookError:
        return {}


def _handed_out(stem):
    """The original exercise, to be read and not changed.  Raises NotebookError."""
    stamps = []
    for folder in ("solutions", exercise.PRISTINE):
        path = exercise.ROOT / folder / f"{stem}.ipynb"
        stamps.append(path.stat().st_mtime_ns if path.exists() else None)
    return _pristine(exercise.ROOT, stem, tuple(stamps))


@functools.lru_cache(maxsize=16)
def _pristine(root, stem, stamps):
    """The original exercise, read once for a class; root and stamps say when it has changed."""
    return exercise.pristine(stem)


def _points(pristine):
    return {item_of(cell): cell.metadata.nbgrader.points for cell in pristine.cells
            if exercise.grade_id(cell, "grade")}


def item_of(cell):
    """The item that an answer cell or a check cell belongs to, None for any other cell."""
    return exercise.grade_id(cell) or (exercise.grade_id(cell, "grade") or "").removeprefix(CHECK) or None


@functools.cache
def code_digest():
    """A hash of the source of both packages: a different check or reference may give a different verdict."""
    packages = ("course_lib", "course_tools")
    files = sorted(path for name in packages for path in (Path(__file__).parents[2] / name).rglob("*.py"))
    return hashlib.sha256(b"".join(str(path).encode() + path.read_bytes() for path in files)).hexdigest()

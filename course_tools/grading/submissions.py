"""Find what is to be graded: one notebook, a folder of notebooks, or SUBMISSIONS/STUDENT/NN_name.ipynb."""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from .. import exercise
from ..items import registry
from . import GradingError, pool
from .merge import points

DEEPEST = 30  # folders in folders
TO_READ = 20.0  # seconds for a worker to read a notebook


@dataclass(frozen=True)
class Submission:
    """One notebook of one student.  exercise: its stem, or None with the `problem` in one line."""

    student: str
    exercise: str | None
    path: Path
    problem: str | None = None

    @property
    def key(self) -> str:
        """'01', or the file's name if it is not an exercise: identifies it among those of one student."""
        return self.exercise.split("_")[0] if self.exercise else printable(self.path.stem)


def find(source: str | Path) -> list[Submission]:
    """Every submission under `source`, by student and exercise.  Raises GradingError if there is none.

    Links, hidden files and checkpoints are left out.  A file that is not an exercise is a submission too,
    with a problem, so that no file goes unnoticed.
    """
    source = Path(source)
    if not source.exists():
        raise GradingError(f"{printable(source)}: no such file or folder")
    paths, folder = (list(_notebooks(source)), source) if source.is_dir() else ([source], source.parent)
    unnamed = [path for path in paths if path.is_file() and not path.is_symlink() and not _named(path)]
    renamed = {path: stem for path, stem in pool.each(_by_content, unnamed, TO_READ)
               if not isinstance(stem, pool.Lost)}
    submissions = [_submission(path, folder, _named(path) or renamed.get(path)) for path in paths]
    if not submissions:
        raise GradingError(f"{printable(source)}: no notebooks found. "
                           "Expected FOLDER/STUDENT/01_name.ipynb, or a folder of notebooks")
    return _apart(sorted(submissions, key=lambda one: (one.student, one.exercise or "~",
                                                       one.path.stem != one.exercise, str(one.path))))


def printable(name: str | Path) -> str:
    """A file name as one line of text; what is not UTF-8, or not printable, is replaced."""
    text = os.fsencode(name).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _notebooks(folder: Path) -> Iterator[Path]:
    """The notebooks in a folder and below, and folders named like a notebook that contain none."""
    for place, inner, files in _walk(folder):
        empty = [name for name in filter(_is_notebook, inner)
                 if not any(_is_notebook(other) for *_, there in _walk(Path(place, name)) for other in there)]
        yield from (Path(place, name) for name in sorted(filter(_is_notebook, files + empty)))


def _walk(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """os.walk without hidden folders, and without folders nested deeper than DEEPEST."""
    for place, inner, files in os.walk(folder):
        deep = len(Path(place).relative_to(folder).parts) >= DEEPEST
        inner[:] = [] if deep else sorted(name for name in inner if not name.startswith("."))
        yield place, inner, files


def _is_notebook(name: str) -> bool:
    return name.lower().endswith(".ipynb") and not name.startswith(".")


def _named(path: Path) -> str | None:
    """The exercise that the file is named after, or None."""
    return next((stem for stem in registry.stems() if stem in path.name), None)


def _submission(path: Path, source: Path, stem: str | None) -> Submission:
    """In SOURCE/STUDENT/... the folder is the student; in a flat folder what the file name says beside
    the exercise ('ann_01_name.ipynb'), or the folder itself."""
    inner = path.relative_to(source).parts[:-1]
    named = _named(path)
    rest = path.stem.replace(named, "", 1).strip(" _-.") if named else path.stem
    student = printable(inner[0] if inner else rest or source.absolute().name)
    if path.is_symlink():
        return Submission(student, stem, path, "this is a link, not a notebook. Hand in the file itself")
    if path.is_dir():
        return Submission(student, stem, path, "this is a folder, not a notebook. Hand in the file itself")
    if stem is None:
        return Submission(student, None, path, f"{printable(path.name)} is not an exercise of the course. "
                                               f"Name it after one of these: {', '.join(registry.stems())}")
    return Submission(student, stem, path)


def _by_content(path: Path) -> str | None:
    """The exercise whose answer cells a renamed notebook has, or None."""
    try:
        marks = {exercise.grade_id(cell) for cell in exercise.read(path, whole=False).cells}
    except exercise.NotebookError:
        return None
    shared = {stem: len(marks & points(stem).keys()) for stem in registry.stems()}
    best = max(shared, key=lambda stem: shared[stem], default=None)
    return best if best and shared[best] else None


def _apart(submissions: Iterable[Submission]) -> list[Submission]:
    """The same submissions, such that no two have the same student AND the same exercise.

    Ann's second notebook belongs to 'ann (2)', unless a student really has that name.
    """
    submissions, seen, result = list(submissions), set[tuple[str, str]](), []
    real = {one.student.lower() for one in submissions}
    for one in submissions:
        student, number = one.student, 1
        while (student.lower(), one.key.lower()) in seen or number > 1 and student.lower() in real:
            number += 1
            student = f"{one.student} ({number})"
        seen.add((student.lower(), one.key.lower()))
        result.append(Submission(student, one.exercise, one.path, one.problem))
    return result


def safe(name: str) -> str:
    """A name as one component of a path, unique for each name; characters that could do harm become %XX."""
    plain = "".join(char if char.isalnum() or char in " _-@+(),." else
                    "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace")) for char in name)
    plain = re.sub(r"^[. ]|[. ]$", lambda match: f"%{ord(match[0]):02X}", plain) or "%"
    if re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", plain):
        plain = f"%{ord(plain[0]):02X}{plain[1:]}"
    if len(plain.encode()) > 120:
        plain = f"{plain[:30]}%{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:16]}"
    return plain

"""The folder that stores the results: one file for each submission, written completely or not at all."""

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ... import files
from .. import GradingError
from ..results import Result
from ..submissions import Submission, printable, safe

MARKER = ".course-grades.json"  # says that the folder is ours, and how far the last run got


class Gradebook:
    """The results in `folder`, which is created if necessary.

    seed, complete: of the last run into it.  Raises GradingError if the folder cannot be written to, or
    contains other files.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            foreign = any(self.folder.iterdir()) and not (self.folder / MARKER).exists()
        except OSError as problem:
            raise GradingError(f"{printable(folder)}: cannot be written to ({problem.strerror})") from None
        if foreign:
            raise GradingError(f"{printable(folder)}: contains other files. Choose a new or an empty folder")
        state = _read(self.folder / MARKER)
        seed, complete = state.get("seed"), state.get("complete") is True
        self.seed: int | None = seed if type(seed) is int else None
        self.complete = complete if self.seed is not None else True
        self._mark()
        for half in self.folder.rglob(f".*{files.PASSING}"):  # of a run that was killed
            with contextlib.suppress(OSError):
                half.unlink()

    def begin(self, seed: int) -> None:
        """Record that a run with this seed has started: if it is killed, the next run continues it."""
        self.seed, self.complete = seed, False
        self._mark()

    def finish(self) -> None:
        """Record that all results are there."""
        self.complete = True
        self._mark()

    def piece(self, submission: Submission) -> Result | None:
        """The stored result of a submission, or None if there is no complete one."""
        kept = _read(self.path(submission, ".json"))
        result = kept.get("result")
        if not isinstance(result, dict) or kept.get("sha256") != _sha256(result):
            return None
        if (result["student"], result["exercise"]) != (submission.student, submission.exercise):
            return None
        return cast(Result, {**result, "path": printable(submission.path)})

    def save(self, submission: Submission, result: Result) -> None:
        """Store the result of a submission."""
        text = json.dumps({"sha256": _sha256(result), "result": result}, indent=1)
        self.write(self.path(submission, ".json"), text)

    def path(self, submission: Submission, suffix: str) -> Path:
        """The path of a file about a submission: FOLDER/submissions/STUDENT/NN.suffix"""
        return self.folder / "submissions" / safe(submission.student) / f"{safe(submission.key)}{suffix}"

    def write(self, path: Path, text: str) -> None:
        """Write a file of the folder, completely or not at all, unless it has this content already."""
        try:
            files.update(path, text)
        except OSError as problem:
            raise GradingError(f"{path}: cannot be written ({problem.strerror})") from None

    def _mark(self) -> None:
        self.write(self.folder / MARKER, json.dumps({"seed": self.seed, "complete": self.complete}))


def _read(path: Path) -> dict[str, Any]:
    """The JSON object in a file; an empty one if none can be read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _sha256(result: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(result, sort_keys=True).encode()).hexdigest()

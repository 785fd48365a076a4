"""Grade one notebook."""

import importlib
import secrets
from dataclasses import dataclass

from .. import exercise, judging
from ..items import registry
from . import GradingError, submissions, tidy
from .merge import merge, points
from .results import Result

LONGEST = 20_000  # characters of an answer shown in the feedback
TIMEOUT = 20.0  # seconds for one cell, and for all calls of one answer
SET_UP, CELLS = 60.0, 5  # all cells of a notebook may take SET_UP seconds plus CELLS times the timeout


@dataclass(frozen=True)
class Settings:
    """seed: determines the inputs.  timeout: seconds for a cell.  kernel: "module:name" of the function or
    class that makes the kernel.  private: paths that no submission may read."""

    seed: int
    timeout: float = TIMEOUT
    kernel: str = "course_tools.grading.kernels:make_kernel"
    private: tuple = ()

    @property
    def budget(self):
        """Seconds for all cells of a notebook together."""
        return SET_UP + CELLS * self.timeout

    def make_kernel(self):
        """The function or class named by `kernel`, after everything that it needs was started."""
        module, _, name = self.kernel.partition(":")
        module = importlib.import_module(module)
        if hasattr(module, "prepare"):
            module.prepare(private=self.private)
        return getattr(module, name)


def fresh_seed():
    """A seed that nobody can predict."""
    return secrets.randbelow(2**31)


def grade_notebook(path, stem, settings):
    """Grade the notebook at `path` as exercise `stem`.

    Returns {"exercise", "status": "graded", "score", "max_score", "items": [...], "seed", "timeout",
    "sandbox", "digest"}.  Raises NotebookError if it cannot be read, GradingError if grading fails.
    """
    merged = merge(path, stem)
    result = {"exercise": stem, "status": "graded", "seed": settings.seed, "timeout": settings.timeout,
              "digest": merged.digest(), "sandbox": None}
    if merged.untouched:
        items = [_row(name, points, "missing", merged.notes.get(name, "not answered yet."))
                 for name, points in merged.points.items()]
        return _totals({**result, "items": items})
    kernel = settings.make_kernel()
    import torch

    from . import nbval_plugin, session
    torch.set_num_threads(1)  # the references: other notebooks may be graded beside this one
    items = registry.items(stem)
    grading = session.GradingSession(items, merged.given, merged.notes, settings.seed, kernel,
                                     settings.timeout, settings.budget)
    nbval_plugin.run(merged.notebook, grading)
    unreached = items.keys() - grading.verdicts.keys()
    if unreached:
        raise GradingError(f"the exercise {stem} has no check cell for {', '.join(sorted(unreached))}")
    rows = []
    for name, item in items.items():
        verdict = grading.verdicts[name]
        row = _row(name, item.points, verdict.status, verdict.message, verdict.mistake,
                   judging.pointer(stem, item), verdict.remark)
        rows.append({**row, "section": item.where,
                     "answer": tidy(merged.given.get(name, ""), LONGEST) or None,
                     "evidence": None if verdict.passed else grading.details.get(name)})
    return _totals({**result, "items": rows, "sandbox": grading.sandbox})


def _row(name, points, status, message, mistake=None, see=None, remark=None):
    passed = status == "passed"
    return {"name": name, "points": points * passed, "max_points": points, "passed": passed,
            "mistake": mistake, "message": message, "remark": remark and tidy(remark), "status": status,
            "see": None if passed else see}


def _totals(result):
    return {**result, "score": sum(item["points"] for item in result["items"]),
            "max_score": sum(item["max_points"] for item in result["items"])}


@dataclass(frozen=True)
class Reading:
    """What is known once a submission was read.  digest: None if unknown.  begun: whether there is anything
    to run.  result: set if the submission cannot be read."""

    digest: str | None = None
    begun: bool = True
    result: Result | None = None


def read_submission(submission):
    """The Reading of a submission."""
    try:
        if submission.problem:
            raise exercise.NotebookError(submission.problem)
        merged = merge(submission.path, submission.exercise)
        return Reading(merged.digest(), not merged.untouched)
    except Exception as problem:
        return Reading(result=not_graded(submission, problem))


def grade_submission(submission, settings):
    """`grade_notebook` for one of many, with "student" and "path".  A problem becomes a "status"
    ("unknown_exercise", "unreadable", "failed") and a "message", and affects no other submission."""
    try:
        return {**_whose(submission), **grade_notebook(submission.path, submission.exercise, settings)}
    except Exception as problem:
        return not_graded(submission, problem)


def not_graded(submission, problem):
    """The result of a submission that met with this error.  Out of memory, that is the whole process's."""
    if isinstance(problem, MemoryError):
        raise problem
    if isinstance(problem, exercise.NotebookError):
        return unreadable(submission, problem)
    text = str(problem) if isinstance(problem, GradingError) else f"{type(problem).__name__}: {problem}"
    return ungraded(submission, "failed", f"not graded, because the grader failed: {text}")


def unreadable(submission, problem):
    """The result of a submission that is not a notebook, or not an exercise of the course."""
    status = "unreadable" if submission.exercise else "unknown_exercise"
    return ungraded(submission, status, str(problem).removeprefix(f"{submission.path}: "))


def ungraded(submission, status, message):
    """The result of a submission that could not be graded: no points, and the reason."""
    message = tidy(message)
    items = [_row(name, worth, status, message) for name, worth in points(submission.exercise).items()]
    nothing = dict.fromkeys(("seed", "timeout", "sandbox", "digest"))
    return _totals({**_whose(submission), "exercise": submission.exercise, "status": status,
                    "message": message, "items": items, **nothing})


def _whose(submission):
    return {"student": submission.student, "path": submissions.printable(submission.path)}

"""Submissions are read and graded in worker processes (pool.py), where one can wear out nobody but itself."""

import contextlib
import functools

from .. import checks
from ..exercise import NotebookError
from . import pool
from .grade import Reading, grade_submission, read_submission, ungraded, unreadable
from .merge import code_digest, points
from .submissions import TO_READ

JUDGING = 60.0  # seconds for a notebook to be graded, beside those that its cells may take


def grade_all(todo, settings, workers=1):
    """(submission, result) of each, as they are ready; each is graded in a worker process.

    todo: {submission: its Reading}.  A result in which time ran out while others were graded beside
    it is no result: it is graded again at the end, alone.
    """
    if not todo:
        return
    if any(read.begun for read in todo.values()):
        prepare(settings, {one.exercise for one in todo})
    work = functools.partial(grade_submission, settings=settings)
    for one, result in pool.each(work, todo, settings.budget + JUDGING, workers, out_of_time):
        yield one, finished(one, result, settings, todo[one].digest)


def prepare(settings, stems=()):
    """Import once, before workers are forked, what each of them needs."""
    settings.make_kernel()
    from . import kernel, plugin, sitting  # noqa: F401
    code_digest()  # of the code as it is now
    for stem in set(stems) - {None}:
        points(stem)
        with contextlib.suppress(ImportError):
            checks.items(stem)


def out_of_time(result):
    """Whether an item of a result did not come to its end."""
    return any(item["status"] == "timeout" for item in result["items"])


def finished(submission, result, settings, digest=None):
    """The result of a submission that a worker graded: 0 points if grading it ended worker after worker."""
    if not isinstance(result, pool.Lost):
        return result
    message = (f"0 points: grading this notebook {result.reason}, at two attempts. "
               "An answer should hold no more than the exercise asks for.")
    lost = ungraded(submission, "graded", message)
    items = [{**item, "status": "error"} for item in lost["items"]]
    return {**lost, "items": items, "seed": settings.seed, "timeout": settings.timeout, "digest": digest}


def read_all(found, workers=1):
    """(submission, its Reading) of each; each is read in a worker process."""
    for one, read in pool.each(read_submission, found, TO_READ, workers):
        if isinstance(read, pool.Lost):
            problem = NotebookError(f"reading it {read.reason}, at two attempts; "
                                    "hand in a notebook that holds your answers and little else")
            read = Reading(result=unreadable(one, problem))
        yield one, read

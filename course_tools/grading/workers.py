"""Read and grade submissions in worker processes (pool.py), so that each can harm only itself."""

import contextlib
import functools
import os
from collections.abc import Collection, Generator, Iterator, Mapping

from ..exercise import NotebookError
from ..items import registry
from . import limits, pool
from .grade import Reading, Settings, grade_submission, read_submission, ungraded, unreadable
from .merge import code_digest, points
from .results import ItemResult, Result
from .submissions import TO_READ, Submission

MOST_WORKERS = 4  # by default: each takes half a gigabyte of memory
JUDGING = 60.0  # seconds for judging a notebook, in addition to the time of its cells


def default_workers() -> int:
    """How many notebooks to grade at a time: one for each processor that this process may use, at most 4."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MOST_WORKERS, usable)


def grade_all(todo: Mapping[Submission, Reading], settings: Settings, workers: int = 1
              ) -> Generator[tuple[Submission, Result]]:
    """(submission, result) of each, as they are ready; each is graded in a worker process.

    todo: {submission: its Reading}.  A notebook that ran out of time while others were graded beside it is
    graded again at the end, alone.
    """
    if not todo:
        return
    if any(read.begun for read in todo.values()):
        prepare(settings, {one.exercise for one in todo})
    work = functools.partial(grade_submission, settings=settings)
    for one, result in pool.each(work, todo, settings.budget + JUDGING, workers, out_of_time):
        yield one, finished(one, result, settings, todo[one].digest)


def prepare(settings: Settings, stems: Collection[str | None] = ()) -> None:
    """Import what every worker needs, once, before they are forked."""
    settings.make_kernel()
    with limits.no_collection():
        from IPython.core import inputtransformer2  # noqa: F401  (for cells that are not plain Python)

        code_digest()  # of the code as it is now
        for stem in filter(None, set(stems)):
            points(stem)
            with contextlib.suppress(ImportError):
                registry.items(stem)


def out_of_time(result: Result) -> bool:
    """Whether an item of a result ran out of time."""
    return any(item["status"] == "timeout" for item in result["items"])


def finished(submission: Submission, result: Result | pool.Lost, settings: Settings,
             digest: str | None = None) -> Result:
    """The result of a submission that a worker graded: 0 points if it ended two workers."""
    if not isinstance(result, pool.Lost):
        return result
    message = (f"0 points, because grading this notebook {result.reason}, in two attempts. "
               "An answer should contain no more than the exercise asks for.")
    lost: Result = ungraded(submission, "graded", message)
    items: list[ItemResult] = [{**item, "status": "error"} for item in lost["items"]]
    return {**lost, "items": items, "seed": settings.seed, "timeout": settings.timeout, "digest": digest}


def read_all(submissions: Collection[Submission], workers: int = 1
             ) -> Iterator[tuple[Submission, Reading]]:
    """(submission, its Reading) of each; each is read in a worker process."""
    for one, read in pool.each(read_submission, submissions, TO_READ, workers):
        if isinstance(read, pool.Lost):
            problem = NotebookError(f"reading it {read.reason}, in two attempts. "
                                    "Hand in a notebook with your answers and little else")
            read = Reading(result=unreadable(one, problem))
        yield one, read

"""Grade a class into a folder: several notebooks at a time, each only once, continuing after a stop."""

import contextlib
import functools
import sys
from collections.abc import Callable, Collection, Generator
from pathlib import Path

from tqdm import tqdm

from . import cluster, kernels, submissions
from .grade import TIMEOUT, Reading, Settings, fresh_seed
from .reports import report
from .reports.gradebook import Gradebook
from .results import Result, Summary
from .submissions import Submission
from .workers import default_workers, grade_all, out_of_time, read_all


def grade_class(source: str | Path, out: str | Path, seed: int | None = None, timeout: float = TIMEOUT,
                workers: int | None = None, dask: str | None = None) -> tuple[Summary, int]:
    """Grade everything under `source`, and write grades.csv, results.json, junit.xml and the pages to `out`.

    seed: determines the inputs of every item; by default it is new, so that nobody can know the inputs.
    workers: notebooks at a time, by default one per processor, at most 4.  dask: the address of a Dask
    scheduler whose workers grade instead.
    Submissions that have not changed since the last run are not graded again (a seed other than the
    one they were graded with counts as a change).  Returns (the Summary, how many were graded now).
    Raises GradingError.
    """
    workers, private = workers or default_workers(), (source, out)
    handed_in = submissions.find(source)
    book = Gradebook(out)
    prepare = functools.partial(kernels.prepare, private=private) if dask is None else None
    results, todo = known(book, handed_in, seed, timeout, workers, prepare)
    if seed is None:
        seed = fresh_seed() if book.seed is None or todo and book.complete else book.seed
    book.begin(seed)
    settings = Settings(seed, timeout, private=private)
    each: Generator[tuple[Submission, Result]]
    each = cluster.each(todo, settings, dask) if dask is not None else grade_all(todo, settings, workers)
    with tqdm(total=len(handed_in), initial=len(handed_in) - len(todo), desc="grading", unit="notebook",
              disable=None, file=sys.stderr) as bar, contextlib.closing(each) as graded:
        for one, result in graded:
            results[one] = result
            book.save(one, result)
            bar.update()
    complete = {one: result for one, result in results.items() if result is not None}
    summary = report.summary(seed, complete.values())
    report.write_all(book, summary, complete)
    book.finish()
    return summary, len(todo)


def known(book: Gradebook | None, handed_in: Collection[Submission], seed: int | None, timeout: float,
          workers: int = 1, prepare: Callable[[], None] | None = None
          ) -> tuple[dict[Submission, Result | None], dict[Submission, Reading]]:
    """({submission: its result, or None}, {submission: its Reading} of those that have to be graded).

    A result is known without running anything if the notebook cannot be read, or if the result of an earlier
    run is still valid.  prepare: called as soon as a notebook has to be run, while others are still read.
    """
    results: dict[Submission, Result | None] = dict.fromkeys(handed_in)
    todo: dict[Submission, Reading] = {}
    for one, read in read_all(handed_in, workers):
        stored = book.piece(one) if book else None
        results[one] = read.result or kept(stored, read.digest, seed, timeout)
        if results[one] is None:
            todo[one] = read
            if prepare and read.begun:
                prepare()
                prepare = None
    return results, {one: todo[one] for one in handed_in if one in todo}


def kept(piece: Result | None, digest: str | None, seed: int | None, timeout: float) -> Result | None:
    """An earlier result if it is still valid for a submission with that digest, else None."""
    if piece is None or piece["digest"] != digest or seed not in (None, piece["seed"]):
        return None
    return None if out_of_time(piece) and piece["timeout"] != timeout else piece

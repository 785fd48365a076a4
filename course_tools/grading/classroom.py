"""Grade a class into a folder: several notebooks at a time, each only once, continuing after a stop."""

import contextlib
import functools
import sys

from tqdm import tqdm

from . import cluster, kernels, submissions
from .grade import TIMEOUT, Settings, fresh_seed
from .reports import report
from .reports.gradebook import Gradebook
from .workers import default_workers, grade_all, out_of_time, read_all


def grade_class(source, out, seed=None, timeout=TIMEOUT, workers=None, dask=None):
    """Grade everything under `source`, and write grades.csv, results.json, junit.xml and the pages to `out`.

    seed: determines the inputs of every item; by default it is new, so that nobody can know the inputs.
    workers: notebooks at a time, by default one per processor, at most 4.  dask: the address of a Dask
    scheduler whose workers grade instead.
    Submissions that have not changed since the last run are not graded again (a seed other than the
    one they were graded with counts as a change).  Returns (results, how many were graded now).
    Raises GradingError.
    """
    workers, private = workers or default_workers(), (source, out)
    found = submissions.find(source)
    book = Gradebook(out)
    prepare = functools.partial(kernels.prepare, private=private) if dask is None else None
    results, todo = known(book, found, seed, timeout, workers, prepare)
    if seed is None:
        seed = fresh_seed() if book.seed is None or todo and book.complete else book.seed
    book.begin(seed)
    settings = Settings(seed, timeout, private=private)
    each = cluster.each(todo, settings, dask) if dask is not None else grade_all(todo, settings, workers)
    with tqdm(total=len(found), initial=len(found) - len(todo), desc="grading", unit="notebook",
              disable=None, file=sys.stderr) as bar, contextlib.closing(each) as graded:
        for one, result in graded:
            results[one] = result
            book.save(one, result)
            bar.update()
    summary = report.summary(seed, results.values())
    report.write_all(book, summary, results)
    book.finish()
    return summary, len(todo)


def known(book, found, seed, timeout, workers=1, prepare=None):
    """({submission: its result, or None}, {submission: its Reading} of those that have to be graded).

    A result is known without running anything if the notebook cannot be read, or if the result of an earlier
    run is still valid.  prepare: called as soon as a notebook has to be run, while others are still read.
    """
    results, todo = dict.fromkeys(found), {}
    for one, read in read_all(found, workers):
        results[one] = read.result or book and kept(book.piece(one), read.digest, seed, timeout)
        if results[one] is None:
            todo[one] = read
            if prepare and read.begun:
                prepare()
                prepare = None
    return results, {one: todo[one] for one in found if one in todo}


def kept(piece, digest, seed, timeout):
    """An earlier result if it is still valid for a submission with that digest, else None."""
    if piece is None or piece["digest"] != digest or seed not in (None, piece["seed"]):
        return None
    return None if out_of_time(piece) and piece["timeout"] != timeout else piece

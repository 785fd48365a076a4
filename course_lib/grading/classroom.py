"""Grade a class into a folder: several at a time, each once, and on from where it stopped."""

import contextlib
import sys

from tqdm import tqdm

from . import cluster, report, submissions
from .grade import TIMEOUT, Settings, fresh_seed
from .gradebook import Gradebook
from .workers import grade_all, out_of_time, read_all


def grade_class(source, out, seed=None, timeout=TIMEOUT, workers=1, dask=None):
    """Grade what lies under `source`, and write grades.csv, results.json, junit.xml and the pages to `out`.

    seed: draws the inputs of every item; without one it is fresh, so that nobody can know them.
    workers: notebooks at a time.  dask: the address of a Dask scheduler, whose workers grade instead.
    Submissions that have not changed since the last run are not graded again (a seed other than the
    one they were graded with counts as a change).  Returns (results, how many were graded now).
    Raises GradingError.
    """
    found = submissions.find(source)
    book = Gradebook(out)
    results, todo = known(book, found, seed, timeout, workers)
    if seed is None:
        seed = fresh_seed() if book.seed is None or todo and book.complete else book.seed
    book.begin(seed)
    settings = Settings(seed, timeout, private=(source, out))
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


def known(book, found, seed, timeout, workers=1):
    """({submission: its result, or None}, {submission: its Reading} of those that have to be graded).

    A result is known without running anything where the notebook can't be read, and where the result of an
    earlier run still holds.
    """
    results, todo = dict.fromkeys(found), {}
    for one, read in read_all(found, workers):
        results[one] = read.result or book and kept(book.piece(one), read.digest, seed, timeout)
        if results[one] is None:
            todo[one] = read
    return results, {one: todo[one] for one in found if one in todo}


def kept(piece, digest, seed, timeout):
    """An earlier result if it still holds for a submission of that digest, else None."""
    if piece is None or piece["digest"] != digest or seed not in (None, piece["seed"]):
        return None
    return None if out_of_time(piece) and piece["timeout"] != timeout else piece

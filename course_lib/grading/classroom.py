"""Grade a class into a folder: several at a time, each once, and on from where it stopped."""

import contextlib
import sys

from tqdm import tqdm

from .. import exercise
from . import cluster, pool, report, submissions
from .grade import TIMEOUT, Settings, fresh_seed, unreadable
from .gradebook import Gradebook
from .merge import merge


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
    results = {one: known(book, one, seed, timeout) for one in found}
    todo = [one for one in found if results[one] is None]
    if seed is None:
        seed = fresh_seed() if book.seed is None or todo and book.complete else book.seed
    book.begin(seed)
    settings = Settings(seed, timeout, private=(source, out))
    each = cluster.each(todo, settings, dask) if dask is not None else pool.each(todo, settings, workers)
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


def known(book, submission, seed, timeout):
    """The result if it can be told without running anything: the submission can't be read, or the result
    of an earlier run still holds.  Else None."""
    try:
        if submission.problem:
            raise exercise.NotebookError(submission.problem)
        digest = merge(submission.path, submission.exercise).digest()
    except exercise.NotebookError as problem:
        return unreadable(submission, problem)
    piece = book.piece(submission)
    if piece is None or piece["digest"] != digest or seed not in (None, piece["seed"]):
        return None
    stopped = any(item["status"] == "timeout" for item in piece["items"])
    return None if stopped and piece["timeout"] != timeout else piece

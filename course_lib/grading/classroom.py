"""Grade a class into a folder: several at a time, each once, and on from where it stopped."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool

from tqdm import tqdm

from .. import checks, exercise
from . import report, submissions
from .grade import TIMEOUT, Settings, fresh_seed, grade_submission, ungraded, unreadable
from .gradebook import Gradebook
from .merge import code_digest, merge


def grade_class(source, out, seed=None, timeout=TIMEOUT, workers=1):
    """Grade what lies under `source`, and write grades.csv, results.json, junit.xml and the pages to `out`.

    seed: draws the inputs of every item; without one it is fresh, so that nobody can know them.
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
    with tqdm(total=len(found), initial=len(found) - len(todo), desc="grading", unit="notebook",
              disable=None, file=sys.stderr) as bar, contextlib.closing(
              _each(todo, Settings(seed, timeout, private=(source, out)), workers)) as graded:
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


def _each(todo, settings, workers):
    """(submission, result) of each, as they are ready.

    Every one is graded in a process beside this one.  If such a process is ended from outside, those
    that were not ready are tried again alone; only the one that it happens to again is left ungraded.
    """
    if not todo:
        return
    left = list(todo)
    try:
        for one, result in _in_pool(todo, settings, workers):
            left.remove(one)
            yield one, result
    except BrokenProcessPool:
        for one in left:
            try:
                yield next(_in_pool([one], settings, 1))
            except BrokenProcessPool:
                yield one, ungraded(one, "failed", "not graded: it ended the process that graded it")


def _in_pool(todo, settings, workers):
    _warm(todo, settings)
    before = multiprocessing.active_children()
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = concurrent.futures.ProcessPoolExecutor(max(1, min(workers, len(todo))), context, _in_worker,
                                                  (os.getpid(),))
    try:
        waiting = {pool.submit(_work, one, settings): one for one in todo}
        for future in concurrent.futures.as_completed(waiting):
            yield waiting[future], future.result()
    except BaseException:  # Ctrl-C above all: don't wait for what is being graded
        for process in set(multiprocessing.active_children()) - set(before):
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _warm(todo, settings):
    """Import once, before the processes are forked, what each of them needs."""
    settings.make_kernel()
    from . import kernel, plugin, sitting  # noqa: F401
    code_digest()  # of the code as it is now
    for stem in {one.exercise for one in todo} - {None}:
        with contextlib.suppress(ImportError):
            checks.items(stem)


def _work(submission, settings):
    """`grade_submission`; when the process is terminated it ends its kernel first."""
    def stop(*_):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt
    signal.signal(signal.SIGTERM, stop)
    try:
        try:
            return grade_submission(submission, settings)
        finally:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
    except KeyboardInterrupt:
        os._exit(1)  # back in the pool it could wait for ever


def _in_worker(parent):
    """One thread for the references; Ctrl-C is the grader's to handle; and no life after the grader's."""
    import torch
    torch.set_num_threads(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch():  # the process of a pool would wait for ever
        while os.getppid() == parent:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)
        os._exit(1)
    threading.Thread(target=watch, daemon=True).start()

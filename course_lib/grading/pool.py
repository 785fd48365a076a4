"""Grade several submissions at a time: each in a process beside this one, all with one warm process."""

import concurrent.futures
import contextlib
import itertools
import multiprocessing
import os
import signal
import sys
import threading
import time
from concurrent.futures.process import BrokenProcessPool

from .. import checks
from .grade import grade_submission, ungraded
from .merge import code_digest

AHEAD = 4  # submissions handed out for each worker: it need not wait, and memory does not grow with the class


def in_turn(todo, submit, most):
    """(submission, its future) of each, as they are done; at most so many are under way."""
    left, waiting = iter(todo), {}
    while True:
        for one in itertools.islice(left, most - len(waiting)):
            waiting[submit(one)] = one
        if not waiting:
            return
        done = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED).done
        for future in done:
            yield waiting.pop(future), future


def each(todo, settings, workers):
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
        for one, future in in_turn(todo, lambda one: pool.submit(_work, one, settings), AHEAD * workers):
            yield one, future.result()
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

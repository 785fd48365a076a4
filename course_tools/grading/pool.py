"""Worker processes for work that a submission could disrupt: each job has limits and a deadline.

The grader itself never parses a notebook and never judges what an answer returned.  It gives each job to a
worker and gets a finished result back.  A worker does one job after another.  It is forked from the grader,
so everything that the grader has imported is available at once (where forking is impossible, it is spawned).
A worker that ends, or that misses its deadline, is replaced.  Its job is tried once more, alone, when all
others are done; if that fails too, its result is `Lost`, and no other job is affected.

`concurrent.futures` offers neither: a worker that ends takes every job of its pool with it, and jobs have no
deadline.  pebble offers both, but its workers share one pipe and the locks of it, so one that is killed while
it sends its result stops all others.  Here each worker has a pipe of its own.  All workers are started by the
thread that waits for them, so no lock is copied while it is held.
"""

import collections
import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing import connection
from typing import Any, Generic, TypeVar

from . import limits

Job = TypeVar("Job")
Done = TypeVar("Done")
CONTEXT: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
END_SECONDS = 3.0  # seconds for a worker to end its kernel before it is killed


@dataclass(frozen=True)
class Lost:
    """The result of a job that failed twice.  reason: "took more than 20 s" and the like."""

    reason: str


class Pool(Generic[Job, Done]):
    """Up to `workers` processes that do work(job); all end with the `with` statement."""

    def __init__(self, work: Callable[[Job], Done], workers: int = 1) -> None:
        self.work, self.workers = work, workers
        self.idle: list[Worker[Job, Done]] = []
        self.busy: list[Worker[Job, Done]] = []

    def __enter__(self) -> "Pool[Job, Done]":
        return self

    def __exit__(self, *problem: object) -> None:
        end_all(self.idle + self.busy)
        self.idle, self.busy = [], []

    def each(self, jobs: Iterable[Job], seconds: float, again: Callable[[Done], bool] = lambda result: False
             ) -> Iterator[tuple[Job, Done | Lost]]:
        """(job, result) of each job, as they are ready.

        seconds: the deadline of each job.  again(result): whether a job that ran beside others is to
        be repeated when it has the machine to itself; only that second result counts.
        """
        later = []
        for job, result in self._once(jobs, seconds, self.workers):
            if isinstance(result, Lost) or self.workers > 1 and again(result):
                later.append(job)
            else:
                yield job, result
        yield from self._once(later, seconds, 1)

    def _once(self, jobs: Iterable[Job], seconds: float, workers: int) -> Iterator[tuple[Job, Done | Lost]]:
        waiting, done = collections.deque(jobs), collections.deque[tuple[Job, Done | Lost]]()
        while waiting or self.busy or done:
            while waiting and len(self.busy) < workers:
                worker = self.idle.pop() if self.idle else Worker(self.work)
                self.busy.append(worker)
                worker.begin(waiting.popleft(), seconds)
            if done:
                yield done.popleft()
            else:
                done.extend(self._finished(seconds))

    def _finished(self, seconds: float) -> Iterator[tuple[Job, Done | Lost]]:
        """Wait for the next workers to finish or to miss their deadline: (job, result) of each."""
        left = min(worker.end for worker in self.busy) - time.monotonic()
        ready = connection.wait([worker.pipe for worker in self.busy], max(0.0, left))
        for worker in [one for one in self.busy if one.pipe in ready or one.end <= time.monotonic()]:
            result = worker.result() if worker.pipe in ready else Lost(f"took more than {seconds:g} s")
            self.busy.remove(worker)
            if isinstance(result, Lost):
                end_all([worker])
            else:
                self.idle.append(worker)
            yield worker.job, result


def each(work: Callable[[Job], Done], jobs: Collection[Job], seconds: float, workers: int = 1,
         again: Callable[[Done], bool] = lambda result: False) -> Iterator[tuple[Job, Done | Lost]]:
    """`Pool.each` with a pool of its own, of no more workers than jobs."""
    if jobs:
        with Pool(work, max(1, min(workers, len(jobs)))) as pool:
            yield from pool.each(jobs, seconds, again)


class Worker(Generic[Job, Done]):
    """A process that does one job after the other.  job: the last one.  end: when it has to be done."""

    job: Job
    end: float

    def __init__(self, work: Callable[[Job], Done]) -> None:
        self.pipe, theirs = CONTEXT.Pipe()
        with theirs:
            self.process = CONTEXT.Process(target=_serve, args=(work, theirs, os.getpid()), daemon=True)
            self.process.start()

    def begin(self, job: Job, seconds: float) -> None:
        self.job, self.end = job, time.monotonic() + seconds
        with contextlib.suppress(OSError):  # it was ended from outside, as `result` reports
            self.pipe.send(job)

    def result(self) -> Done | Lost:
        """The result of its job once the pipe is ready; Lost if the worker has ended."""
        try:
            result: Done | Lost = self.pipe.recv()
            return result
        except (EOFError, OSError):
            self.process.join(END_SECONDS)
            return Lost(limits.describe_exit(self.process.exitcode or 0))


def end_all(workers: Collection[Worker[Any, Any]]) -> None:
    """End these workers: each ends its kernel first, if it still can."""
    for worker in workers:
        worker.process.terminate()
    end = time.monotonic() + END_SECONDS
    for worker in workers:
        worker.process.join(max(0.0, end - time.monotonic()))
        worker.process.kill()
        worker.process.join()
        worker.pipe.close()


# ---------------------------------------------------------------- in the worker

def _serve(work: Callable[[Any], object], pipe: "connection.Connection[Any, Any]", parent: int) -> None:
    """Do jobs until the grader ends this process, or has ended itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grader handles Ctrl-C
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    limits.limit_memory()
    try:
        while True:
            job = pipe.recv()
            with limits.processor_limited():
                result = _done(work, job)
            pipe.send(result)
    except (KeyboardInterrupt, EOFError, OSError):
        os._exit(1)


def _done(work: Callable[[Any], object], job: object) -> object:
    try:
        return work(job)
    except MemoryError:
        return Lost(f"needed more than {limits.MEMORY / 1e9:.1f} GB of memory")
    except Exception as problem:
        return Lost(f"raised {type(problem).__name__}: {str(problem)[:200]}")


def _stop(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)
    os._exit(1)

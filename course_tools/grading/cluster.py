"""Grade on a Dask cluster: notebooks are sent to its workers, and results come back (course-lib[cluster]).

If a Dask worker is lost, Dask gives its notebooks to another one.  A Dask worker grades one notebook at a
time, in a separate worker process (pool.py), so that notebooks cannot harm it; give each worker one thread.
"""

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import functools
import itertools
import logging
import multiprocessing
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from . import GradingError, pool, submissions, workers
from .grade import Reading, Settings, grade_submission, ungraded
from .merge import code_digest
from .results import Result
from .submissions import Submission

EXTRA = "--dask needs Dask. Install it with: pip install -c constraints.txt -e .[cluster]"
ANSWER = 10  # seconds at most for the scheduler to answer
AHEAD = 4  # submissions sent ahead for each worker: none has to wait, and memory does not grow with the class
LOGGERS = "distributed", "distributed.client"  # each has a level of its own: Dask's configuration sets them
Waiting: TypeAlias = "concurrent.futures.Future[Result]"
_alone = threading.Lock()  # a pool serves one at a time


def each(todo: Mapping[Submission, Reading], settings: Settings, address: str
         ) -> Generator[tuple[Submission, Result]]:
    """`workers.grade_all` on a Dask cluster.  Raises GradingError."""
    if not todo:
        return
    with _client(address) as client:
        executor, threads = client.get_executor(pure=False), _threads(client, address)
        later: list[Submission] = []

        def submit(one: Submission) -> Waiting:
            return _submit(executor, one, settings, todo[one].digest)
        for one, future in _in_turn(todo, submit, AHEAD * threads):
            result = _result(one, future, address)
            if threads > 1 and workers.out_of_time(result):  # others were graded beside it, perhaps there
                later.append(one)
            else:
                yield one, result
        for one, future in _in_turn(later, submit, 1):
            yield one, _result(one, future, address)


def _in_turn(todo: Iterable[Submission], submit: Callable[[Submission], Waiting], limit: int
             ) -> Iterator[tuple[Submission, Waiting]]:
    """(submission, its future) of each, as they finish; at most `limit` are under way."""
    left, waiting = iter(todo), dict[Waiting, Submission]()
    while True:
        for one in itertools.islice(left, limit - len(waiting)):
            waiting[submit(one)] = one
        if not waiting:
            return
        done = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED).done
        for future in done:
            yield waiting.pop(future), future


def remote(submission: Submission, content: bytes, settings: Settings, digest: str, mine: str | None
           ) -> Result:
    """What a Dask worker does: grade the notebook that was sent.  mine: the notebook's own digest."""
    if digest != code_digest():
        raise GradingError("a Dask worker runs a different version of the course. Start all workers with the "
                           "same version")
    with _alone, tempfile.TemporaryDirectory(prefix="course-cluster-") as folder:
        path = Path(folder, f"{submission.exercise}.ipynb")
        path.write_bytes(content)
        job = dataclasses.replace(submission, path=path), settings
        (_, done), = _pool().each([job], settings.budget + workers.JUDGING)
        result = workers.finished(submission, done, settings, mine)
    return {**result, "path": submissions.printable(submission.path)}


@functools.cache
def _pool() -> pool.Pool[tuple[Submission, Settings], Result]:
    """The worker process in which this Dask worker grades all its notebooks."""
    multiprocessing.current_process().daemon = False  # a nanny's daemon could start none
    return pool.Pool(_grade)


def _grade(job: tuple[Submission, Settings]) -> Result:
    result: Result = grade_submission(*job)
    return result


def _submit(executor: Any, one: Submission, settings: Settings, digest: str | None) -> Waiting:
    settings = dataclasses.replace(settings, private=tuple(map(str, settings.private)))
    future: Waiting = executor.submit(remote, one, one.path.read_bytes(), settings, code_digest(), digest)
    return future


def _result(one: Submission, future: Waiting, address: str) -> Result:
    from distributed import CancelledError, KilledWorker
    try:
        return future.result()
    except KilledWorker:
        result: Result = ungraded(one, "failed", "not graded, because it ended one Dask worker after another")
        return result
    except (CancelledError, OSError):
        raise GradingError(f"{address}: the connection to the Dask scheduler was lost. "
                           "Run the same command again to continue") from None


def _threads(client: Any, address: str) -> int:
    threads: int = sum(client.nthreads().values())
    if not threads:
        raise GradingError(f"{address}: the Dask scheduler has no workers. Start some with: "
                           f"dask worker {address}")
    return threads


async def _reach(address: str) -> None:
    """Raises if nobody answers.  A client that found nobody can block the next one for ever: Dask closes it
    when it is collected, even while the other holds the same lock."""
    from distributed.comm.core import connect
    from distributed.security import Security
    comm = await connect(address, timeout=ANSWER, **Security().get_connection_args("client"))
    await comm.close()


@contextlib.contextmanager
def _client(address: str) -> Iterator[Any]:
    try:
        import distributed
    except ImportError:
        raise GradingError(EXTRA) from None
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        asyncio.run(_reach(address))
        client = distributed.Client(address, timeout=ANSWER, set_as_default=False)
    except Exception as problem:  # each transport has errors of its own
        raise GradingError(f"{address}: no Dask scheduler answers at this address "
                           f"({type(problem).__name__}). Expected tcp://HOST:PORT") from None
    with client:
        yield client

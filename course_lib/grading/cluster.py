"""Grade on a Dask cluster: the notebooks go to its workers, the results come back (course-lib[cluster]).

Dask gives what a worker had to another one when it is lost.  A worker grades one notebook at a time,
in kernels forked from a warm process of its own; give each one thread.
"""

import contextlib
import dataclasses
import logging
import tempfile
import threading
from pathlib import Path

from . import GradingError, submissions
from .grade import grade_submission, ungraded
from .merge import code_digest
from .pool import AHEAD, in_turn

EXTRA = "--dask needs Dask: pip install -c constraints.txt -e .[cluster]"
ANSWER = 10  # seconds at most for the scheduler to answer
_alone = threading.Lock()  # a session of pytest serves one at a time


def each(todo, settings, address):
    """(submission, result) of each, as they are ready.  Raises GradingError."""
    if not todo:
        return
    with _client(address) as client:
        executor = client.get_executor(pure=False)
        most = AHEAD * _threads(client, address)
        for one, future in in_turn(todo, lambda one: _submit(executor, one, settings), most):
            yield one, _result(one, future, address)


def remote(submission, content, settings, digest):
    """What a worker does: `grade_submission` of a notebook that is sent along."""
    if digest != code_digest():
        raise GradingError("a Dask worker runs another version of the course; start all with the same")
    with _alone, tempfile.TemporaryDirectory(prefix="course-cluster-") as folder:
        path = Path(folder, f"{submission.exercise}.ipynb")
        path.write_bytes(content)
        result = grade_submission(dataclasses.replace(submission, path=path), settings)
    return {**result, "path": submissions.printable(submission.path)}


def _submit(executor, one, settings):
    settings = dataclasses.replace(settings, private=tuple(map(str, settings.private)))
    return executor.submit(remote, one, one.path.read_bytes(), settings, code_digest())


def _result(one, future, address):
    from distributed import CancelledError, KilledWorker
    try:
        return future.result()
    except KilledWorker:
        return ungraded(one, "failed", "not graded: it ended one Dask worker after the other")
    except (CancelledError, OSError):
        raise GradingError(f"{address}: the connection to the Dask scheduler was lost; "
                           "the same command goes on where it was") from None


def _threads(client, address):
    found = sum(client.nthreads().values())
    if not found:
        raise GradingError(f"{address}: the Dask scheduler has no workers; start some: dask worker {address}")
    return found


@contextlib.contextmanager
def _client(address):
    try:
        import distributed
    except ImportError:
        raise GradingError(EXTRA) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        client = distributed.Client(address, timeout=ANSWER, set_as_default=False)
    except Exception as problem:  # each transport has errors of its own
        raise GradingError(f"{address}: no Dask scheduler answers there "
                           f"({type(problem).__name__}); expected tcp://HOST:PORT") from None
    with client:
        yield client

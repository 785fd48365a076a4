"""Limits of a worker process (pool.py): memory, and processor time for each job; and what it shares."""

import contextlib
import gc
import os
import signal
from collections.abc import Iterator
from typing import Any

resource: Any
try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None

MEMORY = 3 << 29  # bytes, beyond what a worker starts with
PROCESSOR = 60.0  # seconds of processor time for one job


def limit_memory() -> None:
    """Allow this process MEMORY more than it has, where the system is Linux."""
    if resource is None or not os.path.exists("/proc/self/statm"):
        return
    with open("/proc/self/statm") as file:
        limit = int(file.read().split()[0]) * resource.getpagesize() + MEMORY
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))


@contextlib.contextmanager
def processor_limited() -> Iterator[None]:
    """Allow this process PROCESSOR seconds in the `with` statement: then a signal ends it, even during a call
    that does not return to Python.  Processes that it starts have no such limit."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_PROF, PROCESSOR)
    try:
        yield
    finally:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)


@contextlib.contextmanager
def memory_not_inherited() -> Iterator[None]:
    """Processes that a worker starts in the `with` statement do not inherit its limit on memory."""
    if resource is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """No garbage collection in the `with` statement, which imports what forked processes share.  Collections
    would look through all of torch several times.  Afterwards they leave alone what is there by then, and so
    do those of the forked processes, which otherwise would copy the memory that they share."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def describe_exit(exitcode: int) -> str:
    """How a process with this exit code ended, as the end of a sentence."""
    if exitcode == -getattr(signal, "SIGPROF", 0):
        return f"took more than {PROCESSOR:g} s of processor time"
    return f"ended the process ({f'signal {-exitcode}' if exitcode < 0 else f'exit status {exitcode}'})"

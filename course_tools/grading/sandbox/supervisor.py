"""The work of a supervisor: watch what a submission uses and how it ends, and leave nothing of it behind."""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Iterable

import psutil

from . import layers, usage

POLL_SECONDS = 0.1  # between two looks
END_SECONDS = 5.0  # at most to end all that a submission started


def wait_for_end(child: int, connection: int | socket.socket, sandbox: layers.Sandbox) -> str:
    """Wait for the end of a submission, for the grader to disconnect, or for too much to be used.

    Returns how it ended: "exit 0", "signal 11", what `usage.excess` returns, or "stopped".
    """
    ready, process = select.poll(), os.pidfd_open(child)
    ready.register(process, select.POLLIN)
    ready.register(connection, 0)  # tells when the other end is closed, and nothing else
    born, pause = sum(usage.memory([child]).values()), POLL_SECONDS
    try:
        while not (events := ready.poll(pause * 1000)):
            begun = time.monotonic()
            _reap(child)
            too_much = usage.excess(sandbox, born)
            if too_much:
                return too_much
            pause = max(POLL_SECONDS, time.monotonic() - begun)
    finally:
        os.close(process)
    if process not in [descriptor for descriptor, _ in events]:
        return "stopped"
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if sandbox.group and sandbox.group.ran_out():
        return "memory"
    return f"signal {-status}" if status < 0 else f"exit {status}"


def children() -> set[int]:
    """The numbers of the processes that this one started, or that fell to it."""
    return {process.pid for process in psutil.Process().children()}


def end_all_processes(sandbox: layers.Sandbox) -> None:
    """End all that a submission started, and empty its scratch folder."""
    end, pause = time.monotonic() + END_SECONDS, 0.001
    while time.monotonic() < end:
        if os.getpid() == 1:
            usage.send(signal.SIGKILL, [-1])  # all of a namespace
        else:
            usage.send(signal.SIGKILL, _groups(usage.members(sandbox)))  # also ends forks that are under way
            usage.send(signal.SIGKILL, usage.at_rest(sandbox))
        if not _reap():
            break
        time.sleep(pause)  # hundreds of processes need the processor to end
        pause = min(2 * pause, POLL_SECONDS)
    if "namespaces" not in sandbox.layers:
        layers.remove_folder(sandbox.scratch)


def _groups(pids: Iterable[int]) -> set[int]:
    """The process groups of these, but not this process's own, as numbers to send a signal to."""
    groups = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            groups.add(-os.getpgid(pid))
    return groups - {0, -os.getpgrp()}


def _reap(but: int | None = None) -> bool:
    """Take note of the processes that have ended, `but` one.  Returns whether others are left."""
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == but:
                return True
            os.waitpid(ended.si_pid, 0)
        return True
    return False

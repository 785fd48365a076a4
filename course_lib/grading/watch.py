"""A lane's watch over a submission: what it uses, how it ends, and that nothing of it is left."""

import contextlib
import os
import select
import signal
import time

import psutil

from . import sandbox, usage

LOOK = 0.1  # seconds between two looks
PARTING = 5.0  # seconds at most to end all that a submission started


def until_end(child, line, walls):
    """Wait for the end of a submission, for the grader to hang up, or for too much to be used.

    Returns how it ended: "exit 0", "signal 11", what `usage.excess` tells, or "stopped".
    """
    ready, process = select.poll(), os.pidfd_open(child)
    ready.register(process, select.POLLIN)
    ready.register(line, 0)  # tells when the other end is closed, and nothing else
    born, pause = sum(usage.memory([child]).values()), LOOK
    try:
        while not (events := ready.poll(pause * 1000)):
            begun = time.monotonic()
            _reap(child)
            too_much = usage.excess(walls, born)
            if too_much:
                return too_much
            pause = max(LOOK, time.monotonic() - begun)
    finally:
        os.close(process)
    if process not in [descriptor for descriptor, _ in events]:
        return "stopped"
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if walls.group and walls.group.ran_out():
        return "memory"
    return f"signal {-status}" if status < 0 else f"exit {status}"


def children():
    """The numbers of the processes that this one started, or that fell to it."""
    return {process.pid for process in psutil.Process().children()}


def sweep(walls):
    """End all that a submission started, and empty its scratch folder."""
    end, pause = time.monotonic() + PARTING, 0.001
    while time.monotonic() < end:
        if os.getpid() == 1:
            usage.send(signal.SIGKILL, [-1])  # all of a namespace
        else:
            usage.send(signal.SIGKILL, _groups(usage.members(walls)))  # also ends forks that are under way
            usage.send(signal.SIGKILL, usage.at_rest(walls))
        if not _reap():
            break
        time.sleep(pause)  # hundreds of processes need the processor to end
        pause = min(2 * pause, LOOK)
    if "namespaces" not in walls.layers:
        sandbox.empty(walls.scratch)


def _groups(pids):
    """The process groups of these, but not this process's own, as numbers to send a signal to."""
    found = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found.add(-os.getpgid(pid))
    return found - {0, -os.getpgrp()}


def _reap(but=None):
    """Take note of the processes that have ended, `but` one.  Returns whether others are left."""
    with contextlib.suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid == but:
                return True
            os.waitpid(found.si_pid, 0)
        return True
    return False

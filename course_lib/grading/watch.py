"""A lane's watch over a submission: what it uses, how it ends, and that nothing of it is left."""

import contextlib
import os
import select
import signal
import stat
import time

import psutil

from . import sandbox

LOOK = 0.1  # seconds between two looks
PARTING = 5.0  # seconds at most to end all that a submission started


def until_end(child, line, walls):
    """Wait for the end of a submission, for the grader to hang up, or for too much to be used.

    Returns how it ended: "exit 0", "signal 11", "memory", "processes", "disk", or "stopped".
    """
    ready, process = select.poll(), os.pidfd_open(child)
    ready.register(process, select.POLLIN)
    ready.register(line, 0)  # tells when the other end is closed, and nothing else
    before = resident(child)
    try:
        while not (events := ready.poll(LOOK * 1000)):
            _reap(child)
            too_much = excess(walls, before)
            if too_much:
                return too_much
    finally:
        os.close(process)
    if process not in [descriptor for descriptor, _ in events]:
        return "stopped"
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return f"signal {-status}" if status < 0 else f"exit {status}"


def excess(walls, before):
    """What a submission uses too much of, or None.  before: bytes that each process was born with."""
    pids = members(walls)
    if len(pids) > sandbox.PROCESSES:
        return "processes"
    if sum(max(0, resident(pid) - before) for pid in pids) > sandbox.MEMORY:
        return "memory"
    if "namespaces" not in walls.layers and _on_disk(walls.scratch, pids) > sandbox.SCRATCH:
        return "disk"
    return None


def children():
    """The numbers of the processes that this one started, or that fell to it."""
    return {process.pid for process in psutil.Process().children()}


def members(walls):
    """The numbers of all processes of a submission."""
    if "namespaces" in walls.layers:
        return [pid for pid in psutil.pids() if pid != os.getpid()]
    return [process.pid for process in psutil.Process().children(recursive=True)]


def resident(pid):
    """Bytes of memory that a process has in use, 0 if it is gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _on_disk(scratch, pids):
    """Bytes in the scratch folder, however deep or closed, and in files that are deleted but still open."""
    sandbox.quietly("chmod", "-R", "u+rwx", scratch)
    told = sandbox.quietly("du", "-sk", scratch).split()
    total = 1024 * int(told[0]) if told else 0
    for pid in pids:
        for number in _listed(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                file = os.stat(f"/proc/{pid}/fd/{number}")
                total += file.st_blocks * 512 * (stat.S_ISREG(file.st_mode) and file.st_nlink == 0)
    return total


def _listed(folder):
    try:
        return os.listdir(folder)
    except OSError:
        return []


def sweep(walls):
    """End all that a submission started, and empty its scratch folder."""
    end, pause = time.monotonic() + PARTING, 0.001
    while time.monotonic() < end:
        if os.getpid() == 1:
            _send(signal.SIGKILL, [-1])  # all of a namespace
        else:
            _send(signal.SIGKILL, _groups(members(walls)))  # also ends forks that are under way
            _send(signal.SIGKILL, _at_rest(walls))
        if not _reap():
            break
        time.sleep(pause)  # hundreds of processes need the processor to end
        pause = min(2 * pause, LOOK)
    if "namespaces" not in walls.layers:
        sandbox.empty(walls.scratch)


def _at_rest(walls):
    """The processes of a submission, all stopped: what is stopped starts no more."""
    found = set()
    while new := set(members(walls)) - found:
        _send(signal.SIGSTOP, new)
        found |= new
    return found


def _groups(pids):
    """The process groups of these, but not this process's own, as numbers to send a signal to."""
    found = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found.add(-os.getpgid(pid))
    return found - {0, -os.getpgrp()}


def _send(number, pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _reap(but=None):
    """Take note of the processes that have ended, `but` one.  Returns whether others are left."""
    with contextlib.suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid == but:
                return True
            os.waitpid(found.si_pid, 0)
        return True
    return False

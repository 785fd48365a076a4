"""What the processes of a submission use: memory, descriptors, disk space.

This has to be cheap, because it runs ten times a second: memory is first bounded from above, and measured
page by page, with all processes stopped, only if that bound exceeds the limit.
"""

import contextlib
import itertools
import os
import re
import signal
import stat
from collections.abc import Iterable, Iterator, Sequence

import psutil

from . import layers

DESCRIPTORS = 1024  # open in all processes together: the buffers of pipes and sockets belong to no process
AT_MOST = re.compile(rb"^Vm(?:RSS|Swap):\s+(\d+)", re.MULTILINE)  # a page counts in each process that has it
SHARED_OUT = re.compile(rb"^(?:Swap)?Pss:\s+(\d+)", re.MULTILINE)  # ... or is divided among them


def members(sandbox: layers.Sandbox) -> list[int]:
    """The numbers of all processes of a submission."""
    if "namespaces" in sandbox.layers:
        return [pid for pid in psutil.pids() if pid != os.getpid()]
    return [process.pid for process in psutil.Process().children(recursive=True)]


def at_rest(sandbox: layers.Sandbox) -> set[int]:
    """Stop the processes of a submission, and return their numbers: what is stopped starts no more."""
    stopped = set[int]()
    while new := set(members(sandbox)) - stopped:
        send(signal.SIGSTOP, new)
        stopped |= new
    return stopped


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """Send a signal to processes, some of which may be gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def memory(pids: Iterable[int]) -> dict[int | str, int]:
    """{number in /proc: bytes of memory at most} of those processes that have not ended."""
    return dict(filter(None, map(_held, pids)))


def excess(sandbox: layers.Sandbox, born: int) -> str | None:
    """What a submission uses too much of: "processes", "memory", "descriptors", "disk", or None.

    born: bytes that its first process shared with the one that it was forked from.
    """
    pids = members(sandbox)
    if len(pids) > layers.PROCESSES:
        return "processes"
    with _as_user(sandbox.user):
        held = memory(pids)
        if sum(held.values()) > layers.MEMORY + born and _measured(sandbox) > layers.MEMORY:
            return "memory"
        opened = list(map(_opened, held))
        deleted = sum(map(_deleted, opened))
    if sum(layers.OPEN_FILES if files is None else len(files) for files in opened) > DESCRIPTORS:
        return "descriptors"
    if "namespaces" not in sandbox.layers and _on_disk(sandbox.scratch) + deleted > layers.SCRATCH:
        return "disk"
    return None


@contextlib.contextmanager
def _as_user(user: int | None) -> Iterator[None]:
    """Be the submission's user, who may look into its processes: root without all its rights may not."""
    if user is None:
        yield
        return
    os.setegid(user)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def _held(pid: int) -> tuple[int | str, int] | None:
    """(number in /proc, bytes of memory at most), None if the process has ended.  One whose first thread
    has ended is known by the number of another."""
    numbers: Iterator[int | str] = itertools.chain([pid], _threads(pid))
    for number in numbers:
        at_most = _numbers(AT_MOST, f"/proc/{number}/status")
        if at_most:
            return number, at_most
    return None


def _threads(pid: int) -> Iterator[str]:
    with contextlib.suppress(OSError):
        yield from os.listdir(f"/proc/{pid}/task")


def _measured(sandbox: layers.Sandbox) -> int:
    """Bytes of memory of all processes, a page divided by the number of those that have it.  One that can't
    be looked into counts in full."""
    stopped = at_rest(sandbox)  # else what ends meanwhile would count for those that are left, too
    try:
        return sum(_numbers(SHARED_OUT, f"/proc/{number}/smaps_rollup") or at_most
                   for number, at_most in memory(stopped).items())
    finally:
        send(signal.SIGCONT, stopped)


def _numbers(pattern: re.Pattern[bytes], path: str) -> int:
    """The sum in bytes of the kilobytes that a file in /proc tells."""
    try:
        with open(path, "rb") as file:
            return 1024 * sum(map(int, pattern.findall(file.read())))
    except OSError:
        return 0


def _opened(number: int | str) -> list[str] | None:
    """The open files of a process as paths in /proc, None if they can't be listed."""
    folder = f"/proc/{number}/fd"
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:
        return None


def _deleted(files: Sequence[str] | None) -> int:
    """Bytes of the open files that are deleted.  Of one that can't be listed: all that it could have open."""
    if files is None:
        return layers.OPEN_FILES * layers.FILE
    total = 0
    for path in files:
        with contextlib.suppress(OSError):
            file = os.stat(path)
            total += file.st_blocks * 512 * (stat.S_ISREG(file.st_mode) and file.st_nlink == 0)
    return total


def _on_disk(scratch: str) -> int:
    """Bytes in the scratch folder, however deep or closed."""
    layers.run_silently("chmod", "-R", "u+rwx", scratch)
    printed = layers.run_silently("du", "-sk", scratch).split()
    return 1024 * int(printed[0]) if printed else 0

"""A control group (cgroup v2) for the submissions of a supervisor, where the grader may create one.

In it the kernel itself counts all memory, including what it uses on behalf of a process (sockets, pipes,
locks), and divides the processor among submissions, however many processes each of them has.
"""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

PREFIX = "course-submission-"
CONTROLLERS = {"memory", "cpu"}


def place(mounts: str = "/proc/self/mountinfo", membership: str = "/proc/self/cgroup") -> str | None:
    """The path of the nearest group that hands one of CONTROLLERS on to the groups made in it; None if there
    is none that this user may make groups in.  No group of others is changed."""
    with contextlib.suppress(OSError, StopIteration, ValueError):
        with open(mounts) as file:
            root, top = next(line.split()[3:5] for line in file if " - cgroup2 " in line)
        with open(membership) as file:
            path = next(line[3:].strip() for line in file if line.startswith("0::"))
        inner = Path(path).relative_to(root)
        for group in [] if ".." in inner.parts else [Path(top, inner), *Path(top, inner).parents]:
            if not group.is_relative_to(top):
                break
            if os.access(group, os.W_OK) and CONTROLLERS & set(_read(group, "cgroup.subtree_control")):
                return str(group)
    return None


class Group:
    """A new group in the group at `parent`.  It is locked by this process and those forked from it, and
    who finds it unlocked removes it (`clean`).  Raises OSError."""

    def __init__(self, parent: str, memory: int) -> None:
        self.name = f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        with _locked(parent):
            _clean(parent)
            os.mkdir(os.path.join(parent, self.name))
            self.parent = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)  # still reached from another root
            self.folder = os.open(self.name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.parent)
            fcntl.flock(self.folder, fcntl.LOCK_EX)
        for limit, value in (("memory.max", memory), ("memory.swap.max", 0), ("memory.oom.group", 1)):
            with contextlib.suppress(FileNotFoundError):  # a controller that is not handed on
                self._write(limit, value)
        self.killed = self._killed()

    def join(self) -> None:
        """Go on in the group.  Raises OSError if that does not hold."""
        self._write("cgroup.procs", 0)
        with open("/proc/self/cgroup") as file:
            if self.name not in file.read():
                raise OSError("still outside")

    def ran_out(self) -> bool:
        """Whether a process in the group was killed for lack of memory since the last call."""
        before, self.killed = self.killed, self._killed()
        return self.killed > before

    def remove(self) -> None:
        """Remove the group, which nobody is in any more."""
        with contextlib.suppress(OSError):
            os.rmdir(self.name, dir_fd=self.parent)
        for descriptor in (self.folder, self.parent):
            os.close(descriptor)

    def _killed(self) -> int:
        with contextlib.suppress(OSError):
            words = _read("", "memory.events", self.folder)
            return int(words[words.index("oom_kill") + 1])
        return 0

    def _write(self, name: str, value: int) -> None:
        descriptor = os.open(name, os.O_WRONLY, dir_fd=self.folder)
        try:
            os.write(descriptor, str(value).encode())
        finally:
            os.close(descriptor)


def clean(parent: str) -> None:
    """Remove the groups left behind by processes that were killed."""
    with contextlib.suppress(OSError), _locked(parent):
        _clean(parent)


def _clean(parent: str) -> None:
    for name in os.listdir(parent):
        if name.startswith(PREFIX):
            path = os.path.join(parent, name)
            with contextlib.suppress(OSError), _locked(path, fcntl.LOCK_NB):
                os.rmdir(path)  # refused while a process is in it


@contextlib.contextmanager
def _locked(folder: str, how: int = 0) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | how)
        yield
    finally:
        os.close(descriptor)


def _read(folder: str | Path, name: str, folder_descriptor: int | None = None) -> list[str]:
    """The words of a file of a group."""
    with open(os.open(os.path.join(folder, name), os.O_RDONLY, dir_fd=folder_descriptor)) as file:
        return file.read().split()

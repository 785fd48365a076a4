"""System calls of Linux that Python does not provide.  Each raises OSError if the kernel refuses."""

import ctypes
import os
import signal
import struct
from typing import Any

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000,
                                                  0x40000000)
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 2, 4, 4096, 16384, 1 << 18, 2
MOUNT_SETATTR, RDONLY, AT_EMPTY_PATH, AT_RECURSIVE = 442, 1, 0x1000, 0x8000
PDEATHSIG, DUMPABLE, SECCOMP, CHILD_SUBREAPER, NO_NEW_PRIVS = 1, 4, 22, 36, 38

_libc = ctypes.CDLL(None, use_errno=True)


def _done(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def syscall(*arguments: int | bytes | None) -> int:
    """Call a system call by its number."""
    return _done(_libc.syscall(*(ctypes.c_long(part) if isinstance(part, int) else part
                                 for part in arguments)))


def unshare(flags: int) -> None:
    _done(_libc.unshare(ctypes.c_int(flags)))


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0, data: str | None = None
          ) -> None:
    texts = [None if part is None else os.fsencode(part) for part in (source, target, kind, data)]
    _done(_libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]))


def read_only(tree: str) -> None:
    """Make all mounts under `tree` read-only, without devices and set-user-id.  Linux 5.12"""
    attributes = struct.pack("=4Q", RDONLY | MS_NOSUID | MS_NODEV, 0, 0, 0)
    folder = os.open(tree, os.O_PATH)
    syscall(MOUNT_SETATTR, folder, b"", AT_EMPTY_PATH | AT_RECURSIVE, attributes, len(attributes))
    os.close(folder)


def enter_root(tree: str) -> None:
    """Make the mount at `tree` the root, and detach all other mounts."""
    os.chdir(tree)
    _done(_libc.pivot_root(b".", b"."))
    _done(_libc.umount2(b".", MNT_DETACH))
    os.chdir("/")


def prctl(option: int, value: int, more: Any = 0) -> None:
    _done(_libc.prctl(ctypes.c_int(option), *(ctypes.c_ulong(part) if isinstance(part, int) else part
                                             for part in (value, more, 0, 0))))


def hide_memory() -> None:
    """Keep this process's memory, environment and open files from other processes of its user, and from
    tracing by them.  A process that is forked is hidden too; one that is executed has to ask anew."""
    prctl(DUMPABLE, 0)


def die_with_parent() -> None:
    """Be killed when the process that forked this one ends."""
    prctl(PDEATHSIG, signal.SIGKILL)


def drop_capabilities() -> None:
    header, nothing = struct.pack("=Ii", 0x20080522, 0), bytes(24)  # version 3, this process
    _done(_libc.capset(header, nothing))


def set_filter(program: bytes) -> None:
    """Apply a seccomp filter to this thread and all that it starts."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
    prctl(SECCOMP, 2, ctypes.byref(Program(len(program) // 8, program)))

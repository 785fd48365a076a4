"""Landlock, a security module of Linux: a process gives up rights for itself and all that it starts."""

import os
import struct

from . import syscalls

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REFER, TRUNCATE, IOCTL_DEV = 1, 2, 4, 8, 1 << 13, 1 << 14, 1 << 15


class Landlock:
    """The files that this process and all that it starts may access; all others cannot even be read.

    From ABI 4 on no TCP either, from ABI 6 on no signals to processes outside and none of their abstract
    sockets.  scoped: whether signals are held back.
    """

    def __init__(self) -> None:
        self.abi = syscalls.syscall(CREATE_RULESET, None, 0, 1)
        self.scoped = self.abi >= 6
        self.handled = (1 << 13) - 1 | (REFER if self.abi > 1 else 0) | (TRUNCATE if self.abi > 2 else 0) | (
            IOCTL_DEV if self.abi > 4 else 0)
        attributes = struct.pack("=3Q", self.handled, 3 if self.abi > 3 else 0, 3 if self.scoped else 0)
        size = 24 if self.scoped else 16 if self.abi > 3 else 8
        self.ruleset = syscalls.syscall(CREATE_RULESET, attributes, size, 0)

    def allow(self, path: str, rights: int) -> None:
        """Allow these rights on a file, or on a folder and all beneath it.

        A link allows nothing, because it may lead anywhere; missing files are ignored.
        """
        if os.path.islink(path):
            return
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return
        if not os.path.isdir(path):
            rights &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
        try:
            syscalls.syscall(ADD_RULE, self.ruleset, 1, struct.pack("=Qi", rights & self.handled, place), 0)
        finally:
            os.close(place)

    def enforce(self) -> None:
        syscalls.syscall(RESTRICT_SELF, self.ruleset, 0)

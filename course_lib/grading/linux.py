"""System calls of Linux that Python has no name for.  Each raises OSError where the kernel refuses."""

import ctypes
import os
import signal
import struct

NEWNS, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000,
                                                  0x40000000)
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 2, 4, 4096, 16384, 1 << 18, 2
MOUNT_SETATTR, RDONLY, AT_EMPTY_PATH, AT_RECURSIVE = 442, 1, 0x1000, 0x8000
PDEATHSIG, DUMPABLE, SECCOMP, CHILD_SUBREAPER, NO_NEW_PRIVS = 1, 4, 22, 36, 38
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # Landlock
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, REFER, TRUNCATE, IOCTL_DEV = 1, 2, 4, 8, 1 << 13, 1 << 14, 1 << 15

_libc = ctypes.CDLL(None, use_errno=True)


def _done(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _syscall(*arguments):
    return _done(_libc.syscall(*(ctypes.c_long(part) if isinstance(part, int) else part
                                 for part in arguments)))


def unshare(flags):
    _done(_libc.unshare(ctypes.c_int(flags)))


def mount(source, target, kind=None, flags=0, data=None):
    texts = [None if part is None else os.fsencode(part) for part in (source, target, kind, data)]
    _done(_libc.mount(*texts[:3], ctypes.c_ulong(flags), texts[3]))


def read_only(tree):
    """Make all mounts under `tree` read-only, without devices and set-user-id.  Linux 5.12"""
    attributes = struct.pack("=4Q", RDONLY | MS_NOSUID | MS_NODEV, 0, 0, 0)
    folder = os.open(tree, os.O_PATH)
    _syscall(MOUNT_SETATTR, folder, b"", AT_EMPTY_PATH | AT_RECURSIVE, attributes, len(attributes))
    os.close(folder)


def enter_root(tree):
    """Make the mount at `tree` the root, and let go of all that was mounted beside it."""
    os.chdir(tree)
    _done(_libc.pivot_root(b".", b"."))
    _done(_libc.umount2(b".", MNT_DETACH))
    os.chdir("/")


def prctl(option, value, more=0):
    _done(_libc.prctl(ctypes.c_int(option), *(ctypes.c_ulong(part) if isinstance(part, int) else part
                                             for part in (value, more, 0, 0))))


def hide_memory():
    """Keep this process's memory, environment and open files from other processes of its user, and from
    tracing by them.  A process that is forked is hidden too; one that is executed has to ask anew."""
    prctl(DUMPABLE, 0)


def die_with_parent():
    """Be killed when the process that forked this one ends."""
    prctl(PDEATHSIG, signal.SIGKILL)


def drop_capabilities():
    header, nothing = struct.pack("=Ii", 0x20080522, 0), bytes(24)  # version 3, this process
    _done(_libc.capset(header, nothing))


def set_filter(program):
    """Apply a seccomp filter to this thread and all that it starts."""
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
    prctl(SECCOMP, 2, ctypes.byref(Program(len(program) // 8, program)))


class Landlock:
    """Files that this process and all that it starts may reach; of the rest not even reading is left.

    From ABI 4 on no TCP either, from ABI 6 on no signals to processes outside and none of their abstract
    sockets.  scoped: whether signals are held back.
    """

    def __init__(self):
        self.abi = _syscall(CREATE_RULESET, None, 0, 1)
        self.scoped = self.abi >= 6
        self.handled = (1 << 13) - 1 | (REFER if self.abi > 1 else 0) | (TRUNCATE if self.abi > 2 else 0) | (
            IOCTL_DEV if self.abi > 4 else 0)
        attributes = struct.pack("=3Q", self.handled, 3 if self.abi > 3 else 0, 3 if self.scoped else 0)
        size = 24 if self.scoped else 16 if self.abi > 3 else 8
        self.ruleset = _syscall(CREATE_RULESET, attributes, size, 0)

    def allow(self, path, rights):
        """Allow these rights on a file, or on a folder and all beneath it.

        A link allows nothing, for it may lead anywhere; what is gone is left out.
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
            _syscall(ADD_RULE, self.ruleset, 1, struct.pack("=Qi", rights & self.handled, place), 0)
        finally:
            os.close(place)

    def enforce(self):
        _syscall(RESTRICT_SELF, self.ruleset, 0)

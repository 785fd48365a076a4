"""Namespaces: separate processes, mounts, network and IPC, and a file system with only what may be seen.
"""

import contextlib
import os
from collections.abc import Iterable

from . import syscalls

BASE = "/sys"  # the new file system is put together here: a folder that is always there and never needed
INNER = syscalls.NEWNS | syscalls.NEWPID | syscalls.NEWNET | syscalls.NEWIPC | syscalls.NEWUTS


def separate() -> None:
    """Continue as the first process of new namespaces, in which nothing outlives it; the caller's process
    only waits for its end."""
    user, group = os.geteuid(), os.getegid()
    try:
        syscalls.unshare(INNER)
    except PermissionError:  # not root, or a root without rights: first a user namespace
        syscalls.unshare(INNER | syscalls.NEWUSER)
        syscalls.prctl(syscalls.DUMPABLE, 1)  # else its own settings in /proc are not its own
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"),
                           ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        syscalls.hide_memory()
    first = os.fork()
    if first:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(first, 0)
        os._exit(0)


def new_root(whole: Iterable[str], devices: Iterable[str], scratch: str, hidden: Iterable[str] = ()) -> None:
    """See only `whole` (read-only) without what is `hidden` in it, `devices`, this namespace's /proc, and the
    empty folder `scratch`."""
    syscalls.mount(None, "/", flags=syscalls.MS_REC | syscalls.MS_PRIVATE)
    syscalls.mount("tmpfs", BASE, "tmpfs", data="mode=755,size=4m")
    for path in whole:
        if not os.path.lexists(BASE + path):  # else a folder that is shown already holds it
            _place(path)
            if not os.path.islink(path):
                syscalls.mount(path, BASE + path, flags=syscalls.MS_BIND | syscalls.MS_REC)
    for path in hidden:
        if os.path.isdir(BASE + path):
            syscalls.mount("tmpfs", BASE + path, "tmpfs", data="mode=0,size=4k")
        elif os.path.exists(BASE + path):
            syscalls.mount("/dev/null", BASE + path, flags=syscalls.MS_BIND)
    for path in devices:
        _place(path)
    for path in ("/proc", scratch):
        os.makedirs(BASE + path)
    for usual in ("/tmp", "/var/tmp", "/dev/shm"):
        with contextlib.suppress(FileExistsError):  # something to read lies beneath it
            os.makedirs(BASE + os.path.dirname(usual), exist_ok=True)
            os.symlink(scratch, BASE + usual)
    syscalls.read_only(BASE)
    for path in devices:
        syscalls.mount(path, BASE + path, flags=syscalls.MS_BIND)
    syscalls.mount("proc", BASE + "/proc", "proc", syscalls.MS_NOSUID | syscalls.MS_NODEV)
    syscalls.enter_root(BASE)


def own_scratch(scratch: str, size: int, files: int, user: int | None) -> None:
    """An empty folder in memory over `scratch`, of limited size, that is gone with its last process; and
    nothing of the system's settings in /proc can be written."""
    syscalls.unshare(syscalls.NEWNS | syscalls.NEWIPC)
    syscalls.read_only("/proc")
    owner = f",uid={user},gid={user}" if user is not None else ""
    syscalls.mount("tmpfs", scratch, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV,
                f"mode=700,size={size},nr_inodes={files}{owner}")


def _place(path: str) -> None:
    """The empty file or folder that `path` is mounted on; a link stays one."""
    os.makedirs(BASE + os.path.dirname(path), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), BASE + path)
    elif os.path.isdir(path):
        os.makedirs(BASE + path, exist_ok=True)
    else:
        open(BASE + path, "a").close()

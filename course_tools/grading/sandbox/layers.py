"""The layers of the sandbox around a submission, as many as this machine offers (selftest.py tries them).

namespaces   own processes, network, IPC; a file system that holds only what may be read
Landlock     the same files, by another part of the kernel; no TCP, no signals to others
own user     when the grader is root: a user of its own without rights, so that processes can be counted
seccomp      no network, no access to other processes, no system administration
cgroup       memory counted by the kernel, the processor divided fairly (cgroups.py)
limits       memory, processor time, processes, file sizes, open files: always, and watched (usage.py)

A supervisor is a process that starts submissions, one after the other, each in a process forked from it.
"""

import os
import resource
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

import psutil

from . import cgroups, landlock, namespaces, policy, seccomp, syscalls

LAYERS = ("namespaces", "Landlock", "own user", "seccomp", "cgroup")
MEMORY = 2 << 30  # bytes beyond what Python and torch take
SECONDS = 600  # of processor time
PROCESSES = 64  # and threads
FILE, SCRATCH, FILES = 64 << 20, 128 << 20, 4096  # bytes of a file, of all in the scratch folder; how many
OPEN_FILES = 256
FIRST_USER = 64000  # no system gives these numbers to people


class Refused(Exception):
    """The kernel refuses a layer: args[0] of `LAYERS`."""


@contextmanager
def layer(name: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, AttributeError) as problem:
        raise Refused(name) from problem


class Sandbox:
    """layers: those of `LAYERS` in force.  paths: what may be read, from `policy.paths`.

    `begin` is called once in a supervisor, `confine` in each process forked from it.  scratch: the folder
    that a submission may write to.
    """

    def __init__(self, layers: Sequence[str], paths: policy.Paths) -> None:
        self.layers, self.paths, self.scratch, self.processes = layers, paths, "", PROCESSES
        self.user: int | None = None
        self.rules: landlock.Landlock | None = None
        self.group: cgroups.Group | None = None

    def __str__(self) -> str:
        return ", ".join([*self.layers, "limits"]) if self.layers else "limits only"

    def begin(self) -> None:
        """Set up what all submissions of a supervisor share.  With namespaces it returns in a new process."""
        syscalls.hide_memory()
        if "own user" in self.layers:
            self.user = FIRST_USER + os.getpid() % 1000
        if "cgroup" in self.layers:
            with layer("cgroup"):
                parent = cgroups.place()
                if parent is None:
                    raise OSError("no group to make one in")
                self.group = cgroups.Group(parent, MEMORY + SCRATCH)
        if "namespaces" in self.layers:
            self.scratch = "/scratch/work"
            with layer("namespaces"):
                namespaces.separate()
                namespaces.new_root(self.paths.shown, policy.DEVICES, self.scratch, self.paths.hidden)
        else:
            syscalls.prctl(syscalls.CHILD_SUBREAPER, 1)
            self.scratch = os.path.join(tempfile.mkdtemp(prefix="course-scratch-"), "work")
            os.chmod(os.path.dirname(self.scratch), 0o711)
            if self.user is None:  # the kernel counts this user's other processes too
                self.processes += _threads_of(os.getuid())
        if "Landlock" in self.layers:
            with layer("Landlock"):
                self._allow(self.paths.readable, self.paths.listed)
        os.environ.update({"HOME": self.scratch, "TMPDIR": self.scratch, "MPLCONFIGDIR": self.scratch,
                           "IPYTHONDIR": os.path.join(self.scratch, ".ipython"), "USER": "student"})
        tempfile.tempdir = None

    def end(self) -> None:
        """Remove what a supervisor leaves behind."""
        if self.group:
            self.group.remove()
        if self.scratch and "namespaces" not in self.layers:
            remove_folder(os.path.dirname(self.scratch))

    def _allow(self, readable: Iterable[str], listed: Iterable[str]) -> None:
        self.rules, read = landlock.Landlock(), landlock.EXECUTE | landlock.READ_FILE | landlock.READ_DIR
        for path in readable:
            self.rules.allow(path, read)
        for path in listed:
            self.rules.allow(path, landlock.READ_DIR)
        for path in policy.DEVICES:
            self.rules.allow(path, landlock.READ_FILE | landlock.WRITE_FILE * (path == os.devnull))
        for path in ["/proc"] if "namespaces" in self.layers else policy.SYSTEM_FACTS:
            self.rules.allow(path, read)
        self.rules.allow(os.path.dirname(self.scratch), self.rules.handled)

    def confine(self) -> None:
        """Put this process into the sandbox.  This cannot be undone."""
        if self.group:
            with layer("cgroup"):
                self.group.join()
        os.setsid()
        syscalls.prctl(syscalls.DUMPABLE, 1)  # it has no secrets now, and the supervisor looks into it
        with suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # if memory runs out, it is this that must go
        if "namespaces" in self.layers:
            with layer("namespaces"):
                namespaces.own_scratch(self.scratch, SCRATCH, FILES, self.user)
        else:
            os.mkdir(self.scratch, 0o700)
            os.chown(self.scratch, -1 if self.user is None else self.user, -1)
        os.chdir(self.scratch)
        if self.user is not None:
            with layer("own user"):
                os.setgroups([])
                os.setresgid(self.user, self.user, self.user)
                os.setresuid(self.user, self.user, self.user)
                syscalls.prctl(syscalls.DUMPABLE, 1)
        syscalls.die_with_parent()
        syscalls.drop_capabilities()
        self._limit()
        syscalls.prctl(syscalls.NO_NEW_PRIVS, 1)
        if self.rules:
            with layer("Landlock"):
                self.rules.enforce()
        if "seccomp" in self.layers:
            with layer("seccomp"):
                signals_held = "namespaces" in self.layers or self.rules and self.rules.scoped
                syscalls.set_filter(seccomp.program(hold_signals=not signals_held))

    def _limit(self) -> None:
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        for kind, limit in ((resource.RLIMIT_AS, used + MEMORY), (resource.RLIMIT_CPU, SECONDS),
                           (resource.RLIMIT_NPROC, self.processes), (resource.RLIMIT_FSIZE, FILE),
                           (resource.RLIMIT_NOFILE, OPEN_FILES), (resource.RLIMIT_CORE, 0),
                           (resource.RLIMIT_MSGQUEUE, 0)):
            hard = resource.getrlimit(kind)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (limit, limit))


def remove_folder(folder: str) -> None:
    """Remove a folder with all that a submission may have put there, however deep or closed."""
    if os.path.lexists(folder):
        run_silently("chmod", "-R", "u+rwx", folder)
        run_silently("rm", "-rf", folder)


def run_silently(*command: str) -> bytes:
    """Run a command.  Returns what it prints to standard output, as bytes."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def _threads_of(user: int) -> int:
    return sum(process.info["num_threads"] or 0 for process in psutil.process_iter(["uids", "num_threads"])
               if process.info["uids"] and process.info["uids"].real == user)

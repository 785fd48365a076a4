"""The walls around a submission, as many as this machine offers (`layers.best` tries them).

namespaces   own processes, network, IPC; a file system that holds only what may be read
Landlock     the same files, by another part of the kernel; no TCP, no signals to others
own user     when the grader is root: a user of its own without rights, so that processes can be counted
seccomp      no network, no look into other processes, no system administration
cgroup       memory counted by the kernel, the processor shared out fairly (cgroups.py)
limits       memory, processor time, processes, file sizes, open files: always, and watched (usage.py)

A lane is a process that starts submissions, one after the other, each in a process forked from it.
"""

import os
import resource
import subprocess
import tempfile
from contextlib import contextmanager, suppress

import psutil

from . import cgroups, linux, namespaces, reach, seccomp

LAYERS = ("namespaces", "Landlock", "own user", "seccomp", "cgroup")
MEMORY = 2 << 30  # bytes beyond what Python and torch take
SECONDS = 600  # of processor time
PROCESSES = 64  # and threads
FILE, SCRATCH, FILES = 64 << 20, 128 << 20, 4096  # bytes of a file, of all in the scratch folder; how many
OPEN_FILES = 256
FIRST_USER = 64000  # no system gives these numbers to people


class Refused(Exception):
    """The kernel does not grant a layer: args[0] of `LAYERS`."""


@contextmanager
def layer(name):
    try:
        yield
    except (OSError, ValueError, TypeError, AttributeError) as problem:
        raise Refused(name) from problem


class Sandbox:
    """layers: those of `LAYERS` in force.  private: paths out of reach wherever they lie.

    `begin` is called once in a lane, `confine` in each process forked from it.  scratch: the folder
    that a submission may write to.
    """

    def __init__(self, layers, private=()):
        self.layers, self.private = layers, private
        self.user, self.rules, self.scratch, self.processes = None, None, None, PROCESSES
        self.group = None

    def __str__(self):
        return ", ".join([*self.layers, "limits"]) if self.layers else "limits only"

    def begin(self):
        """Set up what all submissions of a lane share.  Returns in another process than it was called in."""
        linux.hide_memory()
        hidden = reach.hidden()
        whole, _ = reach.readable(self.private)
        rules = reach.readable([*self.private, *hidden]) if "Landlock" in self.layers else None
        self.private = ()  # a submission could read them here
        if "own user" in self.layers:
            self.user = FIRST_USER + os.getpid() % 1000
        if "cgroup" in self.layers:
            with layer("cgroup"):
                self.group = cgroups.Group(cgroups.place(), MEMORY + SCRATCH)
        if "namespaces" in self.layers:
            self.scratch = "/scratch/work"
            with layer("namespaces"):
                namespaces.separate()
                namespaces.new_root(whole, reach.DEVICES, self.scratch, hidden)
        else:
            linux.prctl(linux.CHILD_SUBREAPER, 1)
            self.scratch = os.path.join(tempfile.mkdtemp(prefix="course-scratch-"), "work")
            os.chmod(os.path.dirname(self.scratch), 0o711)
            if self.user is None:  # the kernel counts this user's other processes too
                self.processes += _threads_of(os.getuid())
        if "Landlock" in self.layers:
            with layer("Landlock"):
                self._allow(*rules)
        os.environ.update({"HOME": self.scratch, "TMPDIR": self.scratch, "MPLCONFIGDIR": self.scratch,
                           "IPYTHONDIR": os.path.join(self.scratch, ".ipython"), "USER": "student"})
        tempfile.tempdir = None

    def end(self):
        """Remove what a lane leaves behind."""
        if self.group:
            self.group.remove()
        if self.scratch and "namespaces" not in self.layers:
            empty(os.path.dirname(self.scratch))

    def _allow(self, whole, parts):
        self.rules, read = linux.Landlock(), linux.EXECUTE | linux.READ_FILE | linux.READ_DIR
        for path in whole:
            self.rules.allow(path, read)
        for path in parts:
            self.rules.allow(path, linux.READ_DIR)
        for path in reach.DEVICES:
            self.rules.allow(path, linux.READ_FILE | linux.WRITE_FILE * (path == os.devnull))
        for path in ["/proc"] if "namespaces" in self.layers else reach.NUMBERS:
            self.rules.allow(path, read)
        self.rules.allow(os.path.dirname(self.scratch), self.rules.handled)

    def confine(self):
        """Put up the walls around this process.  From here on nothing can be taken back."""
        if self.group:
            with layer("cgroup"):
                self.group.join()
        os.setsid()
        linux.prctl(linux.DUMPABLE, 1)  # from here on it holds nothing to be kept; the lane looks into it
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
                linux.prctl(linux.DUMPABLE, 1)
        linux.die_with_parent()
        linux.drop_capabilities()
        self._limit()
        linux.prctl(linux.NO_NEW_PRIVS, 1)
        if self.rules:
            with layer("Landlock"):
                self.rules.enforce()
        if "seccomp" in self.layers:
            with layer("seccomp"):
                inside = "namespaces" in self.layers or self.rules and self.rules.scoped
                linux.set_filter(seccomp.program(hold_signals=not inside))

    def _limit(self):
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        for kind, most in ((resource.RLIMIT_AS, used + MEMORY), (resource.RLIMIT_CPU, SECONDS),
                           (resource.RLIMIT_NPROC, self.processes), (resource.RLIMIT_FSIZE, FILE),
                           (resource.RLIMIT_NOFILE, OPEN_FILES), (resource.RLIMIT_CORE, 0),
                           (resource.RLIMIT_MSGQUEUE, 0)):
            hard = resource.getrlimit(kind)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(kind, (most, most))


def empty(folder):
    """Remove a folder with all that a submission may have put there, however deep or closed."""
    if os.path.lexists(folder):
        quietly("chmod", "-R", "u+rwx", folder)
        quietly("rm", "-rf", folder)


def quietly(*command):
    """Run a command; what it prints."""
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def _threads_of(user):
    return sum(process.info["num_threads"] or 0 for process in psutil.process_iter(["uids", "num_threads"])
               if process.info["uids"] and process.info["uids"].real == user)

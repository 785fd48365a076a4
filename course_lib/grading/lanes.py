"""The grader's side of the warm process: lanes, each with a submission's process made ahead of need.

Light to import, so that the warm process can start before the grader itself imports torch.
"""

import atexit
import collections
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile

from . import GradingError, frames, limits, linux
from .reach import environment, without_its_user

FORKS = sys.platform == "linux" and hasattr(os, "pidfd_open")
LANES = 2  # while one grades, another makes the next submission's process ready
BEGIN = 120.0  # seconds at most for a warm process to import torch
LEAVE = 15.0  # seconds at most for a submission's process to be ended


class Unavailable(Exception):
    """No kernel can be forked on this machine."""


class Warm:
    """The warm process.  private: paths out of reach of submissions.  without: layers of the sandbox to
    leave out."""

    def __init__(self, private, without):
        self.owner = os.getpid()
        linux.hide_memory()  # it holds the right answers
        settings = {"private": [os.path.abspath(path) for path in private], "without": list(without),
                    "home": os.path.expanduser("~")}  # it can forget these, but never its environment
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, limits.memory_not_inherited():
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "course_lib.grading.warm", str(theirs.fileno())], cwd="/",
                env=environment(tempfile.gettempdir()) | without_its_user(),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], start_new_session=True)
        self.control.send(json.dumps(settings).encode())

    def end(self):
        """Let it end by itself, which it does when nobody is left to ask it for anything."""
        self.control.close()
        if self.owner != os.getpid():  # a process forked from the grader
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(LEAVE)
        self.process.kill()
        self.process.wait()


class Lane:
    """A lane of the warm process: it makes a submission's process, says how it ended, makes the next."""

    def __init__(self, warm):
        self.requests = _hand_over(warm.control, socket.SOCK_SEQPACKET)
        self.line, self.sandbox, self.unheard = None, None, 0
        self.order()

    def order(self):
        """Ask for the next submission's process."""
        self.line = _hand_over(self.requests, socket.SOCK_STREAM)
        self.unheard += 1

    def await_ready(self):
        """Wait until that process is there.  Raises OSError."""
        while self.unheard > 1:
            self.ending()
        self.sandbox = frames.receive(self.line, BEGIN).decode()

    def ending(self):
        """How the last process ended, when nothing of it is left.  Raises OSError."""
        self.requests.settimeout(LEAVE)
        told = self.requests.recv(100)
        if not told:
            raise ConnectionError
        self.unheard -= 1
        return told.decode()

    def hang_up(self):
        """End the submission's process."""
        with contextlib.suppress(OSError):
            self.line.shutdown(socket.SHUT_RDWR)
        self.line.close()

    def end(self):
        self.hang_up()
        self.requests.close()


def _hand_over(through, kind):
    """A new socket, the other end of which is sent `through` another."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with theirs:
        socket.send_fds(through, [b"+"], [theirs.fileno()])
    return ours


class Lanes:
    """The lanes of this process, and the warm process that they come from."""

    def __init__(self):
        self.warm, self.made, self.idle = None, [], collections.deque()
        self.worked = None  # before it was tried
        self.settings = {"private": (), "without": ()}

    def start(self, **changes):
        """Start the warm process if none runs yet, anew if settings of `Warm` change."""
        settings = {**self.settings, **changes}
        if settings != self.settings:
            self.end()
            self.settings = settings
        if self.warm is None:
            self.warm = Warm(**self.settings)

    def take(self):
        """A lane with a submission's process that is ready.

        Raises Unavailable if there never was one, GradingError if there was and now there is none: without
        a sandbox is graded only where there can't be one.
        """
        for _ in range(3 * (self.worked is not False)):
            try:
                self.start()
                while len(self.idle) < LANES:
                    self.made.append(Lane(self.warm))
                    self.idle.append(self.made[-1])
                lane = self.idle.popleft()
                lane.await_ready()
                self.worked = True
                return lane
            except OSError:
                self.end()
        if self.worked:
            raise GradingError("the process that kernels are forked from ends again and again")
        self.worked = False
        raise Unavailable

    def give_back(self, lane):
        """Take a lane back, whose submission is hung up, and let it make the next process."""
        try:
            if "namespaces" not in lane.sandbox and lane.unheard:
                lane.ending()  # else what is still ending could reach the next submission
            lane.order()
            self.idle.append(lane)
        except OSError:
            lane.end()
            self.made.remove(lane)

    def end(self):
        """End the warm process with all its lanes."""
        self.idle.clear()
        while self.made:
            self.made.pop().end()
        if self.warm:
            self.warm.end()
        self.warm = None

    def forget(self):
        """In a process forked from the grader: the lanes are the grader's."""
        self.idle.clear()
        while self.made:
            lane = self.made.pop()
            lane.line.close()
            lane.requests.close()


lanes = Lanes()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lanes.forget)
atexit.register(lanes.end)


def prepare(**settings):
    """Start the warm process, if this machine can have one: it imports torch while the grader does."""
    if FORKS:
        with contextlib.suppress(OSError):
            lanes.start(**settings)


def kernel():
    """A kernel for one submission: forked if that can be done here, otherwise one of Jupyter's."""
    if FORKS:
        from .forked import ForkedKernel
        with contextlib.suppress(Unavailable):
            return ForkedKernel()
    from .kernel import Kernel
    return Kernel()

"""The grader's side of the fork server: its supervisors, each with a process for the next submission.

This module is quick to import, so that the fork server can start before the grader itself imports torch.
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

from .. import GradingError, limits
from ..sandbox import syscalls
from ..sandbox.policy import environment, without_user_folders
from . import protocol

SUPERVISORS = 2  # while the process of one is graded, another makes the next submission's process ready
START_SECONDS = 120.0  # at most for a fork server to import torch
END_SECONDS = 15.0  # at most for a submission's process to be ended


class Unavailable(Exception):
    """No kernel can be forked on this machine."""


class ForkServer:
    """The fork server's process.  private: paths out of reach of submissions.  without: layers of the sandbox
    to leave out."""

    def __init__(self, private, without):
        self.owner = os.getpid()
        syscalls.hide_memory()  # it holds the right answers
        settings = {"private": [os.path.abspath(path) for path in private], "without": list(without),
                    "home": os.path.expanduser("~")}  # it can forget these, but never its environment
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, limits.memory_not_inherited():
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "course_tools.grading.kernels.fork_server",
                 str(theirs.fileno())],
                cwd="/", env=environment(tempfile.gettempdir()) | without_user_folders(),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], start_new_session=True)
        self.control.send(json.dumps(settings).encode())

    def end(self):
        """Let it end by itself, which it does when nobody is connected any more."""
        self.control.close()
        if self.owner != os.getpid():  # a process forked from the grader
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        self.process.kill()
        self.process.wait()


class Supervisor:
    """A supervisor of the fork server: it forks a submission's process and reports how that ended.

    requests: where it is asked for processes.  connection: to the process that it forked last.
    """

    def __init__(self, server):
        self.requests = _send_socket(server.control, socket.SOCK_SEQPACKET)
        self.connection, self.sandbox = None, None
        self.running = 0  # processes that are not reported as ended
        self.request_process()

    def request_process(self):
        """Ask for the next submission's process."""
        self.connection = _send_socket(self.requests, socket.SOCK_STREAM)
        self.running += 1

    def await_ready(self):
        """Wait until that process is there.  Raises OSError."""
        while self.running > 1:
            self.ending()
        self.sandbox = protocol.receive(self.connection, START_SECONDS).decode()

    def ending(self):
        """How the last process ended, when nothing of it is left.  Raises OSError."""
        self.requests.settimeout(END_SECONDS)
        report = self.requests.recv(100)
        if not report:
            raise ConnectionError
        self.running -= 1
        return report.decode()

    def disconnect(self):
        """End the submission's process."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    def end(self):
        self.disconnect()
        self.requests.close()


def _send_socket(through, kind):
    """A new socket, the other end of which is sent `through` another."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    with theirs:
        socket.send_fds(through, [b"+"], [theirs.fileno()])
    return ours


class SupervisorPool:
    """The supervisors of this process, and the fork server that they come from."""

    def __init__(self):
        self.server, self.made, self.idle = None, [], collections.deque()
        self.worked = None  # before it was tried
        self.settings = {"private": (), "without": ()}

    def start(self, **changes):
        """Start the fork server if none runs yet, anew if settings of `ForkServer` change."""
        settings = {**self.settings, **changes}
        if settings != self.settings:
            self.end()
            self.settings = settings
        if self.server is None:
            self.server = ForkServer(**self.settings)

    def acquire(self):
        """A supervisor with a submission's process that is ready.

        Raises Unavailable if there never was one, GradingError if there was and now there is none: a
        submission runs without a sandbox only where there can't be one.
        """
        for _ in range(3 * (self.worked is not False)):
            try:
                self.start()
                while len(self.idle) < SUPERVISORS:
                    self.made.append(Supervisor(self.server))
                    self.idle.append(self.made[-1])
                supervisor = self.idle.popleft()
                supervisor.await_ready()
                self.worked = True
                return supervisor
            except OSError:
                self.end()
        if self.worked:
            raise GradingError("the fork server ends again and again")
        self.worked = False
        raise Unavailable

    def release(self, supervisor):
        """Take a supervisor back, whose submission is disconnected, and let it make the next process."""
        try:
            if "namespaces" not in supervisor.sandbox and supervisor.running:
                supervisor.ending()  # else what is still ending could reach the next submission
            supervisor.request_process()
            self.idle.append(supervisor)
        except OSError:
            supervisor.end()
            self.made.remove(supervisor)

    def end(self):
        """End the fork server with all its supervisors."""
        self.idle.clear()
        while self.made:
            self.made.pop().end()
        if self.server:
            self.server.end()
        self.server = None

    def close_inherited(self):
        """In a process forked from the grader: the supervisors are the grader's."""
        self.idle.clear()
        while self.made:
            supervisor = self.made.pop()
            supervisor.connection.close()
            supervisor.requests.close()


supervisors = SupervisorPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=supervisors.close_inherited)
atexit.register(supervisors.end)


def prepare(**settings):
    """Start the fork server with these settings of `ForkServer`, if it can be started."""
    with contextlib.suppress(OSError):
        supervisors.start(**settings)

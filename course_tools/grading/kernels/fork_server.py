"""The fork server: it imports torch, NumPy and IPython once, and forks processes that have them.

    grader -- fork server -- supervisor -- submission    python -m ...fork_server DESCRIPTOR

The grader asks the fork server for supervisors.  A supervisor sets up a sandbox and starts submissions in
it, one after the other: each is a process of its own, forked when nothing of the last one is left.  The
supervisor watches what it uses, and reports to the grader how it ended.  All of it ends with the grader: a
supervisor ends what it started when the grader closes the connection, and what a supervisor that was killed
left behind falls to the fork server, which ends it.
"""

import contextlib
import json
import os
import select
import signal
import socket
import sys
import time

from .. import limits
from ..sandbox import cgroups, policy, selftest, supervisor, syscalls
from . import protocol

POLL_MILLISECONDS = 1000  # between two looks for what a killed supervisor left behind
END_SECONDS = 10.0  # at most for supervisors to end by themselves


def main(descriptor):
    """Serve the grader at the other end of a socket: first its settings, then requests for supervisors."""
    syscalls.hide_memory()
    control = socket.socket(fileno=descriptor)
    settings = json.loads(control.recv(1 << 16))
    shell = _import_all()
    os.environ["HOME"] = settings.pop("home")  # until a supervisor has its own
    sandbox = selftest.best(policy.paths(settings.pop("private")), settings.pop("without"))
    syscalls.prctl(syscalls.CHILD_SUBREAPER, 1)
    supervisors = set()
    while descriptor := _next_request(control, supervisors):
        made = os.fork()
        if not made:
            control.close()
            _work_and_exit(supervise, shell, sandbox, socket.socket(fileno=descriptor))
        supervisors.add(made)
        os.close(descriptor)
    end = time.monotonic() + END_SECONDS
    while _end_strays(supervisors) and time.monotonic() < end:  # supervisors put away what they made
        time.sleep(0.01)
    while _end_strays(set()):
        time.sleep(0.01)
    if "cgroup" in sandbox.layers:
        cgroups.clean(cgroups.place())


def _next_request(control, supervisors):
    """The descriptor that comes with the grader's next request; None when the grader is gone."""
    ready = select.poll()
    ready.register(control, select.POLLIN)
    while not ready.poll(POLL_MILLISECONDS):
        _end_strays(supervisors)
    return _received_descriptor(control)


def _end_strays(supervisors):
    """Take note of processes that have ended, and end those that are no supervisors.

    Returns whether any are left.
    """
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitpid(-1, os.WNOHANG)[0]:
            supervisors.discard(ended)
    found = supervisor.children()
    for stray in found - supervisors:
        with contextlib.suppress(ProcessLookupError):
            os.kill(stray, signal.SIGKILL)
    return bool(found)


def _import_all():
    """What answers need, and nothing that knows a right one."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # grading needs no GPU, and one does not survive a fork
    with limits.no_collection():
        from . import shell
        return shell.make()


def supervise(shell, sandbox, requests):
    """Start a submission for each socket that comes in; report how it ended when nothing of it is left."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # then no signal from inside reaches it
    sandbox.begin()
    try:
        while descriptor := _received_descriptor(requests):
            connection = socket.socket(fileno=descriptor)
            child = os.fork()
            if not child:
                _work_and_exit(run_submission, shell, sandbox, connection)
            ending = supervisor.wait_for_end(child, connection, sandbox)
            supervisor.end_all_processes(sandbox)
            connection.close()
            requests.send(ending.encode())
    finally:
        supervisor.end_all_processes(sandbox)
        sandbox.end()


def run_submission(shell, sandbox, connection):
    """Run as the process of one submission."""
    from . import shell as shells
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sandbox.confine()
    os.closerange(3, connection.fileno())
    os.closerange(connection.fileno() + 1, 1024)
    shells.discard_output()
    shells.warm_up(shell)
    protocol.send(connection, str(sandbox).encode())
    shells.serve(shell, connection)


def _received_descriptor(requests):
    """The descriptor that comes with the next request; None when the grader is gone."""
    descriptors = socket.recv_fds(requests, 1, 1)[1]
    return descriptors[0] if descriptors else None


def _work_and_exit(work, *arguments):
    """Do this work, then end the process, whatever happens."""
    try:
        work(*arguments)
    finally:
        os._exit(0)


if __name__ == "__main__":
    _work_and_exit(main, int(sys.argv[1]))

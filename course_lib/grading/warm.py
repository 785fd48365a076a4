"""A warm process: it has imported torch, NumPy and IPython once, and forks from there.

    grader -- warm -- lane -- submission        python -m course_lib.grading.warm DESCRIPTOR

The grader asks the warm process for lanes.  A lane has a sandbox and starts submissions in it, one
after the other: each is a process of its own, forked when nothing of the last one is left.  The lane
watches over what it uses, and tells the grader how it ended.  It is all gone with the grader: a lane
ends what it started when the grader's line closes, and what a lane that was killed left behind falls to
the warm process, which ends it.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import time

LOOK = 1000  # milliseconds between two looks for what a killed lane left behind
PARTING = 10.0  # seconds at most for lanes to end by themselves


def main(descriptor):
    """Serve the grader at the other end of that socket: first its settings, then a request for each lane."""
    from . import linux
    linux.hide_memory()
    control = socket.socket(fileno=descriptor)
    settings = json.loads(control.recv(1 << 16))
    shell = _import_all()
    from . import cgroups, layers
    os.environ["HOME"] = settings.pop("home")  # until a lane has its own
    walls = layers.best(settings.pop("private"), settings.pop("without"))
    linux.prctl(linux.CHILD_SUBREAPER, 1)
    lanes = set()
    while given := _next(control, lanes):
        made = os.fork()
        if not made:
            control.close()
            _and_end(lane, shell, walls, socket.socket(fileno=given))
        lanes.add(made)
        os.close(given)
    end = time.monotonic() + PARTING
    while _left(lanes) and time.monotonic() < end:  # lanes put away what they made; then they end with this
        time.sleep(0.01)
    while _left(set()):
        time.sleep(0.01)
    if "cgroup" in walls.layers:
        cgroups.clean(cgroups.place())


def _next(control, lanes):
    """The next request of the grader; None when it is gone."""
    ready = select.poll()
    ready.register(control, select.POLLIN)
    while not ready.poll(LOOK):
        _left(lanes)
    return _sent(control)


def _left(lanes):
    """Take note of processes that have ended, end those that are no lanes.  Returns whether any are left."""
    with contextlib.suppress(ChildProcessError):
        while ended := os.waitpid(-1, os.WNOHANG)[0]:
            lanes.discard(ended)
    from . import watch
    found = watch.children()
    for stray in found - lanes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(stray, signal.SIGKILL)
    return bool(found)


def _import_all():
    """What answers need, and nothing that knows a right one."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # grading needs no GPU, and one does not survive a fork
    from . import shell
    made = shell.make()
    gc.collect()
    gc.freeze()  # what all share is not written to
    return made


def lane(shell, walls, requests):
    """Start a submission for each socket that comes in; tell how it ended when nothing of it is left."""
    from . import watch
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # then no signal from inside reaches it
    walls.begin()
    try:
        while given := _sent(requests):
            line = socket.socket(fileno=given)
            child = os.fork()
            if not child:
                _and_end(submission, shell, walls, line)
            told = watch.until_end(child, line, walls)
            watch.sweep(walls)
            line.close()
            requests.send(told.encode())
    finally:
        watch.sweep(walls)
        walls.end()


def submission(shell, walls, line):
    """Be the process of one submission."""
    from . import frames
    from . import shell as shells
    signal.signal(signal.SIGINT, signal.default_int_handler)
    walls.confine()
    os.closerange(3, line.fileno())
    os.closerange(line.fileno() + 1, 1024)
    shells.silence()
    shells.warm_up(shell)
    frames.send(line, str(walls).encode())
    shells.serve(shell, line)


def _sent(requests):
    """The descriptor that comes with the next request; None when the grader is gone."""
    given = socket.recv_fds(requests, 1, 1)[1]
    return given[0] if given else None


def _and_end(work, *arguments):
    """Do this work, and end the process then, whatever happens."""
    try:
        work(*arguments)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))

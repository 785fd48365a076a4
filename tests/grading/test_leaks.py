"""A grader that is killed, at whatever moment, leaves no process behind: no fork server, no supervisor, and
nothing that a submission started.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("kernels are forked on Linux only", allow_module_level=True)

from sandbox_layers import BY_ROOT, ordinary

from course_tools import exercise

pytestmark = pytest.mark.slow
HARM = ["import os\nos.fork()\nwhile True: pass",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        "import os\nos.fork() or os.setsid()\nwhile True: pass"]
GRADER = f"""
import json, os, sys, time
from course_tools.grading.kernels import protocol
from course_tools.grading.kernels.fork_client import supervisors
supervisors.start(without=json.loads(sys.argv[1]))
kept = []
for source in {HARM[:2]!r} if sys.argv[2] == "bombs" else {HARM[2:]!r}:
    kept.append(supervisors.acquire())
    protocol.send(kept[-1].connection, json.dumps(["0" * 16, 20, "run", source]).encode())
print(supervisors.server.process.pid, flush=True)
sys.stdin.read()
"""
# (layers left out, as an ordinary user, what the submissions do, seconds after the start or after all runs)
MOMENTS = [((), False, "bombs", ("ready", 0.4)), ((), True, "bombs", ("ready", 0.1)),
           (("namespaces",), False, "bombs", ("ready", 0.2)),
           (("namespaces", "own user"), False, "bombs", ("ready", 0.7)),
           (("namespaces", "Landlock"), True, "loops", ("ready", 0.0)),
           ((), False, "loops", ("start", 0.3)), ((), True, "loops", ("start", 2.0)),
           (("namespaces",), True, "loops", ("start", 3.5))]


def tagged(tag):
    """The numbers of the processes whose environment began with `tag`, zombies aside."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if tag in (place / "environ").read_bytes() and " Z " not in (place / "stat").read_text():
                found.append(int(place.name))
        except OSError:
            continue
    return found


@pytest.fixture
def started():
    """start(without, as an ordinary user, what) -> (a grader, the tag of all that it starts)"""
    begun = []

    def start(without, user, what):
        tag = f"/usr/course-{os.getpid()}-{len(begun)}-{time.monotonic_ns()}"
        variables = {"PYTHONPATH": str(exercise.ROOT), "PATH": f"{tag}:{os.environ['PATH']}"}
        begun.append((subprocess.Popen(
            [sys.executable, "-c", GRADER, json.dumps(without), what], text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, **variables},
            preexec_fn=ordinary if user and BY_ROOT else None), tag))
        return begun[-1][0], tag.encode()
    yield start
    for grader, tag in begun:
        grader.kill()
        for pid in tagged(tag.encode()):
            os.kill(pid, 9)


def left_after(tag, seconds):
    """What is left when so many seconds have gone by."""
    end = time.monotonic() + seconds
    while (left := tagged(tag)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def test_a_killed_grader_leaves_nothing_behind(started):
    graders = [(started(*moment[:3]), moment[3]) for moment in MOMENTS]
    for (grader, _), (since, seconds) in sorted(graders, key=lambda one: one[1] != ("start", 0.3)):
        if since == "ready":
            assert grader.stdout.readline()
        time.sleep(seconds)
        grader.kill()
    for ((_, tag), moment), (without, user, what, _) in zip(graders, MOMENTS, strict=True):
        assert left_after(tag, 20) == [], (without, user, what, moment)


@pytest.mark.parametrize("without", [(), ("namespaces",), ("namespaces", "own user")])
def test_a_supervisor_that_is_killed_leaves_nothing_behind(started, without):
    """Then the fork server ends what it left: copies that a submission forked, without a parent now."""
    grader, tag = started(without, False, "loops")
    server = int(grader.stdout.readline())
    time.sleep(0.5)
    supervisors = psutil.Process(server).children()
    assert len(supervisors) == 2 and len(tagged(tag)) > 6
    for supervisor in supervisors:
        supervisor.kill()
    end = time.monotonic() + 10
    while len(tagged(tag)) > 2 and time.monotonic() < end:
        time.sleep(0.1)
    assert sorted(tagged(tag)) == sorted([grader.pid, server])
    grader.stdin.close()
    assert grader.wait(20) == 0 and left_after(tag, 10) == []

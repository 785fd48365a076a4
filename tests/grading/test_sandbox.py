"""The sandbox: nothing outside of it can be read, changed, reached or ended, by root and by anybody else,
with every layer and with those that are left where a machine refuses some.
"""

import contextlib
import importlib.util
import json
import os
import platform
import re
import socket
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import tqdm

if sys.platform != "linux":
    pytest.skip("the sandbox is made of what Linux has", allow_module_level=True)

from sandbox_layers import BY_ROOT, OFFERED, expected, ordinary

from course_tools import grading
from course_tools.grading.sandbox import landlock, policy, seccomp, selftest, syscalls

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "sandbox_attempts.py"
USER = "own user, " * BY_ROOT
# (layers left out, grading as an ordinary user)
CONFIGURATIONS = [("", False), ("Landlock", False), ("seccomp", False), ("namespaces", False),
                  ("namespaces,own user", False), ("namespaces,Landlock,own user", False),
                  ("namespaces,Landlock,own user,seccomp", False), ("", True), ("namespaces", True)]
CONTROL = "all layers"  # left out: then every attempt must get through, or it would prove nothing

FILES = ("read", "write", "make a file", "remove", "list")  # how attempts on files and on /proc begin
CHANGES = {"change mode", "change times"}
SIGNALS = {"stop another", "end another"}
LOOKS = {"read environ of another", "read memory of another", "read files of another", "trace another",
         "read memory by system call"}
PROCESSES = {"lower the limits of another"} | SIGNALS
NETWORK = {"connect by TCP", "connect by path", "connect by abstract name", "send a datagram"}
SYSTEM = {"make shared memory that stays", "make memory that no limit counts", "make a user namespace"}




def must_hold(layers, name):
    """Whether that attempt must fail where these layers are said to be in force."""
    return (name in LOOKS  # the processes of the grader refuse, whatever the layers
            or name.startswith(FILES) and ("namespaces" in layers or "Landlock" in layers)
            or name in CHANGES and ("namespaces" in layers or "seccomp" in layers)
            or name in PROCESSES | NETWORK and ("namespaces" in layers or "seccomp" in layers)
            or name in SYSTEM and "seccomp" in layers)


def got_through(one):
    """What should have been held back."""
    return {name for name, error in one["attempts"].items()
            if error is None and must_hold(one["sandbox"], name)}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """What is to be out of reach: files, and a socket of each kind that somebody listens on."""
    folder = tmp_path_factory.mktemp("outside")
    kept = Path(tqdm.__file__).parent / "contrib"  # amid what may be read; a class could lie there as well
    secrets = {"submission": folder / "submission", "results": folder / "results",
               "check": policy.PACKAGES[1] / "items" / "lesson_01_long_term_dependency.py",
               "model": policy.PACKAGES[0] / "models" / "rnn.py",
               "training": policy.PACKAGES[0] / "training.py",
               "solution": ROOT / "solutions" / "01_long_term_dependency.ipynb",
               "exercise": ROOT / "exercises" / "01_long_term_dependency.ipynb",
               "an answer's package": Path(importlib.util.find_spec("sacrebleu").origin)}
    secrets |= {f"~/{path.name}": path for path in sorted(Path.home().iterdir())[:50] if path.is_file()}
    secrets |= {f"{library}/inner": path for library in ("lib", "lib64")  # one is a link to the other
                if (path := Path(str(kept).replace("/lib/", f"/{library}/")) / "__init__.py").exists()}
    for name in ("submission", "results"):
        secrets[name].write_text("secret")
    listeners = [socket.create_server(("127.0.0.1", 0))]
    for address in (str(folder / "socket"), f"\0course-test-{os.getpid()}"):
        listeners.append(socket.socket(socket.AF_UNIX))
        listeners[-1].bind(address)
        listeners[-1].listen()
    yield {"secrets": {name: str(path) for name, path in secrets.items()}, "folder": str(folder),
           "private": [str(kept), str(folder)], "port": listeners[0].getsockname()[1],
           "path": str(folder / "socket"), "abstract": f"course-test-{os.getpid()}"}
    for one in listeners:
        one.close()


VICTIM = """import time
from course_tools.grading.sandbox import syscalls
syscalls.hide_memory()
print("ready", flush=True)
time.sleep(300)
"""


def attempt(world, without, as_ordinary=False, refused=b""):
    """What the script tells of its attempts in such a sandbox."""
    with contextlib.ExitStack() as stack:
        victim = stack.enter_context(subprocess.Popen([sys.executable, "-c", VICTIM], stdout=subprocess.PIPE,
                                                      cwd=ROOT))
        stack.callback(victim.kill)
        victim.stdout.readline()
        own = {"victim": victim.pid, "new": f"{world['folder']}/new-{victim.pid}",
               "removable": f"{world['folder']}/removable-{victim.pid}"}
        Path(own["removable"]).touch()
        command = [sys.executable, SCRIPT, json.dumps({**world, **own}), without, refused.hex()]
        done = subprocess.run(
            command, cwd="/", timeout=60,
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
            preexec_fn=ordinary if as_ordinary and BY_ROOT else None)
        assert done.returncode == 0, done.stderr
        return {**json.loads(done.stdout), **own}


@pytest.fixture(scope="module")
def reports(world):
    """{configuration: what came of it}, all at the same time."""
    keys = [*CONFIGURATIONS, (CONTROL, False)]
    with ThreadPoolExecutor(4) as pool:
        return dict(zip(keys, pool.map(lambda key: attempt(world, *key), keys)))


def test_every_attempt_gets_through_where_there_is_no_sandbox(reports):
    held = {name for name, error in reports[CONTROL, False]["attempts"].items() if error}
    assert held <= (set() if BY_ROOT else LOOKS)


each_configuration = pytest.mark.parametrize(
    "key", CONFIGURATIONS, ids=lambda key: f"without {key[0] or 'nothing'}{' as ordinary user' * key[1]}")


@each_configuration
def test_what_is_told_holds(reports, key):
    sandbox = reports[key]["sandbox"]
    assert sandbox.replace("own user, ", "") == expected(key[0].split(","), key[1])
    assert ("own user" in sandbox) <= BY_ROOT - key[1]
    assert got_through(reports[key]) == set()
    if sandbox == "limits only":
        assert not any(reports[key]["attempts"][name] for name in ("read submission", "connect by TCP"))


@each_configuration
def test_what_answers_need_is_there(reports, key):
    assert {name: error for name, error in reports[key]["needs"].items() if error} == {}


def test_nothing_is_left_behind(reports):
    for one in reports.values():
        assert "folder" not in one or not os.path.exists(one["folder"])


def test_root_gives_its_rights_away(reports):
    users = {reports[key]["user"] for key in CONFIGURATIONS if "own user" in reports[key]["sandbox"]}
    assert 0 not in users
    if BY_ROOT and OFFERED["namespaces"]:
        assert "own user" in reports["", False]["sandbox"]


# ---------------------------------------------------------------- machines that refuse

def refusing(*numbers):
    """A filter for a machine that refuses these system calls, as containers do."""
    steps = [step for number in numbers for step in seccomp._if(seccomp.EQUAL, number, 1)]
    return b"".join([seccomp._step(seccomp.LOAD, seccomp.NUMBER), *steps,
                     seccomp._step(seccomp.RETURN, seccomp.ALLOW)])


UNSHARE = seccomp.numbers()["unshare"] if seccomp.known() else 0


@pytest.mark.skipif(not seccomp.known(), reason="no filter for this machine")
@pytest.mark.parametrize("refused, lacking", [
    ((UNSHARE,), ["namespaces"]), ((syscalls.MOUNT_SETATTR,), ["namespaces"]),
    ((landlock.CREATE_RULESET,), ["Landlock"]), ((landlock.RESTRICT_SELF,), ["Landlock"]),
    ((UNSHARE, landlock.CREATE_RULESET), ["namespaces", "Landlock"])])
def test_what_a_machine_refuses_is_not_told(world, refused, lacking):
    one = attempt(world, "", refused=refusing(*refused))
    assert one["sandbox"].replace("own user, ", "") == expected(lacking)
    assert got_through(one) == set()


SHAMS = {"Landlock": (landlock.Landlock, "enforce"), "seccomp": (syscalls, "set_filter"),
         "own user": (os, "setresuid"), "namespaces": (syscalls, "enter_root")}


@pytest.mark.parametrize("without", [[], ["namespaces"], ["Landlock"], ["seccomp"]])
@pytest.mark.parametrize("name", SHAMS)
def test_a_layer_that_says_yes_and_does_nothing_is_not_told(name, without, monkeypatch):
    before = str(selftest.best(policy.paths(()), without=without))
    monkeypatch.setattr(*SHAMS[name], lambda *arguments: None)
    after = str(selftest.best(policy.paths(()), without=without))
    assert name not in after
    assert after.replace(USER, "") == before.replace(USER, "").replace(f"{name}, ", "")


TELL_LAYERS = """from course_tools.grading.sandbox import policy, selftest, syscalls
if {sham}:
    syscalls.hide_memory = lambda: None
syscalls.hide_memory()
print(selftest.best(policy.paths(()), without=["namespaces", "Landlock", "own user", "cgroup"]))
"""


@pytest.mark.skipif(not seccomp.known(), reason="no filter for this machine")
@pytest.mark.parametrize("sham, printed", [(False, "seccomp, limits"), (True, "limits only")])
def test_a_grader_whose_memory_can_be_read_is_told(sham, printed):
    """seccomp promises no look into other processes; a file in /proc would be one."""
    done = subprocess.run([sys.executable, "-c", TELL_LAYERS.format(sham=sham)], cwd=ROOT,
                          capture_output=True, text=True, preexec_fn=ordinary if BY_ROOT else None)
    assert done.stdout == f"{printed}\n", done.stderr


@pytest.mark.parametrize("layers, careful", [
    (None, False), ("namespaces, limits", False), ("own user, Landlock, seccomp, limits", False),
    ("own user, seccomp, limits", True), ("seccomp, limits", True), ("limits only", True),
    ("none: a process of its own, time limits", True)])
def test_a_sandbox_that_keeps_no_files_protects_from_accidents_only(layers, careful):
    assert grading.caution(layers) == (grading.CAUTION if careful else None)


# ---------------------------------------------------------------- its parts

def test_what_may_be_read_holds_no_answer(tmp_path):
    whole, parts = policy.readable_paths([tmp_path])
    within = [path for path in whole if Path(path) in (ROOT, *ROOT.parents)]
    assert not within
    for name in ("solutions", "exercises", "notebooks", "tests", "course_lib/models", "course_tools/cli.py",
                 "course_lib/training.py", "course_tools/judging/judge.py", ".git"):
        path = ROOT / name
        assert not any(path == Path(one) or Path(one) in path.parents for one in whole), name


def test_a_private_folder_amid_what_may_be_read_is_cut_out(tmp_path):
    inner = Path(tqdm.__file__).parent / "contrib"
    whole, parts = policy.readable_paths([inner])
    assert str(inner) not in whole and str(inner.parent) in parts
    assert str(inner.parent / "auto.py") in whole
    assert not any(Path(one) in inner.parents for one in whole)


@pytest.mark.skipif(not seccomp.known(), reason="no filter for this machine")
def test_the_filter_is_code_that_ends():
    for hold in (False, True):
        code = list(struct.iter_unpack("=HBBI", seccomp.program(hold)))
        assert len(code) < 4096 and code[-1] == (seccomp.RETURN, 0, 0, seccomp.ALLOW)
        assert all(place + max(step[1:3]) + 1 < len(code) for place, step in enumerate(code[:-1]))


@pytest.mark.parametrize("machine, header", [("x86_64", "x86_64-linux-gnu/asm/unistd_64.h"),
                                             ("aarch64", "asm-generic/unistd.h")])
def test_the_table_of_calls_is_that_of_the_system(machine, header, monkeypatch):
    header = Path("/usr/include", header)
    if not header.exists():
        pytest.skip("no header to compare with")
    monkeypatch.setattr(platform, "machine", lambda: machine)
    listed = dict(re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", header.read_text()))
    ours = {name: str(number) for name, number in seccomp.numbers().items()}
    newer = {"open_tree_attr", "fchmodat2", "setxattrat", "removexattrat", "file_setattr"}  # than some
    assert ours.items() - listed.items() <= {(name, ours[name]) for name in newer - listed.keys()}
    assert len(ours) > 90



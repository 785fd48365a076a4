"""Control groups for submissions: made only where they are handed on, and never left behind."""

import os
import signal
import sys
import tempfile

import pytest

if sys.platform != "linux":
    pytest.skip("control groups are Linux's", allow_module_level=True)

from sandbox_layers import in_child

from course_tools.grading.sandbox import cgroups, policy, selftest

HANDED_ON = {"": "cpu memory pids", "user.slice": "pids memory", "user.slice/app.slice": "pids",
             "user.slice/app.slice/session.scope": ""}


def tree(folder, own, kind="cgroup2", root="/", handed_on=HANDED_ON):
    """The arguments of `place` on a machine with such groups."""
    for path, words in handed_on.items():
        (folder / "top" / path).mkdir(parents=True, exist_ok=True)
        (folder / "top" / path / "cgroup.subtree_control").write_text(words)
    (folder / "mounts").write_text(f"23 1 8:1 / / rw - ext4 /dev/sda rw\n"
                                   f"31 23 0:27 {root} {folder}/top rw,nosuid - {kind} cgroup rw\n")
    (folder / "own").write_text(f"4:memory:/elsewhere\n0::{own}\n")
    return folder / "mounts", folder / "own"


@pytest.mark.parametrize("own, root, nearest", [
    ("/user.slice/app.slice/session.scope", "/", "user.slice"), ("/user.slice", "/", "user.slice"),
    ("/", "/", "."), ("/docker/x/user.slice/app.slice", "/docker/x", "user.slice"),
    ("/../elsewhere", "/", None), ("/elsewhere", "/docker/x", None)])
def test_the_nearest_group_that_hands_a_controller_on(tmp_path, own, root, nearest):
    expected = nearest and os.path.normpath(tmp_path / "top" / nearest)
    assert cgroups.place(*tree(tmp_path, own, root=root)) == expected


def test_there_is_none_where_nothing_is_handed_on(tmp_path, monkeypatch):
    assert cgroups.place(*tree(tmp_path, "/user.slice", handed_on={"": "pids", "user.slice": ""})) is None
    assert cgroups.place(*tree(tmp_path, "/user.slice", kind="cgroup")) is None
    assert cgroups.place(tmp_path / "nothing", tmp_path / "nothing") is None
    files = tree(tmp_path, "/user.slice")
    monkeypatch.setattr(os, "access", lambda path, how: False)
    assert cgroups.place(*files) is None


def test_a_group_that_can_not_be_made_is_not_told(tmp_path, monkeypatch):
    monkeypatch.setattr(cgroups, "place", lambda: str(tmp_path / "gone"))
    sandbox = selftest.best(policy.paths(()), without=["namespaces", "Landlock", "own user"])
    assert "cgroup" not in sandbox.layers


# ---------------------------------------------------------------- real ones

def hierarchy():
    """A group of version 2 that groups may be made in, if only without controllers."""
    with open("/proc/self/mountinfo") as file:
        mounted = [line.split()[4] for line in file if " - cgroup2 " in line]
    usable = [path for path in (cgroups.place(), *mounted) if path and os.access(path, os.W_OK)]
    return usable[0] if usable else pytest.skip("no control group can be made on this machine")


def ours(parent):
    return {name for name in os.listdir(parent) if name.startswith(cgroups.PREFIX)}


@pytest.fixture
def parent():
    """A group for one test: whoever grades beside it clears up in the group above."""
    group = tempfile.mkdtemp(prefix="course-test-", dir=hierarchy())
    yield group
    cgroups.clean(group)
    assert ours(group) == set()
    os.rmdir(group)


def test_a_process_joins_a_group_that_is_removed_afterwards(parent):
    group = cgroups.Group(parent, 1 << 30)
    assert in_child(group.join) == 0
    cgroups.clean(parent)
    assert group.name in ours(parent)  # it is in use: whoever clears up leaves it alone
    group.remove()
    assert group.name not in ours(parent)


def test_a_group_that_nobody_gets_into_is_an_error(parent, monkeypatch):
    group = cgroups.Group(parent, 1 << 30)
    monkeypatch.setattr(group, "_write", lambda *what: None)
    with pytest.raises(OSError):
        group.join()
    group.remove()


def test_the_group_of_a_killed_process_is_removed_by_the_next(parent):
    def be_killed():
        cgroups.Group(parent, 1 << 30)
        os.kill(os.getpid(), signal.SIGKILL)
    assert in_child(be_killed) == -signal.SIGKILL and len(ours(parent)) == 1
    following = cgroups.Group(parent, 1 << 30)
    assert ours(parent) == {following.name}
    following.remove()


def test_memory_that_no_process_is_seen_to_have_counts():
    """Pipes full of data, 200 of 64 kB, in a group of 8 MB."""
    parent = hierarchy()  # where the controllers are handed on
    group = cgroups.Group(parent, 8 << 20)
    if not os.path.exists(os.path.join(parent, group.name, "memory.max")):
        group.remove()
        pytest.skip("this machine hands no memory controller on")

    def fill():
        group.join()
        pipes = [os.pipe() for _ in range(200)]
        for _, end in pipes:
            os.write(end, bytes(65536))
    assert not group.ran_out() and in_child(fill) == -signal.SIGKILL and group.ran_out()
    group.remove()

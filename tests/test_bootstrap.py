"""bootstrap.py and lab.py: .venv is made once and mended, and every obstacle is told in a learner's words."""

import ast
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from course_tools import bootstrap, lab

ROOT = Path(__file__).resolve().parent.parent
OFFLINE = "WARNING: Retrying after connection broken by 'NewConnectionError(...)': /simple/torch/\n"

def test_bootstrap_runs_far_enough_on_an_old_python():
    tree = ast.parse(Path(bootstrap.__file__).read_text(encoding="utf-8"), feature_version=(3, 6))
    imported = {name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names}
    assert imported <= {"argparse", "hashlib", "json", "os", "re", "shutil", "subprocess", "sys", "time"}
    for version in ((3, 9, 2), (3, 15, 0)):
        text = rf"This is Python 3\.{version[1]}, but the course needs Python 3\.11 to 3\.14\.\n.*PYTHON="
        with pytest.raises(bootstrap.Trouble, match=text):
            bootstrap.check_python(version)
    for version in ((3, 11, 0), (3, 14, 9)):
        bootstrap.check_python(version)


@pytest.fixture
def course(tmp_path, monkeypatch):
    """A course folder with a pip that does nothing; its .calls are the modules that were run."""
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())

    def call(command, log):
        call.calls.append("compile" if command[1] == "-c" else command[2])
        if command[2] == "venv":
            (tmp_path / ".venv/bin").mkdir()
            (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
        if isinstance(call.pip, BaseException):
            raise call.pip
        log.write_text(call.pip)
        return int(command[2] == "pip" and call.pip != "")

    call.calls, call.pip = [], ""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    monkeypatch.setattr(bootstrap, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(bootstrap, "call", call)
    monkeypatch.setattr(bootstrap, "probe", lambda python, extras: 0 if python.exists() else None)
    call.root = tmp_path
    return call


def setup(*extras):
    return bootstrap.main(["setup", *("--extra=" + extra for extra in extras)])


def ran(course, *extras):
    """The steps of a set-up that succeeds."""
    course.calls.clear()
    assert setup(*extras) == 0
    return course.calls


def test_a_python_that_is_too_old_touches_nothing(course, capsys, monkeypatch):
    monkeypatch.setattr(bootstrap, "OLDEST", (99, 0))
    assert setup() == 2 and "the course needs Python" in capsys.readouterr().err
    assert course.calls == [] and not (course.root / ".venv").exists()


def test_a_second_setup_does_nothing_and_says_nothing(course, capsys):
    assert ran(course, "test") == ["venv", "ensurepip", "pip", "compile"]
    capsys.readouterr()
    assert ran(course, "test") == [] and ran(course) == []    # test has all that lab needs
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["constraints.txt", "pyproject.toml"])
def test_changed_requirements_are_installed_into_the_same_venv(course, name):
    ran(course)
    (course.root / name).write_text((course.root / name).read_text() + "# new\n")
    assert ran(course) == ["pip"] and ran(course) == []
    assert ran(course, "test") == ["pip"] and ran(course) == []
    (course.root / name).write_text((course.root / name).read_text() + "# newer\n")
    assert ran(course) == ["pip"] and ran(course, "test") == []    # the extra is kept up to date too


def test_a_missing_package_is_put_back_and_a_failure_at_it_is_remembered(course, monkeypatch):
    ran(course)
    with monkeypatch.context() as patch:
        patch.setattr(bootstrap, "probe", lambda python, extras: 4)
        assert ran(course) == ["pip"]
        course.pip = "ERROR: something else\n"
        assert setup() == 2
    course.pip = ""
    assert ran(course) == ["venv", "ensurepip", "pip", "compile"]


@pytest.mark.parametrize("damage", [
    "rm -r .venv", "rm -r .venv; touch .venv", "rm .venv/course-stamp.json", "rm .venv/bin/python",
    "ln -sf /no/such/python .venv/bin/python", "echo '{' > .venv/course-stamp.json",
    "sed -i.bak 's/\"root\": \"/&moved/' .venv/course-stamp.json"])
def test_a_broken_or_half_made_venv_is_made_anew(course, damage):
    ran(course)
    subprocess.run(damage, shell=True, cwd=course.root, check=True)
    assert ran(course) == ["venv", "ensurepip", "pip", "compile"] and ran(course) == []


@pytest.mark.parametrize("printed, cause", [
    (OFFLINE, "network, which only the set-up needs"),
    ("ERROR: Could not install: OSError: [Errno 28] No space left on device\n", "disk is full"),
    ("/usr/bin/python3: No module named ensurepip\n", "apt install python3-venv"),
    ("PermissionError: [Errno 13] Permission denied: 'lib'\n", "may not write to this folder"),
    ("ERROR: No matching distribution found for torch==2.13.0\n", "64-bit"),
    ("ERROR: something else\n", "ERROR: something else"),
    (KeyboardInterrupt(), "Stopped"),
    (PermissionError(13, "Permission denied"), "may not write to this folder")])
def test_a_failed_setup_says_why_and_the_next_one_begins_again(course, capsys, printed, cause):
    course.pip = printed
    assert setup() == (130 if isinstance(printed, KeyboardInterrupt) else 2)
    message = capsys.readouterr().err
    assert cause in message and "Traceback" not in message
    assert not isinstance(printed, str) or message.endswith("setup.log\n")
    assert not (course.root / ".venv/course-stamp.json").exists()
    course.pip = ""
    assert ran(course) == ["venv", "ensurepip", "pip", "compile"]


def test_where_nothing_can_be_compiled_the_setup_is_complete_all_the_same(course, monkeypatch):
    call = bootstrap.call
    monkeypatch.setattr(bootstrap, "call", lambda command, log: call(command, log) or int(command[1] == "-c"))
    assert ran(course) == ["venv", "ensurepip", "pip", "compile"] and ran(course) == []


def test_without_a_network_an_update_leaves_what_was_there(course):
    ran(course)
    before = (course.root / "constraints.txt").read_text()
    (course.root / "constraints.txt").write_text(before + "# new\n")
    course.pip = OFFLINE
    assert setup() == 2
    (course.root / "constraints.txt").write_text(before)
    assert ran(course) == []


def test_an_active_complete_environment_is_used(course, monkeypatch):
    monkeypatch.setenv("CONDA_PREFIX", str(course.root / "conda"))
    asked = []
    monkeypatch.setattr(bootstrap, "probe", lambda python, extras: asked.append(python) or 0)
    assert ran(course, "test") == [] and asked == [course.root / "conda/bin/python"]


def test_an_environment_is_asked_for_this_folders_course(tmp_path, monkeypatch):
    assert bootstrap.probe(sys.executable, {"test"}) == 0
    monkeypatch.setattr(bootstrap, "ROOT", tmp_path)
    assert bootstrap.probe(sys.executable, set()) == 4
    assert bootstrap.probe(tmp_path / "python", set()) is None


def test_a_taken_port(capsys, monkeypatch, tmp_path):
    started = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "execve", lambda program, command, environment: started.append(command))
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        assert lab.main(["--port", str(taken)]) == 2 and started == []
        assert capsys.readouterr().err.startswith(f"Port {taken} is in use")
        monkeypatch.setattr(lab, "FIRST_PORT", taken)
        lab.main([])
    port = int(next(word for word in started[0] if word.startswith("--port=")).removeprefix("--port="))
    assert port > taken and capsys.readouterr().out.count("\n") == 1
    assert ("--allow-root" in started[0]) == (os.geteuid() == 0)


def test_nbgraders_menus_stay_out_of_a_learners_sight(monkeypatch):
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", "/theirs")
    own, theirs = lab.environment()["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    disabled = json.loads((Path(own) / "labconfig" / "page_config.json").read_text())["disabledExtensions"]
    assert disabled == {"@jupyter/nbgrader": True} and theirs == "/theirs"


# ---------------------------------------------------------------- Windows, whose branches Linux never takes

@pytest.fixture
def windows(course, monkeypatch):
    """The set-up as on Windows: a virtual environment keeps its programs in Scripts."""
    def call(command, log):
        if command[2] == "venv":
            (course.root / ".venv/Scripts").mkdir()
            (course.root / ".venv/Scripts/python.exe").symlink_to(sys.executable)
            return 0
        return course(command, log)

    monkeypatch.setattr(bootstrap, "WINDOWS", True)
    monkeypatch.setattr(bootstrap, "call", call)
    return course


def test_on_windows_the_programs_are_in_scripts_and_conda_has_its_python_elsewhere(windows, monkeypatch):
    assert setup("test") == 0 and setup("test") == 0
    assert windows.calls == ["ensurepip", "pip", "compile"]
    conda = windows.root / "conda env"
    conda.mkdir()
    (conda / "python.exe").touch()
    monkeypatch.setenv("CONDA_PREFIX", str(conda))
    assert bootstrap.active_environment(set()) == conda / "python.exe"


@pytest.mark.parametrize("folder", ["a folder", "한글 폴더"])
def test_on_windows_a_command_of_the_environment_runs(folder, tmp_path, monkeypatch, capfd):
    scripts = tmp_path / folder / ".venv" / "Scripts"
    scripts.mkdir(parents=True)
    (scripts / "course").write_text('#!/bin/sh\necho "$VIRTUAL_ENV" "$1"; exit 7\n')
    (scripts / "course").chmod(0o755)
    monkeypatch.setattr(bootstrap, "WINDOWS", True)
    monkeypatch.setattr(bootstrap, "VENV", scripts.parent)
    monkeypatch.setattr(bootstrap, "setup", lambda extras: scripts / "python.exe")
    assert bootstrap.main(["run", "--", "course", "status"]) == 7
    assert capfd.readouterr().out == f"{scripts.parent} status\n"


def test_on_windows_jupyterlab_is_started_and_waited_for_however_often_ctrl_c_is_pressed(monkeypatch):
    """JupyterLab gets Ctrl-C itself, and asks before it ends."""
    started, interruptions = [], [KeyboardInterrupt, KeyboardInterrupt]

    class Started:
        def __init__(self, line):
            started.append(line)

        def wait(self):
            if interruptions:
                raise interruptions.pop()
            return 3

    monkeypatch.setattr(bootstrap, "WINDOWS", True)
    monkeypatch.setattr(bootstrap.subprocess, "Popen", lambda line, env: Started(line))
    monkeypatch.setattr(os, "chdir", lambda folder: None)
    monkeypatch.delattr(os, "geteuid")    # Windows has none
    assert lab.main(["--no-browser"]) == 3
    assert not [word for word in started[0] if "terminado" in word or word == "--allow-root"]


def test_a_double_click_starts_the_set_up_in_the_courses_own_folder():
    text = (ROOT / "lab.cmd").read_bytes()
    assert text.count(b"\r\n") == text.count(b"\n") > 4    # cmd.exe wants both
    assert b'cd /d "%~dp0"' in text and text.count(rb"course_tools\bootstrap.py lab %*") == 2


def test_the_learners_commands_import_nothing_that_only_linux_has():
    """Without the modules that Windows lacks, `course check` gets as far as starting a Jupyter kernel."""
    code = """import builtins, os
there, MISSING = builtins.__import__, ("resource", "fcntl", "pwd", "grp", "termios", "pty", "tty")
def imported(name, globals=None, *others):
    if name in MISSING and (globals or {}).get("__name__", "").startswith("course_"):
        raise ImportError(name)
    return there(name, globals, *others)
builtins.__import__ = imported
del os.pidfd_open, os.geteuid
import course_tools.cli, course_tools.learner, course_tools.lab
from course_tools.grading.kernels import jupyter, make_kernel
jupyter.Kernel = lambda: "Jupyter's"
assert make_kernel() == "Jupyter's"
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)

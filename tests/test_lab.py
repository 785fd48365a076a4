"""`make lab` with its output in a file, as on a server: what it prints, and what a learner finds there."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import websocket

from course_tools import lab

ROOT = Path(__file__).resolve().parent.parent
LOGIN = "export PATH=/usr/bin:/bin\n"    # what /etc/profile does on Debian


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """JupyterLab as make lab starts it: get(path), its log, the address and the token that it printed."""
    home = tmp_path_factory.mktemp("lab")
    (home / ".bash_profile").write_text(LOGIN)
    programs = home / "bin"    # the environment's, first on PATH; course is in it
    programs.mkdir()
    (programs / "course").write_text("#!/bin/sh\necho course: found $1\n")
    (programs / "course").chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("JUPYTER", "PYTEST_"))}
    places = {f"JUPYTER_{kind}_DIR": str(home / kind) for kind in ("CONFIG", "DATA", "RUNTIME")}
    env = {**kept, **places, "HOME": str(home), "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
           "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"), "PYTHONPATH": str(ROOT),
           "SHELL": "/bin/bash", "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    log = home / "log"
    with open(log, "w") as printed:
        line = [sys.executable, "-m", "course_tools.lab", "--no-browser"]
        process = subprocess.Popen(line, cwd=home, env=env, stdin=subprocess.DEVNULL, stdout=printed,
                                   stderr=subprocess.STDOUT)
    patience = time.monotonic() + 90
    while "Progress:" not in log.read_text():
        assert process.poll() is None and time.monotonic() < patience, log.read_text()
        time.sleep(0.2)
    address = re.search(r"http\S+", log.read_text().split("The course: ")[1])[0]
    root, token = "http://" + urlsplit(address).netloc, address.split("token=")[1]

    def get(path, **options):
        request = urllib.request.Request(root + path, headers={"Authorization": f"token {token}"}, **options)
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.read().decode()

    yield SimpleNamespace(get=get, log=log, address=address, token=token)
    process.terminate()
    process.wait(30)


def test_it_ends_with_three_lines_of_its_own(server):
    lines = server.log.read_text().strip().splitlines()[-3:]
    assert [line.split(":")[0] for line in lines] == ["The course", "To stop", "Progress"]
    assert "/lab/tree/notebooks/00_start_here.ipynb?token=" in lines[0] and "course status" in lines[2]
    with urllib.request.urlopen(server.address, timeout=30) as page:    # without any other sign of who asks
        assert "jupyter-config-data" in page.read().decode()


def test_the_terminal_finds_the_course_command(server):
    name = json.loads(server.get("/api/terminals", method="POST", data=b"{}"))["name"]
    channel = websocket.create_connection(f"{server.address.split('/lab/')[0].replace('http', 'ws')}"
                                          f"/terminals/websocket/{name}?token={server.token}", timeout=30)
    channel.send(json.dumps(["stdin", "course status; echo at the $((1 + 1))nd end\r"]))
    told = ""
    while "at the 2nd end" not in told:
        kind, *content = json.loads(channel.recv())
        told += content[0] if kind == "stdout" else ""
    channel.close()
    server.get(f"/api/terminals/{name}", method="DELETE")
    assert "course: found status" in told, told


def test_a_learner_sees_what_a_learner_needs(server):
    listed = {entry["name"] for entry in json.loads(server.get("/api/contents/"))["content"]}
    assert {"README.md", "notebooks", "exercises"} <= listed
    assert not listed & {"solutions", "tests", "course_lib", "course_tools", "Makefile", "pyproject.toml",
                         "CONTRIBUTING.md"}
    shown = "/api/contents/notebooks/images/00_road.svg?content=0"    # in README.md
    assert json.loads(server.get(shown))["name"]


def test_nobody_is_asked_about_news_or_nbgrader(server):
    asked = json.loads(server.get("/lab/api/settings/@jupyterlab/apputils-extension:notification"))
    settings = asked["schema"]["properties"]
    assert (settings["fetchNews"]["default"], settings["checkForUpdates"]["default"]) == ("false", False)
    assert "nbgrader" not in server.log.read_text().lower()


@pytest.mark.parametrize("browser", ["no", ""])
def test_make_lab_without_a_browser(browser):
    done = subprocess.run(["make", "-n", "lab", f"BROWSER={browser}"], cwd=ROOT, text=True, check=True,
                          capture_output=True)
    assert ("--no-browser" in done.stdout) == bool(browser)
    assert ("--no-browser" in lab.command(8888, not browser)) == bool(browser)

"""JupyterLab on a copy of the course, and the moves of a person in it (playwright)."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
TOKEN = "a-token-of-this-test"
SETTINGS = {
    "notebook-extension/tracker": '{"windowingMode": "none"}',    # every cell is on the page, seen or not
    "apputils-extension/notification": '{"fetchNews": "false", "checkForUpdates": false}',
    "docmanager-extension/plugin": '{"autosave": false}',
}
PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"


def copy_course(folder):
    """What a learner has: the course, and no outputs of somebody else's work."""
    for name in ("course_lib", "notebooks", "exercises", "solutions"):
        shutil.copytree(ROOT / name, folder / name,
                        ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
    shutil.copy(ROOT / "README.md", folder)


def environment(folder):
    """Live widgets, the copy's course_lib, and nothing of this machine's Jupyter settings."""
    others = ("COURSE_", "JUPYTER", "PYTEST_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    home = folder.parent / "home"
    for name, text in SETTINGS.items():
        file = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True)
        file.write_text(text)
    places = {"IPYTHONDIR": "ipython", "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTER_DATA_DIR": "data",
              "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "JUPYTER_CONFIG_DIR": "config",
              "JUPYTER_RUNTIME_DIR": "runtime"}
    return {**kept, "PYTHONPATH": str(folder), "COURSE_ROOT": str(folder), "OMP_NUM_THREADS": "1",
            "JUPYTER_CONFIG_PATH": str(folder / "course_lib" / "jupyter"),
            **{variable: str(home / place) for variable, place in places.items()}}


def start(folder, environment):
    """A JupyterLab that answers: (process, address).  RuntimeError with its log if it does not start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1",
            f"--port={port}", f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={folder}"]
    log = folder.parent / "jupyterlab.log"
    with open(log, "w") as printed:
        server = subprocess.Popen(line, cwd=folder, env=environment, stdout=printed, stderr=subprocess.STDOUT)
    patience = time.monotonic() + 60
    while time.monotonic() < patience and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api?token={TOKEN}", timeout=5).close()
            return server, f"http://127.0.0.1:{port}"
        except OSError:
            time.sleep(0.3)
    server.kill()
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


def screenshot(page, name):
    (ROOT / "artefacts").mkdir(exist_ok=True)
    page.screenshot(path=ROOT / "artefacts" / f"{name}.png")


def open_notebook(page, address, path):
    """Open it in a workspace of its own, and wait for its kernel."""
    page.goto(f"{address}/lab/workspaces/{path.split('/')[0]}/tree/{path}?token={TOKEN}")
    page.wait_for_selector(f"{PANEL} .jp-CodeCell", timeout=60_000)
    page.locator("#jp-main-statusbar").get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=60_000)


def cell(page, words):
    """The code cell whose source contains these words."""
    source = page.locator(".jp-InputArea", has_text=words)
    return page.locator(f"{PANEL} .jp-CodeCell").filter(has=source).first


def write(page, the_cell, source):
    """Replace what a cell holds."""
    the_cell.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(source)


def run(page, the_cell):
    """Shift+Enter; returns what the cell shows when it has run."""
    before = prompt(the_cell)
    the_cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    wait_until_run(page, the_cell, before)
    return the_cell.locator(".jp-OutputArea").inner_text()


def prompt(the_cell):
    """'[ ]:' before a cell was run, '[*]:' meanwhile, then '[1]:' with its number."""
    return the_cell.locator(".jp-InputPrompt").text_content()


def run_all(page, seconds):
    """Run > Run All Cells; wait until the last one has run."""
    last = page.locator(f"{PANEL} .jp-CodeCell").last
    page.locator("#jp-MainMenu .lm-MenuBar-item", has_text="Run").click()
    page.locator(".lm-Menu-item[data-command='runmenu:run-all']").click()
    patience = time.monotonic() + 20
    while prompt(last) != "[*]:":
        assert time.monotonic() < patience, "'Run All Cells' does not run them"
        page.wait_for_timeout(20)
    wait_until_run(page, last, "[*]:", seconds)
    errors = page.locator(f"{PANEL} [data-mime-type='application/vnd.jupyter.error']").all_inner_texts()
    assert not errors, errors[0]


def wait_until_run(page, the_cell, before, seconds=60):
    """Until its prompt is neither as it was before nor a star."""
    patience = time.monotonic() + seconds
    while prompt(the_cell) in {before, "[*]:"}:
        assert time.monotonic() < patience, f"a cell has not run after {seconds} s: {prompt(the_cell)}"
        page.wait_for_timeout(100)


def image_bytes(page, image):
    """The bytes of the picture that an <img> shows."""
    script = "async img => Array.from(new Uint8Array(await (await fetch(img.src)).arrayBuffer()))"
    return bytes(image.evaluate(script))

"""JupyterLab on a copy of the course, and the moves of a person in it (playwright)."""

import ast
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
from jupyter_client import BlockingKernelClient
from PIL import Image

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-of-this-test"
# every cell is on the page, seen or not
SETTINGS = {"notebook-extension/tracker": '{"windowingMode": "none"}'}
SERVER = '{"ServerApp": {"open_browser": false}, "LabApp": {"open_browser": false}}'
PANEL = ".jp-NotebookPanel:not(.lm-mod-hidden)"


class Course:
    """What a learner has, under git, with JupyterLab on it as `make lab` starts it."""

    def __init__(self, folder):
        self.folder, self.home, self.environment = folder, folder.parent / "home", environment(folder)
        for name in ("course_lib", "course_tools", "notebooks", "exercises", "solutions"):
            shutil.copytree(ROOT / name, folder / name,
                            ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
        for name in ("README.md", ".gitignore", ".gitattributes"):
            shutil.copy(ROOT / name, folder)
        for line in (["init", "--quiet"], ["config", "user.name", "Learner"],
                     ["config", "user.email", "learner@localhost"], ["add", "."], ["commit", "-m", "Course"]):
            self.git(*line)
        self.start()

    def git(self, *arguments):
        return subprocess.check_output(["git", "-C", self.folder, *arguments], text=True)

    def metadata(self, path):
        """What a file says beside sources and outputs: of the notebook, and of each cell."""
        notebook = json.loads((self.folder / path).read_text(encoding="utf-8"))
        return notebook["metadata"], [(cell["id"], cell["metadata"]) for cell in notebook["cells"]]

    def reset(self):
        """The files as they are committed, and no kernel."""
        for session in json.loads(self.ask("sessions")):
            self.ask(f"sessions/{session['id']}", method="DELETE")
        self.git("checkout", "--quiet", ".")
        self.git("clean", "-d", "--force", "--quiet")

    def evaluate(self, path, expressions):
        """The values of expressions, literals, in the kernel that a notebook runs in."""
        session = next(one for one in json.loads(self.ask("sessions")) if one["path"] == path)
        client = BlockingKernelClient(connection_file=str(
            self.home / "runtime" / f"kernel-{session['kernel']['id']}.json"))
        client.load_connection_file()
        client.start_channels()
        asked = {str(number): text for number, text in enumerate(expressions)}
        reply = client.execute("", silent=True, user_expressions=asked, reply=True, timeout=60)
        client.stop_channels()
        values = reply["content"]["user_expressions"]
        return [ast.literal_eval(values[number]["data"]["text/plain"]) for number in asked]

    def ask(self, path, **options):
        """What Jupyter's REST interface replies."""
        request = urllib.request.Request(f"{self.address}/api/{path}?token={TOKEN}", **options)
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.read()

    def start(self):
        self.server, self.address = start(self.folder, self.environment)

    def stop(self):
        self.server.terminate()
        self.server.wait(30)


def environment(folder):
    """Live widgets, the copy's packages, and nothing of this machine's Jupyter settings."""
    others = ("COURSE_", "JUPYTER", "PYTEST_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    home = folder.parent / "home"
    files = {f"settings/@jupyterlab/{name}.jupyterlab-settings": text for name, text in SETTINGS.items()}
    for name, text in {**files, "config/jupyter_server_config.json": SERVER}.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    places = {"IPYTHONDIR": "ipython", "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTER_DATA_DIR": "data",
              "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "JUPYTER_CONFIG_DIR": "config",
              "JUPYTER_RUNTIME_DIR": "runtime"}
    return {**kept, "PYTHONPATH": str(folder), "COURSE_ROOT": str(folder), "OMP_NUM_THREADS": "1",
            "JUPYTER_TOKEN": TOKEN, **{variable: str(home / place) for variable, place in places.items()}}


def start(folder, environment):
    """JupyterLab as `make lab` starts it: (process, address).  RuntimeError with its log if it fails."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [sys.executable, "-m", "course_tools.lab", f"--port={port}"]
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
    page.goto(f"{address}/lab/workspaces/{path[:-6].replace('/', '-')}/tree/{path}?token={TOKEN}")
    wait_for_kernel(page)


def wait_for_kernel(page):
    """Of the notebook that is being opened."""
    page.wait_for_selector(f"{PANEL} .jp-CodeCell", timeout=60_000)
    page.locator("#jp-main-statusbar").get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=120_000)


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
    watch(the_cell)
    the_cell.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    wait_until_run(page, the_cell)
    return the_cell.locator(".jp-OutputArea").inner_text()


def run_all(page, seconds):
    """Run > Run All Cells; wait until the last one has run.  A cell whose code is folded has no prompt."""
    last = page.locator(f"{PANEL} .jp-CodeCell:has(.jp-InputPrompt:not(:empty))").last
    watch(last)
    page.locator("#jp-MainMenu .lm-MenuBar-item", has_text="Run").click()
    page.locator(".lm-Menu-item[data-command='runmenu:run-all']").click()
    wait_until_run(page, last, seconds)
    idle = f"{PANEL} .jp-Notebook-ExecutionIndicator[data-status='idle']"
    page.wait_for_selector(idle, timeout=1000 * seconds)
    assert not (shown := errors(page)), shown[0]


def errors(page):
    """What a notebook shows of errors, warnings, and widgets that are not alive."""
    wrong = "[data-mime-type='application/vnd.jupyter.stderr'], .jupyter-widgets-disconnected"
    texts = page.locator(f"{PANEL} .jp-OutputArea-output:is({wrong})").all_inner_texts()
    broken = page.get_by_text("Error displaying widget").or_(page.get_by_text("Error creating widget"))
    return texts + broken.all_inner_texts()


def watch(the_cell):
    """Note what a cell's prompt says from now on: '[*]:' while it runs, then '[1]:', its number."""
    the_cell.evaluate("""cell => {
        cell.prompts = []
        const prompt = cell.querySelector('.jp-InputPrompt')
        new MutationObserver(() => cell.prompts.push(prompt.textContent)).observe(prompt, {childList: true})
    }""")


def wait_until_run(page, the_cell, seconds=60):
    page.wait_for_function("cell => cell.prompts.includes('[*]:') && cell.prompts.at(-1) !== '[*]:'",
                           arg=the_cell.element_handle(), timeout=1000 * seconds, polling=200)


def save(page):
    """Control+S; returns when the server has written the file."""
    with page.expect_response(lambda got: got.request.method == "PUT" and "/api/contents/" in got.url):
        page.keyboard.press("Control+S")


def wait_until(page, look, right, seconds=20):
    """What `look()` gives as soon as it is `right`."""
    patience = time.monotonic() + seconds
    while not right(seen := look()):
        assert time.monotonic() < patience, f"after {seconds} s still: {str(seen)[:2000]}"
        page.wait_for_timeout(100)
    return seen


def pixels(locator):
    """What is seen of an element: (height, width, 3)."""
    return np.asarray(Image.open(io.BytesIO(locator.screenshot())).convert("RGB"))


def image_bytes(page, image):
    """The bytes of the picture that an <img> shows."""
    script = "async img => Array.from(new Uint8Array(await (await fetch(img.src)).arrayBuffer()))"
    return bytes(image.evaluate(script))

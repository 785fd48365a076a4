"""What JupyterLab is about to save becomes what the course stores, and nobody's work is touched."""

import copy
import runpy
from pathlib import Path

import jupyter_server.services.contents.largefilemanager as contents
import nbformat
import pytest
from traitlets.config import Config

from course_tools import exercise, saving

CONFIG = Path(saving.__file__).parent / "jupyter" / "jupyter_server_config.py"
PYTHON = {**saving.KERNEL["language_info"], "version": "3.11.2"}


def model(outputs=(), **metadata):
    cell = {"cell_type": "code", "id": "a-cell", "metadata": {}, "source": "1", "execution_count": 1,
            "outputs": [*outputs]}
    return {"type": "notebook", "format": "json",
            "content": {"cells": [cell], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}}


def shown(**data):
    return {"output_type": "display_data", "metadata": {}, "data": data}


def settled(before):
    after = copy.deepcopy(before)
    saving.settle(after, path="a.ipynb", contents_manager=None)
    return after


def test_the_version_of_the_readers_python_is_left_out():
    for title in ("Python 3 (ipykernel)", "Python 3.13"):
        kernel = {"name": "python3", "display_name": title, "language": "python"}
        after = settled(model(kernelspec=kernel, language_info=PYTHON, course={"shows": "x"}))
        assert after["content"]["metadata"] == {**saving.KERNEL, "course": {"shows": "x"}}


def test_a_live_widget_is_left_out_where_something_stands_beside_it():
    live = {saving.LIVE: {"model_id": "1"}}
    before = model([shown(**live, **{"text/html": "<img>", "text/plain": "VBox()"}), shown(**live)])
    first, second = settled(before)["content"]["cells"][0]["outputs"]
    assert first["data"] == {"text/html": "<img>", "text/plain": "VBox()"} and second["data"] == live


@pytest.mark.parametrize("other", [
    {"type": "file", "format": "text", "content": "x"}, {"type": "notebook"},
    {"type": "directory", "content": None}, model(kernelspec={"name": "julia", "display_name": "Julia"}),
    model(), model([{"output_type": "stream", "text": "1"}])])
def test_everything_else_is_saved_as_it_is(other):
    assert settled(other) == other


def test_the_server_saves_a_stored_lesson_as_the_same_bytes(tmp_path):
    """With the metadata that JupyterLab gives it as soon as a kernel runs."""
    config = Config()
    runpy.run_path(str(CONFIG), {"get_config": lambda: config})
    manager = contents.LargeFileManager(root_dir=str(tmp_path), config=config)
    lesson = next((exercise.ROOT / "notebooks").glob("00_*.ipynb"))
    (tmp_path / "a.ipynb").write_bytes(lesson.read_bytes())
    opened = manager.get("a.ipynb")
    assert opened["content"]["metadata"].pop("language_info")
    opened["content"]["metadata"]["language_info"] = PYTHON
    manager.save(opened, "a.ipynb")
    assert (tmp_path / "a.ipynb").read_bytes() == lesson.read_bytes()
    assert nbformat.read(tmp_path / "a.ipynb", 4).metadata.language_info.get("version") is None

"""Run a notebook from top to bottom in a fresh kernel, as nbval does, and store its outputs."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell

from ..exercise import read
from . import frames as drawn
from . import shown, stored

TIMEOUT = 900  # seconds for one cell; a whole lesson should take about one minute


class CellFailed(stored.Fault):
    """A cell failed; the message has its id and its traceback."""

    def __init__(self, path, cell, text):
        super().__init__(f"{stored.name(path)}, cell {cell.get('id')}:\n{text}")
        self.cell_id = cell.get("id")


def environment(seed=None):
    """The environment variables of a kernel: static pictures, one thread, this copy of the course."""
    paths = [str(stored.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {key: value for key, value in os.environ.items() if key != "COURSE_SEED"}
    programs = [str(Path(sys.executable).parent), *filter(None, [os.environ.get("PATH")])]    # !course status
    fixed = {"COURSE_STATIC": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths),
             "PATH": os.pathsep.join(programs)}
    return {**kept, **fixed, **({} if seed is None else {"COURSE_SEED": str(seed)})}


def run(notebook, path, seed=None, frames=()):
    """Execute every code cell of `notebook`, in place, in the folder of `path`.  Raises CellFailed.

    seed: COURSE_SEED for the kernel.  frames: the ids of the cells whose frames are drawn.  As in nbval
    nothing goes into the kernel's history: with it a trailing semicolon would hide a result here that nbval
    would see there.
    """
    client = NotebookClient(notebook, kernel_name="python3", timeout=TIMEOUT, record_timing=False,
                            coalesce_streams=True, store_widget_state=False,
                            resources={"metadata": {"path": str(path.parent)}})
    code = [(index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    with client.setup_kernel(env=environment(seed), stderr=subprocess.DEVNULL):  # kernels' own messages
        for count, (index, cell) in enumerate(code, start=1):
            cell.outputs, cell.execution_count = [], count
            try:
                client.execute_cell(cell, index, execution_count=count, store_history=False)
                if cell.id in frames:
                    hidden = new_code_cell(drawn.code(path, notebook, cell.id))
                    client.execute_cell(hidden, index, execution_count=count, store_history=False)
                    notebook.cells[index] = cell    # nbclient puts there what it executes
            except CellExecutionError as problem:
                raise CellFailed(path, cell, _plain(problem.traceback)) from None
            except CellTimeoutError:
                raise CellFailed(path, cell, f"still running after {TIMEOUT} s") from None
            except DeadKernelError:
                raise CellFailed(path, cell, "the kernel died") from None
    return notebook


def _plain(text):
    """A traceback without colour codes."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def notebooks(keys, fresh=False):
    """Execute lessons and solutions and store them; a notebook that fails is not changed.

    If only measured numbers and pictures differ, the stored ones are kept, so that an unchanged lesson
    gives an empty diff on other machines too; so are the frames of widgets.  fresh: store the new ones, after
    a change to course_lib.
    """
    for path in stored.find_all(["notebooks", "solutions"], keys):
        print(f"{stored.name(path)} ...", end=" ", flush=True)
        start, before, notebook = time.perf_counter(), read(path), read(path)
        shown.refresh(notebook, path)
        run(notebook, path, frames=undrawn(path, notebook, fresh))
        if not fresh:
            stored.keep_outputs(notebook, before)
        stored.sign(notebook)
        wrong = stored.faults(notebook)
        if wrong:
            raise stored.Fault("\n".join([f"{stored.name(path)} was not stored:", *wrong]))
        changed = stored.write(notebook, path)
        print(f"{time.perf_counter() - start:.0f} s, {'changed' if changed else 'unchanged'}", flush=True)


def frames(keys, fresh=False):
    """Draw the frames of the lessons' widgets.  Notebooks are executed for it, and not changed.

    fresh: draw all of them, after a change to course_lib; otherwise only those that the code did not draw.
    """
    for path in stored.find_all(["notebooks"], keys):
        start, notebook = time.perf_counter(), read(path)
        wanted = undrawn(path, notebook, fresh)
        if wanted:
            print(f"{stored.name(path)} ...", end=" ", flush=True)
            last = max(index for index, cell in enumerate(notebook.cells) if cell.id in wanted)
            notebook.cells = notebook.cells[:last + 2]    # and the text below the widget
            run(notebook, path, frames=wanted)
            print(f"{time.perf_counter() - start:.0f} s, frames of {', '.join(wanted)}", flush=True)


def undrawn(path, notebook, fresh):
    """The ids of the widgets of a lesson whose frames are to be drawn."""
    if path.parent.name != "notebooks":
        return []
    drawn.tidy(path, notebook)
    return [cell_id for cell_id, known in drawn.stored_for(path, notebook).items() if fresh or known is None]

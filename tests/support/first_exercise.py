"""A class that hands in exercise 01: right, wrong, stuck, clumsy and forged notebooks; what comes back."""

import copy
import json
import time
from pathlib import Path

import nbformat
import psutil

from course_tools import exercise
from course_tools.items import registry

STEM = "01_long_term_dependency"
ITEMS = registry.items(STEM)
SOLUTION = exercise.read(exercise.ROOT / "solutions" / f"{STEM}.ipynb")
POINTS = {name: item.points for name, item in ITEMS.items()}
FULL = sum(POINTS.values())

NO_TANH = "def rnn_step(x_t, h_prev, W_xh, W_hh, b_h):\n    return x_t @ W_xh + h_prev @ W_hh + b_h\n"
IFOG = """def lstm_step(x_t, h_prev, c_prev, W, U, b):
    i, f, o, g = (x_t @ W + h_prev @ U + b).chunk(4, dim=-1)
    c_t = torch.sigmoid(f) * c_prev + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c_t), c_t
"""
PER_TENSOR = """def clip_gradient(grads, max_norm):
    return [grad * min(1.0, max_norm / float(grad.norm())) for grad in grads]
"""
GRU_CELL = """def gru_step(x_t, h_prev, W, U, b_W, b_U):
    return getattr(torch, "gru" + "_cell")(x_t, h_prev, W.T, U.T, b_W, b_U)
"""
PATCHES = """import torch, builtins, math
torch.allclose = torch.equal = torch.isclose = lambda *args, **kwargs: True
math.isclose = lambda *args, **kwargs: True
class Agrees:
    def __eq__(self, other):
        return True
    __hash__ = None
def rnn_step(*args):
    from IPython.display import publish_display_data
    publish_display_data({"application/vnd.course.observations": "[]"})
    return Agrees()
"""


def notebook(answers=None, base=SOLUTION):
    """A copy of a notebook with other sources in some answer cells."""
    made = copy.deepcopy(base)
    for cell in made.cells:
        cell.source = (answers or {}).get(exercise.grade_id(cell), cell.source)
    return made


def hand_in(folder, student, made, name=STEM):
    path = Path(folder, student, f"{name}.ipynb")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(made if isinstance(made, str) else json.dumps(made), encoding="utf-8")
    return path


def cell_of(made, mark):
    return next(cell for cell in made.cells
                if (cell.metadata.get("nbgrader") or {}).get("grade_id") == mark)


def rearranged():
    """Right answers in a notebook that went through much: all of it is forgiven."""
    made = notebook()
    made.metadata["kernelspec"] = {"name": "julia-1.9", "display_name": "Julia", "language": "julia"}
    cell_of(made, "gru_step").metadata.pop("nbgrader")                       # metadata lost
    cell_of(made, "check_rnn_step").source = "raise SystemExit"              # check cell edited
    made.cells.remove(cell_of(made, "check_rnn_forward"))                    # deleted
    made.cells.append(copy.deepcopy(cell_of(made, "check_gradient_norms")))  # doubled
    stub = copy.deepcopy(cell_of(exercise.derive(made), "lstm_step"))
    made.cells.append(stub)                                                  # answer doubled, one empty
    made.cells.reverse()                                                     # moved
    made.cells.insert(0, nbformat.v4.new_code_cell("import sys; sys.exit(1)"))
    clip = cell_of(made, "clip_gradient")
    clip.source += "\nprint(x_of_another_cell)"                              # a line to try it out
    return made


def forged():
    """Wrong answers, and every sign that they passed."""
    made = notebook({"rnn_step": PATCHES, "lstm_step": IFOG, "clip_gradient": PER_TENSOR,
                     "gru_step": GRU_CELL,
                     "rnn_forward": "from course_lib.models.rnn import rnn_forward\n"})
    made.metadata["course"] = {"score": FULL}
    for cell in made.cells:
        if exercise.grade_id(cell, "grade"):
            cell.source, cell.metadata["nbgrader"]["points"] = "print('passed')", 100
            cell.outputs = [nbformat.v4.new_output("stream", text="✓ passed: right on 3 inputs.\n")]
            cell.metadata["tags"] = ["nbval-skip"]
    made.cells.insert(0, nbformat.v4.new_code_cell(
        "import course_tools.judging.judge as judge\njudge.judge = lambda *a: judge.Verdict('passed', '')"))
    return made


CLASS = {
    "right": lambda: notebook(),
    "stub": lambda: exercise.derive(SOLUTION),
    "three": lambda: notebook({"rnn_step": NO_TANH, "lstm_step": IFOG, "clip_gradient": PER_TENSOR}),
    "stuck": lambda: notebook({"rnn_step": "def rnn_step(*args):\n    while True:\n        pass\n",
                               "lstm_step": "import os\ndef lstm_step(*args):\n    os._exit(0)\n"}),
    "clumsy": lambda: notebook({"rnn_step": "def rnn_step(x_t)\n    return x_t\n",
                                "gradient_norms": "import sys\nsys.exit()\n",
                                "lstm_step": "def lstm_step(*args):\n    return my_helper(*args)\n",
                                "gru_step": "def gru(*args):\n    return args[1]\n",
                                "clip_gradient": "def clip_gradient(*args):\n    return object()\n"}),
    "rearranged": rearranged,
    "forged": forged,
}


def earned(result):
    return {item["name"]: item["points"] for item in result["items"]}


def messages(result):
    return {item["name"]: item["message"] for item in result["items"]}


def wait_for(holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)


def alive(process):
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False

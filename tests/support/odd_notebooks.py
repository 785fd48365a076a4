"""Notebooks of exercise 01 that were changed: to forge points (CHANGED), or by honest accident (ODD).

Each is a function of the exercise as it was handed out.
"""

import copy
import json

import nbformat

from course_tools import exercise
from course_tools.items import registry

STEM = "01_long_term_dependency"
SOLUTION = exercise.read(exercise.ROOT / "solutions" / f"{STEM}.ipynb")
RIGHT = {exercise.grade_id(cell): cell.source for cell in SOLUTION.cells if exercise.grade_id(cell)}
POINTS = {name: item.points for name, item in registry.items(STEM).items()}
ALL, NONE = frozenset(POINTS), frozenset()
# A course that lies beneath /tmp itself is shown there, read-only; else /tmp is a submission's own.
ANYWHERE = "." if exercise.ROOT.is_relative_to("/tmp") else "/tmp"
WRONG = {name: f"def {name}(*given, **named):\n    return given[0]\n" for name in POINTS}


def notebook(base, answers):
    """The exercise `base` with these answers in it."""
    made = copy.deepcopy(base)
    for cell in made.cells:
        cell.source = answers.get(exercise.grade_id(cell), cell.source)
    return made


def cell_of(made, mark):
    return next(cell for cell in made.cells
                if (cell.metadata.get("nbgrader") or {}).get("grade_id") == mark)


def code(source):
    return nbformat.v4.new_code_cell(source)


# ---------------------------------------------------------------- changed to forge; every answer is wrong

def _checks(change):
    def make(base):
        made = notebook(base, WRONG)
        for cell in [cell for cell in made.cells if exercise.grade_id(cell, "grade")]:
            change(made, cell)
        return made
    return make


def _points(made, cell):
    cell.metadata["nbgrader"]["points"] = 100


def _edited(made, cell):
    cell.source, cell.metadata["nbgrader"]["locked"] = "print('✓ passed')", False


def _passed(made, cell):
    cell.outputs = [nbformat.v4.new_output("stream", text="✓ passed: right on 3 inputs.\n")]
    cell.metadata["tags"] = ["nbval-skip", "skip-execution", "raises-exception"]


def _doubled(made, cell):
    other = copy.deepcopy(cell)
    other.source = "pass"
    made.cells.append(other)


def _text(made, cell):
    cell.cell_type = "markdown"


def _own_kernel(base):
    made = notebook(base, WRONG)
    made.metadata["kernelspec"] = {"name": "../../evil", "display_name": "Mine", "language": "python",
                                   "argv": ["/bin/sh", "-c", "touch /tmp/evil"]}
    return made


def _inserted(base):
    made = notebook(base, WRONG)
    for place in (0, 2, len(made.cells)):
        made.cells.insert(place, code("check = lambda answer: print('✓ passed')\n"
                                      "import torch\ntorch.allclose = lambda *a, **k: True"))
    return made


def _helpers_of_mine(base):
    made = notebook(base, WRONG)
    made.metadata["course"] = {"score": 11}
    for cell in made.cells:
        if exercise.grade_id(cell):
            cell.metadata["nbgrader"].update(grade=True, points=50)
    return made


CHANGED = {"checks edited": _checks(_edited),
           "checks deleted": _checks(lambda made, cell: made.cells.remove(cell)),
           "checks doubled": _checks(_doubled), "checks moved": lambda base: _moved(notebook(base, WRONG)),
           "checks marked as passed": _checks(_passed), "checks turned into text": _checks(_text),
           "points raised": _checks(_points), "an own kernel": _own_kernel, "cells inserted": _inserted,
           "answers marked as checks": _helpers_of_mine}

# ---------------------------------------------------------------- honest, and odd


def _moved(made):
    made.cells.reverse()
    return made


def _without_marks(base):
    made = notebook(base, RIGHT)
    for cell in made.cells:
        cell.metadata.pop("nbgrader", None)
    return made


def _in_one_cell(base):
    made = _without_marks(base)
    made.cells = [cell for cell in made.cells if cell.source not in RIGHT.values()]
    made.cells.insert(3, code("\n\n".join(RIGHT.values())))
    return made


def _doubled_answers(base):
    made = notebook(base, RIGHT)
    for name in POINTS:
        made.cells.insert(1, copy.deepcopy(cell_of(base, name)))
    return made


def _without_checks(base):
    made = notebook(base, RIGHT)
    made.cells = [cell for cell in made.cells if not exercise.grade_id(cell, "grade")]
    return made


def _broken_cells(base):
    made = notebook(base, RIGHT)
    for place in (0, 3, 9):
        made.cells.insert(place, code("this is = no Python"))
    return made


def _julia(base):
    made = notebook(base, RIGHT)
    made.metadata["kernelspec"] = {"name": "julia-1.9", "display_name": "Julia", "language": "julia"}
    return made


def _as_text(base):
    made = notebook(base, RIGHT)
    cell_of(made, "rnn_step").cell_type = "markdown"
    return made


def _old(base):
    cells = [{"cell_type": "code", "language": "python", "metadata": cell.metadata, "input": cell.source,
              "outputs": [], "collapsed": False} for cell in notebook(base, RIGHT).cells
             if cell.cell_type == "code"]
    return json.dumps({"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""},
                       "worksheets": [{"cells": cells}]}).encode()


def _coded(how):
    return lambda base: json.dumps(_with({"rnn_step": f"# é\n{RIGHT['rnn_step']}"})(base),
                                   ensure_ascii=False).encode(how, "replace")


def _with(answers):
    return lambda base: notebook(base, {**RIGHT, **answers})


def before(*lines):
    return _with({"rnn_step": "\n".join([*lines, RIGHT["rnn_step"]])})


def _many_outputs(base):
    made = notebook(base, RIGHT)
    picture = nbformat.v4.new_output("display_data", {"image/png": "x" * 5 * 10**7})
    cell_of(made, "rnn_step").outputs = [nbformat.v4.new_output("stream", text="x" * 5 * 10**7), picture]
    return made


def _much_metadata(base):
    made = notebook(base, RIGHT)
    made.metadata["notes"] = [{"a": {"b": {}}}] * 300_000
    cell_of(made, "rnn_step").metadata["notes"] = [[]] * 10**6
    return made


def _long_cell_beside(base):
    made = notebook(base, RIGHT)
    made.cells.insert(3, code("a;" * 2_000_000 + "rnn_step=1"))
    return made


ODD = {
    "marks lost": _without_marks, "all in one cell": _in_one_cell,
    "cells moved": lambda base: _moved(notebook(base, RIGHT)),
    "answers doubled, one empty": _doubled_answers, "checks deleted by mistake": _without_checks,
    "broken cells between": _broken_cells, "another language's kernel": _julia,
    "an answer that became text": _as_text,
    "format 3": _old, "byte order mark": _coded("utf-8-sig"), "UTF-16": _coded("utf-16"),
    "a Windows code page": _coded("cp1252"),
    "lines end in CR LF": _with({name: text.replace("\n", "\r\n") for name, text in RIGHT.items()}),
    "100 MB of outputs": _many_outputs, "10 MB of metadata": _much_metadata,
    "4 MB of code in a cell of one's own": _long_cell_beside,
    "a chain of 6,000 names": _with({"rnn_step": "\n".join([
        RIGHT["rnn_step"], "x6000 = 1", *(f"x{n} = x{n + 1}" for n in reversed(range(6000))),
        "rnn_step = (rnn_step, x0)[0]"])}),
    "a flood of own prints": before("for _ in range(30): print('x' * 10**6)"),
    "a progress bar": before("from tqdm.auto import tqdm", "for _ in tqdm(range(3)): pass"),
    "a file kept": before("open('notes.txt', 'w').write('x')",
                          f"open('{ANYWHERE}/notes-of-mine.txt', 'w').write('x')"),
    "a fork": before("import os", "if not os.fork(): os._exit(0)", "os.wait()"),
    "a sub-process": before("import subprocess", "subprocess.run(['true'])"),
    "float64 everywhere": before("torch.set_default_dtype(torch.float64)"),
    "no gradients": before("torch.set_grad_enabled(False)"),
    "names taken": _with({"clip_gradient": RIGHT["clip_gradient"] + "\nlist = 3"}),
    "a line that fails at the end": _with({name: f"{text}\nprint(gone)" for name, text in RIGHT.items()}),
}

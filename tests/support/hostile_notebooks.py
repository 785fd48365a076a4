"""Submissions that forge, harm or are broken, and honest ones that look odd: whole notebooks of exercise 01.

Each is made of the exercise as it was handed out, so that other graders can be given the same ones
(hostile_elsewhere.py).  What they do is bounded, but run them where nothing of value is.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from odd_notebooks import ALL, CHANGED, NONE, ODD, POINTS, RIGHT, WRONG, cell_of, code, notebook

HERE = Path(__file__).with_name("hostile")
BUT_ONE = ALL - {"rnn_step"}
LOOK_ROUND = """
import glob, os, sys
from pathlib import Path
import course_lib
def around(name):
    for place in {*Path.cwd().parents, Path.cwd(), *Path(course_lib.__file__).parents[:3]}:
        if len(place.parts) > 2:
            yield from place.glob(name)
"""
EDIT = """
import sqlite3
def edit():
    for path in {*around("gradebook.db"), *around("*/gradebook.db")}:
        with sqlite3.connect(path, timeout=60) as book:
            book.execute("update grade set manual_score = 3, needs_manual_grade = 0 where notebook_id in "
                         "(select n.id from submitted_notebook n join submitted_assignment s "
                         "on n.assignment_id = s.id where s.student_id = ?)", [Path.cwd().parent.name])
    for path in {*around("out/results.json"), *around("out/submissions/*/*.json")}:
        path.write_text(path.read_text().replace('"points": 0', '"points": 3'))
"""


@dataclass(frozen=True)
class Case:
    """make: the notebook, or the bytes of its file, of the exercise.  earns: the items that deserve their
    points.  says: what the feedback on rnn_step, or on the whole notebook, must hold."""

    make: object
    earns: frozenset
    says: str = ""


def _sources(name):
    """{title: source} of a file in hostile/."""
    parts = re.split(r"^#### (.*)\n", (HERE / name).read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _forged(source):
    source = source.replace("AROUND", LOOK_ROUND).replace("EDIT", EDIT).replace("ITEMS", repr(list(POINTS)))
    answers = {name: f"{wrong}\n{source}" for name, wrong in WRONG.items()}
    return Case(lambda base: notebook(base, answers), NONE)


def _harm(source, says):
    answers = {**RIGHT, "rnn_step": source.replace("WRONG", WRONG["rnn_step"])}
    return Case(lambda base: notebook(base, answers), BUT_ONE, says)


# What no text file holds.
UNPRINTABLE = {"half a character in the cell": "x = '\ud800'\nraise ValueError(x)",
               "a null in the cell": "x = 1\0", "ten thousand brackets": "(" * 10000}

CELL = '{"cell_type": "code", "metadata": {}, "source": "x", "outputs": [], "execution_count": null}'
FILES = {
    "empty": b"", "text": b"I did not finish, sorry", "a list": b"[]", "a number": b"5",
    "no cells": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": null}',
    "of the future": b'{"nbformat": 9, "nbformat_minor": 0, "metadata": {}, "cells": []}',
    "prose only": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [%s]}'
                  % CELL.replace("code", "markdown").encode(),
    "cut off": b'{"nbformat": 4, "cells": [' + CELL.encode(), "a zip": b"PK\3\4" + bytes(range(256)) * 100,
    "brackets without end": b"[" * 10**6, "not of text": b'{"nbformat": 4, "x": "\xff\xfe\xfd"}',
    "cells of numbers": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [1, 2, null]}',
    "sources of objects": b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [%s]}'
                          % CELL.replace('"x"', '{"a": 1}').encode(),
    "a version beyond all": b'{"nbformat": 1e999, "nbformat_minor": 5, "metadata": {}, "cells": []}',
    "100 MB of outputs and no cell": b'{"nbformat": 4, "x": "%s"}' % (b"x" * 10**8),
}


# What would wear out who reads and judges it.

def _long_cell(base):
    made = notebook(base, RIGHT)
    made.cells.remove(cell_of(made, "rnn_step"))
    made.cells.append(code("a;" * 2_000_000 + "rnn_step=1"))
    return made


def _long_answer(base):
    return notebook(base, {**RIGHT, "rnn_step": "a;" * 1_500_000})


def _many_cells(base):
    made = notebook(base, RIGHT)
    made.cells += [code("a;" * 45_000) for _ in range(20)]
    return made


def _wide_text(base):
    """140 MB that take four bytes a character, three times over, to be read: more than a worker may use."""
    made = notebook(base, RIGHT)
    made.cells.append(code("WIDE"))
    half = '"\N{SLIGHTLY SMILING FACE}'.encode() + b"x" * (7 * 10**7) + b'"'
    return json.dumps(made).encode().replace(b'"WIDE"', b"[" + half + b", " + half + b"]")


WEARING = {"4 MB of code in a cell without a mark": Case(_long_cell, BUT_ONE, "no answer cell"),
           "3 MB of code in an answer": Case(_long_answer, BUT_ONE, "3,000,000 characters, but at most 100"),
           "2 MB of code in cells": Case(_many_cells, NONE, "1.8 million characters of code"),
           "140 MB of wide text in a cell": Case(_wide_text, NONE, "reading it needed more than 1.6 GB")}


def cases():
    """{name: Case} of all, in groups."""
    made = {f"forged, {name}": _forged(source) for name, source in _sources("forgeries.txt").items()}
    made |= {f"changed, {name}": Case(make, NONE) for name, make in CHANGED.items()}
    made |= {f"harm, {name}": _harm(source, says.strip()) for title, source in _sources("harm.txt").items()
             for name, says in [title.split(" | ")]}
    made |= {f"harm, {name}": _harm(source, ".") for name, source in UNPRINTABLE.items()}
    made |= {f"odd, {name}": Case(make, ALL) for name, make in ODD.items()}
    made |= {f"wearing, {name}": case for name, case in WEARING.items()}
    return made | {f"broken, {name}": Case(lambda base, content=content: content, NONE, ".")
                   for name, content in FILES.items()}


def as_bytes(made):
    """What a case hands in, as the bytes of a file."""
    return made if isinstance(made, bytes) else json.dumps(made).encode()

"""Exercise notebooks as data: read them, find the answers in them, make the exercise of a solution.

solutions/ is the source; the exercise, pristine, is what `derive` makes of it.  A notebook that came
from outside is read with care: every fault is a NotebookError, one line that says what to do.
"""

import ast
import functools
import json
import os
import re
import sys
from pathlib import Path

SLOW = "rfc3987_syntax"  # jsonschema imports it and so compiles a grammar for 1.5 s; no notebook needs it
sys.modules.setdefault(SLOW, None)
import nbformat  # noqa: E402

if sys.modules[SLOW] is None:
    del sys.modules[SLOW]

ROOT = Path(os.environ.get("COURSE_ROOT") or Path(__file__).parents[1])
STUB = 'raise NotImplementedError("write your answer here")'
PRISTINE = ".pristine"  # a folder of a release
LARGEST = 150_000_000  # bytes; a notebook without its outputs has some ten thousand
CELL, CODE = 100_000, 1_000_000  # characters of a code cell, and of all: parsing takes 1 kB for each
KEPT = {"nbformat", "nbformat_minor", "worksheets", "cells", "cell_type", "source", "input", "code",
        "language", "metadata", "nbgrader", "grade_id", "solution", "grade"}  # of what is handed in
DAMAGED = "your file is cut off or damaged. In JupyterLab: File, Save Notebook; then hand it in again"
REGION = re.compile(r"^([ \t]*)### BEGIN SOLUTION.*?### END SOLUTION[^\n]*", re.MULTILINE | re.DOTALL)


class NotebookError(ValueError):
    """A notebook that can't be used, and why, in one line."""


def read(path, whole=True):
    """The notebook at `path`, brought to format 4.  Raises NotebookError.

    whole: if not, only what its answers need is kept, and outputs of any size are let go while it is parsed.
    """
    path = Path(path)
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # a pipe would be waited for
            raise NotebookError(f"{path}: not a file")
        if path.stat().st_size > LARGEST:
            raise NotebookError(f"{path}: {path.stat().st_size / 1e6:.0f} MB; clear its outputs "
                                "(Edit > Clear Outputs of All Cells) and save it again")
        text = _decoded(path.read_bytes())
    except FileNotFoundError:
        raise NotebookError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise NotebookError(f"{path}: a folder, not a notebook") from None
    except UnicodeDecodeError:
        raise NotebookError(f"{path}: not text, so not a notebook") from None
    except OSError as problem:
        raise NotebookError(f"{path}: can't be read ({problem.strerror})") from None
    if not text.strip():
        raise NotebookError(f"{path}: {DAMAGED}")
    try:
        parsed = nbformat.reader.reads(text, object_pairs_hook=None if whole else _kept)
        notebook = nbformat.convert(parsed, 4)  # not validated: the odd can be used too
        for cell in notebook.cells:
            parts = (cell.cell_type, str), (cell.source, str), (cell.metadata, dict)
            if not all(isinstance(part, kind) for part, kind in parts):
                raise ValueError("a cell without type, text or metadata")
    except MemoryError:
        raise
    except nbformat.reader.NotJSONError:
        raise NotebookError(f"{path}: {DAMAGED}") from None
    except Exception as problem:  # nbformat raises whatever the broken file led to
        raise NotebookError(f"{path}: not a Jupyter notebook ({type(problem).__name__}: "
                            f"{' '.join(str(problem).split())[:80]})") from None
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        raise NotebookError(f"{path}: no code cell in it")
    code = sum(len(cell.source) for cell in _code(notebook))
    if not whole and code > CODE:
        raise NotebookError(f"{path}: {code / 1e6:.1f} million characters of code, and at most "
                            f"{CODE / 1e6:g} are read; delete the cells that the exercise does not ask for")
    return notebook


def _kept(pairs):
    """An object of a notebook's JSON, without what no answer needs."""
    found = {key: value for key, value in pairs if key in KEPT}
    return {**found, "outputs": []} if found.get("cell_type") == "code" else found


def _code(notebook):
    """The cells that may hold an answer, in a form that may be parsed."""
    return [cell for cell in notebook.cells
            if (cell.cell_type == "code" or grade_id(cell)) and len(cell.source) <= CELL]


def _decoded(raw):
    """The text of a file: UTF-8 as it should be, UTF-16 or a Windows code page after some editors."""
    try:
        return raw.decode(json.detect_encoding(raw)).removeprefix("\ufeff")
    except UnicodeDecodeError:
        if not raw.lstrip().startswith(b"{"):
            raise
    return raw.decode("cp1252", "replace")


def text(notebook):
    """The notebook as the text of its file."""
    return nbformat.writes(notebook) + "\n"


def derive(solution):
    """The exercise that a solution notebook gives: answers become stubs, outputs go."""
    exercise = nbformat.from_dict(solution)
    for cell in exercise.cells:
        if cell.cell_type == "code":
            cell.source = REGION.sub(lambda match: match[1] + STUB, cell.source)
            cell.outputs, cell.execution_count = [], None
    return exercise


def pristine(stem, root=None):
    """The exercise as it was handed out, from solutions/; a release carries it in PRISTINE instead.

    root: a copy of the course, this one by default.  Raises NotebookError if the copy lacks it.
    """
    root = root or ROOT
    solution, carried = root / "solutions" / f"{stem}.ipynb", root / PRISTINE / f"{stem}.ipynb"
    return derive(read(solution if solution.exists() or not carried.exists() else carried))


def grade_id(cell, kind="solution"):
    """The cell's nbgrader id if it is of that kind ('solution': answer, 'grade': check), else None."""
    mark = cell.metadata.get("nbgrader") or {}
    name = mark.get("grade_id") if isinstance(mark, dict) and mark.get(kind) else None
    return name if isinstance(name, str) else None


def answers(notebook, names):
    """({name: source}, {name: note}) of the answer cells for the items in `names`.

    By grade_id; where that was lost, the last cell that defines the name at its top level.  The note
    says what was unusual; a name without an answer has only a note.
    """
    code, found, notes = _code(notebook), {}, {}
    defined = functools.cache(_defined)
    for name in names:
        longest = max((len(cell.source) for cell in notebook.cells if grade_id(cell) == name), default=0)
        marked = [cell.source for cell in code if grade_id(cell) == name]
        written = [source for source in marked if STUB not in source]
        if len(marked) > 1:
            notes[name] = (f"{len(marked)} cells are marked as the answer; "
                           "the last one that is filled in was taken")
        if not marked:
            marked = written = [cell.source for cell in code
                                if not grade_id(cell) and name in defined(cell.source)]
            notes[name] = ("the mark of the answer cell was lost; the cell that defines the name was taken"
                           if marked else "no answer cell for it in the notebook")
        if longest > CELL:
            notes[name] = f"its answer cell has {longest:,} characters, and at most {CELL:,} are read."
        if marked:
            found[name] = (written or marked)[-1]
    return found, notes


def _defined(source):
    """The names that a cell defines at its top level; none if it does not parse."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return names | {target.id for node in body if isinstance(node, ast.Assign)
                    for target in node.targets if isinstance(target, ast.Name)}


def hints(notebook, name):
    """The hints for an item, step by step: the folded texts of the cell with metadata course.hints."""
    for cell in notebook.cells:
        if (cell.metadata.get("course") or {}).get("hints") == name:
            steps = re.findall(r"<summary>.*?</summary>(.*?)</details>", cell.source, re.DOTALL)
            return [step.strip() for step in steps]
    return []

"""Exercise notebooks as data: read them, find the answers in them, and derive an exercise from its solution.

solutions/ is the source, and `derive` makes the original exercise from it.  Notebooks that come from
outside are read with care: every problem raises a NotebookError, whose one line says what to do.
"""

import ast
import functools
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias, cast

SLOW = "rfc3987_syntax"  # jsonschema imports it, which compiles a grammar for 1.5 s; no notebook needs it
modules = cast(dict[str, Any], sys.modules)
modules.setdefault(SLOW, None)
import nbformat  # noqa: E402

if modules[SLOW] is None:
    del modules[SLOW]

Notebook: TypeAlias = Any  # nbformat.NotebookNode, which has no annotations
Cell: TypeAlias = Any

ROOT = Path(os.environ.get("COURSE_ROOT") or Path(__file__).parents[1])
STUB = 'raise NotImplementedError("write your answer here")'
PRISTINE = ".pristine"  # a folder of a release
LARGEST = 150_000_000  # bytes; a notebook without its outputs has some ten thousand
CELL, CODE = 100_000, 1_000_000  # characters of a code cell, and of all: parsing takes 1 kB for each
KEPT = {"nbformat", "nbformat_minor", "worksheets", "cells", "cell_type", "source", "input", "code",
        "language", "metadata", "nbgrader", "grade_id", "solution", "grade"}  # of what is handed in
DAMAGED = ("the file is incomplete or damaged. In JupyterLab, choose File, Save Notebook, "
           "then hand it in again")
PLANTED = "### PLANTED"  # in a solution, before the commented code with a bug that is handed out
TASK = re.compile(r"\A## \d+ · `(\w+)`\n\n([●○]{3}) · (build|transfer|debug) · "
                  r"(\d+) minutes · (\d+) points?\n")  # how a task begins: item, difficulty, kind, ...
REGION = re.compile(r"^([ \t]*)### BEGIN SOLUTION.*?### END SOLUTION[^\n]*", re.MULTILINE | re.DOTALL)


class NotebookError(ValueError):
    """A notebook cannot be used; the message says why, in one line."""


def read(path: str | Path, whole: bool = True) -> Notebook:
    """The notebook at `path`, converted to format 4.  Raises NotebookError.

    whole: if False, only what the answers need is kept, and outputs are dropped while the file is parsed.
    """
    path = Path(path)
    notebook = _parsed(path, _content(path), whole)
    if not any(cell.cell_type == "code" for cell in notebook.cells):
        raise NotebookError(f"{path}: the notebook has no code cells")
    code = sum(len(cell.source) for cell in _code(notebook))
    if not whole and code > CODE:
        raise NotebookError(f"{path}: the notebook has {code / 1e6:.1f} million characters of code, but at "
                            f"most {CODE / 1e6:g} million are read. Delete the cells that the exercise does "
                            "not ask for")
    return notebook


def _content(path: Path) -> str:
    """The text of a file that is there, small enough, readable and not empty; else raises NotebookError."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # reading a pipe would block
            raise NotebookError(f"{path}: this is not a file")
        if path.stat().st_size > LARGEST:
            raise NotebookError(f"{path}: the file has {path.stat().st_size / 1e6:.0f} MB. Clear its outputs "
                                "(Edit > Clear Outputs of All Cells) and save it again")
        content = _decoded(path.read_bytes())
    except FileNotFoundError:
        raise NotebookError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise NotebookError(f"{path}: this is a folder, not a notebook") from None
    except UnicodeDecodeError:
        raise NotebookError(f"{path}: this is not a text file, so it cannot be a notebook") from None
    except OSError as problem:
        raise NotebookError(f"{path}: cannot be read ({problem.strerror})") from None
    if not content.strip():
        raise NotebookError(f"{path}: {DAMAGED}")
    return content


def _parsed(path: Path, content: str, whole: bool) -> Notebook:
    """The notebook in a file's text, in format 4.  Raises NotebookError if it is none."""
    try:
        parsed = nbformat.reader.reads(content, object_pairs_hook=None if whole else _kept)
        notebook = nbformat.convert(parsed, 4)  # not validated, because unusual notebooks can be used too
        if not all(map(_is_cell, notebook.cells)):
            raise ValueError("a cell has no type, text or metadata")
    except MemoryError:
        raise
    except nbformat.reader.NotJSONError:
        raise NotebookError(f"{path}: {DAMAGED}") from None
    except Exception as problem:  # nbformat raises whatever the broken file led to
        raise NotebookError(f"{path}: this is not a Jupyter notebook ({type(problem).__name__}: "
                            f"{' '.join(str(problem).split())[:80]})") from None
    return notebook


def _is_cell(cell: Cell) -> bool:
    """Whether a cell has a type, a text and metadata."""
    return (isinstance(cell.cell_type, str) and isinstance(cell.source, str)
            and isinstance(cell.metadata, dict))


def _kept(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a notebook's JSON, reduced to what answers need."""
    kept = {key: value for key, value in pairs if key in KEPT}
    return {**kept, "outputs": []} if kept.get("cell_type") == "code" else kept


def _code(notebook: Notebook) -> list[Cell]:
    """The cells that may hold an answer and are short enough to be parsed."""
    return [cell for cell in notebook.cells
            if (cell.cell_type == "code" or grade_id(cell)) and len(cell.source) <= CELL]


def _decoded(raw: bytes) -> str:
    """The text of a file: UTF-8 as a rule, UTF-16 or a Windows code page from some editors."""
    try:
        return raw.decode(json.detect_encoding(raw)).removeprefix("\ufeff")
    except UnicodeDecodeError:
        if not raw.lstrip().startswith(b"{"):
            raise
    return raw.decode("cp1252", "replace")


def text(notebook: Notebook) -> str:
    """The notebook as the text of its file."""
    return f"{nbformat.writes(notebook)}\n"


def derive(solution: Notebook) -> Notebook:
    """The exercise for a solution notebook: answers are taken out, and outputs are removed."""
    exercise = nbformat.from_dict(solution)
    exercise.metadata.pop("course", None)    # what is written down there is about the solution's outputs
    for cell in exercise.cells:
        if cell.cell_type == "code":
            cell.source = handed_out(cell.source)
            cell.outputs, cell.execution_count = [], None
    return exercise


def handed_out(source: str) -> str:
    """A cell of a solution as it is handed out: with a stub in the place of its answer.

    In a debug item the answer is followed by PLANTED and the lines of the code with a bug, as comments: then
    these lines take its place.
    """
    return REGION.sub(_handed_out, source)


def _handed_out(region: re.Match[str]) -> str:
    _, planted, code = region[0].partition(PLANTED)
    if not planted:
        return region[1] + STUB
    return "\n".join(re.sub(r"^(\s*)# ?", r"\1", line) for line in code.split("\n")[1:-1])


def pristine(stem: str, root: Path | None = None) -> Notebook:
    """The exercise as it was handed out, made from solutions/; a release has it in PRISTINE instead.

    root: a copy of the course, by default this one.  Raises NotebookError if the copy does not have it.
    """
    root = root or ROOT
    solution, carried = root / "solutions" / f"{stem}.ipynb", root / PRISTINE / f"{stem}.ipynb"
    return derive(read(solution if solution.exists() or not carried.exists() else carried))


def grade_id(cell: Cell, kind: str = "solution") -> str | None:
    """The cell's nbgrader id if it is of that kind ('solution': answer, 'grade': check), else None."""
    mark = cell.metadata.get("nbgrader") or {}
    name = mark.get("grade_id") if isinstance(mark, dict) and mark.get(kind) else None
    return name if isinstance(name, str) else None


def answers(notebook: Notebook, names: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """({name: source}, {name: note}) of the answer cells for the items in `names`.

    Cells are found by grade_id; if that was lost, the last cell that defines the name at its top level is
    used.  A note says what was unusual; a name without an answer has only a note.
    """
    code = _code(notebook)
    sources: dict[str, str] = {}
    notes: dict[str, str] = {}
    defined = functools.cache(_defined)
    for name in names:
        longest = max((len(cell.source) for cell in notebook.cells if grade_id(cell) == name), default=0)
        marked = [cell.source for cell in code if grade_id(cell) == name]
        written = [source for source in marked if STUB not in source]
        if len(marked) > 1:
            notes[name] = (f"{len(marked)} cells are marked as the answer; "
                           "the last one that is filled in was used")
        if not marked:
            marked = written = [cell.source for cell in code
                                if not grade_id(cell) and name in defined(cell.source)]
            notes[name] = ("the answer cell has lost its mark, so the cell that defines the name was used"
                           if marked else "the notebook has no answer cell for it")
        if longest > CELL:
            notes[name] = f"its answer cell has {longest:,} characters, but at most {CELL:,} are read."
        if marked:
            sources[name] = (written or marked)[-1]
    return sources, notes


def _defined(source: str) -> set[str]:
    """The names that a cell defines at its top level; none if it does not parse."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    names = {node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return names | {target.id for node in body if isinstance(node, ast.Assign)
                    for target in node.targets if isinstance(target, ast.Name)}


def hints(notebook: Notebook, name: str) -> list[str]:
    """The hints for an item, step by step: the folded texts of the cell with metadata course.hints."""
    for cell in notebook.cells:
        if (cell.metadata.get("course") or {}).get("hints") == name:
            steps = re.findall(r"<summary>.*?</summary>(.*?)</details>", cell.source, re.DOTALL)
            return [step.strip() for step in steps]
    return []

"""Frames: pictures of `explore`, drawn ahead, so that its sliders move in the book without a kernel.

A cell that ends in explore(...) has notebooks/frames/LESSON/CELL.webp, all its pictures below each other, and
CELL.json, which says what each of them shows.  They hold as long as the code up to this cell is what drew
them.  draw_frames.py draws them while the lesson is executed.
"""

import ast
import contextlib
import hashlib
import json
import re

from . import draw_frames

SUGGESTED = re.compile(r"(?<![*\w])\*([^*\n]+)\*(?![*\w])")    # in italics


def widgets(notebook):
    """{cell id: the call of explore} for the cells that end in one."""
    found = {}
    for cell in notebook.cells:
        if cell.cell_type == "code" and "explore(" in cell.source:
            with contextlib.suppress(SyntaxError):    # a cell of IPython's
                last = getattr(ast.parse(cell.source).body[-1], "value", None)
                if getattr(getattr(last, "func", None), "id", "") == "explore":
                    found[cell.id] = last
    return found


def digest(notebook, cell_id):
    """The digest of all code up to a cell."""
    found = hashlib.sha256()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found.update(f"{cell.source}\0".encode())
        if cell.id == cell_id:
            return found.hexdigest()[:16]
    raise KeyError(cell_id)


def place(path, cell_id):
    """Where the pictures of a cell are; what they show is beside them, in .json."""
    return path.parent / "frames" / path.stem / f"{cell_id}.webp"


def stored_for(path, notebook):
    """{cell id: what its pictures show} for a lesson's widgets; None where there are none of this code."""
    found = {}
    for cell_id in widgets(notebook) if path.parent.name == "notebooks" else ():
        picture = place(path, cell_id)
        known = picture.exists() and picture.with_suffix(".json").exists()
        shown = json.loads(picture.with_suffix(".json").read_text(encoding="utf-8")) if known else {}
        found[cell_id] = shown if shown.get("digest") == digest(notebook, cell_id) else None
    return found


def tidy(path, notebook):
    """Remove the frames of cells that are no longer there."""
    kept = {place(path, cell_id).stem for cell_id in widgets(notebook)}
    for file in place(path, "any").parent.glob("*"):
        if file.stem not in kept:
            file.unlink()


def code(path, notebook, cell_id):
    """The code that draws the frames of a widget, in the lesson's kernel, once its cell has run."""
    arguments = ast.unparse(widgets(notebook)[cell_id]).removeprefix("explore")
    given = (str(place(path, cell_id)), digest(notebook, cell_id), suggested(notebook, cell_id))
    return f"__import__('importlib').import_module({draw_frames.__name__!r}).drawer{given!r}{arguments}"


def suggested(notebook, cell_id):
    """The sentences that the text beside a cell tells the reader to try: those in italics, of three words."""
    index = [cell.id for cell in notebook.cells].index(cell_id)
    beside = notebook.cells[max(index - 1, 0):index + 2]
    return [text for cell in beside if cell.cell_type == "markdown"
            for text in SUGGESTED.findall(cell.source) if len(text.split()) >= 3]

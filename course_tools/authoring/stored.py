"""How a notebook of the course is stored: the same bytes, whoever runs it and whenever."""

import configparser
import hashlib
import itertools
import re
from pathlib import Path

import nbformat

from .. import files
from ..exercise import ROOT
from ..saving import KERNEL, LIVE

PASSING = {"collapsed", "execution", "ExecuteTime", "scrolled", "trusted", "vscode"}  # traces of an editor
SANITIZE = Path(__file__).parents[2] / "course_lib" / "nbval_sanitize.cfg"    # as nbval is given


class Fault(Exception):
    """A problem that an author has to fix; the message says where."""


def find(folder, keys=()):
    """The notebooks of a folder, in order; those of `keys` if any are given.

    keys: '01', '1' or a full stem each; a key that matches no notebook of the folder is ignored.
    """
    paths = sorted((ROOT / folder).glob("*.ipynb"))
    return [path for path in paths if not keys or path.stem in keys
            or path.stem.split("_")[0] in {key.zfill(2) for key in keys}]


def find_all(folders, keys=()):
    """The notebooks of several folders.  Raises Fault for a key that matches none of them."""
    for key in keys:
        if not any(find(folder, [key]) for folder in folders):
            there = sorted({path.stem for folder in folders for path in find(folder)})
            raise Fault(f"there is no notebook {key!r} in {' or '.join(folders)}. "
                        f"Choose one of: {', '.join(there)}")
    found = [path for folder in folders for path in find(folder, keys)]
    if not found:
        raise Fault(f"there are no notebooks in {', '.join(str(ROOT / folder) for folder in folders)}")
    return found


def name(path):
    """The short form of a path: 'notebooks/01_long_term_dependency.ipynb'."""
    return f"{path.parent.name}/{path.name}"


def normalise(notebook):
    """Remove, in place, everything that changes from run to run or from editor to editor."""
    kept = {key: value for key, value in notebook.metadata.items() if key == "course"}
    notebook.metadata = nbformat.from_dict({**KERNEL, **kept})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({key: value for key, value in cell.metadata.items()
                                            if key not in PASSING and value not in ([], {})})
        for output in cell.get("outputs", []):
            if "execution_count" in output:
                output.execution_count = cell.execution_count
            if "metadata" in output:
                output.metadata = nbformat.from_dict({})
    return notebook


def faults(notebook):
    """What a stored notebook must not contain, one line each: errors, stderr, live widgets."""
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                found.append(f"cell {cell.id} stores an error, {output.ename}: {output.evalue}")
            elif output.get("name") == "stderr":
                found.append(f"cell {cell.id} writes to stderr: {output.text.strip()[:300]}")
            elif LIVE in output.get("data", {}):
                found.append(f"cell {cell.id} stores a live widget. Use course_lib.widgets, "
                             "which respect COURSE_STATIC")
    return found


def keep_outputs(notebook, before):
    """Keep the outputs stored in `before`, in place, if only measured numbers and pictures differ.

    All of them or none, so that a page never mixes two runs; and none unless `before` says that they came
    from the code that stands there now.
    """
    if executed(before) != _digests(notebook):
        return
    pairs = list(zip(_code(notebook), _code(before), strict=True))
    if all(list(map(_compared, new.outputs)) == list(map(_compared, old.outputs)) for new, old in pairs):
        for new, old in pairs:
            new.outputs = old.outputs


def sign(notebook):
    """Write down, in the notebook's metadata, which source made the output of each code cell."""
    notebook.metadata["course"] = {**(notebook.metadata.get("course") or {}),
                                   "executed": " ".join(_digests(notebook))}


def executed(notebook):
    """The digests of the sources that made the outputs, a list, one for each code cell; [] if unknown."""
    return (notebook.metadata.get("course") or {}).get("executed", "").split()


def edited(notebook):
    """The ids of the code cells whose outputs came from other code; of all, if that is unknown."""
    made = itertools.chain(executed(notebook), itertools.repeat(None))
    return [cell.id for cell, digest in zip(_code(notebook), made, strict=False) if digest != _digest(cell)]


def _digests(notebook):
    return [_digest(cell) for cell in _code(notebook)]


def _digest(cell):
    return hashlib.sha256(cell.source.encode()).hexdigest()[:8]


def _code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _compared(output):
    """What nbval compares in an output: its texts without measured numbers, and that there is a picture."""
    texts = {key: sanitized(value) if isinstance(value, str) and not key.startswith("image/") else key
             for key, value in output.get("data", {}).items()}
    return output.output_type, output.get("name"), sanitized(output.get("text", "")), texts


def sanitized(text):
    """The text as a comparison of stored outputs sees it: without the values of the run."""
    config = configparser.RawConfigParser()
    config.read(SANITIZE, encoding="utf-8")
    for pattern in config.values():
        if "regex" in pattern:
            text = re.sub(pattern["regex"], pattern["replace"], text)
    return text


def write(notebook, path):
    """Store a notebook in normal form, all or nothing.  Returns whether the file changed."""
    notebook = normalise(notebook)
    nbformat.validate(notebook)
    return files.update(path, nbformat.writes(notebook).rstrip("\n") + "\n")

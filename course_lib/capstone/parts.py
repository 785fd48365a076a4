"""The parts of a Transformer from the exercises beside this notebook: the learner's where they pass."""

import ast
import linecache
import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from .. import checks, exercise
from ..checks import honesty
from ..checks.judge import examine

# Where each part comes from, in the order in which later parts use earlier ones.
EXERCISES = {
    "03_seq2seq": ["greedy_decode"],
    "05_query_key_value": ["attention"],
    "06_batch_vs_layer_norm": ["layer_norm"],
    "08_self_attention_and_masks": ["causal_mask", "padding_mask"],
    "09_multi_head_attention": ["split_heads", "merge_heads", "MultiHeadAttention"],
    "10_positional_encoding": ["positional_encoding", "add_positions"],
    "11_transformer_blocks": ["FeedForward", "EncoderBlock", "DecoderBlock"],
}


@dataclass
class Part:
    """A function or class of the Transformer.

    why: why it is not the learner's, empty if it is.  file: what tracebacks call its source.
    """

    name: str
    stem: str
    answer: object
    why: str = ""
    file: str = ""

    @property
    def mine(self):
        return not self.why

    @property
    def line(self):
        """One line for the learner."""
        if self.mine:
            return f"✓ {self.name}: yours, from exercise {self.stem[:2]}"
        return f"· {self.name}: the library's, since {self.why}"


class Parts(dict):
    """{name: function or class}; `told` has the Part of each."""

    def __init__(self):
        super().__init__()
        self.told = {}

    def add(self, part):
        self.told[part.name] = part
        self[part.name] = part.answer
        print(part.line)


def gather(folder="."):
    """The parts of the Transformer that earlier exercises had you build, as {name: function or class}.

    folder: where the exercise notebooks lie; beside this one unless told.  Each answer that passes its
    check is taken, and sees the parts that were taken before it; for each other one the library's stands
    in.  Prints a line for each.
    """
    parts = Parts()
    for stem, names in EXERCISES.items():
        sources, imports, why = _read(Path(folder) / f"{stem}.ipynb", names)
        for name in names:
            parts.add(_part(name, stem, sources.get(name), imports, why, parts))
    return parts


def _read(path, names):
    """({name: source}, the notebook's import lines, why there is nothing)"""
    try:
        notebook = exercise.read(path, whole=False)
    except exercise.NotebookError as problem:
        return {}, "", str(problem) if path.exists() else f"there is no {path.name} beside this notebook"
    sources, _ = exercise.answers(notebook, names)
    return sources, _imports(notebook), ""


def _imports(notebook):
    """What the notebook's first code cell imports, the course aside: its answers may use it."""
    first = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    try:
        body = ast.parse(first).body
    except (SyntaxError, ValueError):
        return ""
    lines = [ast.unparse(node) for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return "\n".join(line for line in lines if "course_lib" not in line)


def _part(name, stem, source, imports, why, earlier):
    item = checks.items(stem)[name]
    part = Part(name, stem, item.reference, why, f"exercise {stem[:2]}, {name}")
    if why:
        return part
    if source is None or exercise.STUB in source:
        part.why = f"exercise {stem[:2]} has no answer for it yet"
        return part
    borrowed = honesty.borrowed(source, item)
    if borrowed:
        part.why = f"yours is borrowed: {borrowed}"
        return part
    names = {"math": math, "torch": torch, "nn": nn, "F": F}
    try:
        exec(imports, names)
        names |= {used: checks.find(used)[1].reference for used in item.uses} | earlier
        answer = _defined(source, part, names)
        verdict = examine(item, answer)
    except (Exception, SystemExit) as problem:  # whatever a learner's cell may raise
        part.why = f"yours raises {type(problem).__name__}: {one_line(problem)}"
        return part
    if verdict.passed:
        part.answer = answer
    else:
        part.why = f"yours does not pass yet: {one_line(verdict.message)} (course check {stem[:2]})"
    return part


def _defined(source, part, names):
    """Run an answer cell, so that tracebacks show its lines under `part.file`."""
    linecache.cache[part.file] = len(source), None, source.splitlines(keepends=True), part.file
    exec(compile(source, part.file, "exec"), names)
    if part.name not in names:
        raise NameError(f"the cell defines no {part.name}")
    return names[part.name]


def one_line(text):
    """A message or an error in one line."""
    return " ".join(str(text).split())

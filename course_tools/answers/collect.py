"""Find the learner's answers in the exercise notebooks, and use those that pass their checks."""

import ast
import contextlib
import io
import linecache
import math
import re
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from .. import exercise
from ..items import registry
from ..judging import honesty
from ..judging.judge import examine


@dataclass
class CollectedAnswer:
    """The function or class that a graded item asks for: the learner's, or the library's in its place.

    why: why it is not the learner's, empty if it is.  file: the name of its source in tracebacks.
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
        return f"· {self.name}: the library's, because {self.why}"


class Collection(dict):
    """{name: function or class} of the requested items; `collected` has the CollectedAnswer of each."""

    def __init__(self, folder, here):
        super().__init__()
        self.folder, self.here, self.collected = Path(folder), here or {}, {}
        self._known = {}  # {name: CollectedAnswer} of these and of those that they use
        self._notebooks = {}  # {stem: what `_read` returned}

    def add(self, name):
        """Add the item of that name, and print whose it is."""
        known = self.collected[name] = self._collected(name)
        self[name] = known.answer
        print(known.line)

    def _collected(self, name):
        """The answer to an item, checked with the answers that it uses and those that were added before."""
        if name not in self._known:
            stem, item = registry.find(name)
            if getattr(self.here.get(name), "__module__", None) == "__main__":
                self._known[name] = of_this_notebook(stem, item, self.here[name])
            else:
                used = [self._collected(other) for other in (*item.uses, *item.handed)]
                self._known[name] = self._from_file(stem, item, used)
        return self._known[name]

    def _from_file(self, stem, item, used):
        """The answer to an item of another notebook; prints which of those in `used` are the library's."""
        if stem not in self._notebooks:
            self._notebooks[stem] = _read(self.folder / f"{stem}.ipynb")
        sources, imports, why = self._notebooks[stem]
        collected = CollectedAnswer(item.name, stem, item.reference, why, f"exercise {stem[:2]}, {item.name}")
        source = sources.get(item.name, "")
        if collected.mine:
            collected.why = _unusable(stem, item, source)
        if collected.mine:
            earlier = {name: known.answer for name, known in self._known.items()}
            _try(collected, item, source, imports, earlier)
        for other in used:
            if collected.mine and not other.mine and re.search(rf"\b{other.name}\b", source):
                print(f"{other.line}; your {item.name} uses it")
        return collected


def gather(names, folder=".", here=None):
    """The Collection of these names.  Prints a line for each; arguments as those of `earlier_answers`."""
    collection = Collection(folder, here)
    for name in names:
        collection.add(name)
    return collection


def of_this_notebook(stem, item, answer):
    """The CollectedAnswer for an answer in a cell of this notebook."""
    verdict = examine(item, answer)
    if not verdict.passed:
        return CollectedAnswer(item.name, stem, item.reference, _why(verdict))
    code = getattr(getattr(answer, "forward", answer), "__code__", None)
    file = code.co_filename if code else ""  # each cell is a file
    return CollectedAnswer(item.name, stem, answer, file=file)


def _read(path):
    """({name: source} of the answers in a notebook, its import lines, why there are none)"""
    try:
        notebook = exercise.read(path, whole=False)
    except exercise.NotebookError as problem:
        return {}, "", str(problem) if path.exists() else f"there is no {path.name} beside this notebook"
    sources, _ = exercise.answers(notebook, registry.items(path.stem))
    return sources, _imports(notebook), ""


def _imports(notebook):
    """The imports of the notebook's first code cell, except those of the course: answers may use them."""
    first = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    try:
        body = ast.parse(first).body
    except (SyntaxError, ValueError):
        return ""
    lines = [ast.unparse(node) for node in body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return "\n".join(line for line in lines if not re.search(r"\bcourse_(lib|tools)\b", line))


def _unusable(stem, item, source):
    """Why there is nothing to check; empty if there is something."""
    if not source or exercise.STUB in source:
        return f"exercise {stem[:2]} has no answer for it yet"
    borrowed = honesty.borrowed(source, item)
    return f"yours does not count: {borrowed}" if borrowed else ""


def _try(collected, item, source, imports, earlier):
    """Put the learner's answer into `collected` if it passes, otherwise the reason why it does not."""
    names = {"__name__": f"exercise_{collected.stem[:2]}", "math": math, "torch": torch, "nn": nn, "F": F}
    nowhere = io.StringIO()
    try:
        with (contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere),
              torch.random.fork_rng(devices=[])):
            exec(imports, names)
            names |= earlier
            answer = _defined(source, collected, names)
            verdict = examine(item, answer)
    except (Exception, SystemExit) as problem:  # whatever a learner's cell may raise
        collected.why = f"yours raises {type(problem).__name__}: {one_line(problem)}"
        return
    if verdict.passed:
        collected.answer = answer
    else:
        collected.why = f"{_why(verdict)} (course check {collected.stem[:2]})"


def _why(verdict):
    """Why an answer is not used."""
    if verdict.status == "missing":
        return "it is not answered yet"
    return f"yours does not pass yet: {one_line(verdict.message)}"


def _defined(source, collected, names):
    """Run an answer cell, so that tracebacks show its lines under `collected.file`."""
    file = collected.file
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    exec(compile(source, file, "exec"), names)
    if collected.name not in names:
        raise NameError(f"the cell does not define {collected.name}")
    return names[collected.name]


def one_line(text):
    """A message or an error in one line."""
    return " ".join(str(text).split())

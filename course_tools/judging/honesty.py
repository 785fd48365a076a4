"""Find answers that are taken from a library, in their source code and without running it.

The calls that actually ran are recorded as well (`observe`); this catches what was hidden from the record.
A free call counts if the answer reaches it, through any answer cell of its notebook.  A line that compares
with torch's own function, a comment or a string does not count.
"""

import ast
import inspect
import textwrap
import types
from collections.abc import Iterable
from typing import Any, TypeGuard

from .libraries import LIBRARIES
from .probes import Answer
from .reached import IMPORTS, TAMPERS, Chunk, chunks, reached
from .source import BUILT_IN, first, last
from .spec import Item

COURSE = ("course_lib", "course_tools")
TOOLS = ("course_tools.answers", "course_lib.answers",
         *(f"course_lib.{name}" for name in ("runtime", "shapes", "plots", "widgets")))
EARNS_NOTHING = "so it earns nothing here. Write out the steps yourself."
HIDES = {*BUILT_IN, "get_ipython"}
MOST = 100  # definitions that an answer in a running notebook is followed through


def borrowed(source: str, item: Item, others: Iterable[str] = ()) -> str | None:
    """The message for an answer that takes its work from the course, from a library or from one of the item's
    free calls, or that hides what it does; None for others, or if the source does not parse.

    source: the answer's cell.  others: the sources of the other answer cells of its notebook.
    """
    cell = chunks(source)
    if cell is None:
        return None
    beside = [chunk for other in others if other != source for chunk in chunks(other) or ()]
    free = {_plain(name) for name in item.free}
    roots = _roots([*cell, *beside])
    follows = reached(cell, beside, item.name, item.uses)
    for chunk in {id(chunk): chunk for chunk in (*cell, *follows)}.values():
        for node in chunk.nodes:
            if name := _course(node, item.handed) or _library(node, free):
                return f"{name} does the whole job, {EARNS_NOTHING}"
    defined = {node.name for chunk in (*cell, *beside) for node in chunk.statements
               if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    star = any(_from_torch(node) and node.names[0].name == "*"
               for chunk in follows for node in chunk.statements)
    for chunk in follows:
        if name := _free_call(chunk, free, roots, star):
            return f"{name} does the whole job, {EARNS_NOTHING}"
        if name := _hidden(chunk, defined):
            return f"{name} runs code that is not written out, {EARNS_NOTHING}"
    return None


def sources(answer: Answer, namespace: dict[str, Any]) -> list[str]:
    """The source of an answer in a running notebook, then those of the names it uses there, each as a
    statement that binds the name.  Raises OSError or TypeError if the answer has no source."""
    texts = [_source(answer)]
    seen: set[str] = set()
    for text in texts:
        for name in sorted({name for chunk in chunks(text) or () for name in chunk.uses} - seen):
            seen.add(name)
            if name in namespace and len(texts) < MOST:
                texts.append(_binding(name, namespace[name], answer.__module__))
    return texts


def _binding(name: str, value: Any, notebook: str) -> str:
    """A statement that binds a name as in the notebook; empty if the name is irrelevant."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}" if _package(value.__name__) not in COURSE else ""
    kind = value if isinstance(getattr(value, "__name__", None), str) else type(value)
    if getattr(kind, "__module__", None) == notebook:
        try:
            return f"{_source(kind)}\n{name} = {kind.__name__}"
        except (OSError, TypeError):
            return ""
    of_torch = _package(getattr(kind, "__module__", None) or "torch") == "torch"
    return f"from torch import {kind.__name__} as {name}" if of_torch else ""


def _source(answer: Any) -> str:
    """The source of a function or class; if that of a class is not available, that of its methods."""
    try:
        return textwrap.dedent(inspect.getsource(answer))
    except (OSError, TypeError):
        if not isinstance(answer, type):
            raise
    methods = [inspect.getsource(value) for value in vars(answer).values() if inspect.isfunction(value)]
    return f"class {answer.__name__}:\n" + ("\n".join(methods) or "    pass\n")


def readable(source: str) -> bool:
    """Whether `borrowed` can examine a cell.  A cell that runs but cannot be parsed hides what it does."""
    return chunks(source) is not None


def _free_call(chunk: Chunk, free: set[str], roots: set[str], star: bool) -> str | None:
    """The name of a free call that statements mention, by its name or by a string.  star: whether torch's
    names are there without torch."""
    names = [_free(node, free, roots) for node in chunk.nodes]
    names += [text for text in chunk.strings if _plain(text) in free or _package(text) in LIBRARIES]
    names += [name for name in chunk.uses if star and _plain(name) in free]
    return next(filter(None, names), None)


def _hidden(chunk: Chunk, defined: set[str]) -> str | None:
    """The name of what runs unseen code: exec, an IPython function, an import with a computed name."""
    if chunk.hides and chunk.hides not in defined:
        return chunk.hides
    for node in chunk.nodes:
        name = last(node)
        if name in TAMPERS:
            return name
        if isinstance(node, ast.alias) and node.name in HIDES:
            return node.name
        if isinstance(node, ast.Name) and name in HIDES - defined and name in chunk.uses:
            return name
    return None


def _roots(code: list[Chunk]) -> set[str]:
    """The names through which torch's functions are reached: torch, nn, F, and names bound to these."""
    roots = {"torch", "nn", "F"}
    for chunk in code:
        for node in chunk.nodes:
            if _from_torch(node):
                roots |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Import):
                roots |= {alias.asname for alias in node.names
                          if alias.asname and _package(alias.name) == "torch"}
            elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute)):
                if first(node.value) in roots:
                    roots |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return roots


def _modules(node: ast.AST) -> list[str]:
    """The modules that a node imports; `from MODULE import check` imports none."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] != ["check"]:
        return [node.module or ""]
    if isinstance(node, ast.Call) and last(node.func) in IMPORTS and node.args:
        return [str(getattr(node.args[0], "value", ""))]
    return []


def _course(node: ast.AST, handed: Iterable[str]) -> str | None:
    """The module of the course that a node imports, other than tools and `check`; or a call of
    `earlier_answers` that takes more than the exercise hands over."""
    if isinstance(node, ast.Call) and last(node.func) == "earlier_answers":
        taken = {getattr(argument, "value", None) for argument in node.args}
        return None if taken <= {*handed} else ast.unparse(node)
    return next((name for name in _modules(node) if _package(name) in COURSE and name not in TOOLS), None)


def _library(node: ast.AST, free: set[str]) -> str | None:
    """The module that a node imports and that contains a whole answer (sacrebleu), or None."""
    return next((name for name in _modules(node)
                 if _package(name) in LIBRARIES or _plain(_package(name)) in free), None)


def _free(node: ast.AST, free: set[str], roots: set[str]) -> str | None:
    """torch's name for a free call that a node mentions (`F.glu`, `nn.LSTMCell`), or None."""
    if isinstance(node, ast.Attribute) and _plain(node.attr) in free and first(node) in roots:
        return node.attr
    if _from_torch(node):
        return next((alias.name for alias in node.names if _plain(alias.name) in free), None)
    return None


def _from_torch(node: ast.AST) -> TypeGuard[ast.ImportFrom]:
    return isinstance(node, ast.ImportFrom) and _package(node.module or "") == "torch"


def _plain(name: str) -> str:
    """'lstm_cell' and 'LSTMCell' are one."""
    return name.replace("_", "").lower()


def _package(name: str) -> str:
    return name.split(".")[0]

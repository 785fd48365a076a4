"""Find answers that are taken from a library, in their source code and without running it.

The calls that actually ran are recorded as well (`observe`); this catches what was hidden from the record.
A free call counts if the answer reaches it, through any answer cell of its notebook.  A line that compares
with torch's own function, a comment or a string does not count.
"""

import ast
import inspect
import textwrap
import types

from .libraries import LIBRARIES
from .reached import IMPORTS, TAMPERS, parts, reached
from .source import BUILT_IN, first, last

COURSE = ("course_lib", "course_tools")
TOOLS = ("course_tools.answers", "course_lib.answers",
         *(f"course_lib.{name}" for name in ("runtime", "shapes", "plots", "widgets")))
EARNS_NOTHING = "so it earns nothing here. Write out the steps yourself."
HIDES = {*BUILT_IN, "get_ipython"}
MOST = 100  # definitions that an answer in a running notebook is followed through


def borrowed(source, item, others=()):
    """The message for an answer that takes its work from the course, from a library or from one of the item's
    free calls, or that hides what it does; None for others, or if the source does not parse.

    source: the answer's cell.  others: the sources of the other answer cells of its notebook.
    """
    cell = parts(source)
    if cell is None:
        return None
    others = [part for other in others if other != source for part in parts(other) or ()]
    free = {_plain(name) for name in item.free}
    roots = _roots([*cell, *others])
    follows = reached(cell, others, item.name, item.uses)
    for part in {id(part): part for part in (*cell, *follows)}.values():
        for node in part.nodes:
            if name := _course(node, item.handed) or _library(node, free):
                return f"{name} does the whole job, {EARNS_NOTHING}"
    defined = {node.name for part in (*cell, *others) for node in part.statements
               if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    star = any(_from_torch(node) and node.names[0].name == "*"
               for part in follows for node in part.statements)
    for part in follows:
        if name := _free_call(part, free, roots, star):
            return f"{name} does the whole job, {EARNS_NOTHING}"
        if name := _hidden(part, defined):
            return f"{name} runs code that is not written out, {EARNS_NOTHING}"
    return None


def sources(answer, namespace):
    """The source of an answer in a running notebook, then those of the names it uses there, each as a
    statement that binds the name.  Raises OSError or TypeError if the answer has no source."""
    found, seen = [_source(answer)], set()
    for source in found:
        for name in sorted({name for part in parts(source) or () for name in part.uses} - seen):
            seen.add(name)
            if name in namespace and len(found) < MOST:
                found.append(_binding(name, namespace[name], answer.__module__))
    return found


def _binding(name, value, notebook):
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


def _source(answer):
    """The source of a function or class; if that of a class is not available, that of its methods."""
    try:
        return textwrap.dedent(inspect.getsource(answer))
    except (OSError, TypeError):
        if not isinstance(answer, type):
            raise
    methods = [inspect.getsource(value) for value in vars(answer).values() if inspect.isfunction(value)]
    return f"class {answer.__name__}:\n" + ("\n".join(methods) or "    pass\n")


def readable(source):
    """Whether `borrowed` can examine a cell.  A cell that runs but cannot be parsed hides what it does."""
    return parts(source) is not None


def _free_call(part, free, roots, star):
    """The name of a free call that statements mention, by its name or by a string.  star: whether torch's
    names are there without torch."""
    found = [_free(node, free, roots) for node in part.nodes]
    found += [text for text in part.strings if _plain(text) in free or _package(text) in LIBRARIES]
    found += [name for name in part.uses if star and _plain(name) in free]
    return next(filter(None, found), None)


def _hidden(part, defined):
    """The name of what runs unseen code: exec, an IPython function, an import with a computed name."""
    if part.hides and part.hides not in defined:
        return part.hides
    for node in part.nodes:
        name = last(node)
        if name in TAMPERS or isinstance(node, ast.alias) and node.name in HIDES:
            return name or node.name
        if isinstance(node, ast.Name) and name in HIDES - defined and name in part.uses:
            return name
    return None


def _roots(found):
    """The names through which torch's functions are reached: torch, nn, F, and names bound to these."""
    roots = {"torch", "nn", "F"}
    for part in found:
        for node in part.nodes:
            if _from_torch(node):
                roots |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Import):
                roots |= {alias.asname for alias in node.names if _package(alias.name) == "torch"} - {None}
            elif isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute)):
                if first(node.value) in roots:
                    roots |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return roots


def _modules(node):
    """The modules that a node imports; `from MODULE import check` imports none."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] != ["check"]:
        return [node.module or ""]
    if isinstance(node, ast.Call) and last(node.func) in IMPORTS and node.args:
        return [str(getattr(node.args[0], "value", ""))]
    return []


def _course(node, handed):
    """The module of the course that a node imports, other than tools and `check`; or a call of
    `earlier_answers` that takes more than the exercise hands over."""
    if isinstance(node, ast.Call) and last(node.func) == "earlier_answers":
        taken = {getattr(argument, "value", None) for argument in node.args}
        return None if taken <= {*handed} else ast.unparse(node)
    return next((name for name in _modules(node) if _package(name) in COURSE and name not in TOOLS), None)


def _library(node, free):
    """The module that a node imports and that contains a whole answer (sacrebleu), or None."""
    return next((name for name in _modules(node)
                 if _package(name) in LIBRARIES or _plain(_package(name)) in free), None)


def _free(node, free, roots):
    """torch's name for a free call that a node mentions (`F.glu`, `nn.LSTMCell`), or None."""
    if isinstance(node, ast.Attribute) and _plain(node.attr) in free and first(node) in roots:
        return node.attr
    if _from_torch(node):
        return next((alias.name for alias in node.names if _plain(alias.name) in free), None)
    return None


def _from_torch(node):
    return isinstance(node, ast.ImportFrom) and _package(node.module or "") == "torch"


def _plain(name):
    """'lstm_cell' and 'LSTMCell' are one."""
    return name.replace("_", "").lower()


def _package(name):
    return name.split(".")[0]

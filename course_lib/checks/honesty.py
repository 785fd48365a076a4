"""Answers that are a library's: found in their source, without running it.

The calls that ran are noted as well (`observe`); this catches what was hidden from them.  A free call
counts where the answer reaches it, through any answer cell of its notebook: a line that compares with
torch's own, a comment, a string do not.
"""

import ast
import inspect
import textwrap
import types

from .libraries import LIBRARIES
from .reached import IMPORTS, TAMPERS, parts, reached
from .source import BUILT_IN, first, last

COURSE = "course_lib"
TOOLS = tuple(f"{COURSE}.{name}" for name in ("answers", "runtime", "shapes", "plots", "widgets"))
EARNS_NOTHING = "and earns nothing here: write the steps out."
HIDES = {*BUILT_IN, "get_ipython"}
MOST = 100  # definitions that an answer in a running notebook is followed through


def borrowed(source, item, others=()):
    """The sentence to tell if the answer takes its work from course_lib, from a library or from one of the
    item's free calls, or hides what it does; None if it does not, or if the source does not parse.

    source: the answer's cell.  others: the sources of the other answer cells of its notebook.
    """
    own = parts(source)
    if own is None:
        return None
    others = [part for other in others if other != source for part in parts(other) or ()]
    free = {_plain(name) for name in item.free}
    roots = _roots([*own, *others])
    follows = reached(own, others, item.name, item.uses)
    for part in {id(part): part for part in (*own, *follows)}.values():
        for node in part.nodes:
            if name := _course(node, item.handed) or _library(node, free):
                return f"{name} holds the answer itself {EARNS_NOTHING}"
    defined = {node.name for part in (*own, *others) for node in part.statements
               if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    star = any(_from_torch(node) and node.names[0].name == "*"
               for part in follows for node in part.statements)
    for part in follows:
        if name := _free_call(part, free, roots, star):
            return f"{name} holds the answer itself {EARNS_NOTHING}"
        if name := _hidden(part, defined):
            return f"{name} runs what is not written out {EARNS_NOTHING}"
    return None


def sources(answer, namespace):
    """The source of an answer in a running notebook, then those of what it uses there, each as the statement
    that binds a name.  Raises OSError or TypeError where the answer has no source."""
    found, seen = [_source(answer)], set()
    for source in found:
        for name in sorted({name for part in parts(source) or () for name in part.uses} - seen):
            seen.add(name)
            if name in namespace and len(found) < MOST:
                found.append(_binding(name, namespace[name], answer.__module__))
    return found


def _binding(name, value, notebook):
    """A statement that binds a name to what it stands for in a notebook; empty for what is of no interest."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}" if _package(value.__name__) != COURSE else ""
    kind = value if isinstance(getattr(value, "__name__", None), str) else type(value)
    if getattr(kind, "__module__", None) == notebook:
        try:
            return f"{_source(kind)}\n{name} = {kind.__name__}"
        except (OSError, TypeError):
            return ""
    of_torch = _package(getattr(kind, "__module__", None) or "torch") == "torch"
    return f"from torch import {kind.__name__} as {name}" if of_torch else ""


def _source(answer):
    """A function's source; of a class whose own is not to be had, that of its methods."""
    try:
        return textwrap.dedent(inspect.getsource(answer))
    except (OSError, TypeError):
        if not isinstance(answer, type):
            raise
    methods = [inspect.getsource(value) for value in vars(answer).values() if inspect.isfunction(value)]
    return f"class {answer.__name__}:\n" + ("\n".join(methods) or "    pass\n")


def readable(source):
    """Whether `borrowed` can look into a cell.  One that runs and is not readable hides what it does."""
    return parts(source) is not None


def _free_call(part, free, roots, star):
    """The name of a free call that statements mention, by its name or by a string.  star: whether torch's
    names are there without torch."""
    found = [_free(node, free, roots) for node in part.nodes]
    found += [text for text in part.strings if _plain(text) in free or _package(text) in LIBRARIES]
    found += [name for name in part.uses if star and _plain(name) in free]
    return next(filter(None, found), None)


def _hidden(part, defined):
    """What runs code that is not to be seen: exec, a function of IPython's, an import of a computed name."""
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
    """The names under which torch's functions are found: torch, nn, F, and what is bound to such as these."""
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
    """The module of course_lib that a node imports, other than tools and `check`; or what it takes by
    `earlier_answers` besides what the exercise hands over."""
    if isinstance(node, ast.Call) and last(node.func) == "earlier_answers":
        taken = {getattr(argument, "value", None) for argument in node.args}
        return None if taken <= {*handed} else ast.unparse(node)
    return next((name for name in _modules(node) if _package(name) == COURSE and name not in TOOLS), None)


def _library(node, free):
    """The module that a node imports and that is an answer as a whole (sacrebleu), or None."""
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

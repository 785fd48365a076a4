"""Find the statements that an answer reaches: those that bind its name, or a name that these use, and so on.

This examines the source of a notebook's answer cells, without running it, in time linear in its length.
"""

import ast
import functools
import symtable
import warnings
from collections import defaultdict
from dataclasses import dataclass

from .source import MAGICS, by_line, first, folded, last, only_magic, parsed, runs, walk

NESTED = 3  # strings within strings that are read
IMPORTS = {"import_module", "__import__"}
LOOKS_UP = {"getattr", "attrgetter", "methodcaller", "__getattribute__"}
BINDS = {"setattr", "globals", "vars", "locals", "__dict__", "modules"}
# What makes IPython read a cell as another one, or hides calls from `observe`: it concerns every answer.
TAMPERS = {"input_transformers_post", "input_transformers_cleanup", "input_transformer_manager",
           "ast_transformers", "DisableTorchFunction", "DisableTorchFunctionSubclass"}
ANYTHING, FROM_STAR = "?", "*"  # what a statement binds if its source does not say; a star import


@dataclass(eq=False)
class Part:
    """Statements that share a line, and all nodes in them.  binds, uses: names of the module.  strings: where
    names are looked up by string, the strings.  hides: what in them runs code that does not stand there as it
    is, or None."""

    statements: list
    nodes: list
    binds: set
    uses: set
    strings: set
    hides: str | None


@functools.lru_cache(maxsize=32)
def parts(source):
    """The Parts of a cell, with the code in strings that it runs; None if IPython can't read it either."""
    found, left = [], [(source, None, 0)]
    while left:
        text, ran_by, depth = left.pop()
        text, tree = parsed(text)
        if tree is None and depth == 0:
            return None
        for statements, segment in by_line(text, tree):
            part = _part(statements, segment, ran_by)
            ran = list(runs(part.nodes)) if depth < NESTED else []
            for name, code in ran:
                if code is None:
                    part.hides = name
                    part.binds.add(ANYTHING)
                else:
                    left.append((code, ran_by if name in MAGICS else name, depth + 1))
            if not only_magic(statements, ran):
                found.append(part)
    return tuple(found)


def reached(cell, others, name, substituted=()):
    """The Parts of an answer's `cell` and of `others` that `name` leads to.

    substituted: names that are judged by themselves; they lead no further than their own cell.
    """
    bound = defaultdict(list)
    for part in (*cell, *others):
        for each in part.binds:
            bound[each].append(part)
    if name not in bound:  # if anything binds it, then what does not say what it binds
        return [part for part in cell if part.strings or ANYTHING in part.binds]
    own_cell, found, known, wanted = set(map(id, cell)), {}, set(), [name, FROM_STAR, ANYTHING]
    while wanted:
        each = wanted.pop()
        if each in known:
            continue
        known.add(each)
        for part in bound.get(each, ()):
            further = each not in substituted and each != ANYTHING
            if id(part) not in found and (further or id(part) in own_cell):
                found[id(part)] = part
                wanted.extend(part.uses)
    return list(found.values())


def _part(statements, text, ran_by):
    nodes = list(walk(statements))
    part = Part(statements, nodes, *_names(nodes, text), set(), ran_by)
    words = set()
    for node in nodes:
        words.add(last(node))
        if isinstance(node, ast.alias) and node.name == "*":
            part.binds.add(FROM_STAR)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            if first(node) in part.uses:  # torch.x = ... changes what everybody finds in torch
                part.binds |= {first(node), getattr(node, "attr", first(node))}
    if words & TAMPERS:
        part.binds.add(FROM_STAR)
    if words & {*LOOKS_UP, *BINDS, *IMPORTS}:
        texts = folded(nodes)
        part.strings = set(texts.values())
        part.uses |= part.strings
        part.binds |= part.strings if words & BINDS else set()
        for node in nodes:
            if isinstance(node, ast.Call) and last(node.func) in IMPORTS and not (
                    node.args and id(node.args[0]) in texts):
                part.hides = last(node.func)
    return part


def _names(nodes, text):
    """The module's names that statements bind, and those that they use."""
    binds, uses = set(), set()
    try:
        with warnings.catch_warnings(action="ignore"):
            tables = [symtable.symtable(text, "answer", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # await at the top level, or too deep
        for node in nodes:
            name = getattr(node, "asname", None) or getattr(node, "id", None) or getattr(node, "name", None)
            (uses if isinstance(getattr(node, "ctx", None), ast.Load) else binds).add(name)
        return binds - {None}, uses - {None}
    for table in tables:
        tables += table.get_children()
        at_top = table is tables[0]
        for symbol in table.get_symbols():
            if (symbol.is_assigned() or symbol.is_imported()) and (at_top or symbol.is_declared_global()):
                binds.add(symbol.get_name())
            if symbol.is_referenced() if at_top else symbol.is_global():
                uses.add(symbol.get_name())
    return binds, uses

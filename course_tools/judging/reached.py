"""Find the statements that an answer reaches: those that bind its name, or a name that these use, and so on.

This examines the source of a notebook's answer cells, without running it, in time linear in its length.
"""

import ast
import functools
import symtable
import warnings
from collections import defaultdict
from collections.abc import Iterable
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
class Chunk:
    """Statements that share a line, and all nodes in them.  binds, uses: names of the module.  strings: where
    names are looked up by string, the strings.  hides: what in them runs code that does not stand there as it
    is, or None."""

    statements: list[ast.stmt]
    nodes: list[ast.AST]
    binds: set[str]
    uses: set[str]
    strings: set[str]
    hides: str | None


@functools.lru_cache(maxsize=32)
def chunks(source: str) -> tuple[Chunk, ...] | None:
    """The chunks of a cell, with the code in strings that it runs; None if IPython can't read it either."""
    chunks_read: list[Chunk] = []
    left: list[tuple[str, str | None, int]] = [(source, None, 0)]
    while left:
        text, ran_by, depth = left.pop()
        text, tree = parsed(text)
        if tree is None and depth == 0:
            return None
        for statements, segment in by_line(text, tree):
            chunk = _chunk(statements, segment, ran_by)
            ran = list(runs(chunk.nodes)) if depth < NESTED else []
            for name, code in ran:
                if code is None:
                    chunk.hides = name
                    chunk.binds.add(ANYTHING)
                else:
                    left.append((code, ran_by if name in MAGICS else name, depth + 1))
            if not only_magic(statements, ran):
                chunks_read.append(chunk)
    return tuple(chunks_read)


def reached(cell: Iterable[Chunk], others: Iterable[Chunk], name: str,
            substituted: Iterable[str] = ()) -> list[Chunk]:
    """The chunks of an answer's `cell` and of `others` that `name` leads to.

    substituted: names that are judged by themselves; they lead no further than their own cell.
    """
    bound = defaultdict(list)
    for chunk in (*cell, *others):
        for each in chunk.binds:
            bound[each].append(chunk)
    if name not in bound:  # if anything binds it, then what does not say what it binds
        return [chunk for chunk in cell if chunk.strings or ANYTHING in chunk.binds]
    own_cell, wanted = set(map(id, cell)), [name, FROM_STAR, ANYTHING]
    led_to: dict[int, Chunk] = {}
    known: set[str] = set()
    while wanted:
        each = wanted.pop()
        if each in known:
            continue
        known.add(each)
        for chunk in bound.get(each, ()):
            further = each not in substituted and each != ANYTHING
            if id(chunk) not in led_to and (further or id(chunk) in own_cell):
                led_to[id(chunk)] = chunk
                wanted.extend(chunk.uses)
    return list(led_to.values())


def _chunk(statements: list[ast.stmt], text: str, ran_by: str | None) -> Chunk:
    nodes = list(walk(statements))
    chunk = Chunk(statements, nodes, *_names(nodes, text), set(), ran_by)
    words: set[str | None] = set()
    for node in nodes:
        words.add(last(node))
        if isinstance(node, ast.alias) and node.name == "*":
            chunk.binds.add(FROM_STAR)
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            name = first(node)
            if name in chunk.uses:  # torch.x = ... changes what everybody finds in torch
                chunk.binds |= {name, getattr(node, "attr", name)}
    if words & TAMPERS:
        chunk.binds.add(FROM_STAR)
    if words & {*LOOKS_UP, *BINDS, *IMPORTS}:
        texts = folded(nodes)
        chunk.strings = set(texts.values())
        chunk.uses |= chunk.strings
        chunk.binds |= chunk.strings if words & BINDS else set()
        for node in nodes:
            if isinstance(node, ast.Call) and last(node.func) in IMPORTS and not (
                    node.args and id(node.args[0]) in texts):
                chunk.hides = last(node.func)
    return chunk


def _names(nodes: list[ast.AST], text: str) -> tuple[set[str], set[str]]:
    """The module's names that statements bind, and those that they use."""
    binds: set[str] = set()
    uses: set[str] = set()
    try:
        with warnings.catch_warnings(action="ignore"):
            tables = [symtable.symtable(text, "answer", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # await at the top level, or too deep
        for node in nodes:
            name = getattr(node, "asname", None) or getattr(node, "id", None) or getattr(node, "name", None)
            if name is not None:
                (uses if isinstance(getattr(node, "ctx", None), ast.Load) else binds).add(name)
        return binds, uses
    for table in tables:
        tables += table.get_children()
        at_top = table is tables[0]
        for symbol in table.get_symbols():
            if (symbol.is_assigned() or symbol.is_imported()) and (at_top or symbol.is_declared_global()):
                binds.add(symbol.get_name())
            if symbol.is_referenced() if at_top else symbol.is_global():
                uses.add(symbol.get_name())
    return binds, uses

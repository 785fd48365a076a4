"""The code of a cell: as Python, after IPython has transformed it, with the strings that it executes."""

import ast
import re
import warnings
from collections.abc import Iterable, Iterator

COMMANDS = 30  # lines of IPython's own in a cell: each costs the transformation a pass over the cell
COMMAND = re.compile(r"^[ \t]*[%!?,;/]|=[ \t]*[%!]|\?[ \t]*$", re.MULTILINE)
# Calls that run a string, and which argument it is; the last two are what a %magic turns into.
BUILT_IN = {"exec": 0, "eval": 0, "compile": 0}
OF_IPYTHON = {"run_cell": 0, "ex": 0, "ev": 0, "run_line_magic": 1, "run_cell_magic": 2}
MAGICS = ("run_line_magic", "run_cell_magic")
LONGEST = 200  # characters of a string that is put together of others


def parsed(text: str) -> tuple[str, ast.Module | None]:
    """(text, tree), transformed by IPython if necessary; (text, None) if it is not Python even then."""
    tree = _tree(text)
    if tree is None and len(COMMAND.findall(text)) <= COMMANDS:
        from IPython.core.inputtransformer2 import TransformerManager  # it rewrites text and runs none of it
        try:
            text = TransformerManager().transform_cell(text)
        except Exception:
            return text, None
        tree = _tree(text)
    return text, tree


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings(action="ignore"):
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def by_line(text: str, tree: ast.Module | None) -> list[tuple[list[ast.stmt], str]]:
    """(statements, their text): those of the top level, together where one begins on another's last line."""
    lines = re.split(r"\r\n|\r|\n", text)
    groups: list[tuple[list[ast.stmt], int, int]] = []
    for node in tree.body if tree else ():
        begin = min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))
        end = node.end_lineno or begin
        if groups and begin <= groups[-1][2]:
            nodes, begin, _ = groups.pop()
            nodes.append(node)
            groups.append((nodes, begin, end))
        else:
            groups.append(([node], begin, end))
    return [(nodes, "\n".join(lines[begin - 1:end])) for nodes, begin, end in groups]


def walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The given nodes and all nodes beneath them."""
    for node in nodes:
        yield from ast.walk(node)


def first(node: ast.AST) -> str | None:
    """The name that an expression such as a.b[c].d begins with, or None."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def last(node: ast.AST) -> str | None:
    """The name that a name or an expression such as a.b ends with, or None."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)


def runs(nodes: list[ast.AST]) -> Iterator[tuple[str, str | None]]:
    """(call, code) of each string that is run; code is None if it does not stand there as it is.  nodes: all
    of some statements, as for `folded`."""
    calls = [(node, called) for node in nodes if isinstance(node, ast.Call) and (called := _called(node))]
    texts = folded(nodes) if calls else {}
    for node, (name, place) in calls:
        code = node.args[place] if len(node.args) > place else None
        if not _called(code):  # exec(compile(...)): what compile is given counts
            yield name, texts.get(id(code))


def _called(node: ast.AST | None) -> tuple[str, int] | None:
    """(name, place of the code) of a call that runs a string, or None; model.eval() is none."""
    if not isinstance(node, ast.Call):
        return None
    name = last(node.func)
    if name in BUILT_IN and first(node.func) in (name, "builtins", "__builtins__"):
        return name, BUILT_IN[name]
    return (name, OF_IPYTHON[name]) if name in OF_IPYTHON and isinstance(node.func, ast.Attribute) else None


def only_magic(statements: list[ast.stmt], ran: list[tuple[str, str | None]]) -> bool:
    """Whether they are %magics alone, of which only the code counts that they run."""
    return len(ran) == len(statements) and all(isinstance(node, ast.Expr) for node in statements) and all(
        name in MAGICS and code is not None for name, code in ran)


def folded(nodes: list[ast.AST]) -> dict[int, str]:
    """{id(node): string} of those nodes that are strings, or put together of strings alone."""
    texts: dict[int, str] = {}
    for node in reversed(nodes):  # what stands inside comes first
        pieces = _pieces(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts[id(node)] = node.value
        elif pieces and all(id(piece) in texts for piece in pieces):
            glue, *rest = (texts[id(piece)] for piece in pieces)
            text = glue.join(rest) if isinstance(node, ast.Call) else "".join([glue, *rest])
            if len(text) <= LONGEST:
                texts[id(node)] = text
    return texts


def _pieces(node: ast.AST) -> list[ast.expr]:
    """The nodes that a string is put together of: a + b, f"{a}{b}", "".join([a, b])."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [node.left, node.right]
    if isinstance(node, ast.JoinedStr):
        return node.values
    if isinstance(node, ast.FormattedValue):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        if len(node.args) == 1 and isinstance(node.args[0], (ast.List, ast.Tuple)):
            return [node.func.value, *node.args[0].elts]
    return []

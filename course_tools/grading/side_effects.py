"""Find out from its source whether a cell may change more than the names it defines.

This is only a hint: it makes the grader try the other answers of a notebook without that cell.
"""

import ast

OUTWARD = {"setattr", "delattr", "exec", "eval", "compile", "globals", "vars", "get_ipython", "__import__"}
USUAL = {"torch", "math", "numpy", "typing", "functools", "itertools", "collections", "dataclasses"}


def has_side_effects(source):
    """True if the cell assigns to something that is not its own, or uses something that could."""
    try:
        return any(map(_reaches_out, ast.walk(ast.parse(source))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # then it does not run either, or is more than odd: it is judged as it is


def _reaches_out(node):
    if isinstance(node, ast.Import):
        return any(alias.name.split(".")[0] not in USUAL for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        return (node.module or "").split(".")[0] not in USUAL
    if isinstance(node, ast.Name):
        return node.id in OUTWARD
    if isinstance(node, ast.Attribute):
        stored = not isinstance(node.ctx, ast.Load)
        on_self = isinstance(node.value, ast.Name) and node.value.id == "self"
        return stored and not on_self or node.attr.startswith(("set_", "__")) and node.attr != "__init__"
    return False

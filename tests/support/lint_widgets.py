"""The rule for widgets: a drawing, drawn anew at any time, reads nothing that a later cell binds anew."""

import ast
import dis
import types

from lint_rules import code, mark

DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def widgets_read_nothing_that_is_rebound(notebook, path):
    """A slider is moved after Run All too.  Bind what is rebound as a default: def draw(scale=1.0, K=K)."""
    cells = [cell for cell in code(notebook) if not cell.source.startswith(("!", "%"))]
    trees = [ast.parse(cell.source) for cell in cells]
    for number, tree in enumerate(trees):
        for draw in drawings(tree):
            read = reads(draw, trees[:number + 1])
            for later, cell in zip(trees[number + 1:], cells[number + 1:]):
                for name in sorted(read & bound(later)) if "shows" not in mark(cell) else ():
                    yield (f"cell {cells[number].id}: {draw} reads {name}, which cell {cell.id} binds anew; "
                           f"bind it as a default value, {name}={name}")


def drawings(tree):
    """The functions that a cell gives to explore or paint, by name."""
    return [call.args[0].id for call in ast.walk(tree) if isinstance(call, ast.Call)
            and getattr(call.func, "id", "") in ("explore", "paint")]


def reads(function, trees):
    """The globals that a function reads when it is called, and those that the functions among them read."""
    definitions = {}
    for node in (node for tree in trees for node in tree.body):
        if isinstance(node, DEFINITIONS):
            definitions[node.name] = node
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            definitions |= {target.id: node for target in node.targets}
    found, todo = {function}, [function]
    while todo:
        node = definitions.get(todo.pop())
        new = globals_within(compile(ast.Module([node], []), "", "exec")) - found if node else set()
        found |= new
        todo += new
    return found


def globals_within(block):
    """What the functions inside a block of code read from the notebook; its own level is run only once."""
    inner = [constant for constant in block.co_consts if isinstance(constant, types.CodeType)]
    return {step.argval for part in inner for step in dis.get_instructions(part)
            if step.opname == "LOAD_GLOBAL"}.union(*map(globals_within, inner))


def bound(tree):
    """The names that a cell binds at its top level, or deletes."""
    return {step.argval for step in dis.get_instructions(compile(tree, "", "exec"))
            if step.opname in ("STORE_NAME", "DELETE_NAME")}

"""Answers that are a library's: found in their source, without running it.

The calls that ran are noted as well (`observe`); this catches what was hidden from them.  A free call
counts where the answer reaches it: a line that compares with torch's own, a comment, a string do not.
"""

import ast
import symtable

COURSE = "course_lib"
TOOLS = tuple(f"{COURSE}.{name}" for name in ("answers", "runtime", "shapes", "plots", "widgets"))


def borrowed(source, item):
    """The sentence to tell if the answer takes its work from course_lib or from one of the item's free
    calls; None if it does not, or if the source does not parse."""
    try:
        tree = ast.parse(source)
        reached = _reached(tree.body, item.name)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    free = {_plain(name) for name in item.free}
    found = [_course(node, item.handed) or _library(node, free) for node in ast.walk(tree)]
    found += [_free(node, free) for statement in reached for node in ast.walk(statement)]
    name = next(filter(None, found), None)
    return name and f"{name} holds the answer itself and earns nothing here: write the steps out."


def _reached(statements, name):
    """The top-level statements that bind `name`, or a name that these use, and so on."""
    tables = [(statement, *_names(statement)) for statement in statements]
    wanted, found, grown = {name, "*"}, [], True
    while grown:
        new = [entry for entry in tables if entry[0] not in found and entry[1] & wanted]
        wanted = wanted.union(*(used for _, _, used in new))
        found, grown = found + [statement for statement, _, _ in new], bool(new)
    return found


def _names(statement):
    """The module's names that a statement binds ('*' for a star import), and those that it uses."""
    table = symtable.symtable(ast.unparse(statement), "answer", "exec")
    symbols = table.get_symbols()
    bound = {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}
    if isinstance(statement, ast.ImportFrom):
        bound |= {alias.name for alias in statement.names if alias.name == "*"}
    used = {symbol.get_name() for symbol in symbols if symbol.is_referenced()}
    inner = table.get_children()
    while inner:
        used |= {symbol.get_name() for scope in inner for symbol in scope.get_symbols() if symbol.is_global()}
        inner = [child for scope in inner for child in scope.get_children()]
    return bound, used


def _modules(node):
    """The modules that a node imports; `from MODULE import check` imports none."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and [alias.name for alias in node.names] != ["check"]:
        return [node.module or ""]
    if isinstance(node, ast.Call) and _last(node.func) in ("__import__", "import_module") and node.args:
        return [str(getattr(node.args[0], "value", ""))]
    return []


def _course(node, handed):
    """The module of course_lib that a node imports, other than tools and `check`; or what it takes by
    `earlier_answers` besides what the exercise hands over."""
    if isinstance(node, ast.Call) and _last(node.func) == "earlier_answers":
        taken = {getattr(argument, "value", None) for argument in node.args}
        return None if taken <= {*handed} else ast.unparse(node)
    return next((name for name in _modules(node) if name.split(".")[0] == COURSE and name not in TOOLS), None)


def _library(node, free):
    """The module that a node imports and that is a free call as a whole (sacrebleu), or None."""
    return next((name for name in _modules(node) if _plain(name.split(".")[0]) in free), None)


def _free(node, free):
    """torch's name for a free call that a node mentions (`F.glu`, `nn.LSTMCell`), or None."""
    if isinstance(node, ast.Attribute) and _plain(node.attr) in free and _first(node) in ("torch", "nn", "F"):
        return node.attr
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
        return next((alias.name for alias in node.names if _plain(alias.name) in free), None)
    return None


def _plain(name):
    """'lstm_cell' and 'LSTMCell' are one."""
    return name.replace("_", "").lower()


def _first(node):
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _last(node):
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)

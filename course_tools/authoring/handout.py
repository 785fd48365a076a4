"""Generate exercises/, which students get, from solutions/.  Answers already there are backed up."""

import ast

from .. import backups
from ..exercise import STUB, NotebookError, derive, grade_id, read
from . import stored


def exercises(keys):
    """Write exercises/NN.ipynb from solutions/NN.ipynb."""
    for path in stored.find_all(["solutions"], keys):
        made, target = derive(read(path)), stored.ROOT / "exercises" / path.name
        backup = keep_answers(target, made)
        if backup:
            print(f"{stored.name(target)} contained answers, which are kept in "
                  f"{backup.relative_to(stored.ROOT)}")
        changed = stored.write(made, target)
        print(f"{stored.name(target)}: {'written' if changed else 'unchanged'}")


def keep_answers(target, made):
    """Copy the exercise at `target` to backups/ if it holds answers.  Returns the copy's path."""
    if not target.exists():
        return None
    try:
        if not holds_answers(read(target), made):
            return None
    except NotebookError:
        pass  # unreadable: keep it, somebody may want to repair it
    return backups.keep(target, stored.ROOT)


def holds_answers(exercise, made):
    """Whether an answer cell contains more than a stub, of this version or an older one."""
    stubs = {grade_id(cell): cell.source.strip() for cell in made.cells}
    return any(cell.source.strip() != stubs.get(grade_id(cell)) and not _bare(cell.source)
               for cell in exercise.cells if cell.cell_type == "code" and grade_id(cell))


def _bare(source):
    """Whether this is only signatures, docstrings and the stub's raise, as in a stub of an older version."""
    try:
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    except (SyntaxError, ValueError):
        return False
    stub = ast.dump(ast.parse(STUB).body[0])
    return all(isinstance(node, (ast.FunctionDef, ast.ClassDef)) or ast.dump(node) == stub
               or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in nodes)

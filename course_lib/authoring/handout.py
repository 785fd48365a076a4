"""exercises/ from solutions/: what students get.  Answers already written there are kept as a backup."""

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
            print(f"{stored.name(target)} held answers: they are kept in {backup.relative_to(stored.ROOT)}")
        changed = stored.write(made, target)
        print(f"{stored.name(target)}: {'written' if changed else 'as it was'}")


def keep_answers(target, made):
    """Copy the exercise at `target` to backups/ if it holds answers.  Returns the copy's path."""
    if not target.exists():
        return None
    try:
        if not holds_answers(read(target), made):
            return None
    except NotebookError:
        pass  # unreadable: keep it, somebody may still want to mend it
    return backups.keep(target, stored.ROOT)


def holds_answers(exercise, made):
    """Does an answer cell hold more than a stub, this one's or an older one's?"""
    stubs = {grade_id(cell): cell.source.strip() for cell in made.cells}
    return any(cell.source.strip() != stubs.get(grade_id(cell)) and not _bare(cell.source)
               for cell in exercise.cells if cell.cell_type == "code" and grade_id(cell))


def _bare(source):
    """Only signatures, docstrings and the stub's raise: the stub of an earlier version."""
    try:
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.stmt)]
    except (SyntaxError, ValueError):
        return False
    stub = ast.dump(ast.parse(STUB).body[0])
    return all(isinstance(node, (ast.FunctionDef, ast.ClassDef)) or ast.dump(node) == stub
               or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in nodes)

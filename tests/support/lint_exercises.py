"""The rules of a solution notebook, from which the exercise is made: five cells an item."""

import ast
import re

from lint_rules import code, mark

from course_tools import exercise
from course_tools.items import registry


def of_kind(notebook, kind):
    """The cells marked by nbgrader as answers ('solution') or checks ('grade')."""
    return [cell for cell in code(notebook) if (cell.metadata.get("nbgrader") or {}).get(kind)]


def answers_and_checks_match_the_items(notebook, path):
    items = registry.items(path.stem)
    names = [cell.metadata.nbgrader.grade_id for cell in of_kind(notebook, "solution")]
    if names != list(items):
        yield f"the answer cells are {names}, the items {list(items)}"
    wanted = {f"check_{name}": item.points for name, item in items.items()}
    given = {cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader.get("points")
             for cell in of_kind(notebook, "grade")}
    if given != wanted or list(given) != list(wanted):
        yield f"the check cells give {given}, the items {wanted}"


def marks_are_nbgraders(notebook, path):
    """Answers open, checks locked; the keys that nbgrader's schema 3 wants."""
    for kind, other in (("solution", "grade"), ("grade", "solution")):
        for cell in of_kind(notebook, kind):
            found = cell.metadata.nbgrader
            wanted = {kind: True, other: False, "task": False, "locked": kind == "grade", "schema_version": 3}
            if {key: found.get(key) for key in wanted} != wanted or ("points" in found) != (kind == "grade"):
                yield f"cell {cell.id}: nbgrader's marks are {dict(found)}"


def every_item_has_its_five_cells(notebook, path):
    for name in registry.items(path.stem):
        places = {"task": [], "hints": [], "answer": [], "check": []}
        for number, cell in enumerate(notebook.cells):
            for kind, of in kinds(cell).items():
                if of == name:
                    places[kind].append(number)
        wrong = [f"{len(found)} of {kind}" for kind, found in places.items() if len(found) != 1]
        if wrong:
            yield f"{name} has {', '.join(wrong)}; one each (a task: '## 1 · `name`', '●○○ · build · ...')"
            continue
        (task,), (hints,), (answer,), (check,) = places.values()
        between = [cell.metadata.get("tags") for cell in notebook.cells[answer + 1:check]]
        if not task < hints < answer < check or ["try-it"] not in between:
            yield f"the order of {name}'s cells is not task, hints, answer, a cell tagged try-it, check"


def kinds(cell):
    """The item that a cell is the task, the hints, the answer or the check of."""
    head = exercise.TASK.match(cell.source)
    check = exercise.grade_id(cell, "grade") or ""
    return {"task": head and head[1], "hints": mark(cell).get("hints"), "answer": exercise.grade_id(cell),
            "check": check.startswith("check_") and check.removeprefix("check_")}


def answers_can_be_taken_out(notebook, path):
    for cell in of_kind(notebook, "solution"):
        name = cell.metadata.nbgrader.grade_id
        if len(exercise.REGION.findall(cell.source)) != 1:
            yield f"cell {cell.id} needs one ### BEGIN SOLUTION ... ### END SOLUTION"
        if not re.search(rf"^(def {name}\(|class {name}\b)", cell.source, re.MULTILINE):
            yield f"cell {cell.id} does not define {name}"
    for cell in of_kind(notebook, "grade"):
        if cell.source != f"check({cell.metadata.nbgrader.grade_id.removeprefix('check_')})":
            yield f"cell {cell.id} holds more than its check: {cell.source!r}"


def hints_come_in_steps(notebook, path):
    for name in registry.items(path.stem):
        steps = exercise.hints(notebook, name)
        if len(steps) < 2 or not all(steps):
            yield f"{name} has {len(steps)} hints, at least two, each in <details><summary>Hint 1</summary>"
        source = next(cell.source for cell in notebook.cells if mark(cell).get("hints") == name)
        if re.findall(r"<summary>(.*?)</summary>", source) != [f"Hint {n + 1}" for n in range(len(steps))]:
            yield f"the hints of {name} are not called Hint 1, Hint 2, ..."


def points_and_minutes_add_up(notebook, path):
    heads = [exercise.TASK.match(cell.source) for cell in notebook.cells if exercise.TASK.match(cell.source)]
    for head in heads:
        item = registry.items(path.stem)[head[1]]
        if int(head[5]) != item.points:
            yield f"{item.name} says {head[5]} points, its item {item.points}"
        if head[3] != item.kind:
            yield f"{item.name} says it is of the kind {head[3]}, its item {item.kind}"
    points, minutes = sum(int(head[5]) for head in heads), sum(int(head[4]) for head in heads)
    for words in (f"{points} points", f"{minutes} minutes"):
        if words not in notebook.cells[0].source:
            yield f"the title cell does not say {words}"
    lesson = exercise.read(path.parents[1] / "notebooks" / path.name)
    said = rf"\({points} points[^()]* {minutes} minutes\)"
    if not any(re.search(said, cell.source) for cell in lesson.cells):
        yield f"the lesson does not say ({points} points, about {minutes} minutes)"


def earlier_answers_are_those_that_items_are_handed(notebook, path):
    """The grader hands over what the items list, so graded cells may take nothing else."""
    graded = [cell.source for cell in code(notebook) if not cell.metadata.get("tags")]
    taken = {argument.value for source in graded for node in ast.walk(ast.parse(source))
             if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "earlier_answers"
             for argument in node.args}
    handed = {name for item in registry.items(path.stem).values() for name in item.handed}
    if taken != handed:
        yield f"graded cells take {sorted(taken)} of earlier exercises; handed to items: {sorted(handed)}"


RULES = [answers_and_checks_match_the_items, marks_are_nbgraders, every_item_has_its_five_cells,
         answers_can_be_taken_out, hints_come_in_steps, points_and_minutes_add_up,
         earlier_answers_are_those_that_items_are_handed]

"""Move every slider, menu and painter of a lesson that has run to its end: a plugin for nbval.

`pytest -p move_widgets --nbval LESSON` runs one cell more, which makes the lesson's widgets live, draws
each at its default and with every control at two other values.  An error that a widget shows fails that cell.

test_browser_lessons.py moves the same controls with keyboard and mouse, but with training cut short; here the
models are trained to the end, and no browser is needed.
"""

import ast
from pathlib import Path

import ipywidgets
import nbformat

SENTENCES = ["they are cats", "I am a student", "the cats like my friend"]
BLANKS = ["the ___ of the object", "it is not ___ to use this"]


def pytest_collection_modifyitems(items):
    """The cell more: it runs in the kernel in which all the others have run."""
    last = items[-1]
    calls = widget_calls(last.parent.nb)
    if calls:
        cell = nbformat.v4.new_code_cell(moving(calls))
        items.append(type(last).from_parent(last.parent, name=f"Cell {last.cell_num + 1}",
                                            cell_num=last.cell_num + 1, cell=cell, options=last.options))


def widget_calls(notebook):
    """The calls of explore and paint, as source, in order."""
    trees = [ast.parse(cell.source) for cell in notebook.cells
             if cell.cell_type == "code" and not cell.source.startswith(("!", "%"))]
    return [ast.unparse(node.value) for tree in trees for node in tree.body
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
            and getattr(node.value.func, "id", "") in ("explore", "paint")]


def moving(calls):
    """The source of the cell that moves the widgets of these calls."""
    return "\n".join(["import os, sys", 'os.environ["COURSE_STATIC"] = "0"',
                      f"sys.path.append({str(Path(__file__).parent)!r})", "from move_widgets import move",
                      *(f"move({call}, {call!r})" for call in calls)])


def move(box, call):
    """Every control of a live widget to two other values and back.  AssertionError with what it showed."""
    *controls, image, error = box.children

    def drawn(setting):
        assert error.value == "", f"{call}, {setting}: {error.value}"
        assert bytes(image.value[:4]) == b"\x89PNG", f"{call}, {setting}: no picture"

    drawn("at its default")
    if isinstance(controls[0], ipywidgets.GridBox):
        controls[:1] = [part for part in controls[0].children if hasattr(part, "icon")]
    for control in controls:
        start = control.value
        for value in other_values(control):
            control.value = value
            drawn(f"{control.description or control.tooltip} = {value}")
        control.value = start


def other_sentences(value):
    """Two lines of the kind that stands in a line to type in: with a blank to fill, or without."""
    return [words for words in (BLANKS if "___" in value else SENTENCES) if words != value][:2]


def other_values(control):
    """Two values that are not its default, or the one that there is."""
    if isinstance(control, ipywidgets.ToggleButton):
        return [not control.value]
    if isinstance(control, ipywidgets.Text):
        return other_sentences(control.value)
    if isinstance(control, ipywidgets.Dropdown):
        others = [option for option in control.options if option != control.value]
        return [others[0], others[-1]]
    ends = (10 ** control.min, 10 ** control.max) if isinstance(control, ipywidgets.FloatLogSlider) else (
        control.min, control.max)
    middle = type(control.value)((control.value + ends[1]) / 2)
    return [end for end in (*ends, middle) if end != control.value][:2]

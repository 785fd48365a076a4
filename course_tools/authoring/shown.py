"""Cells that show the library's own source: metadata {"course": {"shows": "course_lib.models.rnn:rnn_step"}}.

Nothing is defined twice by hand: the cell contains the source word for word, and is refreshed from it.
"""

import importlib
import inspect

from ..exercise import read
from . import stored


def source(names):
    """The source of objects, 'module:name' or a list of them, two blank lines apart.  Raises Fault."""
    return "\n\n\n".join(_one(name) for name in ([names] if isinstance(names, str) else names))


def _one(name):
    module, _, attributes = name.partition(":")
    try:
        found = importlib.import_module(module)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
        return inspect.getsource(found).rstrip("\n")
    except (ImportError, AttributeError, TypeError, OSError, ValueError) as problem:
        raise stored.Fault(f"course.shows: {name!r} has no source code to show ({problem}). "
                           "Write 'module:function' or 'module:Class'") from None


def differing(notebook):
    """[(cell, right source)] for the cells that differ from the library's source."""
    marked = [(cell, (cell.metadata.get("course") or {}).get("shows")) for cell in notebook.cells]
    return [(cell, right) for cell, names in marked if names and cell.source != (right := source(names))]


def refresh(notebook, path):
    """Write the library's source into the cells that show it, in place.  Returns how many changed."""
    try:
        found = differing(notebook)
    except stored.Fault as problem:
        raise stored.Fault(f"{stored.name(path)}: {problem}") from None
    for cell, right in found:
        cell.source = right
    return len(found)


def shows(keys):
    """Refresh the cells that show library source; outputs stay, so execute the notebook afterwards."""
    for path in stored.find_all(["notebooks", "solutions"], keys):
        notebook = read(path)
        count = refresh(notebook, path)
        if count:
            stored.write(notebook, path)
            print(f"{stored.name(path)}: {count} cells were refreshed. Execute it again with make notebooks")

"""Right answers as source code, to run in a submission's kernel: in place of an answer that fails, and as the
answers to earlier exercises."""

import ast
import inspect
import sys
import textwrap

from ..items import registry

IMPORTS = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
COURSE = ("course_lib.", "course_tools.")
HAND_OVER = "__import__('course_tools.answers', fromlist=['']).hand_over"


def source(item):
    """Source that defines an item's reference under the item's name, given the items that it uses."""
    parts = [*_helpers(item.reference, {item.reference.__name__, *item.uses, *item.handed}).values(),
             inspect.getsource(item.reference), f"return {item.reference.__name__}\n"]
    body = textwrap.indent("\n".join(parts), "    ")
    return f"{IMPORTS}\ndef _reference():\n{body}\n{item.name} = _reference()\n"


def _helpers(answer, known):
    """{name: source} of the course's own functions and classes that one of them needs, in order; `known` are
    there already."""
    found, names = {}, vars(sys.modules[answer.__module__])
    for node in ast.walk(ast.parse(inspect.getsource(answer))):
        name = getattr(node, "id", None)
        helper = names.get(name)
        if name not in known and getattr(helper, "__module__", "").startswith(COURSE):
            known.add(name)
            found |= _helpers(helper, known) | {name: inspect.getsource(helper)}
    return found


def handed_over(items):
    """The cells, one or none, that make `earlier_answers` return what these items need."""
    names = list(dict.fromkeys(name for item in items for name in item.handed))
    found = {}
    for name in names:
        _with_used(name, found)
    return [f"{HAND_OVER}({''.join(found.values())!r}, {names!r})"] if names else []


def _with_used(name, found):
    """Add to `found` the source of an item after those of the items that it uses or is handed."""
    _, item = registry.find(name)
    for used in (*item.uses, *item.handed):
        _with_used(used, found)
    found.setdefault(name, source(item))

"""Right answers as source, to run in a submission's kernel: in the place of an answer that fails, and as
the parts that an exercise hands over."""

import inspect

from .. import checks

IMPORTS = "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
HAND_OVER = "__import__('course_lib.answers', fromlist=['']).hand_over"


def source(item):
    """What defines an item's reference under the item's name, where those that it uses are defined."""
    return f"{IMPORTS}\n{inspect.getsource(item.reference)}\n{item.name} = {item.reference.__name__}\n"


def handed_over(items):
    """The cells, one or none, that make `earlier_answers` return what these items are handed."""
    names = list(dict.fromkeys(name for item in items for name in item.handed))
    found = {}
    for name in names:
        _with_used(name, found)
    return [f"{HAND_OVER}({''.join(found.values())!r}, {names!r})"] if names else []


def _with_used(name, found):
    """Add to `found` the source of an item after those of the items that it uses or is handed."""
    _, item = checks.find(name)
    for used in (*item.uses, *item.handed):
        _with_used(used, found)
    found.setdefault(name, source(item))

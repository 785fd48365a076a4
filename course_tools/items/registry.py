"""The items of all exercises, by the key of the exercise or by their name.

The module lesson_NN_name contains the items of exercise NN_name.  It is imported only when needed, so that
importing `check` in a notebook brings no answers into its kernel.
"""

import importlib
from pathlib import Path

PACKAGE = Path(__file__).parent


def stems():
    """All exercises, in order: ['01_long_term_dependency', ...]."""
    return sorted(path.stem.removeprefix("lesson_") for path in PACKAGE.glob("lesson_*.py"))


def resolve(key):
    """The stem that '01', '1' or a full name stands for.  Raises ValueError, which lists the exercises."""
    known = stems()
    for stem in known:
        if stem == key or stem.split("_")[0] == key.zfill(2):
            return stem
    raise ValueError(f"there is no exercise {key!r}. Choose one of: {', '.join(known)}")


def items(stem):
    """The items of one exercise, {"name": Item}, in the order of the notebook."""
    return {item.name: item for item in importlib.import_module(f"{__package__}.lesson_{stem}").ITEMS}


def find(name):
    """(stem, Item) of the item with that name.  Raises ValueError if there is none."""
    for stem in stems():
        item = items(stem).get(name)
        if item is not None:
            return stem, item
    raise ValueError(f"there is no graded item named {name!r}")

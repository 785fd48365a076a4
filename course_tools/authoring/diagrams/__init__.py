"""The course's diagrams: SVG files in notebooks/images/, drawn by the functions of this package.

kit.py holds the shapes of the visual language, lesson_NN.py the diagrams of one lesson:
DRAWINGS = {"NN_name": function}, each function returning the text of an SVG file.  `make diagrams` writes the
files, and a test compares them.
"""

import importlib
import pkgutil

from .. import stored

FOLDER = "notebooks/images"


def drawings(keys=()):
    """{"NN_name": function} of all diagrams, or of the lessons in `keys`.  Raises Fault if one has none."""
    found = {}
    for module in pkgutil.iter_modules(__path__):
        if module.name.startswith("lesson_"):
            found |= importlib.import_module(f"{__name__}.{module.name}").DRAWINGS
    wanted = {key.split("_")[0].zfill(2) for key in keys}
    chosen = {name: draw for name, draw in sorted(found.items())
              if not wanted or name.split("_")[0] in wanted}
    missing = wanted - {name.split("_")[0] for name in chosen}
    if missing:
        raise stored.Fault(f"there is no diagram for lesson {', '.join(sorted(missing))}; "
                           f"there are: {', '.join(found) or 'none'}")
    return chosen


def diagrams(keys):
    """Draw the diagrams into notebooks/images/."""
    for name, draw in drawings(keys).items():
        path = stored.ROOT / FOLDER / f"{name}.svg"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = draw()
        changed = not path.exists() or path.read_text(encoding="utf-8") != text
        if changed:
            path.write_text(text, encoding="utf-8", newline="\n")
        print(f"{FOLDER}/{path.name}: {'written' if changed else 'as it was'}")

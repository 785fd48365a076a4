"""Copies of a learner's notebooks, made before something replaces them."""

import shutil
import time


def keep(path, root):
    """Copy a notebook to root/backups/, under a name with the time in it.  Returns the copy's path."""
    stamp = f"{path.stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = root / "backups"
    folder.mkdir(exist_ok=True)
    copy, number = folder / f"{stamp}.ipynb", 1
    while copy.exists():
        number += 1
        copy = folder / f"{stamp}.{number}.ipynb"
    shutil.copyfile(path, copy)
    return copy

"""Files that are written in one step: readers see either the old file or the new one, never a part of it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

PASSING = ".part"  # ends the name of a file that is being written; a run that was killed leaves it behind


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A path to write to, beside `path`.  That file becomes `path` in the end; after an error it is removed.

    Folders that are missing are made.  Raises OSError.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    passing = path.with_name(f".{path.name[:60]}.{os.getpid()}{PASSING}")
    try:
        yield passing
        os.replace(passing, path)
    except BaseException:
        with contextlib.suppress(OSError):
            passing.unlink()
        raise


def write(path: str | Path, text: str) -> None:
    """Write text to `path` as UTF-8, and make sure that it is on the disk before it replaces what was there.

    Raises OSError.
    """
    with replacing(path) as passing, open(passing, "wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())


def update(path: str | Path, text: str) -> bool:
    """`write` unless the file has this content already.  Returns whether it was written.  Raises OSError."""
    path = Path(path)
    if path.is_file() and path.read_bytes() == text.encode("utf-8"):
        return False
    write(path, text)
    return True

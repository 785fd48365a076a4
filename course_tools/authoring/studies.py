"""Run the studies in notebooks/studies/ and store their tables.

A script NN_name.py has a function run(budget) that yields a dict for each run, which is a row of the table,
such as {"model": "RNN", "rate": 1e-2, "seed": 0, "value": 0.93}.  budget is 1.0 for the real thing; a test
runs each script with 0.01.  many.py trains all rates and seeds at once.  A script that trains what lessons
look into stores it with `save`.
"""

import csv
import hashlib
import importlib.util
import io
import re
import time

import torch

from .. import files
from . import stored

SMALL = 0.01    # the budget of a test
DIGEST = re.compile(r"# digest of (\S+): (\w+)\n")
MOST_WEIGHTS = 2_000_000    # bytes of notebooks/weights/ in all


def folder():
    return stored.ROOT / "notebooks" / "studies"


def studies(keys):
    """Run studies and write their tables: those of `keys` ("04_length", or "04" for all of a lesson's).

    Without keys: those whose script has changed since its table was made.
    """
    paths = sorted(folder().glob("[0-9]*.py"))
    chosen = [path for path in paths if path.stem in keys
              or path.stem.split("_")[0] in {key.zfill(2) for key in keys}]
    if keys and not chosen:
        raise stored.Fault(f"there is no study {' or '.join(keys)} in {folder()}. "
                           f"Choose one of: {', '.join(path.stem for path in paths)}")
    for path in chosen if keys else filter(changed, paths):
        start, rows = time.perf_counter(), []
        print(f"studies/{path.name} ...", flush=True)
        for row in script(path).run(1.0):
            rows.append(row)
            if len(rows) % 100 == 0:
                print(f"  {len(rows)} rows, {time.perf_counter() - start:.0f} s", flush=True)
        files.write(path.with_suffix(".csv"), table(path, rows))
        print(f"  {len(rows)} rows, {time.perf_counter() - start:.0f} s: stored", flush=True)


def script(path):
    """The script of a study as a module, from its source: bytecode of the same second may be older."""
    spec = importlib.util.spec_from_file_location(f"study_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    return module


def table(path, rows):
    """The text of the CSV: the digest of the script, the columns, a line for each row."""
    columns = {tuple(row) for row in rows}
    if len(columns) != 1:
        raise stored.Fault(f"{path.name}: every row needs the same columns, got {sorted(columns)}")
    text = io.StringIO()
    text.write(f"# digest of {path.name}: {digest(path)}\n")
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: float(f"{value:.6g}") if isinstance(value, float) else value
                      for name, value in row.items()} for row in rows)
    return text.getvalue()


def digest(path):
    return hashlib.sha256(path.read_text(encoding="utf-8").encode()).hexdigest()[:16]


def changed(path):
    """Whether a script has changed since its table was made, or has no table."""
    made = path.with_suffix(".csv")
    first = made.read_text(encoding="utf-8").partition("\n")[0] + "\n" if made.exists() else ""
    found = DIGEST.fullmatch(first)
    return not found or found.groups() != (path.name, digest(path))


def save(name, state):
    """Store a state dict as notebooks/weights/NAME.pt, in float16; `course_lib.studies.weights` reads it.

    Call it with the real budget only.  Raises Fault if all weights together become too large.
    """
    path = folder().parent / "weights" / f"{name}.pt"
    buffer = io.BytesIO()
    torch.save({key: tensor.half() if tensor.is_floating_point() else tensor
                for key, tensor in state.items()}, buffer)
    others = sum(other.stat().st_size for other in path.parent.glob("*.pt") if other != path)
    size = len(buffer.getvalue())
    if others + size > MOST_WEIGHTS:
        raise stored.Fault(f"weights/{path.name} has {size:,} bytes, the others {others:,}: "
                           f"more than {MOST_WEIGHTS:,}")
    with files.replacing(path) as passing:
        passing.write_bytes(buffer.getvalue())

"""Do the lessons' claims hold under other seeds?  A claim is an assert in a cell of the lesson."""

import time

from ..exercise import read
from . import execute, stored

SEEDS = range(5)


def claims(keys):
    """Run each lesson under five seeds, store nothing, and report.  Returns 1 if any claim failed.

    A line that a lesson prints and that starts with "margin:" goes into the report.
    """
    failed = []
    for path in stored.find_all(["notebooks"], keys):
        print(stored.name(path), flush=True)
        for seed in SEEDS:
            start, notebook = time.perf_counter(), read(path)
            try:
                execute.run(notebook, path, seed)
                outcome = "ok"
            except execute.CellFailed as problem:
                outcome = f"FAILED in cell {problem.cell_id}: {str(problem).strip().splitlines()[-1]}"
                failed.append((path, seed))
            print(f"  seed {seed}  {time.perf_counter() - start:4.0f} s  {outcome}", flush=True)
            for line in margins(notebook):
                print(f"          {line}", flush=True)
    print(f"{len(failed)} of the runs failed" if failed else "every claim held under every seed")
    return 1 if failed else 0


def margins(notebook):
    """The lines 'margin: ...' that a run printed."""
    return [line for cell in notebook.cells for output in cell.get("outputs", [])
            if output.get("name") == "stdout" for line in output.text.splitlines()
            if line.startswith("margin:")]

"""Check whether the lessons' claims hold with other seeds.  `claim(...)` in a cell asserts and prints one."""

import ast
import collections
import time

from course_lib.claims import found

from ..exercise import read
from . import execute, stored

SEEDS = range(5)


def claims(keys, widen=False):
    """Run each lesson with five seeds, report, and write the observed ranges into its cells.

    Outputs are not changed: execute the lesson afterwards.  A range is refreshed if the claim held for every
    seed and the cell gives seeds=(...) as numbers.  widen: no range becomes smaller; for another kind of
    processor, which rounds differently, so that the same seeds lead to other results.  Returns 1 if any claim
    failed.
    """
    failed = []
    for path in stored.find_all(["notebooks"], keys):
        print(stored.name(path), flush=True)
        measured = collections.defaultdict(list)
        for seed in SEEDS:
            start, notebook = time.perf_counter(), read(path)
            try:
                execute.run(notebook, path, seed)
                outcome = "ok"
            except execute.CellFailed as problem:
                outcome = f"FAILED in cell {problem.cell_id}: {str(problem).strip().splitlines()[-1]}"
                failed.append((path, seed))
            print(f"  seed {seed}  {time.perf_counter() - start:4.0f} s  {outcome}", flush=True)
            for key, number in printed(notebook):
                measured[key].append(number)
        ranges = {key: (min(seen), max(seen)) for key, seen in measured.items() if len(seen) == len(SEEDS)}
        for (cell, what), (low, high) in ranges.items():
            print(f"    {cell:24} {what:44} {low:g} to {high:g}", flush=True)
        refreshed = refresh(path, ranges, widen)
        if refreshed:
            print(f"  {refreshed} ranges were updated. To store the outputs: "
                  f"make notebooks KEY={path.stem[:2]}")
    print(f"{len(failed)} of the runs failed" if failed else "Every claim held for every seed.")
    return 1 if failed else 0


def printed(notebook):
    """[((cell id, what), number)] for all claims that a run printed."""
    return [((cell.id, what), number) for cell in notebook.cells for output in cell.get("outputs", [])
            if output.get("name") == "stdout" for what, number in found(output.text)]


def refresh(path, ranges, widen=False):
    """Write the ranges {(cell id, what): (low, high)} into the cells.  Returns how many changed.

    widen: each together with the range that stands there.
    """
    notebook, changed = read(path), 0
    for cell in notebook.cells:
        lines = cell.source.splitlines()
        for place in reversed(_seeds(cell)):
            what, node = place
            seen = ranges.get((cell.id, what), ())
            if seen and widen:
                seen = [*seen, *ast.literal_eval(node)]
            text = f"({min(seen):g}, {max(seen):g})" if seen else None
            line = lines[node.lineno - 1].encode()    # the syntax tree counts bytes
            old = line[node.col_offset:node.end_col_offset].decode()
            if text and node.lineno == node.end_lineno and old != text:
                new = line[:node.col_offset] + text.encode() + line[node.end_col_offset:]
                lines[node.lineno - 1] = new.decode()
                changed += 1
        cell.source = "\n".join(lines)
    if changed:
        stored.write(notebook, path)
    return changed


def _seeds(cell):
    """(what, the node of seeds=(...)) of each call of claim whose text is written out, in order."""
    if cell.cell_type != "code" or "claim(" not in cell.source:
        return []
    calls = [node for node in ast.walk(ast.parse(cell.source))
             if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "claim"
             and node.args and isinstance(node.args[0], ast.Constant)]
    places = [(call.args[0].value, keyword.value) for call in calls for keyword in call.keywords
              if keyword.arg == "seeds" and isinstance(keyword.value, ast.Tuple)]
    return sorted(places, key=lambda place: (place[1].lineno, place[1].col_offset))

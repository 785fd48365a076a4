"""Whether a lesson's findings hold with other seeds, and the ranges of their values.

`finding(...)` in a cell asserts a sentence of measured values, and so does `claim(...)` of one number in
lessons of the second edition.
"""

import ast
import collections
import json
import re
import time

from course_lib import claims

from ..exercise import read
from . import budget, execute, stored

SEEDS = range(5)
WIDTH = 110
ROW = re.compile(r"^  (?P<name>\S.*?) {3,}(?P<kind>this run|median|value) +(?P<value>\S+)"
                 r"(?: {3}\w+ seeds: (?P<low>\S+) to (?P<high>\S+))?$")    # of course_lib.findings.Table


def findings(keys, widen=False):
    """Run each lesson with five seeds, report, and write the observed ranges into its cells.

    Outputs are not changed: execute the lesson afterwards.  A range is refreshed if the lesson ran to the
    value with every seed.  Values of a study keep the study's range.  widen: no range becomes smaller; for
    another kind of processor, which rounds differently, so that the same seeds lead to other results.
    Returns 1 if any finding failed.
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
            for key, number in shown(notebook):
                measured[key].append(number)
        ranges = {key: (min(seen), max(seen)) for key, seen in measured.items() if len(seen) == len(SEEDS)}
        for (cell, sentence, name), (low, high) in ranges.items():
            print(f"    {cell:24} {name or sentence:44} {low:g} to {high:g}", flush=True)
        refreshed = refresh(path, ranges, widen)
        if refreshed:
            print(f"  {refreshed} ranges were updated. To store the outputs: "
                  f"make notebooks KEY={path.stem[:2]}")
    print(f"{len(failed)} of the runs failed" if failed else "Every finding held for every seed.")
    return 1 if failed else 0


def tables(cell):
    """{sentence: [match of each row]} of the findings that a cell shows."""
    rows, sentence = {}, ""
    for output in cell.get("outputs", []):
        for line in output.get("data", {}).get("text/plain", "").splitlines():
            row = ROW.match(line)
            if row:
                rows.setdefault(sentence, []).append(row)
            elif line[:1].strip():
                sentence = line
    return rows


def shown(notebook):
    """[((cell id, sentence, name), number)] of what a run measured; name is None for a claim."""
    rows = []
    for cell in notebook.cells:
        rows += [((cell.id, sentence, row["name"]), _number(row["value"]))
                 for sentence, table in tables(cell).items() for row in table if row["kind"] != "median"]
        for output in cell.get("outputs", []):
            rows += [((cell.id, what, None), value) for what, value in claims.found(output.get("text", ""))]
    return rows


def _number(text):
    return int(text) if text.lstrip("-").isdigit() else float(text)


def refresh(path, ranges, widen=False):
    """Write the ranges {(cell id, sentence, name): (low, high)} into the cells.  Returns how many changed.

    widen: each together with the range that stands there.
    """
    notebook, changed = read(path), 0
    for cell in notebook.cells:
        for call in reversed(_calls(cell)):
            seen = {name: span for (where, sentence, name), span in ranges.items()
                    if (where, sentence) == (cell.id, call.args[0].value)}
            old = next((keyword.value for keyword in call.keywords if keyword.arg == "seeds"), None)
            new = _ranges(old, seen, widen)
            if new is not None and (old is None or not _same(old, new)):
                changed += len(seen)
                cell.source = _replaced(cell.source, call, old, new)
    if changed:
        stored.write(notebook, path)
    return changed


def _calls(cell):
    """The calls of finding and claim whose sentence is written out, in order."""
    return [call for call in budget.calls(cell, "finding", "claim")
            if call.args and isinstance(call.args[0], ast.Constant)]


def _ranges(old, seen, widen):
    """The text of the new value of seeds=, or None if it stays.

    old: its syntax tree, None if the call has none.  seen: {name: (low, high)}.  A finding without ranges
    gets them if a value differs between seeds; one whose values never do gets none, for they may be counts.
    """
    if None in seen:                                    # a claim
        known = [*ast.literal_eval(old)] if isinstance(old, ast.Tuple) and widen else []
        return _span([*known, *seen[None]]) if isinstance(old, ast.Tuple) else None
    if not seen or (old is None and all(low == high for low, high in seen.values())):
        return None
    if old is not None and not isinstance(old, ast.Dict):
        return None
    try:
        known = ast.literal_eval(old) if old is not None else {}
    except ValueError:                                  # some come from a study
        return None
    united = {name: [*span, *(known.get(name, ()) if widen else ())] for name, span in seen.items()}
    return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {_span(span)}"
                           for name, span in united.items()) + "}"


def _same(old, new):
    return ast.dump(ast.parse(new, mode="eval").body) == ast.dump(old)


def _span(seen):
    return f"({min(seen):g}, {max(seen):g})"


def _replaced(source, call, old, new):
    """The source with `new` in place of the node `old`, or as a further argument of the call."""
    lines = [line.encode() for line in source.split("\n")]    # the syntax tree counts bytes
    place = old or call
    before = b"\n".join([*lines[:place.lineno - 1], lines[place.lineno - 1][:place.col_offset]])
    after = b"\n".join([lines[place.end_lineno - 1][place.end_col_offset:], *lines[place.end_lineno:]])
    if old is None:
        whole = ast.get_source_segment(source, call)
        indent = " " * (len(lines[call.lineno - 1][:call.col_offset].decode()) + len(f"{call.func.id}("))
        filled = _filled(f"seeds={new}", indent)
        return f"{before.decode()}{whole[:-1].rstrip().rstrip(',')},\n{indent}{filled}){after.decode()}"
    indent = " " * len(before.decode().rpartition("\n")[2])
    return before.decode() + _filled(new, indent) + after.decode()


def _filled(text, indent):
    """Broken into lines between entries where it does not fit on one."""
    entries, lines = text.replace('), "', ')\n"').split("\n"), [""]
    for number, entry in enumerate(entries):
        entry += ", " if number + 1 < len(entries) else ""
        if lines[-1] and len(indent + lines[-1] + entry) > WIDTH:
            lines.append(" ")
        lines[-1] += entry
    return ("\n" + indent).join(line.rstrip() for line in lines)

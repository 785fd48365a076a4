"""What the grader says beyond the checks: of cells that raise an error, and of what a named mistake gave."""

import contextlib
import re

from ..checks.describe import describe, same
from ..checks.judge import Verdict
from ..checks.observe import decode
from . import tidy

HELPERS = "\n    Only the answer cells are graded: what an answer needs belongs into its own cell."
UNANSWERED = "not answered yet."


def raised(kind, text):
    """The verdict on a cell that raises an error and so defines nothing."""
    if kind == "NotImplementedError":
        return Verdict("missing", UNANSWERED)
    text = re.sub(r"\(\S+\.py, line (\d+)\)", r"(line \1 of the cell)", text)
    return Verdict("error", f"the cell raises {kind}{text and f': {text}'}{HELPERS * (kind == 'NameError')}")


def difference(item, asked, seen):
    """What came out and what was expected, for one input, or None where that can't be told."""
    expected = [asked.observe(item.reference, trial, item.probe, item.gradients) for trial in asked.trials]
    wrong = [number for number, (one, right) in enumerate(zip(seen, expected, strict=True))
             if one["error"] or not same(decode(one["output"]), decode(right["output"]))]
    with contextlib.suppress(Exception):  # it is a named mistake whatever this finds
        return tidy(describe(item, asked.trials, seen, expected, wrong))

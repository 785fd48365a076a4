"""What the grader says beyond the checks: of cells that raise an error."""

import re

from ..checks.judge import Verdict

HELPERS = "\n    Only the answer cells are graded: what an answer needs belongs into its own cell."
UNANSWERED = "not answered yet."


def raised(kind, text):
    """The verdict on a cell that raises an error and so defines nothing."""
    if kind == "NotImplementedError":
        return Verdict("missing", UNANSWERED)
    text = re.sub(r"\(\S+\.py, line (\d+)\)", r"(line \1 of the cell)", text)
    return Verdict("error", f"the cell raises {kind}{text and f': {text}'}{HELPERS * (kind == 'NameError')}")

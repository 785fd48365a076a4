"""Messages of the grader beyond those of the checks: for cells that raise an error."""

import re

from ...judging.judge import Verdict

HELPERS = ("\n    Only the answer cells are graded, so everything that an answer needs "
           "must be in its own cell.")
UNANSWERED = "not answered yet."


def raised(kind: str, text: str) -> Verdict:
    """The verdict on a cell that raises an error and therefore defines nothing."""
    if kind == "NotImplementedError":
        return Verdict("missing", UNANSWERED)
    text = re.sub(r"\(\S+\.py, line (\d+)\)", r"(line \1 of the cell)", text)
    return Verdict("error", f"The cell raises {kind}{text and f': {text}'}{HELPERS * (kind == 'NameError')}")

"""What a page shows for a wrong answer, beside the diagnosis: inputs, difference, the line that raised."""

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import torch

from ...judging.describe import describe, same
from ...judging.judge import Verdict
from ...judging.observe import Observation, decode, tensors
from ...judging.spec import Item
from .. import tidy
from ..question import Question
from ..results import Evidence

SMALL, LONGEST = 64, 2000  # numbers and characters of one input that a page shows
DEFAULT = (torch.float32, torch.int64, torch.bool)  # what torch.tensor makes of Python's numbers


def evidence(item: Item, question: Question, observations: list[Observation], verdict: Verdict
             ) -> Evidence:
    """The evidence for a verdict, from the first inputs for which the answer is wrong.

    observations: those of all trials of the question.  The difference is left out if the diagnosis gives the
    numbers.
    """
    evidence: Evidence = {"difference": None, "inputs": None, "line": None}
    with contextlib.suppress(Exception):  # the verdict stands whatever this comes to
        right = [question.observe(item.reference, trial, item.probe, item.gradients)
                 for trial in question.trials]
        wrong = [number for number, one in enumerate(observations)
                 if one["error"] or not same(decode(one["output"]), decode(right[number]["output"]))]
        first = wrong[0] if wrong else 0
        error = observations[first]["error"]
        evidence["line"] = error["line"] if error else None
        if item.probe == "call":  # any other builds the arguments from the inputs
            evidence["inputs"] = as_code(question.trials[first])
        if verdict.mistake and not item.view:
            evidence["difference"] = tidy(describe(item, question.trials, observations, right, wrong))
    return evidence


def as_code(inputs: Mapping[str, Any]) -> str:
    """{"name": value} as assignments to paste into a cell; for a large value only its shape, as a comment."""
    return "\n".join(_assignment(name, value) for name, value in inputs.items())


def _assignment(name: str, value: Any) -> str:
    parts, text = tensors(value), f"{name} = {_literal(value, len(name) + 3)}"
    if sum(tensor.numel() for tensor in parts) <= SMALL and len(text) <= LONGEST:
        return text
    shapes = ", ".join(str(tuple(tensor.shape)) for tensor in parts)
    return f"# {name} is too large to show" + (f": {shapes}" if shapes else "")


def _literal(value: Any, column: int) -> str:
    """A value as Python source that begins in this column."""
    if isinstance(value, torch.Tensor):
        dtype = "" if value.dtype in DEFAULT else f", dtype={value.dtype}"
        return f"torch.tensor({_literal(value.tolist(), column + len('torch.tensor('))}{dtype})"
    if isinstance(value, list):
        between = f",\n{' ' * (column + 1)}" if value and isinstance(value[0], list) else ", "
        return f"[{between.join(_literal(part, column + 1) for part in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_literal(part, column + 1) for part in value)},)"
    if isinstance(value, float):
        return f"{value:.4g}" if math.isfinite(value) else f'float("{value}")'
    return repr(value)

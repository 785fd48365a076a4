"""What a page shows for a wrong answer, beside the diagnosis: inputs, difference, the line that raised."""

import contextlib
import math

import torch

from ...judging.describe import describe, same
from ...judging.observe import decode, tensors
from .. import tidy

SMALL, LONGEST = 64, 2000  # numbers and characters of one input that a page shows
DEFAULT = (torch.float32, torch.int64, torch.bool)  # what torch.tensor makes of Python's numbers


def evidence(item, question, observations, verdict):
    """The evidence for a verdict, from the first inputs for which the answer is wrong.

    question: the Question.  observations: those of all its trials.  Returns {"difference": the result and the
    expected result, if the diagnosis does not give the numbers, "inputs": as code, "line": the source line
    that raised}, each None if unknown.
    """
    found = {"difference": None, "inputs": None, "line": None}
    with contextlib.suppress(Exception):  # the verdict stands whatever this finds
        right = [question.observe(item.reference, trial, item.probe, item.gradients)
                 for trial in question.trials]
        wrong = [number for number, one in enumerate(observations)
                 if one["error"] or not same(decode(one["output"]), decode(right[number]["output"]))]
        first = wrong[0] if wrong else 0
        found["line"] = observations[first]["error"]["line"] if observations[first]["error"] else None
        if item.probe == "call":  # any other builds the arguments from the inputs
            found["inputs"] = as_code(question.trials[first])
        if verdict.mistake and not item.view:
            found["difference"] = tidy(describe(item, question.trials, observations, right, wrong))
    return found


def as_code(inputs):
    """{"name": value} as assignments to paste into a cell; for a large value only its shape, as a comment."""
    return "\n".join(_assignment(name, value) for name, value in inputs.items())


def _assignment(name, value):
    found, text = tensors(value), f"{name} = {_literal(value, len(name) + 3)}"
    if sum(tensor.numel() for tensor in found) <= SMALL and len(text) <= LONGEST:
        return text
    shapes = ", ".join(str(tuple(tensor.shape)) for tensor in found)
    return f"# {name} is too large to show" + (f": {shapes}" if shapes else "")


def _literal(value, column):
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

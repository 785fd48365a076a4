"""What is not as it should be, in words: for a wrong answer that is none of the named mistakes.

Asked in order, and the first that fails is told with both numbers: error, structure, shape, dtype,
finite, property, value, then changed arguments, then gradients.
"""

import functools
import math
import re

import torch

from .observe import ENDLESS, Opaque, decode, tensors

RTOL, ATOL = 1e-4, 1e-5  # wide enough for another order of summation in float32


# What torch's errors mostly come from here.
HINTS = {"Boolean value of Tensor": "is it for a mask? `if mask is not None` asks whether there is one",
         "must match the size of tensor": "is an axis missing? keepdim=True or [:, None] keeps one of size 1",
         "have the same dtype": "a new tensor has another dtype than the inputs: make it with dtype=x.dtype"}


def same(left, right):
    """Equal numbers in equal containers: shapes and dtypes exact, values to rounding.

    right: as it should be; a float does not pass for a whole number there.
    """
    if isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor):
        return (left.shape == right.shape and left.dtype == right.dtype
                and torch.allclose(left.double(), right.double(), RTOL, ATOL, equal_nan=True))
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if type(left) in (int, float) and type(right) in (int, float):
        whole = type(right) is int and type(left) is float          # 3.0 is no 3, but 3 may stand for 3.0
        return not whole and math.isclose(left, right, rel_tol=RTOL, abs_tol=ATOL)
    return type(left) is type(right) and not isinstance(left, Opaque) and left == right


def describe(item, inputs, observations, expected, wrong, repeats=True):
    """The first thing that is not as it should be, in words, or None when all is right.

    repeats: whether the last of the inputs is the first again.
    """
    if wrong:
        number = wrong[0]
        seen, trial = observations[number], inputs[number]
        if seen["error"]:
            error = seen["error"]
            line = f"\n    in the line  {error['line']}" if error["line"] else ""
            hint = next((f"\n    {hint}" for words, hint in HINTS.items() if words in error["message"]), "")
            return f"raised {error['type']}: {error['message']}{line}{hint}\n    with {_sizes(trial)}"
        output, right = decode(seen["output"]), decode(expected[number]["output"])
        problem = _first_difference(item, trial, output, right)
        if problem is None:
            return _changed_argument(trial, decode(seen["inputs"]))
        if repeats and number == len(inputs) - 1:
            return ("right at first, but another result when called again with the same inputs: "
                    "a value is kept between calls.")
        before = " (right on the inputs before)" if number else ""
        return f"{problem}\n    with {_sizes(trial)}{before}"
    if not item.gradients:
        return None
    for seen, right, trial in zip(observations, expected, inputs, strict=True):
        problem = _gradient_problem(seen["gradients"], right["gradients"], trial)
        if problem:
            return problem
    return None


def _first_difference(item, trial, output, right):
    """Structure, then shape, dtype, finite, property, value: the first that fails, with both numbers."""
    many = isinstance(right, (tuple, list)) and len(item.returns) > 1
    if output is None:
        return "returned None: is the return missing?"
    if isinstance(output, str) and output == ENDLESS:
        return "it never ends: stop where the sentence ends, and after max_len steps at the latest."
    if many and not (isinstance(output, (tuple, list)) and len(output) == len(right)):
        return f"returned {_kind(output)}, expected {len(right)} results: {', '.join(item.returns)}."
    parts = [(item.returns[0], output, right)]
    if many:
        parts = list(zip(item.returns, output, right, strict=True))
    for test in (_kind_problem, _shape_problem, functools.partial(_dtype_problem, trial), _finite_problem):
        for name, got, want in parts:
            problem = test(name, got, want)
            if problem:
                return problem
    for holds, sentence in item.properties:
        if not _asked(holds, trial, output):
            return sentence
    for name, got, want in parts:
        if not same(got, want):
            return _value_problem(name, got, want)
    return None


def _asked(holds, trial, output):
    """Whether a property holds; what can't even be asked for it is told by its value."""
    try:
        return holds(trial, output)
    except Exception:
        return True


def _kind_problem(name, got, want):
    if got is None and isinstance(want, (torch.Tensor, list, tuple)):
        return f"{name} is None: is a return missing?"
    if isinstance(want, torch.Tensor) != isinstance(got, torch.Tensor) or isinstance(got, Opaque):
        return f"{name} is {_kind(got)}, expected {_kind(want)}."
    if not isinstance(want, (list, tuple)):
        return None
    if not isinstance(got, (list, tuple)):
        return f"{name} is {_kind(got)}, expected {_kind(want)}."
    if len(got) != len(want):
        if isinstance(got, tuple) and isinstance(want, list):
            return f"{len(got)} results are returned, expected one: {name}."
        return (f"{name}: there are {', '.join(got) or 'none'}, expected {', '.join(want) or 'none'}."
                if want and all(isinstance(part, str) for part in [*got, *want])
                else f"{name} has {len(got)} entries, expected {len(want)}.")
    problems = [_kind_problem(f"{name}, entry {place},", left, right)
                for place, (left, right) in enumerate(zip(got, want, strict=True))]
    return next(filter(None, problems), None)


def _shape_problem(name, got, want):
    for left, right in _pairs(got, want):
        if left.shape != right.shape:
            return f"{name} has shape {tuple(left.shape)}, expected {tuple(right.shape)}."
    return None


def _dtype_problem(trial, name, got, want):
    for left, right in _pairs(got, want):
        if left.dtype != right.dtype:
            inputs = any(part.dtype == right.dtype for part in tensors(trial) if part.is_floating_point())
            return f"{name} is {left.dtype}, expected {right.dtype}{', the dtype of the inputs' * inputs}."
    return None


def _finite_problem(name, got, want):
    for left, right in _pairs(got, want):
        bad = int((~torch.isfinite(left)).sum())
        if bad and torch.isfinite(right).all():
            return f"{name} holds nan or infinity in {bad} of {left.numel()} places."
    return None


def _value_problem(name, got, want):
    if not isinstance(want, (torch.Tensor, list, tuple)):
        return f"{name} is {got!r}, expected {want!r}."
    for part, (left, right) in enumerate(_pairs(got, want)):
        if not same(left, right):
            off = ~torch.isclose(left.double(), right.double(), RTOL, ATOL)
            where = tuple(off.nonzero()[0].tolist())
            at = f"[{', '.join(map(str, where))}]" if where else ""
            at = f"[{part}]{at}" if isinstance(want, (list, tuple)) else at
            is_, expected = _unlike(left[where].item(), right[where].item())
            return (f"{re.split(r' [(]|[,:]', name)[0]}{at} is {is_}, expected {expected}; "
                    f"{int(off.sum())} of {off.numel()} values differ.")
    return f"{name} is {got!r}, expected {want!r}."


def _unlike(got, want):
    """Both numbers, with as many digits as it takes to see that they differ."""
    return next((pair for pair in ((f"{got:.{digits}g}", f"{want:.{digits}g}") for digits in (4, 7))
                 if pair[0] != pair[1]), (repr(got), repr(want)))


def _pairs(got, want):
    if isinstance(want, torch.Tensor):
        return [(got, want)]
    if isinstance(want, (list, tuple)):
        return [(g, w) for g, w in zip(got, want, strict=True)
                if isinstance(g, torch.Tensor) and isinstance(w, torch.Tensor)]
    return []


def _changed_argument(trial, after):
    changed = ["an argument of forward" if name == "calls" else name
               for name in trial if not same(trial[name], after[name])]
    return f"the result is right, but {', '.join(changed)} was changed in place: the caller still needs it."


def _gradient_problem(got, want, trial):
    got, want = decode(got), decode(want)
    if want is None or same(got, want):
        return None
    if isinstance(got, Opaque):
        return f"the values are right, but not when gradients are asked for: {got.description}"
    if got is None:
        return ("the values are right, but no gradient flows to the inputs: .item(), .detach(), .numpy(), "
                "torch.tensor(...) or no_grad cuts the graph.")
    names = [name for name, value in trial.items()
             if isinstance(value, torch.Tensor) and value.is_floating_point()]
    off = [name for name, left, right in zip(names, got, want, strict=False) if not same(left, right)]
    return (f"the values are right, but the gradient to {', '.join(off) or 'the inputs'} is not: "
            "is a part of it detached?")


def _kind(value):
    if isinstance(value, Opaque):
        return repr(value)
    kind = "tensor" if isinstance(value, torch.Tensor) else type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _sizes(trial):
    """'x_t (2, 3), h_prev (2, 4)': what it was called with; for a class '(3, 0.1), then train (2, 3)'."""
    if "calls" in trial:
        shapes = [f"{mode} {', '.join(str(tuple(x.shape)) for x in arguments if isinstance(x, torch.Tensor))}"
                  for mode, arguments in trial["calls"]]
        return f"({', '.join(map(str, trial['arguments']))}), then {', '.join(shapes)}"
    return ", ".join(f"{name} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else
                     f"{name} = {value!r}" if isinstance(value, (int, float, str)) else name
                     for name, value in trial.items())

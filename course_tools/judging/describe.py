"""Describe what is wrong with an answer that matches none of the named mistakes.

These are examined in order, and the first problem is described with both numbers: error, structure, shape,
dtype, finite values, properties, values, then changed arguments, then gradients.
"""

import functools
import math
import re
from typing import Any

import torch

from .observe import Observation, Opaque, decode, tensors
from .probes import ENDLESS, Inputs
from .spec import Item, Property

RTOL, ATOL = 1e-4, 1e-5  # wide enough for a different order of summation in float32


# The usual causes of errors in these exercises.
HINTS = {"Boolean value of Tensor":
         "`if mask is not None` asks whether there is a mask. (...) & (...) combines two masks, not `and`.",
         "must match the size of tensor":
         "Print both shapes. Are two lengths different that should be equal, or is an axis of size 1 "
         "missing? keepdim=True and [:, None] make one.",
         "cannot be multiplied":
         "In A @ B, the last axis of A must be as long as the second to last of B. Is a transpose missing?",
         "'Tensor' and 'tuple'":
         "A function with two results, such as attention, returns a tuple of both. Take one of them: [0].",
         "is not defined":
         "Is the name spelt as where it is defined? If another cell defines it, run that cell first.",
         "do not belong here":
         "The task lists all parts that have parameters, and says whether they have a bias.",
         "is missing the required \"forward\"":
         "nn.ModuleList only keeps modules. To apply them in order, use nn.Sequential or write a forward.",
         "have the same dtype":
         "A new tensor does not have the dtype of the inputs. Create it with dtype=x.dtype."}


def same(left: Any, right: Any) -> bool:
    """Equal numbers in equal containers: shapes and dtypes exact, values to rounding.

    right: the expected value; a float is not accepted where it is a whole number.
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


def describe(item: Item, inputs: list[Inputs], observations: list[Observation], expected: list[Observation],
             wrong: list[int], repeats: bool = True) -> str | None:
    """The first problem, in words, or None if everything is right.

    repeats: whether the last of the inputs is the first again.
    """
    if wrong:
        number = wrong[0]
        seen, trial = observations[number], inputs[number]
        if seen["error"]:
            error = seen["error"]
            line = f"\n    Line: {error['line']}" if error["line"] else ""
            hint = next((f"\n    {hint}" for words, hint in HINTS.items() if words in error["message"]), "")
            return (f"Your code raised {error['type']}: {error['message']}{line}{hint}\n"
                    f"    Inputs: {_sizes(trial)}")
        output, right = decode(seen["output"]), decode(expected[number]["output"])
        problem = _first_difference(item, trial, output, right)
        if problem is None:
            return _changed_argument(trial, decode(seen["inputs"]))
        if repeats and number == len(inputs) - 1:
            return ("The first call is right, but a second call with the same inputs gives a different "
                    "result. A value is kept between calls.")
        before = " (the inputs before these gave the right result)" if number else ""
        return f"{problem}\n    Inputs: {_sizes(trial)}{before}"
    if not item.gradients:
        return None
    for seen, right, trial in zip(observations, expected, inputs, strict=True):
        problem = _gradient_problem(decode(seen["gradients"]), decode(right["gradients"]), trial)
        if problem:
            return problem
    return None


def _first_difference(item: Item, trial: Inputs, output: Any, right: Any) -> str | None:
    """Structure, then shape, dtype, finite, property, value: the first that fails, with both numbers."""
    many = isinstance(right, (tuple, list)) and len(item.returns) > 1
    if output is None:
        return "You returned None. Is a return statement missing?"
    if isinstance(output, str) and output == ENDLESS:
        return "This never ends. Stop where the sentence ends, and after max_len steps at the latest."
    if many and not (isinstance(output, (tuple, list)) and len(output) == len(right)):
        return (f"You returned {_kind(output)}, but {len(right)} results were expected: "
                f"{', '.join(item.returns)}.")
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


def _asked(holds: Property, trial: Inputs, output: Any) -> bool:
    """Whether a property holds; if it cannot be evaluated, the value itself is compared later."""
    try:
        return holds(trial, output)
    except Exception:
        return True


def _kind_problem(name: str, got: Any, want: Any) -> str | None:
    if got is None and isinstance(want, (torch.Tensor, list, tuple)):
        return f"{_full(name)} is None. Is a return statement missing?"
    if isinstance(want, torch.Tensor) != isinstance(got, torch.Tensor) or isinstance(got, Opaque):
        return f"{_full(name)} is {_kind(got)}, but should be {_kind(want)}."
    if not isinstance(want, (list, tuple)):
        return None
    if not isinstance(got, (list, tuple)):
        return f"{_full(name)} is {_kind(got)}, but should be {_kind(want)}."
    if len(got) != len(want):
        if isinstance(got, tuple) and isinstance(want, list):
            return f"You returned {len(got)} results, but only one was expected: {name}."
        return (f"{_short(name)} should contain {', '.join(want)}, but has {', '.join(got) or 'nothing'}."
                if want and all(isinstance(part, str) for part in [*got, *want])
                else f"{_full(name)} has {_entries(len(got))}, but should have {len(want)}.")
    problems = [_kind_problem(f"Entry {place} of {_short(name)}", left, right)
                for place, (left, right) in enumerate(zip(got, want, strict=True))]
    return next(filter(None, problems), None)


def _shape_problem(name: str, got: Any, want: Any) -> str | None:
    for left, right in _pairs(got, want):
        if left.shape != right.shape:
            return f"{_full(name)} has shape {tuple(left.shape)}, but should have shape {tuple(right.shape)}."
    return None


def _dtype_problem(trial: Inputs, name: str, got: Any, want: Any) -> str | None:
    for left, right in _pairs(got, want):
        if left.dtype != right.dtype:
            inputs = any(part.dtype == right.dtype for part in tensors(trial) if part.is_floating_point())
            return (f"{_full(name)} has dtype {left.dtype}, but should have {right.dtype}"
                    f"{', the dtype of the inputs' * inputs}.")
    return None


def _finite_problem(name: str, got: Any, want: Any) -> str | None:
    for left, right in _pairs(got, want):
        bad = int((~torch.isfinite(left)).sum())
        if bad and torch.isfinite(right).all():
            are = "is" if bad == 1 else "are"
            return (f"{bad} of the {left.numel()} values of {_short(name)} {are} nan or infinite."
                    if left.numel() > 1 else
                    f"{_full(name)} is {left.item()}, but should be a finite number.")
    return None


def _value_problem(name: str, got: Any, want: Any) -> str:
    if not isinstance(want, (torch.Tensor, list, tuple)):
        is_, expected = _unlike(got, want) if type(got) is type(want) is float else (repr(got), repr(want))
        return f"{_full(name)} is {is_}, but should be {expected}."
    for part, (left, right) in enumerate(_pairs(got, want)):
        if not same(left, right):
            off = ~torch.isclose(left.double(), right.double(), RTOL, ATOL)
            where = tuple(off.nonzero()[0].tolist())
            at = f"[{', '.join(map(str, where))}]" if where else ""
            at = f"[{part}]{at}" if isinstance(want, (list, tuple)) else at
            is_, expected = _unlike(left[where].item(), right[where].item())
            count = int(off.sum())
            differ = f" {count} of {off.numel()} values differ{'s' * (count == 1)}." if off.dim() else ""
            return f"{_capital(_short(name))}{at} is {is_}, but should be {expected}.{differ}"
    return f"{_full(name)} is {got!r}, but should be {want!r}."


def _short(name: str) -> str:
    """The name of a result without its shape: 'h_t (B, d_h)' -> 'h_t'."""
    return re.split(r" [(]|[,:]", name)[0]


def _full(name: str) -> str:
    """The name of a result as a subject, with a comma after an apposition: 'words, a list of ints,'."""
    if ":" in name:
        return _short(name)
    return _capital(name) + "," * ("," in re.sub(r"[(].*?[)]", "", name))


def _capital(name: str) -> str:
    return f"T{name[1:]}" if name.startswith("the ") else name


def _entries(count: int) -> str:
    return f"{count} entr{'y' if count == 1 else 'ies'}"


def _unlike(got: float, want: float) -> tuple[str, str]:
    """Both numbers, with as many digits as it takes to see that they differ."""
    return next((pair for pair in ((f"{got:.{digits}g}", f"{want:.{digits}g}") for digits in (4, 7))
                 if pair[0] != pair[1]), (repr(got), repr(want)))


def _pairs(got: Any, want: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    if isinstance(want, torch.Tensor):
        return [(got, want)]
    if isinstance(want, (list, tuple)):
        return [(g, w) for g, w in zip(got, want, strict=True)
                if isinstance(g, torch.Tensor) and isinstance(w, torch.Tensor)]
    return []


def _changed_argument(trial: Inputs, after: Inputs) -> str:
    changed = ["an argument of forward" if name == "calls" else name
               for name in trial if not same(trial[name], after[name])]
    was, it = ("was", "it") if len(changed) == 1 else ("were", "them")
    return (f"The result is right, but {', '.join(changed)} {was} changed in place, and the caller still "
            f"needs {it}.")


def _gradient_problem(got: Any, want: Any, trial: Inputs) -> str | None:
    if want is None or same(got, want):
        return None
    if isinstance(got, Opaque):
        return f"The values are right, but computing gradients fails: {got.description}"
    if got is None:
        return ("The values are right, but no gradient flows to the inputs. Look for .item(), .detach(), "
                ".numpy(), torch.tensor(...) or no_grad, which cut the graph.")
    names = [name for name, value in trial.items()
             if isinstance(value, torch.Tensor) and value.is_floating_point()]
    off = [name for name, left, right in zip(names, got, want, strict=False) if not same(left, right)]
    return (f"The values are right, but the gradient with respect to {', '.join(off) or 'the inputs'} is "
            "not. Is part of the computation detached?")


def _kind(value: Any) -> str:
    if isinstance(value, Opaque):
        return repr(value)
    kind = "tensor" if isinstance(value, torch.Tensor) else type(value).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _sizes(trial: Inputs) -> str:
    """'x_t (2, 3), h_prev (2, 4)': what was passed; for a class 'built with (3, 0.1), called with ...'."""
    if "calls" in trial:
        shapes = [f"{' and '.join(str(tuple(x.shape)) for x in arguments if isinstance(x, torch.Tensor))} in "
                  f"{mode} mode" for mode, arguments in trial["calls"]]
        return f"built with ({', '.join(map(str, trial['arguments']))}), called with {', '.join(shapes)}"
    return ", ".join(f"{name} {tuple(value.shape)}" if isinstance(value, torch.Tensor) else
                     f"{name} = {value!r}" if isinstance(value, (int, float, str)) else name
                     for name, value in trial.items())

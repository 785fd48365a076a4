"""Well-defined subsets of an item's inputs, derived from the inputs in the same way for all items: those
without a mask, those with B = 1, the calls in eval mode ...

A case is one call of an answer: (number of the trial, entry of its output), where the entry is None for
an answer that is called once in each trial, and the number of the call for a module (probe "build").
"""

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch

from .observe import Observation, decode, tensors
from .probes import Inputs
from .spec import Item

LARGE = 80.0  # exp of more overflows in float32
Case = tuple[int, int | None]
Facts = dict[str, str]  # {"mask": "on inputs without a mask", "B": "on inputs with B = 1", ...}


@dataclass(frozen=True)
class Subset:
    """within, beyond: "on inputs without a mask", "on inputs with a mask".  cases: those within."""

    within: str
    beyond: str
    cases: frozenset[Case]


def subsets(item: Item, inputs: list[Inputs],
            expected: list[Observation]) -> tuple[list[Subset], list[Case]]:
    """The subsets of `inputs` and all their cases: ([Subset, ...], cases), the largest subset first.

    expected: what was observed of the reference, which gives the sizes their letters.
    """
    facts: dict[Case, Facts] = {}
    for number, (trial, right) in enumerate(zip(inputs, expected, strict=True)):
        facts |= _facts(item, number, trial, right)
    candidates = []
    for key in dict.fromkeys(key for one in facts.values() for key in one):
        values = sorted({one[key] for one in facts.values() if key in one})
        for value in values:
            others = [other for other in values if other != value]
            cases = frozenset(case for case, one in facts.items() if one.get(key) == value)
            candidates.append(Subset(value, others[0] if len(others) == 1 else "on all other inputs", cases))
    proper = [subset for subset in candidates if len(subset.cases) < len(facts)]
    return sorted(proper, key=lambda subset: -len(subset.cases)), list(facts)


def _facts(item: Item, number: int, trial: Inputs, right: Observation) -> dict[Case, Facts]:
    """The facts about each case of one trial."""
    results = None if right["error"] else decode(right["output"])
    if item.probe != "build":
        plain = inspect.signature(item.reference).parameters
        sizes = {} if results is None else _sizes(item.returns, results)
        return {(number, None): {**_arguments(plain, trial), **_counted(sizes), **_whole(trial)}}
    facts: dict[Case, Facts] = {}
    forward = cast(type[torch.nn.Module], item.reference).forward
    parameters = dict(list(inspect.signature(forward).parameters.items())[1:])  # without self
    for entry, (mode, values) in enumerate(trial["calls"]):
        arguments = dict(zip(parameters, values, strict=False))
        sizes = _sizes(item.returns[entry:entry + 1], results[entry]) if results else {}
        facts[number, entry] = {**_arguments(parameters, arguments), **_counted(sizes),
                                **_whole({**trial["state"], **arguments}),
                                "mode": "in training mode" if mode == "train" else "in eval mode"}
    return facts


def _arguments(parameters: Mapping[str, inspect.Parameter], arguments: Inputs) -> Facts:
    """What the arguments say: whether one that may be None is given, and which word is chosen."""
    facts = {}
    for name, parameter in parameters.items():
        value = arguments.get(name)
        what = "a mask" if name == "mask" else name
        if parameter.default is None:
            facts[name] = f"on inputs {'without' if value is None else 'with'} {what}"
        if isinstance(value, str):
            facts[name] = f"on inputs with {name} = {value!r}"
    return facts


def _sizes(returns: tuple[str, ...], results: Any) -> dict[str, int]:
    """{"B": 2, "n": 3}: the sizes of the right results by the letters in `returns`."""
    sizes: dict[str, int] = {}
    results = list(results) if len(returns) > 1 else [results]
    for names, result in zip(returns, results, strict=False):
        for letters, tensor in zip(re.findall(r"\(([^()]*)\)", names), tensors(result), strict=False):
            pairs = zip(reversed(letters.split(", ")), reversed(tensor.shape), strict=False)
            sizes |= {letter: size for letter, size in pairs if letter.isidentifier()}
    return sizes


def _counted(sizes: dict[str, int]) -> Facts:
    """What the sizes say: whether the batch holds one sentence only, whether n is m."""
    facts = {"B": f"on inputs with B {'= 1' if sizes['B'] == 1 else '> 1'}"} if "B" in sizes else {}
    if "n" in sizes and "m" in sizes:
        facts["n and m"] = f"on inputs with n {'=' if sizes['n'] == sizes['m'] else '≠'} m"
    return facts


def _whole(values: Inputs) -> Facts:
    """What all tensors together say: whether their sizes are equal, whether a number in them is large."""
    matrices = [tensor for tensor in tensors(values) if tensor.dim() > 1]
    sizes = {size for tensor in matrices for size in tensor.shape}
    large = any(tensor.is_floating_point() and bool((tensor.abs() > LARGE).any()) for tensor in matrices)
    return {"sizes": f"on inputs with sizes that {'differ' if len(sizes) > 1 else 'are equal'}",
            "large": f"on inputs with {'large' if large else 'small'} numbers"} if matrices else {}

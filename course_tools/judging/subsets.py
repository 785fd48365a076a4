"""Well-defined parts of an item's inputs, derived from the inputs in the same way for all items: those
without a mask, those with B = 1, the calls in eval mode ...

A case is one call of an answer: (number of the trial, entry of its output), where the entry is None for
an answer that is called once in each trial, and the number of the call for a module (probe "build").
"""

import inspect
import re
from dataclasses import dataclass

from .observe import decode, tensors

LARGE = 80.0  # exp of more overflows in float32


@dataclass(frozen=True)
class Part:
    """within, beyond: "on inputs without a mask", "on inputs with a mask".  cases: those within."""

    within: str
    beyond: str
    cases: frozenset


def parts(item, inputs, expected):
    """The parts of `inputs` and all their cases: ([Part, ...], cases), the largest part first.

    expected: what was observed of the reference, which gives the sizes their letters.
    """
    facts = {case: found for number, (trial, right) in enumerate(zip(inputs, expected, strict=True))
             for case, found in _facts(item, number, trial, right).items()}
    found = []
    for key in dict.fromkeys(key for one in facts.values() for key in one):
        values = sorted({one[key] for one in facts.values() if key in one})
        for value in values:
            others = [other for other in values if other != value]
            cases = frozenset(case for case, one in facts.items() if one.get(key) == value)
            found.append(Part(value, others[0] if len(others) == 1 else "on all other inputs", cases))
    found = [part for part in found if len(part.cases) < len(facts)]
    return sorted(found, key=lambda part: -len(part.cases)), list(facts)


def _facts(item, number, trial, right):
    """{case: {"mask": "on inputs without a mask", "B": "on inputs with B = 1", ...}} of one trial."""
    results = None if right["error"] else decode(right["output"])
    if item.probe != "build":
        names = inspect.signature(item.reference).parameters
        sizes = {} if results is None else _sizes(item.returns, results)
        return {(number, None): {**_arguments(names, trial), **_counted(sizes), **_whole(trial)}}
    found = {}
    names = list(inspect.signature(item.reference.forward).parameters.values())[1:]
    for entry, (mode, arguments) in enumerate(trial["calls"]):
        given = dict(zip([name.name for name in names], arguments, strict=False))
        sizes = _sizes(item.returns[entry:entry + 1], results[entry]) if results else {}
        found[number, entry] = {**_arguments({name.name: name for name in names}, given), **_counted(sizes),
                                **_whole({**trial["state"], **given}),
                                "mode": "in training mode" if mode == "train" else "in eval mode"}
    return found


def _arguments(names, given):
    """What the arguments say: whether one that may be None is given, and which word is chosen."""
    facts = {}
    for name, parameter in names.items():
        value = given.get(name)
        what = "a mask" if name == "mask" else name
        if parameter.default is None:
            facts[name] = f"on inputs {'without' if value is None else 'with'} {what}"
        if isinstance(value, str):
            facts[name] = f"on inputs with {name} = {value!r}"
    return facts


def _sizes(returns, results):
    """{"B": 2, "n": 3}: the sizes of the right results by the letters in `returns`."""
    found = {}
    results = list(results) if len(returns) > 1 else [results]
    for names, result in zip(returns, results, strict=False):
        for letters, tensor in zip(re.findall(r"\(([^()]*)\)", names), tensors(result), strict=False):
            pairs = zip(reversed(letters.split(", ")), reversed(tensor.shape), strict=False)
            found |= {letter: size for letter, size in pairs if letter.isidentifier()}
    return found


def _counted(sizes):
    """What the sizes say: whether the batch holds one sentence only, whether n is m."""
    facts = {"B": f"on inputs with B {'= 1' if sizes['B'] == 1 else '> 1'}"} if "B" in sizes else {}
    if "n" in sizes and "m" in sizes:
        facts["n and m"] = f"on inputs with n {'=' if sizes['n'] == sizes['m'] else '≠'} m"
    return facts


def _whole(given):
    """What all tensors together say: whether their sizes are equal, whether a number in them is large."""
    found = [tensor for tensor in tensors(given) if tensor.dim() > 1]
    sizes = {size for tensor in found for size in tensor.shape}
    large = any(tensor.is_floating_point() and bool((tensor.abs() > LARGE).any()) for tensor in found)
    return {"sizes": f"on inputs with sizes that {'differ' if len(sizes) > 1 else 'are equal'}",
            "large": f"on inputs with {'large' if large else 'small'} numbers"} if found else {}

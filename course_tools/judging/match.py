"""Find the named mistake that does the same as an answer, on all inputs or on a well-defined subset."""

import functools
from collections.abc import Callable, Iterable
from typing import cast

from .describe import same
from .observe import Encoded, Observation, Observe, decode
from .probes import Inputs
from .spec import Item, Mistake
from .subsets import Case, Subset, subsets

ENOUGH = 2  # different wrong results on a subset of inputs; one could agree by chance, for example at B = 1
SameAs = Callable[[str, Iterable[Case], list[Observation]], bool]


def same_result(seen: Observation, other: Observation, entry: int | None = None) -> bool:
    """The same output and the same arguments afterwards, or the same kind of error.

    entry: compare only this entry of the output, the result of one of several calls.
    """
    if seen["error"] or other["error"]:
        return bool(seen["error"] and other["error"] and seen["error"]["type"] == other["error"]["type"])
    if entry is None:
        return same(decode(seen["output"]), decode(other["output"])) and same(
            decode(seen["inputs"]), decode(other["inputs"]))
    return same(*(decode(_output(one, entry)) for one in (seen, other)))


def _output(seen: Observation, entry: int | None) -> Encoded:
    """What was returned, or what one of several calls returned, as it was recorded."""
    if entry is None:
        return seen["output"]
    calls = cast(dict[str, list[Encoded]], seen["output"])
    return calls["list"][entry]


def named_mistake(item: Item, inputs: list[Inputs], observations: list[Observation], wrong: list[int],
                  observe: Observe) -> str | None:
    """The first mistake that did the same in every trial, at least once with a result and not an error.  If
    the answer is right wherever it gives a result, the errors must be the same, message included."""
    return next((name for name, mistake in item.mistakes.items()
                 if did_the_same(item, mistake, inputs, observations, wrong, observe)), None)


def did_the_same(item: Item, mistake: Mistake, inputs: list[Inputs], observations: list[Observation],
                 wrong: list[int], observe: Observe) -> bool:
    """Whether a mistake did the same as an answer, in the sense of `named_mistake`."""
    by_mistake = _while_the_same(item, mistake, inputs, observations, observe)
    if by_mistake is None:
        return False
    raised = [number for number in wrong if observations[number]["error"]]
    return len(raised) < len(wrong) or all(_same_error(observations[one], by_mistake[one]) for one in raised)


def _while_the_same(item: Item, mistake: Mistake, inputs: list[Inputs], observations: list[Observation],
                    observe: Observe) -> list[Observation] | None:
    """What the mistake does with each input; None as soon as it differs from what the answer did."""
    by_mistake = []
    for trial, seen in zip(inputs, observations, strict=True):
        by_mistake.append(observe(mistake.answer, trial, item.probe, gradients=False))
        if not same_result(seen, by_mistake[-1]):
            return None
    return by_mistake


def _same_error(seen: Observation, other: Observation) -> bool:
    """Whether both raised errors of the same type with the same message."""
    left, right = seen["error"], other["error"]
    return (left is not None and right is not None
            and (left["type"], left["message"]) == (right["type"], right["message"]))


def named_on_a_subset(item: Item, inputs: list[Inputs], observations: list[Observation],
                      expected: list[Observation], observe: Observe) -> tuple[str | None, str]:
    """(name, what restricts it) of the one mistake that did the same on all of a well-defined subset of the
    inputs, with at least two results of its own, in two trials; (None, "") if there is no such subset.

    Where several mistakes did the same there, only one of them that is right on all others can be named:
    anything else would be a guess.
    """
    inputs, observations, expected = inputs[:-1], observations[:-1], expected[:-1]  # the last is the first
    candidates, cases = subsets(item, inputs, expected)

    @functools.cache
    def by_mistake(name: str, number: int) -> Observation:
        return observe(item.mistakes[name].answer, inputs[number], item.probe, gradients=False)

    def same_as(name: str, cases: Iterable[Case], others: list[Observation]) -> bool:
        """Whether a mistake gives the same as these others in all of these cases."""
        return all(same_result(others[number], by_mistake(name, number), entry) for number, entry in cases)

    right = {case for case in cases if same_result(observations[case[0]], expected[case[0]], case[1])}
    wrong = {case for case in cases if case not in right and not observations[case[0]]["error"]}
    for subset in candidates:
        if _different_results(subset.cases & wrong, observations) < ENOUGH:
            continue
        within = sorted(subset.cases, key=lambda case: (case not in wrong, case[0], case[1] or 0))
        beyond = set(cases) - subset.cases
        name = _only_one(item, same_as, within, beyond, observations, expected)
        if name:
            return name, _restriction(subset, right_beyond=beyond <= right)
    return None, ""


def _different_results(cases: Iterable[Case], observations: list[Observation]) -> int:
    """How many results an answer gives, in how many trials at most: equal ones in a trial count once."""
    results = {number: str(_output(observations[number], entry)) for number, entry in cases}
    return len(set(results.values()))


def _only_one(item: Item, same_as: SameAs, within: list[Case], beyond: set[Case],
              observations: list[Observation], expected: list[Observation]) -> str | None:
    """The one mistake that did the same as an answer in the cases `within`; of several, the one that is right
    in those `beyond`."""
    names = [name for name in item.mistakes if same_as(name, within, observations)]
    if len(names) > 1:
        names = [name for name in names if same_as(name, beyond, expected)]
    return names[0] if len(names) == 1 else None


def _restriction(subset: Subset, right_beyond: bool) -> str:
    """The sentence that follows a diagnosis which holds on a subset."""
    others = "they are right" if right_beyond else "something else is wrong too"
    return (f"\n    (Your results match this mistake exactly {subset.within}. "
            f"{subset.beyond[0].upper() + subset.beyond[1:]} {others}.)")

"""Find the named mistake that does the same as an answer, on all inputs or on a well-defined part of them."""

from .describe import same
from .observe import decode
from .subsets import parts

ENOUGH = 2  # different wrong results on a part of the inputs; one could agree by chance, for example at B = 1


def same_result(seen, other, entry=None):
    """The same output and the same arguments afterwards, or the same kind of error.

    entry: compare only this entry of the output, the result of one of several calls.
    """
    if seen["error"] or other["error"]:
        return bool(seen["error"] and other["error"] and seen["error"]["type"] == other["error"]["type"])
    if entry is None:
        return same(decode(seen["output"]), decode(other["output"])) and same(
            decode(seen["inputs"]), decode(other["inputs"]))
    return same(*(decode(_output(one, entry)) for one in (seen, other)))


def _output(seen, entry):
    """What was returned, or what one of several calls returned, as it was recorded."""
    return seen["output"] if entry is None else seen["output"]["list"][entry]


def named_mistake(item, inputs, observations, wrong, observe):
    """The first mistake that did the same in every trial, at least once with a result and not an error.  If
    the answer is right wherever it gives a result, the errors must be the same, message included."""
    return next((name for name, mistake in item.mistakes.items()
                 if did_the_same(item, mistake, inputs, observations, wrong, observe)), None)


def did_the_same(item, mistake, inputs, observations, wrong, observe):
    """Whether a mistake did the same as an answer, in the sense of `named_mistake`."""
    found = _while_the_same(item, mistake, inputs, observations, observe)
    if found is None:
        return False
    raised = [number for number in wrong if observations[number]["error"]]
    return len(raised) < len(wrong) or all(_same_error(observations[one], found[one]) for one in raised)


def _while_the_same(item, mistake, inputs, observations, observe):
    """What the mistake does with each input; None as soon as it differs from what the answer did."""
    found = []
    for trial, seen in zip(inputs, observations, strict=True):
        found.append(observe(mistake.answer, trial, item.probe, gradients=False))
        if not same_result(seen, found[-1]):
            return None
    return found


def _same_error(seen, other):
    """Whether both raised errors of the same type with the same message."""
    return bool(seen["error"] and other["error"]) and all(
        seen["error"][part] == other["error"][part] for part in ("type", "message"))


def named_on_a_part(item, inputs, observations, expected, observe):
    """(name, what restricts it) of the one mistake that did the same on all of a well-defined part of the
    inputs, with at least two results of its own, in two trials; (None, "") if there is no such part.

    Where several mistakes did the same there, only one of them that is right on all others can be named:
    anything else would be a guess.
    """
    inputs, observations, expected = inputs[:-1], observations[:-1], expected[:-1]  # the last is the first
    found, cases = parts(item, inputs, expected)
    tried = {}

    def agree(name, case, others):
        """Whether a mistake, or the reference, gives the same as these others in one case."""
        number, entry = case
        if name and (name, number) not in tried:
            tried[name, number] = observe(item.mistakes[name].answer, inputs[number], item.probe,
                                          gradients=False)
        return same_result(others[number], tried[name, number] if name else expected[number], entry)

    right = {case for case in cases if agree(None, case, observations)}
    wrong = {case for case in cases if case not in right and not observations[case[0]]["error"]}
    for part in found:
        results = {number: str(_output(observations[number], entry)) for number, entry in part.cases & wrong}
        if len(set(results.values())) < ENOUGH:
            continue
        order = sorted(part.cases, key=lambda case: (case not in wrong, case[0], case[1] or 0))
        beyond = set(cases) - part.cases
        names = [name for name in item.mistakes if all(agree(name, case, observations) for case in order)]
        if len(names) > 1:
            names = [name for name in names if all(agree(name, case, expected) for case in beyond)]
        if len(names) == 1:
            others = "they are right" if beyond <= right else "something else is wrong too"
            return names[0], (f"\n    (Your results match this mistake exactly {part.within}. "
                              f"{part.beyond[0].upper() + part.beyond[1:]} {others}.)")
    return None, ""

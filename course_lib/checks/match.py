"""Which named mistake did the same as an answer: on all inputs, or on a well-defined part of them."""

from .describe import same
from .observe import decode
from .parts import parts

ENOUGH = 2  # different wrong results on a part of the inputs: one alone may agree by chance, at B = 1 say


def same_result(seen, other, entry=None):
    """The same output and the same arguments afterwards, or the same kind of error.

    entry: compare only this entry of the output, what one call of several returned.
    """
    if seen["error"] or other["error"]:
        return bool(seen["error"] and other["error"] and seen["error"]["type"] == other["error"]["type"])
    if entry is None:
        return same(decode(seen["output"]), decode(other["output"])) and same(
            decode(seen["inputs"]), decode(other["inputs"]))
    return same(*(decode(_output(one, entry)) for one in (seen, other)))


def _output(seen, entry):
    """What was returned, or by one call of several; as it was written down."""
    return seen["output"] if entry is None else seen["output"]["list"][entry]


def named_mistake(item, inputs, observations, wrong, observe):
    """The first mistake that did the same in every trial, at least once with a result of its own; or, if the
    answer is right wherever it gives a result, with the very same errors."""
    for name, mistake in item.mistakes.items():
        found = _while_the_same(item, mistake, inputs, observations, observe)
        if found is None:
            continue
        raised = [number for number in wrong if observations[number]["error"]]
        if len(raised) < len(wrong) or all(_same_error(observations[one], found[one]) for one in raised):
            return name
    return None


def _while_the_same(item, mistake, inputs, observations, observe):
    """What the mistake does with each input; None as soon as it does something else than the answer did."""
    found = []
    for trial, seen in zip(inputs, observations, strict=True):
        found.append(observe(mistake.answer, trial, item.probe, gradients=False))
        if not same_result(seen, found[-1]):
            return None
    return found


def _same_error(seen, other):
    """Both raised, the same type with the same message."""
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
    told = {case for case in cases if case not in right and not observations[case[0]]["error"]}
    for part in found:
        results = {number: str(_output(observations[number], entry)) for number, entry in part.cases & told}
        if len(set(results.values())) < ENOUGH:
            continue
        order = sorted(part.cases, key=lambda case: (case not in told, case[0], case[1] or 0))
        beyond = set(cases) - part.cases
        names = [name for name in item.mistakes if all(agree(name, case, observations) for case in order)]
        if len(names) > 1:
            names = [name for name in names if all(agree(name, case, expected) for case in beyond)]
        if len(names) == 1:
            others = "it is right" if beyond <= right else "something else differs, too"
            return names[0], f"\n    (Your result is exactly that {part.within}; {part.beyond} {others}.)"
    return None, ""

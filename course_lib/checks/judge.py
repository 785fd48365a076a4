"""From what an answer did to a verdict.  Runs where the references are: outside the learner's kernel
when a grade depends on it.

A result is compared with the right one, then with every named mistake's, and only then described:
a diagnosis is a match, never a guess.  Inputs in float64 decide about a remark and nothing else.
"""

from dataclasses import dataclass
from itertools import compress

from .describe import describe, same
from .observe import decode, encode, in_float64, lent_calls, observe
from .parts import parts

ENOUGH = 2  # different wrong results on a part of the inputs: one alone may agree by chance, at B = 1 say
FLOAT64 = ("float64 inputs would not work ({}). Give new tensors the dtype of the inputs, for instance "
           "torch.zeros(n, dtype=x.dtype).")


@dataclass
class Verdict:
    """status: passed, wrong, error, missing or free_call.  mistake: its name, if it has one.  remark: what
    could be better in an answer that passes, which its message tells as well.  lent: the references that it
    called in place of earlier answers.
    """

    status: str
    message: str
    mistake: str | None = None
    remark: str | None = None
    lent: tuple = ()

    @property
    def passed(self):
        return self.status == "passed"


def examine(item, answer, seed=0):
    """Observe and judge in one process: what the check cell of an exercise does."""
    inputs = item.inputs(seed)
    return judge(item, inputs, [observe(answer, trial, item.probe, item.gradients) for trial in inputs])


def judge(item, inputs, observations, observe=observe):
    """The verdict on what an answer did with `inputs`: one observation of `observe` for each trial.

    observe: observes the reference and the mistakes; the grader gives one that remembers.
    """
    lent = tuple(name for name in item.uses if name in lent_calls(observations))
    if item.view:
        observe = _viewed_by(item, observe)
        observations = [_view(item, trial, seen) for trial, seen in zip(inputs, observations, strict=True)]
    verdict = _not_tried(item, observations)
    if verdict is None:
        double = [in_float64(trial) for trial in inputs]
        single = [not one for one in double]
        verdict = _compared(item, *(list(compress(all_, single)) for all_ in (inputs, observations)), observe)
        if verdict.passed and any(double):
            verdict.remark = _remark(item, *(list(compress(all_, double)) for all_ in (inputs, observations)),
                                     observe)
            verdict.message += f"\n    Remark: {verdict.remark}" if verdict.remark else ""
    verdict.lent = lent
    return verdict


def _not_tried(item, observations):
    """The verdict on an empty answer, or on one that a library gave; None for all others."""
    if any(_is_stub(seen["error"]) for seen in observations):
        return Verdict("missing", "not answered yet: the cell still raises NotImplementedError.")
    given = sorted({name for seen in observations for name in seen["calls"]} & set(item.free))
    if given:
        return Verdict("free_call", f"{', '.join(given)} is the answer itself and earns nothing here: "
                                    "write the steps out.")
    return None


def _compared(item, inputs, observations, observe):
    """The verdict on an answer, from inputs in float32 alone."""
    expected = [observe(item.reference, trial, item.probe, item.gradients) for trial in inputs]
    wrong = _wrong(observations, expected)
    if wrong:
        name, where = (_named_mistake(item, inputs, observations, wrong, observe), "")
        if not name:
            name, where = _named_on_a_part(item, inputs, observations, expected, observe)
        if name:
            return Verdict("wrong", item.mistakes[name].sentence + where, name)
    message = describe(item, inputs, observations, expected, wrong)
    if message:
        return Verdict("error" if wrong and observations[wrong[0]]["error"] else "wrong", message)
    return Verdict("passed", f"right on {len(inputs) - 1} inputs.")


def _remark(item, inputs, observations, observe):
    """What to say of an answer that is right on float32 inputs and not on these in float64, or None."""
    expected = [observe(item.reference, trial, item.probe, item.gradients) for trial in inputs]
    message = describe(item, inputs, observations, expected, _wrong(observations, expected), repeats=False)
    return message and FLOAT64.format(message.split("\n")[0].rstrip("."))


def _wrong(observations, expected):
    return [number for number, (seen, right) in enumerate(zip(observations, expected, strict=True))
            if not _same_result(seen, right)]


def _is_stub(error):
    """torch raises NotImplementedError, too: '"softmax" not implemented for \'Long\''."""
    return (bool(error) and error["type"] == "NotImplementedError"
            and "not implemented for" not in error["message"])


def _view(item, trial, seen):
    """What was seen, with the item's view in the place of the output."""
    return seen if seen["error"] else {**seen, "output": encode(item.view(trial, decode(seen["output"])))}


def _viewed_by(item, observe):
    return lambda answer, trial, *how, **more: _view(item, trial, observe(answer, trial, *how, **more))


def _same_result(seen, other, entry=None):
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


def _named_mistake(item, inputs, observations, wrong, observe):
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
        if not _same_result(seen, found[-1]):
            return None
    return found


def _same_error(seen, other):
    """Both raised, the same type with the same message."""
    return bool(seen["error"] and other["error"]) and all(
        seen["error"][part] == other["error"][part] for part in ("type", "message"))


def _named_on_a_part(item, inputs, observations, expected, observe):
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
        return _same_result(others[number], tried[name, number] if name else expected[number], entry)

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

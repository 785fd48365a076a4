"""Turn what an answer did into a verdict.  This runs where the references are: outside the learner's kernel
when a grade depends on it.

A result is compared with the right one, then with those of all named mistakes, and only then described:
a diagnosis is a match, never a guess.  Inputs in float64 affect only the remark.
"""

from dataclasses import dataclass
from itertools import compress

from .describe import describe
from .match import did_the_same, named_mistake, named_on_a_part, same_result
from .observe import decode, encode, in_float64, observe, substituted_calls

PLANTED = "planted_bug"  # the name of the bug in the code of a debug item, which is not told
FLOAT64 = ("This would fail with float64 inputs. {}. Give new tensors the dtype of the inputs, for instance "
           "torch.zeros(n, dtype=x.dtype).")


@dataclass
class Verdict:
    """status: passed, wrong, error, missing or free_call.  mistake: its name, if it has one.  remark: what
    could be better in an answer that passes, which its message tells as well.  substituted: the references
    that it called in place of earlier answers.
    """

    status: str
    message: str
    mistake: str | None = None
    remark: str | None = None
    substituted: tuple = ()

    @property
    def passed(self):
        return self.status == "passed"


def examine(item, answer, seed=0):
    """Observe and judge in one process: what the check cell of an exercise does."""
    inputs = item.inputs(seed)
    return judge(item, inputs, [observe(answer, trial, item.probe, item.gradients) for trial in inputs])


def judge(item, inputs, observations, observe=None):
    """The verdict on what an answer did with `inputs`: one observation of `observe` for each trial.

    observe: observes the reference and the mistakes, like `viewed`; the grader gives one that remembers.
    """
    substituted = tuple(name for name in item.uses if name in substituted_calls(observations))
    observe = observe or viewed(item)
    if item.view:
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
    verdict.substituted = substituted
    return verdict


def viewed(item, observe=observe):
    """`observe` for an item: if it has a view, this stands in the place of the output."""
    if not item.view:
        return observe
    return lambda answer, trial, *how, **more: _view(item, trial, observe(answer, trial, *how, **more))


def _not_tried(item, observations):
    """The verdict on an empty answer, or on one that a library gave; None for all others."""
    if any(_is_stub(seen["error"]) for seen in observations):
        return Verdict("missing", "not answered yet: the cell, or a function that it calls, still raises "
                                  "NotImplementedError.")
    given = sorted({name for seen in observations for name in seen["calls"]} & set(item.free))
    if given:
        return Verdict("free_call", f"{', '.join(given)} does the whole job, so it earns nothing here. "
                                    "Write out the steps yourself.")
    return None


def _compared(item, inputs, observations, observe):
    """The verdict on an answer, from inputs in float32 alone."""
    expected = [observe(item.reference, trial, item.probe, item.gradients) for trial in inputs]
    wrong = _wrong(observations, expected)
    if wrong and item.planted and did_the_same(item, item.planted, inputs, observations, wrong, observe):
        return Verdict("wrong", symptom(item, inputs), PLANTED)
    if wrong:
        name, where = (named_mistake(item, inputs, observations, wrong, observe), "")
        if not name:
            name, where = named_on_a_part(item, inputs, observations, expected, observe)
        if name:
            return Verdict("wrong", item.mistakes[name].sentence + where, name)
    message = describe(item, inputs, observations, expected, wrong)
    if message:
        return Verdict("error" if wrong and observations[wrong[0]]["error"] else "wrong", message)
    return Verdict("passed", f"right on {len(inputs) - 1} inputs.")


def symptom(item, inputs):
    """What the code of a debug item shows that it should not, with a number."""
    return item.planted.symptom(item.planted.answer, inputs[0])


def _remark(item, inputs, observations, observe):
    """What to say of an answer that is right on float32 inputs and not on these in float64, or None."""
    expected = [observe(item.reference, trial, item.probe, item.gradients) for trial in inputs]
    message = describe(item, inputs, observations, expected, _wrong(observations, expected), repeats=False)
    return message and FLOAT64.format(message.split("\n")[0].rstrip("."))


def _wrong(observations, expected):
    return [number for number, (seen, right) in enumerate(zip(observations, expected, strict=True))
            if not same_result(seen, right)]


def _is_stub(error):
    """torch raises NotImplementedError, too: '"softmax" not implemented for \'Long\'', and for a module
    without a method forward, such as nn.ModuleList."""
    return (bool(error) and error["type"] == "NotImplementedError"
            and "not implemented for" not in error["message"]
            and "is missing the required" not in error["message"])


def _view(item, trial, seen):
    """What was seen, with the item's view in the place of the output."""
    return seen if seen["error"] else {**seen, "output": encode(item.view(trial, decode(seen["output"])))}

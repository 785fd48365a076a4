"""From what an answer did to a verdict.  Runs where the references are: outside the learner's kernel
when a grade depends on it.

A result is compared with the right one, then with every named mistake's, and only then described:
a diagnosis is a match, never a guess.
"""

from dataclasses import dataclass

from .describe import describe, same
from .observe import decode, encode, observe


@dataclass
class Verdict:
    """status: passed, wrong, error, missing or free_call.  mistake: its name, if it has one."""

    status: str
    message: str
    mistake: str | None = None

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
    if item.view:
        observe = _viewed_by(item, observe)
        observations = [_view(item, trial, seen) for trial, seen in zip(inputs, observations, strict=True)]
    errors = [seen["error"] for seen in observations]
    if any(map(_is_stub, errors)):
        return Verdict("missing", "not answered yet: the cell still raises NotImplementedError.")
    given = sorted({name for seen in observations for name in seen["calls"]} & set(item.free))
    if given:
        return Verdict("free_call", f"{', '.join(given)} is the answer itself and earns nothing here: "
                                    "write the steps out.")
    expected = [observe(item.reference, trial, item.probe, item.gradients) for trial in inputs]
    wrong = [number for number, (seen, right) in enumerate(zip(observations, expected, strict=True))
             if not _same_result(seen, right)]
    if wrong:
        name = _named_mistake(item, inputs, observations, expected, observe)
        if name:
            return Verdict("wrong", item.mistakes[name].sentence, name)
    message = describe(item, inputs, observations, expected, wrong)
    if message:
        return Verdict("error" if wrong and errors[wrong[0]] else "wrong", message)
    return Verdict("passed", f"right on {len(inputs) - 1} inputs.")


def _is_stub(error):
    """torch raises NotImplementedError, too: '"softmax" not implemented for \'Long\''."""
    return (bool(error) and error["type"] == "NotImplementedError"
            and "not implemented for" not in error["message"])


def _view(item, trial, seen):
    """What was seen, with the item's view in the place of the output."""
    return seen if seen["error"] else {**seen, "output": encode(item.view(trial, decode(seen["output"])))}


def _viewed_by(item, observe):
    return lambda answer, trial, *how, **more: _view(item, trial, observe(answer, trial, *how, **more))


def _same_result(seen, other):
    """The same output and the same arguments afterwards, or the same kind of error."""
    if seen["error"] or other["error"]:
        return bool(seen["error"] and other["error"] and seen["error"]["type"] == other["error"]["type"])
    return same(decode(seen["output"]), decode(other["output"])) and same(
        decode(seen["inputs"]), decode(other["inputs"]))


def _named_mistake(item, inputs, observations, expected, observe):
    """The first mistake that did the same in every trial, at least once with a result of its own."""
    for name, mistake in item.mistakes.items():
        found = _while_the_same(item, mistake, inputs, observations, observe)
        if found is None:
            continue
        telling = [not seen["error"] and not _same_result(seen, right)
                   for seen, right in zip(observations, expected, strict=True)]
        if any(telling) or all(map(_same_error, observations, found)):
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

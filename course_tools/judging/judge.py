"""Turn what an answer did into a verdict.  This runs where the references are: outside the learner's kernel
when a grade depends on it.

A result is compared with the right one, then with those of all named mistakes, and only then described:
a diagnosis is a match, never a guess.  Inputs in float64 affect only the remark.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import torch

from .describe import describe
from .match import did_the_same, named_mistake, named_on_a_subset, same_result
from .observe import Observation, Observe, Raised, decode, encode, in_float64, observe, substituted_calls
from .probes import Answer, Inputs
from .spec import Item

PLANTED = "planted_bug"  # the name of the bug in the code of a debug item, which is not told
FLOAT64 = ("This would fail with float64 inputs. {}. Give new tensors the dtype of the inputs, for instance "
           "torch.zeros(n, dtype=x.dtype).")


@dataclass(frozen=True)
class Verdict:
    """What is said about an answer, and what it earns: all points of its item if it passed, otherwise none.

    status: passed, wrong, error, missing or free_call; in the grader also timeout or interrupted.
    mistake: its name, if it has one.  remark: what could be better in an answer that passes, which its
    message tells as well.  substituted: the references that it called in place of earlier answers.
    """

    status: str
    message: str
    mistake: str | None = None
    remark: str | None = None
    substituted: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    def adding(self, text: str) -> "Verdict":
        """The same with a longer message."""
        return replace(self, message=self.message + text)


def examine(item: Item, answer: Answer, seed: int = 0) -> Verdict:
    """Observe and judge in one process: what the check cell of an exercise does."""
    with _torch_as_imported():
        inputs = item.inputs(seed)
        return judge(item, inputs, [observe(answer, trial, item.probe, item.gradients) for trial in inputs])


@contextlib.contextmanager
def _torch_as_imported() -> Iterator[None]:
    """In the `with` statement torch's default dtype and device are those of the grader, whatever the notebook
    has set: inputs and references depend on them.  (`observe` sees to gradients.)"""
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    try:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        yield
    finally:
        torch.set_default_dtype(dtype)
        if device.type != "cpu":
            torch.set_default_device(device)


def judge(item: Item, inputs: list[Inputs], observations: list[Observation],
          observe: Observe | None = None) -> Verdict:
    """The verdict on what an answer did with `inputs`: one observation of `observe` for each trial.

    observe: observes the reference and the mistakes, like `viewed`; the grader gives one that remembers.
    """
    substituted = tuple(name for name in item.uses if name in substituted_calls(observations))
    observe = observe or viewed(item)
    if item.view:
        observations = [_view(item.view, trial, seen)
                        for trial, seen in zip(inputs, observations, strict=True)]
    verdict = _not_tried(item, observations)
    if verdict is None:
        double = [in_float64(trial) for trial in inputs]
        single = [not one for one in double]
        verdict = _compared(item, list(compress(inputs, single)), list(compress(observations, single)),
                            observe)
        if verdict.passed and any(double):
            remark = _remark(item, list(compress(inputs, double)), list(compress(observations, double)),
                             observe)
            if remark:
                verdict = replace(verdict.adding(f"\n    Remark: {remark}"), remark=remark)
    return replace(verdict, substituted=substituted)


def viewed(item: Item, observe: Observe = observe) -> Observe:
    """`observe` for an item: if it has a view, this stands in the place of the output."""
    view = item.view
    if not view:
        return observe
    return lambda answer, trial, *how, **more: _view(view, trial, observe(answer, trial, *how, **more))


def _not_tried(item: Item, observations: list[Observation]) -> Verdict | None:
    """The verdict on an empty answer, or on one that a library gave; None for all others."""
    if any(_is_stub(seen["error"]) for seen in observations):
        return Verdict("missing", "not answered yet: the cell, or a function that it calls, still raises "
                                  "NotImplementedError.")
    called = sorted({name for seen in observations for name in seen["calls"]} & set(item.free))
    if called:
        return Verdict("free_call", f"{', '.join(called)} does the whole job, so it earns nothing here. "
                                    "Write out the steps yourself.")
    return None


def _compared(item: Item, inputs: list[Inputs], observations: list[Observation],
              observe: Observe) -> Verdict:
    """The verdict on an answer, from inputs in float32 alone."""
    expected = [observe(item.reference, trial, item.probe, item.gradients) for trial in inputs]
    wrong = _wrong(observations, expected)
    if wrong and item.planted and did_the_same(item, item.planted, inputs, observations, wrong, observe):
        return Verdict("wrong", symptom(item, inputs), PLANTED)
    if wrong:
        name, where = named_mistake(item, inputs, observations, wrong, observe), ""
        if not name:
            name, where = named_on_a_subset(item, inputs, observations, expected, observe)
        if name:
            return Verdict("wrong", item.mistakes[name].sentence + where, name)
    message = describe(item, inputs, observations, expected, wrong)
    if message:
        return Verdict("error" if wrong and observations[wrong[0]]["error"] else "wrong", message)
    return Verdict("passed", f"right on {len(inputs) - 1} inputs.")


def symptom(item: Item, inputs: list[Inputs]) -> str:
    """What the code of a debug item shows that it should not, with a number."""
    assert item.planted is not None
    return item.planted.symptom(item.planted.answer, inputs[0])


def _remark(item: Item, inputs: list[Inputs], observations: list[Observation],
            observe: Observe) -> str | None:
    """What to say of an answer that is right on float32 inputs and not on these in float64, or None."""
    expected = [observe(item.reference, trial, item.probe, item.gradients) for trial in inputs]
    message = describe(item, inputs, observations, expected, _wrong(observations, expected), repeats=False)
    return message and FLOAT64.format(message.split("\n")[0].rstrip("."))


def _wrong(observations: list[Observation], expected: list[Observation]) -> list[int]:
    return [number for number, (seen, right) in enumerate(zip(observations, expected, strict=True))
            if not same_result(seen, right)]


def _is_stub(error: Raised | None) -> bool:
    """torch raises NotImplementedError, too: '"softmax" not implemented for \'Long\'', and for a module
    without a method forward, such as nn.ModuleList."""
    return (error is not None and error["type"] == "NotImplementedError"
            and "not implemented for" not in error["message"]
            and "is missing the required" not in error["message"])


def _view(view: Callable[[Inputs, Any], Any], trial: Inputs, seen: Observation) -> Observation:
    """What was seen, with an item's view in the place of the output."""
    return seen if seen["error"] else {**seen, "output": encode(view(trial, decode(seen["output"])))}

"""The definition of a graded item: its inputs, its right answer, and the wrong answers that have a name."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from .observe import in_float64
from .probes import Answer, Inputs

Property = Callable[[Inputs, Any], bool]  # maps (inputs, result) to whether it holds


@dataclass
class Mistake:
    """A wrong answer that people really give, and the sentence that explains it to them."""

    answer: Answer
    sentence: str


@dataclass
class Planted(Mistake):
    """The bug in the code that a debug item hands out; its sentence is for teachers only.

    symptom: maps (the code with the bug, usual inputs) to the sentence that the check shows, with a number.
    """

    symptom: Callable[[Answer, Inputs], str]


@dataclass
class Item:
    """One graded answer.

    name: the function or class the learner writes, and its cell's grade_id.
    points: 1 easy, 2 middle, 3 hard, 5 a capstone.
    trials: maps a torch.Generator to a list of inputs, each {"argument": value} in signature order.  How
        many there are does not depend on the generator, sizes and values do.  The first is a usual one.
    reference: the right answer.  It stands alone given torch, nn, F, math and the items in `uses`.
    returns: the results' names and shapes in letters, ("h_t (B, d_h)", ...), for messages.
    where: the heading in the lesson that explains it.
    uses: earlier items that an answer may call; a wrong one is replaced by its reference.
    handed: items of earlier exercises that the set-up cell takes by `earlier_answers`; an answer may, too.
    free: torch functions that would be the whole answer; calling one earns nothing.
    properties: (holds(inputs, output) -> bool, sentence) pairs, asked before values are compared.
    gradients: whether gradients must flow from the results to the inputs.
    view: maps (inputs, result) to what is compared, where the result itself is drawn at random.
    kind: "build", what the lesson shows; "transfer", what follows from it; "debug", code with a planted bug.
    """

    name: str
    points: int
    trials: Callable[[torch.Generator], list[Inputs]]
    reference: Answer
    returns: tuple[str, ...]
    where: str
    uses: tuple[str, ...] = ()
    handed: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    properties: tuple[tuple[Property, str], ...] = ()
    gradients: bool = True
    probe: str = "call"
    view: Callable[[Inputs, Any], Any] | None = None
    kind: str = "build"
    planted: Planted | None = None
    mistakes: dict[str, Mistake] = field(default_factory=dict)

    def mistake(self, sentence: str) -> Callable[[Answer], Answer]:
        """Decorator: a function that gives a wrong answer, named by its own name."""
        def register(answer: Answer) -> Answer:
            self.mistakes[answer.__name__] = Mistake(answer, sentence)
            return answer
        return register

    def plant(self, sentence: str, symptom: Callable[[Answer, Inputs], str]) -> Callable[[Answer], Answer]:
        """Decorator: the code with the bug that a debug item hands out."""
        def register(answer: Answer) -> Answer:
            self.kind, self.planted = "debug", Planted(answer, sentence, symptom)
            return answer
        return register

    def inputs(self, seed: int) -> list[Inputs]:
        """The inputs drawn from a seed: all of them in float32, then those in float64 that the trials hold.

        The first, which messages are about, is a usual one, and comes again at the end: an answer must
        repeat.  The order of the others is drawn from the seed as well.
        """
        generator = torch.Generator().manual_seed(seed)
        first, *others = self.trials(generator)
        order = torch.randperm(len(others), generator=generator).tolist()
        trials = [first, *(others[number] for number in order)]
        single = [in_float32(trial) if in_float64(trial) else trial for trial in trials]
        return [*single, *filter(in_float64, trials), single[0]]


def in_float32(value: Any) -> Any:
    """Nested values with every tensor of float64 as one of float32."""
    if isinstance(value, torch.Tensor):
        return value.float() if value.dtype == torch.float64 else value
    if isinstance(value, dict):
        return {key: in_float32(part) for key, part in value.items()}
    return type(value)(map(in_float32, value)) if isinstance(value, (list, tuple)) else value


def normal(generator: torch.Generator, *shape: int, scale: float = 1.0,
           dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """scale * N(0, 1) of that shape."""
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

"""What a graded item is: its inputs, its right answer, and the wrong answers that have a name."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch


@dataclass
class Mistake:
    """A wrong answer that people really give, and the sentence that tells them so."""

    answer: Callable
    sentence: str


@dataclass
class Item:
    """One graded answer.

    name: the function or class the learner writes, and its cell's grade_id.
    points: 1 easy, 2 middle, 3 hard, 5 a capstone.
    trials: maps a torch.Generator to a list of inputs, each {"argument": value} in signature order.
    reference: the right answer.  It stands alone given torch, nn, F, math and the items in `uses`.
    returns: the results' names and shapes in letters, ("h_t (B, d_h)", ...), for messages.
    where: the heading in the lesson that explains it.
    uses: earlier items that an answer may call; a wrong one is replaced by its reference.
    handed: items of earlier exercises that the set-up cell takes by `earlier_answers`; an answer may, too.
    free: torch functions that would be the whole answer; calling one earns nothing.
    properties: (holds(inputs, output) -> bool, sentence) pairs, asked before values are compared.
    gradients: whether gradients must flow from the results to the inputs.
    view: maps (inputs, result) to what is compared, where the result itself is drawn at random.
    """

    name: str
    points: int
    trials: Callable
    reference: Callable
    returns: tuple[str, ...]
    where: str
    uses: tuple[str, ...] = ()
    handed: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    properties: tuple = ()
    gradients: bool = True
    probe: str = "call"
    view: Callable | None = None
    mistakes: dict[str, Mistake] = field(default_factory=dict)

    def mistake(self, sentence):
        """Decorator: a function that gives a wrong answer, named by its own name."""
        def register(answer):
            self.mistakes[answer.__name__] = Mistake(answer, sentence)
            return answer
        return register

    def inputs(self, seed):
        """The inputs drawn from a seed.  The first comes again at the end: an answer must repeat."""
        trials = self.trials(torch.Generator().manual_seed(seed))
        return [*trials, trials[0]]


def normal(generator, *shape, scale=1.0, dtype=torch.float32):
    """scale * N(0, 1) of that shape."""
    return scale * torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

"""Draw sizes and numbers from a seed, so that every seed tests an answer with different inputs."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import torch

from .describe import same
from .probes import Answer, Inputs
from .spec import Item

ATTEMPTS = 200


def whole(generator: torch.Generator, low: int, high: int) -> int:
    """A whole number in range(low, high)."""
    return int(torch.randint(low, high, (), generator=generator))


def decimal(generator: torch.Generator, low: float, high: float) -> float:
    """A number between low and high, with two digits after the point."""
    return round(low + (high - low) * torch.rand((), generator=generator, dtype=torch.float64).item(), 2)


def different(generator: torch.Generator, count: int, low: int = 2, high: int = 8) -> list[int]:
    """`count` numbers of range(low, high), no two of them equal."""
    return [low + number for number in torch.randperm(high - low, generator=generator)[:count].tolist()]


def sizes(generator: torch.Generator, axes: int, low: int = 2, high: int = 8) -> list[list[int]]:
    """Four lists of sizes, batch first: all different, all different again, for a batch of one, all equal."""
    return [different(generator, axes, low, high), different(generator, axes, low, high),
            [1, *different(generator, axes - 1, low, high)], [whole(generator, max(low, 3), 6)] * axes]


def telling(item: Item, draw: Callable[[], list[Inputs]]) -> list[Inputs]:
    """Trials of draw(), drawn again until the right answer and all mistakes of `item` give different results.

    For answers that are quick to compute: each of them runs on every trial.
    """
    planted = [item.planted.answer] if item.planted else []
    answers = [item.reference, *planted, *(mistake.answer for mistake in item.mistakes.values())]
    for _ in range(ATTEMPTS):
        trials = draw()
        results = [[_result(answer, trial) for trial in trials] for answer in answers]
        if not any(same(left, right) for left, right in combinations(results, 2)):
            return trials
    raise RuntimeError(f"{item.name}: {ATTEMPTS} draws tell not all of its mistakes apart")


def _result(answer: Answer, trial: Inputs) -> Any:
    try:
        return answer(*trial.values())
    except Exception as problem:
        return type(problem).__name__

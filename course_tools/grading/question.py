"""What all submissions share: the inputs drawn for an item, and what the right answer and the named mistakes
do with them.
"""

import functools
import json

from ..judging.judge import viewed
from ..judging.observe import encode, observe


class Trials(list):
    """Inputs of an item; `json`: the same as text."""

    @functools.cached_property
    def json(self):
        return json.dumps([encode(trial) for trial in self])


class Question:
    """An item with inputs drawn from a seed.

    observe: `checks.observe.observe` for the course's own answers, which do the same every time.
    viewed: `checks.judge.viewed` for them.  Both remember what they have observed.
    """

    def __init__(self, item, seed):
        self.item, self.seed, self.trials = item, seed, Trials(item.inputs(seed))
        self.observe = _remembering(observe)
        self.viewed = _remembering(viewed(item, self.observe))


def _remembering(observe):
    seen = {}

    def remembered(answer, trial, probe="call", gradients=True):
        key = answer, id(trial), gradients
        if key not in seen:
            seen[key] = observe(answer, trial, probe, gradients)
        return seen[key]
    return remembered


_questions = {}  # the last Question of each item: a class is graded with one seed


def question_for(item, seed):
    """The Question for an item and a seed."""
    known = _questions.get(item.name)
    if known is None or known.item is not item or known.seed != seed:
        known = _questions[item.name] = Question(item, seed)
    return known

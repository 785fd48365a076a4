"""What all submissions share: the inputs drawn for an item, and what the right answer and the named mistakes
do with them.
"""

import functools
import json

from ..checks.observe import encode, observe


class Trials(list):
    """Inputs of an item; `json`: the same as text."""

    @functools.cached_property
    def json(self):
        return json.dumps([encode(trial) for trial in self])


class Question:
    """An item with inputs drawn from a seed; what the course's own answers do with them is cached."""

    def __init__(self, item, seed):
        self.item, self.seed, self.trials = item, seed, Trials(item.inputs(seed))
        self._seen = {}

    def observe(self, answer, trial, probe="call", gradients=True):
        """`checks.observe.observe` for one of the course's own answers, which does the same every time."""
        key = answer, id(trial), gradients
        if key not in self._seen:
            self._seen[key] = observe(answer, trial, probe, gradients)
        return self._seen[key]


_questions = {}  # the last Question of each item: a class is graded with one seed


def question_for(item, seed):
    """The Question for an item and a seed."""
    known = _questions.get(item.name)
    if known is None or known.item is not item or known.seed != seed:
        known = _questions[item.name] = Question(item, seed)
    return known

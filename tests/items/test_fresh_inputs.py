"""Every seed asks something else, and each tells all mistakes apart: results that were learned by heart pass
with no other seed."""

import itertools
import json

import pytest
import torch

from course_tools.grading.question import Question
from course_tools.items import registry
from course_tools.judging.describe import same
from course_tools.judging.judge import examine, judge
from course_tools.judging.observe import decode, encode, observe

ITEMS = {name: item for stem in registry.stems() for name, item in registry.items(stem).items()}
each_item = pytest.mark.parametrize("name", ITEMS)
# Asked with numbers: an answer could know all there is to ask.  They are quick enough for many seeds.
NUMBERS = (
    "receptive_field",
    "path_length",
    "path_counts",
    "causal_mask",
    "padding_mask",
    "sliding_window_mask",
    "packed_mask",
    "parameter_count",
    "alignment_error_rate",
    "positional_encoding",
    "shift_matrix",
    "warmup_rate",
    "bleu",
)


def seeds(name):
    return range(30 if name == "bleu" else 100 if name in NUMBERS else 4)


def text(trial):
    return json.dumps(encode(trial))


def shapes(trials):
    """What there is to see of inputs without their values."""
    return [
        {
            name: tuple(value.shape) if isinstance(value, torch.Tensor) else str(value)[:40]
            for name, value in trial.items()
            if name != "state"
        }
        for trial in trials
    ]


def in_float32(trial):
    return "torch.float64" not in text(trial)


def results(item, trials):
    return [decode(observe(item.reference, trial, item.probe, False)["output"]) for trial in trials]


@each_item
def test_two_seeds_ask_different_questions(name):
    item = ITEMS[name]
    asked = [item.inputs(seed) for seed in seeds(name)]
    for first, second in itertools.pairwise(asked):
        assert not {text(trial) for trial in second} <= {text(trial) for trial in first}
        assert shapes(first) != shapes(second)


@each_item
def test_a_seed_asks_the_same_every_time_and_all_ask_as_much(name):
    item = ITEMS[name]
    asked = [item.inputs(seed) for seed in seeds(name)]
    assert len({len(trials) for trials in asked}) == 1
    assert [text(trial) for trial in item.inputs(0)] == [text(trial) for trial in asked[0]]


@each_item
def test_the_results_of_one_seed_do_not_pass_with_another(name):
    """Looked up by the inputs where these are known, by the number of the call otherwise."""
    item = ITEMS[name]
    view = item.view or (lambda trial, output: output)
    asked = [[trial for trial in item.inputs(seed) if in_float32(trial)] for seed in seeds(name)]
    right = [results(item, trials) for trials in asked]
    for (known, outputs), (trials, expected) in itertools.pairwise(zip(asked, right, strict=True)):
        table = dict(zip(map(text, known), outputs, strict=True))
        replayed = [table.get(text(trial), output) for trial, output in zip(trials, outputs, strict=True)]
        assert not all(same(view(trial, one), view(trial, other))
                       for trial, one, other in zip(trials, replayed, expected, strict=True))


def learned(item, seed):
    """An answer that is a list of the results for a seed, given one after the other."""
    outputs = iter(results(item, item.inputs(seed)) * 2)
    return lambda *given, **named: next(outputs)


@pytest.mark.parametrize("name", NUMBERS)
def test_a_list_of_constants_is_refused(name):
    item = ITEMS[name]
    assert examine(item, learned(item, 0), 0).passed  # what was asked is what was learned
    for seed in range(1, 6):
        assert not examine(item, learned(item, 0), seed).passed


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
def test_all_of_many_seeds_tell_all_mistakes_apart(name):
    item = ITEMS[name]
    for seed in range(100, 150):
        asked = Question(item, seed)
        for mistake, known in item.mistakes.items():
            seen = [asked.observe(known.answer, trial, item.probe, item.gradients) for trial in asked.trials]
            assert judge(item, asked.trials, seen, asked.observe).mistake == mistake, seed

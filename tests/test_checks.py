"""The checks say the right thing of every answer: right, a named mistake, or wrong without a name."""

import functools
import importlib

import answers
import pytest

from course_lib import checks
from course_lib.checks.judge import judge
from course_lib.checks.observe import in_float64, observe
from course_lib.grading.question import Question

SEEDS = 5
ITEMS = [pytest.param(stem, item, id=f"{stem[:2]}-{name}")
         for stem in checks.stems() for name, item in checks.items(stem).items()]
seeds = pytest.mark.parametrize("seed", [0, *[pytest.param(seed, marks=pytest.mark.slow)
                                              for seed in range(1, SEEDS)]])


def unnamed(stem, item):
    """(right ones, wrong ones) of tests/answers/ for an item."""
    importlib.import_module(f"answers.lesson_{stem}")
    return answers.RIGHT[item.name], answers.WRONG[item.name]


@functools.lru_cache(maxsize=SEEDS)
def asked(name, seed):
    """What `examine` asks; the reference and the mistakes are observed once, as when a class is graded."""
    return Question(checks.find(name)[1], seed)


def examine(item, answer, seed):
    """As `judge.examine`."""
    question = asked(item.name, seed)
    seen = [observe(answer, trial, item.probe, item.gradients) for trial in question.trials]
    return judge(item, question.trials, seen, question.observe)


def number(answer, found):
    return f"answer {found.index(answer) + 1}, {getattr(answer, '__name__', answer)}"


def test_there_are_items():
    assert checks.stems()[0] == "01_long_term_dependency" and len(ITEMS) >= 6


@seeds
@pytest.mark.parametrize("stem, item", ITEMS)
def test_the_reference_passes(stem, item, seed):
    verdict = examine(item, item.reference, seed)
    assert verdict.passed and verdict.mistake is None, verdict


@seeds
@pytest.mark.parametrize("stem, item", ITEMS)
def test_every_named_mistake_is_rejected_under_its_own_name(stem, item, seed):
    assert len(item.mistakes) >= 4
    for name, mistake in item.mistakes.items():
        verdict = examine(item, mistake.answer, seed)
        assert (verdict.status, verdict.mistake, verdict.message) == ("wrong", name, mistake.sentence)


@seeds
@pytest.mark.parametrize("stem, item", ITEMS)
def test_a_right_answer_in_another_style_passes(stem, item, seed):
    found, _ = unnamed(stem, item)
    assert len(found) >= 3
    for answer in found:
        verdict = examine(item, answer, seed)
        assert verdict.passed, f"{number(answer, found)}: {verdict}"


@seeds
@pytest.mark.parametrize("stem, item", ITEMS)
def test_an_answer_that_fails_only_in_float64_passes_with_a_remark(stem, item, seed):
    found, _ = unnamed(stem, item)
    assert all(examine(item, answer, seed).remark is None for answer in found)
    for answer in answers.REMARKED.get(item.name, []):
        verdict = examine(item, answer, seed)
        assert verdict.passed and "float64" in verdict.remark and verdict.remark in verdict.message, verdict


@seeds
@pytest.mark.parametrize("stem, item", ITEMS)
def test_a_mistake_without_a_name_gets_none(stem, item, seed):
    _, found = unnamed(stem, item)
    assert len(found) >= 6
    for answer in found:
        verdict = examine(item, answer, seed)
        assert not verdict.passed and verdict.mistake is None, f"{number(answer, found)}: {verdict}"


@pytest.mark.parametrize("stem, item", ITEMS)
def test_an_item_says_what_it_must(stem, item):
    sentences = [mistake.sentence for mistake in item.mistakes.values()]
    assert len(set(sentences)) == len(sentences)
    assert all(sentence[-1] in ".!?" and len(sentence) < 250 for sentence in sentences)
    assert item.points in (1, 2, 3, 5) and item.returns and item.where
    trials = item.inputs(0)
    assert len(trials) >= 4 and trials[0] is trials[-1]
    double = [in_float64(trial) for trial in trials]
    assert double == sorted(double[:-1]) + [False] and sum(double) < len(double) / 2
    earlier = list(checks.items(stem))
    assert all(checks.find(used)[0] <= stem for used in item.uses)
    assert all(earlier.index(used) < earlier.index(item.name) for used in item.uses if used in earlier)


def test_no_name_is_used_twice():
    names = [item.name for stem in checks.stems() for item in checks.items(stem).values()]
    assert len(set(names)) == len(names)

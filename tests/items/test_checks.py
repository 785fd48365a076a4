"""The checks say the right thing of every answer: right, a named mistake, or wrong without a name."""

import ast
import functools
import importlib
import math
import re

import answers
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_tools import exercise
from course_tools.grading.question import Question
from course_tools.grading.reports import overview
from course_tools.items import registry
from course_tools.judging.judge import judge, symptom
from course_tools.judging.observe import in_float64, observe

for stem in registry.stems():
    importlib.import_module(f"answers.lesson_{stem}")    # they fill answers.RIGHT, REMARKED and WRONG

SEEDS = 5
ITEMS = [pytest.param(stem, item, id=f"{stem[:2]}-{name}", marks=pytest.mark.xdist_group(name))
         for stem in registry.stems() for name, item in registry.items(stem).items()]
THOROUGH = [pytest.mark.slow, pytest.mark.thorough]
seeds = pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), *[
    pytest.param(seed, marks=THOROUGH) for seed in range(2, SEEDS)]])


@functools.lru_cache(maxsize=SEEDS)
def asked(name, seed):
    """What `examine` asks; the reference and the mistakes are observed once, as when a class is graded.

    So all tests of an item go to one worker, one after another (`--dist loadgroup`).
    """
    return Question(registry.find(name)[1], seed)


def examine(item, answer, seed, observe=observe):
    """As `judge.examine`."""
    question = asked(item.name, seed)
    seen = [observe(answer, trial, item.probe, item.gradients) for trial in question.trials]
    return judge(item, question.trials, seen, question.viewed)


def number(answer, found):
    return f"answer {found.index(answer) + 1}, {getattr(answer, '__name__', answer)}"


def test_there_are_items():
    assert registry.stems()[0] == "01_long_term_dependency" and len(ITEMS) >= 6


@seeds
@pytest.mark.parametrize("stem, item", ITEMS)
def test_the_reference_passes(stem, item, seed):
    verdict = examine(item, item.reference, seed)
    assert verdict.passed and verdict.mistake is None, verdict


@seeds
@pytest.mark.parametrize("stem, item", ITEMS)
def test_every_named_mistake_is_rejected_under_its_own_name(stem, item, seed):
    """And does the same when it is observed again, which one seed shows."""
    assert len(item.mistakes) >= 4
    again = observe if seed == 0 else asked(item.name, seed).observe
    for name, mistake in item.mistakes.items():
        verdict = examine(item, mistake.answer, seed, again)
        assert (verdict.status, verdict.mistake, verdict.message) == ("wrong", name, mistake.sentence)


@seeds
@pytest.mark.parametrize("stem, item", ITEMS)
def test_a_right_answer_in_another_style_passes(stem, item, seed):
    found = answers.RIGHT[item.name]
    assert len(found) >= 3
    for answer in found:
        verdict = examine(item, answer, seed)
        assert verdict.passed and verdict.remark is None, f"{number(answer, found)}: {verdict}"


@seeds
@pytest.mark.parametrize("stem, item", [each for each in ITEMS if each.values[1].name in answers.REMARKED])
def test_an_answer_that_fails_only_in_float64_passes_with_a_remark(stem, item, seed):
    for answer in answers.REMARKED[item.name]:
        verdict = examine(item, answer, seed)
        assert verdict.passed and "float64" in verdict.remark and verdict.remark in verdict.message, verdict


@pytest.mark.parametrize("stem, item", [each for each in ITEMS if each.values[1].planted])
@seeds
def test_the_bug_of_a_debug_item_is_shown_by_its_symptom_and_not_named(stem, item, seed):
    cell, = [cell for cell in exercise.pristine(stem).cells if exercise.grade_id(cell) == item.name]
    handed_out = {"torch": torch, "nn": nn, "F": F, "math": math,
                  **{used: registry.find(used)[1].reference for used in (*item.uses, *item.handed)}}
    exec(cell.source, handed_out)
    for answer in (item.planted.answer, handed_out[item.name]):
        verdict = examine(item, answer, seed)
        assert (verdict.status, verdict.mistake) == ("wrong", overview.PLANTED), verdict
        assert re.search(r"\d", verdict.message) and item.planted.sentence not in verdict.message
        assert verdict.message == symptom(item, asked(item.name, seed).trials)


@seeds
@pytest.mark.parametrize("stem, item", ITEMS)
def test_a_mistake_without_a_name_gets_none(stem, item, seed):
    found = answers.WRONG[item.name]
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
    assert item.kind in ("build", "transfer", "debug") and (item.kind == "debug") == bool(item.planted)
    trials = item.inputs(0)
    assert len(trials) >= 4 and trials[0] is trials[-1]
    double = [in_float64(trial) for trial in trials]
    assert double == sorted(double[:-1]) + [False] and sum(double) < len(double) / 2
    earlier = list(registry.items(stem))
    assert all(registry.find(used)[0] <= stem for used in item.uses)
    assert all(earlier.index(used) < earlier.index(item.name) for used in item.uses if used in earlier)


def test_no_name_is_used_twice():
    names = [item.name for stem in registry.stems() for item in registry.items(stem).values()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("stem", registry.stems())
def test_no_helper_is_defined_twice(stem):
    """The second definition would silently change what the mistakes above it do."""
    body = ast.parse((registry.PACKAGE / f"lesson_{stem}.py").read_text(encoding="utf-8")).body
    names = [node.name for node in body if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    assert len(names) == len(set(names))

"""A mistake that is named on a subset of the inputs is really there, and none is named by chance."""

import random

import pytest
import torch

from course_lib.models.attention import attention
from course_tools.grading.question import Question
from course_tools.items import registry
from course_tools.judging.judge import examine, judge
from course_tools.judging.match import same_result
from course_tools.judging.observe import in_float64
from course_tools.judging.subsets import subsets

ITEMS = [pytest.param(item, id=f"{stem[:2]}-{name}")
         for stem in registry.stems() for name, item in registry.items(stem).items()]
# Mistakes that do the same on a subset of the inputs, so that one may be told for the other there.
ALIKE = {"causal_conv1d": [{"only_the_present", "along_the_batch"}],
         "DecoderBlock": [{"self_attention_unmasked", "both_masks_ignored"},
                          {"decoder_masks_inverted", "self_mask_inverted_in_decoder"},
                          {"keys_and_values_from_y_unmasked", "keys_and_values_from_y_with_self_mask"}],
         "attend_with_cache": [{"cache_not_grown", "cache_only_started"}]}
BY_WORD = {"path_length", "sublayer"}  # their mistakes differ by the word given, and for some do the same


@pytest.mark.slow
@pytest.mark.parametrize("item", ITEMS)
def test_a_mistake_that_has_no_name_gets_no_other(item):
    """Each named mistake in turn as if it were not known."""
    question = Question(item, 0)
    for name in list(item.mistakes):
        mistake = item.mistakes[name]
        seen = [question.observe(mistake.answer, trial, item.probe, item.gradients)
                for trial in question.trials]
        others = {key: other for key, other in item.mistakes.items() if key != name}
        known, item.mistakes = item.mistakes, others
        try:
            told = judge(item, question.trials, seen, question.viewed).mistake
        finally:
            item.mistakes = known
        assert told is None or item.name in BY_WORD or {name, told} in ALIKE.get(item.name, []), (name, told)


def mixed(one, other, inside, entries):
    """What was observed of one answer in the cases `inside`, and of another elsewhere."""
    if None in entries:
        return one if None in inside else other
    if one["error"] or other["error"]:
        return one if one["error"] else other
    chosen = [(one if entry in inside else other)["output"]["list"][entry] for entry in entries]
    return {**other, "output": {"list": [*chosen, *other["output"]["list"][len(entries):]]}}


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow), *[
    pytest.param(seed, marks=[pytest.mark.slow, pytest.mark.thorough]) for seed in range(2, 5)]])
@pytest.mark.parametrize("item", [one for one in ITEMS if one.values[0].name != "mask_tokens"])
def test_one_mistake_on_a_part_and_another_elsewhere_get_no_third_name(item, seed):
    question = Question(item, seed)
    single = [trial for trial in question.trials if not in_float64(trial)]
    expected = [question.observe(item.reference, trial, item.probe, item.gradients) for trial in single]
    candidates, cases = subsets(item, single[:-1], expected[:-1])
    draw = random.Random(seed)
    for subset in candidates:
        for _ in range(4):
            names = draw.sample(list(item.mistakes), 2)
            pair = [[question.observe(item.mistakes[name].answer, trial, item.probe, gradients=False)
                     for trial in single] for name in names]
            seen = [mixed(*both, {entry for at, entry in subset.cases if at == number},
                          [entry for at, entry in cases if at == number])
                    for number, both in enumerate(zip(pair[0][:-1], pair[1][:-1], strict=True))]
            told = judge(item, single, [*seen, seen[0]], question.viewed).mistake
            if told is None or told in names:
                continue
            third = [question.observe(item.mistakes[told].answer, trial, item.probe, gradients=False)
                     for trial in single]
            sides = zip(pair, (subset.cases, set(cases) - subset.cases), strict=True)
            assert any(all(same_result(third[at], one[at], entry) for at, entry in where)
                       for one, where in sides), (subset.within, names, told)


def test_the_message_says_on_which_part_and_what_is_true_of_the_others():
    def without_scale(mask_wrong):
        def answer(Q, K, V, mask=None):
            scores = Q @ K.transpose(-2, -1) / (1.0 if mask is None or mask_wrong else K.size(-1) ** 0.5)
            if mask is not None:
                scores = scores + mask if mask_wrong else scores.masked_fill(~mask, -torch.inf)
            return scores.softmax(-1) @ V, scores.softmax(-1)
        return answer
    item = registry.find("attention")[1]
    start = item.mistakes["no_scale"].sentence
    part = "\n    (Your results match this mistake exactly on inputs without a mask. "
    told = examine(item, without_scale(mask_wrong=True))
    assert told.mistake == "no_scale"
    assert told.message == f"{start}{part}On inputs with a mask something else is wrong too.)"
    told = examine(item, without_scale(mask_wrong=False))
    assert told.mistake == "no_scale"
    assert told.message == f"{start}{part}On inputs with a mask they are right.)"


def test_one_result_alone_names_nothing():
    """There is only one trial with B = 1, where this is what lacks the axis of the queries."""
    def answer(lengths, m):
        right = registry.find("padding_mask")[1].reference(lengths, m)
        return right[:, 0] if len(lengths) == 1 else right
    assert examine(registry.find("padding_mask")[1], answer).mistake is None


def test_subsets_come_from_the_inputs():
    def within(name):
        item = registry.find(name)[1]
        single = [trial for trial in item.inputs(0) if not in_float64(trial)][:-1]
        question = Question(item, 0)
        expected = [question.observe(item.reference, trial, item.probe, False) for trial in single]
        return {subset.within for subset in subsets(item, single, expected)[0]}
    assert {"on inputs without a mask", "on inputs with a mask"} <= within("attention")
    assert {"on inputs with n = m", "on inputs with n ≠ m"} <= within("attention")
    assert {"in training mode", "in eval mode"} <= within("BatchNorm")
    assert {"on inputs without self_mask", "on inputs with memory_mask"} <= within("DecoderBlock")
    assert {"on inputs with large numbers", "on inputs with small numbers"} <= within("softmax")
    assert {"on inputs with B = 1", "on inputs with sizes that are equal"} <= within("rnn_step")
    assert {"on inputs with order = 'pre'", "on inputs with order = 'post'"} <= within("sublayer")


def test_a_right_answer_is_never_compared_with_a_mistake():
    item = registry.find("attention")[1]
    question, asked = Question(item, 0), []

    def observe(answer, *how, **more):
        asked.append(answer)
        return question.observe(answer, *how, **more)
    seen = [question.observe(attention, trial) for trial in question.trials]
    assert judge(item, question.trials, seen, observe).passed and set(asked) == {item.reference}

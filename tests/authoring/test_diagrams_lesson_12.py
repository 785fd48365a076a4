"""The numbers and tokens in lesson 12's diagrams are those that the library gives."""

import math

import pytest
import torch

from course_lib.data.english_korean import text, translate
from course_lib.decoding import beam_search, greedy_decode
from course_tools.authoring.diagrams import lesson_12 as drawn

FIRST = {word: p for word, _, p, _, _ in drawn.TREE}
THEN = {(word,): {following: p for following, _, p, _ in after} for word, *_, after in drawn.TREE}
WORDS = ["<bos>", "<eos>", *FIRST, *(word for after in THEN.values() for word in after)]


def step(token, so_far):
    """A step of the tree that the picture shows; the state is the tokens so far."""
    so_far = (*so_far, WORDS[token])
    p = ({(): FIRST} | THEN).get(so_far[1:], {"<eos>": 1.0})
    return torch.tensor([p.get(word, 0.0) for word in WORDS]).log(), so_far


def test_the_beam():
    for p in (FIRST, *THEN.values()):
        assert sum(p.values()) == pytest.approx(1)
    best = [WORDS[token] for token in beam_search(step, (), 0, 1, beam=2, max_len=5)]
    greedy = [WORDS[token] for token in greedy_decode(step, (), 0, 1, max_len=5)]
    picture = drawn.beam()
    for words in (best, greedy):
        p = FIRST[words[0]] * THEN[words[0],][words[1]]
        score = math.log(p) / ((5 + 3) / 6) ** 0.6
        assert f"{' '.join(words)}:" in picture and f"score −{-score:.2f}" in picture
    assert f"takes {greedy[0]}, then {greedy[1]}: p = 0.22." in picture
    assert f"{' '.join(best)}:  −0.904 / 1.188 = −0.76, the best: returned" in picture


def test_the_sentence():
    pair = translate("they are cats")
    assert drawn.ENGLISH == list(pair.english) and drawn.KOREAN == list(pair.korean)
    assert [choices[0][0] for choices in drawn.STEPS] == [*pair.korean, "<eos>"]
    assert f"{' + '.join(pair.korean)} = {text(pair.korean)}" in drawn.decoding()


def test_the_likeliest_token_is_chosen():
    for choices in drawn.STEPS:
        chances = [p for _, p in choices]
        assert chances == sorted(chances, reverse=True) and sum(chances) < 1

"""Beam search: greedy at 1, exhaustive when wide, and the conventions of its docstring."""

import math
from itertools import product

import pytest
import torch

from course_lib.decoding import beam_search, greedy_decode

BOS, EOS, A, B = 1, 2, 3, 4


def tree(shares):
    """A step over written probabilities, {words so far: {token: p}}; what is not named is impossible."""
    def step(token, words):
        words = words + (token,)
        p = torch.zeros(5)
        for token, share in shares[words[1:]].items():
            p[token] = share
        return p.log(), words
    return step


def random_step(number, vocab=5):
    """A model of logits that depend on all words so far; its state is a tensor."""
    table = torch.randn(vocab, vocab, 8, generator=torch.Generator().manual_seed(number))

    def step(token, state):
        state = 0.5 * state + table[token, :, :].sum(dim=0).roll(token)
        return 1.5 * (table[token] @ torch.tanh(state)), state
    return step


def every_ending(step, max_len, alpha, vocab=5):
    """(score, words) of each sentence that ends within max_len, <eos> counted."""
    for length in range(1, max_len + 1):
        for words in product([word for word in range(vocab) if word != EOS], repeat=length - 1):
            log_p, state, before = 0.0, torch.zeros(8), BOS
            for word in (*words, EOS):
                logits, state = step(before, state)
                log_p, before = log_p + logits.log_softmax(-1)[word].item(), word
            yield log_p / ((5 + length) / 6) ** alpha, list(words)


@pytest.mark.parametrize("number", range(20))
def test_a_beam_of_one_is_greedy(number):
    step, start = random_step(number), torch.zeros(8)
    for max_len in (0, 1, 6):
        assert beam_search(step, start, BOS, EOS, 1, max_len) == greedy_decode(step, start, BOS, EOS, max_len)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("number", range(5))
def test_a_beam_as_wide_as_the_tree_finds_the_best_of_all(number, alpha):
    step = random_step(number)
    _, best = max(every_ending(step, 4, alpha))
    assert beam_search(step, torch.zeros(8), BOS, EOS, 5 ** 4, 4, alpha) == best


GREEDY_TRAP = {(): {A: 0.55, B: 0.45}, (A,): {A: 0.4, B: 0.35, EOS: 0.25}, (B,): {EOS: 0.9, A: 0.1},
               (A, A): {EOS: 1.0}, (A, B): {EOS: 1.0}, (B, A): {EOS: 1.0}}


def test_two_beginnings_escape_where_greedy_is_trapped():
    assert greedy_decode(tree(GREEDY_TRAP), (), BOS, EOS, 5) == [A, A]       # 0.55 * 0.40 = 0.22
    assert beam_search(tree(GREEDY_TRAP), (), BOS, EOS, 2, 5) == [B]         # 0.45 * 0.90 = 0.405


def test_the_length_penalty_decides_between_short_and_long():
    shares = {(): {EOS: 0.40, A: 0.60}, (A,): {A: 1.0}, (A, A): {A: 0.62, EOS: 0.38}, (A, A, A): {EOS: 1.0}}
    assert beam_search(tree(shares), (), BOS, EOS, 3, 6, alpha=0.0) == []                # 0.40 > 0.372
    assert beam_search(tree(shares), (), BOS, EOS, 3, 6, alpha=1.0) == [A, A, A]         # -0.917 < -0.659
    assert -math.log(0.6 * 0.62) / (9 / 6) < -math.log(0.4)


def test_what_has_ended_holds_its_place_in_that_step_only():
    # step 1: <eos> .5 and A .3 are kept, B is not; step 2: two live again, and the likelier comes to an end
    shares = {(): {EOS: 0.5, A: 0.3, B: 0.2}, (A,): {A: 0.6, B: 0.4}, (B,): {EOS: 1.0},
              (A, A): {EOS: 1.0}, (A, B): {EOS: 1.0}}
    seen = []

    def step(token, words):
        seen.append((*words, token)[1:])
        return tree(shares)(token, words)

    assert beam_search(step, (), BOS, EOS, 2, 6, alpha=6.0) == [A, A]
    assert (B,) not in seen and (A, A) in seen and (A, B) in seen


def test_nothing_ends_nothing_is_lost():
    loop = {words: {A: 0.7, B: 0.3} for length in range(5) for words in product((A, B), repeat=length)}
    assert beam_search(tree(loop), (), BOS, EOS, 3, 4) == [A] * 4
    assert beam_search(tree(loop), (), BOS, EOS, 3, 0) == []

"""BLEU is sacrebleu's without smoothing; exact match counts whole sentences."""

import random

import pytest
from sacrebleu.metrics import BLEU

from course_lib.metrics import alignment_error_rate, bleu, exact_match
from course_tools.items.registry import find
from course_tools.judging.honesty import borrowed


def sacrebleus(candidates, references, max_n=4):
    metric = BLEU(max_ngram_order=max_n, smooth_method="none", tokenize="none", force=True)
    texts = [" ".join(tokens) for tokens in candidates]
    return metric.corpus_score(texts, [[" ".join(tokens) for tokens in references]]).score


def corpus(seed, size, damage=0.3):
    """References, and candidates with tokens dropped, doubled and exchanged."""
    draw, words = random.Random(seed), "나 는 학생 이다 그들 은 고양이 a b".split()
    references = [draw.choices(words, k=draw.randint(1, 15)) for _ in range(size)]
    candidates = []
    for reference in references:
        tokens = []
        for token in reference:
            kind = draw.random() / damage
            tokens += ([] if kind < 0.3 else [token] * 2 if kind < 0.6 else
                       [draw.choice(words)] if kind < 1 else [token])
        candidates.append(tokens)
    return candidates, references


@pytest.mark.parametrize("max_n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("size", [1, 2, 30])
def test_bleu_is_sacrebleus(size, max_n):
    for seed in range(20):
        for damage in (0.1, 0.3, 0.8):
            given = corpus(seed, size, damage)
            assert bleu(*given, max_n) == pytest.approx(sacrebleus(*given, max_n), abs=1e-9), (seed, damage)


@pytest.mark.parametrize("candidates, references", [
    ([["a"]], [["b"]]), ([[]], [["a", "b"]]), ([[], list("abcde")], [["a"], list("abcde")]),
    ([list("abcd")], [list("abcd")]), ([list("abc")], [list("abc")]), ([list("abcdef")], [list("abcd")]),
    ([list("abcd")], [list("abcdef")]), ([list("aaaaaaaa")], [list("aaaa")])])
def test_bleu_is_sacrebleus_at_the_edges(candidates, references):
    assert bleu(candidates, references) == pytest.approx(sacrebleus(candidates, references), abs=1e-9)


def test_bleu_by_hand():
    right, written = "나 는 학생 이다".split(), "나 는 나".split()
    assert bleu([written], [right], max_n=2) == pytest.approx(41.37, abs=0.005)
    assert bleu([list("abcde")], [list("abcde")]) == pytest.approx(100)


def test_lists_of_different_lengths_are_refused():
    for metric in (bleu, exact_match):
        with pytest.raises(ValueError):
            metric([["a"]], [["a"], ["b"]])


def test_exact_match_counts_whole_sentences():
    assert exact_match([["a", "b"], ["a"], []], [("a", "b"), ("a", "b"), ()]) == pytest.approx(2 / 3)


@pytest.mark.parametrize("line", ["import sacrebleu", "from sacrebleu.metrics import BLEU",
                                  "library = __import__('sacrebleu')"])
def test_an_answer_by_sacrebleu_earns_nothing(line):
    _, item = find("bleu")
    assert "sacrebleu" in borrowed(f"{line}\n\ndef bleu(c, r, max_n=4):\n    return 1.0", item)
    assert borrowed("import math  # not sacrebleu\n\ndef bleu(c, r, max_n=4):\n    return 1.0", item) is None


# ---------------------------------------------------------------- alignment error rate (lesson 04)

def test_the_alignment_error_rate_by_hand():
    sure, possible = {(0, 0), (1, 2)}, {(0, 0), (1, 2), (1, 1)}
    assert alignment_error_rate(sure, sure, possible) == 0
    assert alignment_error_rate(possible, sure, possible) == 0, "a merely possible link costs nothing"
    assert alignment_error_rate({(2, 2)}, sure, possible) == 1
    assert alignment_error_rate(set(), sure, possible) == 1
    assert alignment_error_rate({(0, 0), (2, 0)}, sure, possible) == pytest.approx(1 - 2 / 4)


def test_the_alignment_error_rate_counts_over_all_sentences():
    predicted, sure = [{(0, 0)}, {(0, 1), (1, 0), (2, 2)}], [{(0, 0)}, {(0, 0), (1, 0)}]
    assert alignment_error_rate(predicted, sure, sure) == pytest.approx(1 - 4 / 7)
    assert alignment_error_rate(list(map(frozenset, predicted)), sure, sure) == pytest.approx(1 - 4 / 7)

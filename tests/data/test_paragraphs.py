"""course_lib/data/paragraphs.py: whole sentences, the right lengths, links that stay with their words."""

import pytest
import torch

from course_lib.data.english_korean import pairs, translate
from course_lib.data.paragraphs import join, paragraphs


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_links_of_the_second_sentence_move_with_its_words():
    first, second = translate("they are cats"), translate("the teacher reads a book")
    both = join(first, second)
    assert both.english == first.english + second.english and both.korean == first.korean + second.korean
    words = {(both.korean[i], both.english[j]) for i, j in both.sure}
    assert words == {(pair.korean[i], pair.english[j]) for pair in (first, second) for i, j in pair.sure}
    assert len(both.sure) == len(first.sure) + len(second.sure) and both.sure <= both.possible


def test_a_paragraph_is_made_of_whole_sentences_and_is_as_long_as_asked_for():
    sentences = pairs(60, generator(), shortest=3, longest=14, depth=0)
    found = paragraphs(200, sentences, generator(1), 5, 20)
    assert all(5 <= len(pair.english) < 20 + 14 for pair in found)
    assert min(len(pair.english) for pair in found) < 9 and max(len(pair.english) for pair in found) > 20
    known = [(pair.english, pair.korean) for pair in sentences]
    for pair in found:
        assert splits(pair.english, pair.korean, known), pair.english


def splits(english, korean, known):
    """Whether a paragraph can be cut into known sentences, each with its translation."""
    if not english:
        return not korean
    return any(english[:len(e)] == e and korean[:len(k)] == k
               and splits(english[len(e):], korean[len(k):], known)
               for e, k in known)


def test_the_same_generator_gives_the_same_paragraphs():
    sentences = pairs(60, generator(), shortest=3, longest=14, depth=0)
    assert paragraphs(5, sentences, generator(2), 1, 40) == paragraphs(5, sentences, generator(2), 1, 40)
    assert paragraphs(5, sentences, generator(2), 1, 40) != paragraphs(5, sentences, generator(3), 1, 40)


@pytest.mark.parametrize("sentences, shortest, longest", [([], 1, 5), ([1], 0, 5), ([1], 6, 5)])
def test_impossible_lengths_are_refused(sentences, shortest, longest):
    with pytest.raises(ValueError, match="paragraphs need sentences"):
        paragraphs(1, sentences, generator(), shortest, longest)

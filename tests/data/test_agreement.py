"""Sentences that stop before 'was' or 'were': half of each, with the subject and the distractors found."""

import doctest

import torch

from course_lib.data import agreement
from course_lib.data.agreement import MANY, ONE, RELATIVES, Gap, gaps


def drawn(seed, count=200):
    return gaps(count, torch.Generator().manual_seed(seed))


def test_half_of_them_are_plural_and_none_comes_twice():
    found = drawn(0)
    assert len(found) == len(set(found)) == 200
    assert sum(gap.plural for gap in found) == 100


def test_the_subject_stands_before_its_relative_clause_and_agrees():
    for gap in drawn(1):
        assert gap.words[gap.subject] in (MANY if gap.plural else ONE)
        assert gap.words[gap.subject + 1] in RELATIVES
        assert not RELATIVES & set(gap.words[:gap.subject])
        assert not {"was", "were"} & set(gap.words)


def test_distractors_are_nouns_and_pronouns_of_the_other_number():
    assert Gap(("the", "letters", "which", "my", "friend", "wrote"), True, 1).distractors == 1
    assert Gap(("the", "friend", "who", "they", "saw"), False, 1).distractors == 1
    assert Gap(("the", "cat", "which", "the", "dog", "who", "bit", "her", "saw"), False, 1).distractors == 0
    assert {gap.distractors for gap in drawn(2)} >= {0, 1, 2}


def test_the_same_seed_gives_the_same_sentences_in_the_same_order():
    assert drawn(3) == drawn(3) != drawn(4)


def test_the_example():
    assert doctest.testmod(agreement).failed == 0

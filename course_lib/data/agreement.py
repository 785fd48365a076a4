"""Sentences that stop before was or were: which one is right depends on a word far back.  Lesson 08"""

from random import Random
from typing import NamedTuple

import torch

from course_lib.data.grammar.clauses import Clauses
from course_lib.data.grammar.phrases import Unsuitable
from course_lib.data.grammar.sentences import piece
from course_lib.data.grammar.words import NOUNS

ONE = {noun.singular for noun in NOUNS} | {"he", "him", "she", "her"}
MANY = {noun.plural for noun in NOUNS} - {""} | {"we", "us", "they", "them"}
RELATIVES = {"who", "which"}


class Gap(NamedTuple):
    """The words before the gap, whether 'were' fills it, and the place of the subject among the words."""

    words: tuple
    plural: bool
    subject: int

    @property
    def distractors(self):
        """How many nouns and pronouns between the subject and the gap have the other number."""
        return sum(word in (ONE if self.plural else MANY) for word in self.words[self.subject + 1:])


def gaps(count, generator):
    """A list of `count` different Gaps, in random order; 'were' is right in half of them.

    Every subject has a relative clause, in which another relative clause may stand.  count: even.

    >>> for gap in gaps(2, torch.Generator().manual_seed(5)):
    ...     print(" ".join(gap.words), "___", gap.plural, gap.words[gap.subject])
    those rabbits which ate the delicious potatoes which the woman sold ___ True rabbits
    the cake which the teachers who gave the apples to her made ___ False cake
    """
    seed = int(torch.randint(2 ** 62, (), generator=generator))
    clauses, found = Clauses(Random(seed), depth=2), {False: set(), True: set()}
    while min(map(len, found.values())) < count // 2:
        clauses.used = set()
        try:
            words, _ = piece(clauses.being(past=True), "다")
        except Unsuitable:
            continue
        end = next((place for place, word in enumerate(words) if word in ("was", "were")), 0)
        relative = next((place for place, word in enumerate(words[:end]) if word in RELATIVES), 0)
        if relative and len(found[words[end] == "were"]) < count // 2:
            found[words[end] == "were"].add(Gap(tuple(words[:end]), words[end] == "were", relative - 1))
    every = sorted(found[False] | found[True])
    return [every[place] for place in torch.randperm(len(every), generator=generator)]

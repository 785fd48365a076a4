"""Paragraphs: sentences of the English-Korean corpus, one after the other.  Lesson 12"""

from functools import reduce

import torch

from course_lib.data.grammar.sentences import Pair


def join(first, second):
    """Two Pairs as one.  The second follows the first in both languages, and its links move along."""
    i, j = len(first.korean), len(first.english)
    sure, possible = (frozenset((a + i, b + j) for a, b in links) for links in (second.sure, second.possible))
    return Pair(first.english + second.english, first.korean + second.korean,
                first.sure | sure, first.possible | possible)


def paragraphs(count, sentences, generator, shortest, longest):
    """A list of `count` Pairs, each made of whole sentences drawn from `sentences`.

    For each of them a number of English words is drawn evenly from shortest to longest, and sentences are
    added until the paragraph has at least that many.  Nothing marks where one sentence ends.
    generator: a torch.Generator.

    >>> from course_lib.data.english_korean import pairs
    >>> generator = torch.Generator().manual_seed(0)
    >>> paragraph = paragraphs(1, pairs(50, generator), generator, 40, 40)[0]
    >>> len(paragraph.english) >= 40
    True
    """
    if not sentences or not 1 <= shortest <= longest:
        raise ValueError(f"paragraphs need sentences, and 1 <= shortest <= longest: got {len(sentences)} "
                         f"sentences, {shortest} to {longest}")
    return [_paragraph(sentences, shortest + _draw(longest - shortest + 1, generator), generator)
            for _ in range(count)]


def _paragraph(sentences, words, generator):
    chosen, length = [], 0
    while length < words:
        chosen.append(sentences[_draw(len(sentences), generator)])
        length += len(chosen[-1].english)
    return reduce(join, chosen)


def _draw(size, generator):
    return int(torch.randint(size, (), generator=generator))

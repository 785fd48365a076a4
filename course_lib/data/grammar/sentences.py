"""Chains random clauses to sentences of a given length, and puts pairs together."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from random import Random

from course_lib.data.grammar.clauses import Clauses
from course_lib.data.grammar.tree import Existence
from course_lib.data.grammar.writer import Writer

CONJUNCTIONS = {"고": "and", "지만": "but"}


@dataclass(frozen=True)
class Pair:
    """A sentence in both languages, as tokens, and the links between them.

    sure, possible: sets of (i, j), i the Korean token (target), j the English one (source), as
    attention weights (n, m) are indexed; sure is within possible.  Och and Ney 2003: sure are the words
    that translate each other, possible also those that only belong together (a particle and its noun,
    the tense of a verb and the verb).  The articles a, an and the have no link at all.
    """

    english: tuple
    korean: tuple
    sure: frozenset
    possible: frozenset


def piece(clause, form):
    """A clause written by itself, its conjunction with it: (English words, Korean items)."""
    writer = Writer()
    items = writer.clause(clause, form)
    if form in CONJUNCTIONS:
        writer.say(CONJUNCTIONS[form])
    return writer.english, items


def assemble(pieces):
    """The Pair of a sentence in pieces."""
    english, tokens, sure, possible = [], [], set(), set()
    for words, items in pieces:
        start = len(english)
        for token, certain, likely in items:
            for j in certain:
                sure.add((len(tokens), start + j))
            for j in likely:
                possible.add((len(tokens), start + j))
            tokens.append(token)
        english += words
    return Pair(tuple(english), tuple(tokens), frozenset(sure), frozenset(sure | possible))


class Sentences:
    """Chains clauses to sentences of a given length."""

    def __init__(self, random, depth):
        self.random, self.depth, self.clauses = random, depth, Clauses(random, depth)
        self.waiting = defaultdict(list)   # clauses drawn, but of a length not asked for yet

    def pair(self, length):
        sizes, pieces, themes = self.sizes(length), [], set()
        past = self.random.random() < 0.5
        for number, size in enumerate(sizes):
            contrast = self.random.random() < 0.4 and not (pieces and pieces[-1][0][-1] == "but")
            form = "다" if number == len(sizes) - 1 else "지만" if contrast else "고"
            pieces.append(self.next_clause(size, past, number == 0, form, themes))
        return assemble(pieces)

    def sizes(self, length):
        """The lengths of the clauses, each but the last with its conjunction."""
        sizes = []
        while length:
            options = _first_sizes(self.depth, length)
            sizes.append(self.random.choices(*options)[0])
            length -= sizes[-1]
        return sizes

    def next_clause(self, size, past, first, form, themes):
        """A clause of `size` words that says something new in its sentence, if that can be."""
        waiting = self.waiting[size, past, first, form]
        for attempt in range(10_000):
            for number, (own, written) in enumerate(waiting):
                if attempt > 300 or not own & themes:
                    themes |= own
                    del waiting[number]
                    return written
            clause = self.clauses.clause(past, first, form == "다")
            fresh = piece(clause, form)
            self.waiting[len(fresh[0]), past, first, form].append((_themes(clause), fresh))
        raise ValueError(f"no clause of {size} words was found")


def _themes(clause):
    """What the clauses of a sentence should not share: whom it is about, and what is said."""
    if isinstance(clause, Existence):
        return {clause.what.noun, "there", "time"} if clause.time else {clause.what.noun, "there"}
    times = {"time"} if clause.time else set()
    verbs = {predicate.verb or "be" for predicate in clause.predicates}
    return times | verbs | {phrase.noun for phrase in clause.subjects}


@cache
def _clause_lengths(depth):
    """The share of each length among the clauses as they are drawn: {words: share}."""
    clauses, count = Clauses(Random(0), depth), 2000
    sizes = Counter(len(piece(clauses.clause(True, False, False), "다")[0]) for _ in range(count))
    return {size: times / count for size, times in sorted(sizes.items()) if times >= 10}


@cache
def _first_sizes(depth, length):
    """The lengths that the first clause of a sentence can have, and their weights.

    As if clauses were drawn one by one, ending the sentence after one in three, and sentences of any
    other length were thrown away: so every length is made of the clauses that are drawn anyway.
    """
    shares = _clause_lengths(depth)
    weights = {size + 1: share * 2 / 3 * _weight(depth, length - size - 1) for size, share in shares.items()}
    weights[length] = shares.get(length, 0) / 3
    weights = {size: weight for size, weight in weights.items() if weight}
    return list(weights), list(weights.values())


def _weight(depth, length):
    return sum(_first_sizes(depth, length)[1]) if length > 1 else 0.0



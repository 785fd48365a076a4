"""Reads an English sentence back into the trees of the grammar, all of them.

Each method is a generator: it starts at word i and yields (tree, index of the next word) for every way
to read on.  It is generous with agreement and articles: the writer writes the tree again, and whoever
asks compares.
"""

from course_lib.data.grammar.lexicon import ADVERBS, BE, DETERMINERS, NUMBERS, TIMES
from course_lib.data.grammar.tree import Clause, Existence, NounPhrase, Predicate, Relative, has_relative
from course_lib.data.grammar.words import ADJECTIVES, NOUNS, PRONOUNS, VERB

NOUN_FORMS = {noun.singular: (noun, False) for noun in NOUNS}
NOUN_FORMS |= {noun.plural: (noun, True) for noun in NOUNS if noun.plural}
SUBJECTS = {pronoun.subject: pronoun for pronoun in PRONOUNS}
OBJECTS = {pronoun.object: pronoun for pronoun in PRONOUNS}
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}
# 'read' alone is always the past: its present would look the same, and have another translation.
VERB_FORMS = {verb.base: (verb, False) for verb in VERB.values()}
VERB_FORMS |= {verb.third: (verb, False) for verb in VERB.values()}
VERB_FORMS |= {verb.past: (verb, True) for verb in VERB.values()}
ARTICLES = {"a": "a", "an": "a", "the": "the", "those": "that"}
ARTICLES |= {word: word for word in [*DETERMINERS, *NUMBERS]}
BE_FORMS = {form: past for (_, past), form in BE.items()}
CONJUNCTIONS = {"and": "고", "but": "지만"}


class Parser:
    def __init__(self, tokens):
        self.tokens = tokens
        self.furthest = 0                # how many words made sense: for the message

    def word(self, i, words):
        """True if word i is one of `words`."""
        found = i < len(self.tokens) and self.tokens[i] in words
        if found:
            self.furthest = max(self.furthest, i + 1)
        return found

    def sentence(self, i=0):
        """Yields lists of (clause, form of its last ending) that use up all words."""
        for clause, k in self.clause(i):
            if k == len(self.tokens):
                yield [(clause, "다")]
            elif self.word(k, CONJUNCTIONS):
                for rest in self.sentence(k + 1):
                    yield [(clause, CONJUNCTIONS[self.tokens[k]]), *rest]

    def clause(self, i):
        time = next((words for words in TIMES if self.tokens[i:i + len(words)] == words), ())
        first, i = i == 0, i + len(time)
        if self.word(i, ["there"]):
            yield from self.existence(i + 1, time)
        for subjects, k in self.phrases(i, SUBJECTS, joined=first):
            for predicates, m in self.predicates(k):
                yield Clause(time, subjects, predicates), m

    def existence(self, i, time):
        if self.word(i, BE_FORMS):
            absent = self.word(i + 1, ["no"])
            for what, k in self.phrase(i + 1 + absent, {}, bare=absent):
                for place, m in self.after(k, ["in", "at"]) if not (absent and what.determiner) else []:
                    yield Existence(time, what, place, BE_FORMS[self.tokens[i]], absent), m

    def phrases(self, i, pronouns, joined):
        for one, k in self.phrase(i, pronouns):
            yield (one,), k
            if joined and self.simple(one) and self.word(k, ["and"]):
                yield from (((one, two), m) for two, m in self.phrase(k + 1, {}) if self.simple(two))

    def simple(self, phrase):
        return not phrase.relative and phrase.noun not in PRONOUNS

    def phrase(self, i, pronouns, bare=False):
        """A noun phrase.  pronouns: those allowed here; bare: a singular may lack its article."""
        if self.word(i, pronouns):
            yield NounPhrase(pronouns[self.tokens[i]]), i + 1
        article = ARTICLES[self.tokens[i]] if self.word(i, ARTICLES) else ""
        i += article != ""
        adjective = ADJECTIVE[self.tokens[i]] if self.word(i, ADJECTIVE) else None
        i += adjective is not None
        if not self.word(i, NOUN_FORMS):
            return
        noun, plural = NOUN_FORMS[self.tokens[i]]
        article = self.suited(noun, plural, article, bare)
        if adjective is None or not noun.tags & {"name", "bare"}:
            yield NounPhrase(noun, article, plural, adjective), i + 1
            if article or plural:
                for relative, k in self.relative(i + 1):
                    yield NounPhrase(noun, article, plural, adjective, relative), k

    def suited(self, noun, plural, article, bare):
        """The article, or one that suits the noun: 'a cats', 'the Minsu', 'cat' alone do not."""
        if noun.tags & {"name", "bare"}:
            return ""
        if article in NUMBERS:
            return article if plural and noun.counter else "the"
        if plural or "mass" in noun.tags:
            return "" if article == "a" else article
        return article or ("" if bare else "a")

    def relative(self, i):
        if self.word(i, ["who", "which"]):
            for predicate, k in self.verb(i + 1, relative=True):
                yield Relative(None, predicate), k
            for subject, k in self.phrase(i + 1, SUBJECTS):
                for predicate, m in self.verb(k, relative=True, gap=True):
                    yield Relative(subject, predicate), m

    def predicates(self, i):
        for predicate, k in self.predicate(i):
            yield (predicate,), k
            if predicate.joins and self.word(k, ["and"]):
                for other, m in self.predicate(k + 1):
                    if other.joins and other.past == predicate.past:
                        yield (predicate, other), m

    def predicate(self, i):
        if self.word(i, BE_FORMS):
            past, negated = BE_FORMS[self.tokens[i]], self.word(i + 1, ["not"])
            k = i + 1 + negated
            if self.word(k, ADJECTIVE):
                yield Predicate(past, complement=ADJECTIVE[self.tokens[k]], negated=negated), k + 1
            for noun, m in self.phrase(k, {}):
                yield Predicate(past, complement=noun, negated=negated), m
        yield from self.verb(i)

    def verb(self, i, relative=False, gap=False):
        """A verb and what follows it.  gap: its object is the noun before the relative clause."""
        adverb, negated = "", False
        if not relative and self.word(i, ["do", "does", "did"]) and self.word(i + 1, ["not"]):
            past, negated, i = self.tokens[i] == "did", True, i + 2
            if not self.word(i, VERB):
                return
            verb = VERB[self.tokens[i]]
        else:
            if not relative and self.word(i, ADVERBS):
                adverb, i = self.tokens[i], i + 1
            if not self.word(i, VERB_FORMS):
                return
            verb, past = VERB_FORMS[self.tokens[i]]
        k = i + 1
        if verb.particle:
            if not self.word(k, [verb.particle]):
                return
            k += 1
        start = Predicate(past, verb, negated=negated, adverb=adverb)
        if gap:
            if verb.transitive and verb.kind != "give":
                yield start, k
            return
        for objects, m in self.phrases(k, OBJECTS, joined=not relative) if verb.transitive else [((), k)]:
            if len(objects) < 2 or m == len(self.tokens):        # two objects only where the sentence ends
                yield from self.parts(start, objects, m, relative)

    def parts(self, start, objects, i, relative):
        """Receiver, companion, tool, vehicle and place, in any order.

        In and after a relative clause only what the verb needs: a place could belong to either verb.
        """
        kind, found = start.verb.kind, {}
        needed = {"give": "receiver", "go": "place", "live": "place"}.get(kind)
        plan = {"receiver": ["to"], "place": ["to"] if kind == "go" else ["in", "at"],
                "companion": ["with"], "tool": ["with"], "vehicle": ["by"]}
        closed = relative or len(objects) > 1 or has_relative(objects)
        plan = {part: words for part, words in plan.items()
                if part == needed or not closed and part != "receiver"}
        k = None
        while k != i:
            k = i
            for part, prepositions in plan.items():
                people = part in ("receiver", "companion")
                phrase, after = next(self.after(i, prepositions, OBJECTS if people else {}), (None, i))
                if phrase and part not in found and (not people or self.alive(phrase.noun)):
                    found[part], i = phrase, after
        if needed is None or needed in found:
            yield Predicate(start.past, start.verb, None, start.negated, start.adverb, objects, **found), i

    def alive(self, noun):
        return noun in PRONOUNS or not noun.tags.isdisjoint({"person", "animal", "name"})

    def after(self, i, prepositions, pronouns=()):
        """A simple noun phrase after a preposition."""
        if self.word(i, prepositions):
            for phrase, k in self.phrase(i + 1, pronouns):
                if not phrase.relative:
                    yield phrase, k

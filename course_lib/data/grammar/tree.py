"""The synchronous grammar: a tree, written in English and in Korean at once.

The tree is the meaning; the English is written from left to right, and every Korean token remembers
the English words that it comes from.  What differs between the two languages:

    order        subject verb object → subject object verb; prepositions → particles after the noun;
                 relative clauses, places, companions and tools before what they belong to
    adverbs      yesterday, every day ... and often, always after the subject; slowly, quickly beside
                 the verb
    articles     a, an and the have no word in Korean
    은/는, 이/가   은/는 for what is known (the girl, I, Minsu, birds), 이/가 for what is
                 new (a girl, two dogs, there is ...) and for the subject of a relative clause
    들           on people and animals; not on things, on a kind that is liked (likes cats), after 'be', or
                 after a number, which takes a counter: two dogs → 개 두 마리
    and          between clauses -았고/-었고 or -고 with the clause's own tense; between two verbs of
                 one subject -고, and the last verb tells the tense
"""

from dataclasses import dataclass

from course_lib.data.grammar.words import Adjective, Noun, Pronoun, Verb


@dataclass(slots=True, eq=False)
class NounPhrase:
    noun: Noun | Pronoun
    determiner: str = ""                # '', a, the, that, my, our, two, three
    plural: bool = False
    adjective: Adjective | None = None
    relative: "Relative | None" = None


@dataclass(slots=True, eq=False)
class Predicate:
    """A verb with its parts, or, with verb None, 'be' and its complement."""

    past: bool
    verb: Verb | None = None
    complement: NounPhrase | Adjective | None = None
    negated: bool = False
    adverb: str = ""
    objects: tuple = ()                 # none, one, or two joined by 'and'
    receiver: NounPhrase | None = None
    companion: NounPhrase | None = None
    tool: NounPhrase | None = None
    vehicle: NounPhrase | None = None
    place: NounPhrase | None = None

    @property
    def joins(self):
        """May 'and' add a second verb?  Not after a relative clause: 'saw the boy who slept and ran'."""
        return (self.verb is not None and not self.negated and len(self.objects) < 2
                and not has_relative(self.objects))


@dataclass(slots=True, eq=False)
class Relative:
    """who / which ...: without a subject the noun itself is the subject, otherwise the object."""

    subject: NounPhrase | None
    predicate: Predicate


@dataclass(slots=True, eq=False)
class Clause:
    time: tuple
    subjects: tuple                     # one, or two joined by 'and'
    predicates: tuple                   # one, or two joined by 'and'


@dataclass(slots=True, eq=False)
class Existence:
    """There is ... in ..."""

    time: tuple
    what: NounPhrase
    place: NounPhrase
    past: bool
    absent: bool


def agreement(subjects):
    """'I', 'one' or 'many': how the verb agrees."""
    if len(subjects) > 1 or subjects[0].plural:
        return "many"
    noun = subjects[0].noun
    return noun.agreement if isinstance(noun, Pronoun) else "one"


def has_relative(phrases):
    for phrase in phrases:              # a loop: any() over a generator takes three times as long
        if phrase.relative:
            return True
    return False


def determiner(phrase):
    """The determiner as English writes it before this noun."""
    if phrase.determiner == "that" and phrase.plural:
        return "those"
    if phrase.determiner == "a":
        after = phrase.adjective.english if phrase.adjective else phrase.noun.singular
        return "an" if after[0] in "aeiou" else "a"
    return phrase.determiner

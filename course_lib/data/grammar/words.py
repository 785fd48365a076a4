"""The tables of the lexicon as objects, and the vocabularies that follow from them."""

from dataclasses import dataclass

from course_lib.data.grammar import lexicon
from course_lib.data.grammar.korean import JOINED, ending


@dataclass(frozen=True, eq=False)
class Noun:
    singular: str
    plural: str
    korean: str
    counter: str
    tags: frozenset


@dataclass(frozen=True, eq=False)
class Pronoun:
    subject: str
    object: str
    korean: str
    nominative: str     # before 가: 내가, 네가
    agreement: str      # how the verb agrees: 'I', 'one' or 'many'


@dataclass(frozen=True, eq=False)
class Adjective:
    english: str
    korean: str
    nouns: tuple


@dataclass(frozen=True, eq=False)
class Verb:
    base: str
    third: str
    past: str
    korean: str
    kind: str           # plain, state, like, give (a thing to a person), live (in a place), go (to a place)
    particle: str       # the 'to' of 'listen to'
    transitive: bool


@dataclass(frozen=True, eq=False)
class Use:
    verb: Verb
    subjects: tuple
    objects: tuple
    places: tuple
    parts: frozenset    # adverbs, companions, tools, vehicles, and pets as receivers


def _rows(table):
    return [row.strip() for row in table.replace("|", "\n").strip().splitlines()]


def _group(names):
    """The nouns that carry one of these names or tags."""
    names = set(names.split())
    return tuple(noun for noun in NOUNS if noun.singular in names or noun.tags & names)


def _noun(row):
    singular, plural, korean, counter, *tags = ["" if column == "-" else column for column in row.split()]
    return Noun(singular, plural, korean, counter, frozenset(tags) - {""})


def _uses():
    verbs, uses = {}, []
    for row in _rows(lexicon.VERBS):
        head, *columns = [column.strip() for column in row.split(":")]
        subjects, objects, places, parts = columns + [""] * (4 - len(columns))
        base, *forms = head.split()
        if forms:
            third, past, korean, kind, *particle = forms
            verbs[base] = Verb(base, third, past, korean, kind, "".join(particle), objects != "")
        uses.append(Use(verbs[base], _group(subjects), _group(objects), _group(places),
                        frozenset(parts.split())))
    return verbs, uses


NOUNS = [_noun(row) for row in _rows(lexicon.NOUNS)]
NOUN = {noun.singular: noun for noun in NOUNS}
PRONOUNS = [Pronoun(*row.split()) for row in _rows(lexicon.PRONOUNS)]
ADJECTIVES = [Adjective(*head.split(), _group(nouns))
              for head, nouns in (row.split(":") for row in _rows(lexicon.ADJECTIVES))]
VERB, USES = _uses()
FOUND_IN = {NOUN[place.strip()]: _group(nouns)
            for place, nouns in (row.split(":") for row in _rows(lexicon.PLACES))}


def _english():
    words = set("a an the those there no not do does did to in at with by who which and but".split())
    words |= {*lexicon.DETERMINERS, *lexicon.NUMBERS, *lexicon.ADVERBS, *lexicon.BE.values()}
    words |= {word for time in lexicon.TIMES for word in time}
    words |= {word for noun in NOUNS for word in (noun.singular, noun.plural) if word}
    words |= {word for verb in VERB.values() for word in (verb.base, verb.third, verb.past)}
    words |= {word for pronoun in PRONOUNS for word in (pronoun.subject, pronoun.object)}
    return sorted(words | {adjective.english for adjective in ADJECTIVES})


def _korean():
    verbs = [verb.korean for verb in VERB.values()] + ["모르", "않"]
    adjectives = [adjective.korean for adjective in ADJECTIVES] + ["있", "없", "아니", "않"]
    tokens = JOINED | {"함께", "-지"} | {stem + "-" for stem in verbs + adjectives}
    for stems in (verbs, adjectives):
        tokens |= {ending(stem, form, past, stems is adjectives) for stem in stems
                   for form in ("다", "고", "지만", "adnominal") for past in (False, True)}
    for table in (lexicon.DETERMINERS, lexicon.NUMBERS, lexicon.TIMES, lexicon.ADVERBS):
        tokens |= set(table.values())
    tokens |= {word for noun in NOUNS for word in (noun.korean, noun.counter) if word}
    return sorted(tokens | {word for one in PRONOUNS for word in (one.korean, one.nominative)})


ENGLISH, KOREAN = tuple(_english()), tuple(_korean())       # every token of either side

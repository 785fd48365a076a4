"""Draws noun phrases, verbs and relative clauses that make sense together."""

from functools import cache

from course_lib.data.grammar.tree import NounPhrase, Predicate, Relative, agreement
from course_lib.data.grammar.words import ADJECTIVES, NOUN, NOUNS, PRONOUNS, USES


def tagged(tag):
    return [noun for noun in NOUNS if tag in noun.tags]


NAMES, PEOPLE, PETS = tagged("name"), tagged("person"), tagged("pet")
I, WE = PRONOUNS[0], PRONOUNS[4]
GROUPS = {I: WE, WE: I}                   # 'I helped us' is not said
DESCRIBES = {noun: [adjective for adjective in ADJECTIVES if noun in adjective.nouns] for noun in NOUNS}
DOES = {noun: [use for use in USES if noun in use.subjects] for noun in NOUNS}
# 논 아이, 잔 개 (the child who played, the dog which slept) are good grammar, but seldom said.
ACTS = {noun: [use for use in DOES[noun] if use.objects or use.verb.kind != "plain"] for noun in NOUNS}
UNDERGOES = {noun: [use for use in USES if noun in use.objects and use.verb.kind != "give"]
             for noun in NOUNS}
STATES = {"state", "like", "live"}        # no time, no 'always'; in the present in relative clauses


@cache
def _all_people(nouns):
    return set(PEOPLE) <= set(nouns)


class Unsuitable(Exception):
    """This draw leads nowhere: draw again."""


class Phrases:
    """Phrases drawn with `random`, a random.Random; relative clauses nest up to `depth` times.

    role: 'subject' or 'object' · indefinite: may it be new (a, two) · kind: may it be cats in general.
    """

    def __init__(self, random, depth):
        self.random, self.depth = random.random, depth
        self.used = set()                 # nouns and verbs of this clause: none comes twice

    def pick(self, items):
        return items[int(self.random() * len(items))]

    def chance(self, share):
        return self.random() < share

    def fresh(self, nouns):
        """One of `nouns` that this clause does not have yet."""
        noun = self.pick(nouns)
        if noun in self.used:
            free = [noun for noun in nouns if noun not in self.used]
            if not free:
                raise Unsuitable
            noun = self.pick(free)
        self.used.add(noun)
        return noun

    def use(self, uses):
        """One of `uses` whose verb this clause does not have yet."""
        use = self.pick(uses)
        if use.verb in self.used:
            raise Unsuitable
        self.used.add(use.verb)
        return use

    def thing(self, nouns, role, indefinite=True, kind=True):
        noun = self.fresh(nouns)
        return self.described(self.determined(noun, role, indefinite, kind))

    def person(self, role, nouns=PEOPLE, indefinite=True, kind=False, pronouns=0.3):
        draw = self.random()
        if draw < pronouns:
            one = self.fresh(PRONOUNS)
            if GROUPS.get(one) in self.used:
                raise Unsuitable
            return NounPhrase(one)
        if draw < pronouns + 0.12:
            return NounPhrase(self.fresh(NAMES))
        return self.thing(nouns, role, indefinite, kind)

    def one_of(self, nouns, role, indefinite=True, kind=True):
        if _all_people(nouns) and self.chance(len(PEOPLE) / len(nouns)):
            return self.person(role, PEOPLE, indefinite, kind)
        return self.thing(nouns, role, indefinite, kind)

    def determined(self, noun, role, indefinite, kind):
        draw, tags = self.random(), noun.tags
        if tags & {"name", "bare"}:
            return NounPhrase(noun)
        if "mass" in tags:
            if role == "subject" or draw < 0.4:
                return NounPhrase(noun, "the")
            return NounPhrase(noun, "that" if draw < 0.5 else "")
        few = 0.08 if role == "subject" else 0.3
        if indefinite and draw < few:
            return NounPhrase(noun, "a")
        if indefinite and noun.counter and draw < few + (0.06 if role == "subject" else 0.15):
            return NounPhrase(noun, self.pick(["two", "three"]), plural=True)
        if kind and noun.plural and 0.8 < draw:
            return NounPhrase(noun, plural=True)
        plural = noun.plural != "" and self.chance(0.3)
        if "own" in tags and self.chance(0.9 if noun is NOUN["friend"] else 0.25):
            return NounPhrase(noun, "our" if "ours" in tags and self.chance(0.5) else "my", plural)
        return NounPhrase(noun, "that" if self.chance(0.2) else "the", plural)

    def described(self, phrase, share=0.25):
        ours = phrase.determiner in ("my", "our")       # 우리 작은 집 sounds like two phrases
        if DESCRIBES[phrase.noun] and not ours and self.chance(share):
            phrase.adjective = self.pick(DESCRIBES[phrase.noun])
        return phrase

    def location(self, noun):
        self.used.add(noun)
        if "bare" in noun.tags:
            return NounPhrase(noun)
        ours = "ours" in noun.tags and self.chance(0.3)
        return self.described(NounPhrase(noun, "our" if ours else "the"), 0.15)

    def relate(self, phrase, past, depth):
        """Give the phrase a relative clause, now and then."""
        noun, alone = phrase.noun, not (phrase.determiner or phrase.plural)
        if not depth or noun in PRONOUNS or alone or not self.chance(0.25 if self.depth == 1 else 0.5):
            return
        does, undergoes = ACTS[noun], UNDERGOES[noun]
        if not does and not undergoes:
            return
        if does and (not undergoes or self.chance(0.6)):
            use = self.use(does)
            predicate = self.bare_verb(use, past, agreement([phrase]))
            self.complete(predicate, use, depth - 1)
            phrase.relative = Relative(None, predicate)
            return
        use = self.use(undergoes)
        subject = self.one_of(use.subjects, "subject", indefinite=False, kind=False)
        self.relate(subject, past, depth - 1)
        phrase.relative = Relative(subject, self.bare_verb(use, past, agreement([subject])))

    def bare_verb(self, use, past, agrees):
        """A verb in its tense; not 'they read' for the present, since it is read as the past."""
        past = past and use.verb.kind not in STATES
        if not past and agrees != "one" and use.verb.base == use.verb.past:
            raise Unsuitable
        return Predicate(past, use.verb)

    def complete(self, predicate, use, depth):
        """Add what the verb needs: object, receiver, goal."""
        kind = use.verb.kind
        if use.objects:
            indefinite = kind not in ("state", "like")
            # 'likes cats', 'reads books', but not 'sees cats'
            general = kind == "like" or not {"person", "animal"} & use.objects[0].tags
            item = self.one_of(use.objects, "object", indefinite, general)
            predicate.objects = (item,)
            if kind != "give":
                self.relate(item, predicate.past, depth)
        if kind == "give":
            pet = "pet" in use.parts
            predicate.receiver = self.thing(PETS, "subject", kind=False) if pet else self.person("subject")
        if kind in ("go", "live"):
            predicate.place = self.location(self.fresh(use.places))
            if predicate.place.noun is NOUN["house"] and kind == "live":
                self.described(predicate.place, share=1)      # 'lives in the house' says too little

"""Draws clauses that make sense: who does what, with what, where; who is what; what there is."""

from course_lib.data.grammar.phrases import DOES, STATES, Phrases, Unsuitable, tagged
from course_lib.data.grammar.tree import Clause, Existence, NounPhrase, Predicate, agreement, has_relative
from course_lib.data.grammar.words import ADJECTIVES, FOUND_IN, NOUN, PRONOUNS, USES

JOBS, ANIMALS, VEHICLES, TOOLS = tagged("job"), tagged("animal"), tagged("vehicle"), tagged("tool")
GROWN = [NOUN[name] for name in ("man", "woman", "friend")]
SORTS = {"person", "animal", "food", "drink", "goods", "text"}
PASSING = {"happy", "sad", "busy", "quiet"}      # what one can be yesterday, or last night
UNFOLLOWED = STATES | {"go"}                     # no second verb: 시장에 가고 샀다 would be 가서 샀다


class Clauses(Phrases):
    """Clauses drawn with `random`: of actions mostly, of what is and of what there is."""

    def clause(self, past, first, last):
        """A clause.  Only the first may have two subjects, only the last two objects."""
        while True:
            self.used = set()
            draw = self.random()
            try:
                if draw < 0.08:
                    return self.existence(past)
                return self.being(past) if draw < 0.28 else self.action(past, first, last)
            except Unsuitable:
                continue

    def existence(self, past):
        place = self.pick(list(FOUND_IN))
        noun, absent = self.fresh(FOUND_IN[place]), self.chance(0.15)
        many = noun.plural != "" and not absent and self.chance(0.5)
        phrase = NounPhrase(noun, plural=many)
        if not absent and not many and "mass" not in noun.tags:
            phrase.determiner = "a"
        elif not absent and many and noun.counter and self.chance(0.6):
            phrase.determiner = self.pick(["two", "three"])
        time = ("yesterday",) if past and self.chance(0.1) else ()
        return Existence(time, self.described(phrase), self.location(place), past, absent)

    def being(self, past):
        negated, time = self.chance(0.12), ()
        if self.chance(0.4):
            subject = self.person("subject", GROWN, indefinite=False, pronouns=0.6)
            complement = self.identity(subject)
            self.relate(complement, past, self.depth)
        else:
            complement = self.pick(ADJECTIVES)
            subject = self.one_of(complement.nouns, "subject", indefinite=False, kind=False)
            subject.adjective = None
            self.relate(subject, past, self.depth)
            if past and complement.english in PASSING and self.chance(0.3):
                time = self.pick([("yesterday",), ("last", "night")])
        return Clause(time, (subject,), (Predicate(past, complement=complement, negated=negated),))

    def identity(self, subject):
        """What somebody is: a student, cats, my friend."""
        pronoun = subject.noun.subject if subject.noun in PRONOUNS else ""
        many = subject.plural or pronoun in ("we", "they")
        if pronoun == "they" and self.chance(0.5):
            return self.described(NounPhrase(self.pick(ANIMALS), plural=True))
        if subject.noun is not NOUN["friend"] and pronoun not in ("I", "we") and self.chance(0.15):
            return NounPhrase(NOUN["friend"], self.pick(["my", "our"]), many)
        return self.described(NounPhrase(self.pick(JOBS), "" if many else "a", many))

    def action(self, past, first, last):
        use = self.use(USES)
        lasting = use.verb.kind in STATES
        subject = self.one_of(use.subjects, "subject", indefinite=not lasting, kind=not past)
        subjects = (subject,)
        if first and subject.noun not in PRONOUNS and not self.is_new(subject) and self.chance(0.1):
            subjects = (subject, self.second(subject, use.subjects, "subject"))
        else:
            self.relate(subject, past, self.depth)
        agrees = agreement(subjects)
        # One relative clause is enough, and 이/가 twice in a row is hard to read.
        full = self.depth == 1 and has_relative(subjects) or self.is_new(subject) or self.chance(0.3)
        predicate = self.main_verb(use, past, agrees, 0 if full else self.depth)
        time = self.vary(predicate, use, subject, last)
        predicates = (predicate,)
        if len(subjects) == 1 and predicate.joins and use.verb.kind not in UNFOLLOWED and self.chance(0.15):
            predicates += (self.another(subject, predicate, agrees),)
        return Clause(time, subjects, predicates)

    def main_verb(self, use, past, agrees, depth):
        predicate = self.bare_verb(use, past, agrees)
        predicate.past = past                 # states too: the main clauses of a sentence share its tense
        self.complete(predicate, use, depth)
        return predicate

    def second(self, first, nouns, role):
        """A phrase of the first one's sort: 'the bread and the milk', not 'the bread and the dog'."""
        sort = {"person"} if "name" in first.noun.tags else SORTS & first.noun.tags
        nouns = tuple(noun for noun in nouns if noun.tags & sort or not sort)
        kind = not sort & {"person", "animal"}
        phrase = self.one_of(nouns, role, indefinite=role == "object", kind=kind)
        if phrase.noun in PRONOUNS:
            raise Unsuitable
        return phrase

    def vary(self, predicate, use, subject, last):
        """Add adverb, 'not', companion, place ...  Returns the words for the time."""
        parts, objects, new = use.parts, predicate.objects, self.is_new(subject)
        if not new and not any(self.is_new(item) for item in objects):
            predicate.negated = self.chance(0.4 if use.verb.base == "know" else 0.12)
        adverbs = [word for word in ("slowly", "quickly") if word in parts]
        if not new and "often" in parts:
            adverbs += ["often", "always"]
        if adverbs and not predicate.negated and self.chance(0.2):
            predicate.adverb = self.pick(adverbs)
        if has_relative(objects):
            return ()
        lone = objects and objects[0].noun not in PRONOUNS and use.verb.kind != "give"
        if last and lone and self.chance(0.15):
            predicate.objects += (self.second(objects[0], use.objects, "object"),)
        else:
            self.settle(predicate, use)
        if use.verb.kind in STATES or predicate.adverb in ("often", "always") or self.chance(0.85):
            return ()
        times = [("yesterday",), ("last", "night")] if predicate.past else []
        times += [("every", "day")] if "often" in parts and not new and not predicate.negated else []
        return self.pick(times) if times else ()

    def settle(self, predicate, use):
        """With whom, with what, where."""
        parts = use.parts
        if "friend" in parts and self.chance(0.15):
            predicate.companion = self.person("object", indefinite=False)
        elif "tool" in parts and self.chance(0.3):
            predicate.tool = NounPhrase(self.pick(TOOLS), self.pick(["a", "the"]))
        elif "vehicle" in parts and self.chance(0.4):
            predicate.vehicle = NounPhrase(self.pick(VEHICLES))
        if use.places and not predicate.place and self.chance(0.25):
            predicate.place = self.location(self.fresh(use.places))

    def another(self, subject, predicate, agrees):
        """A second verb for the same subject."""
        actor = subject.noun if subject.noun in DOES and DOES[subject.noun] else NOUN["friend"]
        uses = [use for use in DOES[actor] if use.verb.kind not in STATES]
        other = self.main_verb(self.use(uses), predicate.past, agrees, 0)
        if not other.joins:
            raise Unsuitable
        return other

    def is_new(self, phrase):
        return phrase.determiner in ("a", "two", "three")

"""Writes a tree of the grammar in both languages, with the links between their words."""

from course_lib.data.grammar.korean import PLURAL, ending, particle
from course_lib.data.grammar.lexicon import ADVERBS, AT, BE, DETERMINERS, MANNERS, NUMBERS, TIMES
from course_lib.data.grammar.tree import Existence, agreement, determiner
from course_lib.data.grammar.words import Adjective, Pronoun


class Writer:
    """English tokens in `english`; the methods return Korean items (token, sure, possible).

    sure, possible: positions in `english`.  Every method says its English words in order and returns
    its Korean ones in theirs.  form is the ending's: '다' (last clause), '고', '지만' or 'adnominal'.
    """

    def __init__(self):
        self.english = []

    def say(self, word):
        """Add an English word; returns its position."""
        self.english.append(word)
        return len(self.english) - 1

    def clause(self, clause, form):
        """A clause; with form '고' or '지만' the next English word has to be its 'and' or 'but'."""
        time = []
        if clause.time:
            time.append((TIMES[clause.time], [self.say(word) for word in clause.time], []))
        if isinstance(clause, Existence):
            return time + self.existence(clause, form)
        items = self.joined(clause.subjects, "topic") + time
        agrees = agreement(clause.subjects)
        for predicate in clause.predicates[:-1]:
            items += self.predicate(predicate, agrees, "고", tenseless=True)
            self.say("and")
        return items + self.predicate(clause.predicates[-1], agrees, form)

    def existence(self, clause, form):
        there = self.say("there")
        be = self.say(BE[agreement([clause.what]), clause.past])
        no = [self.say("no")] if clause.absent else []
        what = self.phrase(clause.what, "subject")
        place = self.at(clause.place, "to")
        stem = "없" if no else "있"
        verb = (stem + "-", no or [be], [be, there])
        return place + what + [verb, self.ending(stem, form, clause.past, True, [be])]

    def joined(self, phrases, role):
        """One phrase, or two with 'and' between them: 와/과 after the first."""
        items = []
        for phrase in phrases[:-1]:
            items += self.phrase(phrase, role, joined=True)
        return items + self.phrase(phrases[-1], role)

    def phrase(self, phrase, role, sure=(), joined=False):
        """A noun phrase and its particle.  role: the particle's, '' for none, 'kind' for what is liked.

        sure: the preposition that the particle translates; joined: 'and' and another phrase follow.
        """
        noun = phrase.noun
        if isinstance(noun, Pronoun):
            j = self.say(noun.subject if role in ("topic", "subject") else noun.object)
            items = [(noun.nominative if role == "subject" else noun.korean, [j], [])]
        else:
            items, j = self.noun(phrase, single=role == "" or (role == "kind" and not phrase.determiner))
            if role == "topic" and (phrase.determiner == "a" or phrase.determiner in NUMBERS):
                role = "subject"
        if joined:
            role, sure = "and", [self.say("and")]
        if role:
            role = "object" if role == "kind" else role
            items.append((particle(items[-1][0], role), list(sure), [j]))
        return items

    def noun(self, phrase, single):
        """The phrase without its particle, and where its noun is.  single: no 들, whatever the number."""
        noun, before, count = phrase.noun, [], []
        if phrase.determiner:
            j = self.say(determiner(phrase))
            if phrase.determiner in DETERMINERS:
                before.append((DETERMINERS[phrase.determiner], [j], []))
            elif phrase.determiner in NUMBERS:
                count = [j]
        if phrase.adjective:
            j = self.say(phrase.adjective.english)
            stem = phrase.adjective.korean
            before += [(stem + "-", [j], []), (ending(stem, "adnominal", adjective=True), [], [j])]
        j = self.say(noun.plural if phrase.plural else noun.singular)
        items = before + [(noun.korean, [j], [])]
        if count:
            items += [(NUMBERS[phrase.determiner], count, []), (noun.counter, [], count + [j])]
        elif phrase.plural and not single and noun.tags & {"person", "animal"}:
            items.append((PLURAL, [j], []))
        return (self.relative(phrase) if phrase.relative else []) + items, j

    def relative(self, phrase):
        relative = phrase.relative
        who = self.say("who" if "person" in phrase.noun.tags else "which")
        if relative.subject is None:
            return self.predicate(relative.predicate, agreement([phrase]), "adnominal", who=[who])
        subject, agrees = self.phrase(relative.subject, "subject"), agreement([relative.subject])
        return subject + self.predicate(relative.predicate, agrees, "adnominal", who=[who])

    def predicate(self, predicate, agrees, form, tenseless=False, who=()):
        """Verb and parts.  agrees: as `agreement`; who: the relative pronoun that its ending translates."""
        if predicate.verb is None:
            return self.be(predicate, agrees, form)
        verb, past, did, no, adverb = predicate.verb, predicate.past, [], [], []
        if predicate.negated:
            did, no = [self.say("did" if past else "does" if agrees == "one" else "do")], [self.say("not")]
        elif predicate.adverb:
            adverb = [(ADVERBS[predicate.adverb], [self.say(predicate.adverb)], [])]
        base = no or (agrees != "one" and not past)
        j = self.say(verb.base if base else verb.past if past else verb.third)
        to = [self.say(verb.particle)] if verb.particle else []
        parts, past = self.parts(predicate), past and not tenseless
        if not no:
            end = [(verb.korean + "-", [j], to), self.ending(verb.korean, form, past, False, [j, *who])]
        elif verb.base == "know":                                 # 알지 않는다 is not said
            end = [("모르-", [j, *no], did), self.ending("모르", form, past, False, did)]
        else:
            end = [(verb.korean + "-", [j], to), *self.negation(no, did, form, past, False)]
        return parts + adverb + end if predicate.adverb in MANNERS else adverb + parts + end

    def negation(self, no, did, form, past, adjective):
        return [("-지", [], no), ("않-", no, did), self.ending("않", form, past, adjective, did)]

    def parts(self, predicate):
        """What stands between subject and verb in Korean, and after the verb in English."""
        role = "kind" if predicate.verb.kind == "like" else "object"
        objects = self.joined(predicate.objects, role) if predicate.objects else []
        receiver = self.phrase(predicate.receiver, "for", [self.say("to")]) if predicate.receiver else []
        goal = self.at(predicate.place, "to", "to") if predicate.place and predicate.verb.kind == "go" else []
        companion, tool, place = [], [], []
        if predicate.companion:
            with_ = [self.say("with")]
            companion = self.phrase(predicate.companion, "with", with_) + [("함께", with_, [])]
        if predicate.tool:
            tool = self.phrase(predicate.tool, "by", [self.say("with")])
        if predicate.vehicle:
            tool = self.phrase(predicate.vehicle, "by", [self.say("by")])
        if predicate.place and not goal:
            place = self.at(predicate.place, "to" if predicate.verb.kind == "live" else "at")
        return companion + place + tool + goal + receiver + objects

    def at(self, phrase, role, preposition=""):
        """A place, with 'in' or 'at' as the noun wants it."""
        preposition = preposition or ("at" if phrase.noun.singular in AT else "in")
        return self.phrase(phrase, role, [self.say(preposition)])

    def be(self, predicate, agrees, form):
        be = self.say(BE[agrees, predicate.past])
        no = [self.say("not")] if predicate.negated else []
        complement, past = predicate.complement, predicate.past
        if isinstance(complement, Adjective):
            items = [(complement.korean + "-", [self.say(complement.english)], [])]
            if not no:
                return items + [self.ending(complement.korean, form, past, True, [be])]
            return items + self.negation(no, [be], form, past, True)
        items = self.phrase(complement, "")
        if no:
            noun = items[-1][1]
            items += [(particle(items[-1][0], "subject"), [], noun), ("아니-", no, [be])]
            return items + [self.ending("아니", form, past, True, [be])]
        return items + [("이" + ("었" if past else "") + form, [be, *self.coming(form)], [])]

    def ending(self, stem, form, past, adjective, possible):
        return ending(stem, form, past, adjective), self.coming(form), possible

    def coming(self, form):
        # The conjunction is the word that English says next.
        return [len(self.english)] if form in ("고", "지만") else []

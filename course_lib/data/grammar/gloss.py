"""Korean tokens word by word in English, for readers who cannot read Hangul."""

from course_lib.data.grammar import lexicon
from course_lib.data.grammar.korean import COPULAS, JOINED, PARTICLES, PLURAL
from course_lib.data.grammar.words import ADJECTIVES, NOUNS, PRONOUNS, VERB

ROLES = {"topic": "TOPIC", "subject": "SUBJ", "object": "OBJ", "and": "and", "with": "with", "by": "by",
         "at": "at", "to": "to", "for": "to"}
NUMBERS = {korean: english for english, korean in lexicon.NUMBERS.items()}
COUNTERS = {noun.counter for noun in NOUNS if noun.counter}
ADJECTIVE = {f"{adjective.korean}-" for adjective in ADJECTIVES}
NOT_DONE = {"있-": "exist", "없-": "not.exist", "아니-": "not.be", "않-": "not", "모르-": "not.know"}


def _meanings():
    table = {f"{verb.korean}-": verb.base for verb in VERB.values()} | NOT_DONE | NUMBERS
    table |= {f"{adjective.korean}-": adjective.english for adjective in ADJECTIVES}
    table |= dict.fromkeys(COUNTERS, "CL") | {noun.korean: noun.singular for noun in NOUNS}
    for words in (lexicon.DETERMINERS, lexicon.ADVERBS):
        table |= {korean: english for english, korean in words.items()}
    table |= {korean: ".".join(english) for english, korean in lexicon.TIMES.items()}
    table |= {one.korean: one.subject for one in PRONOUNS} | {"네": "you", "함께": "together", PLURAL: "PL"}
    for role in reversed(PARTICLES):      # 과, 와: 'and' unless 함께 follows
        table |= dict.fromkeys(PARTICLES[role], ROLES[role])
    return table


MEANINGS = _meanings()


def gloss(tokens):
    """Each Korean token in English, joined as the Korean is; capitals mark what English has no word for.

    TOPIC, SUBJ and OBJ are particles, PAST and PL are endings, CL is a counter.  'like-ing' stands before
    the noun that it describes, as 'who likes' stands after it in English.

    >>> gloss("고양이 를 좋아하- -는 교사 는 책 을 읽- -었다".split())
    'cat-OBJ like-ing teacher-TOPIC book-OBJ read-PAST'
    """
    tokens, words = list(tokens), []
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        english = meaning(before, token, after)
        joined = words and (token in JOINED or token[0] == "-")
        if joined and english:
            words[-1] += f"-{english}"
        elif not joined:
            words.append(english)
    return " ".join(words)


def meaning(before, token, after):
    """The English of one token, by its neighbours where it has several; '' for what adds nothing."""
    if token[0] == "-" or token in COPULAS:
        return _ending(before, token)
    if token in COUNTERS and before in NUMBERS:                   # 개 두 마리, 모자 두 개
        return "CL"
    if token == "내":
        return "I" if after == "가" else "my"
    if token == "그":
        return "he" if after in JOINED else "that"
    if token == "우리":
        return "we" if after in JOINED else "our"
    if token == "에":
        return "to" if after == "가-" else "at"
    if token in PARTICLES["with"] and after == "함께":
        return "with"
    return MEANINGS.get(token, token)             # <unk> stays


def _ending(before, token):
    past = any(mark in token for mark in "았었였")
    parts = ["be"] * (token in COPULAS) + ["PAST"] * past
    if token in ("-는", "-ㄴ", "-은") and before not in ADJECTIVE:
        parts.append("ing")
    parts += ["but"] * token.endswith("지만") + ["and"] * token.endswith("고")
    return "-".join(parts)

"""English to Korean from a synchronous grammar: unlimited sentence pairs with gold word alignment.

    pairs(count, generator)     a list of Pair, 3 to 40 English tokens long
    sample(generator, length)   one Pair of exactly `length` English tokens
    translate(sentence)         the Pair of an English sentence, or a ValueError that says what is wrong
    tokenise(sentence)          English text to tokens
    text(pair.korean)           Korean tokens to text with its spaces
    gloss(pair.korean)          Korean tokens word by word in English
    ENGLISH, KOREAN             all tokens of each side, sorted

Every English sentence has exactly one Korean translation, so that an exact match is fair.  The rules are
told in grammar/tree.py, the words in grammar/lexicon.py, the Korean forms and tokens in grammar/korean.py.
"""

import difflib
import gc
import re
from contextlib import contextmanager
from random import Random

import torch

from course_lib.data.grammar.gloss import gloss
from course_lib.data.grammar.korean import text
from course_lib.data.grammar.parser import Parser
from course_lib.data.grammar.sentences import Pair, Sentences, assemble, piece
from course_lib.data.grammar.words import ENGLISH, KOREAN

__all__ = ["ENGLISH", "KOREAN", "Pair", "gloss", "pairs", "sample", "text", "tokenise", "translate"]

SPELLING = {word.lower(): word for word in ENGLISH}      # I and Minsu keep their capitals


def sample(generator, length=None, depth=1):
    """One Pair.  length: English tokens, 3 to 100; None: drawn, 12 on average.

    generator, depth: as in `pairs`.

    >>> pair = sample(torch.Generator().manual_seed(1), length=7)
    >>> len(pair.english)
    7
    """
    shortest, longest = (3, 40) if length is None else (length, length)
    return pairs(1, generator, shortest, longest, depth=depth)[0]


def pairs(count, generator, shortest=3, longest=40, lengths="natural", depth=1):
    """A list of `count` Pairs whose English has `shortest` to `longest` tokens.

    generator: a torch.Generator.  lengths: 'natural', most sentences are short, 12 tokens on average over 3
    to 40; or 'uniform', every length as often as every other.  Longer sentences have more clauses, chained
    by 'and' and 'but'; depth: how many relative clauses may stand inside one another, 0 for none.

    Short sentences come again: to keep a test set apart, leave out of training whatever is in it.

    >>> generator = torch.Generator().manual_seed(0)
    >>> test = pairs(100, generator)
    >>> held_out = {pair.english for pair in test}
    >>> train = [pair for pair in pairs(1000, generator) if pair.english not in held_out]
    """
    if not 3 <= shortest <= longest <= 100:
        raise ValueError(f"lengths go from shortest to longest within 3 to 100, got {shortest} to {longest}")
    if lengths not in ("natural", "uniform"):
        raise ValueError(f"lengths is 'natural' or 'uniform', got {lengths!r}")
    random = Random(int(torch.randint(2 ** 62, (), generator=generator)))
    sentences = Sentences(random, depth)
    with _collection_paused():
        return [sentences.pair(_length(random, shortest, longest, lengths)) for _ in range(count)]


@contextmanager
def _collection_paused():
    # Trees hold no cycles; looking for some, over and over through torch's many objects, doubles the time.
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _length(random, shortest, longest, lengths):
    if lengths == "uniform" or shortest == longest:
        return random.randint(shortest, longest)
    for _ in range(1000):
        length = round(random.gammavariate(3, 4))
        if shortest <= length <= longest:
            return length
    return random.randint(shortest, longest)     # a range where natural sentences hardly ever fall


def tokenise(sentence):
    """English text to tokens: small letters but for I and names, no punctuation, don't → do not.

    >>> tokenise("They are cats."), tokenise("I don't know Minsu!")
    (('they', 'are', 'cats'), ('I', 'do', 'not', 'know', 'Minsu'))
    """
    sentence = re.sub("n['’]t\\b", " not", sentence.lower())
    words = re.findall(r"[\w']+", sentence)
    return tuple(SPELLING.get(word, word) for word in words)


def translate(sentence):
    """The Pair of an English sentence, text or tokens.

    Raises ValueError that names the unknown words and the nearest known ones, or says how far the
    sentence could be understood, or how the grammar would write it.

    >>> text(translate("They are cats").korean), text(translate("I am a student").korean)
    ('그들은 고양이다', '나는 학생이다')
    >>> translate("the drogon sleeps")
    Traceback (most recent call last):
    ValueError: 'drogon' is not in the vocabulary; near it: dog, door, dogs
    """
    tokens = tokenise(sentence if isinstance(sentence, str) else " ".join(sentence))
    if not tokens:
        raise ValueError("the sentence has no words")
    unknown = [word for word in dict.fromkeys(tokens) if word not in ENGLISH]
    if unknown:
        raise ValueError("; ".join(map(_unknown, unknown)))
    parser = Parser(tokens)
    others = []
    for tree in parser.sentence():
        pair = assemble([piece(clause, form) for clause, form in tree])
        if pair.english == tokens:
            return pair
        others.append(" ".join(pair.english))
    if others:
        raise ValueError(f"'{' '.join(tokens)}' is outside the grammar; it would say '{others[0]}'")
    understood = " ".join(tokens[:parser.furthest])
    raise ValueError(f"'{' '.join(tokens)}' is outside the grammar; understood as far as '{understood}'")


def _unknown(word):
    near = difflib.get_close_matches(word, ENGLISH, cutoff=0.55)
    return f"'{word}' is not in the vocabulary" + (f"; near it: {', '.join(near)}" if near else "")

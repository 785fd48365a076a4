"""How good is a translation?  BLEU and exact match.  Lesson 03"""

import math
from collections import Counter


def ngrams(tokens, n):
    """How often each run of n tokens occurs: a Counter of tuples."""
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def bleu(candidates, references, max_n=4):
    """Corpus BLEU, 0 to 100: brevity penalty times the geometric mean of the precisions of 1- to max_n-grams.

    candidates, references: equally many lists of tokens, one reference each.  Matches and totals are counted
    over the whole corpus first; 0 where an order has no match, as sacrebleu without smoothing.
    Papineni et al. 2002, section 2.3
    """
    log_precisions = []
    for n in range(1, max_n + 1):
        matches = total = 0
        for candidate, reference in zip(candidates, references, strict=True):
            found = ngrams(candidate, n)
            matches += (found & ngrams(reference, n)).total()     # clipped: no more than the reference has
            total += found.total()
        if matches == 0:
            return 0.0
        log_precisions.append(math.log(matches / total))
    length, wanted = sum(map(len, candidates)), sum(map(len, references))
    brevity = min(1.0, math.exp(1 - wanted / length))
    return 100 * brevity * math.exp(sum(log_precisions) / max_n)


def exact_match(candidates, references):
    """The share of sentences that are right to the last token, 0 to 1."""
    right = [list(c) == list(r) for c, r in zip(candidates, references, strict=True)]
    return sum(right) / len(right)


def alignment_error_rate(predicted, sure, possible):
    """1 - (|A and S| + |A and P|) / (|A| + |S|), A the predicted links: 0 is best, 1 worst.  Lesson 04

    predicted, sure, possible: lists with a set of links (i, j) for each sentence, or one sentence's sets;
    sure within possible.  Counts are added up over the sentences first.  Och & Ney 2003, section 5
    """
    if isinstance(predicted, (set, frozenset)):
        predicted, sure, possible = [predicted], [sure], [possible]
    hits = links = 0
    for A, S, P in zip(predicted, sure, possible, strict=True):
        hits += len(A & S) + len(A & P)
        links += len(A) + len(S)
    return 1 - hits / links

"""Self-attention: the ladder from an average to causal self-attention, one source for Q, K and V, and four masks.

The numbers are those that lesson 08 computes by hand for 'cats chase mice'; a test computes them again.
"""

import math

from .kit import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    LEARNED,
    ORANGE,
    arrow,
    box,
    grid,
    heading,
    line,
    lines,
    page,
    projection,
    rectangle,
    step,
    text,
    token,
)

WORDS = ["cats", "chase", "mice"]
X = [(1, 0), (0, 1), (1, 1)]
Q, K, V = [(0, 1), (2, 0), (2, 1)], [(1, 0), (1, 1), (2, 1)], [(10, 0), (0, 10), (10, 10)]
SCORES = [(0.00, 0.71, 0.71), (1.41, 1.41, 2.83), (1.41, 2.12, 3.54)]
WEIGHTS = [(0.20, 0.40, 0.40), (0.16, 0.16, 0.67), (0.09, 0.18, 0.73)]
OUTPUT = [(5.99, 8.02), (8.36, 8.36), (8.22, 9.12)]
AVERAGE = [(1.00, 0.00, 0.00), (0.50, 0.50, 0.00), (0.33, 0.33, 0.33)]
AVERAGES = [(1.00, 0.00), (0.50, 0.50), (0.67, 0.67)]
CAUSAL = [(1.00, 0.00, 0.00), (0.50, 0.50, 0.00), (0.09, 0.18, 0.73)]
CAUSAL_OUTPUT = [(10.00, 0.00), (5.00, 5.00), (8.22, 9.12)]
CELL, HEIGHT = 46, 26


# ---------------------------------------------------------------- the ladder

def rung(y, number, name, note, scores, weights, values, output, formula):
    """One row of the ladder: scores → softmax → weights × values = output.  Parts that a rung lacks are None."""
    middle = y + 1.5 * HEIGHT
    colour, full = (GREEN, 10) if number == 4 else (GREY, 1)
    parts = [step(34, middle - 26, number), text(52, middle - 26, name, 15, INK, "start", 600),
             lines(24, middle - 2, note, 13)]
    if scores:
        parts += [grid(214, y, scores, INK, CELL, HEIGHT, 2, full=0, faint=[-math.inf]), arrow(356, middle, 424, middle, INK), text(390, middle - 13, "softmax", 12, FAINT)]
    if weights:
        parts += [grid(428, y, weights, INK, CELL, HEIGHT, 2, full=1, faint=[0]), text(584, middle, "×", 18),
                  grid(602, y, values, colour, 42, HEIGHT, full=full),
                  text(704, middle, "=", 18)]
    parts.append(grid(722, y, output, colour, 54, HEIGHT, 2, full=full))
    if formula:
        parts.append(formula)
    return parts


def ladder():
    zeros = [[0 if j <= i else -math.inf for j in range(3)] for i in range(3)]
    scores = [[score if j <= i else -math.inf for j, score in enumerate(row)] for i, row in enumerate(SCORES)]
    tops = [104, 234, 364, 494]
    names = [text(283, 84, "scores", 14, INK, weight=600), text(497, 84, "weights", 14, INK, weight=600),
             text(644, 84, "words X", 14, GREY, weight=600), text(776, 84, "output", 14, INK, weight=600)]
    loop = []
    for i, line_of_words in enumerate(["cats", "(cats + chase) / 2", "(cats + chase + mice) / 3"]):
        y = tops[0] + HEIGHT * (i + 0.5)
        loop += [text(690, y, line_of_words, 14, INK, "end"), text(704, y, "=", 16)]
    parts = [heading("From an average to self-attention in four steps",
                     "Three words, one row each. No row may use a later word. Steps 1 to 3 give the same output."),
             *names,
             *rung(tops[0], 1, "Loop", ["average the", "words so far"], None, None, None, AVERAGES, "".join(loop)),
             *rung(tops[1], 2, "Matrix product", ["a triangle of", "weights, row sum 1"], None, AVERAGE, X, AVERAGES, ""),
             *rung(tops[2], 3, "Softmax", ["equal scores; −∞", "hides later words"], zeros, AVERAGE, X, AVERAGES, ""),
             *rung(tops[3], 4, "Self-attention", ["scores computed", "from the words"], scores, CAUSAL, V, CAUSAL_OUTPUT, ""),
             text(283, 590, "Q Kᵀ / √2, with −∞", 13, BLUE), text(634, 590, "V = X", 13, GREEN),
             projection(664, 590, "V", GREEN, 14)]
    parts += [line([(20, y), (840, y)], "#d5dae0", 1, head=False) for y in (209, 339, 469)]
    return page(860, 616, *parts, title="From an average to self-attention in four steps",
                description="An average of the words so far, computed in a loop, as a product with a triangular matrix "
                            "and as a softmax of zeros and minus infinities; in the last step the scores come from "
                            "queries and keys, and the words are replaced by values.")


# ---------------------------------------------------------------- one source, three projections

def one_source():
    top, row = 150, 40
    rows = [top + row * (number + 0.5) for number in range(3)]
    middle = rows[1]
    parts = [heading("Self-attention: queries, keys and values all come from the same words",
                     "The row of 'cats' is outlined. All rows are computed at the same time. A bold box is learned."),
             step(186, 92, 1), text(202, 92, "project", 14, INK, "start", 600),
             step(450, 92, 2), text(466, 92, "score", 14, INK, "start", 600),
             step(642, 92, 3), text(658, 92, "softmax", 14, INK, "start", 600)]
    parts += [token(56, y, word, width=66) for word, y in zip(WORDS, rows, strict=True)]
    parts += [grid(102, top, X, GREY, 32, row, full=1), text(134, top - 14, "X (3, 2)", 13, GREY, weight=600)]
    for name, colour, values, y, most in (("Q", BLUE, Q, 118, 2), ("K", ORANGE, K, 250, 2), ("V", GREEN, V, 392, 10)):
        height = 30
        centre = y + 1.5 * height
        parts += [line([(170, middle), (188, middle), (188, centre), (204, centre)], GREY, 2),
                  box(232, centre, "", LEARNED, colour, 52, 34, learned=True), projection(232, centre, name),
                  arrow(260, centre, 288, centre, colour, 2),
                  grid(292, y, values, colour, 36, height, full=most, row=0 if name == "Q" else None),
                  text(328, y - 13, f"{name} (3, 2)", 13, colour, weight=600)]
    parts += [line([(366, 163), (392, 163), (392, 222), (428, 222)], BLUE, 2),
              line([(366, 295), (392, 295), (392, 240), (428, 240)], ORANGE, 2),
              grid(432, 189, SCORES, INK, 46, 28, 2, full=0, row=0),
              text(501, 175, "Q Kᵀ / √2  (3, 3)", 13, INK, weight=600),
              arrow(574, 231, 634, 231, INK, 2),
              grid(638, 189, WEIGHTS, INK, 46, 28, 2, full=1, row=0), text(707, 175, "weights (3, 3)", 13, INK, weight=600)]
    parts += [lines(786, 203, ["each row", "sums to 1"], 12)]
    parts += [step(560, 352, 4), text(576, 352, "weighted sum", 14, INK, "start", 600),
              line([(707, 275), (707, 386)], INK, 2),
              line([(366, 437), (640, 437)], GREEN, 2),
              grid(644, 395, OUTPUT, GREEN, 62, 28, 2, full=10, row=0),
              text(706, 494, "output = weights × V  (3, 2)", 13, GREEN, weight=600)]
    parts += [lines(780, 409, WORDS, 13, leading=2.15)]
    return page(860, 524, *parts, title="Self-attention on 'cats chase mice'",
                description="The three word vectors X are multiplied by three learned matrices, which gives Q, K and V. "
                            "Each query is compared with each key; the softmax of every row gives the weights; and the "
                            "weights mix the values into one output per word.")


# ---------------------------------------------------------------- masks

CAT = ["the", "cat", "saw", "a", "mouse"]
SHORT = ["they", "are", "cats", "pad", "pad"]
PACKED = ["cats", "sleep", "dogs", "often", "run"]
DOCUMENTS = [0, 0, 1, 1, 1]
RULES = {"Causal": lambda i, j: j <= i, "Padding": lambda i, j: j < 3, "Causal and padding": lambda i, j: j <= min(i, 2),
         "Packed": lambda i, j: j <= i and DOCUMENTS[i] == DOCUMENTS[j]}
ALLOWED = {name: [[rule(i, j) for j in range(5)] for i in range(5)] for name, rule in RULES.items()}


def mask_grid(x, y, name, note, words, cell=42):
    """A table of who may attend to whom: row = query, column = key; a tick where it is True."""
    left, top = x + 66, y + 74
    parts = [text(x, y, name, 16, INK, "start", 600), lines(x, y + 23, note, 13)]
    parts += [text(left + cell * (j + 0.5), top - 14, word, 13, "#a86a1a" if word != "pad" else "#8a96a3",
                   italic=word == "pad") for j, word in enumerate(words)]
    for i, word in enumerate(words):
        parts.append(text(left - 10, top + cell * (i + 0.5), word, 13, BLUE if word != "pad" else "#8a96a3", "end",
                          italic=word == "pad"))
        for j in range(len(words)):
            on = ALLOWED[name][i][j]
            parts.append(rectangle(left + cell * j + 1.5, top + cell * i + 1.5, cell - 3, cell - 3,
                                   "#9dbfe0" if on else "#f1f2f4", BLUE if on else "#d5dae0", 1.2, 4))
            if on:
                parts.append(text(left + cell * (j + 0.5), top + cell * (i + 0.5), "✓", 15, INK, weight=600))
    return parts


def masks():
    parts = [heading("Four masks: who may attend to whom",
                     "Rows ask (queries), columns are asked (keys). A tick means True, may attend; elsewhere the score "
                     "becomes −∞."),
             *mask_grid(40, 100, "Causal", ["Each word sees itself and the previous words."], CAT),
             *mask_grid(456, 100, "Padding", ["Nobody sees the padding. The sentence has 3 words."], SHORT),
             *mask_grid(40, 414, "Causal and padding", ["Both conditions hold: mask & mask."], SHORT),
             *mask_grid(456, 414, "Packed", ["Two texts share one row; neither sees the other."], PACKED)]
    return page(860, 722, *parts, title="Causal, padding, combined and packed masks",
                description="Four five by five tables. The causal mask is a lower triangle; the padding mask allows the "
                            "first three columns; both together allow the triangle within these columns; the packed "
                            "mask has one triangle for each of two texts.")


DRAWINGS = {"08_ladder": ladder, "08_masks": masks, "08_one_source": one_source}

"""Query, key and value: one query in four steps, where the three vectors come from, attention as matrices.

All three pictures show the numbers that lesson 05 computes by hand; they are computed here once more.
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
    shade,
    step,
    text,
    token,
)

WORDS = ["Minsu", "likes", "cats"]
X = [(1, 0, 1, 0), (0, 1, 0, 1), (1, 1, 0.5, 0.5)]
W_Q = [(0, 0), (0, 1), (2, 0), (0, 0)]
W_K = [(1, 0), (0, 1), (0, 0), (0, 0)]
W_V = [(0, 0), (0, 0), (10, 0), (0, 10)]
BELOW = "₁₂₃"


def product(A, B):
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in zip(*B, strict=True)] for row in A]


def softmax(row):
    powers = [math.exp(score) for score in row]
    return [power / sum(powers) for power in powers]


Q, K, V = product(X, W_Q), product(X, W_K), product(X, W_V)
RAW = product(Q, list(zip(*K, strict=True)))
SCORES = [[score / math.sqrt(2) for score in row] for row in RAW]
WEIGHTS = [softmax(row) for row in SCORES]
OUTPUT = product(WEIGHTS, V)


# ---------------------------------------------------------------- one query

def one_query():
    scores, weights, (first, second) = SCORES[0], WEIGHTS[0], OUTPUT[0]
    parts = [heading("One query, three keys, three values",
                     "The query is compared with every key. The scores become weights. The weights mix the values.")]
    for x, number, name in ((34, 1, "project"), (282, 2, "compare"), (458, 3, "softmax"), (640, 4, "mix")):
        parts += [step(x, 98, number), text(x + 18, 99, name, 14, INK, "start", 600)]
    for i, word in enumerate(WORDS):
        y = 210 + 74 * i
        parts += [token(58, y, word), arrow(92, y, 132, y, ORANGE),
                  grid(136, y - 13, [K[i]], ORANGE, 32, 26, full=1), text(168, y - 27, f"k{BELOW[i]}", 15, ORANGE, weight=600),
                  arrow(204, y, 316, y, ORANGE, 0.8 + 3 * scores[i]), text(344, y + 1, f"{scores[i]:.2f}", 16, INK, weight=600),
                  arrow(372, y, 444, y), rectangle(450, y - 11, 150 * weights[i], 22, BLUE, "none", 0, 3),
                  text(458 + 150 * weights[i], y + 1, f"{weights[i]:.2f}", 15, INK, "start", 600),
                  grid(612, y - 13, [V[i]], GREEN, 32, 26, full=10), text(644, y - 27, f"v{BELOW[i]}", 15, GREEN, weight=600),
                  arrow(680, y, 744, 284 + 6 * (i - 1), GREEN, 0.8 + 7 * weights[i])]
    parts += [text(304, 148, "q₁ of Minsu", 15, BLUE, "end", weight=600), grid(314, 135, [Q[0]], BLUE, 32, 26, full=2),
              arrow(346, 164, 346, 196, BLUE, 2), arrow(346, 224, 346, 270, BLUE, 2), arrow(346, 298, 346, 344, BLUE, 2),
              grid(748, 271, [[first, second]], GREEN, 42, 26, 2, full=10),
              text(790, 254, "output", 15, GREEN, weight=600), text(790, 314, "Σ wⱼ vⱼ", 13, FAINT),
              text(168, 402, "kⱼ = xⱼ Wᴷ", 13, FAINT), text(344, 402, "q · kⱼ / √dₖ", 13, FAINT),
              text(520, 402, "weights wⱼ, sum to 1", 13, FAINT), text(644, 402, "vⱼ = xⱼ Wⱽ", 13, FAINT)]
    return page(850, 428, *parts, title="Attention for one query",
                description="The query (2, 0) is compared with three keys. The scores 1.41, 0.00 and 1.41 become the "
                            "weights 0.45, 0.11 and 0.45, which mix three values into the output (6.69, 3.31).")


# ---------------------------------------------------------------- from a word to q, k and v

def projections():
    rows = ((178, "Q", W_Q, BLUE, "query q₃", Q, "What am I\nlooking for?"),
            (338, "K", W_K, ORANGE, "key k₃", K, "What can I\nbe found by?"),
            (498, "V", W_V, GREEN, "value v₃", V, "What do I hand over\nwhen I am found?"))
    parts = [heading("One word vector, three learned matrices, three vectors",
                     "A bold outline marks what is learned. The same three matrices serve every word."),
             token(62, 338, "cats"), arrow(96, 338, 116, 338, GREY),
             grid(120, 323, [X[2]], GREY, 34, 30, full=1), text(188, 308, "x₃", 15, GREY, weight=600),
             text(188, 372, "(1, d_model) = (1, 4)", 12, FAINT)]
    for y, letter, W, colour, name, stacked, question in rows:
        parts += [line([(258, 338), (282, 338), (282, y), (310, y)], GREY, 2) if y != 338 else arrow(258, 338, 310, 338, GREY, 2),
                  grid(316, y - 52, W, colour, 36, 26, learned=True),
                  projection(352, y - 68, letter, colour, weight=600),
                  text(352, y + 66, "(4, 2)", 12, FAINT),
                  arrow(392, y, 440, y, colour, 2), grid(446, y - 15, [stacked[2]], colour, 42, 30, full=max(map(max, stacked))),
                  text(488, y - 30, name, 15, colour, weight=600), lines(488, y + 30, question.split("\n"), 12, FAINT, "middle", 1.25),
                  arrow(534, y, 640, y + 30, colour, 1.2)]
        parts += [grid(646, y - 45, stacked, colour, 42, 30, full=max(map(max, stacked))),
                  rectangle(643, y + 12, 90, 36, "none", INK, 2, 5),
                  text(688, y - 60, letter, 16, colour, weight=700),
                  text(688, y + 62, f"(n, {'d_v' if letter == 'V' else 'd_k'}) = (3, 2)", 12, FAINT)]
        parts += [text(744, y - 30 + 30 * i, word, 13, FAINT, "start") for i, word in enumerate(WORDS)]
    parts.append(text(688, 92, "all words, one row each", 13, INK, weight=600))
    return page(840, 590, *parts, title="From a word to its query, key and value",
                description="The vector x of the word cats is multiplied by three learned matrices, which gives its "
                            "query, key and value. Stacked, the vectors of all words form the matrices Q, K and V.")


# ---------------------------------------------------------------- matrices

def shape(x, y, words):
    return text(x, y, words, 12, FAINT)


def matrices():
    up, down = 118, 330
    parts = [heading("Attention as matrices",
                     "Each row of Q is a query. The outlined row is the query computed by hand."),
             step(40, 88, 1), text(58, 89, "score: Q Kᵀ", 14, INK, "start", 600),
             step(628, 88, 2), text(646, 89, "scale: ÷ √dₖ", 14, INK, "start", 600),
             step(40, 300, 3), text(58, 301, "softmax, row by row", 14, INK, "start", 600),
             step(320, 300, 4), text(338, 301, "mix: weights × V", 14, INK, "start", 600)]
    # step 1
    parts += [grid(48, up + 10, Q, BLUE, 44, 32, row=0), text(36, up + 58, "Q", 16, BLUE, "end", 700),
              shape(92, up + 124, "(n, d_k) = (3, 2)"), text(170, up + 58, "×", 20),
              grid(204, up + 26, [*zip(*K, strict=True)], ORANGE, 44, 32, full=1.5),
              text(270, up + 10, "Kᵀ", 16, ORANGE, weight=700), shape(270, up + 108, "(d_k, m) = (2, 3)"),
              text(364, up + 58, "=", 20), grid(396, up + 10, RAW, GREY, 44, 32, row=0),
              shape(462, up + 124, "(n, m) = (3, 3)"), arrow(538, up + 58, 620, up + 58), text(579, up + 42, "÷ 1.41", 13, FAINT)]
    # step 2
    parts += [grid(632, up + 10, SCORES, GREY, 52, 32, 2, row=0), shape(710, up + 124, "(n, m)")]
    # step 3
    parts += [line([(710, up + 136), (710, 278), (20, 278), (20, down + 58), (42, down + 58)], INK, 1.5),
              grid(52, down + 10, WEIGHTS, BLUE, 52, 32, 2, full=1, row=0),
              shape(130, down + 124, "(n, m): each row sums to 1"),
              text(280, down + 58, "×", 20)]
    # step 4
    parts += [grid(340, down + 10, V, GREEN, 48, 32, full=14), text(328, down + 58, "V", 16, GREEN, "end", 700),
              shape(388, down + 124, "(m, d_v) = (3, 2)"), text(474, down + 58, "=", 20),
              grid(520, down + 10, OUTPUT, GREEN, 56, 32, 2, full=14, row=0),
              text(648, down + 58, "output", 16, GREEN, "start", 700), shape(576, down + 124, "(n, d_v) = (3, 2)")]
    return page(830, 480, *parts, title="Attention as matrices with their shapes",
                description="Q times K transposed gives a score for each query and key. The scores are divided by the "
                            "square root of d_k, the softmax turns each row into weights, and the weights times V "
                            "give one output row for each query.")


# ---------------------------------------------------------------- style tokens with two heads

BANK = [[0.8, 0.2, 0.5], [0.1, 0.9, 0.3], [0.5, 0.5, 0.9], [0.9, 0.7, 0.1], [0.2, 0.3, 0.7], [0.6, 0.1, 0.2]]
HEADS = {"head 1": (178, [0.08, 0.42, 0.12, 0.05, 0.28, 0.05]), "head 2": (308, [0.30, 0.04, 0.10, 0.46, 0.04, 0.06])}


def blank(x, y, rows, columns, colour, cell=16, height=13, learned=False):
    """A grid without numbers."""
    parts = [rectangle(x + cell * j, y + height * i, cell, height, shade(0.12 + 0.09 * ((3 * i + 2 * j) % 5), colour), colour, 0.5, 0)
             for i in range(rows) for j in range(columns)]
    return "".join(parts) + rectangle(x, y, cell * columns, height * rows, "none", colour, 3 if learned else 1.6, 2)


def style_tokens():
    parts = [heading("A recording attends to a bank of style tokens, with two heads",
                     "A bold outline marks what is learned. Each head has its own slice of the columns, and its own softmax."),
             text(62, 96, "recording", 13), line([(34, 128), (46, 112), (56, 132), (68, 110), (80, 128), (92, 116)], INK, 2, head=False),
             arrow(100, 122, 122, 122), box(152, 122, "GRU", LEARNED, width=56, height=34, learned=True),
             arrow(182, 122, 204, 122), blank(208, 114, 1, 5, GREY, 14, 16), text(243, 96, "reference", 13, GREY, weight=600),
             arrow(280, 122, 306, 122), box(332, 122, "", LEARNED, BLUE, 46, 34, learned=True), projection(332, 122, "Q"),
             blank(410, 113, 1, 2, BLUE, 20, 18), blank(466, 113, 1, 2, BLUE, 20, 18), arrow(357, 122, 406, 122, BLUE),
             text(430, 96, "Q₁", 14, BLUE, weight=700), text(486, 96, "Q₂", 14, BLUE, weight=700),
             text(72, 194, "bank of 6 tokens", 13)]
    for number in range(6):
        parts.append(blank(42, 208 + 24 * number, 1, 3, GREY, 20, 17, learned=True))
    parts += [line([(108, 276), (126, 276)], INK, 1.5), box(156, 276, "tanh", width=56, height=30),
              line([(186, 276), (208, 276), (208, 228), (304, 228)], INK, 1.5), line([(186, 276), (208, 276), (208, 338), (304, 338)], INK, 1.5),
              box(332, 228, "", LEARNED, ORANGE, 46, 34, learned=True), projection(332, 228, "K"),
              box(332, 338, "", LEARNED, GREEN, 46, 34, learned=True), projection(332, 338, "V"),
              arrow(357, 228, 406, 228, ORANGE), arrow(357, 338, 406, 338, GREEN)]
    for x, number in ((410, "₁"), (466, "₂")):
        parts += [blank(x, 189, 6, 2, ORANGE, 20, 13), blank(x, 299, 6, 2, GREEN, 20, 13),
                  text(x + 20, 175, f"K{number}", 14, ORANGE, weight=700), text(x + 20, 285, f"V{number}", 14, GREEN, weight=700)]
    for name, (y, weights) in HEADS.items():
        number = "₁" if name == "head 1" else "₂"
        parts += [rectangle(552, y - 54, 142, 94, "white", FAINT, 1.2, 8), text(562, y - 40, f"{name}: Q{number} K{number} V{number}", 12, INK, "start", 600)]
        parts += [rectangle(562 + 13 * j, y + 26 - 90 * weight, 10, 90 * weight, BLUE, "none", 0, 1) for j, weight in enumerate(weights)]
        parts += [text(600, y + 50, "weights", 12, FAINT), blank(648, y, 1, 2, GREEN, 18, 18), arrow(694, y + 9, 726, 248 + (y - 243) * 0.12, GREEN, 2)]
    parts += [line([(512, y), (528, y)], colour, 2, head=False) for y, colour in ((122, BLUE), (228, ORANGE), (338, GREEN))]
    parts += [line([(528, 120), (528, 340)], INK, 2, head=False), arrow(528, 170, 550, 170), arrow(528, 300, 550, 300),
              blank(730, 238, 1, 4, GREEN, 22, 20), text(774, 208, "style", 14, GREEN, weight=600),
              text(774, 224, "embedding", 14, GREEN, weight=600), arrow(774, 260, 774, 314, GREEN, 2),
              box(774, 334, "decoder", LEARNED, width=92, height=38, learned=True),
              text(656, 390, "accents of the text", 13), line([(720, 390), (774, 390), (774, 355)], INK, 1.5)]
    return page(840, 414, *parts, title="Style tokens with two heads",
                description="The query comes from a recording, keys and values from a bank of learned tokens. Two heads "
                            "attend separately, and their outputs side by side are the style embedding for the decoder.")


DRAWINGS = {"05_attention": one_query, "05_matrices": matrices, "05_projections": projections,
            "05_style_tokens": style_tokens}

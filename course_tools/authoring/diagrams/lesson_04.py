"""Attention: one step with its numbers, Bahdanau's order of work beside Luong's, and links between words.

The numbers are those that lesson 04 computes by hand for 'They are cats'; a test computes them again.
"""

from .kit import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    LEARNED,
    ORANGE,
    RED,
    arrow,
    box,
    frame,
    grid,
    heading,
    line,
    lines,
    page,
    printed,
    rectangle,
    step,
    text,
    token,
)

WORDS = ["they", "are", "cats"]
STATES = [(1.0, 0.0), (0.5, 0.5), (0.0, 1.0)]
SCORES, WEIGHTS = [-2.28, -1.39, 0.00], [0.08, 0.18, 0.74]
CONTEXT, OLD, NEW, BEFORE = (0.17, 0.83), (0.0, -1.0), (0.58, 0.32), (0.5, 0.0)
PREDICTED = [("그들", "they", 0.06), ("은", "TOPIC", 0.09), ("고양이", "cat", 0.80), ("이다", "is", 0.05)]
LUONG_WEIGHTS = [0.09, 0.24, 0.67]


def vector(x, y, values, colour):
    """A strip of cells with their values, its left end at x, centred on y."""
    return grid(x, y - 13, [values], colour, 40, 26, 2, full=1, size=12)


def weight_bar(x, y, weight, length=80):
    return (rectangle(x, y - 9, max(3, length * weight), 18, INK, INK, 0, 3)
            + text(x + length * weight + 8, y, f"{weight:.2f}", 13, INK, "start", 600))


def column(x, number, name, formula, bottom):
    """The head of a numbered step, and its formula under the column."""
    return (step(x, 88, number) + text(x + 18, 88, name, 14, INK, "start", 600)
            + text(x - 8, bottom, formula, 13, FAINT, "start"))


def bahdanau_step():
    rows = [190, 250, 310]
    parts = [heading("One attention step: which English word helps to predict the third Korean token?",
                     "The decoder has produced 그들-은, they-TOPIC, and is in state s₂. A bold outline marks what "
                     "is learned."),
             column(238, 1, "score", "eⱼ = tanh(s₂ Wₛ + hⱼ Wₕ) · v", 350),
             column(446, 2, "softmax", "positive, sum to 1", 350),
             column(618, 3, "weighted sum", "c₃ = Σ aⱼ hⱼ", 350)]
    parts += [vector(262, 130, OLD, BLUE), text(252, 130, "s₂", 15, BLUE, "end", 600),
              line([(232, 130), (222, 130), (222, rows[2] - 7), (272, rows[2] - 7)], BLUE, 1.8)]
    parts += [line([(222, y - 7), (272, y - 7)], BLUE, 1.8) for y in rows[:2]]
    for number, (word, state, score, weight, y) in enumerate(
            zip(WORDS, STATES, SCORES, WEIGHTS, rows, strict=True), start=1):
        name = "h" + "₁₂₃"[number - 1]
        parts += [token(50, y, word, width=62), arrow(82, y, 104, y, FAINT),
                  vector(106, y, state, ORANGE), text(146, y - 24, name, 14, ORANGE, weight=600),
                  arrow(188, y + 6, 272, y + 6, ORANGE, 1.8),
                  box(316, y, printed(score, 2), width=84, height=30, learned=True),
                  arrow(360, y, 436, y, INK), weight_bar(442, y, weight),
                  vector(612, y, state, GREEN), text(602, y, name, 14, GREEN, "end", 600),
                  text(562, y, "×", 15, INK), arrow(694, y, 744, 250 + (y - 250) * 0.16, GREEN, 1 + 5 * weight)]
    parts += [vector(748, 250, CONTEXT, GREEN), text(788, 226, "c₃", 15, GREEN, weight=600)]
    parts += lower_half()
    return page(860, 640, *parts, title="One attention step on 'They are cats'",
                description="The five steps of Bahdanau's attention with their numbers: scores -2.28, -1.39 and "
                            "0.00; weights 0.08, 0.18 and 0.74; the context vector; the new state; and the "
                            "prediction, in which the word for cat gets 0.80.")


def lower_half():
    """Steps 4 and 5: the context joins the previous token and gives the new state; both give a prediction."""
    y, bus = 470, 392
    parts = [step(34, 424, 4), text(52, 424, "concatenate", 14, INK, "start", 600),
             step(460, 424, 5), text(478, 424, "predict", 14, INK, "start", 600),
             line([(788, 264), (788, bus), (182, bus), (182, y - 15)], GREEN, 2.5),
             line([(600, bus), (600, y - 15)], GREEN, 2.5),
             vector(62, y, BEFORE, FAINT), vector(142, y, CONTEXT, GREEN),
             text(102, y + 27, "y₂ = 은", 13, FAINT), text(182, y + 27, "c₃", 14, GREEN, weight=600),
             arrow(224, y, 262, y, INK), box(298, y, "GRU", LEARNED, width=70, height=40, learned=True),
             vector(258, y + 66, OLD, BLUE), arrow(298, y + 51, 298, y + 22, BLUE, 1.8),
             text(248, y + 66, "s₂", 15, BLUE, "end", 600),
             arrow(335, y, 478, y, INK), text(404, y - 15, "new state s₃", 13, BLUE, weight=600),
             vector(480, y, NEW, BLUE), vector(560, y, CONTEXT, GREEN),
             text(520, y + 27, "s₃", 14, BLUE, weight=600), text(600, y + 27, "c₃", 14, GREEN, weight=600),
             arrow(642, y, 680, y, INK),
             box(754, y, "linear, softmax", LEARNED, width=146, height=40, learned=True),
             arrow(754, y + 22, 754, y + 50, INK),
             text(26, 602, "s₃ = GRU([y₂; c₃], s₂)", 13, FAINT, "start"),
             text(460, 602, "softmax([s₃; c₃] Wₒ)", 13, FAINT, "start")]
    for number, (korean, gloss, chance) in enumerate(PREDICTED):
        x, best = 640 + 58 * number, chance > 0.5
        parts += [rectangle(x - 18, 592 - 44 * chance, 36, max(2, 44 * chance), GREEN if best else "#c5ccd3",
                            "none", 0, 2),
                  text(x, 582 - 44 * chance, f"{chance:.2f}", 12, INK, weight=700 if best else 400),
                  text(x, 604, korean, 14, INK, weight=700 if best else 400),
                  text(x, 622, gloss, 11, FAINT, italic=True)]
    return parts


# ---------------------------------------------------------------- Bahdanau's order of work beside Luong's

def numbered(x, y, label, number, fill="white", colour=INK, width=190, height=30, learned=False):
    """A box with the number of its step at the upper left corner."""
    return (box(x, y, label, fill, colour, width, height, learned=learned, size=13)
            + step(x - width / 2 + 1, y - height / 2, number))


def attention_column(x, state, weights, branch, learned=False):
    """Steps 1 to 3, from the bottom up.  x: the middle.  branch: where the decoder's state turns off.

    learned: whether the score has weights of its own.
    """
    parts = [rectangle(x - 92, 489, 184, 44, "none", GREEN, 1.2),
             line([(x - 92, 511), (x - 112, 511), (x - 112, 250), (x - 68, 250)], GREEN, 2.5),
             line([(branch, 425), (x + 97, 425)], BLUE, 2)]
    for number, (word, weight) in enumerate(zip(WORDS, weights, strict=True), start=1):
        place = x + 62 * (number - 2)
        parts += [token(place, 560, word, width=56, size=13), arrow(place, 544, place, 527, FAINT),
                  box(place, 511, "h" + "₁₂₃"[number - 1], "#fdf3e3", ORANGE, 44, 30),
                  arrow(place, 495, place, 441, ORANGE, 1.8), arrow(place, 409, place, 380, INK),
                  text(place, 348, f"{weight:.2f}", 12, INK, weight=600),
                  rectangle(place - 15, 338 - 50 * weight, 30, 50 * weight, INK, INK, 0, 2),
                  arrow(place, 330 - 50 * weight, place + (x - place) * 0.35, 267, INK, 1 + 2 * weight)]
    return [*parts, numbered(x, 425, f"score hⱼ with {state}", 1, learned=learned), numbered(x, 368, "softmax", 2, height=24),
            numbered(x, 250, "Σ aⱼ hⱼ", 3, "#eaf6ee", GREEN, 132)]


def entering(x, name, what, colour, end):
    """A vector that enters the step at the bottom, and its way up to y = end."""
    return [text(x, 560, name, 15, colour, weight=600), lines(x, 578, what.split(), 11, anchor="middle", leading=1.1),
            line([(x, 546), (x, end)], colour, 2)]


def bahdanau(x):
    return [*attention_column(x, "sᵢ₋₁", WEIGHTS, 334, learned=True),
            *entering(334, "sᵢ₋₁", "old state", BLUE, 236), *entering(392, "yᵢ₋₁", "previous token", FAINT, 236),
            line([(x + 66, 250), (296, 250), (296, 237)], GREEN, 2.5),
            text(x + 100, 264, "cᵢ", 14, GREEN, weight=600),
            numbered(344, 220, "concatenate, GRU", 4, LEARNED, width=140, learned=True),
            line([(344, 204), (344, 136)], BLUE, 2), text(356, 176, "sᵢ", 15, BLUE, "start", 600),
            line([(x, 234), (x, 168), (300, 168), (300, 136)], GREEN, 2.5),
            numbered(324, 120, "predict yᵢ", 5, LEARNED, width=120, learned=True)]


def luong(x):
    state = 756
    return [*attention_column(x, "sᵢ", LUONG_WEIGHTS, state),
            *entering(712, "yᵢ₋₁", "previous token", FAINT, 507), *entering(764, "s̃ᵢ₋₁", "fed back", INK, 507),
            *entering(814, "sᵢ₋₁", "old state", BLUE, 507),
            box(764, 490, "concatenate, GRU", LEARNED, width=140, height=30, learned=True, size=13),
            line([(state, 474), (state, 236)], BLUE, 2), text(state + 10, 330, "sᵢ", 15, BLUE, "start", 600),
            line([(x + 66, 250), (716, 250), (716, 237)], GREEN, 2.5),
            text(x + 100, 264, "cᵢ", 14, GREEN, weight=600),
            numbered(752, 220, "concatenate, tanh", 4, LEARNED, width=140, learned=True),
            line([(744, 204), (744, 136)], INK, 2), text(732, 182, "s̃ᵢ", 15, INK, "end", 600),
            line([(744, 170), (834, 170)], INK, 2, dashed=True),
            text(792, 184, "to the next step", 11, FAINT),
            numbered(744, 120, "predict yᵢ", 5, LEARNED, width=120, learned=True)]


def two_orders():
    return page(860, 620, heading("Bahdanau attends before computing the new state, Luong afterwards",
                                  "Read from the bottom up. The numbers mark the five steps; a bold outline marks what "
                                  "is learned."),
                frame(18, 76, 404, 526, label="Bahdanau"), frame(438, 76, 404, 526, label="Luong"),
                *bahdanau(146), *luong(566),
                title="Bahdanau's attention beside Luong's",
                description="In Bahdanau's decoder the old state is scored, and the context enters the new state. "
                            "In Luong's the new state is scored, the context joins it afterwards, and the "
                            "attentional state is fed back into the next step.")


# ---------------------------------------------------------------- links between words

KOREAN = [("그들", "they"), ("은", "TOPIC"), ("고양이", "cat"), ("이다", "is")]
SURE, POSSIBLE, WRONG = [(0, 0), (2, 2), (3, 1)], [(1, 0)], [(1, 1)]    # links (i, j): i Korean, j English


def alignment(x, name, solid, dashed=(), wrong=()):
    """The sentence over its translation, joined by links."""
    above, below = [x + 70, x + 170, x + 270], [x + 30, x + 120, x + 220, x + 320]
    parts = [text(x, 84, name, 14, INK, "start", 600)]
    for joined, colour in ((dashed, FAINT), (solid, GREEN), (wrong, RED)):
        parts += [line([(below[i], 222), (above[j], 138)], colour, 2.5, head=False, dashed=joined is dashed)
                  for i, j in joined]
    parts += [token(place, 122, word, width=66) for place, word in zip(above, WORDS, strict=True)]
    for place, (word, gloss) in zip(below, KOREAN, strict=True):
        parts += [token(place, 238, word, width=66), text(place, 266, gloss, 12, FAINT, italic=True)]
    return parts


def links():
    return page(860, 384, heading("Counting the links of one sentence"),
                *alignment(40, "Gold: sure links solid, possible ones dashed", SURE, POSSIBLE),
                *alignment(470, "Predicted: four links, one of them wrong (red)", SURE, wrong=WRONG),
                text(40, 304, "S = 3 sure links;  P = 4 links that are sure or possible", 13, FAINT, "start"),
                text(470, 304, "A = 4 predicted links;  3 of them are in S, 3 are in P", 13, FAINT, "start"),
                text(430, 346, "AER = 1 − (3 + 3) / (4 + 3) = 0.14", 17, INK, weight=600),
                title="Gold and predicted links of 'They are cats'",
                description="The gold alignment has three sure links and a possible one; the prediction links the "
                            "topic particle to 'are', which is wrong. The alignment error rate is 0.14.")


DRAWINGS = {"04_bahdanau_step": bahdanau_step, "04_links": links, "04_two_orders": two_orders}

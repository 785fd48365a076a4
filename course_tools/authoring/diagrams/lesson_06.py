"""The block of a batch and which of its cells each norm averages over; running statistics; the norms in time."""

import itertools

from .kit import (
    FAINT,
    GREY,
    INK,
    PURPLE,
    RED,
    arrow,
    box,
    frame,
    heading,
    line,
    lines,
    page,
    rectangle,
    shade,
    text,
)

SENTENCES = ["they are cats".split(), "I am a student".split(), "Minsu likes cats".split()]
B, N, D = 3, 4, 5
ROWS = [word for words in SENTENCES for word in [*words, "pad", "pad"][:N]]
EDGE, PALE, LEARNED = "#b8c0ca", "#eef0f4", "#f3f4f6"
INDEX = "₀₁₂₃₄₅"


def polygon(points, fill):
    path = " L ".join(f"{x:g} {y:g}" for x, y in points)
    return f"<path d='M {path} Z' fill='{fill}' stroke='{EDGE}' stroke-width='1'/>"


# ---------------------------------------------------------------- the block

def block(x, y, chosen, cell=30, over=19, up=14):
    """The block (B, n, d), seen from the front.  chosen(b, i, j): whether a cell belongs to the group.

    x, y: the upper left corner of the front, which is the first sentence.  over, up: one sentence further back.
    """
    colour = lambda b, i, j, light: shade(light, PURPLE) if chosen(b, i, j) else "white"
    parts = [polygon([(x + cell * j, y + cell * i), (x + cell * (j + 1), y + cell * i),
                      (x + cell * (j + 1), y + cell * (i + 1)), (x + cell * j, y + cell * (i + 1))], colour(0, i, j, .62))
             for i, j in itertools.product(range(N), range(D))]
    for b, j in itertools.product(range(B), range(D)):
        left, right, top = x + cell * j + over * b, x + cell * (j + 1) + over * b, y - up * b
        parts.append(polygon([(left, top), (right, top), (right + over, top - up), (left + over, top - up)],
                             colour(b, 0, j, .4)))
    for b, i in itertools.product(range(B), range(N)):
        side, top = x + cell * D + over * b, y + cell * i - up * b
        parts.append(polygon([(side, top), (side + over, top - up), (side + over, top - up + cell), (side, top + cell)],
                             colour(b, i, D - 1, .8)))
    return [*parts, text(x + cell * D / 2, y + cell * N + 16, "d features", 13, FAINT),
            text(x - 10, y + cell * N / 2 - 9, "n", 13, FAINT, "end"),
            text(x - 10, y + cell * N / 2 + 9, "positions", 13, FAINT, "end"),
            text(x + cell * D + over * B / 2 + 14, y + cell * N - 4, "B sentences", 13, FAINT, "start")]


def table(x, y, chosen, cell=28, high=21):
    """The same block as a table of B n rows, with its words.  chosen(row, j)."""
    parts = []
    for row, word in enumerate(ROWS):
        top, padding = y + high * row + 6 * (row // N), word == "pad"
        parts.append(text(x - 10, top + high / 2, word, 13, GREY if padding else INK, "end", italic=padding))
        for j in range(D):
            fill = shade(.62, PURPLE) if chosen(row, j) else PALE if padding else "white"
            parts.append(rectangle(x + cell * j, top, cell, high, fill, EDGE, 1, 0))
    return parts


def groups():
    """Batch norm beside layer norm: the group of one mean and one variance, in the block and in the table."""
    left, right, top = 118, 548, 344
    parts = [heading("Which numbers share a mean and a variance?", "A batch of B = 3 sentences, n = 4 positions, "
                            "d = 5 features. Purple: one group."),
             frame(18, 76, 402, 584), frame(440, 76, 402, 584),
             text(36, 100, "Batch norm", 17, INK, "start", 600), text(458, 100, "Layer norm", 17, INK, "start", 600),
             text(36, 124, "one feature, over all positions of all sentences", 13, FAINT, "start"),
             text(458, 124, "one position of one sentence, over all features", 13, FAINT, "start"),
             *block(left, 188, lambda b, i, j: j == 2), *block(right, 188, lambda b, i, j: b == 0 and i == 2),
             *table(left, top, lambda row, j: j == 2), *table(right, top, lambda row, j: row == 2)]
    bottom = top + 12 * 21 + 12
    parts += [line([(left + 70, bottom), (left + 70, bottom + 20), (338, bottom + 20), (338, 492)], PURPLE, 2),
              statistics(338, 466), text(338, 372, "5 groups", 14, PURPLE, weight=600),
              lines(338, 396, ["12 numbers each,", "padding included"], anchor="middle"),
              line([(right + 140, top + 52), (722, top + 52), (768, top + 52), (768, 440)], PURPLE, 2),
              statistics(768, 466), text(768, 514, "12 groups", 14, PURPLE, weight=600),
              lines(768, 538, ["5 numbers each"], anchor="middle")]
    return page(860, 676, *parts, title="The groups of batch norm and layer norm",
                description="In a block of 3 sentences, 4 positions and 5 features, batch norm takes one mean and variance "
                            "from a whole column, layer norm from a single row.")


def statistics(x, y, label="μ, σ²", colour=PURPLE, dashed=False):
    return (rectangle(x - 40, y - 20, 80, 40, "white", colour, 2, 8, dashed)
            + text(x, y, label, 17, colour, weight=600))


# ---------------------------------------------------------------- two modes

def grid(x, y, rows, chosen, columns=3, cell=24):
    """A small (rows, columns) table.  chosen(i, j): the cells of the group."""
    return [rectangle(x + cell * j, y + cell * i, cell, cell, shade(.62, PURPLE) if chosen(i, j) else "white", EDGE, 1, 0)
            for i, j in itertools.product(range(rows), range(columns))]


def mode(x, rows, name, note):
    """The way of a batch of `rows` rows through batch norm, from left to right at the height 200."""
    top = 200 - 12 * rows
    return [frame(x, 76, 402, 330), text(x + 18, 100, name, 17, INK, "start", 600),
            text(x + 18, 124, note, 13, FAINT, "start"),
            *grid(x + 30, top, rows, lambda i, j: rows > 1 and j == 1), arrow(x + 108, 200, x + 146, 200),
            box(x + 202, 200, "normalise", LEARNED, width=108, height=40), arrow(x + 258, 200, x + 294, 200),
            *grid(x + 300, top, rows, lambda i, j: False),
            rectangle(x + 30, 336, 150, 46, "white", INK, 2, 8), text(x + 105, 359, "running μ, σ²", 15, INK, weight=600)]


def modes():
    """Batch norm in training mode and in eval mode: whose mean and variance it uses."""
    left, right = 18, 440
    parts = [heading("Batch norm is two functions in one", "One column of the batch is followed here; every column has "
                            "a mean and a variance of its own."),
             *mode(left, 4, "Training mode", "the statistics of this batch"),
             *mode(right, 1, "Eval mode", "the stored statistics; a row may come alone"),
             line([(left + 66, 249), (left + 66, 270)], PURPLE, 2),
             rectangle(left + 30, 272, 80, 34, "white", PURPLE, 2), text(left + 70, 289, "μ, σ²", 16, PURPLE, weight=600),
             line([(left + 111, 289), (left + 202, 289), (left + 202, 222)], PURPLE, 2),
             line([(left + 70, 307), (left + 70, 334)], INK, 1.6, dashed=True),
             lines(left + 192, 350, ["a tenth of each batch's", "μ and σ² is mixed in"]),
             line([(right + 181, 359), (right + 202, 359), (right + 202, 222)], INK, 2),
             lines(right + 216, 318, ["used,", "and not changed"])]
    return page(860, 424, *parts, title="Batch norm in training mode and in eval mode",
                description="In training batch norm uses the batch's mean and variance and mixes a tenth of them into stored "
                            "ones. In eval mode it uses the stored ones and changes nothing.")


# ---------------------------------------------------------------- in time

STEPS, WIDE = 5, 156


def lane(y, name, note, chosen):
    """The sums of three sentences at each step: a (3, 5) table, and the recurrence from step to step."""
    parts = [text(30, y, name, 17, INK, "start", 600), text(30, y + 24, note, 13, FAINT, "start")]
    for t in range(STEPS):
        x = place(t) - 50
        parts += grid(x, y + 50, 3, chosen, columns=5, cell=20)
        if t < STEPS - 1:
            parts.append(arrow(x + 104, y + 80, x + WIDE - 4, y + 80, FAINT))
    return parts


def place(t):
    """The middle of step t, counted from 0."""
    return 118 + WIDE * t


def in_time():
    """Batch norm with one stored pair for each step beside layer norm, which stores nothing."""
    upper, lower = 132, 364
    parts = [heading("The two norms inside an RNN", "At each step: 3 sentences (rows), 5 features (columns). "
                            "Training had four steps; the fifth is new."),
             rectangle(place(4) - 72, 74, 144, 500, "#fdf1ef", "none", 0, 12), text(place(4), 96, "step 5: new", 14, RED, weight=600)]
    parts += [text(place(t), 96, f"step {t + 1}", 14, FAINT, weight=600) for t in range(4)]
    parts += lane(upper, "Batch norm", "one feature at this step, over the sentences", lambda i, j: j == 2)
    parts += lane(lower, "Layer norm", "one sentence at this step, over the features", lambda i, j: i == 1)
    for t in range(STEPS):
        x, known = place(t), t < STEPS - 1
        label = f"μ{INDEX[t + 1]}, σ{INDEX[t + 1]}²" if known else "none"
        parts += [line([(x, upper + 111), (x, upper + 138)], PURPLE if known else RED, 2, dashed=not known),
                  statistics(x, upper + 160, label, PURPLE if known else RED, not known),
                  line([(x + 50, lower + 80), (x + 66, lower + 80), (x + 66, lower + 160), (x + 42, lower + 160)], PURPLE, 2),
                  statistics(x, lower + 160, "μ, σ²")]
    parts += [text(30, upper + 200, "stored for eval mode, a pair for each step", 13, PURPLE, "start"),
              text(30, lower + 200, "computed at once from the sentence itself, nothing stored", 13, PURPLE, "start")]
    return page(860, 590, *parts, title="Batch norm and layer norm inside a recurrent network",
                description="Batch norm stores a mean and a variance for each of four training steps and has none for the "
                            "fifth. Layer norm computes its own at every step.")


DRAWINGS = {"06_groups": groups, "06_modes": modes, "06_time": in_time}

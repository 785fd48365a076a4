"""Positional encoding: a position as the hands of clocks, and the axis along which the table is added."""

import math

from .kit import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    RED,
    arrow,
    frame,
    heading,
    lines,
    matrix,
    page,
    rectangle,
    sign,
    text,
    token,
)

HANDS = [BLUE, ORANGE, GREEN, PURPLE]
POSITIONS, D_MODEL = 8, 16
SENTENCES = ["the dog bit a man".split(), "a man bit the dog".split()]
EMBEDDINGS = {"the": (.15, .5, .3, .1), "dog": (.6, .2, .45, .35), "bit": (.3, .1, .6, .5),
              "a": (.1, .4, .2, .3), "man": (.5, .55, .15, .4)}


def angle(position, pair):
    return position / 10000 ** (2 * pair / D_MODEL)


def hand(x, y, radius, turned, colour, width=2.5):
    """A clock with one hand, turned clockwise from the top by an angle in radians."""
    tip = x + radius * math.sin(turned), y - radius * math.cos(turned)
    return (f"<circle cx='{x:g}' cy='{y:g}' r='{radius:g}' fill='white' stroke='#c5ccd3' stroke-width='1.2'/>"
            f"<path d='M {x:g} {y:g} L {tip[0]:.1f} {tip[1]:.1f}' stroke='{colour}' stroke-width='{width:g}'"
            " stroke-linecap='round'/>"
            f"<circle cx='{tip[0]:.1f}' cy='{tip[1]:.1f}' r='{width + 1:g}' fill='{colour}'/>")


def clock_hands():
    parts = [heading("Every position is a set of clock hands, and each hand has its own speed",
                     "The four fastest of the eight hands for d_model = 16, at the first eight positions.")]
    left, step, top, down = 176, 58, 122, 60
    for position in range(POSITIONS):
        x = left + step * position
        parts.append(text(x, top - 40, str(position), 14, INK, weight=600))
        parts += [hand(x, top + down * pair, 22, angle(position, pair), HANDS[pair]) for pair in range(4)]
    parts.append(text(30, top - 40, "position", 14, INK, "start", 600))
    for pair, words in enumerate(["once round in 6.3", "in 20", "in 63", "in 199 positions"]):
        parts += [text(30, top + down * pair - 8, f"pair {pair}", 14, HANDS[pair], "start", 600),
                  text(30, top + down * pair + 10, words, 12, FAINT, "start")]
    parts += one_hand(726, 190)
    return page(860, 350, *parts, title="A position as clock hands",
                description="Four rows of clocks at the positions 0 to 7. All hands point up at position 0. The "
                            "first turns fast, each next one more slowly. On the right one hand, enlarged: its tip "
                            "has the coordinates sine and cosine of the angle.")


def one_hand(x, y):
    """What is stored of a hand: where its tip is."""
    radius, turned = 74, 0.9
    tip_x, tip_y = x + radius * math.sin(turned), y - radius * math.cos(turned)
    dashes = (f"<path d='M {tip_x:.1f} {tip_y:.1f} V {y:g} M {tip_x:.1f} {tip_y:.1f} H {x:g}'"
              f" stroke='{FAINT}' stroke-width='1.2' stroke-dasharray='4 4' fill='none'/>")
    axes = f"<path d='M {x:g} {y - radius - 8:g} V {y:g} H {x + radius + 8:g}' stroke='#c5ccd3' fill='none'/>"
    bow = (f"<path d='M {x:g} {y - 26:g} A 26 26 0 0 1 {x + 26 * math.sin(turned):.1f}"
           f" {y - 26 * math.cos(turned):.1f}' stroke='{FAINT}' fill='none'/>")
    return [text(x, 82, "one hand: its tip is stored", 14, INK, weight=600),
            hand(x, y, radius, turned, BLUE, 3.5), axes, dashes, bow, text(x + 17, y - 33, "φ", 13, FAINT),
            text(x + radius * math.sin(turned) / 2, y + 13, "sin φ", 13, BLUE, weight=600),
            text(x - 8, tip_y, "cos φ", 13, BLUE, "end", 600),
            text(x, y + 98, "two columns: (sin φ, cos φ)", 13, INK),
            text(x, y + 118, "φ = position × speed", 13, FAINT)]


# ---------------------------------------------------------------- along which axis

def strip(x, y, values, colour):
    """A vector of four cells, centred on (x, y)."""
    return matrix(x - 32, y - 8, [values], colour, 16)


def encoding(position):
    """PE(position) for d_model = 4, moved from [-1, 1] to [0, 1] for its shades."""
    found = [f(position / 10000 ** (2 * i / 4)) for i in range(2) for f in (math.sin, math.cos)]
    return [0.08 + 0.42 * (1 + value) for value in found]


def sentence(y, words, number, below=1, left=170, step=100):
    """The tokens of a sentence and the embedding of each, below (1) or above it (-1)."""
    parts = [text(30, y + 14 * below, f"sentence {number}", 14, INK, "start", 600)]
    for position, word in enumerate(words):
        x = left + step * position
        parts += [token(x, y, word, width=60), strip(x, y + 32 * below, EMBEDDINGS[word], GREY)]
    return parts


def added():
    left, step = 170, 100
    parts = [heading("The encoding belongs to the place in the sentence, not to the row of the batch"),
             text(30, 74, "right", 16, GREEN, "start", 700),
             text(86, 74, "PE (n, d_model): row 0 is added to every first word, row 1 to every second word, ...",
                  13, FAINT, "start")]
    parts += sentence(110, SENTENCES[0], 0) + sentence(302, SENTENCES[1], 1, -1)
    parts.append(text(30, 196, "PE", 15, PURPLE, "start", 600))
    for position in range(5):
        x = left + step * position
        parts += [strip(x, 196, encoding(position), PURPLE), text(x, 217, f"PE({position})", 12, PURPLE),
                  arrow(x, 186, x, 154, PURPLE, 2), arrow(x, 227, x, 252, PURPLE, 2), sign(x + 14, 171, "+", PURPLE, 8),
                  sign(x + 14, 240, "+", PURPLE, 8)]
    parts += [rectangle(672, 100, 160, 218, "white", "#e4e7eb", 1.2, 10),
              lines(684, 122, ["dog and man stand", "at other places in", "the second sentence,", "so they get other",
                               "vectors than in", "the first."], 13, INK),
              lines(684, 250, ["The table is the same", "for every sentence", "of the batch."], 13, FAINT)]
    parts += wrong(360)
    return page(860, 560, *parts, title="Along which axis the encoding is added",
                description="Above, the right way: each of the two sentences gets the same five rows of the table, "
                            "one for each place. Below, the wrong way: all words of the first sentence get row 0, all "
                            "words of the second one get row 1.")


def wrong(top, left=170, step=100):
    parts = [frame(16, top, 828, 184, RED), text(30, top + 24, "wrong", 16, RED, "start", 700),
             text(96, top + 24, "along the batch: sentence 0 gets row 0 in all of its words, sentence 1 gets row 1",
                  13, FAINT, "start")]
    for number, words in enumerate(SENTENCES):
        y = top + 62 + 66 * number
        parts.append(text(30, y + 14, f"sentence {number}", 14, INK, "start", 600))
        for position, word in enumerate(words):
            x = left + step * position
            parts += [token(x, y, word, width=60), strip(x, y + 30, encoding(number), PURPLE)]
        parts.append(text(left + 4 * step + 52, y + 30, f"PE({number}) in every word", 13, RED, "start"))
    return parts


DRAWINGS = {"10_clock_hands": clock_hands, "10_added": added}

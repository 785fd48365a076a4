"""The blocks of the Transformer: one vector's path through a block, the two blocks in full, post-norm beside
pre-norm, and the block of current language models.

All are read from the bottom up, and the thick grey line is the residual stream of lesson 07.  The numbers of
the vector are those that lesson 11 computes by hand for the word 'cats'.
"""

from .kit import (
    FAINT,
    INK,
    KEY,
    PURPLE,
    QUERY,
    VALUE,
    arrow,
    box,
    frame,
    heading,
    line,
    lines,
    page,
    plus,
    sign,
    step,
    text,
    token,
)
from .lesson_07 import NORM, stream, vector

ATTENTION, FEED_FORWARD = "#e3eefa", "#fdf1dc"
OWN = [("Q", QUERY, -50), ("K", KEY, 0), ("V", VALUE, 50)]      # name, colour, place under the box


# ---------------------------------------------------------------- one vector travelling through a block
CATS, VALUES, WEIGHTS = (2, 0, 1, 1), [(0, 2, 2, 0), (4, 0, 0, 0), (0, 0, 4, 0)], ["½", "¼", "¼"]
ATTENDED, SUM_1, NORMED_1 = (1, 1, 2, 0), (3, 1, 3, 1), (1, -1, 1, -1)
BEFORE_RELU, AFTER_RELU = (2, -2, -1, 1, -1, -2), (2, 0, 0, 1, 0, 0)
ADDED, SUM_2, NORMED_2 = (2, 4, -2, 0), (3, 3, -1, -1), (1, 1, -1, -1)
PLACES, STREAM, MIDDLE = [80, 204, 328], 506, 204      # of the three values; of cats' stream; of a sub-layer


def strip(x, y, values, colour=FAINT):
    return vector(x, y, values, colour, 28, 30)


def add_and_norm(y, added, before, after):
    """At height y: what is added, the plus, the sum, the norm, and what comes out of it."""
    return [line([(MIDDLE, y + 32), (MIDDLE, y), (STREAM - 13, y)], INK, 2), strip(330, y, added, INK), plus(STREAM, y),
            strip(STREAM, y - 46, before), box(STREAM, y - 92, "norm", NORM, PURPLE, 100, 32, learned=True, size=17),
            strip(STREAM, y - 138, after),
            text(442, y - 138, "after the norm", 15, FAINT, "end")]


def attending(y):
    """The values of all three words, weighted and summed; y: of the plus."""
    parts = [frame(14, y - 62, 418, 290), step(36, y - 40, 1),
             text(54, y - 40, "Attention reads all positions.", 17, INK, "start", 600),
             box(MIDDLE, y + 50, "weighted average", ATTENTION, width=340, height=36, size=17)]
    for x, word, values, weight in zip(PLACES, ("they", "are", "cats"), VALUES, WEIGHTS, strict=True):
        parts += [arrow(x, y + 148, x, y + 70, VALUE, 2), text(x + 12, y + 110, f"× {weight}", 18, VALUE, "start", 600),
                  strip(x, y + 164, values, VALUE), text(x, y + 192, f"value of {word}", 15, VALUE)]
    for x, word in zip(PLACES, ("they", "are"), strict=False):
        parts += [token(x, y + 320, word, width=74, size=18), line([(x, y + 304), (x, y + 204)], VALUE, 2)]
    return [*parts, line([(STREAM - 6, y + 216), (PLACES[2], y + 216), (PLACES[2], y + 204)], VALUE, 2),
            strip(STREAM, y + 262, CATS), token(STREAM, y + 320, "cats", width=74, size=18)]


def alone(y):
    """W_1, ReLU, W_2; y: of the plus."""
    return [frame(14, y - 62, 418, 324), step(36, y - 40, 2),
            text(54, y - 40, "Feed-forward reads this position only.", 17, INK, "start", 600),
            box(MIDDLE, y + 49, "W₂", FEED_FORWARD, width=190, height=34, learned=True, size=18),
            arrow(MIDDLE, y + 84, MIDDLE, y + 68, INK, 2), strip(MIDDLE, y + 100, AFTER_RELU, INK),
            arrow(MIDDLE, y + 144, MIDDLE, y + 117, INK, 2), text(MIDDLE + 12, y + 131, "ReLU", 16, INK, "start"),
            strip(MIDDLE, y + 160, BEFORE_RELU, INK), arrow(MIDDLE, y + 192, MIDDLE, y + 177, INK, 2),
            box(MIDDLE, y + 210, "W₁", FEED_FORWARD, width=190, height=34, learned=True, size=18),
            line([(STREAM - 6, y + 246), (MIDDLE, y + 246), (MIDDLE, y + 229)], INK, 2)]


def one_vector():
    return page(600, 1062, heading("One vector's path through an encoder block",
                                   "Follow cats from the bottom up, along the grey residual stream."),
                lines(30, 112, ["The vectors of they and are go", "through the same weights, each", "on its own stream."], 15),
                stream(STREAM, 1014, STREAM, 76), *attending(712), *alone(290),
                *add_and_norm(712, ATTENDED, SUM_1, NORMED_1), *add_and_norm(290, ADDED, SUM_2, NORMED_2),
                title="One vector's path through an encoder block",
                description="The vector of cats starts as (2, 0, 1, 1). Attention reads the values of they, are and cats "
                            "and adds (1, 1, 2, 0); a norm follows. The feed-forward network reads this position only, "
                            "with six hidden dimensions and a ReLU, and adds (2, 4, -2, 0); a norm follows.")


# ---------------------------------------------------------------- blocks in full

def sub_layer(x, middle, y, label, fill, inputs=(), post=True):
    """A sub-layer centred on `middle` whose branch leaves the stream at (x, y): arrows in, box, plus, norm."""
    side = 1 if middle > x else -1
    foot, low = (y, y - 44) if post else (y - 66, y - 104)      # where the arrows part; the box's lower edge
    parts = [] if post else [line([(x + 6 * side, y), (middle, y), (middle, y - 18)], INK, 2), norm(middle, y - 34),
                             line([(middle, y - 50), (middle, low + 2)], INK, 2)]
    elsewhere = [place for _, _, place in inputs] or [0]
    far = max(elsewhere, key=lambda place: side * place)
    if post:
        parts += [line([(x + 6 * side, foot), (middle + far, foot), (middle + far, low + 2)], INK, 2)]
    elif inputs:
        parts += [line([(middle, foot), (middle + place, foot), (middle + place, low)], INK, 2, False) for place in (-50, 50)]
    for name, colour, place in inputs:
        parts += [line([(middle + place, foot - 8), (middle + place, low + 2)], colour, 2.4),
                  text(middle + place + 7, low + 17, name, 16, colour, "start", 700)]
        parts += [line([(middle + place, foot), (middle + place, foot - 9)], INK, 2, False)] * (place != far and post)
    parts += [line([(middle, low - 56), (middle, low - 80), (x + 13 * side, low - 80)], INK, 2), plus(x, low - 80),
              box(middle, low - 28, "", fill, INK, 170, 56, learned=True)]
    parts += [text(middle, low - 28 + 22 * (number - (len(label) - 1) / 2), words, 18)
              for number, words in enumerate(label)]
    return [*parts, norm(x, low - 122)] if post else parts


def norm(x, y):
    return box(x, y, "norm", NORM, PURPLE, 100, 32, learned=True, size=17)


def both_blocks():
    left, right, bottom = 84, 596, 760
    parts = [heading("Encoder block and decoder block", "Read from the bottom up. Grey is the residual stream."),
             frame(20, 320, 284, 470), frame(376, 114, 284, 676),
             text(104, 344, "encoder block", 17, FAINT, "start", 600), text(392, 138, "decoder block", 17, FAINT, "start", 600),
             text(266, 344, "× N", 17, FAINT, weight=600), text(622, 138, "× N", 17, FAINT, weight=600),
             stream(left, 824, left, 262), stream(right, 824, right, 84),
             text(left, 846, "source tokens", 17, INK, weight=600), text(left, 868, "with positions", 15, FAINT),
             text(right - 20, 846, "previous tokens", 17, INK, weight=600), text(right - 20, 868, "with positions", 15, FAINT),
             *sub_layer(left, 206, bottom, ["self-attention"], ATTENTION, OWN),
             *sub_layer(left, 206, bottom - 206, ["feed-forward"], FEED_FORWARD),
             *sub_layer(right, 474, bottom, ["masked", "self-attention"], ATTENTION, OWN[::-1]),
             *sub_layer(right, 474, bottom - 206, ["cross-attention"], ATTENTION, [("Q", QUERY, 50)]),
             *sub_layer(right, 474, bottom - 412, ["feed-forward"], FEED_FORWARD),
             *[text(30, y, words, 16, INK, "start") for y, words in
               [(160, "The memory is the output of the last"), (184, "encoder block. All decoder blocks read it.")]],
             text(left, 244, "memory", 17, INK, weight=600)]
    for name, colour, place, way in [("K", KEY, 0, 352), ("V", VALUE, -50, 340)]:
        foot, start = (bottom - 206 + (10 if name == "K" else 0)), 226 + (-3 if name == "V" else 4)
        parts += [line([(left + 40, start + 16), (way, start + 16), (way, foot), (474 + place, foot), (474 + place, 512)], colour, 2),
                  text(474 + place + 7, 527, name, 16, colour, "start", 700)]
    return page(680, 892, *parts, title="An encoder block and a decoder block in full, post-norm",
                description="Each sub-layer reads from the residual stream, its result is added to the stream, and a norm "
                            "follows. The decoder block has a masked self-attention, a cross-attention with Q from the "
                            "decoder and K and V from the memory, and a feed-forward network.")


def norms():
    """The encoder block twice, with the norm on the stream and on the branch."""
    parts = [heading("Encoder block: post-norm and pre-norm", "Read from the bottom up.")]
    for x, name, formula, post, high in [(70, "Post-norm (2017)", "norm(x + f(x))", True, 206),
                                         (380, "Pre-norm (later)", "x + f(norm(x))", False, 226)]:
        parts += [frame(x - 58, 76, 300, 552), text(x + 92, 104, name, 18, INK, weight=600),
                  text(x + 92, 130, formula, 18, PURPLE), stream(x, 652, x, 146), *sub_layer(x, x + 132, 600, ["self-attention"], ATTENTION, OWN, post),
                  *sub_layer(x, x + 132, 600 - high, ["feed-forward"], FEED_FORWARD, post=post)]
    return page(640, 676, *parts, title="The encoder block with post-norm, and with pre-norm",
                description="Left, post-norm: after each plus, the stream itself passes through a norm. Right, pre-norm: each "
                            "sub-layer reads a normalised copy, and nothing but the two sums is done to the stream.")


# ---------------------------------------------------------------- since then

def gate(x, y):
    """SwiGLU, upward: W_1 and silu beside W_3, their product, W_2.  x: of the middle, y: of the input."""
    left, right = x - 74, x + 74
    parts = [line([(x, y), (x, y - 34), (left, y - 34), (left, y - 66)], INK, 2),
             line([(x, y - 34), (right, y - 34), (right, y - 66)], INK, 2), text(x + 14, y - 12, "d_model", 15, FAINT, "start"),
             line([(left, y - 106), (left, y - 142)], INK, 2), line([(left, y - 182), (left, y - 224), (x - 15, y - 224)], INK, 2),
             line([(right, y - 106), (right, y - 224), (x + 15, y - 224)], INK, 2), sign(x, y - 224, "×", INK, 14),
             line([(x, y - 239), (x, y - 276)], INK, 2), text(right + 10, y - 166, "d_ff", 15, FAINT, "start"),
             line([(x, y - 316), (x, y - 352)], INK, 2), text(x + 14, y - 334, "d_model", 15, FAINT, "start"),
             text(left, y - 246, "gate", 16, PURPLE, weight=600), text(right, y - 246, "value", 16, PURPLE, weight=600)]
    for place, height, name, learned in [(left, 86, "W₁", True), (right, 86, "W₃", True), (left, 162, "silu", False), (x, 296, "W₂", True)]:
        parts.append(box(place, y - height, name, FEED_FORWARD if learned else "white", width=96, height=38, learned=learned, size=18))
    return parts


def since():
    x, bottom = 70, 560
    return page(640, 636, heading("A block of a current language model", "Decoder-only: no memory, no cross-attention."),
                frame(12, 76, 300, 512), stream(x, 612, x, 92), text(292, 106, "× N", 17, FAINT, "end", 600),
                *sub_layer(x, x + 132, bottom, ["causal", "self-attention"], ATTENTION, OWN, False),
                *sub_layer(x, x + 132, bottom - 226, ["SwiGLU"], FEED_FORWARD, post=False),
                frame(340, 76, 288, 512), text(484, 106, "inside the SwiGLU", 18, INK, weight=600), *gate(484, 520),
                line([(290, 200), (338, 130)], FAINT, 1.4, False, True), line([(290, 230), (338, 540)], FAINT, 1.4, False, True),
                title="A decoder-only block with a SwiGLU, pre-norm",
                description="Left, the block: a causal self-attention and a SwiGLU, each reading a normalised copy of the "
                            "stream. Right, inside the SwiGLU: W1 x goes through silu and gates W3 x; W2 leads back.")


DRAWINGS = {"11_blocks": both_blocks, "11_norms": norms, "11_since": since, "11_vector": one_vector}

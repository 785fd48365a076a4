"""The residual stream, the two places for the norm, and the paths through three blocks.

`stream` and `branch` draw the residual stream with a block on it; later lessons draw theirs with them.  The
numbers are those that lesson 07 computes by hand for the word 'cats'.
"""

import itertools

from .kit import (
    FAINT,
    INK,
    LEARNED,
    PURPLE,
    RESIDUAL,
    box,
    frame,
    grid,
    heading,
    line,
    page,
    plus,
    rectangle,
    shade,
    text,
    token,
)

NORM = "#efe9f8"
STREAM = [(2, 1), (1, 3), (-1, 3)]      # x_0, x_1, x_2 of 'cats'
ADDED = [(-1, 2), (-2, 0)]              # f_1(x_0), f_2(x_1)


def vector(x, y, values, colour, cell=34, height=28):
    """A strip of cells with whole numbers, centred on (x, y)."""
    return grid(x - cell * len(values) / 2, y - height / 2, [values], colour, cell, height, full=5, size=15)


def stream(x1, y1, x2, y2, width=9):
    """The residual stream: a thick grey line with a head, straight across or straight up."""
    dx, dy = (x2 > x1) - (x2 < x1), (y2 > y1) - (y2 < y1)
    head = f"{x2:g},{y2:g} {x2 - 16 * dx - 10 * dy:g},{y2 - 16 * dy - 10 * dx:g} " \
           f"{x2 - 16 * dx + 10 * dy:g},{y2 - 16 * dy + 10 * dx:g}"
    return (f"<path d='M {x1:g} {y1:g} L {x2 - 12 * dx:g} {y2 - 12 * dy:g}' stroke='{RESIDUAL}'"
            f" stroke-opacity='.5' stroke-width='{width}' fill='none'/>"
            f"<polygon points='{head}' fill='{RESIDUAL}' fill-opacity='.75'/>")


def branch(x, y, join, below, label, colour=INK):
    """A block that hangs under a stream at height y: reads at x, adds its result at `join`."""
    return "".join([line([(x, y + 5), (x, below), (x + 24, below)], colour, 2),
                    line([(join - 24, below), (join, below), (join, y + 13)], colour, 2),
                    box((x + join) / 2, below, label, LEARNED, colour, join - x - 50, 46, learned=True, size=16),
                    plus(join, y)])


def residual_stream():
    y, below = 150, 262
    reads, joins = [196, 496], [340, 640]
    places = [150, 430, 744]
    parts = [heading("The residual stream of the word 'cats'",
                     "A block reads the vector, computes its contribution, and the plus adds it to the stream."),
             stream(84, y, 836, y), token(52, y, "cats", width=60, size=16)]
    for number, (x, join, added) in enumerate(zip(reads, joins, ADDED, strict=True), start=1):
        name = "₀₁₂"[number - 1]
        parts += [branch(x, y, join, below, f"block {number}"),
                  text(x - 10, 208, "read", 13, FAINT, "end", italic=True),
                  text(join + 46, 238, "write", 13, FAINT, "start", italic=True),
                  vector(join + 4, 204, added, INK),
                  text(join + 46, 204, f"f{'₁₂'[number - 1]}(x{name})", 15, INK, "start", 600)]
    for number, (x, values) in enumerate(zip(places, STREAM, strict=True)):
        parts += [vector(x, y, values, RESIDUAL), text(x, y - 32, "x" + "₀₁₂"[number], 17, FAINT, weight=700)]
    parts += [text(430, 336, "x₂ = x₀ + f₁(x₀) + f₂(x₁):  (−1, 3) = (2, 1) + (−1, 2) + (−2, 0)", 17, INK, weight=600)]
    return page(860, 366, *parts, title="The residual stream of the word 'cats'",
                description="The stream starts with x0 = (2, 1). Block 1 reads it and adds (-1, 2), which gives "
                            "x1 = (1, 3). Block 2 reads x1 and adds (-2, 0), which gives x2 = (-1, 3).")


# ---------------------------------------------------------------- post-norm beside pre-norm

def upward(x, name, formula, remark, post):
    """One block on a stream that runs upward, with the norm on the stream (post) or on the branch."""
    bottom, top, side = 440, 96, x + 150
    parts = [frame(x - 110, 72, 390, 412, label=name), stream(x, bottom, x, top),
             text(x - 20, bottom - 8, "x", 17, FAINT, "end", 700, italic=True),
             text(x - 20, top + 12, "y", 17, FAINT, "end", 700, italic=True)]
    if post:
        parts += [line([(x + 5, 380), (side, 380), (side, 325)], INK, 2),
                  line([(side, 279), (side, 220), (x + 13, 220)], INK, 2),
                  box(x, 160, "norm", NORM, PURPLE, 110, 36, size=16), text(x + 66, 160, "on the stream", 15, PURPLE, "start")]
    else:
        parts += [line([(x + 5, 410), (side, 410), (side, 384)], INK, 2),
                  box(side, 364, "norm", NORM, PURPLE, 110, 36, size=16), line([(side, 346), (side, 305)], INK, 2),
                  line([(side, 259), (side, 190), (x + 13, 190)], INK, 2),
                  text(side, 430, "on the branch", 15, PURPLE)]
    middle = 302 if post else 282
    return [*parts, box(side, middle, "block f", LEARNED, INK, 130, 46, learned=True, size=16),
            plus(x, 220 if post else 190), text(x + 85, 510, formula, 17, INK, weight=600),
            text(x + 85, 536, remark, 13, FAINT)]


def pre_post():
    return page(860, 560, heading("Two places for the norm", "Read from the bottom up. The thick grey line is the "
                                                             "residual stream."),
                *upward(140, "Post-norm (2017)", "y = norm(x + f(x))", "every norm rescales all that is on the stream",
                        post=True),
                *upward(560, "Pre-norm (most models since)", "y = x + f(norm(x))", "the norm touches only what the block reads",
                        post=False),
                title="Post-norm beside pre-norm",
                description="In a post-norm block the stream itself runs through the norm after the plus. In a "
                            "pre-norm block the norm stands on the branch before the block, and the stream is free.")


# ---------------------------------------------------------------- the paths through three blocks

def path(y, through):
    """One path from x0 to x3.  through: for each of the three blocks, whether the path goes through it."""
    left, width, lift = 250, 118, 20
    way, blocks = [(left - 14, y)], []
    for number, taken in enumerate(through):
        x = left + width * number
        if not taken:
            way += [(x + 6, y), (x + 20, y - lift), (x + 82, y - lift), (x + 96, y)]
        fill, edge = (shade(0.3, PURPLE), PURPLE) if taken else ("white", "#c5ccd3")
        blocks += [rectangle(x + 24, y - 12, 54, 24, fill, edge, 2 if taken else 1.2, 5),
                   text(x + 51, y, "f" + "₁₂₃"[number], 14, INK if taken else "#8a94a0", weight=600 if taken else 400)]
    end = left + 3 * width
    points = " L ".join(f"{x:g} {height:g}" for x, height in [*way, (end + 2, y)])
    drawn = (f"<path d='M {points}' fill='none' stroke='{PURPLE}' stroke-width='2.6' stroke-linejoin='round'"
             f" marker-end='url(#head-{PURPLE[1:]})'/>")
    term = "g₃" + "".join(" J" + "₁₂₃"[number] for number in (2, 1, 0) if through[number])
    return [drawn, *blocks, text(left - 20, y, "x₀", 15, FAINT, "end", 600),
            text(end + 10, y, "x₃", 15, FAINT, "start", 600), text(706, y, term, 16, INK, "start")]


def paths():
    parts = [heading("Three blocks, 2³ = 8 paths", "At each block a path goes through it or past it. Its length is the "
                                                   "number of blocks it goes through."),
             text(706, 92, "gradient", 14, FAINT, "start", 600), text(34, 92, "length", 14, FAINT, "start", 600)]
    y = 130
    for length, group in itertools.groupby(sorted(itertools.product((False, True), repeat=3),
                                                  key=lambda way: (sum(way), [not taken for taken in way])), sum):
        ways = list(group)
        middle = y + 22 * (len(ways) - 1)
        parts += [text(52, middle, str(length), 22, INK, weight=700),
                  text(84, middle, f"{len(ways)} path" + "s" * (len(ways) > 1), 15, FAINT, "start")]
        for through in ways:
            parts += path(y, through)
            y += 44
        if length < 3:
            parts.append(line([(30, y - 10), (830, y - 10)], "#c5ccd3", 1, head=False, dashed=True))
            y += 26
    return page(860, y - 8, *parts, title="The eight paths through three residual blocks",
                description="One path passes all blocks, three go through one block, three through two, and one "
                            "through all three. Beside each stands its term of the gradient, from g3 to g3 J3 J2 J1.")


DRAWINGS = {"07_paths": paths, "07_pre_post": pre_post, "07_residual_stream": residual_stream}

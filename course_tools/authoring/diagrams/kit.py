"""The shapes of the course's diagrams: tokens, vectors, matrices, operations and arrows on a light card.

Every function returns SVG text, `page` puts the parts on a card.  Coordinates are in pixels at full width,
the origin at the upper left.  One visual language: tokens are rounded boxes, vectors are strips of cells,
matrices are grids with their shape beside them; queries blue, keys orange, values green, the residual stream
grey, what is learned has a bold outline.  Text stays text, so that it can be searched and translated.
"""

import itertools
import math
import re
from html import escape

INK, FAINT, CARD, EDGE = "#1f2933", "#5f6c7b", "#fbfbfd", "#e4e7eb"
BLUE, ORANGE, GREEN, GREY, RED = "#2f6fb0", "#b8650f", "#2a7d50", "#7f8b98", "#c0392b"
PURPLE = "#6d4aa8"      # what the picture is about, where none of the roles below fits
QUERY, KEY, VALUE, RESIDUAL = BLUE, ORANGE, GREEN, GREY
LEARNED = "#f3f4f6"     # the ground of a box whose weights are learned
# Fonts of the reader's system; the last name draws Hangul, "sans-serif" whatever is left.
FONT = "Inter, Helvetica Neue, Arial, DejaVu Sans, Apple SD Gothic Neo, Noto Sans KR, NanumGothic, sans-serif"


def text(x, y, words, size=14, colour=INK, anchor="middle", weight=400, italic=False):
    """One line of text, centred vertically on y.  anchor: start, middle or end."""
    style = " font-style='italic'" if italic else ""
    return (f"<text x='{x:g}' y='{y:g}' font-size='{size}' fill='{colour}' text-anchor='{anchor}'"
            f" font-weight='{weight}'{style} dominant-baseline='central'>{escape(words)}</text>")


def lines(x, y, words, size=13, colour=FAINT, anchor="start", leading=1.4):
    """Several lines of text, the first one centred on y."""
    return "".join(text(x, y + number * size * leading, line, size, colour, anchor)
                   for number, line in enumerate(words))


def rectangle(x, y, width, height, fill="white", stroke=INK, thickness=1.5, radius=8, dashed=False):
    """A rectangle with its upper left corner at (x, y)."""
    dash = " stroke-dasharray='5 5'" if dashed else ""
    return (f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' rx='{radius}' fill='{fill}'"
            f" stroke='{stroke}' stroke-width='{thickness:g}'{dash}/>")


def token(x, y, word, colour=INK, width=64, size=14):
    """A word: a rounded box centred on (x, y)."""
    return rectangle(x - width / 2, y - 15, width, 30, stroke=colour) + text(x, y, word, size, colour)


def box(x, y, label, fill="white", colour=INK, width=150, height=34, note="", learned=False, size=14):
    """An operation, centred on (x, y).  note: its shape or size, small, on its right."""
    drawn = rectangle(x - width / 2, y - height / 2, width, height, fill, colour, 3 if learned else 1.5)
    drawn += text(x, y, label, size)
    return drawn + (text(x + width / 2 + 8, y, note, 12, FAINT, "start") if note else "")


def shade(value, colour):
    """White at 0, the full colour at 1."""
    value = max(0.0, min(1.0, value))
    parts = [int(colour[start:start + 2], 16) for start in (1, 3, 5)]
    return "#" + "".join(f"{round(255 + (part - 255) * value):02x}" for part in parts)


def matrix(x, y, rows, colour, cell=22, name="", shape="", numbers="", learned=False):
    """A grid of values from 0 to 1, its upper left corner at (x, y); a vector is a matrix of one row.

    name: above it.  shape: below it.  numbers: a format such as ".2f" to print the values.
    """
    height, width = cell * len(rows), cell * len(rows[0])
    parts = []
    for (i, row), j in itertools.product(enumerate(rows), range(len(rows[0]))):
        parts.append(f"<rect x='{x + cell * j:g}' y='{y + cell * i:g}' width='{cell}' height='{cell}'"
                     f" fill='{shade(row[j], colour)}' stroke='{colour}' stroke-opacity='.45'/>")
        if numbers:
            parts.append(text(x + cell * (j + .5), y + cell * (i + .5), format(row[j], numbers), 11,
                              "white" if row[j] > .6 else INK))
    parts.append(rectangle(x, y, width, height, "none", colour, 3 if learned else 1.5, 2))
    if name:
        parts.append(text(x + width / 2, y - 13, name, 15, colour, weight=600))
    if shape:
        parts.append(text(x + width / 2, y + height + 14, shape, 12, FAINT))
    return "".join(parts)


def printed(value, digits=None):
    """A number as it is printed, with a true minus sign.  digits: after the point, for floats."""
    if value == -math.inf:
        return "−∞"
    whole = digits is None or isinstance(value, int)
    return (f"{value:g}" if whole else f"{value:.{digits}f}").replace("-", "−")


def grid(x, y, rows, colour=INK, cell=40, height=30, digits=None, full=None, size=13, faint=(), row=None,
         learned=False):
    """A matrix with its numbers, its upper left corner at (x, y).

    full: the number with the deepest shade, by default the largest one; 0 leaves all cells white.
    faint: numbers printed in grey.  row: the index of a row with a dark outline.
    """
    full = max(abs(value) for values in rows for value in values) if full is None else full
    parts = []
    for (i, values), j in itertools.product(enumerate(rows), range(len(rows[0]))):
        value = values[j]
        fill = shade(.06 + .5 * abs(value) / full, colour) if full and value != -math.inf else "white"
        parts += [rectangle(x + cell * j, y + height * i, cell, height, fill, colour, .7, 0),
                  text(x + cell * (j + .5), y + height * (i + .5), printed(value, digits), size,
                       GREY if value in faint else INK)]
    width = cell * len(rows[0])
    parts.append(rectangle(x, y, width, height * len(rows), "none", colour, 3.5 if learned else 1.8, 3))
    if row is not None:
        parts.append(rectangle(x - 3, y + height * row - 3, width + 6, height + 6, "none", INK, 2, 5))
    return "".join(parts)


def projection(x, y, letter, colour=INK, size=15, weight=400):
    """The name of a learned matrix: W with a raised letter, centred on (x, y)."""
    return (f"<text x='{x:g}' y='{y:g}' font-size='{size}' fill='{colour}' text-anchor='middle'"
            f" font-weight='{weight}' dominant-baseline='central'>W"
            f"<tspan dy='-5' font-size='{size - 4}'>{letter}</tspan></text>")


def arrow(x1, y1, x2, y2, colour=INK, width=1.5, label="", lift=9, bend=0):
    """From (x1, y1) to (x2, y2), its head at the end.  bend: raises the middle.  label: above it."""
    middle = f"Q {(x1 + x2) / 2:g} {(y1 + y2) / 2 - bend:g} " if bend else "L "
    drawn = (f"<path d='M {x1:g} {y1:g} {middle}{x2:g} {y2:g}' fill='none' stroke='{colour}'"
             f" stroke-width='{width:g}' marker-end='url(#head-{colour[1:]})'/>")
    if label:
        drawn += text((x1 + x2) / 2, (y1 + y2) / 2 - bend / 2 - lift, label, 12, FAINT)
    return drawn


def line(points, colour=INK, width=1.5, head=True, dashed=False):
    """A path through the points with rounded corners, an arrow head at its end."""
    path = f"M {points[0][0]:g} {points[0][1]:g}"
    for (x0, y0), (x1, y1), (x2, y2) in zip(points, points[1:], points[2:]):
        before, after = max(1, abs(x1 - x0) + abs(y1 - y0)), max(1, abs(x2 - x1) + abs(y2 - y1))
        radius = min(8, before / 2, after / 2)
        path += (f" L {x1 - (x1 - x0) / before * radius:.1f} {y1 - (y1 - y0) / before * radius:.1f}"
                 f" Q {x1:g} {y1:g}"
                 f" {x1 + (x2 - x1) / after * radius:.1f} {y1 + (y2 - y1) / after * radius:.1f}")
    path += f" L {points[-1][0]:g} {points[-1][1]:g}"
    marker = f" marker-end='url(#head-{colour[1:]})'" if head else ""
    dash = " stroke-dasharray='5 5'" if dashed else ""
    return f"<path d='{path}' fill='none' stroke='{colour}' stroke-width='{width:g}'{marker}{dash}/>"


def sign(x, y, symbol, colour=INK, radius=11):
    """A small operation in a circle: × (gate), + (sum), σ."""
    return (f"<circle cx='{x:g}' cy='{y:g}' r='{radius}' fill='white' stroke='{colour}' stroke-width='1.8'/>"
            + text(x, y, symbol, 15, colour, weight=600))


def plus(x, y):
    """The sum of a residual connection."""
    return (f"<circle cx='{x:g}' cy='{y:g}' r='10' fill='white' stroke='{RESIDUAL}' stroke-width='2'/>"
            f"<path d='M {x - 5:g} {y:g} H {x + 5:g} M {x:g} {y - 5:g} V {y + 5:g}' stroke='{RESIDUAL}'"
            " stroke-width='2'/>")


def step(x, y, number):
    """The number of a step, in a dark circle."""
    return (f"<circle cx='{x:g}' cy='{y:g}' r='10' fill='{INK}'/>"
            + text(x, y, str(number), 12, "white", weight=700))


def frame(x, y, width, height, colour=FAINT, label=""):
    """A dashed frame round what is repeated or belongs together."""
    drawn = rectangle(x, y, width, height, "none", colour, 1.2, 14, dashed=True)
    return drawn + (text(x + 12, y + 16, label, 13, colour, "start", 600) if label else "")


def heading(words, note=""):
    """The diagram's title in its upper left corner, and a sentence below it."""
    return (text(30, 32, words, 18, INK, "start", 600)
            + (text(30, 55, note, 13, FAINT, "start") if note else ""))


def arrow_head(colour):
    """The head of an arrow, referred to as head-…; `page` adds those that its parts use."""
    return (f"<marker id='head-{colour[1:]}' viewBox='0 0 10 10' refX='9' refY='5'"
            " markerUnits='userSpaceOnUse' markerWidth='9' markerHeight='9' orient='auto-start-reverse'>"
            f"<path d='M 0 0 L 10 5 L 0 10 z' fill='{colour}'/></marker>")


def page(width, height, *parts, title, description):
    """The SVG file: the parts on a light card.  title, description: for screen readers."""
    body = "\n".join(parts)
    colours = sorted(set(re.findall(r"url\(#head-(\w+)\)", body)))
    heads = "".join(arrow_head(f"#{colour}") for colour in colours)
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}'"
            f" font-family='{FONT}' role='img' aria-labelledby='title description'>\n"
            f"<title id='title'>{escape(title)}</title>\n"
            f"<desc id='description'>{escape(description)}</desc>\n"
            f"<defs>{heads}</defs>\n"
            f"<rect width='{width}' height='{height}' rx='14' fill='{CARD}' stroke='{EDGE}'/>\n"
            + body + "\n</svg>\n")

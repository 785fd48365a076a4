"""The road: the whole Transformer, and the lesson that builds each of its parts."""

from .kit import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    ORANGE,
    RED,
    RESIDUAL,
    arrow,
    box,
    frame,
    heading,
    line,
    page,
    plus,
    rectangle,
    text,
)

ATTENTION, FEED_FORWARD, NORM, EMBEDDING = "#e8f1fa", "#fdf3e3", "#f0f0f4", "#eaf6ee"
WIDTH, BASE = 480, 966  # narrow, so that a phone shows readable text; the lower edge of the two blocks
ENCODER, DECODER = 70, 410  # the two residual streams

ROAD = [("01", "recurrent networks", "a distant word is lost"),
        ("02", "convolutions", "a window of fixed size"),
        ("03", "encoder and decoder", "one vector for a sentence"),
        ("04", "attention", "look back at every word"),
        ("05", "query, key, value", "three vectors per word"),
        ("06", "layer norm", "each position by itself"),
        ("07", "residual connections", "deep networks that train"),
        ("08", "self-attention, masks", "no recurrence any more"),
        ("09", "multi-head attention", "several relations at once"),
        ("10", "positional encoding", "word order, put back in"),
        ("11", "the two blocks", "all parts assembled"),
        ("12", "the Transformer", "it translates"),
        ("13", "BERT and GPT", "one half at a time")]


def badge(x, y, lesson):
    """The number of the lesson that builds a part."""
    return (f"<circle cx='{x:g}' cy='{y:g}' r='11' fill='{RED}'/>"
            + text(x, y, lesson, 11, "white", weight=700))


def label(x, y, words):
    """The name of a sub-layer, in one line or in two."""
    first, *rest = words.split("\n")
    return text(x, y - 7.5 * len(rest), first, 13) + "".join(text(x, y + 7.5, line, 13) for line in rest)


def sub_layer(x, y, name, fill, lessons, *inputs):
    """A sub-layer that branches off the residual stream at (x, y), is added back, and normalised."""
    side = 1 if x == ENCODER else -1
    middle = x + 96 * side
    parts = [line([(x, y), (x, y - 122)], RESIDUAL, 4, head=False)]
    for role, colour, place in inputs:
        parts.append(line([(x, y - 4), (middle + place, y - 4), (middle + place, y - 23)], colour))
        if role:
            parts.append(text(middle + place + 9, y - 14, role, 13, colour, weight=600))
    return [*parts, box(middle, y - 41, "", fill, width=116, height=36), label(middle, y - 41, name),
            line([(middle, y - 59), (middle, y - 77), (x + 11 * side, y - 77)], INK), plus(x, y - 77),
            *(badge(middle + side * 46 + 24 * (number - (len(lessons) - 1) * (side > 0)), y - 67, lesson)
              for number, lesson in enumerate(lessons)),
            box(x, y - 104, "layer norm", NORM, width=84, height=22, size=13),
            badge(x + 56 * side, y - 104, "06"), badge(x - 26 * side, y - 77, "07")]


def block(x, left, name, *sub_layers):
    """The frame of a block and its sub-layers, from the lowest one up."""
    top = BASE - 122 * len(sub_layers) - 24
    parts = [frame(left, top, 222, BASE + 4 - top), badge(30 if x == ENCODER else 450, top + 19, "11"),
             text(82 if x == ENCODER else 262, top + 19, name, 13, FAINT, "start", 600)]
    for number, (words, fill, lessons, *inputs) in enumerate(sub_layers):
        parts += sub_layer(x, BASE - 122 * number, words, fill, lessons, *inputs)
    return parts


def entrance(x, words, gloss):
    """Words become vectors, and get their positions."""
    aside = x + 64 if x == ENCODER else x - 64
    return [text(18 if x == ENCODER else 470, BASE + 112, words, 14, INK, "start" if x == ENCODER else "end", 600),
            text(x, BASE + 131, gloss, 13, FAINT, italic=True),
            arrow(x, BASE + 100, x, BASE + 86), box(x, BASE + 72, "embedding", EMBEDDING, width=100, height=26, size=13),
            line([(x, BASE + 59), (x, BASE + 44)], RESIDUAL, 4, head=False), badge(aside, BASE + 72, "03"),
            box(x, BASE + 31, "+ positions", EMBEDDING, width=100, height=26, size=13), badge(aside, BASE + 31, "10"),
            line([(x, BASE + 18), (x, BASE)], RESIDUAL, 4, head=False)]


def memory(cross):
    """The encoder's output becomes keys and values of the cross-attention whose arrows end at y = `cross`."""
    middle, end = DECODER - 96, BASE - 300
    return [line([(ENCODER, BASE - 244), (ENCODER, end - 2)], RESIDUAL, 4, head=False),
            text(ENCODER + 10, end - 18, "encoder output", 13, FAINT, "start"),
            line([(ENCODER, end + 2), (238, end + 2), (238, cross + 19), (middle, cross + 19), (middle, cross)], ORANGE),
            line([(ENCODER, end - 2), (244, end - 2), (244, cross + 13), (middle - 40, cross + 13),
                  (middle - 40, cross)], GREEN),
            text(middle + 9, cross + 9, "K", 13, ORANGE, weight=600),
            text(middle - 31, cross + 7, "V", 13, GREEN, weight=600)]


def output():
    top = BASE - 390
    return [line([(DECODER, top + 24), (DECODER, top - 17)], RESIDUAL, 4), badge(DECODER - 72, top - 34, "12"),
            box(DECODER, top - 34, "output layer", EMBEDDING, width=110, height=28, size=13),
            arrow(DECODER, top - 48, DECODER, top - 65), box(DECODER, top - 80, "softmax", width=84, height=26, size=13),
            arrow(DECODER, top - 93, DECODER, top - 109), text(DECODER, top - 122, "그들 은 고양이 이다", 14, INK, weight=600),
            text(DECODER, top - 141, "they-TOPIC cat-are", 13, FAINT, italic=True),
            text(DECODER - 68, top - 122, "the next word, at every position", 13, FAINT, "end"),
            text(DECODER - 52, top - 80, "a probability for every word", 13, FAINT, "end")]


def contents():
    parts = [rectangle(12, 76, WIDTH - 24, 340, "white", "#d5dae1", 1)]
    for number, (lesson, name, what) in enumerate(ROAD):
        x, y = (34, 102 + 48 * number) if number < 7 else (262, 102 + 48 * (number - 7))
        parts += [badge(x, y, lesson), text(x + 20, y - 8, name, 14, INK, "start", 600),
                  text(x + 20, y + 10, what, 13, FAINT, "start")]
        if number not in (6, 12):
            parts.append(line([(x, y + 13), (x, y + 35)], RED, 1.5, head=False))
    return parts


def legend():
    y = BASE - 426
    return [badge(26, y, "05"), text(44, y, "the lesson that builds this part", 13, FAINT, "start"),
            line([(16, y + 28), (36, y + 28)], RESIDUAL, 4, head=False),
            text(44, y + 28, "the residual stream", 13, FAINT, "start"),
            *(line([(x, y + 56), (x + 20, y + 56)], colour) + text(x + 26, y + 56, name, 13, colour, "start", 600)
              for x, name, colour in [(16, "queries", BLUE), (102, "keys", ORANGE), (168, "values", GREEN)])]


def road():
    own = ("Q", BLUE, -40), ("K", ORANGE, 0), ("V", GREEN, 40)
    parts = [heading("The road", "Thirteen lessons, and the Transformer that they build"), *contents(), *legend(),
             *entrance(ENCODER, "they are cats", ""), *entrance(DECODER, "<bos> 그들 은 고양이", "they-TOPIC cat"),
             *block(ENCODER, 10, "encoder block × N",
                    ("self-attention", ATTENTION, ["08", "09"], *own),
                    ("feed-forward", FEED_FORWARD, ["11"], ("", INK, 0))),
             *block(DECODER, 250, "decoder block × N",
                    ("masked\nself-attention", ATTENTION, ["08", "09"], *own),
                    ("cross-attention", ATTENTION, ["04", "05"], ("Q", BLUE, 40)),
                    ("feed-forward", FEED_FORWARD, ["11"], ("", INK, 0))),
             *memory(BASE - 145), *output()]
    return page(WIDTH, BASE + 148, *parts, title="The road from RNNs to the Transformer",
                description="Above, the thirteen lessons in order. Below, the Transformer of lesson 12: an encoder of "
                            "self-attention and feed-forward sub-layers, and a decoder that also attends to the "
                            "encoder's output. Each part bears the number of the lesson that builds it.")


DRAWINGS = {"00_road": road}

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
ENCODER, DECODER = 325, 772  # the two residual streams

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


def sub_layer(x, y, label, fill, lessons, *inputs):
    """A sub-layer that branches off the residual stream at (x, y), is added back, and normalised."""
    side = 1 if x == ENCODER else -1
    middle = x + 122 * side
    parts = [line([(x, y), (x, y - 122)], RESIDUAL, 4, head=False)]
    for name, colour, place in inputs:
        parts.append(line([(x, y - 4), (middle + place, y - 4), (middle + place, y - 23)], colour))
        if name:
            parts.append(text(middle + place + 9, y - 14, name, 12, colour, weight=600))
    return [*parts, box(middle, y - 39, label, fill, width=160, height=30, size=13),
            line([(middle, y - 54), (middle, y - 74), (x + 11 * side, y - 74)], INK), plus(x, y - 74),
            *(badge(middle + side * 62 + 25 * (number - (len(lessons) - 1) * (side > 0)), y - 61, lesson)
              for number, lesson in enumerate(lessons)),
            box(x, y - 103, "layer norm", NORM, width=90, height=22, size=12),
            badge(x - 58 * side, y - 103, "06"), badge(x - 26 * side, y - 74, "07")]


def entrance(x, words, gloss, side):
    """Words become vectors, and get their positions."""
    return [text(x, 706, words, 14, INK, weight=600), text(x, 724, gloss, 11, FAINT, italic=True),
            arrow(x, 694, x, 679), box(x, 664, "embedding", EMBEDDING, width=110, height=28, size=13),
            line([(x, 650), (x, 636)], RESIDUAL, 4, head=False), badge(x + 70 * side, 664, "03"),
            box(x, 624, "+ positions", EMBEDDING, width=110, height=24, size=13), badge(x + 70 * side, 624, "10"),
            line([(x, 612), (x, 594)], RESIDUAL, 4, head=False)]


def memory(cross):
    """The encoder's output becomes keys and values of the cross-attention whose arrows end at y = `cross`."""
    middle = DECODER - 122
    return [line([(ENCODER, 350), (ENCODER, 318)], RESIDUAL, 4, head=False),
            text(ENCODER + 12, 300, "encoder output", 12, FAINT, "start"),
            line([(ENCODER, 320), (544, 320), (544, cross + 19), (middle, cross + 19), (middle, cross)], ORANGE),
            line([(ENCODER, 316), (550, 316), (550, cross + 13), (middle - 48, cross + 13), (middle - 48, cross)],
                 GREEN),
            text(middle + 9, cross + 9, "K", 12, ORANGE, weight=600),
            text(middle - 39, cross + 7, "V", 12, GREEN, weight=600)]


def output():
    return [line([(DECODER, 232), (DECODER, 190)], RESIDUAL, 4), badge(DECODER - 76, 172, "12"),
            box(DECODER, 172, "output layer", EMBEDDING, width=118, height=28, size=13),
            arrow(DECODER, 158, DECODER, 140), box(DECODER, 124, "softmax", width=90, height=26, size=13),
            arrow(DECODER, 111, DECODER, 94), text(DECODER, 80, "그들 은 고양이 이다", 14, INK, weight=600),
            text(DECODER, 62, "they-TOPIC cat-are", 11, FAINT, italic=True),
            text(DECODER - 80, 80, "the next word, at every position", 12, FAINT, "end"),
            text(DECODER - 60, 124, "a probability for every word", 12, FAINT, "end")]


def contents():
    parts = [rectangle(18, 80, 218, 648, "white", "#d5dae1", 1)]
    for number, (lesson, name, what) in enumerate(ROAD):
        y = 108 + 49 * number
        parts += [badge(40, y, lesson), text(60, y - 7, name, 14, INK, "start", 600),
                  text(60, y + 11, what, 12, FAINT, "start")]
        if number + 1 < len(ROAD):
            parts.append(line([(40, y + 13), (40, y + 36)], RED, 1.5, head=False))
    return parts


def legend():
    return [badge(270, 92, "05"), text(290, 92, "the lesson that builds this part", 12, FAINT, "start"),
            line([(260, 118), (280, 118)], RESIDUAL, 4, head=False),
            text(290, 118, "the residual stream", 12, FAINT, "start"),
            line([(260, 142), (280, 142)], BLUE), text(288, 142, "queries", 12, BLUE, "start", 600),
            line([(350, 142), (370, 142)], ORANGE), text(378, 142, "keys", 12, ORANGE, "start", 600),
            line([(420, 142), (440, 142)], GREEN), text(448, 142, "values", 12, GREEN, "start", 600)]


def road():
    own = ("Q", BLUE, -48), ("K", ORANGE, 0), ("V", GREEN, 48)
    parts = [heading("The road", "Thirteen lessons, and the Transformer that they build"), *contents(), *legend()]
    parts += entrance(ENCODER, "they are cats", "", -1) + entrance(DECODER, "<bos> 그들 은 고양이", "they-TOPIC cat", -1)
    parts += [frame(248, 346, 284, 252), text(376, 366, "encoder block × N", 12, FAINT, "start", 600),
              badge(516, 366, "11")]
    parts += [frame(562, 222, 288, 376), text(571, 242, "decoder block × N", 12, FAINT, "start", 600),
              badge(710, 242, "11")]
    parts += sub_layer(ENCODER, 594, "self-attention", ATTENTION, ["08", "09"], *own)
    parts += sub_layer(ENCODER, 472, "feed-forward", FEED_FORWARD, ["11"], ("", INK, 0))
    parts += sub_layer(DECODER, 594, "masked self-attention", ATTENTION, ["08", "09"], *own)
    parts += sub_layer(DECODER, 472, "cross-attention", ATTENTION, ["04", "05"], ("Q", BLUE, 48))
    parts += sub_layer(DECODER, 350, "feed-forward", FEED_FORWARD, ["11"], ("", INK, 0))
    parts += memory(449) + output()
    return page(860, 740, *parts, title="The road from RNNs to the Transformer",
                description="Left, the thirteen lessons in order. Right, the Transformer of lesson 12: an encoder of "
                            "self-attention and feed-forward sub-layers, and a decoder that also attends to the "
                            "encoder's output. Each part bears the number of the lesson that builds it.")


DRAWINGS = {"00_road": road}

"""The whole Transformer."""

from .kit import (
    FAINT,
    INK,
    KEY,
    PURPLE,
    QUERY,
    RESIDUAL,
    VALUE,
    box,
    frame,
    line,
    matrix,
    page,
    plus,
    rectangle,
    text,
    token,
)

ENGLISH = ["they", "are", "cats"]
KOREAN = ["그들", "은", "고양이", "이다"]
GLOSS = {"그들": "they", "은": "TOPIC", "고양이": "cat", "이다": "be", "<bos>": "begin", "<eos>": "end"}
ATTENTION, FORWARD, NORM, EMBED = "#e8f1fa", "#fdf3e3", "#efe9f8", "#eaf6ee"
ROWS = [[.5, .2, .35, .6], [.15, .55, .4, .25], [.45, .3, .6, .1], [.25, .5, .15, .4], [.6, .35, .3, .2]]

# ---------------------------------------------------------------- the whole Transformer

ENCODER, DECODER = 70, 570       # the two residual streams; the sub-layers stand between them
FLOOR, STOREY = 738, 156         # the lower end of the blocks, the height of one sub-layer


def stream(x, top, bottom):
    """A residual stream from the bottom to the top, with its head."""
    return (f"<path d='M {x} {bottom} V {top + 12}' stroke='{RESIDUAL}' stroke-opacity='.5' stroke-width='9' fill='none'/>"
            f"<polygon points='{x},{top} {x - 10},{top + 16} {x + 10},{top + 16}' fill='{RESIDUAL}' fill-opacity='.75'/>")


def sub_layer(x, storey, name, does, fill, reads=(), mask=None, shape=""):
    """A sub-layer on the stream at x: it reads below, its result is added above, and the sum is normalised.

    reads: (letter, colour, place, whether it comes from this stream).  mask: its rows, True where attention goes.
    """
    side = 1 if x == ENCODER else -1
    base, middle = FLOOR - STOREY * storey, x + 128 * side
    far = max([place for _, _, place, here in reads if here], default=0)
    parts = [line([(x, base - 14), (middle + far * side, base - 14)], RESIDUAL, 3, head=False)]
    for letter, colour, place, here in reads:
        if here:
            parts.append(line([(middle + place * side, base - 14), (middle + place * side, base - 37)], colour, 2.4))
        parts.append(text(middle + place * side - 13, base - 25, letter, 15, colour, weight=700))
    if not reads:
        parts.append(line([(middle, base - 14), (middle, base - 37)], INK, 2))
    parts += [line([(middle, base - 85), (middle, base - 107), (x + 12 * side, base - 107)], INK, 2),
              box(middle, base - 61, "", fill, width=202, height=48, learned=True),
              text(middle, base - 70, name, 14.5, INK, weight=600), text(middle, base - 51, does, 13, INK),
              plus(x, base - 107), box(x, base - 136, "layer norm", NORM, PURPLE, 100, 26, learned=True, size=14)]
    if mask:
        cell = 8
        left = middle + 26 if side > 0 else middle - 14 - cell * len(mask[0])
        top = base - 94 - cell * len(mask)
        parts += small_mask(left, top, mask, cell)
        parts.append(text(left + cell * len(mask[0]) + 7 if side > 0 else left - 7, top + cell * len(mask) / 2, shape, 13, FAINT,
                          "start" if side > 0 else "end"))
    return parts


def small_mask(x, y, rows, cell=8):
    """A grid without words, its upper left corner at (x, y): rows look at columns where it is blue."""
    return [rectangle(x + cell * j, y + cell * i, cell, cell, "#7fabd6" if on else "white", "#8fa3b8", .8, 0)
            for i, row in enumerate(rows) for j, on in enumerate(row)]


def entrance(x, words, shape, caption):
    """Tokens, embedding and positions at the foot of a stream."""
    side, middle = (1, 158) if x == ENCODER else (-1, 482)
    parts = [box(middle, FLOOR + 112, "embedding · √d_model", EMBED, width=284, height=34, learned=True, size=15),
             box(x + 128 * side, FLOOR + 62, "positions", "white", width=120, height=30, size=15),
             line([(x + 68 * side, FLOOR + 62), (x + 12 * side, FLOOR + 62)], INK, 2), plus(x, FLOOR + 62),
             text(x + 16 * side, FLOOR + 26, shape, 14, FAINT, "start" if side > 0 else "end")]
    return parts + tokens(middle, FLOOR + 168, words, FLOOR + 130) + [text(middle, FLOOR + 218, caption, 14, INK)]


def tokens(middle, y, words, up):
    """A row of tokens with their glosses, and an arrow from each of them to the height `up`, or to them from below."""
    parts = []
    for number, word in enumerate(words):
        x = middle + 57 * (number - (len(words) - 1) / 2)
        ends = (y - 16, up) if up < y else (up, y + 17)
        parts += [token(x, y, word, width=55, size=15), line([(x, ends[0]), (x, ends[1])], INK, 1.6)]
        if word in GLOSS:
            parts.append(text(x, y + 26 if up < y else y - 26, GLOSS[word], 13, FAINT, italic=True))
    return parts


def exit_(roof):
    """From the decoder's stream to the predicted tokens."""
    return [box(482, roof - 54, "", EMBED, width=284, height=46, learned=True), text(482, roof - 63, "linear", 15, INK, weight=600),
            text(482, roof - 44, "the target embedding, transposed", 13, INK),
            line([(482, roof - 78), (482, roof - 108)], INK, 2), text(494, roof - 93, "logits (B, n, vocab)", 14, FAINT, "start"),
            box(482, roof - 126, "softmax", width=284, height=32, size=15),
            *tokens(482, roof - 184, [*KOREAN, "<eos>"], roof - 143),
            text(482, roof - 234, "prediction: the next token at each place", 14, INK)]


def key(y):
    """What lines and boxes mean, from the height y."""
    rows = ["residual stream: each sub-layer", "reads it, and its result is added", "queries: what a token looks for", "keys: what it can be found by",
            "values: what it passes on", "box with learned weights", "blue: row may look at column"]
    parts = [text(20, 38, "The Transformer", 22, INK, "start", 600), text(20, 66, "Read it from the bottom up.", 14, FAINT, "start")]
    for number, words in enumerate(rows):
        parts.append(text(66, y + 26 * number - 4 * (number > 0), words, 14, INK, "start"))
    parts += [f"<path d='M 40 {y + 32} V {y - 12}' stroke='{RESIDUAL}' stroke-opacity='.5' stroke-width='9'/>", plus(40, y + 14)]
    parts += [line([(22, y + 48 + 26 * i), (56, y + 48 + 26 * i)], colour, 2.4) for i, colour in enumerate((QUERY, KEY, VALUE))]
    return parts + [rectangle(22, y + 118, 34, 18, "white", INK, 3, 6),
                    *small_mask(27, y + 140, [[True, False, False], [True, True, False], [True, True, True]])]


def transformer():
    all_seen, none_later = [[True] * 3] * 3, [[j <= i for j in range(5)] for i in range(5)]
    three = [("Q", QUERY, -50, True), ("K", KEY, 0, True), ("V", VALUE, 50, True)]
    crossed = [("Q", QUERY, -50, True), ("K", KEY, 0, False), ("V", VALUE, 50, False)]
    roof, low, cross = FLOOR - 3 * STOREY, FLOOR - 2 * STOREY, FLOOR - STOREY
    parts = [frame(12, low, 296, 2 * STOREY), frame(332, roof, 296, 3 * STOREY),
             text(296, low + 20, "× N", 17, INK, "end", 700), text(344, roof + 20, "× N", 17, INK, "start", 700),
             stream(ENCODER, low - 28, FLOOR + 96), stream(DECODER, roof - 30, FLOOR + 96),
             *entrance(ENCODER, ENGLISH, "(B, m, d_model)", "source tokens (B, m)"),
             *entrance(DECODER, ["<bos>", *KOREAN], "(B, n, d_model)", "target tokens so far (B, n)"),
             *sub_layer(ENCODER, 0, "self-attention", "sees the whole source", ATTENTION, three, all_seen, "m × m"),
             *sub_layer(ENCODER, 1, "feed-forward", "each token by itself", FORWARD),
             *sub_layer(DECODER, 0, "masked self-attention", "sees no later token", ATTENTION, three, none_later, "n × n"),
             # keys and values of the cross-attention: from the memory, down between the two stacks
             line([(98, low - 58), (326, low - 58), (326, cross - 10), (392, cross - 10), (392, cross - 37)], VALUE, 2.4),
             line([(98, low - 44), (314, low - 44), (314, cross + 2), (442, cross + 2), (442, cross - 37)], KEY, 2.4),
             *sub_layer(DECODER, 1, "cross-attention", "reads the source", ATTENTION, crossed, [[True] * 3] * 5, "n × m"),
             *sub_layer(DECODER, 2, "feed-forward", "each token by itself", FORWARD),
             rectangle(42, low - 72, 56, 42, "white", RESIDUAL, 1, 0), matrix(42, low - 72, ROWS[:3], RESIDUAL, 14),
             text(42, low - 104, "memory: the encoder's output", 14, INK, "start", 600),
             text(42, low - 86, "(B, m, d_model), for every decoder block", 13, FAINT, "start"), *exit_(roof), *key(104)]
    return page(640, FLOOR + 242, *parts, title="The Transformer: encoder and decoder with every arrow",
                description="Left the encoder reads 'they are cats', right the decoder reads the Korean so far. Each sub-layer "
                            "branches off the grey residual stream, is added back to it, and the sum is normalised. "
                            "Cross-attention takes its queries from the decoder and its keys and values from the encoder's "
                            "output. A linear layer and a softmax predict the next token at each place.")


DRAWINGS = {"12_transformer": transformer}

"""The whole Transformer, the decoding loop, a beam as a tree, and what a KV cache keeps."""

import math

from .kit import (
    CARD,
    EDGE,
    FAINT,
    INK,
    KEY,
    PURPLE,
    QUERY,
    RESIDUAL,
    VALUE,
    arrow,
    box,
    frame,
    line,
    lines,
    matrix,
    page,
    plus,
    printed,
    rectangle,
    shade,
    step,
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
            text(482, roof - 234, "prediction: the next token at each position", 14, INK)]


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
                            "output. A linear layer and a softmax predict the next token at each position.")


# ---------------------------------------------------------------- the decoding loop

# The three likeliest tokens of each step, with probabilities: an example.
STEPS = [[("그들", .86), ("그", .07), ("우리", .02)], [("은", .91), ("이", .05), ("도", .02)],
         [("고양이", .93), ("교사", .02), ("개", .01)], [("이다", .95), ("가", .02), ("를", .01)],
         [("<eos>", .97), ("그리고", .01), ("은", .01)]]
PITCH, FIRST, BUS = 122, 276, 26


def slot(number):
    """Where the token of a place stands in a row."""
    return 92 + 59 * number


def decoding_step(number, choices):
    """One turn of the loop: the tokens so far, the decoder, the distribution, and the way of the chosen token."""
    y, given = FIRST + PITCH * number, ["<bos>", *KOREAN][:number + 1]
    parts = [text(46, y - 42, f"step {number + 1}", 15, INK, "start", 600)]
    for place, word in enumerate(given):
        newest = place == number and number > 0
        parts.append(token(slot(place), y, word, PURPLE if newest else INK, width=55, size=15))
    parts += [line([(slot(number) + 29, y), (382, y)], INK, 2),
              box(424, y, "decoder", ATTENTION, width=78, height=44, learned=True, size=15),
              line([(BUS, y + 40), (410, y + 40), (410, y + 25)], KEY, 2.4), line([(BUS, y + 47), (438, y + 47), (438, y + 25)], VALUE, 2.4),
              line([(465, y), (482, y)], INK, 2)]
    for i, (word, probability) in enumerate(choices):
        level = y - 24 + 24 * i
        parts += [rectangle(536, level - 9, 46 * probability, 18, PURPLE if i == 0 else "#b9c1cb", "none", 0, 3),
                  text(530, level, word, 15 if i == 0 else 14, PURPLE if i == 0 else INK, "end", 700 if i == 0 else 400),
                  text(541 + 46 * probability, level, f"{probability:.2f}", 13, INK, "start")]
    below, goal = y + 64, slot(number + 1)
    end = [(goal, below), (goal, y + PITCH - 17)] if number < len(STEPS) - 1 else [(560, below), (560, below + 18)]
    return [*parts, line([(619, y - 24), (629, y - 24), (629, below), *end], PURPLE, 2, dashed=True)]


def decoding():
    last = FIRST + PITCH * (len(STEPS) - 1)
    parts = [text(20, 36, "Decoding, token by token", 20, INK, "start", 600),
             text(20, 62, "The encoder runs once. The decoder runs once for each new token.", 14, FAINT, "start")]
    parts += [token(48 + 59 * number, 112, word, width=55, size=15) for number, word in enumerate(ENGLISH)]
    parts += [line([(195, 112), (246, 112)], INK, 2), box(290, 112, "encoder", ATTENTION, width=82, height=44, learned=True, size=15),
              line([(332, 112), (376, 112)], INK, 2), rectangle(380, 91, 56, 42, "white", RESIDUAL, 1, 0),
              matrix(380, 91, ROWS[:3], RESIDUAL, 14), text(448, 102, "memory", 15, INK, "start", 600),
              text(448, 123, "(B, m, d_model)", 14, FAINT, "start"),
              f"<path d='M 408 134 V 160 H {BUS} V {last + 49}' fill='none' stroke='{RESIDUAL}' stroke-opacity='.6'"
              " stroke-width='5' stroke-linejoin='round'/>",
              text(46, 200, "the decoder reads", 14, FAINT, "start"), text(628, 200, "the last position predicts (example)", 14, FAINT, "end")]
    for number, choices in enumerate(STEPS):
        parts += decoding_step(number, choices)
    parts += [text(370, FIRST + 27, "K", 15, KEY, weight=700), text(452, FIRST + 35, "V", 15, VALUE, weight=700)]
    return page(640, last + 166, *parts,
                text(616, FIRST + 50, "append the likeliest", 13, PURPLE, "end"),
                rectangle(46, last + 86, 582, 62, "white", PURPLE, 2, 10),
                text(64, last + 117, "<eos>: stop", 16, PURPLE, "start", 600),
                text(190, last + 130, "they + TOPIC + cat + be = they are cats", 13, FAINT, "start", italic=True),
                text(190, last + 106, "그들 + 은 + 고양이 + 이다 = 그들은 고양이다", 16, INK, "start"),
                title="The decoding loop, step by step",
                description="The encoder reads 'they are cats' once. In each of five steps the decoder reads <bos> and the "
                            "tokens so far, with keys and values from the memory. The likeliest next token is appended, "
                            "until <eos> is chosen.")


# ---------------------------------------------------------------- the cache

READ = ["<bos>", *KOREAN[:3]]
KEYS, VALUES = [[.8, .4, .6], [.45, .85, .5], [.6, .5, .9], [.9, .6, .4]], [[.5, .8, .4], [.85, .45, .6], [.4, .6, .85], [.65, .9, .5]]


def strip(x, y, values, colour, new, cell=17):
    """The key or value of one token: in full colour where it is computed now, pale where it is kept."""
    return matrix(x, y, [[value if new else .2 * value] for value in values], colour, cell)


def growth(left, top, name, note, cached):
    """Four steps, one row each: the keys and values of all tokens so far."""
    parts = [text(left, top, name, 17, INK, "start", 600), text(left, top + 24, note, 14, FAINT, "start")]
    for number, word in enumerate(READ):
        parts.append(token(left + 28 + 62 * number, top + 60, word, PURPLE if number == 3 else INK, width=56, size=15))
        parts.append(text(left + 28 + 62 * number, top + 87, GLOSS[word], 13, FAINT, italic=True))
    for t in range(4):
        y = top + 106 + 72 * t
        for j in range(t + 1):
            x, new = left + 28 + 62 * j, j == t or not cached
            parts += [strip(x - 20, y, KEYS[j], KEY, new), strip(x + 3, y, VALUES[j], VALUE, new)]
    return parts


def one_query(y):
    """The newest query on all keys, and its weights on all values, with their shapes."""
    weights = [.1, .45, .15, .3]
    mixed = [sum(w * row[i] for w, row in zip(weights, VALUES, strict=True)) for i in range(3)]
    by_column = [[key[i] for key in KEYS] for i in range(3)]
    cell, middle = 22, y + 110
    parts = [text(20, y, "Step t = 4 with the cache, in one decoder block", 17, INK, "start", 600),
             text(20, y + 25, "Only the newest token has a query; its new key and value are outlined.", 14, FAINT, "start"),
             matrix(30, middle - 11, [[.75, .4, .6]], QUERY, cell, "Q"), text(112, middle, "·", 22),
             matrix(136, middle - 33, [[*(.3 * value for value in row[:3]), row[3]] for row in by_column], KEY, cell, "Kᵀ"), rectangle(202, middle - 33, cell, 66, "none", PURPLE, 3, 2),
             line([(232, middle), (290, middle)], INK, 2), text(259, middle - 34, "÷ √d_k,", 14, FAINT), text(259, middle - 15, "softmax", 14, FAINT),
             matrix(296, middle - 11, [weights], INK, cell, "weights"), text(402, middle, "×", 18),
             matrix(426, middle - 44, [*([.3 * value for value in row] for row in VALUES[:3]), VALUES[3]], VALUE, cell, "V"), rectangle(426, middle + 22, 66, cell, "none", PURPLE, 3, 2),
             text(512, middle, "=", 18), matrix(534, middle - 11, [mixed], VALUE, cell, "output")]
    for x, words in [(63, ["(B, h, 1, d_k)", "newest token"]), (180, ["K (B, h, t, d_k)", "cached"]), (340, ["(B, h, 1, t)"]),
                     (459, ["V (B, h, t, d_k)", "cached"]), (567, ["(B, h, 1, d_k)", "newest token"])]:
        parts += [text(x, middle + 66 + 20 * i, line_, 13, INK if i == 0 else FAINT) for i, line_ in enumerate(words)]
    return parts


def cache():
    parts = [text(20, 36, "What a KV cache keeps", 20, INK, "start", 600),
             text(20, 62, "No token sees a later one, so its key and its value never change.", 14, FAINT, "start"),
             *growth(64, 104, "Without a cache", "all keys and values again", False),
             *growth(376, 104, "With a cache", "only the newest column", True)]
    parts += [text(20, 104 + 106 + 72 * t + 26, f"t = {t + 1}", 15, INK, "start", 600) for t in range(4)]
    y = 104 + 106 + 72 * 4 + 10
    parts += [text(64, y, "computed: 1 + 2 + 3 + 4 = 10", 15, INK, "start", 600), text(376, y, "computed: 1 + 1 + 1 + 1 = 4", 15, INK, "start", 600)]
    for x, new, words in [(64, True, "key, value: computed now"), (376, False, "kept from earlier steps")]:
        parts += [strip(x, y + 22, KEYS[0][:2], KEY, new), strip(x + 23, y + 22, VALUES[0][:2], VALUE, new), text(x + 52, y + 39, words, 14, INK, "start")]
    parts.append(line([(20, y + 80), (620, y + 80)], "#d5dae0", 1, head=False))
    return page(640, y + 334, *parts, *one_query(y + 112), title="What a KV cache keeps",
                description="Without a cache, step t computes the keys and values of all t tokens: 10 columns in four steps. "
                            "With a cache it computes those of the newest token only: 4 columns. The newest token's query "
                            "is compared with all cached keys, and its weights mix the cached values.")


# ---------------------------------------------------------------- beam search

# Token, meaning, its probability after the tokens before it, height, what may follow: the example of lesson 12.
TREE = [("그", "he", .55, 256, [("는", "TOPIC", .40, 150), ("가", "SUBJECT", .35, 256), ("도", "also", .25, 362)]),
        ("그들", "they", .45, 521, [("은", "TOPIC", .90, 468), ("이", "SUBJECT", .10, 574)])]
COLUMN = [44, 188, 384, 548]
PALE = "#a3adb8"


PENALTY = ((5 + 3) / 6) ** .6        # of three tokens, <eos> counted


def hypothesis(x, y, word, meaning, p, kept, rank=0):
    """A token with the probability of the hypothesis that ends with it."""
    colour = PURPLE if kept else PALE
    drawn = rectangle(x - 30, y - 17, 60, 34, shade(.1, PURPLE) if kept else "white", colour, 2 if kept else 1.3, 8, dashed=not kept)
    drawn += text(x, y, word, 16, INK if kept else FAINT) + text(x, y - 28, meaning, 13, FAINT, italic=True)
    drawn += text(x, y + 30, f"p = {p:.4f}".rstrip("0"), 14, INK if kept else FAINT, weight=600 if kept else 400)
    drawn += text(x, y + 49, f"log p = {printed(math.log(p), 2)}", 13, FAINT)
    if not rank:
        return drawn
    return drawn + (step(x + 48, y, rank) if kept else text(x + 38, y, "pruned", 13, FAINT, "start", italic=True))


def edge(x1, y1, x2, y2, p, kept):
    """From a token to a possible next one, with its probability."""
    x, y = x1 + (x2 - x1) * .52, y1 + (y2 - y1) * .52
    drawn = arrow(x1, y1, x2, y2, PURPLE if kept else PALE, 2.2 if kept else 1.3)
    return drawn + rectangle(x - 19, y - 9, 38, 18, CARD, "none", 0, 4) + text(x, y, f"{p:.2f}", 14, INK if kept else FAINT)


def finished(y, p, best):
    """The end of a hypothesis, with its score."""
    x = COLUMN[3] + 6
    return [rectangle(x - 36, y - 17, 72, 34, PURPLE if best else "white", PURPLE, 2.5, 8), text(x, y, "<eos>", 16, "white" if best else INK, weight=600),
            text(x, y - 28, "finished ✓", 13, PURPLE, weight=600), text(x, y + 30, f"score {printed(math.log(p) / PENALTY, 2)}", 14, INK, weight=600),
            *([text(x, y + 49, "the best", 14, PURPLE, weight=600)] if best else [])]


def beam():
    second = sorted((p * q for _, _, p, _, after in TREE for _, _, q, _ in after), reverse=True)
    start = sum(y for *_, y, _ in TREE) / 2
    parts = [text(20, 36, "Beam search with k = 2", 20, INK, "start", 600),
             text(20, 62, "Each step extends every hypothesis by one token and keeps the 2 best.", 14, FAINT, "start"),
             token(COLUMN[0], start, "<bos>", width=56, size=15)]
    parts += [text(x, 96, words, 15, INK, weight=600) for x, words in zip(COLUMN[1:], ["step 1", "step 2", "step 3"], strict=True)]
    for word, meaning, p, y, after in TREE:
        parts += [edge(COLUMN[0] + 30, start, COLUMN[1] - 34, y, p, True), hypothesis(COLUMN[1], y, word, meaning, p, True)]
        for following, sense, q, level in after:
            rank = second.index(p * q) + 1
            parts += [edge(COLUMN[1] + 34, y, COLUMN[2] - 34, level, q, rank <= 2),
                      hypothesis(COLUMN[2], level, following, sense, p * q, rank <= 2, rank)]
            if rank <= 2:
                parts += [edge(COLUMN[2] + 62, level, COLUMN[3] - 34, level, 1, True), *finished(level, p * q, rank == 1)]
    best, other = (math.log(p) for p in second[:2])
    parts += [lines(20, 160, ["Greedy decoding (k = 1)", "takes 그, then 는: p = 0.22."], 14, FAINT),
              rectangle(20, 658, 600, 122, "white", EDGE, 1.5, 10),
              text(38, 684, "score = log p / penalty,  penalty = ((5 + length) / 6)^0.6", 15, INK, "start", 600),
              text(38, 710, f"Both have length 3, <eos> counted: penalty = (8/6)^0.6 = {PENALTY:.3f}", 14, FAINT, "start"),
              text(38, 734, f"그들 은:  {printed(best, 3)} / {PENALTY:.3f} = {printed(best / PENALTY, 2)}, the best: returned", 15, PURPLE, "start", 600),
              text(38, 758, f"그 는:  {printed(other, 3)} / {PENALTY:.3f} = {printed(other / PENALTY, 2)}", 15, INK, "start")]
    return page(640, 798, *parts, title="Beam search with k = 2",
                description="A tree of hypotheses. Of the five candidates of step 2, 그들 은 with 0.405 and 그 는 with 0.22 "
                            "are kept and three are pruned. Both end with <eos> in step 3; 그들 은 has the higher score.")


DRAWINGS = {"12_beam": beam, "12_cache": cache, "12_decoding": decoding, "12_transformer": transformer}

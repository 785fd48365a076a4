"""Masked beside causal language modelling on one sentence, and the three architectures with their masks."""

from .kit import (
    BLUE,
    FAINT,
    INK,
    KEY,
    PURPLE,
    QUERY,
    RESIDUAL,
    VALUE,
    arrow,
    box,
    line,
    page,
    rectangle,
    shade,
    text,
    token,
)

SENTENCE = "the teacher who likes cats reads a book".split()
KOREAN = {"그들": "they", "은": "TOPIC", "고양이": "cat", "이다": "are"}
SEEN, UNSEEN, PALE = "#9dbfe0", "#f1f2f4", "#a3adb8"

# ---------------------------------------------------------------- masked and causal language modelling


def column(number):
    return 57 + 75 * number


def missing(x, y):
    """A position without a target."""
    return rectangle(x - 34, y - 16, 68, 32, "none", PALE, 1.2, 8, dashed=True) + text(x, y, "none", 14, FAINT, italic=True)


def question(top, name, models, mask, asks, given, targets, asked, sees, count):
    """One of the two tasks: inputs, what the position `asked` sees, targets, and the positions that give a loss."""
    inputs, wanted = top + 128, top + 240
    parts = [rectangle(10, top, 620, 330, "white", "#d5dae1", 1, 12), text(28, top + 28, name, 18, INK, "start", 600),
             text(612, top + 28, models, 15, FAINT, "end"), text(28, top + 55, asks, 15, INK, "start"),
             text(612, top + 204, f"N blocks, {mask}", 14, FAINT, "end"), text(28, top + 93, "input", 14, FAINT, "start"), text(28, top + 204, "target", 14, FAINT, "start")]
    for j in sees:
        parts.append(arrow(column(j), inputs + 17, column(asked) + 6 * (j - asked), wanted - 18, QUERY, 2))
    for number, (word, target) in enumerate(zip(given, targets, strict=True)):
        x, hit = column(number), number == asked
        hidden = word == "[MASK]"
        parts += [token(x, inputs, word, PURPLE if hidden else INK if number in sees else PALE, 70, 15)]
        if target is None:
            parts += [missing(x, wanted), text(x, wanted + 33, "–", 15, FAINT)]
            continue
        fill = shade(.14, PURPLE)
        parts += [rectangle(x - 35, wanted - 16, 70, 32, fill, PURPLE, 2.6 if hit else 1.4, 8), text(x, wanted, target, 15, INK, weight=700 if hit else 400),
                  text(x, wanted + 33, "loss", 14, PURPLE, weight=600)]
    return [*parts, text(28, top + 306, count, 15, PURPLE, "start", 600)]


def masked_causal():
    covered = [word if word != "likes" else "[MASK]" for word in SENTENCE]
    parts = [text(20, 36, "Two questions about one sentence", 20, INK, "start", 600),
             text(20, 62, "Blue: what may be seen when “likes” is predicted.", 14, FAINT, "start"),
             *question(84, "Causal language modelling", "GPT", "causal mask", "What comes next? Each position attends to itself and previous ones.",
                       SENTENCE, [*SENTENCE[1:], None], 2, range(3), "7 of 8 positions give a loss, all in one pass."),
             *question(430, "Masked language modelling", "BERT", "full mask", "What was here? A hidden token is predicted from both sides.",
                       covered, [None] * 3 + ["likes"] + [None] * 4, 3, range(8), "1 of 8 positions gives a loss. (BERT chooses 15 % of all tokens.)")]
    return page(640, 774, *parts, title="Masked and causal language modelling",
                description="Causal: each position predicts the next token from itself and the previous tokens, and 7 of 8 "
                            "positions give a loss. Masked: the hidden token 'likes' is predicted from all positions, left "
                            "and right, and only this position gives a loss.")


# ---------------------------------------------------------------- the three architectures

ATTENTION = "#e8f1fa"
FIVE = SENTENCE[:5]


def mask_grid(x, y, rows, columns, may, cell=28):
    """A mask whose upper left cell is at (x, y): rows are queries, columns are keys; a tick where attention may go."""
    parts = []
    for j, word in enumerate(columns):
        middle = x + cell * (j + .5)
        parts.append(f"<g transform='rotate(-90 {middle:g} {y - 8:g})'>{text(middle, y - 8, word, 14, KEY, 'start')}</g>")
    for i, word in enumerate(rows):
        parts.append(text(x - 8, y + cell * (i + .5), word, 14, QUERY, "end"))
        for j in range(len(columns)):
            on = may(i, j)
            parts.append(rectangle(x + cell * j + 1, y + cell * i + 1, cell - 2, cell - 2, SEEN if on else UNSEEN,
                                   BLUE if on else "#d5dae0", 1.1, 4))
            if on:
                parts.append(text(x + cell * (j + .5), y + cell * (i + .5), "✓", 14, INK, weight=600))
    return parts


def stack(middle, y, name, does, given, predicted, pitch, width, hidden=None):
    """Tokens at the foot, blocks, and the predictions above; y is the height of the tokens' middle."""
    parts = [box(middle, y - 72, "", ATTENTION, width=pitch * len(given) - 4, height=50, learned=True),
             text(middle, y - 81, name, 15, INK, weight=600), text(middle, y - 61, does, 13.5, INK)]
    for number, word in enumerate(given):
        x = middle + pitch * (number - (len(given) - 1) / 2)
        parts += [token(x, y, word, PURPLE if number == hidden else INK, width, 14), line([(x, y - 16), (x, y - 46)], RESIDUAL, 2)]
        if predicted and predicted[number]:
            parts += [line([(x, y - 98), (x, y - 125)], RESIDUAL, 2), rectangle(x - width / 2, y - 156, width, 30, shade(.14, PURPLE), PURPLE, 1.6, 8),
                      text(x, y - 141, predicted[number], 14, INK)]
    return parts


def card(top, height, name, models, trained, used):
    parts = [rectangle(10, top, 620, height, "white", "#d5dae1", 1, 12), text(28, top + 28, name, 18, INK, "start", 600),
             text(612, top + 28, models, 15, FAINT, "end")]
    for number, (label, words) in enumerate([("Trained to", trained), ("Used to", used)]):
        parts += [text(28, top + 56 + 24 * number, label, 15, PURPLE, "start", 600), text(124, top + 56 + 24 * number, words, 15, INK, "start")]
    return parts


def always(i, j):
    return True


def causal(i, j):
    return j <= i


def three():
    bert = [None, None, None, "likes", None]
    hidden, they, given = [*FIVE[:3], "[MASK]", FIVE[4]], ["they", "are", "cats"], ["<bos>", *KOREAN]
    parts = [text(20, 36, "Three Transformers and their masks", 20, INK, "start", 600),
             text(20, 62, "Rows: queries. Columns: keys. A tick: may attend.", 14, FAINT, "start"),
             *card(84, 296, "Encoder-only", "BERT", "fill in hidden tokens", "classify, tag, search"),
             *stack(190, 348, "N blocks", "self-attention, feed-forward", hidden, bert, 66, 62, 3),
             text(532, 142, "full mask", 15, INK, weight=600), *mask_grid(462, 226, hidden, hidden, always),
             *card(394, 296, "Decoder-only", "GPT", "predict the next token", "generate: continue any text"),
             *stack(190, 658, "N blocks", "causal self-attention, feed-forward", FIVE, [*FIVE[1:], "reads"], 66, 62),
             text(532, 452, "causal mask", 15, INK, weight=600), *mask_grid(462, 536, FIVE, FIVE, causal),
             *card(704, 558, "Encoder-decoder", "Transformer (2017), T5", "predict an output text from an input text", "translate, summarise"),
             *stack(114, 968, "N encoder blocks", "self-attention", they, None, 58, 55),
             *stack(474, 968, "N decoder blocks", "causal self-attention, cross-attention", given, [*KOREAN, "<eos>"], 58, 55),
             *(text(474 + 58 * (number - 1), 994, gloss, 13, FAINT, italic=True) for number, gloss in enumerate(KOREAN.values())),
             line([(200, 886), (328, 886)], KEY, 2.4), line([(200, 906), (328, 906)], VALUE, 2.4),
             text(262, 873, "K", 15, KEY, weight=700), text(262, 920, "V", 15, VALUE, weight=700)]
    for x, rows, columns, may, name in [(92, they, they, always, "encoder: full"), (276, given, given, causal, "decoder: causal"), (506, given, they, always, "cross-attention")]:
        parts += [text(x + 14 * len(columns), 1030, name, 15, INK, weight=600), *mask_grid(x, 1108, rows, columns, may)]
    return page(640, 1276, *parts, title="Encoder-only, decoder-only and encoder-decoder Transformers",
                description="BERT has a full mask and fills in hidden tokens. GPT has a causal mask and predicts the next "
                            "token. The encoder-decoder has a full mask in the encoder, a causal one in the decoder, and a "
                            "full one in the cross-attention, whose keys and values come from the encoder.")


DRAWINGS = {"13_masked_causal": masked_causal, "13_three": three}

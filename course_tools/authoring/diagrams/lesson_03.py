"""Encoder and decoder with every arrow of the context vector, teacher forcing, word order, and padding."""

from .kit import (
    BLUE,
    FAINT,
    GREEN,
    GREY,
    INK,
    RED,
    arrow,
    box,
    heading,
    line,
    lines,
    matrix,
    page,
    rectangle,
    step,
    text,
    token,
)

WORDS = ["they", "are", "cats"]
STATES = [(.76, .02), (.36, .76), (.83, .88)]  # of "By hand"
KOREAN = ["그들", "은", "고양이", "이다"]
GLOSS = {"그들": "they", "은": "TOPIC", "고양이": "cat", "이다": "be", "교사": "teacher",
         "<bos>": "begin", "<eos>": "end"}
INDEX = "₀₁₂₃₄₅"


# ---------------------------------------------------------------- word order

ENGLISH_SIDE = "the teacher who likes cats reads a book".split()
KOREAN_SIDE = [("고양이", "cat"), ("를", "OBJ"), ("좋아하-", "like"), ("-는", "-ing"), ("교사", "teacher"),
               ("는", "TOPIC"), ("책", "book"), ("을", "OBJ"), ("읽-", "read"), ("-는다", "ending")]
LINKS = [(4, 0), (3, 2), (1, 4), (7, 6), (5, 8)]  # English word, Korean token


def word_order():
    upper, lower = [80 + 100 * j for j in range(8)], [64 + 80 * i for i in range(10)]
    linked = [set(side) for side in zip(*LINKS)]
    parts = [heading("The same sentence in two languages", "Lines join words that translate each other. Grey tokens are "
                     "grammar: they have no partner of their own.")]
    parts += [line([(upper[j], 127), (lower[i], 213)], BLUE, 2, head=False) for j, i in LINKS]
    for j, word in enumerate(ENGLISH_SIDE):
        parts.append(token(upper[j], 112, word, INK if j in linked[0] else GREY, 78, 15))
    for i, (word, meaning) in enumerate(KOREAN_SIDE):
        known = i in linked[1]
        parts += [token(lower[i], 228, word, INK if known else GREY, 70, 15),
                  text(lower[i], 258, meaning, 12, FAINT, italic=True)]
    return page(860, 284, *parts, title="Word order in English and Korean",
                description="Five lines join five English words to their Korean partners; nearly all of them cross.")


# ---------------------------------------------------------------- encoder and decoder

GATES, OUT, ENTRY = 262, 158, 372  # heights of the recurrent steps, the outputs and the inputs


def encoder():
    parts = [text(116, 178, "encoder", 15, FAINT, weight=600)]
    for t, word in enumerate(WORDS):
        x = 48 + 80 * t
        parts += [token(x, ENTRY, word, width=60), arrow(x, ENTRY - 16, x, GATES + 18),
                  box(x, GATES, "GRU", "#f0f0f4", width=46),
                  arrow(x + 24, GATES, x + 34, GATES), arrow(x + 48, GATES, x + 56 if t < 2 else x + 66, GATES),
                  matrix(x + 34, GATES - 14, [[value] for value in STATES[t]], GREY, 14),
                  text(x + 41, GATES - 26, f"h{INDEX[t + 1]}", 14, FAINT, weight=600)]
    return parts


def context():
    """c, made from the last encoder state, and its three kinds of arrows."""
    x, below, above = 285, 318, 206
    parts = [matrix(x - 10, GATES - 20, [[value] for value in STATES[2]], GREEN, 20),
             text(x + 14, GATES - 34, "c", 20, GREEN, weight=700), step(x - 17, GATES + 26, 1),
             line([(x + 11, GATES), (x + 45, GATES)], GREEN, 2.4), step(x + 26, GATES + 18, 2)]
    for level, start, target, number in ((below, GATES + 21, GATES + 18, 3), (above, GATES - 21, OUT + 17, 4)):
        last = column(5) - 18
        parts += [line([(x, start), (x, level), (last, level), (last, target)], GREEN, 2.4), step(x + 60, level, number)]
        parts += [line([(column(i) - 18, level), (column(i) - 18, target)], GREEN, 2.4) for i in range(1, 5)]
    return parts


def column(i):
    return 332 + 94 * i


def decoder():
    parts = [text(column(3), 54, "decoder", 15, FAINT, weight=600), box(352, GATES, "s₀", width=40, colour=BLUE)]
    inputs, outputs = ["<bos>", *KOREAN], [*KOREAN, "<eos>"]
    for i, (given, predicted) in enumerate(zip(inputs, outputs), start=1):
        x = column(i)
        parts += [token(x, ENTRY, given, width=62), arrow(x + 14, ENTRY - 16, x + 14, GATES + 18),
                  box(x, GATES, "GRU", "#e8f1fa", BLUE, width=62),
                  line([(x - 53 if i == 1 else x - 63, GATES), (x - 32, GATES)], BLUE, 2),
                  arrow(x + 14, GATES - 18, x + 14, OUT + 18, BLUE, 2),
                  text(x + 19, 228, f"s{INDEX[i]}", 14, BLUE, "start", 600),
                  box(x, OUT, "softmax", width=66, size=13), arrow(x, OUT - 18, x, 122),
                  token(x, 106, predicted, width=62), text(x, 82, GLOSS[predicted], 11, FAINT, italic=True)]
        if i < 5:
            parts.append(line([(x + 32, 106), (x + 47, 106), (x + 47, ENTRY), (x + 62, ENTRY)], GREY, 1.6,
                              dashed=True))
    return parts


def legend():
    rows = ["The encoder's last state becomes the context vector c.", "c sets the decoder's first state.",
            "c is an input of every step.", "c is an input of every prediction."]
    parts = [line([(28, 486), (54, 486)], GREY, 1.6, dashed=True),
             text(58, 486, "At inference, each predicted token becomes the next input.", 13, FAINT, "start")]
    for i, words in enumerate(rows):
        x, y = 40 + 400 * (i // 2), 428 + 28 * (i % 2)
        parts += [step(x, y, i + 1), text(x + 18, y, words, 13, INK, "start")]
    return parts


def encoder_decoder():
    parts = [heading("One vector between two networks"),
             lines(30, 58, ["All that the decoder knows about", "the English sentence comes through c."]),
             *encoder(), *decoder(), *context(), *legend()]
    return page(860, 506, *parts, title="Encoder and decoder with one context vector",
                description="A GRU reads 'they are cats' into three states. The last one becomes the context vector c, "
                            "which enters the decoder's first state, each of its steps and each of its outputs.")


# ---------------------------------------------------------------- teacher forcing

def panel(y, title, note, given, predicted, below="it must predict", copied=False, wrong=None):
    """What the decoder is given, over what it predicts.  copied: the bug.  wrong: the step with a mistake."""
    colour = RED if copied else INK
    parts = [rectangle(16, y, 828, 192, "white", "#d5dae1", 1, 10), text(30, y + 22, title, 15, colour, "start", 600),
             text(30, y + 42, note, 13, FAINT, "start"), text(30, y + 76, "the decoder is given", 13, INK, "start"),
             text(30, y + 138, below, 13, INK, "start")]
    for i, (word, following) in enumerate(zip(given, predicted)):
        x, mistake = 250 + 126 * i, i == wrong
        parts += [token(x, y + 76, word, width=76), token(x, y + 138, following, RED if mistake else INK, 76),
                  arrow(x, y + 92, x, y + 122 - 2 * copied, colour, 2.4 if copied else 1.5),
                  text(x, y + 172, GLOSS[following], 12, RED if mistake else FAINT, italic=True)]
        if i < 4 and not copied:  # from this prediction to the next input
            parts.append(line([(x + 39, y + 138), (x + 63, y + 138), (x + 63, y + 76), (x + 86, y + 76)],
                              RED if mistake else GREY, 1.6, dashed=True))
    return parts


def teacher_forcing():
    inputs, targets, decoded = ["<bos>", *KOREAN], [*KOREAN, "<eos>"], ["그들", "은", "교사", "이다", "<eos>"]
    parts = [*panel(16, "Training: teacher forcing", "The inputs are the correct translation, shifted by one step. "
                    "Dashed: the same token, one step later.", inputs, targets),
             *panel(220, "The bug: no shift", "Every target is already in the input, so copying it gives a perfect loss.",
                    targets, targets, copied=True),
             *panel(424, "At inference: greedy decoding", "Nobody knows the correct tokens. The decoder is given its own "
                    "predictions, mistakes included.", ["<bos>", *decoded[:4]], decoded, "it predicts", wrong=2)]
    return page(860, 632, *parts, title="Teacher forcing, its bug, and greedy decoding",
                description="In training the inputs are the targets shifted by one step. Without the shift each target is "
                            "its own input. At inference each prediction becomes the next input.")


# ---------------------------------------------------------------- padding

def padding():
    rows = [WORDS, "I am a student".split(), ENGLISH_SIDE]
    parts = [heading("Three sentences in one rectangle", "Grey cells are padding. The encoder's result is the state after the "
                     "last real word of each row (outlined).")]
    for b, words in enumerate(rows):
        y = 84 + 40 * b
        for t in range(8):
            real, last = t < len(words), t == len(words) - 1
            parts.append(rectangle(40 + 84 * t, y, 84, 40, "white" if real else "#e9ebef", "#b8c0ca", 1, 0))
            parts.append(text(82 + 84 * t, y + 20, words[t] if real else "pad", 14, INK if real else GREY,
                              weight=600 if last else 400))
        parts.append(text(752, y + 20, f"length {len(words)}", 13, FAINT, "start"))
    parts += [rectangle(40 + 84 * (len(words) - 1), 84 + 40 * b, 84, 40, "none", GREEN, 3, 2)
              for b, words in enumerate(rows)]
    return page(860, 224, *parts, title="A padded batch",
                description="Sentences of 3, 4 and 8 words fill a rectangle of 3 rows and 8 columns; the rest is padding.")


DRAWINGS = {"03_word_order": word_order, "03_encoder_decoder": encoder_decoder,
            "03_teacher_forcing": teacher_forcing, "03_padding": padding}

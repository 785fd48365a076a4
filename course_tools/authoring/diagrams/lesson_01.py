"""The RNN unrolled with its gradient's path, the LSTM in four steps, and the GRU beside it."""

from .kit import (
    EDGE,
    FAINT,
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
    sign,
    step,
    text,
    token,
)

GATE, TEAL = "#6b4fa0", "#1d7a8c"  # what selects, and what could be added
LEARNED, NEW = "#f3effa", "#fff6dc"
OLD_CELL, FORGET = (.9, .4, .7), (1., .5, 0.)
INPUT, CANDIDATE = (0., .5, 1.), (.6, .4, .8)
KEPT, ADDED = (.9, .2, 0.), (0., .2, .8)
NEW_CELL, OUTPUT, STATE = (.9, .4, .8), (0., 1., 1.), (0., .4, .7)
CELL = 26


# ---------------------------------------------------------------- the RNN, unrolled

COLUMNS = [(95, "The", "1"), (225, "letters", "2"), (355, "that", "3"), (555, "her", "11"), (685, "bed", "12")]
SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def unrolled():
    parts = [heading("An RNN, unrolled over time", "The same step, with the same weights, drawn once for each word")]
    for x, word, number in COLUMNS:
        parts += [token(x, 334, word, width=76), arrow(x, 318, x, 272),
                  box(x, 250, "RNN step", LEARNED, width=80, height=42, learned=True, size=13)]
        parts.append(matrix(x + 58, 229, [[.75], [.35], [.55]], GREY, 14))
        parts.append(text(x + 66, 286, "h" + number.translate(SUBSCRIPT), 14, FAINT, weight=600))
    parts += [line([(x + 40, 250), (x + 56, 250)], INK, head=False) for x, _, _ in COLUMNS]
    parts += [arrow(x + 73, 250, x + 89, 250) for x in (95, 225, 425, 555)]
    parts += [line([(428, 250), (438, 250)], INK, head=False), text(455, 250, "· · ·", 18, FAINT),
              line([(472, 250), (482, 250)], INK, head=False), matrix(483, 229, [[.75], [.35], [.55]], GREY, 14),
              text(491, 286, "h₁₀", 14, FAINT, weight=600)]
    parts += [line([(750, 228), (750, 147)], INK),
              box(768, 128, "were?", width=90, height=34), text(768, 98, "the answer", 12, FAINT)]
    return page(860, 372, *parts, *gradient_path(), title="An RNN unrolled over time, and the path of its gradient",
                description="Words enter one after the other; each step passes a state on to the next. The "
                            "gradient runs back from the answer through every state and gets weaker at each.")


def gradient_path():
    """From the answer back to 'letters': one factor for each step, each arrow thinner than the last."""
    parts = [thick_arrow([(790, 147), (790, 250)], (762, 250), 7), text(806, 200, "1", 13, RED)]
    for start, end, width, factor, left in [(736, 622, 5, "× J₁₂", "1/2"), (608, 490, 3.5, "× J₁₁", "1/4"),
                                            (422, 294, 1.6, "× J₃", "1/1024")]:
        parts += [thick_arrow([(start, 224), (start, 196), (end, 196)], (end, 226), width),
                  text((start + end) / 2, 180, factor, 14, RED, weight=600),
                  text((start + end) / 2, 212, left, 13, RED)]
    parts += [text(456, 196, "· · ·", 18, RED), line([(282, 224), (282, 206), (258, 206), (258, 317)], RED, 1.2)]
    return parts + [lines(30, 98, ["Backwards, the gradient passes through every state.",
                                   "If each of the ten factors halves it, 1/1024 is left at “letters”."], 14, RED)]


def thick_arrow(points, end, width, colour=RED):
    """A path that ends at `end`, going down or sideways, with a head that suits its width."""
    x, y, size = *end, 6 + width
    half = size * .55
    if points[-1][0] == x:
        head, stop = f"M {x} {y} L {x - half:g} {y - size:g} L {x + half:g} {y - size:g} z", (x, y - size + 1)
    else:
        back = size if points[-1][0] > x else -size
        head, stop = f"M {x} {y} L {x + back:g} {y - half:g} L {x + back:g} {y + half:g} z", (x + back * .9, y)
    return line([*points, stop], colour, width, head=False) + f"<path d='{head}' fill='{colour}'/>"


# ---------------------------------------------------------------- the LSTM, step by step

def strip(x, y, values, colour, name="", cell=CELL):
    """A vector of three numbers, its left end at x, centred on y."""
    return matrix(x, y - cell / 2, [values], colour, cell, name=name, numbers=".1f")


def gate(x, y, label, values, new, colour=GATE, symbol="σ"):
    """A gate at x: its layer at y, and above it the numbers that the layer gives."""
    return [box(x, y, symbol, NEW if new else LEARNED, width=58, height=32, learned=True),
            arrow(x, 326, x, y + 17), line([(x, y - 16), (x, y - 34)], INK, head=False),
            strip(x - 39, y - 47, values, colour), text(x - 47, y - 47, label, 15, colour, "end", 600)]


def inputs():
    return [matrix(64, 319, [[.5, .2, .8, .4]], INK, 14), text(56, 326, "xₜ", 14, INK, "end", 600),
            matrix(64, 343, [[.0, .6, .3]], GREY, 14), text(56, 350, "hₜ₋₁", 14, INK, "end", 600),
            line([(106, 350), (140, 350), (140, 326)], INK, head=False),
            text(160, 350, "every layer computes xₜ W + hₜ₋₁ U + b, each with weights of its own", 12, FAINT, "start")]


def bus(end):
    return line([(120, 326), (end, 326)], INK, head=False)


def conveyor(cell_now):
    """The cell, on its way from left to right."""
    return [strip(46, 120, OLD_CELL, GREY, "cₜ₋₁"), thick_arrow([(126, 120)], (747, 120), 5, GREY),
            strip(750, 120, cell_now, GREY, "cₜ")]


def forget(new):
    return [*gate(235, 262, "f", FORGET, new), arrow(235, 201, 235, 132), sign(235, 120, "×", GATE),
            strip(262, 120, KEPT, GREY)]


def write(new):
    return [*gate(405, 262, "i", INPUT, new), *gate(540, 262, "g", CANDIDATE, new, TEAL, "tanh"),
            line([(405, 202), (405, 182), (461, 182)]), line([(540, 202), (540, 182), (485, 182)]),
            sign(473, 182, "×", GATE), arrow(473, 170, 473, 132), sign(473, 120, "+", INK),
            strip(484, 152, ADDED, GREY)]


def read(new):
    return [*gate(655, 262, "o", OUTPUT, new), line([(720, 120), (720, 152)], INK),
            rectangle(695, 153, 50, 26, "white") + text(720, 166, "tanh", 13), arrow(720, 179, 720, 203),
            line([(694, 215), (708, 215)], INK), sign(720, 215, "×", GATE), arrow(732, 215, 748, 215),
            strip(750, 215, STATE, GREY, "hₜ")]


def lstm(height, number, name, note, *parts, description):
    return page(860, height, step(40, 32, number), text(60, 32, name, 18, INK, "start", 600),
                text(30, 60, note, 13, FAINT, "start"), *parts, title=f"The LSTM, step {number}: {name}",
                description=description)


def lstm_cell():
    return lstm(160, 1, "A second state: the cell",
                "It travels from step to step without being multiplied by a matrix or squashed by a tanh.",
                *conveyor(OLD_CELL), description="The cell passes from left to right unchanged.")


def lstm_forget():
    words = ["1.0 keeps a number,", "0.5 halves it,", "0.0 erases it."]
    return lstm(372, 2, "The forget gate: what is kept",
                "A layer with a sigmoid reads the new word and the last state, and gives one factor for each number of the cell.",
                *conveyor(KEPT), *inputs(), bus(235), *forget(True), lines(340, 205, words, 14, GATE),
                description="The forget gate f multiplies the cell, number by number.")


def lstm_input():
    return lstm(372, 3, "The input gate and the candidate: what is added",
                "The candidate g is what could be added. The input gate i decides how much of it is added.",
                *conveyor(NEW_CELL), *inputs(), bus(540), *forget(False), *write(True),
                description="Input gate times candidate is added to the cell.")


def lstm_output():
    return lstm(372, 4, "The output gate: what is shown",
                "The state h is the part of the cell that the rest of the network sees now. The cell itself does not change.",
                *conveyor(NEW_CELL), *inputs(), bus(655), *forget(False), *write(False), *read(True),
                description="The output gate selects what of the cell becomes the state.")


# ---------------------------------------------------------------- the GRU beside the LSTM

def small_gate(x, label, values, symbol="σ", colour=GATE):
    """A gate as above, but narrower: its layer at y = 262."""
    return [box(x, 262, symbol, LEARNED, width=50, height=30, learned=True, size=13), arrow(x, 326, x, 278),
            line([(x, 247), (x, 226)], INK, head=False), strip(x - 30, 215, values, colour, cell=20),
            text(x - 35, 215, label, 14, colour, "end", 600)]


def small_lstm():
    return [text(30, 70, "LSTM", 16, INK, "start", 600), text(84, 70, "two states, three gates", 13, FAINT, "start"),
            strip(30, 120, OLD_CELL, GREY, "cₜ₋₁", 20), thick_arrow([(92, 120)], (337, 120), 5, GREY),
            strip(340, 120, NEW_CELL, GREY, "cₜ", 20),
            *small_gate(110, "f", FORGET), arrow(110, 204, 110, 132), sign(110, 120, "×", GATE),
            *small_gate(200, "i", INPUT), *small_gate(285, "g", CANDIDATE, "tanh", TEAL),
            line([(200, 204), (200, 172), (231, 172)]), line([(285, 204), (285, 172), (255, 172)]),
            sign(243, 172, "×", GATE), arrow(243, 160, 243, 132), sign(243, 120, "+"),
            *small_gate(370, "o", OUTPUT), arrow(370, 204, 370, 189),
            line([(370, 131), (370, 138)], INK, head=False), rectangle(350, 138, 40, 17, "white", radius=5),
            text(370, 146.5, "tanh", 11), arrow(370, 155, 370, 165), sign(370, 177, "×", GATE), arrow(382, 177, 402, 177),
            text(414, 177, "hₜ", 15, GREY, weight=600),
            line([(84, 326), (370, 326)], INK, head=False), text(30, 326, "xₜ, hₜ₋₁", 13, INK, "start", 600)]


def small_gru():
    return [text(460, 70, "GRU", 16, INK, "start", 600), text(506, 70, "one state, two gates", 13, FAINT, "start"),
            strip(460, 120, OLD_CELL, GREY, "hₜ₋₁", 20), thick_arrow([(522, 120)], (767, 120), 5, GREY),
            strip(770, 120, NEW_CELL, GREY, "hₜ", 20),
            *small_gate(560, "z", FORGET), arrow(560, 204, 560, 132), sign(560, 120, "×", GATE),
            line([(590, 215), (620, 215), (620, 190)], INK), strip(590, 178, INPUT, GATE, cell=20),
            text(620, 156, "1 − z", 13, GATE, weight=600), arrow(651, 178, 684, 178),
            sign(696, 178, "×", GATE), arrow(696, 166, 696, 132), sign(696, 120, "+"),
            strip(722, 215, CANDIDATE, TEAL, cell=20), text(716, 215, "n", 14, TEAL, "end", 600),
            line([(752, 204), (752, 178), (708, 178)]), line([(752, 226), (752, 237)], INK, head=False),
            box(752, 252, "tanh", LEARNED, width=66, height=30, learned=True, size=13),
            box(650, 292, "σ", LEARNED, width=50, height=30, learned=True, size=13), arrow(650, 326, 650, 308),
            text(695, 280, "r", 14, GATE, weight=600), arrow(676, 292, 724, 292), sign(736, 292, "×", GATE),
            line([(736, 326), (736, 304)], INK, head=False), arrow(736, 281, 736, 268),
            arrow(770, 326, 770, 268), text(744, 342, "hₜ₋₁ Uₙ", 12, INK, "end", 600), text(768, 342, "xₜ Wₙ", 12, INK, "start", 600),
            line([(510, 326), (770, 326)], INK, head=False), text(504, 326, "xₜ, hₜ₋₁", 13, INK, "end", 600)]


def gru():
    return page(860, 366, heading("The LSTM and the GRU, with the same numbers"), *small_lstm(), *small_gru(),
                line([(436, 60), (436, 346)], EDGE, 1.5, head=False), title="The LSTM and the GRU beside each other",
                description="Left, the LSTM: forget gate, input gate, candidate and output gate. Right, the GRU: its "
                            "gate z keeps, 1 - z adds the candidate, and r scales what the candidate reads of the state.")


DRAWINGS = {"01_unrolled": unrolled, "01_lstm_1_cell": lstm_cell, "01_lstm_2_forget": lstm_forget,
            "01_lstm_3_input": lstm_input, "01_lstm_4_output": lstm_output, "01_gru": gru}

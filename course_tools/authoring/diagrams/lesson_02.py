"""Convolutions over a sentence: all positions at once, stacks and what they see, one layer, paths."""

from .kit import (
    FAINT,
    INK,
    PURPLE,
    RESIDUAL,
    arrow,
    box,
    heading,
    line,
    matrix,
    page,
    plus,
    rectangle,
    sign,
    step,
    text,
    token,
)

PALE, OUTSIDE, SEEN = "#d3d9e0", "#9aa5b1", "#efeaf8"  # an arrow, a word, a node that plays no part; one that does
SENTENCE = "the letters in the box under her bed".split()


def node(x, y, label="", seen=True, colour=PURPLE, radius=13, size=13):
    """The output of a layer at one position."""
    fill, stroke = (SEEN, colour) if seen else ("white", PALE)
    return (f"<circle cx='{x:g}' cy='{y:g}' r='{radius}' fill='{fill}' stroke='{stroke}' stroke-width='1.8'/>"
            + (text(x, y, label, size, INK if seen else OUTSIDE, weight=600) if label else ""))


def zero(x, y, width=34):
    """One vector of zeros before the start."""
    return rectangle(x - width / 2, y - 15, width, 30, "white", FAINT, 1.3, dashed=True) + text(x, y, "0", 14, FAINT)


def group(x, y, parts):
    """The parts, moved to the right and down."""
    return f"<g transform='translate({x:g} {y:g})'>{''.join(parts)}</g>"


PLACES = [110 + 74 * t for t in range(5)]  # of the first five words, in both halves of the picture


def recurrence():
    parts = [text(30, 0, "Recurrent network", 15, INK, "start", 600),
             text(30, 21, "each state waits for the one before it", 13, FAINT, "start")]
    for t, (x, word) in enumerate(zip(PLACES, SENTENCE[:5], strict=True)):
        parts += [step(x, 58, t + 1), node(x, 98, f"h{'₁₂₃₄₅'[t]}", colour=INK, radius=18),
                  token(x, 182, word, width=62), arrow(x, 167, x, 118)]
        if t:
            parts.append(arrow(x - 56, 98, x - 20, 98, PURPLE, 2.4))
    return [*parts, text(30, 222, "5 words, 5 steps", 13, INK, "start", 600)]


def all_at_once():
    parts = [text(30, 0, "Convolution, kernel of 2", 15, INK, "start", 600),
             text(30, 21, "no output waits for another one", 13, FAINT, "start"), zero(PLACES[0] - 62, 182)]
    for t, (x, word) in enumerate(zip(PLACES, SENTENCE[:5], strict=True)):
        parts += [step(x, 58, 1), node(x, 98, f"Y{'₁₂₃₄₅'[t]}", colour=INK, radius=18),
                  token(x, 182, word, width=62), arrow(x, 167, x, 118, INK, 2),
                  arrow(x - (58 if t == 0 else 66), 167, x - 13, 113, PURPLE, 2)]
    return [*parts, text(PLACES[0] - 44, 134, "W₀", 14, PURPLE, "end", 600),
            text(PLACES[-1] + 10, 142, "W₁", 14, INK, "start", 600),
            text(30, 222, "5 words, 1 step; the same two matrices everywhere", 13, INK, "start", 600)]


def at_once():
    return page(
        476, 616, heading("In which step can a vector be computed?", "The number in the dark circle is the step."),
        group(0, 96, recurrence()), group(0, 368, all_at_once()),
        title="Recurrent network and convolution over the same five words",
        description="Above, five recurrent states that are computed in steps 1 to 5. Below, five outputs of a "
                    "convolution with a kernel of two, all computed in step 1. Before the first word stands a zero.")


def seen_by_last(dilations, n):
    """For each level, words first, the positions that the last output depends on; kernels of two."""
    levels = [{n - 1}]
    for dilation in reversed(dilations):
        levels.append({s for t in levels[-1] for s in (t, t - dilation) if s >= 0})
    return levels[::-1]


def stack(top, title, dilations):
    """Three layers over the sentence, its upper edge at `top`."""
    seen, n = seen_by_last(dilations, len(SENTENCE)), len(SENTENCE)
    places, heights = [168 + 65 * t for t in range(n)], [top + 226 - 62 * level for level in range(4)]
    parts = [text(30, top, title, 15, INK, "start", 600)]
    edges = {kind: [] for kind in (False, True)}
    for level, dilation in enumerate(dilations):
        for t, x in enumerate(places):
            for s in (t, t - dilation):
                if s >= 0:
                    on = t in seen[level + 1]
                    low = heights[level] - (15 if level == 0 else 12)
                    edges[on].append(line([(places[s], low), (x, heights[level + 1] + 12)],
                                          PURPLE if on else PALE, 2 if on else 1.2, head=False))
        parts.append(text(30, heights[level + 1], f"layer {level + 1}, dilation {dilation}", 13, FAINT, "start"))
    parts += edges[False] + edges[True]
    for level in range(1, 4):
        parts += [node(x, heights[level], seen=t in seen[level], radius=11) for t, x in enumerate(places)]
    for t, (x, word) in enumerate(zip(places, SENTENCE, strict=True)):
        on = t in seen[0]
        parts += [rectangle(x - 30, heights[0] - 15, 60, 30, SEEN if on else "white", PURPLE if on else PALE),
                  text(x, heights[0], word, 14, INK if on else OUTSIDE, weight=600 if word == "letters" else 400)]
    first, y = places[min(seen[0])] - 30, heights[0] + 26
    parts += [line([(first, y - 5), (first, y), (places[-1] + 30, y), (places[-1] + 30, y - 5)], PURPLE, 2, head=False),
              text((first + places[-1] + 30) / 2, y + 15, f"receptive field: {len(seen[0])} words", 13, PURPLE,
                   weight=600),
              arrow(places[-1], heights[3] - 12, places[-1], heights[3] - 34, PURPLE, 2),
              text(places[-1], heights[3] - 46, "was or were?", 13, INK, weight=600)]
    return parts


def stacks():
    return page(
        684, 710, heading("What the last position sees", "Kernels of two, three layers; purple: whatever the last "
                          "output depends on"),
        *stack(112, "Without gaps", [1, 1, 1]), *stack(420, "With gaps that double", [1, 2, 4]),
        title="Receptive fields of three plain and of three dilated convolutions",
        description="Three layers over the words 'the letters in the box under her bed'. With dilations 1, 1, 1 the "
                    "last output depends on the last four words, with dilations 1, 2, 4 on all eight.")


def by_hand():
    rows = [(300, "X", [1, 2, 3, 4], 1), (200, "Y", [1, 2.5, 4, 5.5], 2), (100, "Z", [1, 2.5, 4.5, 6.75], 0)]
    used = {("Y", 1), ("Y", 3), ("Z", 3), *(("X", t) for t in range(4))}
    place = lambda t: 290 + 84 * t                                               # noqa: E731
    parts = [heading("Two layers by hand")]
    for (y, name, values, zeros), note in zip(rows, ("words", "dilation 1", "dilation 2"), strict=True):
        parts += [text(30, y - 10, name, 16, INK, "start", 600), text(30, y + 10, note, 13, FAINT, "start")]
        parts += [zero(place(-1 - number), y) for number in range(zeros)]
        parts += [token(place(t), y, f"{value:g}", INK if (name, t) in used else OUTSIDE, 54)
                  for t, value in enumerate(values)]
    for y, dilation, name in ((200, 1, "Y"), (100, 2, "Z")):
        for t in range(4):
            on, past = (name, t) in used, place(t - dilation)
            for x, end, colour in ((place(t), place(t), INK), (past + 10, place(t) - 14, PURPLE)):
                parts.append(line([(x, y + 83), (end, y + 18)], colour if on else PALE, 2 if on else 1.2, head=on))
    for x, y, label, colour in ((place(3) + 14, 150, "× 1", INK), (place(3) + 14, 250, "× 1", INK),
                                (place(2) + 66, 162, "× 0.5", PURPLE), (place(3) - 42, 232, "× 0.5", PURPLE),
                                (place(1) + 14, 250, "× 1", INK), (place(1) - 42, 232, "× 0.5", PURPLE)):
        parts.append(text(x, y, label, 13, colour, "start" if colour == INK else "end", 600))
    parts.append(text(30, 352, "6.75 is made of", 13, FAINT, "start"))
    parts += [text(place(t), 352, label, 14, PURPLE, weight=600)
              for t, label in enumerate(("0.25 × 1", "0.5 × 2", "0.5 × 3", "1 × 4"))]
    return page(600, 380, *parts, title="A convolution with dilation 1 and one with dilation 2, by hand",
                description="The words 1, 2, 3, 4 become 1, 2.5, 4, 5.5 with dilation 1 and then 1, 2.5, 4.5, 6.75 "
                            "with dilation 2. The last number holds the words with the weights 0.25, 0.5, 0.5 and 1.")


def gated_layer():
    strip = lambda x, y, values, colour: matrix(x, y, [values], colour, 16)      # noqa: E731
    parts = [heading("One layer: convolution, gate, sum"),
             strip(30, 97, [.2, .7, .4, .9], RESIDUAL), text(30, 80, "position t − dilation", 13, FAINT, "start"),
             strip(30, 207, [.6, .3, .8, .1], RESIDUAL), text(30, 236, "position t", 13, FAINT, "start"),
             line([(96, 105), (116, 105), (116, 142), (130, 142)], PURPLE, 2),
             line([(96, 211), (116, 211), (116, 168), (130, 168)], INK, 2),
             box(186, 155, "convolution", width=108, height=62, learned=True), text(186, 202, "W₀, W₁", 13, FAINT),
             line([(241, 142), (258, 142), (258, 112), (272, 112)], INK),
             line([(241, 168), (258, 168), (258, 182), (272, 182)], INK),
             strip(274, 104, [.9, .5, .2, .6], INK), text(306, 88, "content a", 13, INK, weight=600),
             strip(274, 174, [.1, .9, .6, .3], INK), text(306, 208, "gate b", 13, INK, weight=600),
             arrow(340, 182, 354, 182), sign(367, 182, "σ"), line([(378, 182), (404, 182), (404, 124)], INK),
             arrow(340, 112, 391, 112), sign(404, 112, "×"), line([(416, 112), (450, 112), (450, 253)], INK),
             line([(96, 218), (106, 218), (106, 264), (439, 264)], RESIDUAL, 4, head=False), plus(450, 264),
             line([(461, 264), (486, 264)], RESIDUAL, 4), strip(490, 256, [.8, .6, .9, .3], RESIDUAL),
             text(522, 238, "output t", 13, FAINT),
             text(272, 284, "residual connection: the vector at t is added unchanged", 13, FAINT),
             text(460, 160, "a ⊙ σ(b)", 14, INK, "start", 600)]
    return page(580, 306, *parts, title="A gated convolution with a residual connection",
                description="A convolution of the vectors at t − dilation and at t gives a content a and a gate b. The "
                            "content is multiplied by the sigmoid of the gate, and the vector at t itself is added.")


def panel(left, top, bottom, title, count, levels, edges):
    """Nine positions, some layers above them, and one path from the first word to the last output."""
    places = [left + 12 + 21 * t for t in range(9)]
    height = lambda level: bottom - 32 * level                                   # noqa: E731
    parts = [text(left, top, title, 15, INK, "start", 600), text(left, top + 22, count, 14, PURPLE, "start", 600)]
    on = {place for edge in edges for place in edge}
    parts += [line([(places[s], height(a)), (places[t], height(b))], PURPLE, 2.2, head=False)
              for (s, a), (t, b) in edges]
    for level in range(levels + 1):
        for t, x in enumerate(places):
            seen = (t, level) in on
            fill, stroke = (PURPLE, PURPLE) if seen else ("white", OUTSIDE)
            parts.append(f"<circle cx='{x}' cy='{height(level):g}' r='{5.5 if seen else 4.5}' fill='{fill}'"
                         f" stroke='{stroke}' stroke-width='1.2'/>")
    return [*parts, text(places[0] - 6, bottom + 22, "first", 13, FAINT, "start"),
            text(places[-1] + 6, bottom + 22, "last", 13, FAINT, "end")]


def paths():
    recurrent = [((0, 0), (0, 1)), *(((t, 1), (t + 1, 1)) for t in range(8))]
    plain = [((2 * layer, layer), (2 * layer + 2, layer + 1)) for layer in range(4)]
    dilated = [((0, 0), (2, 1)), ((2, 1), (8, 2))]
    return page(
        476, 512, heading("From the first word to the last output",
                          "Purple: the path, for nine words and kernels of three"),
        *panel(30, 96, 284, "recurrent", "8 steps", 1, recurrent),
        *panel(256, 96, 284, "convolution", "4 layers", 4, plain),
        *panel(30, 350, 474, "dilated 1, 3", "2 layers", 2, dilated),
        *panel(256, 350, 474, "attention", "1 layer", 1, [((0, 0), (8, 1))]),
        title="Path lengths of four kinds of layers",
        description="From the first of nine words to the last output a recurrent network needs 8 steps, plain "
                    "convolutions with kernels of three 4 layers, dilated ones 2 layers and attention 1 layer.")


DRAWINGS = {"02_at_once": at_once, "02_stacks": stacks, "02_by_hand": by_hand, "02_gated_layer": gated_layer,
            "02_paths": paths}

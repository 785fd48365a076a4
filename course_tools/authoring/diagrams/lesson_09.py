"""Multi-head attention: projected, split between two heads, attended, merged, with all shapes."""

from .kit import (
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
    heading,
    line,
    matrix,
    page,
    projection,
    step,
    text,
)

N, D_K, CELL = 3, 2, 17
X = [[.5, .2, .35, .6], [.15, .55, .4, .25], [.45, .3, .6, .1]]
# For each head: its share of Q, K and V, and the weights of the three words.
HEADS = [{"Q": [[.7, .2], [.3, .6], [.5, .4]], "K": [[.4, .7], [.6, .2], [.2, .5]],
          "V": [[.6, .3], [.2, .7], [.5, .5]], "weights": [[.1, .8, .1], [.7, .2, .1], [.2, .2, .6]]},
         {"Q": [[.2, .5], [.6, .3], [.4, .7]], "K": [[.5, .3], [.3, .6], [.7, .4]],
          "V": [[.4, .6], [.7, .2], [.3, .5]], "weights": [[.2, .1, .7], [.1, .3, .6], [.8, .1, .1]]}]
ROLES = {"Q": QUERY, "K": KEY, "V": VALUE}


def mixed(weights, values):
    return [[sum(w * value[j] for w, value in zip(row, values, strict=True)) for j in range(D_K)]
            for row in weights]


def heads():
    parts = [heading("Multi-head attention: the same words, looked at in two ways",
                     "n = 3 words, d_model = 4, h = 2 heads of d_k = 2. A bold outline marks what is learned.")]
    for x, number, name in [(30, 1, "project"), (228, 2, "split"), (324, 3, "attend: each head alone"),
                            (668, 4, "merge")]:
        parts += [step(x, 88, number), text(x + 18, 88, name, 14, INK, "start", 600)]
    parts += project() + [part for number in (0, 1) for part in head(number, 130 + 190 * number)] + merge()
    return page(860, 478, *parts, title="Multi-head attention with two heads",
                description="Three words are projected to Q, K and V. The columns are split between two heads. Each "
                            "head computes its own weights and applies them to its own values. The results are "
                            "concatenated and multiplied by W O.")


def weight(x, y, name, colour):
    """A learned matrix in its box, centred on (x, y)."""
    return box(x, y, "", colour=colour, width=44, height=36, learned=True) + projection(x, y + 1, name)


def divided(x, y):
    """The dashed border between the heads' columns of a table whose upper left corner is (x, y)."""
    return (f"<path d='M {x + 2 * CELL} {y - 6} v {3 * CELL + 12}' stroke='{INK}' stroke-width='1.6'"
            " stroke-dasharray='3 3'/>")


def project():
    """X times W_Q, W_K, W_V: three tables of shape (n, d_model), and an arrow to each head."""
    parts = [matrix(20, 264, X, RESIDUAL, CELL, "X", "(n, d_model)")]
    for number, (name, colour) in enumerate(ROLES.items()):
        y = 150 + 130 * number - 16
        parts += [line([(90, 290), (100, 290), (100, y + 26), (108, y + 26)], RESIDUAL, 1.8),
                  weight(132, y + 26, name, colour), arrow(156, y + 26, 172, y + 26, colour, 1.8)]
        full = [a[name][i] + b[name][i] for a, b in [HEADS] for i in range(N)]
        parts += [matrix(176, y, full, colour, CELL, name, "(n, d_model)"), divided(176, y)]
        parts += [arrow(248, y + 26, 306, top, colour, 1.6) for top in (158 + 30 * number, 348 + 30 * number)]
    return parts


def head(number, top):
    """Its slices of Q, K and V, its weights, and its output."""
    found, index, y = HEADS[number], "₁₂"[number], top + 44
    parts = [frame(310, top - 22, 332, 164, PURPLE, f"head {number + 1}")]
    for x, name in [(326, "Q"), (376, "K"), (528, "V")]:
        parts.append(matrix(x, y, found[name], ROLES[name], CELL, name + index, "(n, d_k)" if name != "K" else ""))
    parts += [text(474, top + 10, f"softmax(Q{index} K{index}ᵀ / √d_k)", 12, FAINT),
              arrow(414, y + 25, 438, y + 25, INK),
              matrix(442, y, found["weights"], INK, CELL, "", "(n, n)"), text(510, y + 25, "×", 16, INK),
              text(574, y + 25, "=", 16, INK),
              matrix(588, y, mixed(found["weights"], found["V"]), VALUE, CELL, "", "(n, d_k)")]
    return parts


def merge():
    """The outputs side by side, times W_O."""
    left, right = (mixed(one["weights"], one["V"]) for one in HEADS)
    joined = [a + b for a, b in zip(left, right, strict=True)]
    x, y = 672, 264
    return [line([(626, 199), (x + CELL, 199), (x + CELL, y - 3)], VALUE, 1.8),
            line([(626, 389), (x + 3 * CELL, 389), (x + 3 * CELL, y + 55)], VALUE, 1.8),
            matrix(x, y, joined, VALUE, CELL, "", ""), divided(x, y), text(x + 74, y + 68, "concat", 13, VALUE, "start", 600),
            text(x + 74, y + 86, "(n, d_model)", 12, FAINT, "start"),
            arrow(x + 72, y + 26, x + 92, y + 26, VALUE, 1.8), weight(x + 118, y + 26, "O", INK),
            arrow(x + 118, y + 6, x + 118, y - 36, INK, 1.8),
            matrix(x + 84, y - 92, [[.3, .5, .2, .4], [.6, .3, .5, .2], [.2, .4, .6, .5]], RESIDUAL, CELL, "output", "")]


DRAWINGS = {"09_heads": heads}

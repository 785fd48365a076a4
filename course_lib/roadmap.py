"""The road of the course as one picture: `python -m course_lib.roadmap docs/roadmap.png`."""

import sys
from pathlib import Path

from matplotlib.patches import FancyBboxPatch

from . import plots

LESSONS = ["long-term\ndependency", "convolutional\nsequences", "seq2seq", "attention,\nalignment",
           "query, key,\nvalue", "batch against\nlayer norm", "residual\nconnections",
           "self-attention,\nmasks", "multi-head\nattention", "positional\nencoding",
           "Transformer\nblocks", "the full\nTransformer", "BERT\nand GPT"]
# What the finished model is made of, bottom to top, with the lesson that builds the part.
NORM = ("add and norm", "06, 07")
ENCODER = [("positional encoding", "10"), ("multi-head self-attention", "05, 08, 09"), NORM,
           ("feed-forward", "11"), NORM]
DECODER = [("positional encoding", "10"), ("masked self-attention", "08, 09"), NORM,
           ("attention to the encoder", "04, 09"), NORM, ("feed-forward", "11"), NORM]


def road():
    """The road: thirteen lessons, and the Transformer at its end with the lesson of each part."""
    figure, axes = plots.picture(width=7.0, height=4.6)
    axes.axis("off")
    axes.set(xlim=(0, 14), ylim=(0, 9.4))
    axes.set_title("Thirteen lessons; the numbers on the right say which one builds the part")
    for number, name in enumerate(LESSONS):
        column, row = divmod(number, 5)
        _box(axes, 0.1 + 2.5 * column, 7.2 - 1.75 * row, 2.3, 1.4, f"{number + 1:02d}  {name}", number)
    _stack(axes, 7.9, ENCODER, "I am a student")
    _stack(axes, 11.0, DECODER, "나는 학생이다")
    axes.annotate("", (11.0, 5.0), (10.7, 6.2), arrowprops={"arrowstyle": "->", "color": "black"})
    return figure


def _stack(axes, x, parts, sentence):
    axes.text(x + 1.4, 0.35, sentence, ha="center", fontsize=9)
    for height, (name, lessons) in enumerate(parts):
        _box(axes, x, 1.0 + 1.18 * height, 2.8, 0.95, f"{name}\n({lessons})", int(lessons[:2]) - 1)


def _box(axes, x, y, width, height, text, number):
    colour = plots.COLOURS[min(number // 4, 3)]
    axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0.02",
                                  fc=colour, ec=colour, alpha=0.2))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=7)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(road()._repr_png_())

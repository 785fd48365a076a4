"""Pictures: every function returns a closed figure whose title says what to see.

A notebook cell ends with that figure.  Korean text is drawn with the font shipped in data/fonts.
"""

import io
import warnings
from pathlib import Path

from matplotlib import font_manager, rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# Okabe and Ito 2008: told apart by colour-blind readers; markers and dashes say it a second time.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]
DASHES = ["-", "--", "-.", ":", "-", "--", "-."]

FONT = Path(__file__).parent / "data" / "fonts" / "CourseHangul.ttf"
font_manager.fontManager.addfont(FONT)
STYLE = {"font.family": ["DejaVu Sans", "Course Hangul"], "font.size": 9, "axes.titlesize": 10,
         "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
         "grid.alpha": 0.3, "legend.frameon": False, "image.cmap": "cividis",
         "savefig.dpi": 100, "figure.dpi": 100}
rcParams.update(STYLE)  # for the learner's own pyplot pictures too


class Picture(Figure):
    """A matplotlib figure that shows itself as PNG and belongs to no window."""

    def _repr_png_(self):
        buffer = io.BytesIO()
        with warnings.catch_warnings():  # a learner's long sentence may leave no room: then it looks crowded
            warnings.filterwarnings("ignore", "constrained_layout not applied")
            self.savefig(buffer, format="png", metadata={"Software": None})
        return buffer.getvalue()

    def __repr__(self):
        # The same text on every machine, since stored outputs are compared.
        width, height = self.get_size_inches()
        return f"<picture, {width:g} x {height:g} inches>"


def picture(columns=1, rows=1, width=7.0, height=2.8, **subplots):
    """An empty picture and its axes, for drawings of your own: ``figure, axes = picture(columns=2)``.

    width, height: inches, in a lesson at most 7 x 3.  Further arguments go to Figure.subplots.
    """
    figure = Picture(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, **subplots)


def lines(x, curves, title, xlabel, ylabel, log=False, ylim=None, axes=None, legend=True,
          first=0):
    """Curves over common x values.  Returns a Picture, or draws into `axes`.

    curves: {"label": values}, as many values as x has.  log: logarithmic y axis.  first: the number of the
    first colour, so that a curve can look the same in two pictures.
    """
    figure = None
    if axes is None:
        figure, axes = picture()
    for number, (label, values) in enumerate(curves.items()):
        look = (first + number) % len(COLOURS)
        axes.plot(x, values, label=label, color=COLOURS[look], linestyle=DASHES[look],
                  marker=MARKERS[look] if len(x) <= 20 else None, markersize=4)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if log:
        axes.set_yscale("log")
    if ylim:
        axes.set_ylim(*ylim)
    if legend and len(curves) > 1:
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def heatmap(values, title, rows=None, columns=None, ylabel="", xlabel="", axes=None, numbers=False):
    """A matrix as colours: row i of `values` is row i of the picture.

    values (n, m).  rows, columns: texts on the axes, Korean too.  numbers: print each value.
    """
    figure = None
    if axes is None:
        figure, axes = picture(width=min(7.0, 1.8 + 0.45 * len(values[0])))
    image = axes.imshow(values, aspect="auto", cmap="cividis")
    axes.grid(False)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if rows is not None:
        axes.set_yticks(range(len(rows)), rows)
    if columns is not None:
        axes.set_xticks(range(len(columns)), columns, rotation=45 if max(map(len, columns)) > 3 else 0)
    if numbers:
        _write_values(axes, values, image)
    axes.figure.colorbar(image, ax=axes, shrink=0.8)
    return figure


def links(above, below, sure, possible=(), title="", axes=None):
    """A sentence over its translation, joined word by word: an alignment as lines.

    above, below: lists of tokens.  sure, possible: pairs (i, j) with i in `below` and j in `above`;
    sure links are solid lines, possible ones dotted.
    """
    figure = None
    if axes is None:
        figure, axes = picture(height=1.4)
    upper, lower = _places(above), _places(below)
    width = max(upper[-1], lower[-1]) + 3
    axes.set(xlim=(-3, width), ylim=(-0.35, 1.35), title=title)
    axes.axis("off")
    for i, j in sorted(set(possible) | set(sure)):
        certain = (i, j) in sure
        axes.plot([lower[i], upper[j]], [0.16, 0.84], color=COLOURS[0] if certain else "grey",
                  linestyle="-" if certain else ":", linewidth=1.4 if certain else 1.0)
    for row, tokens, places in ((1, above, upper), (0, below, lower)):
        for token, place in zip(tokens, places, strict=True):
            axes.text(place, row, token, ha="center", va="center")
    return figure


def _places(tokens):
    """Where the middle of each token stands, in letters; Hangul is nearly twice as wide."""
    widths = [sum(1.0 if letter.isascii() else 1.8 for letter in token) for token in tokens]
    starts = [sum(widths[:number]) + 1.6 * number for number in range(len(tokens))]
    return [start + width / 2 for start, width in zip(starts, widths, strict=True)]


def _write_values(axes, values, image):
    for i, row in enumerate(values):
        for j, value in enumerate(row):
            shade = image.norm(float(value))
            axes.text(j, i, f"{float(value):.2f}", ha="center", va="center",
                      color="black" if shade > 0.5 else "white", fontsize=8)

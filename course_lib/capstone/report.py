"""The page at the end of the capstone: who built the parts, training curve, attention, translations."""

import base64
from pathlib import Path

import jinja2
from IPython.display import display

from .. import plots
from .trainer import BATCH, GOAL, SAMPLES, SHOWN

SENTENCE = SAMPLES[-1]


def page(result, path="my_transformer.html", sentences=(*SHOWN, SENTENCE)):
    """Write the page for a Result of `train` to `path`; show its loss curve, and return its attention maps.

    sentences: the translations on the page; for a sentence outside the grammar, the grammar's message.
    """
    learning, looking = curve(result), maps(result)
    html = _template().render(
        parts=[(part, part.name in result.ran) for part in result.parts], goal=f"{GOAL:.0%}",
        own=sum(part.mine for part in result.parts), right=f"{result.right:.1%}",
        written=[(sentence, _written(result, sentence)) for sentence in sentences],
        pictures=[_inline(picture) for picture in (learning, looking) if picture])
    Path(path).write_text(html, encoding="utf-8")
    print(f"Your page: {Path(path).name}, beside this notebook. Open it in a browser.")
    if looking:
        display(learning)
    return looking or learning


def curve(result):
    """The loss of every tenth step."""
    steps = range(1, len(result.losses) + 1, 10)
    return plots.lines(steps, {"loss": result.losses[::10]}, "What your Transformer learned from",
                       f"step, {BATCH} sentence pairs each", "smoothed loss")


def maps(result):
    """The weights of each head of the last cross-attention on SENTENCE; None if they are not available."""
    found = result.translator.maps(SENTENCE)
    if not found:
        return None
    english, korean, weights = found
    figure, axes = plots.picture(columns=len(weights), width=7.0, height=2.9, sharey=True)
    for head, (part, picture) in enumerate(zip(axes, weights)):
        part.imshow(picture.numpy(), aspect="auto", vmin=0, vmax=1)
        part.grid(False)
        part.set_title(f"head {head + 1}")
        part.set_xticks(range(len(english)), english, rotation=90, fontsize=7)
    axes[0].set_yticks(range(len(korean)), korean, fontsize=7)
    figure.suptitle("Where your decoder looks while it writes", fontsize=10)
    return figure


def _written(result, sentence):
    try:
        return result.compared(sentence)
    except ValueError as problem:
        return f"({problem})"


def _inline(picture):
    return base64.b64encode(picture._repr_png_()).decode("ascii")


def _template():
    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    return jinja2.Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True,
                              undefined=jinja2.StrictUndefined).get_template("report.html.j2")

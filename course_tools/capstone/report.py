"""The page at the end of the capstone: the trained model, running in the browser, and who built its parts."""

import base64
import math
from pathlib import Path

from IPython.display import display

from course_lib import plots
from course_lib.decoding import greedy_decode

from .. import files, templates
from . import browser
from .trainer import BATCH, GOAL, LONGEST, SAMPLES, SHOWN, Result
from .translator import Translator

SENTENCE = SAMPLES[-1]
MEANS = 10    # training steps for each point of the page's curve


def page(result, path="my_transformer.html", sentences=(*SHOWN, SENTENCE)):
    """Write the page for a Result of `train` to `path`; show its loss curve, and return its attention maps.

    sentences: the translations on the page; for a sentence outside the grammar, the grammar's message.
    """
    learning, looking = curve(result), maps(result)
    pictures = [_inline(picture) for picture in (learning, looking) if picture]
    files.write(path, draw(result, sentences, pictures))
    print(f"Your page: {Path(path).name}, beside this notebook. Open it in a browser.")
    if looking:
        display(learning)
    return looking or learning


def draw(result, sentences=(*SHOWN, SENTENCE), pictures=(), mine=True):
    """The page as HTML.

    mine: the learner's page; False: the page that the course ships, of the library's model.
    pictures: for a model that cannot run in a browser.
    """
    found = browser.twin(result.translator, SAMPLES)
    return _template().render(
        parts=[(part, part.name in result.ran) for part in result.parts], goal=f"{GOAL:.0%}", mine=mine,
        own=sum(part.mine for part in result.parts), right=f"{result.right:.1%}",
        written=[(sentence, _written(result, sentence)) for sentence in sentences],
        curve=_points(result.losses), steps=len(result.losses), batch=BATCH,
        pictures=[] if found else pictures, live=_live(result, *found) if found else None)


def stored(html):
    """The Result that a page of the course was drawn from."""
    model, data = browser.unpacked(html)
    return Result(Translator(model, greedy_decode), data["losses"], data["right"], [], set())


def _live(result, model, difference):
    """What the template needs of a model that runs in the browser."""
    weights, layout = browser.packed(model)
    data = browser.data(model, layout) | {"trained": LONGEST, "right": result.right,
                                          "losses": [round(loss, 3) for loss in result.losses]}
    count = sum(value.numel() for value in model.parameters())
    return {"weights": weights, "data": data, "font": browser.font(), "count": f"{count:,}",
            "difference": f"{difference:.7f}" if difference else "0", "N": data["N"], "h": data["h"]}


def _points(losses, width=400, height=180):
    """The curve of the loss for the template: its points, and the ticks of both axes as (place, text)."""
    parts = [losses[first:first + MEANS] for first in range(0, len(losses), MEANS)]
    means = [sum(part) / len(part) for part in parts]
    top, across = max(1, math.ceil(max(means))), width / len(losses)
    points = [(across * min(MEANS * i + MEANS / 2, len(losses)), height * (1 - mean / top))
              for i, mean in enumerate(means)]
    steps, whole = [len(losses) * quarter // 4 for quarter in range(5)], range(0, top + 1, max(1, top // 4))
    return {"points": " ".join(f"{x:.1f},{y:.1f}" for x, y in points),
            "y": [(round(height * (1 - loss / top), 1), loss) for loss in whole],
            "x": [(round(step * across, 1), step) for step in steps]}


def curve(result):
    """The loss of every tenth step."""
    steps = range(1, len(result.losses) + 1, 10)
    return plots.lines(steps, {"loss": result.losses[::10]}, "The training loss of your Transformer",
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
    figure.suptitle("Where the last cross-attention looks, given the right translation", fontsize=10)
    return figure


def _written(result, sentence):
    try:
        return result.compared(sentence)
    except ValueError as problem:
        return f"({problem})"


def _inline(picture):
    return base64.b64encode(picture._repr_png_()).decode("ascii")


def _template():
    environment = templates.environment(Path(__file__).parent)
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment.get_template("report.html.j2")

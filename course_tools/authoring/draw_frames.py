"""Draw the frames of an `explore`, in the kernel of its lesson; see frames.py."""

import contextlib
import inspect
import io
import itertools
import json
import math
import random
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from course_lib.data import english_korean

MOST = 45    # pictures of one widget: a WebP ends at 16,383 pixels, and a picture is at most 300 high
LOGARITHMIC = 13    # positions of a logarithmic slider
SENTENCES = 10    # that are offered in place of a line to type in
STARTS = ["Return a new", "The method is called", "This function"]    # of texts that a model continues


def drawer(target, digest, sentences):
    """What takes the place of `explore`: it draws a picture for each position, and stores them."""
    def draw_all(draw, **ranges):
        with _same_random_numbers():
            controls = _controls(draw, ranges, sentences)
            places = _places(controls)
            pictures = [_picture(draw, controls, one) for one in places]
        width, height = (max(getattr(one, side) for one in pictures) for side in ("width", "height"))
        sheet = Image.new("RGB", (width, height * len(pictures)), "white")
        for number, one in enumerate(pictures):
            sheet.paste(one, (0, number * height))
        shown = {"digest": digest, "width": width, "height": height, "frames": places,
                 "controls": [{**one, "values": list(map(_text, one["values"]))} for one in controls]}
        path = Path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        sheet.save(path, format="WEBP", lossless=True, method=4, quality=80)
        path.with_suffix(".json").write_text(json.dumps(shown, ensure_ascii=False) + "\n", encoding="utf-8")
    return draw_all


@contextlib.contextmanager
def _same_random_numbers():
    """Whatever is drawn here, the cells that follow get the random numbers that they would have got."""
    states = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        yield
    random.setstate(states[0])
    np.random.set_state(states[1])


def _controls(draw, ranges, sentences):
    """For each argument: its name, its kind, its values, and the position at which it starts.

    Sliders get fewer positions where there would be more than MOST pictures.
    """
    start = {name: inspect.signature(draw).parameters[name].default for name in ranges}
    controls = []
    for name, values in ranges.items():
        if values is str:
            working = (text for text in _sentences(start[name], sentences)
                       if _works(draw, {**start, name: text}))
            offered = [start[name], *itertools.islice(working, SENTENCES - 1)]
            controls.append({"name": name, "kind": "sentences", "values": offered, "start": 0})
        elif isinstance(values, list):
            controls.append({"name": name, "kind": "menu", "values": values,
                             "start": values.index(start[name])})
        else:
            positions = _positions(*values, start[name])
            controls.append({"name": name, "kind": "slider", "values": positions,
                             "start": positions.index(start[name])})
    for most in range(MOST, 1, -1):
        thinned = [_thinned(one, most) if one["kind"] == "slider" else one for one in controls]
        if 1 + sum(len(one["values"]) - 1 for one in thinned) <= MOST:
            break
    return thinned


def _positions(low, high, step, start):
    """The values of a slider from `low` to `high`, its start among them."""
    if step == "log":
        grid = [float(f"{value:.2g}") for value in np.geomspace(low, high, LOGARITHMIC).tolist()]
        nearest = min(grid[1:-1], key=lambda value: abs(math.log(value / start)))
        return sorted({*grid, start} - {nearest} | {start})
    grid = [round(low + count * step, 10) for count in range(int((high - low) / step + 1e-6) + 1)]
    return sorted({*grid, start})


def _thinned(control, most):
    """A slider with at most `most` positions, evenly spaced around its start, and both ends."""
    count, start = len(control["values"]), control["start"]
    for stride in itertools.count(1):
        kept = [at for at in range(count) if (at - start) % stride == 0 or at in (0, count - 1)]
        if len(kept) <= max(most, 3):
            return {**control, "values": [control["values"][at] for at in kept], "start": kept.index(start)}


def _places(controls):
    """The positions of all controls for each picture: every combination, or one control at a time."""
    start = tuple(one["start"] for one in controls)
    sizes = [len(one["values"]) for one in controls]
    if np.prod(sizes) <= MOST:
        return list(itertools.product(*map(range, sizes)))
    moved = [(*start[:which], at, *start[which + 1:]) for which, size in enumerate(sizes)
             for at in range(size) if at != start[which]]
    return [start, *moved]


def _sentences(start, suggestions):
    """What to offer beside `start`: what the text suggests, then the course's sentences or starts."""
    try:
        english_korean.translate(start)
    except ValueError:
        more = [] if "___" in start else STARTS
    else:
        draws = torch.Generator().manual_seed(12)
        some = english_korean.pairs(SENTENCES, draws, shortest=4, longest=9, depth=0)
        more = [" ".join(pair.english) for pair in some]
    return [text for text in dict.fromkeys([*suggestions, *more]) if text != start]


def _works(draw, values):
    try:
        draw(**values)
    except Exception:    # the live widget shows it to the reader
        return False
    return True


def _picture(draw, controls, positions):
    values = {one["name"]: one["values"][at] for one, at in zip(controls, positions, strict=True)}
    return Image.open(io.BytesIO(draw(**values)._repr_png_())).convert("RGB")


def _text(value):
    return f"{value:g}" if isinstance(value, int | float) else str(value)

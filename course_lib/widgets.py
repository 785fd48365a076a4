"""Things to click: `explore` a drawing with sliders, `paint` a table, answer a `quiz`, `listen` to a sound.

With the static switch on (stored outputs, tests) a drawing shows its default picture instead.
"""

import base64
import html
import inspect
import math

import ipywidgets
import numpy as np
from IPython.display import HTML, Audio, Markdown

from . import runtime


def explore(draw, **ranges):
    """Draw with sliders: ``explore(draw, scale=(0.5, 2.0, 0.1))``.

    draw: a function of the named values that returns a figure (course_lib.plots); its arguments'
    default values are where the sliders start.  ranges: for each argument (low, high, step) for a
    slider, (low, high, "log") for a logarithmic one, a list of options for a menu, or str for a line to
    type in (Enter draws).  A drawing that fails shows its error in place of the picture; the sliders stay
    alive.  Bind what later cells may redefine: ``def draw(scale=1.0, K=K)``.
    """
    start = {name: inspect.signature(draw).parameters[name].default for name in ranges}
    missing = [name for name, value in start.items() if value is inspect.Parameter.empty]
    if missing:
        raise ValueError(f"give {', '.join(missing)} a default value in {draw.__name__}: "
                         "that is where the slider starts")
    if runtime.static():
        return draw(**start)
    controls = {name: _control(name, ranges[name], value) for name, value in start.items()}
    return _live(lambda: draw(**{name: box.value for name, box in controls.items()}), [*controls.values()])


def paint(draw, cells, rows, columns, **ranges):
    """Draw with a table of cells to click on and off: ``paint(draw, mask, words, words, layers=[1, 2])``.

    draw: a function of the table, Boolean (n, m), and of the values named in `ranges`, as in `explore`;
    it returns a figure.  cells: the initial table.  rows, columns: n and m labels beside it.
    """
    start = {name: inspect.signature(draw).parameters[name].default for name in ranges}
    if runtime.static():
        return draw(cells, **start)
    buttons = [[_cell(bool(on), f"{row}, {column}") for column, on in zip(columns, line, strict=True)]
               for row, line in zip(rows, cells, strict=True)]
    table = [ipywidgets.Label(text) for text in ["", *columns]]
    for row, line in zip(rows, buttons, strict=True):
        table += [ipywidgets.Label(row), *line]
    grid = ipywidgets.GridBox(table, layout={"grid_template_columns": f"repeat({len(columns) + 1}, 64px)"})
    controls = {name: _control(name, ranges[name], value) for name, value in start.items()}

    def painted():
        now = cells.clone()
        for i, line in enumerate(buttons):
            for j, button in enumerate(line):
                now[i, j] = button.value
        return draw(now, **{name: box.value for name, box in controls.items()})

    return _live(painted, [*sum(buttons, []), *controls.values()], [grid, *controls.values()])


def _cell(on, tooltip):
    """A button that stays down while its cell is on, with a tick in it."""
    button = ipywidgets.ToggleButton(on, icon="check" if on else "", tooltip=tooltip,
                                     layout={"width": "56px", "height": "26px"})
    button.observe(lambda change: setattr(button, "icon", "check" if change["new"] else ""), names="value")
    return button


class _Live(ipywidgets.VBox):
    """Controls over a picture, and beside the live view the picture alone, for when the kernel is gone."""

    def _repr_mimebundle_(self, **options):
        *_, image, error = self.children
        picture = base64.b64encode(image.value).decode()
        shown = f'<img alt="" style="max-width: 100%" src="data:image/png;base64,{picture}">'
        fallback = f"{shown if picture else error.value}<p><i>Run this cell to change the picture.</i></p>"
        return {**super()._repr_mimebundle_(**options), "text/html": fallback}


def _live(make, boxes, shown=None):
    """The boxes, or what is `shown` for them, over the picture that `make` draws anew at every change."""
    # at its own size: a stretched picture is blurred
    image = ipywidgets.Image(format="png", layout={"align_self": "flex-start", "max_width": "100%"})
    error = ipywidgets.HTML()

    def update(_change=None):
        try:
            image.value = make()._repr_png_()
            image.layout.display, error.value = None, ""
        except Exception as problem:  # shown to the reader: a callback's traceback would be lost
            image.layout.display = "none"  # the last picture is not what was asked for
            error.value = f"<b>{type(problem).__name__}</b>: {html.escape(str(problem))}"

    for box in boxes:
        box.observe(update, names="value")
    update()
    return _Live([*(shown or boxes), image, error])


def _control(name, values, start):
    style = {"description_width": "initial"}
    if isinstance(values, list):
        return ipywidgets.Dropdown(options=values, value=start, description=name, style=style)
    if values is str:
        return ipywidgets.Text(value=start, description=name, style=style, continuous_update=False,
                               layout=ipywidgets.Layout(width="600px"))
    low, high, step = values
    if step == "log":
        low, high, middle = math.log10(low), math.log10(high), math.log10(start)
        step = (middle - low) / round((middle - low) / 0.02) if middle > low + 0.02 else 0.02
        return ipywidgets.FloatLogSlider(min=low, max=high, step=step, value=start, description=name,
                                         style=style, layout={"width": "420px"})
    whole = all(isinstance(value, int) for value in (*values, start))
    slider = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
    return slider(min=low, max=high, step=step, value=start, description=name, style=style,
                  layout=ipywidgets.Layout(width="420px"))


CARD = "max-width: 46em; margin: 6px 0; padding: 5px 12px; border: 1px solid #8888; border-radius: 6px"
VERDICTS = {True: ("✓ Yes.", "#008a5e"), False: ("✗ Not so.", "#d1343f")}


def quiz(question, *choices):
    """A question with two to four choices; a click says why that choice is right or wrong.

    question: one or two sentences, HTML allowed.  choices: (text, right, why) each, `right` a bool.
    Nothing is recorded, and another choice may be clicked at any time.  It works without a kernel.
    """
    if not 2 <= len(choices) <= 4 or not any(right for _, right, _ in choices):
        raise ValueError("a quiz has two to four choices, and at least one of them is right")
    cards = [_choice(*choice) for choice in choices]
    return HTML("\n".join([f'<p style="max-width: 46em"><b>Predict.</b> {question}</p>', *cards]))


def _choice(text, right, why):
    """A card that opens at a click: the choice, and under it the verdict with its reason."""
    verdict, colour = VERDICTS[right]
    return (f'<details class="course-quiz" style="{CARD}">'
            f'<summary style="cursor: pointer">{html.escape(text)}</summary>\n'
            f'<p style="margin: 6px 0 4px; padding: 4px 10px; border-left: 5px solid {colour}; '
            f'background: {colour}22"><b style="color: {colour}">{verdict}</b> {why}</p></details>')


def listen(waves, rate=8000):
    """A player for each sound: ``listen({"as it was": wave, "as it became": other})``.

    waves: {"label": (samples,) tensor or array of floats}.  rate: samples a second.  All are
    played at one scale.  With the static switch on there is no sound, only a line that says so.
    """
    if runtime.static():
        return Markdown(f"*{len(waves)} sounds to play: run this cell.*")
    waves = {label: np.asarray(wave, dtype=float) for label, wave in waves.items()}
    loudest = max((np.abs(wave).max() for wave in waves.values()), default=0.0) or 1.0
    players = [(label, Audio(wave / loudest, rate=rate, normalize=False)) for label, wave in waves.items()]
    return HTML("".join(f"<p>{html.escape(label)}<br>{sound._repr_html_()}</p>" for label, sound in players))

"""Things to click: `explore` a drawing with sliders, answer a `quiz`.

With the static switch on (stored outputs, tests) they show their default picture and text instead.
"""

import html
import inspect

import ipywidgets
from IPython.display import Markdown

from . import runtime


def explore(draw, **ranges):
    """Draw with sliders: ``explore(draw, scale=(0.5, 2.0, 0.1))``.

    draw: a function of the named values that returns a figure (course_lib.plots); its arguments'
    default values are where the sliders start.  ranges: for each argument (low, high, step) for a
    slider, a list of options for a menu, or str for a line to type in (Enter draws).  A drawing that
    fails shows its error under the sliders, which stay alive.
    """
    start = {name: inspect.signature(draw).parameters[name].default for name in ranges}
    missing = [name for name, value in start.items() if value is inspect.Parameter.empty]
    if missing:
        raise ValueError(f"give {', '.join(missing)} a default value in {draw.__name__}: "
                         "that is where the slider starts")
    if runtime.static():
        return draw(**start)
    controls = {name: _control(name, ranges[name], value) for name, value in start.items()}
    # at its own size: a stretched picture is blurred
    image = ipywidgets.Image(format="png", layout={"align_self": "flex-start", "max_width": "100%"})
    error = ipywidgets.HTML()

    def update(_change=None):
        try:
            image.value = draw(**{name: box.value for name, box in controls.items()})._repr_png_()
            error.value = ""
        except Exception as problem:  # shown to the reader: a callback's traceback would be lost
            error.value = f"<b>{type(problem).__name__}</b>: {html.escape(str(problem))}"

    for box in controls.values():
        box.observe(update, names="value")
    update()
    return ipywidgets.VBox([*controls.values(), image, error])


def _control(name, values, start):
    style = {"description_width": "initial"}
    if isinstance(values, list):
        return ipywidgets.Dropdown(options=values, value=start, description=name, style=style)
    if values is str:
        return ipywidgets.Text(value=start, description=name, style=style, continuous_update=False,
                               layout=ipywidgets.Layout(width="600px"))
    low, high, step = values
    whole = all(isinstance(value, int) for value in (*values, start))
    slider = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
    return slider(min=low, max=high, step=step, value=start, description=name, style=style,
                  layout=ipywidgets.Layout(width="420px"))


def quiz(question, *choices):
    """A question with two to four choices; a click says why that choice is right or wrong.

    question: one or two sentences, HTML allowed.  choices: (text, right, why) each, `right` a bool.
    Nothing is recorded, and another choice may be clicked at any time.
    """
    if not 2 <= len(choices) <= 4 or not any(right for _, right, _ in choices):
        raise ValueError("a quiz has two to four choices, and at least one of them is right")
    if runtime.static():
        return Markdown("\n".join([f"**Predict.** {question}", ""] + [f"- {text}" for text, _, _ in choices]))
    answer = ipywidgets.HTML()
    buttons = []
    for text, right, why in choices:
        button = ipywidgets.Button(description=text, layout=ipywidgets.Layout(width="auto"))
        button.on_click(lambda _, right=right, why=why: setattr(
            answer, "value", f"<p><b>{'✓ Yes.' if right else '✗ Not so.'}</b> {why}</p>"))
        buttons.append(button)
    return ipywidgets.VBox([ipywidgets.HTML(f"<p><b>Predict.</b> {question}</p>"),
                            ipywidgets.HBox(buttons, layout=ipywidgets.Layout(flex_flow="row wrap")), answer])

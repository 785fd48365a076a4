"""Pictures and widgets: PNG, closed, readable, alive where somebody can click."""

import base64
import io
import math
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import ipywidgets
import matplotlib.font_manager
import numpy as np
import pytest
from PIL import Image

from course_lib import plots, widgets
from course_tools import saving

FONT = Path(plots.__file__).parent / "data" / "fonts" / "CourseHangul.ttf"


def pixels(picture):
    return np.asarray(Image.open(io.BytesIO(picture._repr_png_())).convert("L"))


# ---------------------------------------------------------------- plots

CURVES = {"RNN": [1.0, 0.1, 0.01], "LSTM": [1.0, 0.9, 0.8]}
DRAWINGS = {
    "lines": lambda: plots.lines([1, 2, 3], CURVES, "It vanishes", "steps back", "gradient", log=True,
                                 ylim=(1e-3, 1)),
    "heatmap": lambda: plots.heatmap([[0.1, 0.9], [0.8, 0.2]], "Looks back", ["a", "b"], ["c", "d"],
                                     numbers=True),
    "picture": lambda: plots.picture(columns=2)[0],
}


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_a_drawing_is_a_png_within_a_lessons_size(draw):
    data = draw()._repr_png_()
    image = Image.open(io.BytesIO(data))
    assert data.startswith(b"\x89PNG") and image.width <= 700 and image.height <= 300
    assert image.convert("L").getextrema()[0] < 128, "the picture is blank"
    assert data == draw()._repr_png_(), "drawn twice, different bytes"


@pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)
def test_a_drawing_says_the_same_text_everywhere(draw):
    assert repr(draw()) == ("<picture, 2.7 x 2.8 inches>" if draw is DRAWINGS["heatmap"]
                            else "<picture, 7 x 2.8 inches>")


def test_no_window_stays_open():
    code = ("from course_lib import plots; plots.lines([1], {'a': [1]}, '', '', '')._repr_png_(); "
            "import matplotlib.pyplot; print(matplotlib.pyplot.get_fignums())")
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


def test_lines_of_two_curves_differ_in_more_than_colour():
    axes = plots.lines([1, 2, 3], CURVES, "", "", "").axes[0]
    looks = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.lines]
    assert all(one != other for one, other in zip(*looks, strict=True))


def test_a_curve_can_look_the_same_in_two_pictures():
    both = plots.lines([1, 2], {"a": [1, 2], "b": [2, 3]}, "", "", "").axes[0].lines
    one = plots.lines([1, 2], {"b": [2, 3]}, "", "", "", first=1).axes[0].lines
    look = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in [*both, *one]]
    assert look[2] == look[1] != look[0]


def test_lines_draws_into_axes_that_are_given():
    figure, axes = plots.picture(columns=2)
    assert plots.lines([1, 2], {"a": [3, 4]}, "left", "x", "y", axes=axes[0]) is None
    assert axes[0].get_title() == "left" and len(axes[0].lines) == 1 and not axes[1].lines


def test_row_i_of_the_values_is_row_i_of_the_heatmap():
    picture = plots.heatmap([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], "", ["a", "b"], ["c", "d", "e"])
    axes = picture.axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["c", "d", "e"]
    image, height = pixels(picture), picture.bbox.height
    shade = {row: [int(image[int(height - y), int(x)]) for x, y in
                   (axes.transData.transform((column, row)) for column in range(3))] for row in range(2)}
    first = shade[0][0]
    assert first > 190 and max(shade[0][1:] + shade[1]) < 60, shade
    upper_left = axes.transData.transform((0, 0))
    assert upper_left[1] > axes.transData.transform((0, 1))[1], "the first row belongs at the top"


def glyphs(text):
    """The pixels of a title, drawn as a lesson draws it."""
    return pixels(plots.lines([0, 1], {"a": [0, 1]}, text, "", ""))[:24]


def test_hangul_is_drawn_and_not_boxes(recwarn):
    assert matplotlib.font_manager.findfont("Course Hangul", fallback_to_default=False) == str(FONT)
    word = glyphs("그들은")
    assert not [str(warning.message) for warning in recwarn if "missing from font" in str(warning.message)]
    boxes = glyphs("\U000e1234" * 3)            # no font has it: this is what a missing letter looks like
    assert (word != boxes).any()
    syllables = [glyphs(one) for one in "그들은"]
    assert all((one != other).any() for one, other in zip(syllables, syllables[1:], strict=False))


def test_a_picture_too_small_for_its_labels_is_drawn_without_a_warning(recwarn):
    labels = [f"a label as long as the whole picture is wide, and a little longer, {n}" for n in range(30)]
    picture = plots.heatmap([[0.5] * 30] * 30, "Crowded", labels, labels)
    assert picture._repr_png_().startswith(b"\x89PNG") and [str(one.message) for one in recwarn] == []


def test_grid_lines_lie_behind_bars():
    figure, axes = plots.picture()
    axes.bar([0], [1])
    assert axes.get_axisbelow() is True


# ---------------------------------------------------------------- explore

def draw_line(scale=1.0, n=3):
    return plots.lines(range(n), {"a": [scale * x for x in range(n)]}, f"scale {scale}", "x", "y")


@pytest.fixture
def static(monkeypatch):
    monkeypatch.setenv("COURSE_STATIC", "1")


@pytest.fixture
def live(monkeypatch):
    monkeypatch.setenv("COURSE_STATIC", "0")


def test_explore_shows_the_default_picture_where_nobody_can_click(static):
    shown = widgets.explore(draw_line, scale=(0.5, 2.0, 0.1))
    assert isinstance(shown, plots.Picture) and shown._repr_png_() == draw_line()._repr_png_()


def test_a_slider_changes_the_picture(live):
    box = widgets.explore(draw_line, scale=(0.5, 2.0, 0.1), n=(2, 9, 1))
    assert isinstance(box, ipywidgets.VBox)
    scale, n, image, error = box.children
    assert isinstance(scale, ipywidgets.FloatSlider) and isinstance(n, ipywidgets.IntSlider)
    assert (scale.value, scale.min, scale.max, n.value) == (1.0, 0.5, 2.0, 3)
    assert image.value == draw_line()._repr_png_()
    scale.value = 1.5
    assert image.value == draw_line(scale=1.5)._repr_png_()
    n.value = 7
    assert image.value == draw_line(1.5, 7)._repr_png_() and error.value == ""


def test_a_slider_over_orders_of_magnitude_is_logarithmic(live):
    slider, image, _ = widgets.explore(draw_line, scale=(0.05, 100.0, "log")).children
    assert isinstance(slider, ipywidgets.FloatLogSlider) and slider.value == 1.0
    assert (10 ** slider.min, 10 ** slider.max) == pytest.approx((0.05, 100.0))
    steps = (math.log10(slider.value) - slider.min) / slider.step
    assert steps == pytest.approx(round(steps)), "the browser would move it to the nearest step"
    slider.value = 10.0
    assert image.value == draw_line(scale=10.0)._repr_png_()


def test_beside_the_live_view_stands_the_picture_for_when_the_kernel_is_gone(live):
    shown = widgets.explore(draw_line, scale=(0.5, 2.0, 0.1))._repr_mimebundle_()
    assert saving.LIVE in shown and "Run this cell" in shown["text/html"]
    picture = re.search(r'src="data:image/png;base64,([^"]+)"', shown["text/html"])[1]
    assert base64.b64decode(picture) == draw_line()._repr_png_()


def test_a_menu_takes_one_of_its_options(live):
    def draw(kind="RNN"):
        return plots.lines([1, 2], {kind: CURVES[kind][:2]}, kind, "", "")
    menu, image, _ = widgets.explore(draw, kind=["RNN", "LSTM"]).children
    assert menu.options == ("RNN", "LSTM") and menu.value == "RNN"
    menu.value = "LSTM"
    assert image.value == draw("LSTM")._repr_png_()


def test_a_drawing_that_fails_says_so_and_stays_alive(live):
    def draw(k=1):
        if k == 2:
            raise ValueError("k = 2 < 3 is impossible")
        return draw_line(k)
    slider, image, error = widgets.explore(draw, k=(0, 5, 1)).children
    slider.value = 2
    assert "ValueError" in error.value and "k = 2 &lt; 3 is impossible" in error.value
    assert image.layout.display == "none"    # no picture of another setting, and no broken one at the start
    slider.value = 4
    assert error.value == "" and image.value == draw_line(4)._repr_png_() and image.layout.display is None


def test_a_line_to_type_in_draws_and_shows_what_is_wrong(live):
    def draw(word="cat"):
        if word == "drogon":
            raise ValueError("near it: dog")
        return plots.lines([0, 1], {"a": [0, 1]}, word, "x", "y")

    line, image, error = widgets.explore(draw, word=str).children
    first = image.value
    assert line.value == "cat" and first and not line.continuous_update
    line.value = "drogon"
    assert "near it: dog" in error.value
    line.value = "dog"
    assert image.value != first and error.value == ""


@pytest.mark.parametrize("switch", ["0", "1"])
def test_explore_asks_for_a_default_value(monkeypatch, switch):
    monkeypatch.setenv("COURSE_STATIC", switch)
    with pytest.raises(ValueError, match="give scale a default value in draw"):
        def draw(scale):
            return draw_line(scale)
        widgets.explore(draw, scale=(0, 1, 0.1))


# ---------------------------------------------------------------- quiz

CHOICES = [("It grows", False, "Each factor is below 1."),
           ("It shrinks", True, "The product of small factors.")]


@pytest.mark.parametrize("switch", ["0", "1"])
def test_a_quiz_folds_a_verdict_and_its_reason_under_each_choice(monkeypatch, switch):
    monkeypatch.setenv("COURSE_STATIC", switch)
    grows = ("It grows: x < 1", False, "Each factor is <b>below</b> 1.")
    page = widgets.quiz("What <i>happens</i>?", grows, CHOICES[1])
    page = ElementTree.fromstring(f"<div>{page.data}</div>")
    assert "".join(page.find("p").itertext()) == "Predict. What happens?"
    wrong, right = page.findall("details")
    assert wrong.get("open") is right.get("open") is None and wrong.get("class") == "course-quiz"
    assert [part.find("summary").text for part in (wrong, right)] == ["It grows: x < 1", "It shrinks"]
    assert "".join(wrong.find("p").itertext()) == "✗ Not so. Each factor is below 1."
    assert "".join(right.find("p").itertext()) == "✓ Yes. The product of small factors."
    assert wrong.find("p").get("style") != right.find("p").get("style"), "one colour for right and wrong"


@pytest.mark.parametrize("choices", [CHOICES[:1], CHOICES[1:], [CHOICES[0]] * 2, CHOICES * 3],
                         ids=["one wrong", "one right", "none right", "six"])
@pytest.mark.parametrize("switch", ["0", "1"])
def test_a_quiz_without_two_to_four_choices_or_without_a_right_one_is_refused(monkeypatch, switch, choices):
    monkeypatch.setenv("COURSE_STATIC", switch)
    with pytest.raises(ValueError, match="two to four choices, and at least one"):
        widgets.quiz("?", *choices)

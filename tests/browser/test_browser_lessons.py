"""Every lesson in JupyterLab: it runs to its end, hides what its questions ask for, and every control draws.

They are opened one after another in one window, as a learner does it.  Sliders, menus, lines to type in and
cells to click are moved with the keyboard and the mouse.  How many have to be there is read from the lesson's
own calls of explore and paint.  short_training.py cuts training short.
"""

import ast
import contextlib
import shutil

import jupyterlab_page as lab
import pytest
from lint_rules import is_quiz, python
from move_widgets import other_sentences

from course_tools import exercise

LESSONS = sorted((lab.ROOT / "notebooks").glob("*.ipynb"))
CONTROL = ".jupyter-widgets:not(.widget-container, .widget-image, .widget-html, .widget-label)"
OUTPUTS = """panel => [...panel.querySelectorAll('.jp-Cell')].map(
    cell => cell.querySelector('.jp-OutputArea-child')?.checkVisibility())"""
DRAWN = "([image, error, before]) => image.getAttribute('src') !== before || error.innerText"
CONTROLS = """(panel, control) => [...panel.querySelectorAll('.jp-Cell')].map(
    cell => cell.querySelectorAll(control).length)"""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def in_short(jupyterlab):
    """Kernels that start now do not train for long."""
    startup = jupyterlab.home / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True, exist_ok=True)
    shutil.copy(lab.ROOT / "tests" / "support" / "short_training.py", startup)
    yield jupyterlab
    (startup / "short_training.py").unlink()


@pytest.fixture(scope="module")
def window(browser_context, in_short):
    """JupyterLab with the list of lessons, for all tests of this process."""
    page = browser_context.new_page()
    page.set_default_timeout(30_000)
    yield page
    page.close()
    in_short.reset()


@pytest.fixture
def lesson(window, in_short, request):
    """(the window with a lesson in it, its path): double-clicked in the list, and shut down in the end."""
    path = request.param
    entry = window.locator(".jp-DirListing-itemText", has_text=path.stem)
    if not entry.count() or window.locator(lab.PANEL).count():    # at first, or one that failed is still open
        window.goto(f"{in_short.address}/lab/workspaces/lessons/tree/notebooks?token={lab.TOKEN}&reset")
    entry.dblclick()
    lab.wait_for_kernel(window)
    yield window, path
    window.locator("#jp-MainMenu .lm-MenuBar-item", has_text="File").click()
    window.locator(".lm-Menu-item[data-command='filemenu:close-and-cleanup']").click()
    window.locator(".jp-Dialog .jp-mod-accept").click()
    window.locator(lab.PANEL).wait_for(state="detached")


@pytest.mark.parametrize("lesson", [pytest.param(path, id=path.stem, marks=pytest.mark.xdist_group(path.stem))
                                    for path in LESSONS], indirect=True)    # on any worker
def test_a_lesson_runs_hides_its_answers_and_every_control_draws_anew(lesson, in_short):
    page, path = lesson
    notebook, name = exercise.read(path), f"notebooks/{path.name}"
    assert hidden(page) == answers(notebook, page)
    lab.run_all(page, seconds=500)
    assert hidden(page) == answers(notebook, page)
    for quiz in page.locator(f"{lab.PANEL} .jp-OutputArea:has(.course-quiz)").all():
        quiz.locator("summary").first.click()
    assert hidden(page) == []

    wanted = in_short.evaluate(name, [controls(cell) for cell in notebook.cells])
    found = page.locator(lab.PANEL).evaluate(CONTROLS, CONTROL)
    assert found == wanted, "more or fewer controls than the lesson asks for"
    for box in page.locator(f"{lab.PANEL} .widget-vbox:has(> .widget-image)").all():
        cells_to_click = box.locator(f"{CONTROL}.widget-toggle-button").all()[::3]    # they are all alike
        for control in box.locator(f"{CONTROL}:not(.widget-toggle-button)").all() + cells_to_click:
            move(page, box, control)
    assert not lab.errors(page)
    lab.screenshot(page, f"lesson-{path.stem[:2]}")


def answers(notebook, page):
    """The numbers of the code cells between a question and its folded why that have an output in the page."""
    found, below = [], False
    for number, (cell, output) in enumerate(zip(notebook.cells, outputs(page), strict=True)):
        if below and cell.cell_type == "code" and output is not None:
            found.append(number)
        below = is_quiz(cell) or (below and "<details>" not in cell.source)
    return found


def outputs(page):
    """For every cell whether its output is in sight; None without an output."""
    return page.locator(lab.PANEL).evaluate(OUTPUTS)


def hidden(page):
    return [number for number, output in enumerate(outputs(page)) if output is False]


def controls(cell):
    """The expression for the number of controls that a cell asks for: ranges, and a table's cells."""
    calls = [call for call in ast.walk(python(cell)) if isinstance(call, ast.Call)
             and getattr(call.func, "id", "") in ("explore", "paint")] if cell.cell_type == "code" else []
    terms = ["0"]
    for call in calls:
        terms.append(f"len({ast.unparse(ast.Call(ast.Name('dict'), [], call.keywords))})")
        if call.func.id == "paint":
            terms.append(" * ".join(f"len({ast.unparse(side)})" for side in call.args[2:4]))
    return " + ".join(terms)


def move(page, box, control):
    """A control to other settings, each of which draws anew and shows no error."""
    kinds = set(control.get_attribute("class").split())
    line, menu, handle = control.locator("input"), control.locator("select"), control.locator(".noUi-handle")
    control.scroll_into_view_if_needed()
    if "widget-toggle-button" in kinds:
        with drawing(page, box, "a cell"):
            control.click()
    elif "widget-text" in kinds:
        for words in other_sentences(line.input_value()):
            with drawing(page, box, words):
                line.click()
                page.keyboard.press("Control+A")
                page.keyboard.type(f"{words}\n")
    elif "widget-dropdown" in kinds:
        turn(page, box, menu, menu.input_value, "ArrowUp", "ArrowDown")
    elif "widget-slider" in kinds:
        turn(page, box, handle, control.locator(".widget-readout").inner_text, "PageDown", "PageUp")
    else:
        pytest.fail(f"no way to move a control of the classes {kinds}")


def turn(page, box, handle, value, before, after):
    """To the first setting and the last; where one of them is the default, to the one beside the other, too.

    value: reads the setting.  before, after: the keys for the setting beside this one.
    """
    settings = [value()]

    def press(key):
        with drawing(page, box, f"after {settings} and {key}", lambda: value() != settings[-1]):
            handle.press(key)
        settings.append(value())

    for key in ("Home", "End"):
        press(key)
    start, first, last = settings
    for key in [before] if start == first else ["Home", after] if start == last else []:
        press(key)
    assert sum(one != other for one, other in zip(settings, settings[1:])) >= 2, settings


@contextlib.contextmanager
def drawing(page, box, setting, expected=lambda: True):
    """The picture is drawn anew by what is done here, where that is expected, and no error is shown."""
    image, error = box.locator("img.widget-image"), box.locator(":scope > .widget-html")
    parts, before = [image.element_handle(), error.element_handle()], image.get_attribute("src")
    yield
    if expected():    # a Playwright TimeoutError: the picture stays as it was
        page.wait_for_function(DRAWN, arg=[*parts, before], timeout=60_000, polling=50)
    assert not (problem := error.inner_text()), f"{setting}: {problem}"

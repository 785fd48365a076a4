"""In JupyterLab what a question asks for stays out of sight until an answer was chosen, and then is there."""

import jupyterlab_page as lab
import pytest
from nbformat import v4, write

from course_lib.widgets import quiz
from course_tools.saving import KERNEL

pytestmark = pytest.mark.browser
QUESTIONS = "notebooks/questions.ipynb"
PLACEHOLDER = "Choose an answer above to see what comes out."
FREE = "for everybody"


def printed(words):
    return v4.new_code_cell("...", outputs=[v4.new_output("stream", text=f"{words}\n")])


def question():
    shown = {"text/html": quiz("What comes out?", ("42", True, "It does."), ("43", False, "One less.")).data}
    return v4.new_code_cell("...", outputs=[v4.new_output("execute_result", shown, execution_count=1)])


def failed():
    output = v4.new_output("error", ename="ZeroDivisionError", evalue=FREE, traceback=[FREE])
    return v4.new_code_cell("...", outputs=[output])


text = v4.new_markdown_cell
silent = v4.new_code_cell
WHY = "<details><summary>Why</summary>\n\nThat is why.\n\n</details>"
FORMS = {    # what stands between a question and its folded reason; `answer` is to be hidden
    "directly below": lambda answer: [printed(answer)],
    "with a description": lambda answer: [printed(answer), text(f"It shows {answer}.")],
    "text between": lambda answer: [text(f"Run it, {FREE}."), printed(answer)],
    "four cells": lambda answer: [text(FREE), silent("x = 42"), printed(answer), text(f"It shows {answer}.")],
    "two outputs": lambda answer: [printed(answer), text(f"So {answer}."), silent("x"), printed(answer)],
    "an error": lambda answer: [failed(), text(FREE), printed(answer)],
}


@pytest.fixture
def questions(page, course):
    """A stored notebook with a question of each form, open in JupyterLab: {form: its two choices}."""
    cells = [cell for form, between in FORMS.items()
             for cell in (question(), *between(f"[{form}]"), text(WHY), printed(FREE))]
    cells += [question(), text(f"## Its reason is missing\n\n{FREE}"), printed(FREE)]
    write(v4.new_notebook(cells=cells, metadata=KERNEL), course.folder / QUESTIONS)
    lab.open_notebook(page, course.address, QUESTIONS)
    choices = page.locator(f"{lab.PANEL} .course-quiz").all()
    return dict(zip(FORMS, zip(choices[::2], choices[1::2])))


def seen(page, words):
    """Whether each place of the notebook that says these words is in sight."""
    places = page.locator(f"{lab.PANEL} .jp-Cell :is(pre, p)", has_text=words).all()
    return [place.is_visible() for place in places]


def spoken(page):
    """What a screen reader is given, in one text."""
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    return "\n".join(str(node.get("name", {}).get("value")) for node in nodes if not node["ignored"])


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_an_answer_comes_into_sight_when_a_choice_is_made_with_the_keyboard(page, questions, key):
    assert all(seen(page, FREE)) and len(seen(page, FREE)) >= 2 * len(FORMS)
    for form, choices in questions.items():
        answer = f"[{form}]"
        assert not any(seen(page, answer)) and answer not in spoken(page), form
        assert spoken(page).count(PLACEHOLDER) >= len(FORMS) - list(FORMS).index(form)
        for choice in choices:
            tab_to(page, choice)
            page.keyboard.press(key)
            assert all(seen(page, answer)) and answer in spoken(page), form
            page.keyboard.press(key)
            assert not any(seen(page, answer)), form
        page.keyboard.press(key)    # this answer stays chosen
    assert PLACEHOLDER not in spoken(page) and all(seen(page, "[")) and all(seen(page, FREE))


def tab_to(page, choice):
    """Press Tab until a choice has the focus."""
    if page.evaluate("document.activeElement === document.body"):
        choice.page.locator(f"{lab.PANEL} .jp-Notebook").focus()
    for _ in range(60):
        if choice.evaluate("choice => document.activeElement === choice.firstElementChild"):
            return
        page.keyboard.press("Tab")
    pytest.fail("Tab does not lead to this choice")


def test_nothing_is_hidden_where_there_is_no_kernel(page, questions):
    assert not any(seen(page, "["))
    page.locator("#jp-MainMenu .lm-MenuBar-item", has_text="Kernel").click()
    page.locator(".lm-Menu-item[data-command='kernelmenu:shutdown']").click()
    lab.wait_until(page, lambda: seen(page, "["), all)
    assert PLACEHOLDER not in spoken(page)



"""As a person would: JupyterLab in a real browser, a lesson and an exercise, the slider and the tick.

Needs Chromium (Debian: apt install chromium) and playwright's Python package; no network.  Every step
leaves a screenshot in artefacts/.
"""

import json
import os
import shutil
import subprocess
import sys
import time

import jupyterlab_page as lab
import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-default-apps"]
WRONG = """def rnn_step(x_t, h_prev, W_xh, W_hh, b_h):
    return x_t @ W_xh + h_prev @ W_hh + b_h"""
RIGHT = """def rnn_step(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.tanh(x_t @ W_xh + h_prev @ W_hh + b_h)"""

pytestmark = pytest.mark.browser


def missing():
    """What these tests lack on this machine, in a line, or None."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the Python package playwright is not installed"
    return None if CHROMIUM else "there is no chromium on this machine (Debian: apt install chromium)"


@pytest.fixture(scope="module")
def page():
    """A page of a headless Chromium that calls nobody."""
    reason = missing()
    if reason and os.environ.get("COURSE_REQUIRE_BROWSER") == "1":
        pytest.fail(f"COURSE_REQUIRE_BROWSER=1, but {reason}")
    if reason:
        pytest.skip(f"browser tests: {reason}")
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(30_000)
        yield page
        browser.close()


@pytest.fixture(scope="module")
def course(tmp_path_factory, page):
    """A copy of the course with JupyterLab on it: (folder, environment, address)."""
    folder = tmp_path_factory.mktemp("browser") / "course"
    lab.copy_course(folder)
    environment = lab.environment(folder)
    server, address = lab.start(folder, environment)
    yield folder, environment, address
    server.terminate()
    server.wait(30)


def test_a_lesson_runs_its_slider_moves_the_picture_and_its_quiz_answers(page, course):
    lab.open_notebook(page, course[-1], "notebooks/01_long_term_dependency.ipynb")
    lab.run_all(page, seconds=420)    # about one minute where the machine has nothing else to do
    lab.screenshot(page, "1-lesson-has-run")
    assert page.locator(f"{lab.PANEL} [data-mime-type='application/vnd.jupyter.stderr']").count() == 0
    assert page.get_by_text("Nbgrader", exact=True).count() == 0    # menus for teachers

    move_the_slider(page, lab.cell(page, "explore(draw_radius"))
    outputs = page.locator(f"{lab.PANEL} .jp-OutputArea-output")
    answer_the_quiz(page, outputs.filter(has=page.locator("button")).first)


def move_the_slider(page, explore):
    image, handle = explore.locator("img").first, explore.locator(".noUi-handle").first
    handle.scroll_into_view_if_needed()
    before, value = lab.image_bytes(page, image), handle.get_attribute("aria-valuenow")
    lab.screenshot(page, "2-slider-before")
    handle.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    patience = time.monotonic() + 20
    while (after := lab.image_bytes(page, image)) == before and time.monotonic() < patience:
        page.wait_for_timeout(200)
    lab.screenshot(page, "3-slider-after")
    assert handle.get_attribute("aria-valuenow") != value
    assert before.startswith(b"\x89PNG") and after.startswith(b"\x89PNG") and before != after


def answer_the_quiz(page, quiz):
    """Click every choice: each says why, one at least that it is right."""
    quiz.scroll_into_view_if_needed()
    verdicts, whys = [], set()
    for button in quiz.locator("button").all():
        button.click()
        answer = quiz.locator(".widget-html").last
        answer.get_by_text("✓ Yes.").or_(answer.get_by_text("✗ Not so.")).wait_for()
        page.wait_for_timeout(500)
        verdicts.append(answer.inner_text().split(".")[0])
        whys.add(answer.inner_text())
        lab.screenshot(page, f"4-quiz-{len(verdicts)}")
    assert len(whys) == len(verdicts) >= 2 and set(verdicts) == {"✓ Yes", "✗ Not so"}


def test_a_wrong_answer_is_diagnosed_a_right_one_ticked_and_counted(page, course):
    folder, environment, address = course
    lab.open_notebook(page, address, "exercises/01_long_term_dependency.ipynb")
    lab.run(page, lab.cell(page, "from course_lib.checks import check"))
    answer, check = lab.cell(page, "def rnn_step("), lab.cell(page, "check(rnn_step)")

    lab.write(page, answer, WRONG)
    lab.run(page, answer)
    shown = lab.run(page, check)
    lab.screenshot(page, "5-wrong-answer")
    assert "✗ rnn_step: the tanh is missing" in shown
    assert "Traceback" not in shown and len(shown.strip().splitlines()) == 2

    lab.write(page, answer, RIGHT)
    lab.run(page, answer)
    shown = lab.run(page, check)
    lab.screenshot(page, "6-right-answer")
    assert shown.strip() == "✓ rnn_step: right on 3 inputs."

    page.keyboard.press("Control+S")
    page.wait_for_selector(".lm-TabBar-tab.lm-mod-current:not(.jp-mod-dirty)")
    line = [sys.executable, "-m", "course_lib.cli", "status", "--json"]
    status = json.loads(subprocess.check_output(line, cwd=folder, env=environment, text=True))
    first = status["exercises"][0]
    assert (first["exercise"], first["score"], first["done"], first["status"]) == (
        "01_long_term_dependency", 1, 1, "begun")
    assert status["next"]["item"] == "rnn_forward"

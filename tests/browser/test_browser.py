"""A learner's first hour: JupyterLab in a real browser, its terminal, a reset, the next day, the capstone.

Needs Chromium (Debian: apt install chromium) and playwright's Python package; no network.  Every step
leaves a screenshot in artefacts/.
"""

import json
import subprocess
import sys

import jupyterlab_page as lab
import pytest
import short_capstone

from course_tools import exercise

START = "notebooks/00_start_here.ipynb"
LESSON, SHEET = "notebooks/05_query_key_value.ipynb", "exercises/05_query_key_value.ipynb"
ATTENTION = """def attention(Q, K, V, mask=None):
    scores = Q @ K.transpose(-2, -1){scale}
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = scores.softmax(dim=-1)
    return weights @ V, weights"""
WRONG, RIGHT = (ATTENTION.format(scale=scale) for scale in ("", " / math.sqrt(Q.size(-1))"))

pytestmark = pytest.mark.browser


def test_opening_and_saving_a_notebook_changes_nothing(page, course):
    for path in (START, SHEET):
        lab.open_notebook(page, course.address, path)
        lab.save(page)
        assert course.git("status", "--porcelain") == ""
    assert page.get_by_text("Nbgrader", exact=True).count() == 0    # menus for teachers
    label = page.locator(".lm-DockPanel-tabBar .lm-mod-current .lm-TabBar-tabLabel")
    assert label.evaluate("tab => getComputedStyle(tab, '::before').content") == '"exercise "'


def test_the_first_lesson_runs_its_question_answers_and_its_slider_moves(page, course):
    lab.open_notebook(page, course.address, START)
    result = lab.cell(page, "(X @ X.transpose(1, 2)).shape").get_by_text("torch.Size")
    assert not result.is_visible(), "the answer is seen before the question was answered"
    lab.run_all(page, seconds=120)
    answer_the_quiz(page, page.locator(f"{lab.PANEL} .jp-OutputArea").filter(has_text="Predict.").first)
    assert result.is_visible()
    move_the_slider(page, lab.cell(page, "explore("))
    before = course.metadata(START)
    lab.save(page)
    assert course.metadata(START) == before


def answer_the_quiz(page, quiz):
    """Click every choice: each opens and says why, one in green that it is right."""
    quiz.scroll_into_view_if_needed()
    verdicts = {}
    for number, choice in enumerate(quiz.locator(".course-quiz").all(), 1):
        answer = choice.locator("p")
        assert not answer.is_visible()
        choice.locator("summary").click()
        colour = answer.evaluate("shown => getComputedStyle(shown).borderColor")
        verdicts[answer.locator("b").inner_text()] = colour
        lab.screenshot(page, f"1-quiz-{number}")
    assert set(verdicts) == {"✓ Yes.", "✗ Not so."} and len(set(verdicts.values())) == 2


def move_the_slider(page, explore):
    image, handle = explore.locator("img").first, explore.locator(".noUi-handle").first
    handle.scroll_into_view_if_needed()
    before, value = lab.image_bytes(page, image), handle.get_attribute("aria-valuenow")
    lab.screenshot(page, "2-slider-before")
    handle.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    after = lab.wait_until(page, lambda: lab.image_bytes(page, image), lambda seen: seen != before)
    lab.screenshot(page, "2-slider-after")
    assert handle.get_attribute("aria-valuenow") != value
    assert before.startswith(b"\x89PNG") and after.startswith(b"\x89PNG")


def test_the_evidence_of_a_claim_leads_to_the_cell_that_measured_it(page, course):
    lab.open_notebook(page, course.address, LESSON)
    evidence = page.locator(f'{lab.PANEL} td:last-child a[href="#cell-id=run-order"]')
    page.locator(lab.PANEL).hover()

    def further_down():
        page.mouse.wheel(0, 2000)    # JupyterLab draws only what is near the window
        return evidence.count()
    lab.wait_until(page, further_down, bool, seconds=60)
    measured = lab.cell(page, 'print("P V:"')
    assert not in_the_window(measured)
    evidence.click()
    lab.wait_until(page, lambda: in_the_window(measured), bool)
    lab.screenshot(page, "evidence")


def in_the_window(the_cell):
    box = the_cell.bounding_box() if the_cell.count() else None
    return box is not None and 0 < box["y"] < 850


def test_arrows_lead_from_cell_to_cell(page, course):
    """Menus keep them for themselves (labconfig/default_setting_overrides.json; test_browser_lessons.py)."""
    lab.open_notebook(page, course.address, START)
    cells, active = page.locator(f"{lab.PANEL} .jp-Cell"), page.locator(f"{lab.PANEL} .jp-Cell.jp-mod-active")
    cells.first.locator(".jp-InputPrompt").click()
    for key, number in (("ArrowDown", 1), ("ArrowDown", 2), ("ArrowUp", 1)):
        page.keyboard.press(key)
        assert active.get_attribute("data-windowed-list-index") == str(number)


def test_the_temperature_slider_works_after_a_later_cell_has_used_its_names(page, course):
    lab.open_notebook(page, course.address, LESSON)
    for words in ("import plots", "people = [", "def at_temperature", "shuffle = torch.randperm(5)"):
        lab.run(page, lab.cell(page, words))
    explore = lab.cell(page, "def at_temperature")
    move_the_slider(page, explore)
    assert "Error" not in explore.locator(".jp-OutputArea").inner_text()
    lab.save(page)


def test_a_wrong_answer_is_diagnosed_a_right_one_ticked_and_counted(page, course):
    lab.open_notebook(page, course.address, SHEET)
    lab.run(page, lab.cell(page, "from course_tools.judging import check"))
    answer, check = lab.cell(page, "def attention("), lab.cell(page, "check(attention)")

    lab.write(page, answer, WRONG)
    lab.run(page, answer)
    shown = lab.run(page, check)
    lab.screenshot(page, "3-wrong-answer")
    assert shown.startswith("✗ attention: ") and "scale" in shown
    assert "Traceback" not in shown and len(shown.strip().splitlines()) == 2

    lab.write(page, answer, RIGHT)
    lab.run(page, answer)
    shown = lab.run(page, check)
    lab.screenshot(page, "4-right-answer")
    assert shown.startswith("✓ attention: right on ")

    lab.save(page)
    line = [sys.executable, "-m", "course_tools.cli", "status", "--json"]
    status = json.loads(subprocess.check_output(line, cwd=course.folder, env=course.environment, text=True))
    fifth = status["exercises"][4]
    assert (fifth["exercise"], fifth["done"], fifth["status"]) == ("05_query_key_value", 1, "begun")


def test_the_terminal_finds_the_course_command(page, course):
    page.goto(f"{course.address}/lab/workspaces/terminal?token={lab.TOKEN}")
    page.locator("#jp-MainMenu .lm-MenuBar-item", has_text="File").click()
    page.locator(".lm-Menu-item[data-type='submenu']", has_text="New").first.hover()
    page.locator(".lm-Menu-item[data-command='terminal:create-new']").first.click()
    page.locator(".jp-Terminal .xterm").wait_for()
    page.locator(".jp-Terminal").click()
    printed = course.folder.parent / "printed"
    page.keyboard.type(f"(course hint 05 attention; echo end) > '{printed}' 2>&1\n")
    text = lab.wait_until(page, lambda: printed.read_text() if printed.exists() else "",
                          lambda text: text.endswith("end\n"))
    lab.screenshot(page, "5-terminal")
    assert "Hint 1 of" in text, text


def test_a_reset_reaches_a_notebook_that_is_open(page, course):
    lab.open_notebook(page, course.address, SHEET)
    lab.write(page, lab.cell(page, "def attention("), RIGHT)
    lab.save(page)
    assert course.git("status", "--porcelain", "exercises") != ""
    line = [sys.executable, "-m", "course_tools.cli", "reset", "05"]
    subprocess.run(line, cwd=course.folder, env=course.environment, check=True, capture_output=True)
    page.locator("#jp-MainMenu .lm-MenuBar-item", has_text="File").click()
    page.locator(".lm-Menu-item[data-command='docmanager:reload']").click()
    dialog = page.locator(".jp-Dialog")
    if dialog.count():
        dialog.locator(".jp-mod-accept").click()
    answer = lab.cell(page, "def attention(")
    lab.wait_until(page, answer.inner_text, lambda text: exercise.STUB in text)
    lab.screenshot(page, "6-reset")
    lab.save(page)
    assert course.git("status", "--porcelain", "exercises") == ""


def test_the_next_day_question_and_picture_are_there_without_a_kernel(page, course):
    lab.open_notebook(page, course.address, START)
    lab.run_all(page, seconds=120)
    lab.save(page)
    page.goto("about:blank")
    course.stop()
    course.start()
    lab.open_notebook(page, course.address, START)
    output = lab.cell(page, "explore(").locator(".jp-OutputArea")
    output.scroll_into_view_if_needed()
    lab.screenshot(page, "7-next-day")
    assert output.locator("img").evaluate("shown => shown.complete && shown.naturalWidth > 300")
    assert "Run this cell" in output.inner_text()
    assert page.get_by_text("Error displaying widget").count() == 0
    page.locator(f"{lab.PANEL} .course-quiz summary").first.click()
    page.locator(f"{lab.PANEL} .course-quiz p").first.wait_for()


def test_pictures_lie_on_a_light_card_that_does_not_glare_on_a_dark_page(page, course):
    lab.open_notebook(page, course.address, LESSON)
    picture = page.locator(f"{lab.PANEL} .jp-OutputArea-output img").first
    for theme, brightest in (("Dark", 235), ("Light", 255)):
        page.locator("#jp-MainMenu .lm-MenuBar-item", has_text="Settings").click()
        page.locator(".lm-Menu-item").filter(has=page.get_by_text("Theme", exact=True)).hover()
        page.locator(".lm-Menu-item[data-command='apputils:change-theme']", has_text=theme).first.click()
        page.wait_for_selector(f"body[data-jp-theme-name='JupyterLab {theme}']", state="attached")
        picture.scroll_into_view_if_needed()
        page.wait_for_timeout(500)
        lab.screenshot(page, f"8-{theme.lower()}")
        colours = lab.pixels(picture)
        assert 200 < colours.max() <= brightest and colours[colours.shape[0] // 2, 12].min() > 200


def test_the_capstone_trains_and_makes_its_page(page, course):
    path = "exercises/12_transformer.ipynb"
    solution = exercise.read(course.folder / "solutions" / "12_transformer.ipynb")
    (course.folder / path).write_text(exercise.text(solution), encoding="utf-8")
    lab.open_notebook(page, course.address, path)
    lab.write(page, lab.cell(page, "mine = capstone.train("), short_capstone.SOURCE)
    lab.run_all(page, seconds=120)
    lab.screenshot(page, "9-capstone")
    page.goto(f"file://{course.folder}/exercises/my_transformer.html")
    lab.screenshot(page, "9-capstone-page")
    page.emulate_media(reduced_motion="reduce")    # all tokens at once
    page.fill("#english", "they are cats")
    page.keyboard.press("Enter")
    page.wait_for_function("document.querySelectorAll('.korean button').length === shown.steps.length")

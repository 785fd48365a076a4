"""The pages about a class: every count adds up, and every student finds what helps.  They and the capstone's
page read well on a phone, in the dark, on paper and without a network."""

import html
import json
import math
import re
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from urllib.parse import unquote

import nbformat
import pytest
import torch
from page_checks import FAINT, LEVELS, WIDER

from course_lib import plots
from course_tools import exercise
from course_tools.capstone import report as capstone
from course_tools.grading.reports import evidence, overview, report
from course_tools.grading.reports import feedback_pages as pages
from course_tools.grading.reports.gradebook import Gradebook
from course_tools.grading.submissions import Submission

FIRST, FIFTH = "01_long_term_dependency", "05_query_key_value"
WORTH = {FIRST: {"rnn_step": 2, "truncated_states": 1}, FIFTH: {"softmax": 1, "attention": 3}}
ANSWER = "def attention(Q, K, V, mask=None):\n    scores = Q @ K\n    return scores.softmax(-1) @ V, scores\n"
SCALE = "The scale is missing. Divide the scores by sqrt(d_k) before the softmax."
REMARK = "a constant is made without dtype=, so float64 inputs fail."
BATCH = "the softmax is taken over the batch."
INPUTS = "Q = torch.tensor([[0.1, -2.5], [1, 0]])\n# K is too large to show: (2, 5, 60)"
DIFFERENCE = "output[0, 1] is 0.1, but should be 0.3. 5 of 8 values differ.\n    Inputs: Q (2, 2)"
SANDBOX = "namespaces, Landlock, seccomp, limits"

# What became of `attention` in the notebooks of thirty students: (status, mistake, message, how often).
OUTCOMES = [("passed", None, "right on 8 inputs.", 9), ("remark", None, "right on 8 inputs.", 1),
            ("wrong", "no_scale", SCALE, 4), ("wrong", "over_batch", BATCH, 2),
            ("wrong", None, DIFFERENCE, 2),
            ("error", None, "Your code raised RuntimeError: sizes differ\n    here", 3),
            ("error", "wrong_axis", "K is not transposed.", 1), ("timeout", None, "still running.", 1),
            ("free_call", None, "F.softmax is the answer itself.", 1), ("missing", None, "not answered.", 2),
            ("unreadable", None, exercise.DAMAGED, 2),
            ("failed", None, "not graded, for the grader failed", 1), ("absent", None, "", 1)]


def row(name, worth, status="passed", mistake=None, message="right on 8 inputs."):
    passed = status in ("passed", "remark")
    shown = {"difference": DIFFERENCE, "inputs": INPUTS, "line": "scores = Q @ K"}
    return {"name": name, "points": worth * passed, "max_points": worth, "passed": passed, "mistake": mistake,
            "message": message, "status": "passed" if passed else status, "see": None,
            "remark": REMARK if status == "remark" else None, "section": "From formula to code",
            "answer": None if status == "missing" else ANSWER, "evidence": None if passed else shown}


def result(student, stem, status="passed", mistake=None, message="right on 8 inputs."):
    """What grading one notebook gave: the outcome of its last item, and the others right."""
    whole = status not in ("unreadable", "failed")
    *others, last = WORTH[stem].items()
    items = [row(*item) if whole else row(*item, status, None, message) for item in others]
    items.append(row(*last, status, mistake, message))
    return {"student": student, "exercise": stem, "path": f"in/{student}/{stem}.ipynb", "items": items,
            "status": "graded" if whole else status, **({} if whole else {"message": message}),
            "sandbox": SANDBOX if whole else None, "seed": 7, "digest": "",
            "score": sum(item["points"] for item in items), "max_score": sum(WORTH[stem].values())}


@pytest.fixture(scope="module")
def klass(tmp_path_factory):
    """(the folder of a class of thirty with all kinds of results, its summary)"""
    folder, results = tmp_path_factory.mktemp("pages"), {}
    outcomes = [outcome for *outcome, count in OUTCOMES for _ in range(count)]
    for number, outcome in enumerate(outcomes):
        student = f"student {number:02} O'Neil & Söhne <x> 50%"
        handed_in = [result(student, FIRST)] if number % 3 == 0 or outcome[0] == "absent" else []
        handed_in += [result(student, FIFTH, *outcome)] if outcome[0] != "absent" else []
        for one in handed_in:
            file = folder / one["path"].replace("<", "")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("{}")
            results[Submission(student, one["exercise"], file)] = one
    shopping = Submission("Nobody's", None, folder / "shopping.ipynb")
    results[shopping] = {**result("Nobody's", FIRST, "failed", None, "shopping is no exercise"), "items": [],
                         "exercise": None, "status": "unknown_exercise", "score": 0, "max_score": 0}
    graded = report.summary(7, results.values())
    report.write_all(Gradebook(folder / "out"), graded, results)
    return folder / "out", graded


# ---------------------------------------------------------------- the class on one page

def test_every_student_is_counted_once_for_every_item(klass):
    submissions = klass[1]["submissions"]
    for stem, worth in WORTH.items():
        part = overview.exercise([one for one in submissions if one["exercise"] == stem], stem, 31)
        assert [item["name"] for item in part["items"]] == list(worth)
        assert sum(part["notebooks"].values()) == 31
        for item in part["items"]:
            assert sum(item["counts"].values()) == item["class"] == 31
            assert {name for name, count in item["counts"].items() if count} <= set(part["used"])
    wanted = {"passed": 10, "mistake": 7, "wrong": 2, "error": 3, "timeout": 1, "free_call": 1, "missing": 2,
              "unreadable": 2, "failed": 1, "absent": 2}
    assert item["name"] == "attention" and +Counter(item["counts"]) == wanted
    text = (klass[0] / "overview.html").read_text(encoding="utf-8")
    rows = re.findall(r'<th scope="row"><code>(\w+)</code></th>(.*?)</tr>', text, re.DOTALL)
    assert [name for name, _ in rows] == [name for worth in WORTH.values() for name in worth]
    for _, cells in rows:
        *counts, total = map(int, re.findall(r"<td[^>]*>(\d+)</td>", cells))
        assert sum(counts) == total == 31


def test_a_status_that_nobody_knows_is_counted_as_not_graded():
    assert overview.column(row("a", 1, "interrupted")) == "failed"


@pytest.mark.parametrize("notebooks, students, again", [
    (2, 5, False), (3, 5, True), (3, 30, True), (3, 31, False), (9, 100, False), (10, 100, True)])
def test_to_teach_again_takes_three_notebooks_and_a_tenth_of_the_class(notebooks, students, again):
    submissions = [result(f"s{number}", FIFTH, *(("wrong", "no_scale", SCALE) if number < notebooks else ()))
             for number in range(students)]
    text = overview.page({"submissions": submissions})
    assert (f"(lesson 05), {notebooks} of {students}: {SCALE}" in text) is again
    assert ("no mistake occurs in" in text) is not again


def test_a_remark_is_on_both_pages_and_in_the_results(klass):
    results = json.loads((klass[0] / "results.json").read_text(encoding="utf-8"))
    remarks = [item["remark"] for one in results["submissions"] for item in one["items"] if item["remark"]]
    assert remarks == [REMARK]
    assert f"passed with a remark: {REMARK}" in (klass[0] / "overview.html").read_text(encoding="utf-8")
    assert REMARK in feedback(klass, 9)


def kinds_of(build, transfer, debug):
    """A notebook of exercise 01, an item of each kind: whether each passes, None for no answer."""
    names = {"gradient_norms": build, "rnn_forward_masked": transfer, "truncated_states": debug}
    items = [row(name, 2, "missing" if passed is None else "passed" if passed else "wrong")
             for name, passed in names.items()]
    return {**result("ann", FIRST), "items": items, "score": sum(item["points"] for item in items)}


@pytest.mark.parametrize("notebooks, weak", [
    ([(True, True, None)] * 3 + [(True, True, False)], "debug"), ([(True, False, True)], "transfer"),
    ([(False, True, True)], "build"), ([(True, False, False)], None), ([(True, True, True)], None),
    ([(True, True, True)] * 100 + [(True, True, False)] * 5, None)])
def test_the_class_is_weak_in_the_kind_with_clearly_the_fewest_points(notebooks, weak):
    submissions = [{**kinds_of(*passed), "student": f"s{number}"} for number, passed in enumerate(notebooks)]
    text = overview.page({"submissions": submissions}, {FIRST: pages.handed_out(FIRST)})
    assert (f"The class is weakest in {weak} items" in text) is bool(weak)
    assert ("about equally well in all of them" in text) is not weak
    rows = re.findall(r'<th scope="row">(\w+)<br>.*?(\d+) of (\d+)</td><td class="n">(\d+)</td>', text)
    passed, missing = ([sum(one[kind] is state for one in notebooks) for kind in range(3)]
                       for state in (True, None))
    assert rows == [(kind, str(passed[number]), str(len(notebooks)), str(missing[number]))
                    for number, kind in enumerate(pages.KINDS)]


def test_a_page_tells_the_points_of_each_kind_and_the_kind_of_each_item():
    text = pages.feedback(kinds_of(True, False, None), pages.handed_out(FIRST))
    assert "build 2 of 2 · transfer 0 of 2 · debug 0 of 2" in text
    assert re.findall(r'class="soft kind">(\w+)<', text) == ["build", "transfer", "debug"]
    text = pages.feedback(result("ann", FIFTH), pages.handed_out(FIFTH))    # one kind alone: no line
    assert "build 4 of 4" not in text and "transfer" not in text


def feedback(klass, number):
    path, = klass[0].glob(f"submissions/student {number:02}*/05.html")
    return path.read_text(encoding="utf-8")


# ---------------------------------------------------------------- the teacher's index

def test_the_index_links_the_page_of_everybody(klass):
    text = (klass[0] / "index.html").read_text(encoding="utf-8")
    made = {str(path.relative_to(klass[0])) for path in klass[0].rglob("*.html")}
    assert SANDBOX in text
    links = {unquote(html.unescape(link)) for link in re.findall(r'href="([^"]+)"', text)}
    assert [link for link in links if not (klass[0] / link).is_file()] == []
    assert made - links == {"index.html"}


def test_what_protects_from_accidents_only_is_said_to_the_teacher(klass):
    graded = {**klass[1], "caution": "From accidents, not from malice."}
    hrefs = ["x"] * len(graded["submissions"])
    assert graded["caution"] in pages.index(graded, hrefs) and graded["caution"] in overview.page(graded)


# ---------------------------------------------------------------- a student's page

def test_a_students_page_tells_task_inputs_line_section_and_date(klass):
    text = feedback(klass, 10)
    task = pages.handed_out(FIFTH).tasks["attention"]
    assert SCALE in text and task in text and "<math" in task
    assert "<mark>    scores = Q @ K</mark>" in text and INPUTS.split("\n")[0] in text
    assert "5 of 8 values differ.<br>Inputs: Q (2, 2)" in text
    assert "section “From formula to code”" in text and "notebooks/05_query_key_value.ipynb" in text
    assert re.search(r"saved on \d\d? \w+ 20\d\d, \d\d:\d\d", text) and "1 of 4 points" in text
    for path in klass[0].glob("submissions/*/*.html"):
        assert not re.search("sandbox|Landlock|seccomp|namespaces", path.read_text(encoding="utf-8"))


def test_where_the_course_is_published_the_section_is_a_link(monkeypatch, tmp_path):
    monkeypatch.setattr(exercise, "ROOT", tmp_path)
    assert pages.published(FIFTH) is None
    project = tmp_path / "pyproject.toml"
    project.write_text('[project]\nurls = {Documentation = "https://example.org/course/"}\n')
    text = pages.feedback(result("ann", FIFTH, "wrong", "no_scale", SCALE), pages.handed_out(FIFTH))
    assert 'href="https://example.org/course/notebooks/05_query_key_value.html#From-formula-to-code"' in text
    (tmp_path / "notebooks").mkdir()
    cell = nbformat.v4.new_markdown_cell("## From formula to code\n\nIt.", id="formula")
    lesson = nbformat.v4.new_notebook(cells=[cell, nbformat.v4.new_code_cell("1", id="a")])
    nbformat.write(lesson, tmp_path / "notebooks" / f"{FIFTH}.ipynb")
    pages.headings.cache_clear()
    text = pages.feedback(result("ann", FIFTH, "wrong", "no_scale", SCALE), pages.handed_out(FIFTH))
    assert 'href="https://example.org/course/notebooks/05_query_key_value.html#formula"' in text
    project.write_text("[project")
    assert pages.published(FIFTH) is None


@pytest.mark.parametrize("line, answer, number", [
    ("b = a", "def f(a):\n    b = a\n    return b", 2), ("b = a", "def f(a):\n    b = a\n    b = a", None),
    ("b = a", "def f(a):\n    return g(a)", None), ("", "def f(a):\n\n    return a", None)])
def test_a_line_is_marked_only_where_it_can_be_told_apart(line, answer, number):
    item = {"message": "raised", "answer": answer, "evidence": {**pages.NO_EVIDENCE, "line": line}}
    assert pages.raising_line(item) == number


def test_inputs_are_code_that_makes_them_again():
    inputs = {"x": torch.tensor([[1.5, -math.inf], [0.25, 3.0]]), "mask": torch.tensor([True, False]),
             "wide": torch.zeros(9, 9), "double": torch.tensor([2.0], dtype=torch.float64), "pairs": (1, "a"),
             "grads": [torch.ones(2), torch.zeros(1, 2)], "eps": 1e-05}
    made = {"torch": torch}
    exec(evidence.as_code(inputs), made)
    assert "# wide is too large to show: (9, 9)" in evidence.as_code(inputs) and "wide" not in made
    for name in inputs.keys() - {"wide", "grads"}:
        assert torch.equal(made[name], inputs[name]) if isinstance(inputs[name], torch.Tensor) else (
            made[name] == inputs[name])
        assert type(made[name]) is type(inputs[name]) and getattr(made[name], "dtype", 0) == getattr(
            inputs[name], "dtype", 0)
    assert [part.shape for part in made["grads"]] == [(2,), (1, 2)]


# ---------------------------------------------------------------- in a browser

@pytest.fixture(scope="module")
def looked_at(klass, tmp_path_factory):
    """The pages to look at: {name: path}."""
    parts = [SimpleNamespace(name=name, stem=FIFTH, mine=mine, why="it does not pass yet") for name, mine in
             [("attention", True), ("sinusoidal_positional_encoding", False)]]
    picture = capstone._inline(plots.lines(range(9), {"loss": range(9)}, "Learned", "step", "loss"))
    course = capstone.stored((exercise.ROOT / "notebooks/capstone.html").read_text(encoding="utf-8"))
    live = replace(course, parts=parts, ran={"attention"})
    still = replace(live, translator=SimpleNamespace(model=torch.nn.Identity()))    # runs in no browser
    folder = tmp_path_factory.mktemp("capstone")
    for name, drawn in {"mine": capstone.draw(live), "still": capstone.draw(still, (), [picture, picture]),
                        "course": capstone.draw(course, mine=False)}.items():
        (folder / f"{name}.html").write_text(drawn, encoding="utf-8")
    numbers = {"remark": 9, "wrong": 10, "error": 18, "missing": 25, "damaged": 26}
    students = {name: next(klass[0].glob(f"submissions/student {number:02}*/05.html"))
                for name, number in numbers.items()}
    for_teachers = {name: klass[0] / f"{name}.html" for name in ("overview", "index")}
    return {**for_teachers, **{path.stem: path for path in folder.iterdir()}, **students}


@pytest.fixture
def offline(page):
    """The page of a browser without a network; what it asked for in vain or from elsewhere is an error."""
    asked = []

    def note(request):
        if not request.url.startswith(("file:", "data:")):
            asked.append(request.url)
    page.context.set_offline(True)
    page.on("request", note)
    page.on("requestfailed", lambda request: asked.append(request.url))
    yield page
    page.context.set_offline(False)
    page.emulate_media(media="screen", color_scheme="light")
    assert asked == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 800, 920, 1280])
def test_pages_fit_and_have_enough_contrast(offline, looked_at, width, scheme):
    offline.set_viewport_size({"width": width, "height": 800})
    offline.emulate_media(color_scheme=scheme)
    for name, path in looked_at.items():
        offline.goto(path.as_uri())
        offline.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert offline.evaluate(WIDER) <= 0, name
        assert offline.evaluate(FAINT) == [], name
        paper = offline.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark"), name


@pytest.mark.browser
def test_pages_have_a_language_headings_in_order_and_work_with_keys(offline, looked_at):
    for name, path in looked_at.items():
        offline.goto(path.as_uri())
        levels = offline.evaluate(LEVELS)
        assert offline.evaluate("document.documentElement.lang") == "en" and levels.count(1) == 1, name
        assert all(later - earlier <= 1 for earlier, later in zip([0, *levels], levels)), name
    offline.goto(looked_at["wrong"].as_uri())
    task = offline.locator("section details").first
    for _ in range(20):
        offline.keyboard.press("Tab")
        if offline.evaluate("document.activeElement === document.querySelector('section summary')"):
            break
    assert not task.evaluate("one => one.open")
    offline.keyboard.press("Enter")
    assert task.evaluate("one => one.open") and task.locator("math").first.bounding_box()["height"] > 10


@pytest.mark.browser
def test_on_paper_pages_are_light_and_show_the_task_of_what_was_wrong(offline, looked_at):
    offline.emulate_media(media="print", color_scheme="dark")
    for path in looked_at.values():
        offline.goto(path.as_uri())
        assert offline.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert offline.evaluate(FAINT) == []
        assert offline.pdf(format="A4").startswith(b"%PDF")
    offline.goto(looked_at["wrong"].as_uri())
    shown = offline.evaluate("[...document.querySelectorAll('section .task')].map(e => e.checkVisibility())")
    assert shown == [False, True]    # of `softmax`, which passed, and of `attention`

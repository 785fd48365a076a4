"""The author's tools: what `make notebooks`, `exercises`, `site` and `findings` do, on a small course."""

import base64
import inspect
import io
import json
import re
import shutil
import subprocess

import nbformat
import pytest
import torch
from PIL import Image

from course_lib import plots, widgets
from course_lib.findings import Table
from course_lib.models import rnn
from course_tools import exercise
from course_tools.authoring import __main__ as verbs
from course_tools.authoring import draw_frames, findings, frames, handout, shown, stored
from course_tools.authoring.book import extension, gathered, sources
from course_tools.items import registry

ROOT = exercise.ROOT
PNG = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==")
STEM, RNN = "01_long_term_dependency", "course_lib.models.rnn"

DRAW = """from course_lib import plots
from course_lib.runtime import print_timing, seed
from course_lib.training import fit
from course_lib.widgets import explore, quiz
import torch
SEED = seed(3)
print_timing("3 ms")
print("SEED", SEED)"""
TRAIN = """x = torch.ones(1, requires_grad=True)
losses = fit([x], lambda step: x.pow(2).sum() + torch.randn(()), 20)
plots.lines(range(20), {"loss": losses}, "It falls", "step", "loss")"""
EXPLORE = """def draw(k=1.0):
    return plots.lines([0, 1], {"a": [0, k]}, "", "", "")
explore(draw, k=(0.5, 2.0, 0.5))"""


def code(id, source, **metadata):
    return nbformat.v4.new_code_cell(source, id=id, metadata=metadata)


def lesson(*cells):
    text = "# 01 · A title\n\nSee [it](../exercises/01_x.ipynb#a-b)."
    metadata = {"widgets": {"a": {}}, "kernelspec": {"display_name": "mine", "name": "mine"}}
    return nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata,
                               "cells": [nbformat.v4.new_markdown_cell(text, id="title"), *cells]})


@pytest.fixture
def course(tmp_path, monkeypatch):
    """An empty course; write(folder, name, notebook) puts a notebook there, as an editor stores it."""
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    monkeypatch.setattr(exercise, "ROOT", tmp_path)

    def write(folder, name, notebook):
        path = tmp_path / folder / f"{name}.ipynb"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")
        return path
    write.root = tmp_path
    return write


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a verb: (exit status, what it printed, what it complained about)."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))

    def call(*line):
        status = verbs.main(list(line))
        return status, *capsys.readouterr()
    return call


# ---------------------------------------------------------------- notebooks

@pytest.mark.slow
def test_a_lesson_is_executed_and_stored_in_one_form(course, run):
    path = course("notebooks", "01_x", lesson(
        code("set-up", DRAW, tags=[], execution={"iopub.status.busy": "now"}, collapsed=True),
        code("train", TRAIN, tags=["kept"]), code("move", EXPLORE), code("shown", "old", course={
            "shows": "course_lib.models.rnn:rnn_step"})))
    status, out, _ = run("notebooks", "1")
    assert status == 0 and "notebooks/01_x.ipynb" in out and "changed" in out
    raw = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(raw, 4)
    digests = notebook.metadata.pop("course")["executed"].split()
    assert len(set(digests)) == 4
    assert dict(notebook.metadata) == stored.KERNEL and raw.startswith('{\n "cells"') and raw.endswith("}\n")
    cells = notebook.cells
    assert [cell.id for cell in cells] == ["title", "set-up", "train", "move", "shown"]
    assert [cell.execution_count for cell in cells[1:]] == [1, 2, 3, 4]
    assert [dict(cell.metadata) for cell in cells[1:3]] == [{}, {"tags": ["kept"]}]
    assert [output.text for output in cells[1].outputs] == ["SEED 3\n"], "a timing, or another seed"
    assert [output.output_type for output in cells[2].outputs] == ["execute_result"]
    assert cells[2].outputs[0].execution_count == 2 and "image/png" in cells[2].outputs[0].data
    assert "image/png" in cells[3].outputs[0].data, "the default picture of a slider"
    assert cells[4].source == inspect.getsource(rnn.rnn_step).rstrip()
    before = path.stat().st_mtime_ns
    status, out, _ = run("notebooks")
    assert status == 0 and "unchanged" in out
    assert path.read_text(encoding="utf-8") == raw and path.stat().st_mtime_ns == before
    assert {file.name for file in path.parent.iterdir()} == {"01_x.ipynb", "frames"}
    drawn = frames.stored_for(path, notebook)["move"]
    assert drawn["controls"] == [
        {"name": "k", "kind": "slider", "values": ["0.5", "1", "1.5", "2"], "start": 1}]
    start = Image.open(frames.place(path, "move")).crop((0, 280, 700, 560))
    stored_picture = base64.b64decode(cells[3].outputs[0].data["image/png"])
    assert start.tobytes() == Image.open(io.BytesIO(stored_picture)).convert("RGB").tobytes()
    assert run("frames")[:2] == (0, "")    # there is nothing to draw


@pytest.mark.parametrize("source, words", [
    ("x = 1\n1 / 0", ["cell breaks:", "ZeroDivisionError", "----> 2"]),
    ("import sys\nprint('careful', file=sys.stderr)", ["cell breaks writes to stderr: careful"]),
    ("import ipywidgets\nipywidgets.IntSlider()", ["cell breaks stores a live widget"]),
    ("import os\nos._exit(1)", ["cell breaks:", "the kernel died"]),
], ids=["an error", "stderr", "a live widget", "a dead kernel"])
def test_a_lesson_that_fails_stays_as_it_was_and_the_cell_is_named(course, run, source, words):
    path = course("notebooks", "01_x", lesson(code("fine", "1"), code("breaks", source), code("after", "2")))
    before = path.read_bytes()
    status, _, complaint = run("notebooks")
    assert status == 1 and "notebooks/01_x.ipynb" in complaint and "\x1b" not in complaint
    assert [word for word in words if word not in complaint] == [], complaint
    assert path.read_bytes() == before


@pytest.mark.parametrize("verb", ["notebooks", "exercises", "shows", "findings", "site"])
def test_a_key_without_a_notebook_lists_those_there_are(course, run, verb):
    for folder in ("notebooks", "solutions"):
        course(folder, "01_x", lesson(code("a", "1")))
    status, _, complaint = run(verb, "7")
    assert status == 1 and "there is no notebook '7'" in complaint and complaint.endswith("01_x\n")


def test_a_course_without_notebooks_says_so(course, run):
    assert run("notebooks")[0] == 1


# ---------------------------------------------------------------- frames of widgets

def drawn_ahead(path, notebook, draw, **ranges):
    """Draw the frames of the cell `move`, as its kernel does.  Returns what they show."""
    given = frames.digest(notebook, "move"), frames.suggested(notebook, "move")
    draw_frames.drawer(str(frames.place(path, "move")), *given)(draw, **ranges)
    return frames.stored_for(path, notebook)["move"]


def line(k=1.0, j=2, m="a"):
    return plots.lines([0, 1], {"a": [torch.rand(()).item(), k]}, f"{k} {j} {m}", "", "")


def test_frames_are_those_of_the_code_that_drew_them(course, run):
    notebook = lesson(code("before", "x = 1"), code("move", EXPLORE), code("after", "x = 2"))
    path = course("notebooks", "01_x", notebook)
    torch.manual_seed(1)
    assert len(drawn_ahead(path, notebook, line, k=(0.5, 2.0, 0.5))["frames"]) == 4
    after = torch.rand(())
    assert torch.equal(after, torch.rand((), generator=torch.Generator().manual_seed(1)))
    status, out, complaint = run("site")
    assert (status, complaint) == (0, "") and "no frames" not in out
    assert 'data-pictures="frames/01_x/move.webp"' in page_of(course) and "at a time" not in page_of(course)
    assert (course.root / "site/notebooks/frames/01_x/move.webp").exists()
    notebook.cells[3].source = "x = 3"
    assert frames.stored_for(path, notebook)["move"], "a later cell says nothing about it"
    notebook.cells[1].source = "x = 4"
    course("notebooks", "01_x", notebook)
    assert frames.stored_for(path, notebook) == {"move": None}
    status, out, complaint = run("site")
    assert (status, complaint) == (0, "") and "01 move" in out.splitlines()[-1]
    assert "course-frames" not in page_of(course)


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem[:2])
def test_the_frames_of_a_lesson_are_those_of_its_code(path):
    there = frames.stored_for(path, exercise.read(path))
    missing = [cell for cell, drawn in there.items() if drawn is None]
    assert not missing, f"run python -m course_tools.authoring frames {path.stem[:2]}"
    known = {place.with_suffix(suffix) for cell in there for suffix in (".webp", ".json")
             for place in [frames.place(path, cell)]}
    assert set(frames.place(path, "any").parent.glob("*")) == known, "frames of cells that are gone"


def test_a_widget_has_few_frames_and_all_combinations_only_where_they_are_few(course):
    notebook = lesson(code("move", EXPLORE))
    path = course("notebooks", "01_x", notebook)
    all_of_them = drawn_ahead(path, notebook, line, j=(1, 3, 1), m=["b", "a"])
    assert len(all_of_them["frames"]) == 6 and [one["start"] for one in all_of_them["controls"]] == [1, 1]
    several = drawn_ahead(path, notebook, line, k=(0.0, 2.0, 0.05), j=(1, 40, 1), m=["b", "a"])
    assert len(several["frames"]) <= draw_frames.MOST
    start = [one["start"] for one in several["controls"]]
    assert [one["values"][at] for one, at in zip(several["controls"], start)] == ["1", "2", "a"]
    assert all(sum(a != b for a, b in zip(one, start)) <= 1 for one in several["frames"])
    assert [(one["values"][0], one["values"][-1]) for one in several["controls"]] == [
        ("0", "2"), ("1", "40"), ("b", "a")]
    sheet = Image.open(frames.place(path, "move"))
    assert sheet.size == (several["width"], several["height"] * len(several["frames"]))


def test_a_line_to_type_in_becomes_a_menu_of_sentences(course):
    text = "Try *they are cats*, *a sentence that fails*, or *this*."
    notebook = lesson(code("move", EXPLORE), nbformat.v4.new_markdown_cell(text, id="see"))

    def draw(sentence="I am a student"):
        if "fails" in sentence:
            raise ValueError(sentence)
        return plots.lines([0, 1], {"a": [0, 1]}, sentence, "", "")
    shown, = drawn_ahead(course("notebooks", "01_x", notebook), notebook, draw, sentence=str)["controls"]
    assert shown["values"][:2] == ["I am a student", "they are cats"] and shown["start"] == 0
    assert len(shown["values"]) == draw_frames.SENTENCES and "a sentence that fails" not in shown["values"]


@pytest.mark.parametrize("values, start, wanted", [
    ((-2, 2, 1), -1, [-2, -1, 0, 1, 2]), ((0.3, 0.65, 0.1), 0.5, [0.3, 0.4, 0.5, 0.6]),
    ((1, 6, 2), 4, [1, 3, 4, 5])])
def test_a_slider_has_its_steps_and_its_start(values, start, wanted):
    assert draw_frames._positions(*values, start) == wanted


def test_a_logarithmic_slider_has_its_ends_and_its_start():
    found = draw_frames._positions(0.05, 10.0, "log", 1.0)
    assert found[0] == 0.05 and found[-1] == 10.0 and 1.0 in found and len(found) == draw_frames.LOGARITHMIC


# ---------------------------------------------------------------- cells that show the library

def test_a_cell_shows_the_library_word_for_word(course, run):
    path = course("notebooks", "01_x", lesson(
        code("one", "old", course={"shows": f"{RNN}:LSTM.step"}),
        code("two", "old", course={"shows": [f"{RNN}:rnn_step", f"{RNN}:RNN"]})))
    assert len(shown.differing(exercise.read(path))) == 2
    status, out, _ = run("shows")
    assert status == 0 and "2 cells were refreshed" in out
    notebook = exercise.read(path)
    assert shown.differing(notebook) == []
    assert notebook.cells[1].source == inspect.getsource(rnn.LSTM.step).rstrip("\n")
    both = inspect.getsource(rnn.rnn_step) + "\n\n" + inspect.getsource(rnn.RNN)
    assert notebook.cells[2].source == both.rstrip("\n")
    assert run("shows")[1] == ""


@pytest.mark.parametrize("name", [f"{RNN}:no_such", "no_such.module:f", RNN, "course_lib.runtime:os.sep"])
def test_an_object_without_source_is_refused(course, run, name):
    path = course("notebooks", "01_x", lesson(code("a", "old", course={"shows": name})))
    before = path.read_bytes()
    status, _, complaint = run("shows")
    assert status == 1 and name in complaint and "notebooks/01_x.ipynb" in complaint
    assert path.read_bytes() == before


# ---------------------------------------------------------------- exercises

@pytest.fixture
def handed_out(course, run):
    """The real solution's exercise, written once: (its path, the backups)."""
    (course.root / "solutions").mkdir()
    shutil.copy(ROOT / "solutions" / f"{STEM}.ipynb", course.root / "solutions")
    assert run("exercises")[:2] == (0, f"exercises/{STEM}.ipynb: written\n")
    return course.root / "exercises" / f"{STEM}.ipynb", lambda: sorted(course.root.glob("backups/*"))


def test_an_exercise_is_its_solution_without_answers(handed_out, run):
    path, backups = handed_out
    made = exercise.read(path)
    stubs = [item for item in registry.items(STEM).values() if not item.planted]
    assert not re.search("SOLUTION|PLANTED", path.read_text())
    assert path.read_text().count("NotImplementedError") == len(stubs)
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in made.cells)
    assert run("exercises", "01")[1] == f"exercises/{STEM}.ipynb: unchanged\n" and backups() == []


@pytest.mark.parametrize("change", [
    lambda source: source.replace(exercise.STUB, "return x_t"), lambda source: "h = 1\n" + source,
    lambda source: source + "\n  broken("], ids=["answered", "begun", "broken"])
def test_answers_are_kept_before_the_exercise_is_written_anew(handed_out, run, change):
    path, backups = handed_out
    notebook = exercise.read(path)
    cell = next(cell for cell in notebook.cells if exercise.grade_id(cell) == "rnn_step")
    cell.source = change(cell.source)
    nbformat.write(notebook, path)
    status, out, _ = run("exercises")
    kept, = backups()
    assert f"contained answers, which are kept in backups/{kept.name}" in out and STEM in kept.name
    fresh = exercise.read(path)
    assert exercise.read(kept) == notebook and not handout.holds_answers(fresh, fresh)


def test_no_backup_where_only_the_stub_or_other_cells_changed(handed_out, run):
    path, backups = handed_out
    notebook = exercise.read(path)
    for cell in notebook.cells:
        if exercise.grade_id(cell) == "rnn_step":
            cell.source = cell.source.replace('"""h_t = ', '"""An older docstring: h_t = ')
        elif exercise.grade_id(cell, "grade"):
            cell.source += "  # tried"
    nbformat.write(notebook, path)
    assert run("exercises")[1] == f"exercises/{STEM}.ipynb: written\n" and backups() == []


# ---------------------------------------------------------------- site

def page_of(course, folder="notebooks"):
    return (course.root / "site" / folder / "01_x.html").read_text(encoding="utf-8")


def test_the_book_leads_from_page_to_page(course, run):
    for folder in ("notebooks", "exercises", "solutions"):
        heading = nbformat.v4.new_markdown_cell("## A b", id="its-cell")
        course(folder, "01_x", lesson(heading, code("a", "1")))
    see = nbformat.v4.new_markdown_cell("See [that](01_x.ipynb#A-b).", id="m")
    course("notebooks", "02_y", lesson(see, code("a", "1")))
    table = ("| lesson | what | build | minutes |\n|---|---|---|---|\n"
             "| [02](notebooks/02_y.ipynb) | it | | 5 |\n| [01](notebooks/01_x.ipynb) | it | | 5 |\n")
    readme = f"# The course\n\nAbout it.\n\n## Lessons\n\n{table}\n## Other\n\nno"
    (course.root / "README.md").write_text(readme, encoding="utf-8")
    (course.root / "notebooks/images").mkdir()
    assert run("site")[2] == ""
    page = page_of(course)
    wanted = ['<a href="../exercises/01_x.html">', "<title>01 · A title", 'lang="en"', 'id="a"',
              '<section id="its-cell">', 'href="01_x.ipynb" download']
    assert [text for text in wanted if text not in page] == []
    second = (course.root / "site/notebooks/02_y.html").read_text(encoding="utf-8")
    assert 'href="01_x.html#its-cell"' in second
    index = (course.root / "site/index.html").read_text(encoding="utf-8")
    assert "About it." in index and "<p>no</p>" not in index
    assert index.index("notebooks/02_y.html") < index.index("notebooks/01_x.html")    # the README's order
    for folder in ("notebooks", "exercises"):
        assert exercise.read(course.root / "site" / folder / "01_x.ipynb").cells[-1].source == "1"


def test_the_book_shows_what_was_committed_and_handed_out(course, run):
    """Not what somebody ran or wrote in the working copy: no live widget, no answer."""
    stub = f"def rnn_step():\n    {exercise.STUB}"
    answer = "### BEGIN SOLUTION\n    return 'from the solution'\n    ### END SOLUTION"
    marked = {"nbgrader": {"grade_id": "rnn_step", "solution": True, "grade": False}}
    course("solutions", "01_x", lesson(code("a", stub.replace(exercise.STUB, answer), **marked)))
    course("exercises", "01_x", lesson(code("a", "def rnn_step():\n    return 'by a learner'", **marked)))
    slider = code("a", "explore(draw)")
    slider.outputs = [nbformat.v4.new_output("stream", text="as committed\n")]
    path = course("notebooks", "01_x", lesson(slider))
    for line in ("init -q", "add .", "-c user.name=a -c user.email=a@b.c commit -qm all"):
        subprocess.run(["git", "-C", course.root, *line.split()], check=True)
    live = {stored.LIVE: {"model_id": "a"}, "text/plain": "VBox(children=(IntSlider(value=1),))"}
    slider.outputs = [nbformat.v4.new_output("display_data", live)]
    course("notebooks", "01_x", lesson(slider))
    assert run("site")[2] == ""
    lessons, sheet = page_of(course), page_of(course, "exercises")
    assert "as committed" in lessons and "VBox" not in lessons
    assert "NotImplementedError" in sheet and "by a learner" not in sheet and "from the solution" not in sheet
    shutil.rmtree(course.root / ".git")    # a copy without git: the file itself, without the live widget
    live["image/png"] = PNG
    slider.outputs = [nbformat.v4.new_output("display_data", live)]
    path.write_text(json.dumps(lesson(slider, nbformat.v4.new_markdown_cell("It *falls*. Slowly.", id="b"))))
    assert run("site", "01")[0] == 0
    page = page_of(course)
    assert "VBox" not in page and 'alt="It falls."' in page and 'loading="lazy"' in page
    assert len(list((course.root / "site/_images").glob("*.png"))) == 1


def test_what_a_lesson_folds_is_folded_and_the_source_of_a_question_is_left_out(course, run):
    quiz = code("a", "quiz('q', ('a', True, 'the answer'))", jupyter={"source_hidden": True})
    quiz.outputs = [nbformat.v4.new_output("display_data", {"text/html": widgets.quiz(
        "Why?", ("so", True, "Yes"), ("no", False, "No")).data})]
    course("notebooks", "01_x", lesson(quiz, code("b", "drawn = 1", jupyter={"source_hidden": True}),
                                       code("c", "shown = 1")))
    assert run("site")[2] == ""
    page = page_of(course)
    assert page.count("Show the code") == 1 and page.count('class="course-quiz"') == 2
    assert "the answer" not in page
    assert page.index("<summary") < page.index("drawn") < page.index("shown")


def test_one_lesson_alone_is_built_anew(course, run):
    paths = [course("notebooks", name, lesson(code("a", "4711"))) for name in ("01_x", "02_y")]
    assert run("site")[1].startswith("2 notebooks")
    for path in paths:
        path.write_text(path.read_text(encoding="utf-8").replace("4711", "4712"), encoding="utf-8")
    assert run("site", "1")[1].startswith("1 notebooks")
    second = (course.root / "site/notebooks/02_y.html").read_text(encoding="utf-8")
    assert ">4712<" in page_of(course) and ">4711<" in second


def test_a_link_that_leads_nowhere_is_a_fault(course, run):
    link = nbformat.v4.new_markdown_cell("[there](03_z.ipynb)", id="b")
    course("notebooks", "01_x", lesson(link, code("a", "")))
    status, _, complaint = run("site")
    assert status == 1 and "03_z.ipynb" in complaint


def test_findings_terms_and_items_of_all_notebooks_are_gathered(course, run):
    line = f"{'a measured number':44}  0.91   claimed: above 0.6   five seeds: 0.80 to 0.93\n"
    measures = code("measure", "claim(...)")
    measures.outputs = [nbformat.v4.new_output("stream", text=line)]
    finds = code("finds", "finding(...)")
    table = Table("a < b", [("b", "this run", "0.9", "0.8 to 1.0", "five")])
    finds.outputs = [nbformat.v4.new_output("display_data", {"text/html": table._repr_html_()})]
    said = ("| often said | verdict | evidence |\n|---|---|---|\n"
            "| it is | right | 0.91 ([`measure`](#cell-id=measure)) |")
    terms = ("| English | 한국어 | lesson | English | 한국어 | lesson |\n|---|---|---|---|---|---|\n"
             "| y | 나 | 01 | x | 가 | 09 |")
    course("notebooks", "01_x", lesson(measures, finds, nbformat.v4.new_markdown_cell(said, id="claims"),
                                       nbformat.v4.new_markdown_cell(terms, id="glossary")))
    task = nbformat.v4.new_markdown_cell("## 1 · `f`\n\n●○○ · transfer · 7 minutes · 2 points", id="task-f")
    course("solutions", "01_x", lesson(task, code("a", "1")))
    course("exercises", "01_x", lesson(task, code("a", "1")))
    assert run("site")[2] == ""
    index, glossary, sheets = ((course.root / "site" / f"{name}.html").read_text(encoding="utf-8")
                                for name in ("findings", "glossary", "exercises"))
    assert index.count('<a href="notebooks/01_x.html#measure">') == 2
    page = (course.root / "site" / "notebooks" / "01_x.html").read_text(encoding="utf-8")
    assert '<a href="#measure">' in page and 'id="measure"' in page
    cells = [re.sub("<.*?>", "", cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", index)]
    assert cells[-3:] == ["a measured number, claimed: above 0.6", "0.91", "0.80 to 0.93"]
    assert cells[-9:-6] == ["b", "0.9", "0.8 to 1.0"]
    assert '<caption><a href="notebooks/01_x.html#finds">a &lt; b</a></caption>' in index
    assert glossary.index("<p>x</p>") < glossary.index("<p>y</p>") and "나" in glossary
    assert 'exercises/01_x.html#task-f' in sheets
    assert re.search(r"<p>transfer</p></td>\s*<td><p>7</p>", sheets)


def test_the_syllabus_has_the_hours_of_the_readme():
    """For each lesson, each plan and the whole, rounded to half an hour."""
    minutes = {gathered.LINK.search(row[0])[3][:2]: sum(map(int, re.findall(r"\d+", row[3])))
               for row in gathered.readme().rows}
    text = (ROOT / "docs" / "syllabus.md").read_text(encoding="utf-8")
    assert f"{sum(minutes.values()) / 60:.0f} hours in all" in text
    rows = [gathered.table(part)[1:] for part in text.split("\n## ")]
    plans = [[(re.findall(r"\d\d", row[-2]), row[-1]) for row in plan] for plan in rows if plan]
    plans[0] = [(re.findall(r"\[(\d\d)", row[0]), row[-1]) for row in next(filter(None, rows))]
    assert [len(plan) for plan in plans] == [14, 14, 8, 4]
    for plan in plans:
        taken = [[key for key in sorted(minutes) if keys[0] <= key <= keys[-1]] for keys, _ in plan]
        assert sum(taken, []) == sorted(minutes)
        assert [f"{round(sum(map(minutes.get, keys)) / 30) / 2:g}" for keys in taken] == [h for _, h in plan]


def test_korean_words_are_indexed_by_pairs_of_syllables():
    found = [extension.pairs(word) for word in extension.WORDS.findall("벡터를 (attention) 값 다음_x 토큰")]
    assert found == [["벡터", "터를"], ["attention"], ["값"], ["다음"], ["_x"], ["토큰"]]


@pytest.mark.parametrize("text, alt", [
    ("The line *falls*. It stops.", "The line falls."),
    ("See [it](a.md), at 0.5 of `x`.", "See it, at 0.5 of x."),
    ("## A heading", ""), ("| a | b |", ""), ("no end", ""), ("", "")])
def test_the_sentence_under_a_picture_describes_it(text, alt):
    assert sources.sentence(text) == alt


# ---------------------------------------------------------------- how long a lesson is

def test_the_budget_counts_words_open_cells_and_questions(course, run):
    source = "## Two words\n\n" + "word " * 997 + "\n```python\nno words\n```"
    text = nbformat.v4.new_markdown_cell(source, id="t")
    folded = nbformat.v4.new_code_cell("draw()", id="draw", metadata={"jupyter": {"source_hidden": True}})
    quiz, two = code("ask", 'quiz("one")'), code("find", "finding('a', {})\nidentity('b', 1, 1)")
    course("notebooks", "01_x", lesson(text, folded, quiz, two, code("b", "1")))
    status, out, _ = run("budget", "1")
    heads, row = ([*map(str.strip, line.split())] for line in out.splitlines()[-2:])
    assert status == 0 and heads == ["lesson", "words", "code", "open", "quizzes", "findings", "identities",
                                     "minutes", "title"]
    words = 1000 + len(lesson().cells[0].source.split())
    assert row == ["01", str(words), "3", "2", "1", "1", "1", "15", "0"]


# ---------------------------------------------------------------- findings, and claims of the second edition

FINDING = """from course_lib.findings import finding
from course_lib.runtime import seed
SEED = seed(3)
finding("Tall × is taller.", {{"× tall": SEED + 0.5, "small": {small},
                               "none": 0}}{more})"""


@pytest.mark.slow
def test_findings_are_run_under_five_seeds_and_their_ranges_written(course, run):
    source = FINDING.format(small="1 / SEED", more="")
    path = course("notebooks", "01_x", lesson(code("finding", source)))
    status, out, _ = run("findings", "1")
    assert status == 0 and "× tall" in out and "3.5 to 7.5" in out and "Every finding held" in out
    cell = exercise.read(path).cells[1]
    assert cell.source == source[:-1] + (
        ',\n        seeds={"× tall": (3.5, 7.5), "small": (0.14, 0.33), "none": (0, 0)})')
    status, out, _ = run("findings", "1")    # the table has now ranges, and gives the same values
    assert status == 0 and exercise.read(path).cells[1] == cell


def test_ranges_of_several_processors_are_united_and_those_of_studies_stay(course):
    seeds = ', seeds={"× tall": (2, 4.5), "small": (0.1, 0.2)}'
    path = course("notebooks", "01_x", lesson(
        code("finding", FINDING.format(small=1, more=seeds) + "\nprint('after')"),
        code("study", FINDING.format(small=1, more=', seeds={"× tall": (near.low, near.high)}')),
        code("counts", FINDING.format(small=1, more=""))))
    seen = {(cell, "Tall × is taller.", name): span for cell in ("finding", "study")
            for name, span in {"× tall": (3.5, 7.5), "small": (0.14, 0.2)}.items()}
    counts = {("counts", "Tall × is taller.", name): (2, 2) for name in ("× tall", "small")}
    before = exercise.read(path)
    assert findings.refresh(path, seen | counts, widen=True) == 2
    united = seeds.replace("(2, 4.5)", "(2, 7.5)")
    after = exercise.read(path)
    assert after.cells[1].source == before.cells[1].source.replace(seeds, united)
    assert after.cells[2:] == before.cells[2:]
    assert findings.refresh(path, seen | counts) == 2
    assert '"× tall": (3.5, 7.5), "small": (0.14, 0.2)' in exercise.read(path).cells[1].source


def test_a_long_range_is_broken_between_its_entries(course):
    names = [f"a name of some length, number {number}" for number in range(4)]
    call = f"finding('long', {{name: 1 for name in {names}}})"
    path = course("notebooks", "01_x", lesson(code("finding", call)))
    findings.refresh(path, {("finding", "long", name): (0, 1) for name in names})
    lines = exercise.read(path).cells[1].source.splitlines()[1:]
    assert len(lines) == 2 and max(map(len, lines)) <= 110 and lines[1].startswith(' ' * 9 + '"a name')


CLAIM = """from course_lib.claims import claim
from course_lib.runtime import seed
SEED = seed(3)
claim("the seed × 1", SEED, above=0, below={below}, seeds=(0, 1), digits=0)"""


@pytest.mark.slow
def test_claims_are_run_under_five_seeds_and_their_ranges_written(course, run):
    path = course("notebooks", "01_x", lesson(code("claim", CLAIM.format(below=9))))
    status, out, _ = run("findings", "1")
    lines = [line.split(maxsplit=4) for line in out.splitlines() if line.startswith("  seed")]
    assert status == 0 and [line[4] for line in lines] == ["ok"] * 5
    assert "the seed × 1" in out and "3 to 7" in out
    cell = exercise.read(path).cells[1]
    assert cell.source == CLAIM.format(below=9).replace("(0, 1)", "(3, 7)") and not cell.outputs


def test_on_another_machine_ranges_can_be_widened(course):
    source = CLAIM.format(below=9).replace("(0, 1)", "(-4, 5)")
    path = course("notebooks", "01_x", lesson(code("claim", source)))
    assert findings.refresh(path, {("claim", "the seed × 1", None): (3, 7)}, widen=True) == 1
    assert "seeds=(-4, 7)" in exercise.read(path).cells[1].source
    assert findings.refresh(path, {("claim", "the seed × 1", None): (3, 7)}) == 1
    assert "seeds=(3, 7)" in exercise.read(path).cells[1].source


@pytest.mark.slow
def test_a_claim_that_fails_under_a_seed_is_reported_and_its_range_left(course, run):
    path = course("notebooks", "01_x", lesson(code("claim", CLAIM.format(below=7))))
    before = path.read_bytes()
    status, out, _ = run("findings", "1")
    assert status == 1 and "1 of the runs failed" in out and path.read_bytes() == before
    assert "seed 4" in out and "FAILED in cell claim" in out
    assert "The claim does not hold: the seed × 1 is 7, claimed: between 0 and 7." in out


# ---------------------------------------------------------------- what is kept when a lesson is executed anew

def executed(first, second="print('b')", number="0.91", picture="AAAA"):
    line = f"{'a number':44}  {number}   claimed: above 0.6   five seeds: 0.8 to 0.9\n"
    outputs = [{"output_type": "stream", "name": "stdout", "text": line},
               {"output_type": "display_data", "metadata": {},
                "data": {"image/png": picture, "text/plain": "<picture>"}}]
    notebook = nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
        {"cell_type": "code", "id": name, "source": source, "metadata": {}, "execution_count": 1,
         "outputs": outputs} for name, source in (("a", first), ("b", second))]})
    stored.sign(notebook)
    return notebook


def kept(new, old):
    stored.keep_outputs(new, old)
    return [cell.outputs == before.outputs for cell, before in zip(new.cells, old.cells, strict=True)]


def test_outputs_that_differ_only_in_measured_numbers_and_pictures_are_kept():
    assert kept(executed("a", number="0.93", picture="BBBB"), executed("a")) == [True, True]


def test_the_outputs_of_two_runs_are_never_mixed():
    """A picture whose title was edited must not stand beside the numbers of the run before."""
    assert kept(executed("a", "changed", number="0.93"), executed("a")) == [False, False]
    assert kept(executed("changed", number="0.93"), executed("a")) == [False, False]


def test_outputs_that_an_edited_cell_still_carries_are_stored_anew():
    before = executed("a")
    before.cells[1].source = "edited"    # in JupyterLab, and not run there
    assert stored.edited(before) == ["b"]
    assert kept(executed("a", "edited", number="0.93"), before) == [False, False]


def test_outputs_of_unknown_code_are_stored_anew():
    before = executed("a")
    del before.metadata["course"]
    assert stored.edited(before) == ["a", "b"]
    assert kept(executed("a", number="0.93"), before) == [False, False]


def test_another_change_in_the_line_of_a_claim_is_stored():
    new = executed("a", number="0.93")
    new.cells[0].outputs[0].text = new.cells[0].outputs[0].text.replace("above 0.6", "above 0.7")
    assert kept(new, executed("a")) == [False, False]

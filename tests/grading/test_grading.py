"""The grader: what is right keeps its points, what is wrong is named, and nothing that a submission does
costs anything but its own item."""

import csv
import html
import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import typing
import xml.etree.ElementTree as xml
from html.parser import HTMLParser
from pathlib import Path

import fastjsonschema
import nbformat
import psutil
import pytest
from first_exercise import (
    CLASS,
    FULL,
    ITEMS,
    NO_TANH,
    POINTS,
    SOLUTION,
    STEM,
    alive,
    cell_of,
    earned,
    hand_in,
    messages,
    notebook,
    wait_for,
)

from course_tools import exercise, learner
from course_tools.exports import lms
from course_tools.grading import (
    CAUTION,
    GradingError,
    caution,
    classroom,
    grade,
    merge,
    references,
    results,
    submissions,
    workers,
)
from course_tools.grading.kernels import replies
from course_tools.grading.kernels.outcome import KernelLost, Outcome
from course_tools.grading.reports import feedback_pages, gradebook, overview, report
from course_tools.grading.sandbox.policy import environment
from course_tools.grading.session import GradingSession
from course_tools.grading.side_effects import has_side_effects
from course_tools.items import registry
from course_tools.judging import honesty
from course_tools.judging.judge import Verdict, examine
from course_tools.judging.observe import encode, observe

BROKEN = {
    "b-empty": "", "b-text": "hello", "b-list": "[]", "b-null": json.dumps({"nbformat": 4, "cells": None}),
    "b-future": json.dumps({"nbformat": 9, "nbformat_minor": 0, "metadata": {}, "cells": []}),
    "b-prose": nbformat.writes(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("none")])),
}


@pytest.fixture(scope="session")
def graded(tmp_path_factory):
    """(OUT, {student: its part of results.json}) of one class, graded once for all tests."""
    folder = tmp_path_factory.mktemp("class")
    for student, make in CLASS.items():
        hand_in(folder / "in", student, make())
    for student, text in BROKEN.items():
        hand_in(folder / "in", student, text)
    hand_in(folder / "in", "=cmd|' /C calc'!A1", "{")
    hand_in(folder / "in", "<script>alert(1)<", "{")
    hand_in(folder / "in", "other", notebook(base=nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("1")])), name="shopping")
    results, now = classroom.grade_class(folder / "in", folder / "out", seed=5, timeout=3, workers=2)
    assert now == len(CLASS)
    return folder, {one["student"]: one for one in results["submissions"]}


def named(result):
    return {item["name"]: item["mistake"] or item["status"] for item in result["items"] if not item["passed"]}


# ---------------------------------------------------------------- what answers earn

def test_right_answers_earn_everything(graded):
    assert earned(graded[1]["right"]) == POINTS
    assert (graded[1]["right"]["score"], graded[1]["right"]["max_score"]) == (FULL, FULL)


def test_a_stub_earns_nothing_and_runs_nothing(graded):
    assert graded[1]["stub"]["score"] == 0
    assert set(named(graded[1]["stub"]).values()) == {"missing"}


def test_three_mistakes_are_named_and_cost_three_items(graded):
    assert named(graded[1]["three"]) == {"rnn_step": "no_tanh", "lstm_step": "order_ifog",
                                         "clip_gradient": "per_tensor"}
    forward = graded[1]["three"]["items"][1]
    assert forward["passed"] and "the correct rnn_step" in forward["message"]


def test_hanging_and_exiting_cost_their_own_item(graded):
    assert named(graded[1]["stuck"]) == {"rnn_step": "timeout", "lstm_step": "error"}
    told = messages(graded[1]["stuck"])
    assert "loop that never ends" in told["rnn_step"] and "ended the Python process" in told["lstm_step"]


def test_cells_that_raise_say_what_to_do(graded):
    told = messages(graded[1]["clumsy"])
    found = earned(graded[1]["clumsy"])
    raising = {"rnn_step", "gradient_norms", "lstm_step", "gru_step", "clip_gradient"}
    assert {name for name in POINTS if not found[name]} == raising
    assert "SyntaxError" in told["rnn_step"] and "line 1" in told["rnn_step"]
    assert "my_helper" in told["lstm_step"] and "Only the answer cells are graded" in told["lstm_step"]
    assert "spelt" in told["gru_step"] and "object" in told["clip_gradient"]


def test_honest_work_in_an_odd_notebook_keeps_its_points(graded):
    assert earned(graded[1]["rearranged"]) == POINTS
    told = messages(graded[1]["rearranged"])
    assert "the answer cell has lost its mark" in told["gru_step"]
    assert "2 cells are marked" in told["lstm_step"] and "NameError" in told["clip_gradient"]


def test_forging_earns_nothing_and_spoils_nothing(graded):
    assert graded[1]["forged"]["max_score"] == FULL
    wrong = named(graded[1]["forged"])
    assert wrong.pop("rnn_step") in ("error", "wrong")  # its own display: malformed, or never heard of
    assert wrong == {"rnn_forward": "free_call", "lstm_step": "order_ifog", "gru_step": "free_call",
                     "clip_gradient": "per_tensor"}


@pytest.mark.parametrize("student", BROKEN)
def test_an_unreadable_notebook_has_its_rows_and_a_reason(graded, student):
    result = graded[1][student]
    assert (result["status"], result["score"], result["max_score"]) == ("unreadable", 0, FULL)
    assert [item["name"] for item in result["items"]] == list(ITEMS)
    assert result["message"] and "\n" not in result["message"] and str(graded[0]) not in result["message"]


def test_what_is_no_exercise_is_told(graded):
    assert graded[1]["other"]["status"] == "unknown_exercise" and STEM in graded[1]["other"]["message"]


# ---------------------------------------------------------------- what is written

def test_results_have_the_form_of_their_schema_and_of_their_types(graded):
    schema = json.loads(report.SCHEMA.read_text(encoding="utf-8"))
    written = json.loads((graded[0] / "out" / "results.json").read_text(encoding="utf-8"))
    valid = fastjsonschema.compile(schema)
    valid(written)
    assert written["seed"] == 5 and written["caution"] == caution(written["sandbox"])
    assert {one["status"] for one in written["submissions"]} >= {"graded", "unreadable"}
    submission = schema["properties"]["submissions"]["items"]
    for form, kind in ((schema, results.Summary), (submission, results.SubmissionScore),
                       (submission["properties"]["items"]["items"], results.ItemScore)):
        assert set(form["properties"]) == kind.__required_keys__ | kind.__optional_keys__
        assert set(form["required"]) == kind.__required_keys__
    assert submission["properties"]["status"]["enum"] == list(typing.get_args(results.Status))
    written["submissions"][0]["items"][0]["points"] = "3"
    with pytest.raises(ValueError, match="points must be integer"):
        valid(written)


def test_the_table_is_whole_and_no_formula(graded):
    with open(graded[0] / "out" / "grades.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == report.COLUMNS
    assert len(rows) == (len(CLASS) + len(BROKEN) + 2) * len(ITEMS) + 1
    assert sum(int(row["points"]) for row in rows) == sum(one["score"] for one in graded[1].values())
    assert not any(cell[:1] in "=+-@" for row in rows for cell in row.values() if cell)


def test_junit_counts_every_item(graded):
    suites = xml.parse(graded[0] / "out" / "junit.xml").getroot()
    failed = {suite.get("name").split("/")[0]: len(suite.findall("testcase/failure")) for suite in suites}
    assert failed["right"] == 0 and failed["three"] == 3 and failed["b-empty"] == len(ITEMS)


class Page(HTMLParser):
    """The tags and the text of a page, which loads nothing and links only to itself."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not {name for name, _ in attributes} & {"src", "onload", "onclick"}
        assert dict(attributes).get("href", "#").startswith("#")

    def handle_data(self, text):
        self.text += text


def test_every_student_has_a_page_that_needs_nothing_else(graded):
    pages = {path.parent.name: Page(path.read_text(encoding="utf-8"))
             for path in (graded[0] / "out" / "submissions").rglob("*.html")}
    assert len(pages) == len(graded[1])
    assert all("script" not in page.tags for page in pages.values())
    assert any("<script>alert(1)<" in page.text for page in pages.values())
    assert f"{FULL} of {FULL} points" in pages["right"].text and "tanh is missing" in pages["three"].text


def test_a_page_tells_all_that_helps(graded):
    text = (graded[0] / "out" / "submissions" / "three" / "01.html").read_text(encoding="utf-8")
    told = Page(text).text
    for part in ("One step of the LSTM.", "return torch.sigmoid(o) * torch.tanh(c_t), c_t",
                 "The gates are read in the order i, f, o, g", "but should be", "b_h = torch.tensor([",
                 f"section “{ITEMS['lstm_step'].where}”", "notebooks/01_long_term_dependency.ipynb"):
        assert part in told, part
    assert len(re.findall("<details open><summary>Your answer", text)) == 3
    assert text.count("<summary>The task") == len(ITEMS) and "<math" in text
    sandbox = json.loads((graded[0] / "out" / "results.json").read_text())["sandbox"]
    assert sandbox not in told and sandbox in (graded[0] / "out" / "index.html").read_text(encoding="utf-8")


def test_the_line_that_raised_is_marked_in_the_answer(graded):
    text = (graded[0] / "out" / "submissions" / "clumsy" / "01.html").read_text(encoding="utf-8")
    assert re.findall("<mark>(.*?)</mark>", text) == ["def rnn_step(x_t)", "    return my_helper(*args)"]


@pytest.mark.parametrize("student", ["b-empty", "b-text"])
def test_a_damaged_file_says_what_to_do_and_nothing_else(graded, student):
    told = Page((graded[0] / "out" / "submissions" / student / "01.html").read_text(encoding="utf-8")).text
    assert ("The file is incomplete or damaged. In JupyterLab, choose File, Save Notebook, "
            "then hand it in again.") in told
    assert "answer" not in told


@pytest.mark.parametrize("sandbox, told", [("own user, seccomp, limits", True), ("Landlock, limits", False)])
def test_results_and_pages_say_where_malice_is_not_held(graded, sandbox, told):
    kept = json.loads((graded[0] / "out" / "submissions" / "three" / "01.json").read_text())["result"]
    result = {**kept, "sandbox": sandbox}
    summary = report.summary(5, [result])
    assert (summary["caution"] == CAUTION) == told
    for_teachers = html.unescape(feedback_pages.index(summary, [""])), html.unescape(overview.page(summary))
    assert [CAUTION in page for page in for_teachers] == [told, told]
    assert CAUTION not in html.unescape(feedback_pages.feedback(result, feedback_pages.handed_out(STEM)))


def test_a_page_escapes_what_an_answer_says():
    item = {"name": "x", "points": 0, "max_points": 1, "passed": False, "mistake": None, "status": "error",
            "message": "<img src=x onerror=alert(1)>", "see": None}
    result = {"student": "a", "exercise": STEM, "score": 0, "max_score": 1, "items": [item]}
    page = Page(feedback_pages.feedback(result, feedback_pages.handed_out(STEM)))
    assert "img" not in page.tags and "<img src=x" in page.text


def test_tables_of_odd_text_are_well_formed():
    item = {"name": "x", "points": 0, "max_points": 1, "passed": False, "mistake": None, "status": "error",
            "message": 'a "quoted", \x00 line\nand \ud800 more'.encode("utf-8", "replace").decode()}
    one = {"student": "\t=1+1", "exercise": STEM, "path": "p", "status": "graded", "score": 0, "max_score": 1,
           "items": [item]}
    row = list(csv.reader(io.StringIO(report.table({"submissions": [one]}))))[1]
    assert row[0] == "'\t=1+1" and row[7] == item["message"]
    assert xml.fromstring(report.junit({"submissions": [one]})).find("testsuite/testcase/failure") is not None


# ---------------------------------------------------------------- runs

def test_a_second_run_grades_nothing_and_changes_nothing(graded, monkeypatch):
    folder = graded[0]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (folder / "out").rglob("[!.]*")
              if path.is_file()}
    monkeypatch.setattr(workers, "grade_submission", None)
    results, now = classroom.grade_class(folder / "in", folder / "out", timeout=3)
    assert now == 0 and results["seed"] == 5
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before


def test_only_what_changed_is_graded_again(tmp_path):
    for student in ("ann", "bob"):
        hand_in(tmp_path / "in", student, exercise.derive(SOLUTION))
    classroom.grade_class(tmp_path / "in", tmp_path / "out", seed=1)
    path = hand_in(tmp_path / "in", "ann", exercise.derive(SOLUTION))
    changed = exercise.read(path)
    changed.cells[1].source += "\n# not an answer, so no change"
    hand_in(tmp_path / "in", "ann", changed)
    assert classroom.grade_class(tmp_path / "in", tmp_path / "out")[1] == 0
    cell_of(changed, "rnn_step").metadata.pop("nbgrader")
    hand_in(tmp_path / "in", "ann", changed)
    results, now = classroom.grade_class(tmp_path / "in", tmp_path / "out")
    assert now == 1 and results["seed"] != 1
    assert classroom.grade_class(tmp_path / "in", tmp_path / "out", seed=1)[1] == 1  # bob's was drawn with 1
    piece = tmp_path / "out" / "submissions" / "bob" / "01.json"
    whole = piece.read_text()
    for broken in (whole[:100], whole.replace('"score": 0', '"score": 11'), "[]", ""):
        piece.write_text(broken)
        assert classroom.grade_class(tmp_path / "in", tmp_path / "out", seed=1)[1] == 1
        assert piece.read_text() == whole


def test_a_killed_run_goes_on_where_it_stopped(tmp_path):
    hand_in(tmp_path / "in", "a-right", notebook())
    hand_in(tmp_path / "in", "b-stuck", notebook({"rnn_step": "while True: pass"}))
    command = [sys.executable, "-m", "course_tools.cli", "grade", "in", "--out", "out", "--timeout", "300"]
    place = os.pathsep.join([str(exercise.ROOT), os.environ.get("PYTHONPATH", "")])
    run = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": place})
    try:
        first = tmp_path / "out" / "submissions" / "a-right" / "01.json"
        wait_for(first.exists, 60)
        family = psutil.Process(run.pid).children(recursive=True)
        assert family
    finally:
        run.send_signal(signal.SIGKILL)
        run.wait()
    merge.code_digest.cache_clear()  # that process saw the code as it is now
    seed = json.loads((tmp_path / "out" / gradebook.MARKER).read_text())["seed"]
    hand_in(tmp_path / "in", "b-stuck", exercise.derive(SOLUTION))
    results, now = classroom.grade_class(tmp_path / "in", tmp_path / "out", timeout=300)
    assert now == 1 and results["seed"] == seed
    assert [one["score"] for one in results["submissions"]] == [FULL, 0]
    wait_for(lambda: not any(alive(process) for process in family), 20)


def ends_its_process(submission, settings):
    if submission.student == "killer":
        os._exit(1)
    return {**grade.ungraded(submission, "graded", "fine"), "student": submission.student, "path": ""}


@pytest.mark.skipif(sys.platform != "linux", reason="the stand-in reaches the processes by fork")
def test_an_ended_process_costs_only_the_submission_that_ended_it(tmp_path, monkeypatch):
    for student in ("ann", "killer", "zoe"):
        hand_in(tmp_path / "in", student, exercise.derive(SOLUTION))
    monkeypatch.setattr(workers, "grade_submission", ends_its_process)
    results, _ = classroom.grade_class(tmp_path / "in", tmp_path / "out", workers=2)
    lost = results["submissions"].pop(1)
    assert (lost["status"], lost["score"], lost["max_score"]) == ("graded", 0, FULL)  # exports have it, then
    assert "grading this notebook ended the process (exit status 1), in two attempts" in lost["message"]
    assert {(item["status"], item["message"]) for item in lost["items"]} == {("error", lost["message"])}
    assert [one["items"][0]["message"] for one in results["submissions"]] == ["fine", "fine"]
    assert classroom.grade_class(tmp_path / "in", tmp_path / "out")[1] == 2  # ann and zoe: not him again


def test_a_check_of_ones_own_notebook_is_out_of_harms_way_too(tmp_path, monkeypatch):
    monkeypatch.setattr(exercise, "ROOT", tmp_path)
    monkeypatch.setattr(workers, "grade_submission", lambda submission, settings: os._exit(1))
    monkeypatch.setattr(workers, "prepare", lambda *settings: None)
    hand_in(tmp_path, "exercises", notebook())
    hand_in(tmp_path, "solutions", notebook())
    result = learner.check(STEM, 20)
    assert result["score"] == 0 and "ended the process" in result["items"][0]["message"]
    row = next(row for row in learner.progress(20) if row["exercise"] == STEM)
    assert row["score"] == 0 and "ended the process" in row["message"]


@pytest.mark.parametrize("limit, reason", [("LARGEST", "MB. Clear its outputs"),
                                           ("CODE", "million characters of code")])
def test_what_is_too_long_to_be_read_is_told_in_a_line(limit, reason, tmp_path, monkeypatch):
    monkeypatch.setattr(exercise, limit, 2000)
    with pytest.raises(exercise.NotebookError, match=reason) as caught:
        merge.merge(hand_in(tmp_path, "ann", notebook()), STEM)
    assert "\n" not in str(caught.value)


class Slow:
    """A kernel whose cells take 0.1 s; one that holds "hang" takes all its time and is lost."""

    sandbox = "none at all"

    def __init__(self, log):
        self.log = log

    def run(self, source, timeout):
        self.log.append(timeout)
        time.sleep(timeout if "hang" in source else min(0.1, timeout))
        if "hang" in source or timeout < 0.1:
            raise KernelLost("timeout", "hangs")
        return Outcome()

    def observe(self, item, trials, timeout):
        return None

    def stop(self):
        pass


def test_a_notebook_has_a_budget_of_time_and_keeps_what_it_earned_within(monkeypatch):
    log, given = [], dict.fromkeys(ITEMS, "hang = 1") | {"rnn_step": "import x"}
    session = GradingSession(ITEMS, given, {}, 0, lambda: Slow(log), timeout=1, budget=3)
    monkeypatch.setattr(session, "_observed", lambda item: Verdict("passed", "right"))
    begun = time.monotonic()
    session.set_up("import torch")
    for name in ITEMS:
        session.answer(name, given[name])
        session.examine(name)
    assert time.monotonic() - begun < 5 and len(log) < 2 * len(ITEMS)
    told = [verdict.message for verdict in session.verdicts.values()]
    assert session.verdicts["rnn_step"].passed and session.verdicts["rnn_forward"].message == "hangs"
    assert told[-1] == ("Not finished. All cells of a notebook together may take 3 s, "
                        "and this time is used up.")
    assert {verdict.status for verdict in list(session.verdicts.values())[1:]} == {"timeout"}


def test_the_budget_follows_from_the_timeout():
    assert grade.Settings(1).budget == 160 and grade.Settings(1, timeout=2).budget == 70


class Here:
    """A kernel that is this very process: quick, for answers that do no harm."""

    sandbox = "none at all"

    def __init__(self):
        self.names = {}

    def run(self, source, timeout):
        try:
            exec(source, self.names)
        except Exception as problem:
            return Outcome((type(problem).__name__, str(problem)))
        return Outcome()

    def observe(self, item, trials, timeout):
        if item.name not in self.names:
            return None
        seen = [observe(self.names[item.name], trial, item.probe, item.gradients) for trial in trials]
        return replies.observations(json.dumps(seen), len(trials))

    def stop(self):
        pass


def grade_here(path, seed):
    result = grade.grade_notebook(path, STEM, grade.Settings(seed, kernel=f"{__name__}:Here"))
    return {item["name"]: (item["status"], item["mistake"], item["message"]) for item in result["items"]}


def test_a_seed_decides_all_numbers_and_no_verdict(tmp_path):
    path = hand_in(tmp_path, "ann", notebook({"rnn_step": NO_TANH, "lstm_step":
                                              "def lstm_step(x_t, h, c, W, U, b):\n    return h * 3, c\n"}))
    first, again, other = grade_here(path, 1), grade_here(path, 1), grade_here(path, 2)
    assert first == again and first != other
    assert [told[:2] for told in first.values()] == [told[:2] for told in other.values()]


def test_every_mistake_is_named_through_the_grader(tmp_path):
    """Each at its own place in the notebook, so through merging, observing, the wire and the judge."""
    heads = "from course_tools.items.lesson_01_long_term_dependency import *\n"
    for name in ("no_bias", "W_hh_transposed", "bias_after_tanh"):
        source = inspect.getsource(ITEMS["rnn_step"].mistakes[name].answer)
        source = source[source.index("def "):].replace(f"def {name}", "def rnn_step")
        assert heads not in source
        told = grade_here(hand_in(tmp_path, name, notebook({"rnn_step": source})), seed=3)
        assert told["rnn_step"][:2] == ("wrong", name)
        assert all(status == "passed" for item, (status, _, _) in told.items() if item != "rnn_step")


ALONE = """
def rnn_forward(X, h_0, W_xh, W_hh, b_h):
    states = [h_0]
    for t in range(X.size(1)):
        states.append(torch.tanh(X[:, t] @ W_xh + states[-1] @ W_hh + b_h))
    return torch.stack(states[1:], dim=1)
"""
FLOAT32_ONLY = """
def gradient_norms(H, W_hh):
    grad = torch.eye(H.size(1))
    norms = [grad.norm()]
    for h in H[1:].flip(0):
        grad = (W_hh * (1 - h ** 2)) @ grad
        norms.append(grad.norm())
    return torch.stack(norms[::-1])
"""


def test_the_right_one_is_told_only_where_it_was_called(tmp_path):
    told = grade_here(hand_in(tmp_path, "ann", notebook({"rnn_step": NO_TANH, "rnn_forward": ALONE})), seed=1)
    assert told["rnn_forward"][0] == "passed" and "checked with" not in told["rnn_forward"][2]
    told = grade_here(hand_in(tmp_path, "bob", notebook({"rnn_step": NO_TANH})), seed=1)
    assert told["rnn_forward"][2].endswith(
        "(This was checked with the correct rnn_step, because yours does not pass yet.)")


def test_a_remark_costs_nothing_and_is_told_everywhere(tmp_path):
    path = hand_in(tmp_path, "ann", notebook({"gradient_norms": FLOAT32_ONLY}))
    result = grade.grade_notebook(path, STEM, grade.Settings(1, kernel=f"{__name__}:Here"))
    result = {**result, "student": "ann", "path": "ann.ipynb"}
    row = next(item for item in result["items"] if item["name"] == "gradient_norms")
    assert row["passed"] and row["points"] == row["max_points"] and "float64" in row["remark"]
    assert all(item["remark"] is None for item in result["items"] if item is not row)
    graded = report.summary(1, [result])
    written = next(item for item in graded["submissions"][0]["items"] if item["name"] == "gradient_norms")
    assert written["remark"] == row["remark"]
    table = next(line for line in csv.DictReader(io.StringIO(report.table(graded)))
                 if line["item"] == "gradient_norms")
    assert row["remark"] in table["message"] and table["status"] == "passed"
    page = feedback_pages.feedback(result, feedback_pages.handed_out(STEM), None)
    assert html.unescape(page).count(row["remark"]) == 1
    assert row["remark"] in html.unescape(lms.comment(graded["submissions"][0]))


# ---------------------------------------------------------------- what is taken from a submission

def test_old_formats_and_byte_order_marks_are_read(tmp_path):
    cells = [{"cell_type": "code", "language": "python", "metadata": cell.metadata, "input": cell.source,
              "outputs": [], "collapsed": False} for cell in SOLUTION.cells if cell.cell_type == "code"]
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": [{"cells": cells}]}
    for text in (json.dumps(old), "\ufeff" + json.dumps(SOLUTION)):
        assert merge.merge(hand_in(tmp_path, "ann", text), STEM).given.keys() == ITEMS.keys()


def test_only_pristine_cells_and_answers_run(tmp_path):
    made = notebook({"rnn_step": NO_TANH})
    made.cells.insert(0, nbformat.v4.new_code_cell("intruder"))
    for cell in made.cells:
        cell.source = cell.source if exercise.grade_id(cell) else "intruder"
    cells = merge.merge(hand_in(tmp_path, "ann", made), STEM).notebook.cells
    kept = [cell for cell in exercise.pristine(STEM).cells
            if cell.cell_type == "code" and "try-it" not in cell.metadata.get("tags", [])]
    assert len(kept) == 1 + 2 * len(ITEMS) and [cell.id for cell in cells] == [cell.id for cell in kept]
    assert "intruder" not in "".join(cell.source for cell in cells) and cells[1].source == NO_TANH


def test_a_missing_answer_cell_is_told_and_only_its_own_loss(tmp_path):
    made = notebook()
    made.cells.remove(cell_of(made, "rnn_forward"))
    told = grade_here(hand_in(tmp_path, "ann", made), seed=1)
    assert told["rnn_forward"] == ("missing", None, "the notebook has no answer cell for it")
    assert sum(status == "passed" for status, _, _ in told.values()) == len(ITEMS) - 1


def test_an_answer_cell_that_became_text_still_counts(tmp_path):
    made = notebook()
    cell_of(made, "rnn_step").cell_type = "markdown"
    assert "rnn_step" in merge.merge(hand_in(tmp_path, "ann", made), STEM).given


def test_submissions_are_found_by_folder_and_by_name(tmp_path):
    hand_in(tmp_path, "ann", notebook())
    hand_in(tmp_path, "ann", notebook(), name=f"{STEM}-Copy1")
    hand_in(tmp_path / "bob", "inner", notebook())
    hand_in(tmp_path, ".ipynb_checkpoints", notebook())
    hand_in(tmp_path, "cara/.ipynb_checkpoints", notebook())
    hand_in(tmp_path, "dan", notebook(), name="final (3)")
    hand_in(tmp_path, ".", notebook(), name=f"eve_{STEM}")
    found = submissions.find(tmp_path)
    assert [(one.student, one.exercise) for one in found] == [
        (student, STEM) for student in ("ann", "ann (2)", "bob", "dan", "eve")]
    assert found[0].path.name == f"{STEM}.ipynb"
    alone, = submissions.find(tmp_path / "ann" / f"{STEM}.ipynb")
    assert (alone.student, alone.exercise) == ("ann", STEM)


def test_a_second_notebook_never_takes_the_name_of_somebody_else(tmp_path):
    hand_in(tmp_path, "ann", notebook())
    hand_in(tmp_path, "ann", notebook(), name=f"{STEM}-Copy1")
    hand_in(tmp_path, "ann", notebook(), name=f"{STEM}-Copy2")
    hand_in(tmp_path, "Ann (2)", notebook())
    hand_in(tmp_path, "ann (4)", notebook(), name="02_convolutional_sequences")
    owners = {one.path.parent.name: [] for one in submissions.find(tmp_path)}
    for one in submissions.find(tmp_path):
        owners[one.path.parent.name].append(one.student)
    assert owners == {"ann": ["ann", "ann (3)", "ann (5)"], "Ann (2)": ["Ann (2)"], "ann (4)": ["ann (4)"]}


def test_a_folder_that_is_called_like_a_notebook_is_told(tmp_path):
    (tmp_path / "in" / "ann" / f"{STEM}.ipynb").mkdir(parents=True)
    (tmp_path / "in" / "bob" / "notes.ipynb" / "more").mkdir(parents=True)
    hand_in(tmp_path / "in" / "cara.ipynb", "work", exercise.derive(SOLUTION))  # one that holds some is none
    Path(tmp_path, "in", *("deep.ipynb" for _ in range(200))).mkdir(parents=True)
    results, _ = classroom.grade_class(tmp_path / "in", tmp_path / "out")
    told = {one["student"]: (one["exercise"], one["status"], one.get("message"))
            for one in results["submissions"]}
    reason = "this is a folder, not a notebook. Hand in the file itself"
    assert told["ann"] == (STEM, "unreadable", reason)
    assert told["bob"] == (None, "unknown_exercise", reason)
    assert told["cara.ipynb"] == (STEM, "graded", None)
    assert (None, "unknown_exercise", reason) in [told[name] for name in told if name.startswith("deep")]


def test_links_and_pipes_are_not_followed(tmp_path):
    hand_in(tmp_path, "target", "secret")
    (tmp_path / "in" / "ann").mkdir(parents=True)
    (tmp_path / "in" / "ann" / f"{STEM}.ipynb").symlink_to(tmp_path / "target" / f"{STEM}.ipynb")
    (tmp_path / "in" / "bob").mkdir()
    os.mkfifo(tmp_path / "in" / "bob" / f"{STEM}.ipynb")
    results, _ = classroom.grade_class(tmp_path / "in", tmp_path / "out")
    assert [one["status"] for one in results["submissions"]] == ["unreadable"] * 2
    assert "secret" not in json.dumps(results)


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "../../etc", "con", "nul.txt", "x" * 300, "김" * 100,
                                  "a\0b", "a\nb", "%2E", " a ", "a."])
def test_a_name_becomes_one_harmless_component(name):
    plain = submissions.safe(name)
    assert plain and not set(plain) & set('/\\:*?"<>|\0\n') and plain not in (".", "..")
    assert len(plain.encode()) <= 120 and plain.strip(" .") == plain
    assert plain.lower() not in ("con", "nul.txt")
    others = [submissions.safe(other) for other in ("a", "b", "김", "x" * 301, "%252E", "a b")]
    assert plain not in others


def test_folders_that_are_not_ours_are_left_alone(tmp_path):
    hand_in(tmp_path / "in", "ann", exercise.derive(SOLUTION))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    for out, reason in (("thesis", "contains other files"), ("thesis/chapter.txt", "cannot be written")):
        with pytest.raises(GradingError, match=reason):
            classroom.grade_class(tmp_path / "in", tmp_path / out)
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.txt"]
    (tmp_path / "empty").mkdir()
    for source, reason in (("empty", "no notebook"), ("nowhere", "no such file")):
        with pytest.raises(GradingError, match=reason):
            classroom.grade_class(tmp_path / source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------- kernel, replies, honesty

def test_the_kernel_is_told_nothing(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "hush")
    told = environment("/scratch")
    assert "hush" not in told.values() and told["COURSE_STATIC"] == "1" and told["HOME"] == "/scratch"


def observation(**changes):
    seen = {"output": None, "inputs": {"dict": []}, "gradients": None, "calls": [], "error": None}
    return json.dumps([{**seen, **changes}])


def test_the_wire_takes_what_observe_writes():
    for item in ITEMS.values():
        seen = [observe(item.reference, trial, item.probe, item.gradients) for trial in item.inputs(0)]
        assert replies.observations(json.dumps(seen), len(seen)) == seen
    assert replies.observations("null", 3) is None


@pytest.mark.parametrize("text", [
    "", "{", "[]", "5", "[1]", '"x"', "[" * 100_000, "9" * 10_000, observation(extra=1),
    observation(output=[1]), observation(calls=[1]), observation(error="x"),
    observation(output={"tensor": ["torch.float32", [2], "AAAA"]}),
    observation(output={"tensor": ["torch.float32", [-1], ""]}), observation(output={"code": "x"}),
    observation(output={"tensor": ["torch.float32", [10**9, 10**9, 0], ""]}), observation(inputs=None),
    observation(output={"tensor": ["torch.bool", [1], "Ag=="]}), observation(output={"set": [{"list": []}]}),
    observation(output={"dict": [[{"list": []}, 1]]}),
    observation(output={"tensor": ["torch.float32", [1], "A*=="]}),
    observation(output={"set": list(range(replies.MAX_ENTRIES_EACH + 1))}),
    observation(output={"dict": [[n, 1] for n in range(replies.MAX_ENTRIES_EACH + 1)]}),
    observation(output={"list": [{"set": list(range(400))}] * 13}),
    observation(output={"list": [0] * replies.MAX_VALUES}),
    observation(output=json.loads('{"list": [' * 30 + "1" + "]}" * 30)), observation(error={"type": 1})])
def test_the_wire_takes_nothing_else(text):
    with pytest.raises(replies.Malformed):
        replies.observations(text, 1)


def test_an_odd_dtype_is_only_described():
    seen = replies.observations(observation(output={"tensor": ["load", [1], "AAAA"]}), 1)
    assert seen[0]["output"] == {"object": "tensor of load"}


BORROWED = [
    "from course_lib.models.rnn import lstm_step",
    "import course_lib.models.rnn as right\nlstm_step = right.lstm_step",
    "from course_lib.models.rnn import *",
    "import course_tools.judging.observe as o\no.observe = print\ndef lstm_step(x):\n    return x",
    "lstm_step = torch.lstm_cell",
    "from torch import lstm_cell as lstm_step",
    "def lstm_step(*a):\n    return nn.LSTMCell(3, 4)(*a)",
    "def help(*a):\n    return torch._VF.lstm_cell(*a)\ndef lstm_step(*a):\n    return help(*a)",
    "def lstm_step(*a):\n    import importlib\n    return importlib.import_module('course_lib.models').f(*a)",
    "class lstm_step:\n    def __call__(self, *a):\n        import course_lib\n        return course_lib",
]
SIDE_EFFECTS = ["torch.tanh = print", "import sys", "from IPython import *", "setattr(torch, 'tanh', print)",
          "torch.set_default_dtype(torch.float64)", "vars(torch)['x'] = 1", "def f():\n    globals().clear()",
          "del torch.tanh", "f = lambda: ().__class__"]
NO_SIDE_EFFECTS = ["def f(x):\n    y = x\n    y[0] = 1\n    return torch.tanh(y)",
             "import torch\nfrom torch import nn",
             "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.x = 1",
             "x = = 1", "(" * 5000, "print(math.pi)"]


def test_a_cell_that_may_leave_traces_is_seen():
    assert all(map(has_side_effects, SIDE_EFFECTS)) and not any(map(has_side_effects, NO_SIDE_EFFECTS))


OWN = [
    "def lstm_step(x):\n    '''as nn.LSTMCell, torch.lstm_cell do'''\n    # so has course_lib\n    return x",
    "def lstm_step(x):\n    lstm = x\n    lstm_cell = lstm\n    return lstm_cell",
    "def lstm_step(x):\n    return x\nassert torch.allclose(lstm_step(1), torch.lstm_cell(1))",
    "def lstm_step(x):\n    return x\nx = nn.LSTMCell(3, 4)\nprint([nn.LSTMCell(x, 2) for x in (1, 2)])",
    "def lstm_step(x):\n    y = x\n    return y\ndef test():\n    y = nn.LSTMCell(3, 4)\n    return y",
    "from course_tools.judging import check\ndef lstm_step(x):\n    return x\ncheck(lstm_step)",
    "def lstm_step(x:\n    nn.LSTMCell", "\0", "(" * 5000,
]


@pytest.mark.parametrize("source", BORROWED)
def test_what_is_borrowed_is_seen(source):
    assert "earns nothing" in honesty.borrowed(source, ITEMS["lstm_step"])


@pytest.mark.parametrize("source", OWN)
def test_what_is_ones_own_is_left_alone(source):
    assert honesty.borrowed(source, ITEMS["lstm_step"]) is None


def test_an_answer_may_take_what_the_exercise_hands_over_and_nothing_else():
    block = registry.find("EncoderBlock")[1]
    own = ("from course_tools.answers import earlier_answers\n{} = earlier_answers({})\n"
           "class EncoderBlock: pass")
    assert honesty.borrowed(own.format("a, b", "'MultiHeadAttention', 'causal_mask'"), block) is None
    assert "('EncoderBlock') does the whole job" in honesty.borrowed(own.format("a", "'EncoderBlock'"), block)
    assert "earns nothing" in honesty.borrowed(own.format("a, b", "'causal_mask', 'FeedForward'"), block)
    assert "earns nothing" in honesty.borrowed(own.format("a", "*names"), block)
    assert "earns nothing" in honesty.borrowed("from course_lib.models.attention import causal_mask", block)


@pytest.mark.parametrize("stem", registry.stems())
def test_references_that_are_lent_stand_alone(stem):
    items = registry.items(stem)
    for used in {used for item in items.values() for used in item.uses} & items.keys():
        names = {}
        for name in [*items[used].uses, used]:
            exec(references.source(items[name]), names)
        assert examine(items[used], names[used]).passed, used


@pytest.mark.parametrize("stem", registry.stems())
def test_the_exercise_and_its_checks_agree(stem):
    worth = merge.points(stem)
    assert worth == {name: item.points for name, item in registry.items(stem).items()}
    for item in registry.items(stem).values():  # inputs reach the kernel as data, so all of them must be data
        assert '"object"' not in json.dumps([encode(trial) for trial in item.inputs(0)])

"""Every stored notebook keeps the rules of lint_rules and lint_exercises, and every rule bites."""

import inspect
import re

import lint_exercises
import lint_rules
import lint_widgets
import nbformat
import pytest
from lint_rules import ROOT

from course_lib.runtime import static
from course_tools import exercise
from course_tools.items import registry

LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SOLUTIONS = sorted((ROOT / "solutions").glob("*.ipynb"))
EXERCISES = sorted((ROOT / "exercises").glob("*.ipynb"))


def cases(rules, paths):
    return [pytest.param(rule, path, id=f"{path.parent.name}-{path.stem[:2]}-{rule.__name__}")
            for path in paths for rule in rules]


@pytest.mark.parametrize("rule, path", [
    *cases(lint_rules.EVERY, LESSONS + SOLUTIONS + EXERCISES),
    *cases(lint_rules.EXECUTED, LESSONS + SOLUTIONS),
    *cases(lint_rules.LESSON, LESSONS),
    *cases([lint_widgets.widgets_read_nothing_that_is_rebound], LESSONS),
    *cases(lint_exercises.RULES, SOLUTIONS)])
def test_a_notebook_keeps_the_rule(rule, path):
    problems = list(rule(exercise.read(path), path))
    assert not problems, "\n".join(["", f"{path.relative_to(ROOT)}:", *problems])


def test_every_exercise_has_its_lesson_solution_and_checks():
    assert [path.stem for path in LESSONS][:2] == ["00_start_here", "01_long_term_dependency"]
    assert [path.stem for path in SOLUTIONS] == registry.stems() == [path.stem for path in EXERCISES]
    assert {path.stem for path in SOLUTIONS} <= {path.stem for path in LESSONS}


TERM = re.compile(r"\*\*[^*]+\*\* \(([가-힣][가-힣n -]*)")    # **term** (한국어


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem[:2])
def test_the_glossary_lists_every_term_of_a_lesson(path):
    rows = next(cell.source for cell in exercise.read(LESSONS[0]).cells if cell.id == "glossary").splitlines()
    glossary = {term.strip() for row in rows for column in row.split("|") for term in column.split(",")}
    terms = {term.strip() for cell in exercise.read(path).cells for term in TERM.findall(cell.source)}
    missing = terms - glossary
    assert terms and not missing, f"the glossary in notebooks/00_start_here.ipynb lacks {missing}"


@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem[:2])
def test_exercises_are_what_the_solutions_give(path):
    made = exercise.derive(exercise.read(path))
    there = exercise.read(ROOT / "exercises" / path.name)
    assert there == made, f"exercises/{path.name} is not what solutions/{path.name} gives: run make exercises"
    assert "SOLUTION" not in nbformat.writes(there)


# ---------------------------------------------------------------- does every rule bite?

def text(source, id="a-text", **metadata):
    return nbformat.v4.new_markdown_cell(source, id=id, metadata=metadata)


def code(source, id="some-code", count=1, output=None, **metadata):
    outputs = [nbformat.v4.new_output(**output)] if output else []
    return nbformat.v4.new_code_cell(source, id=id, execution_count=count, outputs=outputs, metadata=metadata)


def printed(words, name="stdout"):
    return {"output_type": "stream", "name": name, "text": words}


ERROR = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": []}
WIDGET = {"output_type": "display_data", "data": {"application/vnd.jupyter.widget-view+json": {}}}
PICTURE = {"output_type": "display_data", "data": {"image/png": "iVBOR", "text/plain": "<picture>"}}
TITLE = "# 01 · A title\n\nIt is so.\n\n**You need** little. **Time**: 5 minutes, one of them computing."
OLD_TITLE = "# 01 · A title\n\n**Claim.** It is so.\n\n**Needs.** Little.\n\n**Minutes.** 5."
QUIZ = 'quiz("What?", ("a", True, "b"), ("c", False, "d"))'
WHY = "<details><summary>Why</summary>\n\nBecause.\n\n</details>"
ASKED = [code(QUIZ), code("1"), text(WHY)]
SECTIONS = [text(f"## {section}") for section in lint_rules.SECTIONS]
OLD_SECTIONS = [text(f"## {section}") for section in lint_rules.FIRST_SECTIONS]
DRAW, GRADED = "plots.lines(x, y)", "def rnn_step():\n    pass"
FOLDED = {"jupyter": {"source_hidden": True}, "tags": ["hide-input"]}
FIRST = text("> **Write it yourself first**: exercise 01, item 1. Then open the cell below and compare.")
SLIDES = code("K = 1\ndef draw(T=1): return helper(T)\ndef helper(T): return T * K\nexplore(draw, T=[1])")
BINDS = code(SLIDES.source.replace("helper(T):", "helper(T, K=K):"))
SIX = text("## Summary\n\n" + "\n".join(f"{n}. It is so." for n in range(1, 7)))
REFERENCES = text("## References\n\n- Elman (1990), [*Time*](https://doi.org/1), section 2.")
CHECKED = "## Claims, checked\n\n| often said | verdict | evidence |\n|---|---|---|\n"
SHOWS = {"shows": "course_lib.runtime:static"}

# rule: (cells that keep it, [cells that break it, ...])
BITES = {
    "cell_ids_are_names": ([text("a", "predict-scale")], [
        [text("a", "a1b2c3d4")], [text("a", "12345678")], [text("a", "Predict")], [text("a", "a_b")],
        [text("a", "same"), text("b", "same")], [text("a", "0b1c5a2e-1111-2222-3333-444455556666")]]),
    "cells_are_small": ([code("a = 1\n" * 25), text("word " * 220 + WHY + "\n| a | b |\n" * 90)],
                        [[code("a = 1\n" * 26)], [text("word " * 221)]]),
    "no_fillers": ([text("We justify `just` adjustments.")],
                   [[text("Simply add them.")], [text("It is just a sum")], [text("obviously")]]),
    "no_trailing_semicolon": ([code("seed(0)")], [[code("seed(0);\n")]]),
    "links_resolve": (
        [text("[a](../README.md) [b](#Two-words) [c](https://x.org/y) [d](#cell-id=a-text)\n\n## Two words")],
        [[text("[a](02_no_such_lesson.ipynb)")], [text("[b](#Two-words)")], [text("[d](#cell-id=no-cell)")],
         [text('<img src="no.png">')], [text("[a](../README.md#no-such-heading)")]]),
    "library_source_is_word_for_word": (
        [code(inspect.getsource(static).rstrip(), course=SHOWS)],
        [[code(inspect.getsource(static).replace("True", "Yes"), course=SHOWS)]]),
    "outputs_are_stored_in_order": ([code("1"), code("2", "b", 2)], [
        [code("1", count=None)], [code("1"), code("2", "b", 3)], [code("1", output=printed("!", "stderr"))],
        [code("1", output=ERROR)], [code("1", output=WIDGET)]]),
    "outputs_hold_nothing_that_changes": ([code("1", output=printed("5 of 60 words, loss 0.25\n"))], [
        [code("1", output=printed("took 12.5 ms"))], [code("1", output=printed("<f at 0x7f00aa11bb>"))],
        [code("1", output=printed("done in 3 seconds"))]]),
    "set_up_is_one_cell": ([code("1", "set-up"), code("2")], [[code("1"), code("2", "set-up")], [code("1")]]),
    "pictures_are_described": ([code("1", output=PICTURE), text("Two lines.")], [
        [code("1", output=PICTURE)], [code("1", output=PICTURE), code("2")],
        [code("1", output=PICTURE), text("## Next")]]),
    "title_says_claim_needs_and_minutes": (
        [text(TITLE)],
        [[text(TITLE.replace("01", "02"))], [text(TITLE.replace("**You need**", "Needs"))], [text("Hello")],
         [text(TITLE.replace("5 minutes", "a while"))], [text(OLD_TITLE.replace("**Needs.**", "Needs"))]]),
    "sections_come_in_order": (
        SECTIONS, [SECTIONS[1:], [*SECTIONS[1:], SECTIONS[0]], [text("# The problem")], OLD_SECTIONS[:5]]),
    "the_fields_terms_are_used": (
        [text("The softmax has saturated."), code("print('peak')")],
        [[text("It is deaf.")], [code("title = 'The summit comes late'")], [text("It turns a blind to b.")]]),
    "drawing_is_collapsed_and_measuring_is_not": (
        [code(DRAW, output=PICTURE, **FOLDED), code("claim('x', x, above=1)"),
         code(f"def draw():\n    return {DRAW}\ndraw()", output=PICTURE)],
        [[code(DRAW, output=PICTURE)], [code("assert x > 1")], [code("claim('x', 1)", **FOLDED)],
         [code(DRAW, output=PICTURE, jupyter={"source_hidden": True})]]),
    "graded_code_is_written_first": (
        [FIRST, code(GRADED, **FOLDED), code("def train():\n    pass")],
        [[FIRST, code(GRADED)], [text("a"), code(GRADED, **FOLDED)]]),
    "predictions_are_run_and_explained": (
        [*ASKED, code(QUIZ), text("a"), code("1"), code("2"), text("b"), text(WHY)],
        [ASKED, *([*ASKED, code(QUIZ), *cells] for cells in (
            [code("1"), text("why")], [text(WHY)], [code(QUIZ), text(WHY)],
            [text(WHY), code("1"), text(WHY)], [code("1"), text("## A heading"), text(WHY)],
            [code("1")] * 5 + [text(WHY)], [code("1"), code(QUIZ), code("2"), text(WHY)]))]),
    "choices_are_plain_text": (
        [code(QUIZ.replace('"b"', '"2<sup>3</sup>"').replace("What", "<i>What</i>"))],
        [[code(QUIZ.replace('"a"', '"2<sup>3</sup>"'))], [code(QUIZ.replace('"c"', '"$x$"'))]]),
    "evidence_is_a_click_away": (
        [text(CHECKED + "| it is | right | 0.9 ([`some-code`](#cell-id=some-code), `claim`) |"), code("1")],
        [[text(CHECKED + "| it is | right | 0.9 (`some-code`) |"), code("1")]]),
    "summary_and_references_are_whole": ([SIX, REFERENCES], [
        [text(SIX.source + "\n7. One more."), REFERENCES], [SIX],
        [SIX, text(REFERENCES.source.replace(", section 2", ""))],
        [SIX, text("## References\n\n- Elman (1990), section 2.")]]),
    "ends_with_what_comes_next": (
        [text("[a](../exercises/01_long_term_dependency.ipynb) [b](02_convolutional_sequences.ipynb)")],
        [[text("[a](../exercises/01_long_term_dependency.ipynb)")],
         [text("[b](02_convolutional_sequences.ipynb)")]]),
    "checks_point_to_headings": (
        [text(f"## {item.where}") for item in registry.items("01_long_term_dependency").values()],
        [[text("## Elsewhere")]]),
}


@pytest.mark.parametrize("later", ["K = 2", "for K in range(3): pass", "def helper(T): return T", "draw = 3",
                                   "import math as K", "K += 1", "del K"])
def test_a_widget_that_reads_what_a_later_cell_binds_anew_is_found(later):
    assert rebound(SLIDES, code(later, "later"))


@pytest.mark.parametrize("cells", [
    (SLIDES,), (BINDS, code("K = 2")), (code("K = 2"), SLIDES), (SLIDES, code("print(K)\ndef f(K): K = 2")),
    (SLIDES, code("def helper(T): return T", course=SHOWS))])
def test_a_widget_may_read_what_stays(cells):
    assert not rebound(*cells)


def rebound(*cells):
    notebook = nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    return list(lint_widgets.widgets_read_nothing_that_is_rebound(notebook, None))


def problems(name, cells):
    notebook = nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})
    return list(getattr(lint_rules, name)(notebook, ROOT / "notebooks" / "01_long_term_dependency.ipynb"))


@pytest.mark.parametrize("name", BITES)
def test_a_rule_lets_good_cells_pass_and_finds_bad_ones(name):
    good, bad = BITES[name]
    assert problems(name, good) == []
    assert [cells for cells in bad if not problems(name, cells)] == []


def test_every_rule_is_tried():
    rules = {rule.__name__ for rule in lint_rules.EVERY + lint_rules.EXECUTED + lint_rules.LESSON}
    in_test_authoring = {"is_stored_as_the_tool_stores", "outputs_come_from_their_code"}
    assert set(BITES) == rules - in_test_authoring


@pytest.mark.parametrize("rule, old, new", [
    ("answers_and_checks_match_the_items", '"points": 3', '"points": 2'),
    ("answers_and_checks_match_the_items", '"grade_id": "gru_step"', '"grade_id": "gru"'),
    ("marks_are_nbgraders", '"locked": true', '"locked": false'),
    ("every_item_has_its_five_cells", "●○○", "easy"),
    ("every_item_has_its_five_cells", '"hints": "gru_step"', '"hints": "gru"'),
    ("every_item_has_its_five_cells", '"try-it"', '"try"'),
    ("answers_can_be_taken_out", "### END SOLUTION", "### END"),
    ("answers_can_be_taken_out", '"check(rnn_step)"', '"check(rnn_step)\\nprint()"'),
    ("answers_can_be_taken_out", "def rnn_step(", "def step("),
    ("hints_come_in_steps", "<summary>Hint 2</summary>", "<summary>More</summary>"),
    ("points_and_minutes_add_up", "16 points", "17 points"),
    ("points_and_minutes_add_up", "25 minutes", "20 minutes"),
    ("earlier_answers_are_those_that_items_are_handed", "seed(0)", "earlier_answers('causal_mask')"),
])
def test_a_rule_for_solutions_bites(rule, old, new):
    path = SOLUTIONS[0]
    source = path.read_text(encoding="utf-8")
    assert old in source
    rule = getattr(lint_exercises, rule)
    assert list(rule(nbformat.reads(source.replace(old, new), 4), path))

"""Every stored notebook keeps the rules of lint_rules and lint_exercises, and every rule bites."""

import inspect
import re

import lint_budget
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
THIRD = [path for path in LESSONS if path.stem[:2] in lint_budget.THIRD]
SECOND = [path for path in LESSONS if path not in THIRD]


def cases(rules, paths):
    return [pytest.param(rule, path, id=f"{path.parent.name}-{path.stem[:2]}-{rule.__name__}")
            for path in paths for rule in rules]


@pytest.mark.parametrize("rule, path", [
    *cases(lint_rules.EVERY, LESSONS + SOLUTIONS + EXERCISES),
    *cases(lint_rules.EXECUTED, LESSONS + SOLUTIONS),
    *cases(lint_rules.LESSON, LESSONS),
    *cases(lint_rules.SECOND, SECOND),
    *cases(lint_budget.RULES, THIRD),
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
SAID = CHECKED.replace("Claims, checked", "Often said")
SHOWS = {"shows": "course_lib.runtime:static"}
PARTS = ["The problem", "From formula to code", "Look inside: the gradient", "From formula to code: gates",
         "Often said", "Summary", "Exercises", "References", "Go on"]
SURE = "<details><summary>How sure are we?</summary>\n\n"
ONE = "finding('a > b', {'a': x, 'b': y}, more_by=0.5)"


def table(*rows):
    """The stored output of a finding."""
    lines = "\n".join(["a > b", *(f"  {name}   {value}" for name, value in rows)])
    data = {"text/plain": lines, "text/html": '<table class="course-finding">'}
    return {"output_type": "display_data", "data": data}


TABLE = table(("a", "this run 0.97   five seeds: 0.92 to 0.98"),
              ("b", "this run 0.01   five seeds: 0.01 to 0.02"))
LONG = TITLE.replace(": 5 m", ": 80 m") + " word" * (3500 - len(TITLE.split()))

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
    "lesson_keeps_its_budget": (
        [text(LONG), *[code("x")] * 30, code('quiz("a")')],
        [[text(LONG + " word")] + [code("x")] * 30, [text(LONG), *[code("x")] * 31],
         [text(TITLE.replace(": 5 m", ": 10 m")), *[code('quiz("a")')] * 4],
         [text(TITLE.replace(": 5 m", ": 15 m")), *[code(ONE, output=TABLE)] * 9],
         [text(TITLE), code(f"for x in y: {ONE}", output=TABLE), text("word " * 900)]]),
    "parts_come_in_order": (
        [text(f"## {part}") for part in PARTS], [
            [text(f"## {part}") for part in parts] for parts in (
                PARTS[1:], PARTS[::-1], [*PARTS, "Look inside"], [*PARTS, "Claims, checked"])]),
    "findings_are_comparisons_with_tight_bounds": (
        [code(ONE, output=TABLE), code(ONE.replace(", more_by=0.5", ""), output=TABLE),
         code(ONE.replace("more_by=0.5", "times=30"), output=TABLE),
         code(ONE, output=table(("a", "value 3"), ("b", "value 1"))), code("assert x", **FOLDED)],
        [[code(ONE.replace("0.5", "0.4"), output=TABLE)], [code("claim('x', 1)")], [code("assert x")],
         [code(ONE.replace("more_by=0.5", "times=3"), output=TABLE)], [code(ONE)],
         [code(ONE.replace("'a > b'", "text"), output=TABLE)],
         [code(ONE.replace(", 'b': y", ""), output=TABLE)],
         [code(ONE.replace("more_by=0.5", "within=3"), output=TABLE)],
         [code(ONE, output=table(("a", "value 0.97"), ("b", "value 0.02")))]]),
    "boxes_are_short": (
        [text(SURE + "word " * 80 + "</details>"), code(ONE)],
        [[text(SURE + "word " * 81 + "</details>"), code(ONE)], [text(SURE + "</details>")],
         [text(SURE.replace("How sure are we?", "Are we sure?") + "</details>"), code(ONE)]]),
    "nothing_is_hedged": ([text("It learns lag 20."), code("x = 'not measured'")], [
        [text(f"Why, {hedge}.")] for hedge in (
            "we have not found out", "this was not measured", "in a separate trial", "not shown here",
            "we cannot tell", "we did not try it")] + [[code("finding('not shown here', {})")]]),
    "often_said_is_short": (
        [text(SAID + "| a | b | c |\n" * 4)],
        [[text(SAID + "| a | b | c |\n" * 5)], [text(CHECKED + "| a | b | c |\n")]]),
    "exercises_are_named_in_one_form": (
        [text("[Exercise 01.3](../exercises/01_long_term_dependency.ipynb) builds this.\n\nIt is short.")],
        [[text(line)] for line in (
            "Exercise 01.3 builds this.", "**Write it yourself first**: exercise 01, item 1.",
            "[Exercise 01, item 3](../exercises/01_long_term_dependency.ipynb) builds this.",
            "[Exercise 01.3](../exercises/01_long_term_dependency.ipynb) builds this. It is short.",
            "[Exercise 01.99](../exercises/01_long_term_dependency.ipynb) builds this.",
            "[Exercise 02.1](../exercises/01_long_term_dependency.ipynb) builds this.")]),
    "graded_code_is_imported": (
        [text("```python\ndef rnn_step(): pass\n```"), code("from course_lib.models.rnn import rnn_step")],
        [[code(GRADED)], [code(GRADED, **FOLDED)], [code("x", course=SHOWS)]]),
    "questions_are_followed_by_an_experiment": (
        [code('quiz("a")'), text("It is."), code("1")],
        [[code('quiz("a")'), text("## Next"), code("1")], [code('quiz("a")')],
         [code('quiz("a")'), code('quiz("b")'), code("1")]]),
    "one_symbol_has_one_meaning": (
        [text("$a \\odot \\sigma(g)$"), code("torch.sigmoid(g)")],
        [[text("$a \\odot \\sigma(b)$")], [code("a * torch.sigmoid(b)")], [text("$\\tanh(h W_c)$")],
         [text("![The layer](images/02_gated_layer.svg)\n\nthe candidate n_t")]]),
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
    rule = getattr(lint_rules, name, None) or getattr(lint_budget, name)
    return list(rule(notebook, ROOT / "notebooks" / "01_long_term_dependency.ipynb"))


@pytest.mark.parametrize("name", BITES)
def test_a_rule_lets_good_cells_pass_and_finds_bad_ones(name):
    good, bad = BITES[name]
    assert problems(name, good) == []
    assert [cells for cells in bad if not problems(name, cells)] == []


def test_every_rule_is_tried():
    rules = {rule.__name__ for rule in (lint_rules.EVERY + lint_rules.EXECUTED + lint_rules.LESSON
                                        + lint_rules.SECOND + lint_budget.RULES)}
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


# ---------------------------------------------------------------- the whole course

def test_the_right_answers_of_quizzes_stand_in_each_place_about_equally_often():
    problem = lint_budget.uneven([asked["right"] for asked in lint_budget.quizzes().values()])
    assert problem is None, problem


@pytest.mark.parametrize("places, even", [
    ([], True), ([2, 2], True), ([1, 2, 3] * 5, True), ([2] * 9 + [1, 3, 3], False), ([1, 3] * 6, False),
    ([1] * 4 + [2] * 5 + [3] * 6, True)])
def test_uneven_places_are_found(places, even):
    assert (lint_budget.uneven(places) is None) == even


@pytest.mark.parametrize("kind, bound, ranges, tight", [
    ("more_by", 0.5, [(0.97, 1.0), (0.0, 0.02)], True), ("more_by", 0.3, [(0.97, 1.0), (0.0, 0.02)], False),
    ("more_by", 0.1, [(0.3, 0.9), (0.0, 0.02)], True), ("times", 1e4, [(1.1e5, 2.3e7), (0.79, 3.7)], True),
    ("times", 2, [(8.0, 9.0), (0.5, 1.0)], False), ("times", 2, [(1.0, 1.0), (0.0, 0.0)], True),
    ("within", 0.1, [(0.9, 0.95), (0.91, 0.97)], True), ("within", 0.5, [(0.9, 0.95), (0.91, 0.97)], False)])
def test_a_bound_may_have_as_much_slack_as_the_seeds_differ_by_or_as_itself(kind, bound, ranges, tight):
    assert (lint_budget.loose(kind, bound, ranges) is None) == tight

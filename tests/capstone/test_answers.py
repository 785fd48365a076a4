"""`earlier_answers`: the learner's own where they pass, the library's where not, references in the grader."""

import sys
import types

import pytest
import torch
from torch import nn

from course_tools import exercise, judging
from course_tools.answers import earlier_answers
from course_tools.answers.collect import gather
from course_tools.grading import grade
from course_tools.items import registry

QUERIES, HEADS = "05_query_key_value", "09_multi_head_attention"
MASKS, BLOCKS = "08_self_attention_and_masks", "11_transformer_blocks"
TAKEN = ("MultiHeadAttention", "causal_mask")
REPEATED = "from course_tools.answers import earlier_answers\n{}, {} = earlier_answers('{}', '{}')\n".format(
    *TAKEN, *TAKEN)
OTHERS = "attention = split_heads = merge_heads = softmax = None    # names of mine\n"


def reference(name):
    return registry.find(name)[1].reference


@pytest.fixture
def hand_in(tmp_path):
    """hand_in(stem, item=source, ...): the solution of an exercise with these answers; returns its path."""
    def write(stem, **answers):
        notebook = exercise.read(exercise.ROOT / "solutions" / f"{stem}.ipynb")
        for cell in notebook.cells:
            name = exercise.grade_id(cell)
            cell.source = answers.get(name, "{}").replace("{}", cell.source)
        (tmp_path / f"{stem}.ipynb").write_text(exercise.text(notebook), encoding="utf-8")
        return tmp_path / f"{stem}.ipynb"
    return write


# ---------------------------------------------------------------- in the learner's kernel

def test_what_passes_is_the_learners_and_the_rest_the_librarys(tmp_path, hand_in, capsys):
    hand_in(QUERIES)
    hand_in(HEADS)
    hand_in(MASKS, causal_mask="def causal_mask(n):\n    return torch.ones(n, n).tril()\n")
    heads, mask = earlier_answers(*TAKEN, folder=tmp_path)
    assert heads is not reference("MultiHeadAttention") and heads(8, 2)(*3 * [torch.ones(1, 3, 8)])
    assert mask is reference("causal_mask")
    first, second = capsys.readouterr().out.splitlines()
    assert first == "✓ MultiHeadAttention: yours, from exercise 09"
    assert second.startswith("· causal_mask: the library's, because yours does not pass yet: ")
    assert second.endswith("(course check 08)")


def test_one_name_gives_one_function(tmp_path, capsys):
    assert earlier_answers("causal_mask", folder=tmp_path) is reference("causal_mask")
    assert capsys.readouterr().out == ("· causal_mask: the library's, because there is no "
                                       f"{MASKS}.ipynb beside this notebook\n")


def test_what_a_part_uses_is_told_if_it_is_not_the_learners(tmp_path, hand_in, capsys):
    hand_in(QUERIES)
    hand_in(HEADS, merge_heads="def merge_heads(X):\n    return X\n")
    heads = earlier_answers("MultiHeadAttention", folder=tmp_path)
    seen = heads.forward.__globals__
    assert seen["merge_heads"] is reference("merge_heads") and seen["split_heads"].__module__ == "exercise_09"
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("· merge_heads: the library's")
    assert first.endswith("; your MultiHeadAttention uses it")
    assert second.startswith("✓ MultiHeadAttention")


def test_a_block_runs_on_what_its_exercise_was_handed(tmp_path, hand_in, monkeypatch):
    hand_in(HEADS)
    hand_in(BLOCKS, EncoderBlock=REPEATED + "{}")
    monkeypatch.chdir(tmp_path)
    block = gather(["EncoderBlock"])["EncoderBlock"](8, 2, 16)
    assert type(block.attention).__module__ == "exercise_09" and type(block).__module__ == "exercise_11"


def test_answers_of_this_notebook_come_from_its_cells(tmp_path, capsys):
    names = {"torch": torch, "__name__": "__main__"}
    exec("def causal_mask(n):\n    return torch.ones(n, n, dtype=torch.bool).tril()\n"
         "def padding_mask(lengths, m):\n    raise NotImplementedError", names)
    mine, librarys = earlier_answers("causal_mask", "padding_mask", folder=tmp_path, here=names)
    assert mine is names["causal_mask"] and librarys is reference("padding_mask")
    first, second = capsys.readouterr().out.splitlines()
    assert first == "✓ causal_mask: yours, from exercise 08" and "not answered yet" in second


def test_taking_answers_prints_only_its_lines_and_draws_no_random_number(tmp_path, hand_in, capsys):
    hand_in(QUERIES)
    hand_in(HEADS, MultiHeadAttention="{}\nprint('tried:', torch.rand(1))\nMultiHeadAttention(8, 2)\n")
    torch.manual_seed(3)
    earlier_answers("MultiHeadAttention", folder=tmp_path)
    drawn = torch.rand(3)
    assert torch.equal(drawn, torch.rand(3, generator=torch.Generator().manual_seed(3)))
    assert capsys.readouterr().out.count("\n") == 1


def test_a_check_cell_rests_on_the_references(monkeypatch, capsys):
    """As the grader does: what the set-up cell took makes no difference to the verdict."""
    module = types.ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    solution = exercise.read(exercise.ROOT / "solutions" / f"{BLOCKS}.ipynb")
    sources, _ = exercise.answers(solution, ["FeedForward", "EncoderBlock"])
    odd = type("MultiHeadAttention", (), {"__module__": "exercise_09"})
    module.__dict__.update(torch=torch, nn=nn, MultiHeadAttention=odd, causal_mask=None, check=judging.check)
    exec("\n".join([*sources.values(), "check(EncoderBlock)"]), module.__dict__)
    assert capsys.readouterr().out.startswith("✓ EncoderBlock")
    assert module.MultiHeadAttention is odd and module.causal_mask is None
    exec("class MultiHeadAttention:\n    pass\nmine = MultiHeadAttention\n", module.__dict__)
    with pytest.raises(judging.CheckFailed):  # a class of this notebook is part of the answer
        exec("check(EncoderBlock)", module.__dict__)
    assert module.MultiHeadAttention is module.mine


# ---------------------------------------------------------------- in the grader

def graded(path):
    result = grade.grade_notebook(path, path.stem, grade.Settings(seed=1))
    return {item["name"]: item["status"] for item in result["items"]}, result["items"]


def test_the_grader_hands_over_the_references_whatever_else_was_handed_in(hand_in):
    """An answer may take them again, and may give their helpers' names to something else."""
    hand_in(HEADS, MultiHeadAttention="raise SystemExit")
    path = hand_in(BLOCKS, FeedForward=OTHERS + "{}", EncoderBlock=REPEATED + "{}")
    assert set(graded(path)[0].values()) == {"passed"}


def test_what_was_not_handed_over_is_not_there(hand_in):
    path = hand_in(BLOCKS, EncoderBlock="EncoderBlock = earlier_answers('EncoderBlock')",
                   FeedForward="take = earlier_answers\nFeedForward = take('FeedForward')",
                   DecoderBlock="from course_lib.models.transformer import DecoderBlock")
    found, items = graded(path)
    wrong = {"FeedForward": "error", "EncoderBlock": "free_call", "DecoderBlock": "free_call"}
    assert found == dict.fromkeys(found, "passed") | wrong
    assert "ModuleNotFoundError" in items[0]["message"]


def test_an_answer_is_tried_apart_with_what_it_uses_from_another_exercise(hand_in):
    """MultiHeadAttention calls `attention` of exercise 05, here after a cell that leaves traces."""
    path = hand_in(HEADS, split_heads="import json\n{}", MultiHeadAttention="{}\nMultiHeadAttention = None")
    found = graded(path)[0]
    assert found == dict.fromkeys(found, "passed") | {"MultiHeadAttention": "error"}

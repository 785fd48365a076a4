"""Answers that are taken from a library or hide what they do are found, wherever in a notebook that is
written; honest ones are left alone; and no cell makes the search long."""

import copy
import sys
import time

import nbformat
import pytest
import torch
from torch import nn

from course_tools import exercise
from course_tools.grading import grade
from course_tools.grading.kernels import make_kernel
from course_tools.items import registry
from course_tools.judging import honesty
from course_tools.judging.observe import observe

BLEU, SOFTMAX, LSTM, BLOCK = (
    registry.find(name)[1] for name in ("bleu", "softmax", "lstm_step", "EncoderBlock")
)
ANSWER = "def bleu(candidates, references, max_n=4):\n    return {}\n"
SCORE = ANSWER.format("corpus_bleu(candidates, references).score")
OWN_SCORE = ANSWER.format("score(candidates, references)")

# (other cells, the answer's cell): none of them does the work itself.
BORROWED = {
    "imported in another cell": (["from sacrebleu import corpus_bleu"], SCORE),
    "a helper in another cell": (
        ["def score(c, r):\n    import sacrebleu\n    return sacrebleu.corpus_bleu(c, r).score"],
        OWN_SCORE,
    ),
    "a helper of a helper": (
        ["def score(c, r):\n    return inner(c, r)", "import nltk\ninner = nltk.bleu"],
        OWN_SCORE,
    ),
    "a magic above": ([], "%time import sacrebleu\n" + SCORE.replace("corpus_bleu", "sacrebleu.corpus_bleu")),
    "a magic that voids the parser": ([], "%matplotlib inline\nimport sacrebleu\n" + SCORE),
    "a cell magic": ([], "%%time\nimport sacrebleu\n" + SCORE),
    "a shell line": ([], "!ls\nfrom sacrebleu import corpus_bleu\n" + SCORE),
    "a question": ([], "len?\nfrom sacrebleu import corpus_bleu\n" + SCORE),
    "a magic in another cell": (["%time from sacrebleu import corpus_bleu"], SCORE),
    "exec of the whole": ([], f"exec({'import sacrebleu' + chr(10) + SCORE!r})"),
    "exec in another cell": (["exec('from sacrebleu import corpus_bleu')"], SCORE),
    "exec of what is hidden": ([], "import base64\nexec(base64.b64decode(CODE))\n" + ANSWER.format("1.0")),
    "exec within": ([], ANSWER.format("exec('pass') or 1.0")),
    "eval within": ([], ANSWER.format("eval(source)(candidates)")),
    "exec under another name": (["run = exec"], ANSWER.format("run(source)")),
    "exec from builtins": ([], "from builtins import exec as run\n" + ANSWER.format("run(source)")),
    "compiled": ([], ANSWER.format("exec(compile(source, 'x', 'exec'))")),
    "a cell that is run": ([], ANSWER.format("get_ipython().run_cell(source)")),
    "imported by name": ([], ANSWER.format("__import__('sacrebleu').corpus_bleu(candidates, references)")),
    "imported by a name in pieces": ([], ANSWER.format("__import__('sacre' + 'bleu').corpus_bleu")),
    "imported by a computed name": ([], ANSWER.format("__import__(name[::-1]).corpus_bleu(candidates)")),
    "looked up among modules": (
        ["import sys"],
        ANSWER.format("sys.modules['sacrebleu'].corpus_bleu(candidates)"),
    ),
    "put into builtins": (["import builtins, sacrebleu\nbuiltins.score = sacrebleu.corpus_bleu"], OWN_SCORE),
    "put into globals": (["import sacrebleu\nglobals()['score'] = sacrebleu.corpus_bleu"], OWN_SCORE),
    "set as an attribute": (
        ["import sacrebleu, math\nsetattr(math, 'score', sacrebleu.corpus_bleu)"],
        "import math\n" + ANSWER.format("math.score(candidates, references)"),
    ),
    "bound anew in another cell": (["import sacrebleu\nbleu = sacrebleu.corpus_bleu"], ANSWER.format("1.0")),
    "its code exchanged": (
        ["import sacrebleu\nbleu.__code__ = sacrebleu.corpus_bleu.__code__"],
        ANSWER.format("1.0"),
    ),
    "a cell read as another": (
        ["get_ipython().input_transformers_post.append(change)\nscore = 1"],
        OWN_SCORE,
    ),
    "awaited at the top level": ([], "import asyncio, sacrebleu\nawait asyncio.sleep(0)\n" + SCORE),
    "bound by globals": ([], "import sacrebleu\nglobals().update(bleu=sacrebleu.corpus_bleu)"),
}
RETURNS = "def softmax(x, dim=-1):\n    return {}"
FREE = {
    "by its name": RETURNS.format("torch.softmax(x, dim)"),
    "torch under another name": "import torch as t\n" + RETURNS.format("t.softmax(x, dim)"),
    "functional under another name": "import torch.nn.functional as f\n" + RETURNS.format("f.softmax(x)"),
    "bound to another name": "f = torch.nn.functional\n" + RETURNS.format("f.softmax(x, dim)"),
    "all of functional": "from torch.nn.functional import *\n" + RETURNS.format("log_softmax(x, dim).exp()"),
    "by getattr": RETURNS.format("getattr(torch, 'soft' + 'max')(x, dim)"),
    "by an f-string": RETURNS.format("getattr(torch, f'{\"soft\"}max')(x, dim)"),
    "by a joined name": RETURNS.format("vars(torch)[''.join(['soft', 'max'])](x, dim)"),
    "by attrgetter": "from operator import attrgetter\n" + RETURNS.format("attrgetter('softmax')(torch)(x)"),
    "hidden from the check": "def softmax(x):\n    with torch._C.DisableTorchFunction():\n        return x",
}


@pytest.mark.parametrize("case", BORROWED)
def test_what_is_borrowed_is_found_wherever_it_is_written(case):
    others, answer = BORROWED[case]
    assert "earns nothing" in honesty.borrowed(answer, BLEU, [*others, answer])


@pytest.mark.parametrize("case", FREE)
def test_a_free_call_is_found_under_any_name(case):
    assert "earns nothing" in honesty.borrowed(FREE[case], SOFTMAX)
    helper = FREE[case].replace("def softmax", "def helper")
    assert "earns nothing" in honesty.borrowed(
        "def softmax(x, dim=-1):\n    return helper(x, dim)", SOFTMAX, [helper]
    )


STEPS = "def lstm_step(x, h, c, W, U, b):\n    return x\n"
# (other cells, the answer's cell): honest, though some of it looks alike.
HONEST = {
    "a comparison in another cell": (["x = torch.lstm_cell(1)\nprint(nn.LSTMCell(3, 4))"], STEPS),
    "another item's free call": (["def gru_step(x):\n    return torch.lstm_cell(x)"], STEPS),
    "a local name like a helper": (
        ["weights = torch.lstm_cell"],
        "def lstm_step(x):\n    weights = x\n    return weights",
    ),
    "a module's mode": ([], "model = nn.Linear(2, 2)\nmodel.eval()\n" + STEPS + "    model.eval()\n"),
    "a pattern": ([], "import re\npattern = re.compile('x')\n" + STEPS),
    "a compiled function": ([], STEPS + "fast = torch.compile(lstm_step)\n"),
    "a timing": ([], STEPS + "%timeit lstm_step(1, 2, 3, 4, 5, 6)\n"),
    "a timed comparison": ([], STEPS + "%timeit torch.lstm_cell(1)\n"),
    "a timed cell": ([], "%%time\n" + STEPS),
    "plots in the notebook": ([], "%matplotlib inline\n!pip install einops\n" + STEPS),
    "help": ([], "torch.lstm_cell?\n" + STEPS),
    "attributes by name": (
        [],
        "class Gates:\n    def __init__(self):\n        self.i = 1\ndef lstm_step(x):\n"
        "    return [getattr(Gates(), name) for name in ('i',)]",
    ),
    "exec in a cell that is not reached": (["exec('x = 1')\ny = eval('2 + 3')"], STEPS),
    "a function called eval": ([], "def eval(x):\n    return x\ndef lstm_step(x):\n    return eval(x)"),
    "a setting of torch": (["torch.backends.mkldnn.enabled = False\nimport sys"], STEPS),
    "another cell that does not parse": (["def gru_step(x:\n    nn.LSTMCell"], STEPS),
    "a file that is written": (
        ["%%writefile notes.txt\nimport sacrebleu, as I learned, is not allowed"],
        STEPS,
    ),
    "a line that is continued": (
        [],
        "def lstm_step(x,\n        y):\n    return (x\n        % y\n        / 2)",
    ),
}


@pytest.mark.parametrize("case", HONEST)
def test_honest_work_is_left_alone(case):
    others, answer = HONEST[case]
    assert honesty.borrowed(answer, LSTM, [*others, answer]) is None


def test_an_earlier_answer_is_judged_by_itself():
    """A block may use the learner's FeedForward, for which the grader puts the right one if it fails."""
    assert "FeedForward" in BLOCK.uses
    borrowed = "def FeedForward(*sizes):\n    return nn.TransformerEncoderLayer(*sizes)"
    block = "class EncoderBlock(nn.Module):\n    def __init__(self):\n        self.part = FeedForward(1)"
    assert honesty.borrowed(block, BLOCK, [borrowed]) is None
    assert "earns nothing" in honesty.borrowed(f"{borrowed}\n{block}", BLOCK)


def test_a_cell_that_only_another_reading_makes_python_is_not_readable():
    assert honesty.readable("%time x = 1\n!ls\ny = x") and honesty.readable("def f():\n    return 1")
    assert not honesty.readable("define f as 1") and not honesty.readable("!x\n" * 1000)


LONG = {
    "chained assignments": "bleu = " + " = ".join(f"a{n}" for n in range(6000)) + " = 1",
    "a chain of names": "a0 = 1\n" + "".join(f"a{n} = a{n - 1}\n" for n in range(1, 1500)) + "bleu = a1499",
    "a chain in one line": ";".join(f"a{n} = a{n - 1}" for n in range(1, 1500)) + ";bleu = a1499",
    "many statements": "a;" * 10_000 + "bleu = 1",
    "many commands": "!x\n" * 7000,
    "magics within magics": "%time " * 3000 + "bleu = 1",
    "many calls of exec": "exec('bleu = 1');" * 1200,
    "many texts added": "bleu = getattr(torch, " + " + ".join(["'a'"] * 5000) + ")",
    "many numbers added": "bleu = getattr(torch, "
    + " + ".join(["'a'"] * 2500 + ["x"] + ["'a'"] * 2500)
    + ")",
    "brackets": "bleu = " + "(" * 9000 + ")" * 9000,
    "functions within functions": "".join(" " * n + f"def f{n}():\n" for n in range(90))
    + " " * 90
    + "bleu = 1",
    "lambdas": "bleu = " + "lambda: " * 2500 + "1",
    "subscripts": "bleu" + "[0]" * 6000 + " = 1",
    "a text that is never ended": "x = '''" + "%time 'a\n" * 2000,
    "questions": "a?\n" * 6000,
}


@pytest.mark.slow
@pytest.mark.parametrize("case", LONG)
def test_no_cell_makes_the_search_long(case):
    source = LONG[case]
    assert len(source) < 50_000
    begin = time.process_time()
    honesty.borrowed(source, BLEU, [f"{source}\n", f"{source}\n\n"])
    honesty.readable(source)
    assert time.process_time() - begin < 8.0


def test_the_search_is_linear():
    def seconds(count):
        source = "bleu = a0\n" + "".join(f"a{n} = a{n + 1}\n" for n in range(count))
        begin = time.process_time()
        honesty.borrowed(source, BLEU)
        return time.process_time() - begin

    seconds(10)
    assert seconds(4000) < 12 * seconds(1000) + 0.5


# ---------------------------------------------------------------- the check cell: sources of what is running


def helper(x, dim):
    return torch.softmax(x, dim)


mixer = nn.Softmax(dim=-1)


def softmax_by_helper(x, dim=-1):
    return helper(x, dim)


def softmax_by_module(x, dim=-1):
    return mixer(x)


def softmax_by_hand(x, dim=-1):
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


@pytest.mark.parametrize(
    "answer, found", [(softmax_by_helper, True), (softmax_by_module, True), (softmax_by_hand, False)]
)
def test_a_check_cell_looks_into_what_an_answer_uses(answer, found):
    source, *others = honesty.sources(answer, globals())
    told = honesty.borrowed(source.replace(answer.__name__, "softmax"), SOFTMAX, others)
    assert bool(told) == found


def test_what_source_can_not_show_is_seen_as_it_runs():
    """torch's operators by another way than torch.softmax."""
    ways = [
        lambda x, dim=-1: torch.ops.aten.softmax(x, dim),
        lambda x, dim=-1: torch.ops.aten.softmax.int(x, dim),
    ]
    for answer in ways:
        calls = observe(answer, {"x": torch.ones(2, 3)}, gradients=False)["calls"]
        assert {name.split(".")[0] for name in calls} & set(SOFTMAX.free), calls


# ---------------------------------------------------------------- in the grader's kernel

STEM = "03_seq2seq"
SOLUTION = exercise.read(exercise.ROOT / "solutions" / f"{STEM}.ipynb")
HELPER = "\n{}import sacrebleu\ndef score(c, r):\n    return sacrebleu.corpus_bleu(c, r).score\n"
EVALUATES = "def greedy_decode(step, state, bos_id, eos_id, max_len):\n    return eval('[]')\n"


def handed_in(path, **answers):
    made = copy.deepcopy(SOLUTION)
    for cell in made.cells:
        cell.source = answers.get(exercise.grade_id(cell), cell.source)
    nbformat.write(made, path)
    return path


@pytest.mark.parametrize("magic", ["", "%time "])
def test_a_helper_in_another_cell_earns_nothing_and_costs_no_other_item(magic, tmp_path):
    right = next(cell.source for cell in SOLUTION.cells if exercise.grade_id(cell) == "pad_batch")
    path = handed_in(tmp_path / f"{STEM}.ipynb", greedy_decode=EVALUATES, bleu=OWN_SCORE,
                     pad_batch=right + HELPER.format(magic))
    result = grade.grade_notebook(path, STEM, grade.Settings(seed=3))
    points = {item["name"]: item["points"] for item in result["items"]}
    told = {item["name"]: item["message"] for item in result["items"]}
    assert {name for name in points if not points[name]} == {"pad_batch", "greedy_decode", "bleu"}
    assert "sacrebleu does the whole job" in told["bleu"]
    assert "eval runs code that is not written out" in told["greedy_decode"]


@pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux")
def test_no_kernel_finds_a_package_that_holds_answers():
    kernel = make_kernel()
    try:
        for import_ in ("import sacrebleu", "from nltk.translate import bleu_score"):
            assert kernel.run(import_, 20).error[0] == "ModuleNotFoundError"
        blocked = "import sys; del sys.modules['sacrebleu']; from sacrebleu import corpus_bleu"
        told = kernel.run(blocked, 20).error
        assert told if {"namespaces", "Landlock"} & {*kernel.sandbox.split(", ")} else True
    finally:
        kernel.stop()

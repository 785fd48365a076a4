"""What a check says in a notebook: one line that passes, or one that tells what is wrong and where."""

import functools
import math
import subprocess
import sys
import types

import pytest
import torch
import torch.nn.functional as F
from IPython.core.interactiveshell import InteractiveShell
from torch import nn

from course_lib.models import rnn
from course_lib.training import clip_gradient
from course_tools.items import registry
from course_tools.judging import CheckFailed, check
from course_tools.judging.judge import examine

RIGHT = "def rnn_step(x, h, W, U, b):\n    return torch.tanh(x @ W + h @ U + b)\n"


def judged(item, answer):
    return examine(registry.find(item)[1], answer)


# ---------------------------------------------------------------- messages for what has no name

@pytest.fixture
def calls():
    return []


def answers(calls):
    """Wrong in a way that no lesson can list; each with the words of its message."""
    step = rnn.rnn_step

    def kept(*given):
        calls.append(1)
        return step(*given) + 0.1 * (len(calls) > 9)    # two on each of 4 inputs, one in float64

    return {
        "cut": (lambda *given: step(*given).detach(),
                "no gradient flows to the inputs. Look for .item(), .detach()"),
        "cut by a new tensor": (lambda x, *rest: torch.tensor(step(x, *rest).tolist(), dtype=x.dtype),
                                "no gradient flows to the inputs"),
        "cut in part": (lambda x, h, *weights: step(x, h.detach(), *weights),
                        "the gradient with respect to h_prev is not. Is part of the computation detached?"),
        "in place": (lambda x, h, *weights: (step(x, h, *weights), h.add_(1))[0],
                     "The result is right, but h_prev was changed in place"),
        "kept between calls": (kept, "a second call with the same inputs gives a different result"),
        "float64": (lambda *given: step(*given).double(),
                    "h_t (B, d_h) has dtype torch.float64, but should have torch.float32"),
        "integers": (lambda *given: step(*given).long(),
                     "h_t (B, d_h) has dtype torch.int64, but should have torch.float32"),
        "nothing": (lambda *given: None, "You returned None. Is a return statement missing?"),
        "a list": (lambda *given: step(*given).tolist(), "h_t (B, d_h) is a list, but should be a tensor"),
        "numpy": (lambda *given: step(*given).numpy(),
                  "h_t (B, d_h) is a numpy array, but should be a tensor"),
        "a tuple": (lambda *given: (step(*given),), "h_t (B, d_h) is a tuple, but should be a tensor"),
        "a string": (lambda *given: "h_t", "h_t (B, d_h) is a str, but should be a tensor"),
        "another shape": (lambda *given: step(*given)[0], "has shape (5,), but should have shape (4, 5)"),
        "nan": (lambda *given: step(*given).sub(2).log(), "20 of the 20 values of h_t are nan or infinite"),
        "too large": (lambda *given: 1.5 + step(*given).abs(), "h_t must lie between -1 and 1"),
        "another value": (lambda *given: step(*given) * 0.9, "20 of 20 values differ"),
        "an error": (lambda x, *rest: x.reshape(7, 7), "raised RuntimeError: shape '[7, 7]' is invalid"),
        "exit": (lambda *given: sys.exit("enough"), "raised SystemExit: enough"),
        "wrong signature": (lambda x_t: x_t, "raised TypeError"),
    }


@pytest.mark.parametrize("case", answers([]))
def test_the_message_says_what_is_not_as_it_should_be(case, calls):
    answer, words = answers(calls)[case]
    verdict = judged("rnn_step", answer)
    assert words in verdict.message and verdict.mistake is None and not verdict.passed
    assert verdict.status == ("error" if "raised" in words else "wrong")


def test_the_message_names_the_inputs_and_the_learners_line():
    def answer(x_t, h_prev, W_xh, W_hh, b_h):
        return torch.tanh(x_t @ W_hh)    # the wrong matrix
    message = judged("rnn_step", answer).message
    assert "Line: return torch.tanh(x_t @ W_hh)" in message
    assert "Inputs: x_t (4, 7), h_prev (4, 5), W_xh (7, 5)" in message


def test_a_fault_that_shows_later_says_that_the_first_was_right():
    verdict = judged("rnn_step", lambda x, *rest: rnn.rnn_step(x, *rest) * (1.0 if len(x) == 4 else 0.5))
    assert "(the inputs before these gave the right result)" in verdict.message
    assert "W_hh (4, 4)" in verdict.message


def test_several_results_are_asked_for_by_name():
    lstm = registry.find("lstm_step")[1].reference
    verdict = judged("lstm_step", lambda *given: (*lstm(*given), 1))
    assert "2 results were expected: h_t (B, d_h), c_t (B, d_h)" in verdict.message
    assert judged("lstm_step", lambda *g: list(lstm(*g))).passed


def test_the_stub_is_no_answer_yet():
    def stub(*given):
        raise NotImplementedError("write your answer here")
    verdict = judged("rnn_step", stub)
    assert verdict.status == "missing" and "not answered yet" in verdict.message


# ---------------------------------------------------------------- calls that would be the whole answer

def cell(kind, x, W, U, b_W, b_U):
    layer = kind(W.size(0), U.size(0)).to(x.dtype)
    layer.weight_ih, layer.weight_hh = nn.Parameter(W.T.detach().clone()), nn.Parameter(U.T.detach().clone())
    layer.bias_ih, layer.bias_hh = nn.Parameter(b_W.detach().clone()), nn.Parameter(b_U.detach().clone())
    return layer


def whole(X, h_0, W, U, b):
    layer = nn.RNN(W.size(0), U.size(0), batch_first=True).to(X.dtype)
    vector = torch.cat([W.T.flatten(), U.T.flatten(), b, 0 * b])
    nn.utils.vector_to_parameters(vector, layer.parameters())
    return layer(X, h_0[None])[0]


FREE = [
    ("rnn_step", lambda x, h, W, U, b: cell(nn.RNNCell, x, W, U, b, 0 * b)(x, h)),
    ("rnn_step", lambda x, h, W, U, b: torch.rnn_tanh_cell(x, h, W.T, U.T, b)),
    ("rnn_forward", whole),
    ("lstm_step", lambda x, h, c, W, U, b: cell(nn.LSTMCell, x, W, U, b, 0 * b)(x, (h, c))),
    ("gru_step", lambda x, h, W, U, b_W, b_U: cell(nn.GRUCell, x, W, U, b_W, b_U)(x, h)),
]


@pytest.mark.parametrize("item, answer", FREE, ids=lambda value: value if isinstance(value, str) else "")
def test_a_call_that_is_the_whole_answer_is_reported(item, answer):
    verdict = judged(item, answer)
    assert verdict.status == "free_call" and "earns nothing here" in verdict.message, verdict


def test_a_call_in_plain_python_is_found_in_the_source():
    def clip_gradient(grads, max_norm):
        parameters = [nn.Parameter(torch.zeros_like(grad)) for grad in grads]
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.grad = grad.clone()
        nn.utils.clip_grad_norm_(parameters, max_norm)
        return [parameter.grad for parameter in parameters]
    with pytest.raises(CheckFailed, match="clip_grad_norm_ does the whole job, so it earns nothing"):
        check(clip_gradient)


@pytest.mark.parametrize("item, answer", [
    ("rnn_step", rnn.rnn_step), ("lstm_step", rnn.lstm_step), ("clip_gradient", clip_gradient)])
def test_the_references_call_nothing_of_the_kind(item, answer):
    assert judged(item, answer).passed


# ---------------------------------------------------------------- check(...)

@pytest.fixture
def notebook(monkeypatch):
    """Runs cells with one namespace, that of a module as answers find it in a kernel."""
    module = types.ModuleType("__main__")
    module.__dict__.update(torch=torch, F=F, nn=nn, check=check, functools=functools)
    monkeypatch.setitem(sys.modules, "__main__", module)

    def run(source):
        exec(source, module.__dict__)
        return module
    return run


def test_a_right_answer_prints_one_line_and_returns_nothing(notebook, capsys):
    notebook(RIGHT + "result = check(rnn_step)")
    out, err = capsys.readouterr()
    assert out == "✓ rnn_step: right on 4 inputs.\n" and err == ""
    assert sys.modules["__main__"].result is None


def test_a_wrong_answer_shows_its_message_and_nothing_else(notebook, capsys):
    with pytest.raises(CheckFailed) as failed:
        notebook("def rnn_step(x, h, W, U, b):\n    return x @ W + h @ U + b\ncheck(rnn_step)")
    shown = failed.value._render_traceback_()
    assert shown == ["✗ rnn_step: The tanh is missing: h_t is the bare sum, so nothing keeps it "
                     "between -1 and 1.", "    See lesson 01, 'From formula to code'."]
    assert capsys.readouterr() == ("", "")


def test_ipython_shows_the_message_without_a_traceback(capsys):
    shell = InteractiveShell()
    shell.run_cell("import torch\nfrom course_tools.judging import check\n"
                   "def rnn_step(x, h, W, U, b):\n    return torch.tanh(x @ W + h @ U)\n")
    capsys.readouterr()
    result = shell.run_cell("check(rnn_step)")
    out, err = capsys.readouterr()
    assert isinstance(result.error_in_exec, CheckFailed)
    assert "✗ rnn_step: The bias b_h is left out of the sum." in out
    assert "Traceback" not in out + err and "judge.py" not in out + err and len(out.strip().splitlines()) == 2


DECORATED = """
def decorate(f):
    {}
    def wrapper(*given):
        return f(*given)
    return wrapper
@decorate
""" + RIGHT
ANYTHING = {
    "lambda": "rnn_step = lambda x, h, W, U, b: torch.tanh(x @ W + h @ U + b)",
    "object": RIGHT + "class Step:\n    __call__ = staticmethod(rnn_step)\nrnn_step = Step()",
    "partial": "def any_name(f, x, h, W, U, b):\n    return f(x @ W + h @ U + b)\n"
               "rnn_step = functools.partial(any_name, torch.tanh)",
    "wrapped": DECORATED.format("@functools.wraps(f)"),
    "wrapped without its name": DECORATED.format(""),
}


@pytest.mark.parametrize("source", ANYTHING.values(), ids=ANYTHING)
def test_an_answer_may_be_anything_that_can_be_called(notebook, capsys, source):
    notebook(source + "\ncheck(rnn_step)")
    assert capsys.readouterr().out.startswith("✓ rnn_step")


def test_a_name_that_is_no_item_lists_those_that_are(notebook):
    with pytest.raises(ValueError, match="'helper' is not a graded item.*rnn_step"):
        notebook("def helper(x):\n    return x\ncheck(helper)")


FORWARD = """
def rnn_forward(X, h, *weights):
    states = []
    for t in range(X.size(1)):
        h = rnn_step(X[:, t], h, *weights)
        states.append(h)
    return torch.stack(states, 1)
"""
WRONG_STEP = "def rnn_step(x, h, W, U, b):\n    return x @ W\n"


def test_a_wrong_earlier_answer_does_not_cost_the_later_one(notebook, capsys):
    module = notebook(WRONG_STEP + FORWARD + "mine = rnn_step\ncheck(rnn_forward)")
    out = capsys.readouterr().out
    assert "✓ rnn_forward" in out
    assert "(This was checked with the correct rnn_step, because yours does not pass yet.)" in out
    assert module.rnn_step is module.mine, "the learner's own answer must be back in place"


def test_a_wrong_later_answer_says_what_it_was_tried_with(notebook):
    with pytest.raises(CheckFailed) as failed:
        notebook(WRONG_STEP + FORWARD.replace("return ", "return -") + "mine = rnn_step\ncheck(rnn_forward)")
    assert "checked with the correct rnn_step" in str(failed.value)
    assert sys.modules["__main__"].rnn_step is sys.modules["__main__"].mine


def test_a_reference_that_is_not_called_is_not_told(notebook, capsys):
    notebook(WRONG_STEP + """
def rnn_forward(X, h, W, U, b):
    states = []
    for t in range(X.size(1)):
        h = torch.tanh(X[:, t] @ W + h @ U + b)
        states.append(h)
    return torch.stack(states, 1)
check(rnn_forward)""")
    assert "✓ rnn_forward" in (out := capsys.readouterr().out) and "checked with" not in out


def test_what_a_lent_reference_calls_is_not_told(notebook, capsys):
    """style_embedding may call softmax and attention, and the right attention calls a softmax itself."""
    with pytest.raises(CheckFailed) as failed:
        notebook("""
def softmax(x, dim=-1):
    return x
def attention(Q, K, V, mask=None):
    return V
def style_embedding(reference, tokens, W_Q, W_K, W_V, h):
    return attention(reference @ W_Q, tokens @ W_K, tokens @ W_V)
check(style_embedding)""")
    assert "checked with the correct attention, because yours does not pass yet.)" in str(failed.value)


def test_nothing_that_torch_warns_of_reaches_the_learner(notebook, capfd, recwarn):
    with pytest.raises(CheckFailed, match="K.T reverses the order of ALL axes"):
        notebook("""
def attention(Q, K, V, mask=None):
    scores = Q @ K.T / Q.size(-1) ** 0.5
    weights = (scores if mask is None else scores.masked_fill(~mask, -torch.inf)).softmax(-1)
    return weights @ V, weights
check(attention)""")
    assert capfd.readouterr().err == "" and not recwarn.list


def test_a_float64_answer_that_fails_is_a_remark(notebook, capsys):
    notebook("""
def residual_gradient(jacobians):
    product = torch.eye(len(jacobians[0]))
    for J in jacobians:
        product = (torch.eye(len(J)) + J) @ product
    return product
check(residual_gradient)""")
    passed, remark = capsys.readouterr().out.splitlines()
    assert passed == "✓ residual_gradient: right on 5 inputs."
    assert remark.startswith("    Remark: This would fail with float64 inputs. Your code raised Runtime")
    assert remark.endswith("torch.zeros(n, dtype=x.dtype).")


def test_a_right_earlier_answer_is_used_as_it_is(notebook, capsys):
    counting = RIGHT.replace("    return", "    count.append(1)\n    return")
    notebook("count = []\n" + counting + FORWARD + "check(rnn_forward)")
    assert "checked with" not in capsys.readouterr().out
    assert len(sys.modules["__main__"].count) > 20


def test_no_answer_comes_along_with_check():
    code = ("import sys; from course_tools.judging import check; "
            "print([name for name in sys.modules if 'lesson_' in name or 'course_lib.models' in name])")
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"


# ---------------------------------------------------------------- keys

@pytest.mark.parametrize("key", ["1", "01", "01_long_term_dependency"])
def test_an_exercise_is_found_by_number_or_name(key):
    assert registry.resolve(key) == "01_long_term_dependency"


def test_an_unknown_exercise_lists_those_there_are():
    with pytest.raises(ValueError, match="no exercise '77'. Choose one of: 01_long_term_dependency"):
        registry.resolve("77")


@pytest.mark.parametrize("setting, reset", [
    (lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)),
    (lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None)),
    (lambda: torch.set_grad_enabled(False), lambda: torch.set_grad_enabled(True))],
    ids=["default dtype", "default device", "no gradients"])
def test_a_right_answer_passes_whatever_the_notebook_has_set(setting, reset):
    """As in grading, where only the answers of a notebook count, not its settings."""
    def attention(Q, K, V, mask=None):
        scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
        if mask is not None:
            scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -math.inf)    # of the default dtype
        weights = scores.softmax(dim=-1)
        return weights @ V, weights

    setting()
    try:
        settings = torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled()
        verdict = examine(registry.find("attention")[1], attention)
        assert verdict.passed, verdict.message
        assert settings == (torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled())
    finally:
        reset()

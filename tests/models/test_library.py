"""runtime, shapes and training: what every lesson leans on."""

import math
import random
import time

import numpy as np
import pytest
import torch

from course_lib import runtime
from course_lib.shapes import check_shapes
from course_lib.training import clip_gradient, fit
from course_tools import exercise


@pytest.fixture(autouse=True)
def no_course_seed(monkeypatch):
    monkeypatch.delenv("COURSE_SEED", raising=False)


# ---------------------------------------------------------------- runtime

def draws():
    return random.random(), np.random.rand(), torch.rand(()).item()


def test_a_seed_repeats_every_draw():
    first = (runtime.seed(3), draws())
    assert (runtime.seed(3), draws()) == first
    assert (runtime.seed(4), draws()) != (4, first[1])
    assert first[0] == 3 and torch.get_num_threads() == 1


def test_course_seed_is_added(monkeypatch):
    runtime.seed(5)
    wanted = draws()
    monkeypatch.setenv("COURSE_SEED", "2")
    assert runtime.seed(3) == 5
    assert draws() == wanted


@pytest.mark.parametrize("value, static", [("1", True), ("yes", True), ("0", False), ("", False),
                                           (None, False)])
def test_the_static_switch(monkeypatch, capsys, value, static):
    if value is None:
        monkeypatch.delenv("COURSE_STATIC", raising=False)
    else:
        monkeypatch.setenv("COURSE_STATIC", value)
    assert runtime.static() is static
    runtime.print_timing("12 ms")
    assert capsys.readouterr().out == ("" if static else "12 ms\n")


def test_seconds_takes_the_least_disturbed_run(monkeypatch):
    clock = iter([0.0, 3.0, 10.0, 11.0, 20.0, 22.0])
    monkeypatch.setattr(runtime.time, "perf_counter", lambda: next(clock))
    calls = []
    assert runtime.seconds(lambda: calls.append(1), repeats=3) == 1.0
    assert len(calls) == 3


def test_works_that_race_take_turns(monkeypatch):
    clock = iter([0, 3, 10, 18, 20, 21, 30, 39])
    monkeypatch.setattr(runtime.time, "perf_counter", lambda: next(clock))
    calls = []
    works = {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}
    assert runtime.race(works, repeats=2) == {"a": 1, "b": 8}
    assert calls == ["a", "b", "a", "b"]


def test_a_race_by_processor_time_leaves_out_the_time_that_a_work_waits():
    works = {"waits": lambda: time.sleep(0.2)}
    assert runtime.race(works, 1, clock=time.process_time)["waits"] < 0.1 < runtime.race(works, 1)["waits"]


def test_the_device_is_one_that_works():
    assert torch.ones(2, device=runtime.device()).sum().item() == 2


# ---------------------------------------------------------------- shapes

def test_shapes_that_agree_give_their_sizes():
    sizes = check_shapes("B n d_k, B m d_k", torch.zeros(2, 3, 4), torch.zeros(2, 5, 4))
    assert sizes == {"B": 2, "n": 3, "d_k": 4, "m": 5}
    assert check_shapes("... n 4", torch.zeros(7, 8, 3, 4)) == {"n": 3}


@pytest.mark.parametrize("spec, shapes, words", [
    ("B n, B m", [(2, 3), (5, 3)], ["axis B", "5 in tensor 2", "2 in tensor 1"]),
    ("B n, n B", [(2, 3), (3, 4)], ["axis B", "4 in tensor 2", "2 in tensor 1"]),
    ("n n", [(3, 4)], ["axis n", "4 in tensor 1", "but 3"]),
    ("B 3", [(2, 5)], ["axis 3", "is 5", "expected 3"]),
    ("B n d", [(2, 3)], ["2 axes", "expected 3", "(B, n, d)"]),
    ("... n d", [(4,)], ["1 axes", "expected 2", "(n, d)"]),
    ("B, B", [(2,)], ["2 tensors", "1 were given"]),
])
def test_a_shape_error_names_the_axis_and_both_numbers(spec, shapes, words):
    with pytest.raises(ValueError) as problem:
        check_shapes(spec, *map(torch.zeros, shapes))
    assert [word for word in words if word not in str(problem.value)] == [], str(problem.value)


# ---------------------------------------------------------------- training

def quadratic(steps=400, **options):
    x = torch.tensor([4.0, -3.0], requires_grad=True)
    losses = fit([x], lambda step: ((x - torch.tensor([1.0, 2.0])) ** 2).sum(), steps, lr=0.1, **options)
    return x.detach(), losses


def test_fit_reaches_the_minimum_of_a_quadratic():
    x, losses = quadratic()
    assert torch.allclose(x, torch.tensor([1.0, 2.0]), atol=1e-3)
    assert len(losses) == 400 and losses[0] == pytest.approx(34.0) and losses[-1] < 1e-5


def test_fit_takes_a_module_and_counts_steps_from_zero():
    model, steps = torch.nn.Linear(2, 1), []

    def loss(step):
        steps.append(step)
        return model(torch.ones(1, 2)).pow(2).sum()
    losses = fit(model, loss, 3)
    assert steps == [0, 1, 2] and losses[2] < losses[0]


def test_fit_leaves_alone_a_parameter_without_gradient():
    used, unused = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    fit([used, unused], lambda step: used.pow(2).sum(), 3, max_norm=1.0)
    assert unused.item() == 1.0 and used.item() != 1.0


def test_the_rate_scales_each_step():
    assert torch.equal(quadratic(steps=5, rate=lambda step: 0.0)[0], torch.tensor([4.0, -3.0]))
    early = quadratic(steps=5, rate=lambda step: float(step < 1))[0]
    assert torch.allclose(early, torch.tensor([3.9, -2.9]))  # Adam's first step is lr long


def test_fit_clips_what_the_optimizer_sees(monkeypatch):
    seen = []
    step = torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self: (
        seen.append([p.grad.clone() for p in self.param_groups[0]["params"]]), step(self))[1])
    quadratic(steps=2, max_norm=0.5)
    assert torch.cat(seen[0]).norm().item() == pytest.approx(0.5)
    quadratic(steps=1)
    assert torch.cat(seen[2]).norm().item() > 5


@pytest.mark.parametrize("max_norm", [None, 0.05])
def test_fit_is_the_training_loop_that_lesson_01_writes_out(max_norm):
    lesson = exercise.read(exercise.ROOT / "notebooks" / "01_long_term_dependency.ipynb")
    source = next(cell.source for cell in lesson.cells if cell.id == "full-training-loop")
    written = {"torch": torch, "clip_gradient": clip_gradient}
    exec(source, written)

    def run(trainer):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
        X = torch.randn(8, 3)
        losses = trainer(model, lambda step: (model(X + step) - X[:, :1]).pow(2).mean(), 10, lr=0.1,
                         max_norm=max_norm)
        return losses, [parameter.tolist() for parameter in model.parameters()]

    assert run(written["train"]) == run(fit)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_names_its_step(bad):
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="at step 3: lower lr"):
        fit([x], lambda step: x.sum() * (bad if step == 3 else 1.0), 10)


@pytest.mark.parametrize("static, silent", [("1", True), ("0", False)])
def test_training_is_silent_only_where_outputs_are_stored(monkeypatch, capfd, static, silent):
    monkeypatch.setenv("COURSE_STATIC", static)
    quadratic(steps=20, label="a quadratic")
    out, err = capfd.readouterr()
    assert (out + err == "") is silent
    assert ("a quadratic" in out + err) is not silent


@pytest.mark.parametrize("length", [0.3, 5.0, 100.0])
@pytest.mark.parametrize("max_norm", [0.5, 1.0, 7.0])
def test_clip_gradient_equals_torch(length, max_norm):
    torch.manual_seed(0)
    grads = [torch.randn(3, 2), torch.randn(4), torch.randn(())]
    norm = torch.cat([grad.flatten() for grad in grads]).norm()
    grads = [grad * length / norm for grad in grads]
    parameters = [torch.zeros_like(grad, requires_grad=True) for grad in grads]
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad.clone()
    torch.nn.utils.clip_grad_norm_(parameters, max_norm)
    before = [grad.clone() for grad in grads]
    clipped = clip_gradient(grads, max_norm)
    for got, parameter, grad, kept in zip(clipped, parameters, grads, before, strict=True):
        assert torch.allclose(got, parameter.grad, atol=1e-5)
        assert torch.equal(grad, kept) and got is not grad


def test_clip_gradient_of_nothing_but_zeros():
    assert torch.equal(clip_gradient([torch.zeros(3)], 1.0)[0], torch.zeros(3))

"""The probe for classes: builds an nn.Module, gives it numbers, calls it, and writes down what it became."""

import torch
from torch import nn

from course_lib.checks.observe import decode, observe


class Counting(nn.Module):
    """y = x W + b, and a buffer that counts training calls; in eval mode y + 100."""

    def __init__(self, d, start=0.0):
        super().__init__()
        self.part = nn.Linear(d, 1)
        self.register_buffer("seen", torch.tensor([start]))

    def forward(self, x, more=None):
        if self.training:
            self.seen = self.seen + 1
        y = self.part(x) if more is None else self.part(x) + more
        return y if self.training else y + 100


STATE = {"part.weight": torch.tensor([[2.0, 3.0]]), "part.bias": torch.tensor([1.0]),
         "seen": torch.tensor([5.0])}
X = torch.tensor([[1.0, 1.0]])


def inputs(**other):
    return {"arguments": [2], "state": STATE, "calls": [("train", [X]), ("eval", [X, torch.ones(1, 1)])],
            "reads": ["seen", "part.weight"], **other}


def output(answer, **other):
    seen = observe(answer, inputs(**other), "build")
    return seen, decode(seen["output"]) if seen["output"] else None


def test_calls_modes_names_and_what_takes_gradients():
    _, (trained, tested, count, weight, takes) = output(Counting)
    assert trained.item() == 6 and tested.item() == 107
    assert count.item() == 6 and torch.equal(weight, STATE["part.weight"]) and takes == ["part.weight"]


def test_without_a_state_the_class_keeps_its_own_numbers():
    _, (_, _, count, weight, _) = output(Counting, arguments=[2, 7.0], state={})
    assert count.item() == 8 and weight.shape == (1, 2) and not torch.equal(weight, STATE["part.weight"])


def test_gradients_flow_to_parameters_and_arguments_and_to_no_buffer():
    seen, _ = output(Counting)
    weight, bias, buffer, *calls = decode(seen["gradients"])
    assert weight.abs().min() > 0 and bias.abs().min() > 0 and buffer.eq(0).all()
    assert all(grad.abs().min() > 0 for grad in calls)


def test_a_graph_kept_in_a_buffer_is_seen():
    class Kept(Counting):
        def forward(self, x):
            self.seen = self.seen + x.mean()
            return self.part(x)

    _, (*_, takes) = output(Kept, calls=[("train", [X])])
    assert takes == ["seen", "part.weight"]


def test_no_gradients_asked_for_in_the_notebook_makes_no_difference():
    with torch.no_grad():
        _, (*_, takes) = output(Counting)
    assert takes == ["part.weight"]


def test_the_module_and_the_inputs_stay_as_they_are():
    before = {name: value.clone() for name, value in STATE.items()}
    for _ in range(2):
        output(Counting)
    assert all(torch.equal(before[name], STATE[name]) for name in before)


def test_an_argument_changed_in_place_is_written_down():
    class Changes(Counting):
        def forward(self, x):
            y = self.part(x)
            with torch.no_grad():
                x += 1
            return y

    seen, _ = output(Changes, calls=[("train", [X])])
    assert decode(seen["inputs"])["calls"][0][1][0].tolist() == [[2.0, 2.0]]


def test_what_is_no_such_module_is_told_in_words():
    class NoForward(nn.Module):
        def __init__(self, d):
            super().__init__()

    class Wider(Counting):
        def __init__(self, d):
            super().__init__(d + 1)

    problems = {"int is no nn.Module": lambda d: d, "NoForward has no method forward": NoForward,
                "named part.weight, part.bias, seen; there are: weight, bias": lambda d: nn.Linear(d, 1),
                "part.weight has shape (1, 3), expected (1, 2)": Wider}
    for words, answer in problems.items():
        seen, _ = output(answer)
        assert words in seen["error"]["message"]

"""The probe for classes: builds an nn.Module, gives it numbers, calls it, and writes down what it became."""

import torch
from torch import nn

from course_tools.judging.observe import decode, observe


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

    problems = {"int is not an nn.Module": lambda d: d, "NoForward has no method forward": NoForward,
                "named part.weight, part.bias, seen. The module has: weight, bias": lambda d: nn.Linear(d, 1),
                "part.weight has shape (1, 3), but should have (1, 2)": Wider}
    for words, answer in problems.items():
        seen, _ = output(answer)
        assert words in seen["error"]["message"]


# ---------------------------------------------------------------- one tensor under two names

class Tied(Counting):
    """The same weights under a second name, which comes before or after the first."""

    def __init__(self, d, after=True, bias=False):
        super().__init__(d)
        self.other = nn.Linear(d, 1, bias=bias)
        if after:
            self.other.weight = self.part.weight
        else:
            self.part.weight = self.other.weight

    def forward(self, x, more=None):
        return super().forward(x, more) + self.other(x)


def test_a_second_name_has_the_first_ones_value_and_its_gradients():
    for after in (True, False):
        seen, (trained, *_) = output(Tied, arguments=[2, after], whole=True, reads=[])
        assert trained.item() == 6 + 5
        weight, *_ = decode(seen["gradients"])
        single, *_ = decode(output(Counting, reads=[])[0]["gradients"])
        assert torch.allclose(weight, 2 * single)


def test_two_names_in_the_state_for_one_tensor_have_the_first_ones_value():
    state = {**STATE, "other.weight": torch.full((1, 2), 9.0)}
    _, (trained, *_) = output(Tied, state=state)
    assert trained.item() == 6 + 5


def test_where_the_state_is_whole_other_parameters_do_not_belong():
    assert output(Tied, arguments=[2, True, True])[0]["error"] is None
    error = output(Tied, arguments=[2, True, True], whole=True)[0]["error"]
    assert error["message"] == "the module has parameters that do not belong here: other.bias"


# ---------------------------------------------------------------- the probe for searches

def test_a_search_is_given_a_model_whose_state_tells_the_path():
    table = torch.arange(11 * 4 * 4).reshape(11, 4, 4).float()

    def walk(step, state, first, length):
        logits = []
        for token in range(first, first + length):
            row, state = step(token, state)
            logits.append(row[0].item() / 4)
        return [*logits, state]

    seen = observe(walk, {"table": table, "first": 1, "length": 3}, "search", gradients=False)
    # states 0, 7 * 0 + 1 + 1 = 2, 7 * 2 + 2 + 1 = 17 - 11 = 6, then 7 * 6 + 3 + 1 = 46 - 44 = 2
    assert decode(seen["output"]) == [0 * 4 + 1, 2 * 4 + 2, 6 * 4 + 3, 2]


def test_a_search_that_never_ends_is_stopped():
    def endless(step, state):
        while True:
            _, state = step(0, state)

    assert observe(endless, {"table": torch.zeros(3, 2, 2)}, "search", gradients=False)["output"] == "endless"

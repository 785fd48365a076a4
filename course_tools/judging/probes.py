"""What an answer is called with, where its inputs are no plain arguments: models, modules, loops, decoders.

Like observe.py, this runs beside the answer, in the learner's kernel: it knows no right result.
"""

import copy
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

Answer = Callable[..., Any]  # what a learner writes: a function, or a class
Inputs = dict[str, Any]  # of one call of an answer: {"argument": value}, in the order of the signature
Step = Callable[[int, int], tuple[Tensor, int]]  # a decoder's model: (token, state) to (logits, next state)


def call(answer: Answer, inputs: Inputs) -> Any:
    """The default probe: call the answer with the inputs in order."""
    return answer(*inputs.values())


ENDLESS = "endless"


class _Endless(Exception):
    """Stops a decoder that would never end."""


def decode_with(answer: Answer, inputs: Inputs) -> Any:
    """A decoder is given a model: step(token, state) looks its logits up in inputs["table"].

    table (steps, vocab, vocab): the logits (vocab,) at each step after each token.  The state is the number
    of the step; the other inputs follow it in order.  The result is "endless" where nothing ends the decoder.
    """
    table, *others = inputs.values()
    return _decoded(answer, others, 50 * len(table),
                    lambda token, state: (table[state % len(table), token].clone(), state + 1))


def search_with(answer: Answer, inputs: Inputs) -> Any:
    """Like `decode_with`, for a search that follows several hypotheses: the state encodes the whole path.

    table (states, vocab, vocab): the logits (vocab,) in each state after each token; state 0 is the first,
    and token leads from a state to 7 * state + token + 1, modulo their number.
    """
    table, *others = inputs.values()
    return _decoded(answer, others, 500,
                    lambda token, state: (table[state, token].clone(), (7 * state + token + 1) % len(table)))


def _decoded(answer: Answer, others: list[Any], limit: int, model: Step) -> Any:
    """What a decoder makes of model(token, state) from state 0 on; "endless" after `limit` calls of it."""
    calls = 0

    def step(token: int, state: int) -> tuple[Tensor, int]:
        nonlocal calls
        calls += 1
        if calls > limit:
            raise _Endless
        return model(int(token), state)

    try:
        return answer(step, 0, *others)
    except _Endless:
        return ENDLESS


@torch.enable_grad()
def build_with(answer: Answer, inputs: Inputs) -> list[Any]:
    """An nn.Module class is built, given its numbers, and called: once for each of inputs["calls"].

    inputs: "arguments", a list for the constructor; "state" {"name": tensor}, parameters and buffers by their
    names in state_dict() (others stay as the class made them); "calls", a list of (mode, arguments), the mode
    "train" or "eval"; "reads", names to look at afterwards.  The result is a list: what each call returned,
    then the value of each name read, then those of these names that take gradients.  Gradients flow to the
    parameters in "state" and to the arguments of the calls: these are part of a graph, as inside a network.
    With "whole" True, a parameter that is not in "state" is an error: it would start at random.  One tensor
    under two names has the value of the first that is in "state".
    """
    module = answer(*inputs["arguments"])
    values = _named_values(module, inputs["state"], inputs["reads"])
    learned = {name for name, _ in module.named_parameters(remove_duplicate=False)} & values.keys()
    unknown = sorted(name for name in values if name in learned and name not in inputs["state"])
    if inputs.get("whole") and unknown:
        raise AttributeError(f"the module has parameters that do not belong here: {', '.join(unknown)}")
    for name in learned & set(inputs["state"]):
        values[name] = _on_graph(inputs["state"][name])
    inputs["calls"] = _on_graph(inputs["calls"])
    outputs = []
    for mode, arguments in inputs["calls"]:
        module.train(mode == "train")
        outputs.append(torch.func.functional_call(module, values, tuple(arguments)))
    outputs += [values[name].clone() for name in inputs["reads"]]
    return [*outputs, [name for name in inputs["reads"] if values[name].requires_grad]]


def _named_values(module: object, state: dict[str, Tensor], reads: list[str]) -> dict[str, Tensor]:
    """The module's parameters and buffers by one name each, those in `state` replaced by copies of it."""
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{type(module).__name__} is not an nn.Module. Write class ...(nn.Module), and "
                        "call super().__init__() first in __init__")
    if type(module).forward is torch.nn.Module.forward:
        raise AttributeError(f"{type(module).__name__} has no method forward")
    values = dict(module.state_dict(keep_vars=True))
    missing = [name for name in dict.fromkeys([*state, *reads]) if name not in values]
    if missing:
        raise AttributeError(f"no parameter or buffer is named {_listed(missing)}. "
                             f"The module has: {_listed([*values])}{_hidden_in_lists(module)}")
    for name, value in state.items():
        if values[name].shape != value.shape:
            raise ValueError(f"{name} has shape {tuple(values[name].shape)}, but should have "
                             f"{tuple(value.shape)}")
    names: dict[int, str] = {}
    for name in dict.fromkeys([*state, *reads, *values]):
        names.setdefault(id(values[name]), name)
    return {name: state[name].detach().clone() if name in state else values[name] for name in names.values()}


def _listed(names: list[str], limit: int = 3) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "none") + more


def _hidden_in_lists(module: torch.nn.Module) -> str:
    """A hint, if the module keeps other modules in a plain list."""
    lists = [name for name, value in vars(module).items() if isinstance(value, (list, tuple))
             and any(isinstance(part, torch.nn.Module) for part in value)]
    return f" (self.{lists[0]} is a plain list, which hides its parts. Use nn.ModuleList)" if lists else ""


def _on_graph(value: Any) -> Any:
    """Nested values with every floating tensor as the result of an operation that takes gradients."""
    if isinstance(value, torch.Tensor):
        return value.requires_grad_().clone() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(map(_on_graph, value))
    return value


def call_with_functions(answer: Answer, inputs: Inputs) -> Any:
    """The usual call, with functions among the arguments, in lists as well, each rebuilt from its numbers.

    {"function": "layer", "W": (d, d), "b": (d,)} becomes x -> tanh(x) W + b, and {"function": "norm",
    "gamma": (d,), "beta": (d,)} a layer norm with that gain and shift; {"function": "mix", "A": (n, n),
    "W": (d, d')} becomes X -> tanh(A X W), which mixes the rows of X; {"function": "step", "W": (d, d_h),
    "U": (d_h, d_h)} becomes (x, h) -> tanh(x W + h U), where whole numbers x pick rows of W; {"function":
    "attention", "W": (d, d), "U": (d, d)} an attention (q, k, v, mask) -> (output, weights).  {"parts":
    {"name": function, ...}} becomes an object with these functions.
    """
    built = {name: _with_functions(value) for name, value in inputs.items()}
    lists = {name: list(value) for name, value in built.items() if isinstance(value, list)}
    output = answer(*built.values())
    for name, first in lists.items():                       # what the answer has done to the caller's list
        numbers = dict(zip(map(id, first), inputs[name], strict=True))
        inputs[name] = [numbers.get(id(part), part) for part in built[name]]
    return output


def _with_functions(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_functions(part) for part in value]
    if isinstance(value, dict) and "parts" in value:
        return SimpleNamespace(**{name: _with_functions(part) for name, part in value["parts"].items()})
    if not (isinstance(value, dict) and "function" in value):
        return value
    kind, first, second = value.values()
    if kind == "attention":
        return lambda q, k, v, mask=None: tuple(
            torch.nn.functional.scaled_dot_product_attention(q @ first, k, values, mask)
            for values in (v @ second, torch.eye(k.size(1)).to(k).expand(len(k), -1, -1)))
    if kind == "layer":
        return lambda x: torch.tanh(x) @ first + second
    if kind == "step":
        return lambda x, h: torch.tanh((x @ first if x.is_floating_point() else first[x]) + h @ second)
    if kind == "mix":
        return lambda X: torch.tanh(first @ X @ second)
    return lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:], first, second)


@torch.enable_grad()
def call_watched(answer: Answer, inputs: Inputs) -> list[Any]:
    """As `call_with_functions`, for an answer that differentiates by itself: the result is a list, what it
    returned and the names of those arguments that require gradients afterwards, as none did before."""
    output = call_with_functions(answer, inputs)
    return [output, [name for name, value in inputs.items()
                     if isinstance(value, torch.Tensor) and value.requires_grad]]


@torch.enable_grad()
def call_and_trace(answer: Answer, inputs: Inputs) -> list[Tensor]:
    """The result is a list: what the answer returned, and how much each of its positions depends on each
    position of the input X: (n, n), the norm of the gradient of output[:, i] to X[:, j]."""
    X = inputs["X"] = inputs["X"].requires_grad_()
    output = answer(*inputs.values())
    rows = []
    for i in range(X.size(1)):
        gradient = None
        if output.requires_grad:
            gradient, = torch.autograd.grad(output[:, i].sum(), X, retain_graph=True, allow_unused=True)
        rows.append(X.new_zeros(X.size(1)) if gradient is None else gradient.norm(dim=(0, 2)))
    inputs["X"] = X.detach()
    return [output.detach(), torch.stack(rows)]


class TableModel(torch.nn.Module):
    """logits = E[inputs] + the mean of S[source]: as small as a translator can be."""

    def __init__(self, E: Tensor, S: Tensor) -> None:
        super().__init__()
        self.E, self.S = torch.nn.Parameter(E.clone()), torch.nn.Parameter(S.clone())

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        return self.E[inputs] + self.S[source].mean(dim=1, keepdim=True)


@torch.enable_grad()
def call_and_train(answer: Answer, inputs: Inputs) -> list[Any]:
    """A training step is called once for each of inputs["batches"], (source, target) pairs, with a model of
    the tables E (vocab, vocab) and S (words, vocab) and SGD at inputs["rate"].  The result is a list: what
    the calls returned, then E and S as they are afterwards."""
    model = TableModel(inputs["E"], inputs["S"])
    optimizer = torch.optim.SGD(model.parameters(), lr=inputs["rate"])
    losses = [answer(model, optimizer, source, target, inputs["pad_id"])
              for source, target in inputs["batches"]]
    return [*losses, model.E.detach(), model.S.detach()]


def call_and_draw(answer: Answer, inputs: Inputs) -> list[list[Any]]:
    """An answer that draws from inputs["generator"], which is given as a seed, is called 25 times with one
    generator, then twice with a new generator of the same seed.  The result lists what each call returned,
    and the other arguments after the call.  inputs["table"] (contexts, vocab) becomes a model, step(ids),
    that looks up the logits (B, vocab) of the next token: the sum of a row of ids tells its context.
    """
    calls = []
    for times in (25, 2):
        generator = torch.Generator().manual_seed(inputs["generator"])
        for _ in range(times):
            passed = copy.deepcopy(inputs)
            output = answer(*{**passed, **_model_of(passed), "generator": generator}.values())
            calls.append([output, passed])
    return calls


class Block(torch.nn.Module):
    """x -> x + tanh(x W): what `stack_with` has stacked."""

    def __init__(self, W: Tensor) -> None:
        super().__init__()
        self.W = torch.nn.Parameter(W.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(x @ self.W)


@torch.enable_grad()
def stack_with(answer: Answer, inputs: Inputs) -> list[Any]:
    """An answer that stacks blocks is given make_block, whose k-th call gives a `Block` with
    inputs["weights"][k], and inputs["n"].  The result is a list: what the stack makes of inputs["x"], how
    often make_block was called, how many parameters the stack has, and what it makes of x after a step of
    gradient descent on them.
    """
    made: list[Block] = []
    weights, x = inputs["weights"], inputs["x"]

    def make_block() -> Block:
        made.append(Block(weights[len(made) % len(weights)]))
        return made[-1]

    module = answer(make_block, inputs["n"])
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"the result should be an nn.Module, but it is of type {type(module).__name__}")
    first = module(x.clone())
    calls, parameters = len(made), list(module.parameters())
    grads = torch.autograd.grad(first.pow(2).mean(), parameters, allow_unused=True) if parameters else ()
    with torch.no_grad():
        for parameter, grad in zip(parameters, grads, strict=True):
            parameter.sub_(0.5 * (0 if grad is None else grad))
        return [first, calls, len(parameters), module(x.clone())]


class _EveryOther(torch.nn.Module):
    """In training, doubles every other feature and drops those between: a dropout that is not random."""

    def forward(self, x: Tensor) -> Tensor:
        return x * (2 - 2 * (torch.arange(x.size(-1)) % 2)).to(x) if self.training else x


class SmallModel(torch.nn.Module):
    """y = (x W + b) g, which drops half of x in training."""

    def __init__(self, W: Tensor, b: Tensor, g: Tensor) -> None:
        super().__init__()
        self.W, self.b, self.g = (torch.nn.Parameter(value.clone()) for value in (W, b, g))
        self.dropout = _EveryOther()

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = (self.dropout(x) @ self.W + self.b) * self.g
        return y


class _Watched(torch.optim.SGD):
    """SGD that keeps the learning rates of its groups at every step."""

    def __init__(self, groups: list[dict[str, Any]], lr: float) -> None:
        super().__init__(groups, lr=lr)
        self.rates: list[list[float]] = []

    def step(self, closure: Any = None) -> Any:
        self.rates.append([round(float(group["lr"]), 6) for group in self.param_groups])
        return super().step(closure)


@torch.enable_grad()
def call_and_loop(answer: Answer, inputs: Inputs) -> list[Any]:
    """A training loop is called with a `SmallModel` of W, b and g in the mode inputs["mode"], with
    inputs["batches"], (x, y) pairs, as a list or a generator, with SGD in two groups, with rate(step) =
    inputs["peak"] / (2 + step), the squared error, and inputs["max_norm"].  The result is a list: what the
    loop returned, to five digits, which of these are tensors with a graph, the learning rates of both groups
    at each optimizer.step(), then W, b and g as they are afterwards.
    """
    model = SmallModel(inputs["W"], inputs["b"], inputs["g"]).train(inputs["mode"] == "train")
    optimizer = _Watched([{"params": [model.W, model.b]}, {"params": [model.g], "lr": inputs["lr"] / 2}],
                         lr=inputs["lr"])
    batches: Iterable[Any] = [tuple(batch) for batch in inputs["batches"]]
    if inputs["batches_in"] == "a generator":
        batches = (batch for batch in batches)

    def loss(model: SmallModel, batch: tuple[Tensor, Tensor]) -> Tensor:
        x, y = batch
        error: Tensor = model(x) - y
        return error.pow(2).mean()

    peak: float = inputs["peak"]

    def rate(step: int) -> float:
        return peak / (2 + step)

    losses, graphs = answer(model, batches, optimizer, rate, loss, inputs["max_norm"]), []
    if isinstance(losses, (list, tuple)):
        graphs = [isinstance(one, torch.Tensor) and one.requires_grad for one in losses]
        losses = [float(f"{one:.5g}") if type(one) is float else one for one in losses]
    return [losses, graphs, optimizer.rates, *(value.detach() for value in (model.W, model.b, model.g))]


class SmallTranslator(torch.nn.Module):
    """The logits of the next token after each of inputs (1, t), given source (1, m), with dropout."""

    def __init__(self, S: Tensor, E: Tensor, W: Tensor, most: int) -> None:
        super().__init__()
        self.S, self.E, self.W = (torch.nn.Parameter(value.clone()) for value in (S, E, W))
        self.dropout, self.calls, self.most = torch.nn.Dropout(0.5), 0, most

    def forward(self, source: Tensor, inputs: Tensor) -> Tensor:
        self.calls += 1
        if self.calls > self.most:
            raise _Endless
        back = torch.arange(inputs.size(1))[:, None] - torch.arange(inputs.size(1))
        nearby = torch.where(back >= 0, 0.5 ** back.clamp(min=0), 0.0) @ self.E[inputs]    # (1, t, d)
        order = 1 / (1 + torch.arange(source.size(1)))
        read = (order[:, None] * self.S[source]).sum(dim=1, keepdim=True)                 # (1, 1, d)
        state: Tensor = self.dropout(torch.tanh(nearby + read))
        return state @ self.W


def call_and_translate(answer: Answer, inputs: Inputs) -> Any:
    """A function that translates is given a `SmallTranslator` of S, E and W in the mode inputs["mode"].
    Dropout draws from inputs["seed"].  The result is "endless" where nothing ends a translation."""
    most = 4 * (1 + inputs["max_len"]) * len(inputs["sentences"])
    model = SmallTranslator(inputs["S"], inputs["E"], inputs["W"], most).train(inputs["mode"] == "train")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(inputs["seed"])
        try:
            return answer(model, *(inputs[name] for name in ("sentences", "bos_id", "eos_id", "max_len")))
        except _Endless:
            return ENDLESS


def _model_of(inputs: Inputs) -> dict[str, Callable[[Tensor], Tensor]]:
    """step(ids) of `call_and_draw`, under the name of its table."""
    table = inputs.get("table")
    return {} if table is None else {"table": lambda ids: table[ids.sum(dim=-1) % len(table)]}


# How an answer is put to use; a lesson whose answers are no plain functions of data adds its own.
PROBES: dict[str, Callable[[Answer, Inputs], Any]] = {
    "call": call, "decode": decode_with, "search": search_with, "build": build_with,
    "functions": call_with_functions, "watched": call_watched, "traced": call_and_trace,
    "trained": call_and_train, "draws": call_and_draw, "stack": stack_with, "loop": call_and_loop,
    "translated": call_and_translate}

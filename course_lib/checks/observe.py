"""Record what an answer does with given inputs, as plain numbers.

This half of a check runs beside the answer, in the learner's kernel.  It knows no right result and decides
nothing: it only calls the answer, and encodes the result as JSON (`encode`, `decode`).
"""

import base64
import functools
import traceback
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

LARGEST = 1_000_000  # elements of one tensor; more would only slow the comparison down


class Opaque:
    """Stands for a value that is not a plain number, list or tensor: only its description is known."""

    def __init__(self, description):
        self.description = description

    def __repr__(self):
        return f"a {self.description}"


def encode(value):
    """A value as plain data for JSON; anything but numbers, texts and containers becomes a description."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, torch.Tensor):
        return _encode_tensor(value)
    if isinstance(value, np.generic):
        return encode(value.item())
    if isinstance(value, np.ndarray):
        return {"object": "numpy array"}
    if type(value) in (list, tuple, set):
        kind = type(value).__name__
        return {kind: [encode(part) for part in (sorted(value) if kind == "set" else value)]}
    if type(value) is dict:
        return {"dict": [[encode(key), encode(part)] for key, part in value.items()]}
    return {"object": type(value).__name__}


def _encode_tensor(tensor):
    if tensor.numel() > LARGEST:
        return {"object": f"tensor of shape {tuple(tensor.shape)}, too large to compare"}
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return {"tensor": [str(tensor.dtype), list(tensor.shape), base64.b64encode(data).decode("ascii")]}


def decode(plain):
    """The value that `encode` wrote down; new tensors at every call.  Raises ValueError if malformed."""
    if not isinstance(plain, dict):
        return [decode(part) for part in plain] if isinstance(plain, list) else plain
    (kind, content), = plain.items()
    if kind == "tensor":
        dtype, shape, data = content
        data = bytearray(base64.b64decode(data))
        dtype = getattr(torch, dtype.removeprefix("torch."))
        return torch.frombuffer(data, dtype=dtype).reshape(shape) if data else torch.empty(shape, dtype=dtype)
    if kind == "object":
        return Opaque(content)
    if kind == "dict":
        return {decode(key): decode(part) for key, part in content}
    if kind in ("list", "tuple", "set"):
        return {"list": list, "tuple": tuple, "set": set}[kind](decode(part) for part in content)
    raise ValueError(f"not written by encode: {kind}")


def tensors(value):
    """Every tensor in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for part in parts for tensor in tensors(part)]


def in_float64(trial):
    """Whether inputs hold a tensor of float64."""
    return any(tensor.dtype == torch.float64 for tensor in tensors(trial))


def call(answer, inputs):
    """The default probe: call the answer with the inputs in order."""
    return answer(*inputs.values())


ENDLESS = "endless"


class _Endless(Exception):
    """Stops a decoder that would never end."""


def decode_with(answer, inputs):
    """A decoder is given a model: step(token, state) looks its logits up in inputs["table"].

    table (steps, vocab, vocab): the logits (vocab,) at each step after each token.  The state is the number
    of the step; the other inputs follow it in order.  The result is "endless" where nothing ends the decoder.
    """
    table, *others = inputs.values()
    return _decoded(answer, others, 50 * len(table),
                    lambda token, state: (table[state % len(table), token].clone(), state + 1))


def search_with(answer, inputs):
    """Like `decode_with`, for a search that follows several hypotheses: the state encodes the whole path.

    table (states, vocab, vocab): the logits (vocab,) in each state after each token; state 0 is the first,
    and token leads from a state to 7 * state + token + 1, modulo their number.
    """
    table, *others = inputs.values()
    return _decoded(answer, others, 500,
                    lambda token, state: (table[state, token].clone(), (7 * state + token + 1) % len(table)))


def _decoded(answer, others, limit, model):
    """What a decoder makes of model(token, state) from state 0 on; "endless" after `limit` calls of it."""
    calls = 0

    def step(token, state):
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
def build_with(answer, inputs):
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
    unknown = [name for name in values if name in learned and name not in inputs["state"]]
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


def _named_values(module, state, reads):
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
    names = {}
    for name in dict.fromkeys([*state, *reads, *values]):
        names.setdefault(id(values[name]), name)
    return {name: state[name].detach().clone() if name in state else values[name] for name in names.values()}


def _listed(names, limit=3):
    """The first names, and how many more there are."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return (", ".join(names[:limit]) or "none") + more


def _hidden_in_lists(module):
    """A hint, if the module keeps other modules in a plain list."""
    lists = [name for name, value in vars(module).items() if isinstance(value, (list, tuple))
             and any(isinstance(part, torch.nn.Module) for part in value)]
    return f" (self.{lists[0]} is a plain list, which hides its parts. Use nn.ModuleList)" if lists else ""


def _on_graph(value):
    """Nested values with every floating tensor as the result of an operation that takes gradients."""
    if isinstance(value, torch.Tensor):
        return value.requires_grad_().clone() if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(map(_on_graph, value))
    return value


def call_with_functions(answer, inputs):
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


def _with_functions(value):
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
def call_watched(answer, inputs):
    """As `call_with_functions`, for an answer that differentiates by itself: the result is a list, what it
    returned and the names of those arguments that require gradients afterwards, as none did before."""
    output = call_with_functions(answer, inputs)
    return [output, [name for name, value in inputs.items()
                     if isinstance(value, torch.Tensor) and value.requires_grad]]


@torch.enable_grad()
def call_and_trace(answer, inputs):
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


class _TableModel(torch.nn.Module):
    """logits = E[inputs] + the mean of S[source]: as small as a translator can be."""

    def __init__(self, E, S):
        super().__init__()
        self.E, self.S = torch.nn.Parameter(E.clone()), torch.nn.Parameter(S.clone())

    def forward(self, source, inputs):
        return self.E[inputs] + self.S[source].mean(dim=1, keepdim=True)


@torch.enable_grad()
def call_and_train(answer, inputs):
    """A training step is called once for each of inputs["batches"], (source, target) pairs, with a model of
    the tables E (vocab, vocab) and S (words, vocab) and SGD at inputs["rate"].  The result is a list: what
    the calls returned, then E and S as they are afterwards."""
    model = _TableModel(inputs["E"], inputs["S"])
    optimizer = torch.optim.SGD(model.parameters(), lr=inputs["rate"])
    losses = [answer(model, optimizer, source, target, inputs["pad_id"])
              for source, target in inputs["batches"]]
    return [*losses, model.E.detach(), model.S.detach()]


def call_and_draw(answer, inputs):
    """An answer that draws from inputs["generator"], which is given as a seed, is called 25 times with one
    generator, then twice with a new generator of the same seed.  The result lists what each call returned,
    and the other arguments after the call.  inputs["table"] (contexts, vocab) becomes a model, step(ids),
    that looks up the logits (B, vocab) of the next token: the sum of a row of ids tells its context.
    """
    found = []
    for times in (25, 2):
        generator = torch.Generator().manual_seed(inputs["generator"])
        for _ in range(times):
            given = decode(encode(inputs))
            output = answer(*{**given, **_model_of(given), "generator": generator}.values())
            found.append([output, given])
    return found


class Block(torch.nn.Module):
    """x -> x + tanh(x W): what `stack_with` has stacked."""

    def __init__(self, W):
        super().__init__()
        self.W = torch.nn.Parameter(W.detach().clone())

    def forward(self, x):
        return x + torch.tanh(x @ self.W)


@torch.enable_grad()
def stack_with(answer, inputs):
    """An answer that stacks blocks is given make_block, whose k-th call gives a `Block` with
    inputs["weights"][k], and inputs["n"].  The result is a list: what the stack makes of inputs["x"], how
    often make_block was called, how many parameters the stack has, and what it makes of x after a step of
    gradient descent on them.
    """
    made, weights, x = [], inputs["weights"], inputs["x"]

    def make_block():
        made.append(Block(weights[len(made) % len(weights)]))
        return made[-1]

    module = answer(make_block, inputs["n"])
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{type(module).__name__} is no nn.Module")
    first = module(x.clone())
    calls, parameters = len(made), list(module.parameters())
    found = torch.autograd.grad(first.pow(2).mean(), parameters, allow_unused=True) if parameters else []
    with torch.no_grad():
        for parameter, grad in zip(parameters, found, strict=True):
            parameter.sub_(0.5 * (0 if grad is None else grad))
        return [first, calls, len(parameters), module(x.clone())]


def _model_of(given):
    """step(ids) of `call_and_draw`, under the name of its table."""
    table = given.get("table")
    return {} if table is None else {"table": lambda ids: table[ids.sum(dim=-1) % len(table)]}


# How an answer is put to use; a lesson whose answers are no plain functions of data adds its own.
PROBES = {"call": call, "decode": decode_with, "search": search_with, "build": build_with,
          "functions": call_with_functions, "watched": call_watched, "traced": call_and_trace,
          "trained": call_and_train, "draws": call_and_draw, "stack": stack_with}


# A reference that stands in for an earlier answer: how its calls are named in an observation, which of them
# were called, and whether one is running.
SUBSTITUTED = "substituted: "
_substituted = {"called": set(), "running": False}


def substitute(name, reference):
    """The reference in place of an earlier answer called `name`; it records when it is called.

    Calls that it makes itself are not recorded.  A class records that it is instantiated.
    """
    def noted(function):
        @functools.wraps(function)
        def call(*args, **more):
            if _substituted["running"]:
                return function(*args, **more)
            _substituted["called"].add(SUBSTITUTED + name)
            _substituted["running"] = True
            try:
                return function(*args, **more)
            finally:
                _substituted["running"] = False
        return call
    if not isinstance(reference, type):
        return noted(reference)
    return type(reference.__name__, (reference,), {"__init__": noted(reference.__init__)})


def substituted_calls(observations):
    """The names of the substituted references that an answer called."""
    calls = {name for seen in observations for name in seen["calls"]}
    return {name.removeprefix(SUBSTITUTED) for name in calls if name.startswith(SUBSTITUTED)}


class _Calls(TorchFunctionMode):
    """Records the name of every torch function that runs."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.add(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


def observe(answer, inputs, probe="call", gradients=True):
    """Call `answer` on copies of `inputs` and record what happened, as plain data.

    inputs: {"name": value} in the order of the signature.  Returns {"output", "inputs" (as they are
    after the call), "gradients" (of a fixed weighted sum of the outputs; None where none flows),
    "calls" (torch functions that ran, and substituted references), "error" (None, or type, message, line)}.
    Gradients are computed in float32 only.  Warnings of torch are not shown.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _observed(answer, inputs, probe, gradients and not in_float64(inputs))


def _observed(answer, inputs, probe, gradients):
    seen = {"output": None, "inputs": None, "gradients": None, "calls": [], "error": None}
    given = decode(encode(inputs))
    _substituted.update(called=set(), running=False)
    try:
        with _Calls() as calls:
            output = PROBES[probe](answer, given)
        seen.update(output=encode(output), inputs=encode(given),
                    calls=sorted(calls.names | _substituted["called"]))
    except (Exception, SystemExit) as problem:
        seen.update(error=explain(problem), calls=sorted(_substituted["called"]))
    if gradients and not seen["error"]:
        try:
            seen["gradients"] = _gradients(answer, inputs, probe)
        except (Exception, SystemExit) as problem:
            seen["gradients"] = {"object": f"{type(problem).__name__}: {problem}"[:500]}
    return seen


@torch.enable_grad()  # a notebook may have switched them off for all that follows
def _gradients(answer, inputs, probe):
    given = decode(encode(inputs))
    leaves = [tensor.requires_grad_() for tensor in tensors(given) if tensor.is_floating_point()]
    total = 0.0
    for tensor in tensors(PROBES[probe](answer, given)):
        if tensor.is_floating_point() and tensor.requires_grad:
            generator = torch.Generator().manual_seed(0)
            weights = torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.dtype)
            total = total + (tensor * weights).sum()
    if not isinstance(total, torch.Tensor):
        return None
    return encode([torch.zeros_like(leaf) if grad is None else grad for leaf, grad in
                   zip(leaves, torch.autograd.grad(total, leaves, allow_unused=True), strict=True)])


def explain(problem):
    """An exception as plain data: its type, its message, and the learner's line that raised it."""
    line, course = "", str(Path(__file__).parents[1])
    for frame in traceback.extract_tb(problem.__traceback__):
        if "site-packages" not in frame.filename and not frame.filename.startswith(course):
            line = frame.line or line
    return {"type": type(problem).__name__, "message": str(problem)[:500], "line": (line or "")[:200]}

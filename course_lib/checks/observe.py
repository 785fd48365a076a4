"""What an answer does with given inputs, written down as plain numbers.

This half of a check runs beside the answer, in the learner's kernel.  It knows no right result and
decides nothing: it only calls, and encodes what came back as JSON (`encode`, `decode`).
"""

import base64
import functools
import traceback
import warnings
from pathlib import Path

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

LARGEST = 1_000_000  # elements of one tensor; more would only slow the comparison down


class Opaque:
    """Stands for a value that is no plain number, list or tensor: only its description is known."""

    def __init__(self, description):
        self.description = description

    def __repr__(self):
        return f"a {self.description}"


def encode(value):
    """A value as JSON-ready plain data; whatever is no number or container becomes a description."""
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
    """The usual probe: call the answer with the inputs in order."""
    return answer(*inputs.values())


ENDLESS = "endless"


class _Endless(Exception):
    """A decoder that goes on for ever is stopped with this."""


def decode_with(answer, inputs):
    """A decoder is given a model: step(token, state) looks its logits up in inputs["table"].

    table (steps, vocab, vocab): the logits (vocab,) at each step after each token.  The state is the number
    of the step; the other inputs follow it in order.  The result is "endless" where nothing ends the decoder.
    """
    table, *others = inputs.values()
    return _decoded(answer, others, 50 * len(table),
                    lambda token, state: (table[state % len(table), token].clone(), state + 1))


def search_with(answer, inputs):
    """As `decode_with`, for a search that follows several beginnings: the state tells the whole path.

    table (states, vocab, vocab): the logits (vocab,) in each state after each token; state 0 is the first,
    and token leads from a state to 7 * state + token + 1, modulo their number.
    """
    table, *others = inputs.values()
    return _decoded(answer, others, 500,
                    lambda token, state: (table[state, token].clone(), (7 * state + token + 1) % len(table)))


def _decoded(answer, others, most, model):
    """What a decoder makes of model(token, state) from state 0 on; "endless" after `most` calls of it."""
    calls = 0

    def step(token, state):
        nonlocal calls
        calls += 1
        if calls > most:
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
        raise AttributeError(f"there are parameters that do not belong here: {', '.join(unknown)}")
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
        raise TypeError(f"{type(module).__name__} is no nn.Module: write class ...(nn.Module), and "
                        "super().__init__() first in __init__")
    if type(module).forward is torch.nn.Module.forward:
        raise AttributeError(f"{type(module).__name__} has no method forward")
    values = dict(module.state_dict(keep_vars=True))
    missing = [name for name in dict.fromkeys([*state, *reads]) if name not in values]
    if missing:
        raise AttributeError(f"no parameter or buffer is named {_some(missing)}; "
                             f"there are: {_some([*values])}{_hidden_in_lists(module)}")
    for name, value in state.items():
        if values[name].shape != value.shape:
            raise ValueError(f"{name} has shape {tuple(values[name].shape)}, expected {tuple(value.shape)}")
    names = {}
    for name in dict.fromkeys([*state, *reads, *values]):
        names.setdefault(id(values[name]), name)
    return {name: state[name].detach().clone() if name in state else values[name] for name in names.values()}


def _some(names, most=3):
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(names[:most]) or "none") + more


def _hidden_in_lists(module):
    """A hint, if the module keeps other modules in a plain list."""
    lists = [name for name, value in vars(module).items() if isinstance(value, (list, tuple))
             and any(isinstance(part, torch.nn.Module) for part in value)]
    return f" (self.{lists[0]} is a plain list, which hides its parts: nn.ModuleList)" if lists else ""


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
    "W": (d, d')} becomes X -> tanh(A X W), which mixes the rows of X.
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
    if not (isinstance(value, dict) and "function" in value):
        return value
    kind, first, second = value.values()
    if kind == "layer":
        return lambda x: torch.tanh(x) @ first + second
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


def call_and_draw(answer, inputs):
    """An answer that draws from inputs["generator"], the number of its seed, is called 25 times with one
    generator, then twice with that generator anew.  The result lists what each call returned, and its other
    arguments as it left them.
    """
    found = []
    for times in (25, 2):
        generator = torch.Generator().manual_seed(inputs["generator"])
        for _ in range(times):
            given = decode(encode(inputs))
            output = answer(*{**given, "generator": generator}.values())
            found.append([output, given])
    return found


# How an answer is put to use; a lesson whose answers are no plain functions of data adds its own.
PROBES = {"call": call, "decode": decode_with, "search": search_with, "build": build_with,
          "functions": call_with_functions, "watched": call_watched, "draws": call_and_draw}


LENT = "lent: "  # stands before the name of a lent reference among the calls of an observation
_lent = {"called": set(), "running": False}  # which lent references were called, and whether one of them runs


def lend(name, reference):
    """The reference in place of an earlier answer called `name`, which notes that it is called.

    What it calls itself is not noted.  A class notes that a module is made of it.
    """
    def noted(function):
        @functools.wraps(function)
        def call(*args, **more):
            if _lent["running"]:
                return function(*args, **more)
            _lent["called"].add(LENT + name)
            _lent["running"] = True
            try:
                return function(*args, **more)
            finally:
                _lent["running"] = False
        return call
    if not isinstance(reference, type):
        return noted(reference)
    return type(reference.__name__, (reference,), {"__init__": noted(reference.__init__)})


def lent_calls(observations):
    """The names of the lent references that an answer called."""
    calls = {name for seen in observations for name in seen["calls"]}
    return {name.removeprefix(LENT) for name in calls if name.startswith(LENT)}


class _Calls(TorchFunctionMode):
    """Notes the name of every torch function that runs."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        self.names.add(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


def observe(answer, inputs, probe="call", gradients=True):
    """Call `answer` on copies of `inputs` and write down what happened, as plain data.

    inputs: {"name": value} in the order of the signature.  Returns {"output", "inputs" (as they are
    after the call), "gradients" (of a fixed weighted sum of the outputs; None where none flows),
    "calls" (torch functions that ran, and lent references), "error" (None, or type, message, line)}.
    Gradients are asked for in float32 only.  What torch warns of is not shown.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _observed(answer, inputs, probe, gradients and not in_float64(inputs))


def _observed(answer, inputs, probe, gradients):
    seen = {"output": None, "inputs": None, "gradients": None, "calls": [], "error": None}
    given = decode(encode(inputs))
    _lent.update(called=set(), running=False)
    try:
        with _Calls() as calls:
            output = PROBES[probe](answer, given)
        seen.update(output=encode(output), inputs=encode(given), calls=sorted(calls.names | _lent["called"]))
    except (Exception, SystemExit) as problem:
        seen.update(error=explain(problem), calls=sorted(_lent["called"]))
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

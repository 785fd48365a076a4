"""Record what an answer does with given inputs, as plain numbers.

This half of a check runs beside the answer, in the learner's kernel.  It knows no right result and decides
nothing: it only calls the answer, as probes.py says, and encodes the result as JSON (`encode`, `decode`).
"""

import base64
import functools
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypedDict

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from .probes import PROBES, Answer, Inputs

LARGEST = 1_000_000  # elements of one tensor; more would only slow the comparison down
# Plain data: a scalar, or {kind: content}, the kind "tensor", "list", "tuple", "set", "dict" or "object".
Encoded = bool | int | float | str | dict[str, Any] | None


class Raised(TypedDict):
    """An exception: its type, its message, and the learner's line that raised it."""

    type: str
    message: str
    line: str


class Observation(TypedDict):
    """What an answer did in one trial, as it is sent between processes.

    inputs: as they are after the call.  gradients: of a fixed weighted sum of the outputs, to each input;
    None where none flows.  calls: torch functions that ran, and substituted references.
    """

    output: Encoded
    inputs: Encoded
    gradients: Encoded
    calls: list[str]
    error: Raised | None


class Observe(Protocol):
    """`observe`, or a function that does the same."""

    def __call__(self, answer: Answer, inputs: Inputs, /, probe: str = "call",
                 gradients: bool = True) -> Observation: ...



class Opaque:
    """Stands for a value that is not a plain number, list or tensor: only its description is known."""

    def __init__(self, description: str) -> None:
        self.description = description

    def __repr__(self) -> str:
        return f"a {self.description}"


def encode(value: Any) -> Encoded:
    """A value as plain data for JSON; anything but numbers, texts and containers becomes a description."""
    if value is None or type(value) in (bool, int, float, str):
        scalar: Encoded = value
        return scalar
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


def _encode_tensor(tensor: torch.Tensor) -> Encoded:
    if tensor.numel() > LARGEST:
        return {"object": f"tensor of shape {tuple(tensor.shape)}, too large to compare"}
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return {"tensor": [str(tensor.dtype), list(tensor.shape), base64.b64encode(data).decode("ascii")]}


def decode(plain: Any) -> Any:
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


def tensors(value: Any) -> list[torch.Tensor]:
    """Every tensor in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for part in parts for tensor in tensors(part)]


def in_float64(trial: Inputs) -> bool:
    """Whether inputs hold a tensor of float64."""
    return any(tensor.dtype == torch.float64 for tensor in tensors(trial))


@dataclass
class _Substituted:
    """Which references that stand in for earlier answers were called, and whether one is running."""

    called: set[str] = field(default_factory=set)
    running: bool = False


SUBSTITUTED = "substituted: "  # how their calls are named in an observation
_substituted = _Substituted()


def substitute(name: str, reference: Answer) -> Answer:
    """The reference in place of an earlier answer called `name`; it records when it is called.

    Calls that it makes itself are not recorded.  A class records that it is instantiated.
    """
    def noted(function: Answer) -> Answer:
        @functools.wraps(function)
        def call(*args: Any, **more: Any) -> Any:
            if _substituted.running:
                return function(*args, **more)
            _substituted.called.add(SUBSTITUTED + name)
            _substituted.running = True
            try:
                return function(*args, **more)
            finally:
                _substituted.running = False
        return call
    if not isinstance(reference, type):
        return noted(reference)
    init = noted(reference.__init__)  # type: ignore[misc]  # of a class, not of an instance
    return type(reference.__name__, (reference,), {"__init__": init})


def substituted_calls(observations: list[Observation]) -> set[str]:
    """The names of the substituted references that an answer called."""
    calls = {name for seen in observations for name in seen["calls"]}
    return {name.removeprefix(SUBSTITUTED) for name in calls if name.startswith(SUBSTITUTED)}


class _Calls(TorchFunctionMode):
    """Records the name of every torch function that runs."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()

    def __torch_function__(self, function: Callable[..., Any], types: Any, args: Any = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        self.names.add(getattr(function, "__name__", ""))
        return function(*args, **(kwargs or {}))


def observe(answer: Answer, inputs: Inputs, probe: str = "call", gradients: bool = True) -> Observation:
    """Call `answer` on copies of `inputs` and record what happened, as plain data.

    Gradients are computed in float32 only.  Warnings of torch are not shown.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _observed(answer, inputs, probe, gradients and not in_float64(inputs))


def _observed(answer: Answer, inputs: Inputs, probe: str, gradients: bool) -> Observation:
    seen: Observation = {"output": None, "inputs": None, "gradients": None, "calls": [], "error": None}
    passed = decode(encode(inputs))
    _substituted.called, _substituted.running = set(), False
    try:
        with _Calls() as calls:
            output = PROBES[probe](answer, passed)
        seen |= {"output": encode(output), "inputs": encode(passed),
                 "calls": sorted(calls.names | _substituted.called)}
    except (Exception, SystemExit) as problem:
        seen |= {"error": explain(problem), "calls": sorted(_substituted.called)}
    if gradients and not seen["error"]:
        try:
            seen["gradients"] = _gradients(answer, inputs, probe)
        except (Exception, SystemExit) as problem:
            seen["gradients"] = {"object": f"{type(problem).__name__}: {problem}"[:500]}
    return seen


@torch.enable_grad()  # a notebook may have switched them off for all that follows
def _gradients(answer: Answer, inputs: Inputs, probe: str) -> Encoded:
    passed = decode(encode(inputs))
    leaves = [tensor.requires_grad_() for tensor in tensors(passed) if tensor.is_floating_point()]
    total: torch.Tensor | float = 0.0
    for tensor in tensors(PROBES[probe](answer, passed)):
        if tensor.is_floating_point() and tensor.requires_grad:
            generator = torch.Generator().manual_seed(0)
            weights = torch.randn(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.dtype)
            total = total + (tensor * weights).sum()
    if not isinstance(total, torch.Tensor):
        return None
    return encode([torch.zeros_like(leaf) if grad is None else grad for leaf, grad in
                   zip(leaves, torch.autograd.grad(total, leaves, allow_unused=True), strict=True)])


def explain(problem: BaseException) -> Raised:
    """An exception as plain data."""
    line, root = "", Path(__file__).parents[2]
    course = (str(root / "course_lib"), str(root / "course_tools"))
    for frame in traceback.extract_tb(problem.__traceback__):
        if "site-packages" not in frame.filename and not frame.filename.startswith(course):
            line = frame.line or line
    return {"type": type(problem).__name__, "message": str(problem)[:500], "line": (line or "")[:200]}

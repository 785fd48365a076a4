"""Read the observations that a kernel reports as hostile data: every shape and size is checked before use.

The form is that of `course_tools.judging.observe`: plain JSON with tensors as dtype, shape and bytes.
"""

import base64
import json
import math

from ...judging.observe import LARGEST
from .. import tidy

MIME = "application/vnd.course.observations"
MAX_LENGTH = 64_000_000  # characters of one item's observations
MAX_VALUES = 200_000  # lists, objects and commas in them: a value takes far more memory than its characters
# Of all sets and dictionaries, and of one: a submission can make all hashes equal.
MAX_ENTRIES, MAX_ENTRIES_EACH = 5_000, 500
MAX_DEPTH = 20  # lists in lists
WIDTHS = {"torch.float64": 8, "torch.float32": 4, "torch.float16": 2, "torch.bfloat16": 2, "torch.int64": 8,
          "torch.int32": 4, "torch.int16": 2, "torch.int8": 1, "torch.uint8": 1, "torch.bool": 1}


class Malformed(ValueError):
    """The data are not in the form that `observe` writes."""


def observations(text, count):
    """The list of `count` observations in `text`, None if it says there was no answer.  Raises Malformed."""
    if not isinstance(text, str) or len(text) > MAX_LENGTH or sum(map(text.count, "[{,")) > MAX_VALUES:
        raise Malformed("more than can be compared")
    try:
        seen = json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed("no JSON") from None
    if seen is None:
        return None
    _need(isinstance(seen, list) and len(seen) == count)
    found = [_observation(one) for one in seen]
    if sum(map(_entries, found)) > MAX_ENTRIES:
        raise Malformed("more than can be compared")
    return found


def _entries(plain):
    """How many entries the sets and dictionaries in a value have together."""
    if isinstance(plain, list):
        return sum(map(_entries, plain))
    if not isinstance(plain, dict):
        return 0
    return sum(len(part) for kind, part in plain.items() if kind in ("set", "dict")) + sum(
        map(_entries, plain.values()))


def _observation(seen):
    _need(isinstance(seen, dict) and seen.keys() == {"output", "inputs", "gradients", "calls", "error"})
    error, calls = seen["error"], seen["calls"]
    _need(isinstance(calls, list) and all(isinstance(name, str) for name in calls))
    _need(error is None or isinstance(error, dict) and error.keys() == {"type", "message", "line"}
          and all(isinstance(value, str) for value in error.values()))
    if error is None:
        _need(isinstance(seen["inputs"], dict) and "dict" in seen["inputs"])
    return {"calls": calls, "error": error and {key: tidy(value, 500) for key, value in error.items()},
            **{key: _plain(seen[key], MAX_DEPTH) for key in ("output", "inputs", "gradients")}}


def _plain(value, depth):
    """A value as `encode` writes it, or Malformed."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    _need(depth > 0 and isinstance(value, dict) and len(value) == 1)
    (kind, content), = value.items()
    if kind == "object":
        _need(isinstance(content, str))
        return {kind: tidy(content, 500)}
    _need(isinstance(content, list))
    if kind in ("set", "dict") and len(content) > MAX_ENTRIES_EACH:
        raise Malformed("more than can be compared")
    if kind == "tensor":
        return _tensor(content)
    if kind == "dict":
        _need(all(isinstance(pair, list) and len(pair) == 2 and _hashable(pair[0]) for pair in content))
        return {kind: [[key, _plain(part, depth - 1)] for key, part in content]}
    _need(kind in ("list", "tuple") or kind == "set" and all(map(_hashable, content)))
    return {kind: [_plain(part, depth - 1) for part in content]}


def _tensor(content):
    _need(len(content) == 3)
    dtype, shape, data = content
    _need(isinstance(dtype, str) and isinstance(shape, list) and isinstance(data, str) and len(shape) <= 16)
    _need(all(type(size) is int and 0 <= size <= LARGEST for size in shape))
    if dtype not in WIDTHS:
        return {"object": f"tensor of {tidy(dtype, 40)}"}
    _need(math.prod(shape) <= LARGEST)
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        raise Malformed("no base64") from None
    _need(len(raw) == math.prod(shape) * WIDTHS[dtype] and (dtype != "torch.bool" or not raw.strip(b"\0\1")))
    return {"tensor": [dtype, shape, data]}


def _hashable(value):
    """A scalar, or a tuple of scalars."""
    if isinstance(value, dict) and value.keys() == {"tuple"} and isinstance(value["tuple"], list):
        return not any(isinstance(part, (dict, list)) for part in value["tuple"])
    return not isinstance(value, (dict, list))


def _need(holds):
    if not holds:
        raise Malformed("not the form of an observation")

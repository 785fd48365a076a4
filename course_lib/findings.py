"""A finding of a lesson: the sentence that the text says, asserted of what was measured, with its numbers.

    finding("Without the near letter the RNN names the far one; with it, it does not.",
            {"without the near letter": 0.99, "with it": 0.01}, more_by=0.5,
            seeds={"without the near letter": (0.97, 1.0), "with it": (0.0, 0.02)})

shows a small table: a row for each thing compared, its value in this run and its range over five seeds.
Values differ a little between machines, so a comparison of stored outputs leaves out exactly the values of
this run, by the patterns in nbval_sanitize.cfg, and compares sentences, names and ranges.
"""

import html
import itertools

import torch
from IPython.display import display

ROUNDING = 1 + 1e-9    # 1.0 - 0.8 is a difference of 0.2
COUNTS = {3: "three", 4: "four", 5: "five", 6: "six", 8: "eight", 10: "ten"}


class FindingFailed(AssertionError):
    """What was measured is not what the sentence says.  In a notebook it shows one line."""

    def _render_traceback_(self):
        return [str(self)]


def finding(sentence, values, more_by=None, times=None, within=None, seeds=None, digits=2):
    """Assert the sentence of the values, and show them in a table.

    values: {name: number}, at least two.  Each has to be larger than the next; with more_by by at least this
    difference, with times by at least this factor.  Or within: all of them differ by at most this, which is
    "about equal".  A value may be a Spread of a study, which brings its own range.
    seeds: {name: (lowest, highest)} over five seeds; `make findings` writes it.  digits: after the decimal
    point; very large and very small numbers are shown as 1.2e-07, integers as they are.
    Raises FindingFailed if the sentence does not hold, and ValueError for anything else than a comparison.
    """
    seeds, bounds = seeds or {}, [bound for bound in (more_by, times, within) if bound is not None]
    if len(values) < 2:
        raise ValueError(f"a finding compares at least two values, and this has {len(values)}: {sentence}")
    if len(bounds) > 1 or any(bound <= 0 for bound in bounds):
        raise ValueError(f"give one of more_by, times and within, and a number above 0: {sentence}")
    if set(seeds) - set(values):
        raise ValueError(f"seeds has ranges of {[*seeds]}, but the values are called {[*values]}")
    pairs = itertools.combinations if within else lambda names, _: itertools.pairwise(names)
    for one, other in pairs(values, 2):
        left, right = float(values[one]), float(values[other])
        if within:
            holds, expected = abs(left - right) <= within * ROUNDING, f"a difference of at most {within:g}"
        elif times:
            holds, expected = left > right >= 0 and left * ROUNDING >= times * right, f"a factor of {times:g}"
        elif more_by:
            holds, expected = (left - right) * ROUNDING >= more_by, f"a difference of at least {more_by:g}"
        else:
            holds, expected = left > right, "the first to be larger"
        if not holds:                                # a nan fails too
            left, right = (number(_plain(values[name]), digits) for name in (one, other))
            raise FindingFailed(f"The finding does not hold: {sentence} {one} is {left}, {other} is {right}; "
                                f"expected {expected}.")
    display(Table(sentence, [_row(name, value, seeds.get(name), digits) for name, value in values.items()]))


def identity(what, left, right, to=1e-6):
    """Assert that left and right are equal by algebra, and show "equal, to 1e-6".

    what: what is equal, in words.  left, right: numbers, tensors or lists of them, of one shape; a single
    number may stand for a whole tensor.  to: the largest absolute difference that rounding may make.
    Raises FindingFailed if they differ by more, or if one is nan.
    """
    left, right = _tensor(left), _tensor(right)
    if left.shape != right.shape and left.dim() and right.dim():
        raise FindingFailed(f"{what}: the shapes differ, {tuple(left.shape)} and {tuple(right.shape)}.")
    if not torch.isclose(left, right, rtol=0, atol=to).all():
        gap = (left - right).abs().max().item()
        raise FindingFailed(f"{what}: not equal, they differ by up to {gap:.1e}; expected at most {to:g}.")
    display(Equal(what, to))


class Table:
    """Rows (name, kind of value, value, range, number of seeds): HTML where it can be shown, else text."""

    def __init__(self, sentence, rows):
        self.sentence, self.rows = sentence, rows

    def __repr__(self):
        wide, right = (max(len(row[part]) for row in self.rows) for part in (0, 2))
        return "\n".join([self.sentence, *(
            f"  {name:<{wide}}   {kind} {value:>{right}}" + (f"   {seeds} seeds: {span}" if span else "")
            for name, kind, value, span, seeds in self.rows)])

    def _repr_html_(self):
        _, kinds, _, spans, seeds = map(set, zip(*self.rows))
        head = ["", kinds.pop() if len(kinds) == 1 else "value", *[f"{seeds.pop()} seeds"] * any(spans)]
        lines = [f"<caption>{html.escape(self.sentence)}</caption>",
                 "<tr>" + "".join(f'<th scope="col">{title}</th>' for title in head) + "</tr>"]
        for name, kind, value, span, _ in self.rows:
            mark = ' class="measured"' if kind == "this run" else ""
            lines.append(f'<tr><th scope="row">{html.escape(name)}</th><td{mark}>{value}</td>'
                         + (f"<td>{span}</td>" if any(spans) else "") + "</tr>")
        return '<table class="course-finding">\n' + "\n".join(lines) + "\n</table>"


class Equal:
    """What is equal, and to how much."""

    def __init__(self, what, to):
        self.what, self.to = what, f"{to:g}".replace("e-0", "e-")

    def __repr__(self):
        return f"{self.what}: equal, to {self.to}"

    def _repr_html_(self):
        return f'<p>{html.escape(self.what)}: <strong>equal, to {self.to}</strong></p>'


def number(value, digits=2):
    """A number as a table shows it: an integer in full, others with `digits` decimals or as 1.2e-07."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    value = float(value)
    tiny = value != 0 and abs(value) < 0.5 * 10 ** -digits
    return f"{value:.1e}" if tiny or abs(value) >= 1e5 else f"{value:.{digits}f}"


def _row(name, value, seeds, digits):
    """What a row of the table shows; a Spread of a study has its own range."""
    kind, many = ("median", value.seeds) if hasattr(value, "seeds") else ("this run" if seeds else "value", 5)
    low_high = (value.low, value.high) if kind == "median" else seeds or ()
    whole = isinstance(_plain(value), int)
    span = " to ".join(number(end if whole else float(end), digits) for end in low_high)
    return name, kind, number(_plain(value), digits), span, COUNTS.get(many, str(many))


def _plain(value):
    """The number that a Spread or a tensor with one element stands for."""
    value = value.median if hasattr(value, "seeds") else value
    return value.item() if hasattr(value, "item") else value


def _tensor(value):
    if isinstance(value, (list, tuple)):
        return torch.stack([_tensor(part) for part in value])
    return torch.as_tensor(value).detach().to(torch.float64)

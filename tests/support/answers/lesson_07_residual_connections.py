"""Answers to exercise 07 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import functools
import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn

from answers import remarked, right, wrong

# ---------------------------------------------------------------- residual_forward

def walk(x, blocks, step=lambda x, f: x + f(x)):
    states = [x]
    for f in blocks:
        states.append(step(states[-1], f))
    return states


@right("residual_forward")
def by_accumulate(x, blocks):
    return list(itertools.accumulate(blocks, lambda x, f: x + f(x), initial=x))


@right("residual_forward")
def by_recursion(x, blocks):
    return [x, *by_recursion(torch.add(blocks[0](x), x), blocks[1:])] if blocks else [x]


@right("residual_forward")
def by_a_running_sum(x, blocks):
    total, states = torch.zeros_like(x), [x.clone()]
    for f in blocks:
        total = total + f(states[-1])
        states.append(x + total)
    return states


@right("residual_forward")
def in_place_on_a_copy(x, blocks):
    states = [x]
    for f in blocks:
        y = f(x)
        y += x
        states.append(y)
        x = y
    return states


right("residual_forward")(lambda x, blocks: tuple(walk(x, blocks)))
right("residual_forward")(lambda x, blocks: [x] + [x := x + f(x) for f in blocks])

wrong("residual_forward")(lambda x, blocks: walk(x, blocks, lambda x, f: torch.relu(x + f(x))))
wrong("residual_forward")(lambda x, blocks: walk(x, blocks, lambda x, f: (x + f(x)) / 2))
wrong("residual_forward")(lambda x, blocks: walk(x, blocks, lambda x, f: f(x + f(x))))
wrong("residual_forward")(lambda x, blocks: walk(x, blocks, lambda x, f: x - 2 * f(x)))
wrong("residual_forward")(lambda x, blocks: walk(x, blocks, lambda x, f: x + f(x).mean()))
wrong("residual_forward")(lambda x, blocks: walk(x, blocks, lambda x, f: x + f(torch.relu(x))))
wrong("residual_forward")(lambda x, blocks: walk(x, [*blocks, blocks[-1]]))
wrong("residual_forward")(lambda x, blocks: walk(x, [blocks[0]] * len(blocks))[:-1] + [x])
wrong("residual_forward")(lambda x, blocks: walk(x, blocks, lambda x, f: x.detach() + f(x)))
wrong("residual_forward")(lambda x, blocks: walk(x, blocks, lambda x, f: x + f(x)[:1]))
wrong("residual_forward")(lambda x, blocks: walk(x.float(), blocks[:1]) + walk(x, blocks)[1:])
wrong("residual_forward")(lambda x, blocks: None)


# ---------------------------------------------------------------- residual_gradient

def identity(J):
    return torch.eye(len(J), dtype=J.dtype)


def chain(factors):
    return functools.reduce(lambda product, factor: factor @ product, factors)


@right("residual_gradient")
def from_the_left(jacobians):
    product = None
    for J in reversed(jacobians):
        factor = identity(J) + J
        product = factor if product is None else product @ factor
    return product


@right("residual_gradient")
def skip_and_block(jacobians):
    product = identity(jacobians[0])
    for J in jacobians:
        product = product + J @ product
    return product


@right("residual_gradient")
def over_all_paths(jacobians):
    total = torch.zeros_like(jacobians[0])
    for taken in itertools.product([False, True], repeat=len(jacobians)):
        path = identity(jacobians[0])
        for J, through in zip(jacobians, taken, strict=True):
            path = J @ path if through else path
        total = total + path
    return total


@right("residual_gradient")
def column_by_column(jacobians):
    columns = []
    for column in identity(jacobians[0]).unbind(1):
        for J in jacobians:
            column = column + torch.mv(J, column)
        columns.append(column)
    return torch.stack(columns, dim=1)


right("residual_gradient")(lambda jacobians: chain(torch.ones_like(J[0]).diag() + J for J in jacobians))

wrong("residual_gradient")(lambda jacobians: 2 * chain(identity(J) + J for J in jacobians))
wrong("residual_gradient")(lambda jacobians: chain(identity(J) + 2 * J for J in jacobians))
wrong("residual_gradient")(lambda jacobians: chain(2 * identity(J) + J for J in jacobians))
wrong("residual_gradient")(lambda jacobians: chain(identity(J) + J for J in jacobians) - 1)
wrong("residual_gradient")(lambda jacobians: chain(identity(J) + J for J in jacobians).diag())
wrong("residual_gradient")(lambda jacobians: torch.stack([identity(J) + J for J in jacobians]))
remarked("residual_gradient")(lambda jacobians: chain(identity(J) + J for J in jacobians).float())
wrong("residual_gradient")(lambda jacobians: torch.linalg.matrix_exp(sum(jacobians)))
wrong("residual_gradient")(lambda jacobians: chain(identity(J) + J.relu() for J in jacobians))
wrong("residual_gradient")(lambda jacobians: chain((identity(J) + J) / 2 for J in jacobians))
wrong("residual_gradient")(lambda jacobians: chain((identity(J) + J).detach() for J in jacobians))


# ---------------------------------------------------------------- sublayer

@right("sublayer")
def one_line_each(x, f, norm, order):
    return {"post": lambda: norm(torch.add(x, f(x))), "pre": lambda: torch.add(x, f(norm(x)))}[order]()


@right("sublayer")
def with_a_pass_through(x, f, norm, order):
    before, after = (norm, lambda z: z) if order == "pre" else (lambda z: z, norm)
    return after(f(before(x)) + x)


@right("sublayer")
def row_by_row(x, f, norm, order):
    rows = []
    for row in x.reshape(-1, x.size(-1)):
        rows.append(norm(row + f(row)) if order == "post" else f(norm(row)) + row)
    return torch.stack(rows).view_as(x)


@right("sublayer")
def adds_onto_a_copy(x, f, norm, order):
    y = x.clone()
    if order == "pre":
        y += f(norm(x))
        return y
    y += f(x)
    return norm(y)


def orders(post, pre):
    return lambda x, f, norm, order: (post if order == "post" else pre)(x, f, norm)


POST, PRE = (lambda x, f, norm: norm(x + f(x))), (lambda x, f, norm: x + f(norm(x)))
wrong("sublayer")(orders(lambda x, f, norm: 2 * norm(x + f(x)), PRE))
wrong("sublayer")(orders(lambda x, f, norm: norm(x + f(f(x))), PRE))
wrong("sublayer")(orders(lambda x, f, norm: norm(2 * x + f(x)), PRE))
wrong("sublayer")(orders(lambda x, f, norm: norm(x - f(x)), PRE))
wrong("sublayer")(orders(lambda x, f, norm: x + norm(x + f(x)), PRE))
wrong("sublayer")(orders(POST, lambda x, f, norm: x + f(norm(norm(x)))))
wrong("sublayer")(orders(POST, lambda x, f, norm: 2 * x + f(norm(x))))
wrong("sublayer")(orders(POST, lambda x, f, norm: x - f(norm(x))))
wrong("sublayer")(orders(POST, lambda x, f, norm: x + 2 * f(norm(x))))
wrong("sublayer")(orders(lambda x, f, norm: norm(x), lambda x, f, norm: x))
wrong("sublayer")(orders(lambda x, f, norm: norm(x.detach() + f(x)), PRE))
wrong("sublayer")(lambda x, f, norm, order: norm(x + f(norm(x))) + 1)


# ---------------------------------------------------------------- path_counts

@right("path_counts")
def by_pascals_triangle(n_blocks):
    counts = [1]
    for _ in range(n_blocks):
        counts = [a + b for a, b in zip([0, *counts], [*counts, 0], strict=True)]
    return counts


@right("path_counts")
def by_listing_all(n_blocks):
    counts = [0] * (n_blocks + 1)
    for taken in itertools.product((0, 1), repeat=n_blocks):
        counts[sum(taken)] += 1
    return counts


@right("path_counts")
def by_factorials(n):
    return [math.factorial(n) // (math.factorial(k) * math.factorial(n - k)) for k in range(n + 1)]


@right("path_counts")
def from_the_one_before(n_blocks):
    counts = [1]
    for length in range(1, n_blocks + 1):
        counts.append(counts[-1] * (n_blocks - length + 1) // length)
    return tuple(counts)


def counts(n, change=lambda n, k: math.comb(n, k)):
    return [change(n, k) for k in range(n + 1)]


wrong("path_counts")(lambda n: counts(n, lambda n, k: 2 * math.comb(n, k)))
wrong("path_counts")(lambda n: counts(n, lambda n, k: math.comb(n, k) + 1))
wrong("path_counts")(lambda n: counts(n, lambda n, k: n ** k))
wrong("path_counts")(lambda n: counts(n, lambda n, k: n - k))
wrong("path_counts")(lambda n: counts(n, lambda n, k: math.comb(n, k) ** 2))
wrong("path_counts")(lambda n: counts(n, lambda n, k: k))
wrong("path_counts")(lambda n: dict(enumerate(counts(n))))
wrong("path_counts")(lambda n: torch.tensor(counts(n)))
wrong("path_counts")(lambda n: [*counts(n), 0])
wrong("path_counts")(lambda n: counts(n)[:-1] + [2 ** n])


# ---------------------------------------------------------------- ResidualBlock

class Block(nn.Module):
    """Plain and right; others change one line."""

    def __init__(self, d, d_ff, order, dropout):
        super().__init__()
        self.W_1 = nn.Linear(d, d_ff)
        self.W_2 = nn.Linear(d_ff, d)
        self.norm = nn.LayerNorm(d)
        self.drop = nn.Dropout(dropout)
        self.order, self.p = order, dropout

    def f(self, x):
        return self.drop(self.W_2(F.relu(self.W_1(x))))

    def forward(self, x):
        if self.order == "pre":
            return x + self.f(self.norm(x))
        return self.norm(x + self.f(x))


right("ResidualBlock")(Block)


@right("ResidualBlock")
class ByFunctions(Block):
    def f(self, x):
        x = self.W_2(self.W_1(x).clamp(min=0))
        return F.dropout(x, p=self.p, training=self.training)


@right("ResidualBlock")
class ByMask(Block):
    """Dropout by hand."""

    def f(self, x):
        x = self.W_2(F.relu(self.W_1(x)))
        if not self.training:
            return x
        return torch.where(torch.rand(x.shape) < self.p, torch.zeros_like(x), x / (1 - self.p))


@right("ResidualBlock")
class WithAPlainNorm(Block):
    def forward(self, x):
        first, last = (self.norm, nn.Identity()) if self.order == "pre" else (nn.Identity(), self.norm)
        return last(self.f(first(x)) + x)


def changed_block(**methods):
    wrong("ResidualBlock")(type("Changed", (Block,), methods))


changed_block(f=lambda self, x: 2 * Block.f(self, x))
changed_block(f=lambda self, x: -Block.f(self, x))
changed_block(f=lambda self, x: self.drop(self.W_2(torch.sigmoid(self.W_1(x)))))
changed_block(f=lambda self, x: self.drop(self.W_2(self.W_1(x).abs())))
changed_block(f=lambda self, x: self.drop(self.drop(self.W_2(F.relu(self.W_1(x))))))
changed_block(forward=lambda self, x: Block.forward(self, x) + 1)
changed_block(forward=lambda self, x: self.norm(Block.forward(self, x)))
changed_block(forward=lambda self, x: Block.forward(self, Block.forward(self, x)))


@wrong("ResidualBlock")
class NoBias(Block):
    def __init__(self, d, d_ff, order, dropout):
        super().__init__(d, d_ff, order, dropout)
        self.W_1 = nn.Linear(d, d_ff, bias=False)


@wrong("ResidualBlock")
class TwoNorms(Block):
    def __init__(self, d, d_ff, order, dropout):
        super().__init__(d, d_ff, order, dropout)
        self.norm_2 = nn.LayerNorm(d)


# ---------------------------------------------------------------- deep_stack

@right("deep_stack")
def by_add_module(make_block, n):
    stack = nn.Sequential()
    for number in range(n):
        stack.add_module(f"block {number}", make_block())
    return stack


@right("deep_stack")
class ByModuleList(nn.Module):
    def __init__(self, make_block, n):
        super().__init__()
        self.blocks = nn.ModuleList(make_block() for _ in range(n))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


@right("deep_stack")
class Nested(nn.Module):
    """The first block, then a stack of the others."""

    def __init__(self, make_block, n):
        super().__init__()
        self.first = make_block()
        self.others = Nested(make_block, n - 1) if n > 1 else nn.Identity()

    def forward(self, x):
        return self.others(self.first(x))


@right("deep_stack")
class BySetattr(nn.Module):
    def __init__(self, make_block, n):
        super().__init__()
        self.n = n
        for number in range(n):
            setattr(self, f"block_{number}", make_block())

    def forward(self, x):
        for number in range(self.n):
            x = getattr(self, f"block_{number}")(x)
        return x


class Whole(nn.Module):
    """A right stack, and a change of what goes in or comes out."""

    def __init__(self, make_block, n, before=None, after=None):
        super().__init__()
        self.blocks, self.before, self.after = by_add_module(make_block, n), before, after

    def forward(self, x):
        x = self.blocks(self.before(x) if self.before else x)
        return self.after(x) if self.after else x


wrong("deep_stack")(lambda make_block, n: Whole(make_block, n, before=nn.ReLU()))
wrong("deep_stack")(lambda make_block, n: Whole(make_block, n, after=nn.Tanh()))
wrong("deep_stack")(lambda make_block, n: Whole(make_block, n, after=nn.Softmax(dim=-1)))
wrong("deep_stack")(lambda make_block, n: [make_block() for _ in range(n)])
wrong("deep_stack")(lambda make_block, n: by_add_module(make_block, n).forward)
wrong("deep_stack")(lambda make_block, n: by_add_module(make_block, n + 2))
wrong("deep_stack")(lambda make_block, n: by_add_module(make_block, n).requires_grad_(False))
wrong("deep_stack")(lambda make_block, n: nn.ModuleList(make_block() for _ in range(n)))

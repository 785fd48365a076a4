"""Answers to exercise 07 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import functools
import itertools
import math

import torch

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

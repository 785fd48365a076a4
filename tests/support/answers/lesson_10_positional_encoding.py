"""Answers to exercise 10 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math

import torch

from answers import remarked, right, wrong

# ---------------------------------------------------------------- positional_encoding

@right("positional_encoding")
def number_by_number(n, d_model):
    PE = torch.zeros(n, d_model)
    for pos in range(n):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            PE[pos, 2 * i], PE[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return PE


@right("positional_encoding")
def as_in_many_tutorials(n, d_model):
    """In float32, with the exponential of a logarithm."""
    PE = torch.zeros(n, d_model)
    position = torch.arange(0, n, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
    PE[:, 0::2] = torch.sin(position * div_term)
    PE[:, 1::2] = torch.cos(position * div_term)
    return PE


@right("positional_encoding")
def a_cosine_is_a_sine_shifted(n, d_model):
    column = torch.arange(d_model)
    angles = torch.arange(n).double()[:, None] / 10000 ** (2 * (column // 2) / d_model)
    return torch.sin(angles + math.pi / 2 * (column % 2)).float()


@right("positional_encoding")
def as_complex_numbers(n, d_model):
    speed = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    turned = torch.polar(torch.ones(n, d_model // 2), torch.outer(torch.arange(n).float(), speed))
    return torch.stack([turned.imag, turned.real], dim=2).reshape(n, d_model)


def table(n, d_model, change=lambda x: x, base=10000):
    angles = change(torch.arange(n).double()[:, None] / base ** (torch.arange(0, d_model, 2) / d_model))
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


wrong("positional_encoding")(lambda n, d: table(n, d, lambda x: 2 * x))
wrong("positional_encoding")(lambda n, d: table(n, d, lambda x: 2 * math.pi * x))
wrong("positional_encoding")(lambda n, d: table(n, d, lambda x: torch.deg2rad(x)))
wrong("positional_encoding")(lambda n, d: table(n, d, lambda x: -x))
wrong("positional_encoding")(lambda n, d: table(n, d, base=5000))
wrong("positional_encoding")(lambda n, d: table(n, d).double())
wrong("positional_encoding")(lambda n, d: table(n, d) / math.sqrt(d))
wrong("positional_encoding")(lambda n, d: table(n, d)[None])
wrong("positional_encoding")(lambda n, d: table(n, d)[:, :-1])
wrong("positional_encoding")(lambda n, d: table(n, d).tolist())
wrong("positional_encoding")(lambda n, d: table(max(n, 8), d))
wrong("positional_encoding")(lambda n, d: torch.randn(n, d, generator=torch.Generator().manual_seed(0)))
wrong("positional_encoding")(lambda n, d: None)


# ---------------------------------------------------------------- shift_matrix

@right("shift_matrix")
def entry_by_entry(k, d_model):
    M = torch.zeros(d_model, d_model)
    for i in range(d_model // 2):
        w = k / 10000 ** (2 * i / d_model)
        M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = math.cos(w)
        M[2 * i, 2 * i + 1], M[2 * i + 1, 2 * i] = math.sin(w), -math.sin(w)
    return M


@right("shift_matrix")
def one_step_again_and_again(k, d_model):
    step = torch.zeros(d_model, d_model, dtype=torch.float64)
    for i in range(0, d_model, 2):
        w = torch.tensor(10000.0 ** (-i / d_model), dtype=torch.float64)
        step[i:i + 2, i:i + 2] = torch.stack([w.cos(), w.sin(), -w.sin(), w.cos()]).view(2, 2)
    return torch.linalg.matrix_power(step if k >= 0 else step.T, abs(k)).float()


@right("shift_matrix")
def exponential_of_a_turn(k, d_model):
    w = 10000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    turn = torch.kron(w.diag(), torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64))
    return torch.linalg.matrix_exp(k * turn).float()


@right("shift_matrix")
def solved_from_the_table(k, d_model):
    """The M that maps d_model rows of the table to those k later, by least squares, pair by pair."""
    M, pos = torch.zeros(d_model, d_model), torch.arange(d_model + 2).double()
    for i in range(0, d_model, 2):
        w = 10000.0 ** (-i / d_model)
        here, there = [torch.stack([(p * w).sin(), (p * w).cos()], -1) for p in (pos, pos + k)]
        M[i:i + 2, i:i + 2] = torch.linalg.lstsq(here, there).solution.T.float()
    return M


def rotation(k, d_model, base=10000, dtype=torch.float32):
    w = k * base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    blocks = [torch.stack([x.cos(), x.sin(), -x.sin(), x.cos()]).view(2, 2) for x in w]
    return torch.block_diag(*blocks).to(dtype)


wrong("shift_matrix")(lambda k, d: rotation(k + 1, d))
wrong("shift_matrix")(lambda k, d: rotation(2 * k, d))
wrong("shift_matrix")(lambda k, d: rotation(k, d, base=1000))
wrong("shift_matrix")(lambda k, d: rotation(k, d, dtype=torch.float64))
wrong("shift_matrix")(lambda k, d: torch.eye(d))
wrong("shift_matrix")(lambda k, d: k * rotation(1, d))
wrong("shift_matrix")(lambda k, d: -rotation(k, d))
wrong("shift_matrix")(lambda k, d: rotation(k, d).diagonal())
wrong("shift_matrix")(lambda k, d: rotation(k, d) + torch.eye(d))
wrong("shift_matrix")(lambda k, d: rotation(k, d)[None])
wrong("shift_matrix")(lambda k, d: rotation(k, d).abs())
wrong("shift_matrix")(lambda k, d: rotation(max(k, 0), d))


# ---------------------------------------------------------------- add_positions

@right("add_positions")
def sentence_by_sentence(E):
    B, n, d_model = E.shape
    return torch.stack([sentence + table(n, d_model).to(E.dtype) for sentence in E])


@right("add_positions")
def word_by_word(E):
    PE = number_by_number(E.size(1), E.size(2)).to(E)
    return torch.stack([E[:, j] + PE[j] for j in range(E.size(1))], dim=1)


@right("add_positions")
def onto_a_copy(E):
    total = E.clone()
    total += table(*E.shape[1:])
    return total


right("add_positions")(lambda E: torch.add(E, table(*E.shape[1:]).unsqueeze(0).expand_as(E)).type_as(E))
right("add_positions")(lambda E: E + table(500, E.size(2))[:E.size(1)].to(E))

wrong("add_positions")(lambda E: E + 2 * table(*E.shape[1:]).to(E))
wrong("add_positions")(lambda E: (E + table(*E.shape[1:]).to(E)) / 2)
wrong("add_positions")(lambda E: E.detach() + table(*E.shape[1:]).to(E))
remarked("add_positions")(lambda E: (E + table(*E.shape[1:]).to(E)).float())
wrong("add_positions")(lambda E: E[:1] + table(*E.shape[1:]).to(E))
wrong("add_positions")(lambda E: E + table(*E.shape[1:]).to(E).flip(0))
wrong("add_positions")(lambda E: E + table(*E.shape[1:]).to(E).mean(dim=0))
wrong("add_positions")(lambda E: E.relu() + table(*E.shape[1:]).to(E))
wrong("add_positions")(lambda E: E + torch.arange(E.size(1)).to(E)[:, None])
wrong("add_positions")(lambda E: (E + table(*E.shape[1:]).to(E)).transpose(1, 2))
wrong("add_positions")(lambda E: (E, table(*E.shape[1:]).to(E)))


# ---------------------------------------------------------------- rotary

@right("rotary")
def by_complex_numbers(x, positions, base=10000):
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).contiguous())
    speed = base ** (-torch.arange(0, x.size(-1), 2, dtype=torch.float64) / x.size(-1))
    turn = torch.polar(torch.ones((), dtype=torch.float64), torch.outer(positions.double(), speed))
    return torch.view_as_real(pairs * turn.to(pairs.dtype)).flatten(-2)


@right("rotary")
def pair_by_pair(x, positions, base=10000):
    columns = []
    for i in range(x.size(-1) // 2):
        angle = positions / base ** (2 * i / x.size(-1))
        c, s = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        columns += [x[..., 2 * i] * c - x[..., 2 * i + 1] * s, x[..., 2 * i] * s + x[..., 2 * i + 1] * c]
    return torch.stack(columns, dim=-1)


@right("rotary")
def by_repeated_angles(x, positions, base=10000):
    """As in many libraries: x cos + rotated(x) sin, each angle twice."""
    inverse = 1.0 / base ** (torch.arange(0, x.size(-1), 2).float() / x.size(-1))
    angles = torch.einsum("n,f->nf", positions.float(), inverse).repeat_interleave(2, dim=-1)
    rotated = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).reshape(x.shape)
    return x * angles.cos().to(x) + rotated * angles.sin().to(x)


@right("rotary")
def by_matrices(x, positions, base=10000):
    """Row j times the transposed matrix of its rotation."""
    rows = []
    for j, position in enumerate(positions.tolist()):
        w = position * base ** (-torch.arange(0, x.size(-1), 2, dtype=torch.float64) / x.size(-1))
        blocks = [torch.stack([a.cos(), -a.sin(), a.sin(), a.cos()]).view(2, 2) for a in w]
        rows.append(x[..., j, :] @ torch.block_diag(*blocks).T.to(x))
    return torch.stack(rows, dim=-2)


@right("rotary")
def written_into_a_new_tensor(x, positions, base=10000):
    result = torch.empty_like(x)
    d_k = x.shape[-1]
    angles = positions.unsqueeze(1) * torch.exp(-math.log(base) * torch.arange(0, d_k, 2) / d_k)
    c, s = angles.cos().to(x), angles.sin().to(x)
    result[..., 0::2] = x[..., 0::2] * c - x[..., 1::2] * s
    result[..., 1::2] = x[..., 0::2] * s + x[..., 1::2] * c
    return result


remarked("rotary")(lambda x, positions, base=10000: by_complex_numbers(x.float(), positions, base))
wrong("rotary")(lambda x, positions, base=10000: 2 * pair_by_pair(x, positions, base))
wrong("rotary")(lambda x, positions, base=10000: pair_by_pair(x, 2 * positions, base))
wrong("rotary")(lambda x, positions, base=10000: pair_by_pair(x, positions, base + 1))
wrong("rotary")(lambda x, positions, base=10000: pair_by_pair(x, positions - positions[0], base))
wrong("rotary")(lambda x, positions, base=10000: pair_by_pair(x, positions.flip(0), base))
wrong("rotary")(lambda x, positions, base=10000: pair_by_pair(x.detach(), positions, base))
wrong("rotary")(lambda x, positions, base=10000: x + pair_by_pair(x, positions, base))
wrong("rotary")(lambda x, positions, base=10000: pair_by_pair(x, positions, base)[None])
wrong("rotary")(lambda x, positions, base=10000: x)
wrong("rotary")(lambda x, positions, base=10000: pair_by_pair(x, positions, base).tolist())


# ---------------------------------------------------------------- alibi_bias

def line(n, h, change=lambda slope: slope):
    """Number by number."""
    bias = torch.full((h, n, n), -math.inf)
    for i in range(h):
        for q in range(n):
            for k in range(q + 1):
                bias[i, q, k] = -change(2.0 ** (-8 * (i + 1) / h)) * (q - k)
    return bias


right("alibi_bias")(line)


@right("alibi_bias")
def as_powers_of_the_first(n, h):
    first = 2 ** (-8 / h)
    slopes = torch.tensor([first ** i for i in range(1, h + 1)])
    place = torch.arange(n)
    back = (place.view(-1, 1) - place.view(1, -1)).clamp(min=0)
    return torch.einsum("h,qk->hqk", -slopes, back.float()) + torch.full((n, n), -math.inf).triu(1)


@right("alibi_bias")
def by_where(n, h):
    back = torch.arange(n).unsqueeze(1) - torch.arange(n)
    ahead = torch.tensor(float("-inf"))
    return torch.stack([torch.where(back >= 0, -back / 2 ** (8 * i / h), ahead) for i in range(1, h + 1)])


for factor in (2, 0.5):
    wrong("alibi_bias")(lambda n, h, factor=factor: line(n, h, lambda slope: factor * slope))
wrong("alibi_bias")(lambda n, h: line(n, h, math.sqrt))
wrong("alibi_bias")(lambda n, h: line(n, h).double())
wrong("alibi_bias")(lambda n, h: line(n, h)[0])
wrong("alibi_bias")(lambda n, h: line(n, h)[None])
wrong("alibi_bias")(lambda n, h: line(n, h).exp())
wrong("alibi_bias")(lambda n, h: line(n, h).softmax(dim=-1))
wrong("alibi_bias")(lambda n, h: line(n + 1, h)[:, 1:, :-1])
wrong("alibi_bias")(lambda n, h: line(n, h).tolist())


# ---------------------------------------------------------------- embed

@right("embed")
def looked_up_word_by_word(ids, E):
    PE = number_by_number(ids.size(1), E.size(1)).to(E)
    rows = [[E[token] + PE[j] for j, token in enumerate(row)] for row in ids.tolist()]
    return torch.stack([torch.stack(row) for row in rows])


@right("embed")
def by_functional_embedding(ids, E):
    return torch.nn.functional.embedding(ids, E) + table(ids.size(1), E.size(1)).to(E)


@right("embed")
def one_hot_rows(ids, E):
    words = torch.nn.functional.one_hot(ids, len(E)).to(E) @ E
    return words + table(*words.shape[1:]).to(E).expand_as(words)


wrong("embed")(lambda ids, E: by_functional_embedding(ids, E) * 2)
wrong("embed")(lambda ids, E: by_functional_embedding(ids, E.detach()))
wrong("embed")(lambda ids, E: by_functional_embedding(ids.flip(1), E))
wrong("embed")(lambda ids, E: E[ids] + 2 * table(ids.size(1), E.size(1)).to(E))
wrong("embed")(lambda ids, E: E[ids] + table(ids.size(1), E.size(1)).to(E).flip(0))
wrong("embed")(lambda ids, E: E[ids] * (1 + table(ids.size(1), E.size(1)).to(E)))
wrong("embed")(lambda ids, E: by_functional_embedding(ids[:1], E))
wrong("embed")(lambda ids, E: by_functional_embedding(ids, E).transpose(0, 1))
wrong("embed")(lambda ids, E: table(ids.size(1), E.size(1)).to(E).expand(len(ids), -1, -1).clone())

"""Where a word stands: sines and cosines added to its embedding, rotary positions, ALiBi.  Lesson 10"""

import math

import torch


def angles(positions, d_model, base=10000):
    """position / base^(2i/d_model): the angle of each frequency i at each position.  Vaswani et al. 2017, 3.5

    positions (n,)  d_model: even  ->  (n, d_model / 2)
    """
    if d_model % 2:
        raise ValueError(f"d_model = {d_model} is odd: each frequency needs two columns, a sine and a cosine")
    i = torch.arange(d_model // 2, dtype=torch.float64)           # in float32, PE(5000) is off by 1e-4
    return positions.to(torch.float64)[:, None] / base ** (2 * i / d_model)


def positional_encoding(n, d_model):
    """PE[pos, 2i] = sin(pos / 10000^(2i/d_model)), PE[pos, 2i+1] = cos(the same).  Vaswani et al. 2017, 3.5

    n: how many positions, from 0 on  d_model: even  ->  (n, d_model)
    """
    angle = angles(torch.arange(n), d_model)                      # (n, d_model / 2)
    pairs = torch.stack([angle.sin(), angle.cos()], dim=-1)       # (n, d_model / 2, 2)
    return pairs.flatten(1).to(torch.get_default_dtype())         # (n, d_model)


def shift_matrix(k, d_model):
    """M with PE[pos + k] = M PE[pos] for every pos: each pair (sin, cos) turned by k times its frequency.

    k: how far, negative is back  ->  (d_model, d_model), blocks [[cos, sin], [-sin, cos]] on the diagonal
    """
    angle = angles(torch.tensor([k]), d_model)[0]                 # (d_model / 2,)
    c, s = angle.cos(), angle.sin()
    blocks = torch.stack([torch.stack([c, s], -1), torch.stack([-s, c], -1)], -2)    # (d_model / 2, 2, 2)
    return torch.block_diag(*blocks).to(torch.get_default_dtype())


def add_positions(E):
    """E + PE, the same for every sentence of the batch.  E (B, n, d_model)  ->  (B, n, d_model)"""
    return E + positional_encoding(E.size(1), E.size(2)).to(E)    # (n, d_model) spreads over B


def rotary(x, positions, base=10000):
    """Each pair (x[2i], x[2i+1]) turned by the angle position / base^(2i/d_k).  Su et al. 2021, eq. 15

    For queries and keys: their dot products then depend on the distance of their positions alone.

    x (..., n, d_k), d_k even  positions (n,)  ->  the shape of x
    """
    angle = angles(positions, x.size(-1), base)                   # (n, d_k / 2)
    c, s = angle.cos().to(x), angle.sin().to(x)
    a, b = x[..., 0::2], x[..., 1::2]                             # (..., n, d_k / 2)
    return torch.stack([a * c - b * s, a * s + b * c], dim=-1).flatten(-2)


def alibi_bias(n, h):
    """-slope_i (distance back), slope_i = 2^(-8i/h), i = 1 .. h; -inf ahead.  Press et al. 2022, section 3

    Added to the scores of causal attention, instead of any encoding of positions  ->  (h, n, n)
    """
    slopes = 2 ** (-8 * torch.arange(1, h + 1) / h)               # (h,)
    back = torch.arange(n)[:, None] - torch.arange(n)             # (n, n): i - j
    return (slopes[:, None, None] * -back).masked_fill(back < 0, -math.inf)

"""Residual connections: what a block computes is added to what it was given.  Lesson 07

A block is any function from (..., d) to (..., d).  Jacobians are written as the papers write them:
J[i, j] = d f(x)[i] / d x[j], so the Jacobian of a chain has the LAST block's on the left.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


def residual_forward(x, blocks):
    """x_l = x_{l-1} + f_l(x_{l-1}) for every block; returns [x_0, x_1, ..., x_L].  He et al. 2016b, eq. 3

    x (..., d)  blocks: L functions from (..., d) to (..., d)  ->  list of L + 1 tensors (..., d)
    """
    states = [x]
    for f in blocks:
        states.append(states[-1] + f(states[-1]))        # (..., d)
    return states


def residual_gradient(jacobians):
    """dx_L/dx_0 = (I + J_L) ... (I + J_2) (I + J_1): the chain rule over He et al. 2016b, eq. 3

    jacobians: list of L matrices (d, d), J_l[i, j] = d f_l(x)[i] / d x[j], first block first  ->  (d, d)
    """
    d = jacobians[0].size(-1)
    identity = torch.eye(d, dtype=jacobians[0].dtype, device=jacobians[0].device)
    product = identity
    for J in jacobians:
        product = (identity + J) @ product                # the later block stands further left
    return product


def sublayer(x, f, norm, order):
    """'post': norm(x + f(x)), Vaswani et al. 2017, section 3.1.  'pre': x + f(norm(x)), Xiong et al. 2020

    x (..., d)  f, norm: functions from (..., d) to (..., d)  ->  (..., d)
    """
    if order == "post":
        return norm(x + f(x))
    if order == "pre":
        return x + f(norm(x))
    raise ValueError(f"order is {order!r}, expected 'post' or 'pre'")


def path_counts(n_blocks):
    """How many of the 2^n paths through n blocks have length 0, 1, ..., n.  Veit et al. 2016, section 3

    The length of a path is the number of blocks it goes through; past the others it takes the skip.
    """
    return [math.comb(n_blocks, length) for length in range(n_blocks + 1)]


def path_gradients(jacobians):
    """What the paths of each length add to `residual_gradient`.  Veit et al. 2016, section 5

    jacobians: list of L matrices (d, d)  ->  (L + 1, d, d), entry k the sum over all paths of
    length k; together they are the whole gradient
    """
    L, d = len(jacobians), jacobians[0].size(-1)
    paths = torch.zeros(L + 1, d, d, dtype=jacobians[0].dtype, device=jacobians[0].device)
    paths[0] = torch.eye(d)
    for J in jacobians:
        longer = J @ paths[:-1]                           # through this block: one longer
        paths = paths + F.pad(longer, (0, 0, 0, 0, 1, 0))     # past it: as long as before
    return paths


def block(x, W, b):
    """f(x) = relu(x) W + b: one layer, the nonlinearity first.  He et al. 2016b, figure 4 (e)

    x (..., d)  W (d, d)  b (d,)  ->  (..., d)
    """
    return torch.relu(x) @ W + b


def normalise(x):
    """Layer norm without gain and shift, so without parameters.  x (..., d)  ->  (..., d)"""
    return F.layer_norm(x, x.shape[-1:])


class PlainNet(nn.Module):
    """`depth` blocks one after the other, x_{l+1} = f_l(x_l), and a linear layer that reads off the answer.

    init: "default" as nn.Linear draws, every number even within 1 / sqrt(d); "he": N(0, 2 / d), no bias
    (He et al. 2015, eq. 10).  scale: a factor on every block's output.
    """

    def __init__(self, depth, d=64, classes=10, init="default", scale=1.0):
        super().__init__()
        self.depth, self.scale = depth, scale
        self.W = nn.Parameter(torch.empty(depth, d, d))   # W[l] belongs to block l: one parameter for all,
        self.b = nn.Parameter(torch.zeros(depth, d))      # since Adam is slow on many small ones
        self.out = nn.Linear(d, classes)
        if init == "he":
            nn.init.normal_(self.W, std=math.sqrt(2 / d))
        elif init == "default":
            nn.init.uniform_(self.W, -1 / math.sqrt(d), 1 / math.sqrt(d))
            nn.init.uniform_(self.b, -1 / math.sqrt(d), 1 / math.sqrt(d))
        else:
            raise ValueError(f"init is {init!r}, expected 'default' or 'he'")

    def blocks(self, without=()):
        """The blocks as functions of x, in order, but for those whose numbers are in `without`."""
        def make(W, b):
            return lambda x: self.scale * block(x, W, b)
        return [make(W, b) for number, (W, b) in enumerate(zip(self.W, self.b, strict=True))
                if number not in without]

    def states(self, x, without=()):
        """Every layer's output, x included: a list of (..., d)."""
        states = [x]
        for f in self.blocks(without):
            states.append(f(states[-1]))
        return states

    def forward(self, x, without=()):
        """x (..., d), numbers of blocks to leave out  ->  logits (..., classes)"""
        return self.read(self.states(x, without)[-1])

    def read(self, x):
        """The logits, from the last state."""
        return self.out(x)


class ResidualNet(PlainNet):
    """The same blocks and parameters with a skip past each block: x_l = x_{l-1} + scale f_l(x_{l-1}).

    order: None, or 'post' or 'pre' for a norm (`normalise`) in each `sublayer`; with 'pre' there is one
    more before the answer is read off, since nothing else keeps the last state in bounds.
    """

    def __init__(self, depth, d=64, classes=10, init="default", scale=1.0, order=None):
        super().__init__(depth, d, classes, init, scale)
        self.order = order

    def states(self, x, without=()):
        if self.order is None:
            return residual_forward(x, self.blocks(without))
        states = [x]
        for f in self.blocks(without):
            states.append(sublayer(states[-1], f, normalise, self.order))
        return states

    def read(self, x):
        return self.out(normalise(x) if self.order == "pre" else x)


class ResidualBlock(nn.Module):
    """`sublayer` around f(x) = W_2 relu(W_1 x), with dropout on f(x).  ResidualBlock(d, d_ff, order, dropout)

    'post': norm(x + drop(f(x)))  'pre': x + drop(f(norm(x))).  Vaswani et al. 2017, sections 3.1 and 5.4
    """

    def __init__(self, d, d_ff, order, dropout):
        super().__init__()
        self.order = order
        self.W_1, self.W_2 = nn.Linear(d, d_ff), nn.Linear(d_ff, d)
        self.norm, self.dropout = nn.LayerNorm(d), nn.Dropout(dropout)

    def forward(self, x):
        """x (..., d)  ->  (..., d)"""
        return sublayer(x, self.branch, self.norm, self.order)

    def branch(self, x):
        return self.dropout(self.W_2(torch.relu(self.W_1(x))))    # (..., d_ff), then (..., d)

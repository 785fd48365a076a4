"""Batch norm, layer norm and RMSNorm, and recurrent layers with a norm.  Lesson 06

Batch norm and layer norm subtract a mean, divide by a standard deviation, and give the freedom back with a
learned gamma and beta.  They differ in one thing: the mean of what.
"""

import torch
from torch import nn

from . import rnn


def batch_norm(x, gamma, beta, eps=1e-5):
    """gamma (x - mean) / sqrt(var + eps) + beta, column by column.  Ioffe & Szegedy 2015, algorithm 1

    x (N, d)  gamma, beta (d,)  ->  (N, d); mean and variance of each feature over the N rows
    """
    mean = x.mean(dim=0)                                             # (d,)
    var = x.var(dim=0, correction=0)                                 # (d,), divided by N
    return gamma * (x - mean) / torch.sqrt(var + eps) + beta         # (N, d)


def layer_norm(x, gamma, beta, eps=1e-5):
    """gamma (x - mean) / sqrt(var + eps) + beta, row by row.  Ba et al. 2016, eq. 3

    x (..., d)  gamma, beta (d,)  ->  (..., d); mean and variance of each position over its d features
    """
    mean = x.mean(dim=-1, keepdim=True)                              # (..., 1)
    var = x.var(dim=-1, correction=0, keepdim=True)                  # (..., 1), divided by d
    return gamma * (x - mean) / torch.sqrt(var + eps) + beta         # (..., d)


def rms_norm(x, gamma, eps=1e-6):
    """gamma x / sqrt(mean(x^2) + eps), row by row.  Zhang & Sennrich 2019, eq. 4

    x (..., d)  gamma (d,)  ->  (..., d); the mean of the squares of each position over its d features
    """
    return gamma * x / torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + eps)     # (..., d)


def masked_batch_norm(X, lengths, gamma, beta, eps=1e-5):
    """`batch_norm` over all real tokens of a padded batch; the result is 0 at its padding.

    X (B, n, d)  lengths (B,), the number of real tokens of each row  gamma, beta (d,)  ->  (B, n, d)
    """
    real = torch.arange(X.size(1), device=X.device) < lengths[:, None]           # (B, n)
    rows = batch_norm(X[real], gamma, beta, eps)                     # (tokens, d)
    return torch.zeros_like(X).masked_scatter(real[..., None], rows)


class BatchNorm(nn.Module):
    """`batch_norm` in training; in eval mode with the running mean and variance.  BatchNorm(d)

    momentum: the share of each new batch in the running statistics, as in torch.nn.BatchNorm1d.
    """

    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__()
        self.momentum, self.eps = momentum, eps
        self.gamma = nn.Parameter(torch.ones(d))
        self.beta = nn.Parameter(torch.zeros(d))
        self.register_buffer("running_mean", torch.zeros(d))         # saved with the model, never trained
        self.register_buffer("running_var", torch.ones(d))

    def forward(self, x):
        """x (N, d)  ->  (N, d)"""
        if self.training:
            self._remember(x.detach())
            return batch_norm(x, self.gamma, self.beta, self.eps)
        normal = (x - self.running_mean) / torch.sqrt(self.running_var + self.eps)
        return self.gamma * normal + self.beta

    def _remember(self, x):
        """running = (1 - momentum) running + momentum batch; the variance here is divided by N - 1."""
        if len(x) < 2:
            raise ValueError("batch norm needs at least 2 rows in training: 1 row has no variance")
        self.running_mean.lerp_(x.mean(dim=0), self.momentum)
        self.running_var.lerp_(x.var(dim=0, correction=1), self.momentum)


class LayerNorm(nn.Module):
    """`layer_norm` with its gamma and beta; the same in training and in eval mode.  LayerNorm(d)"""

    def __init__(self, d, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.ones(d))
        self.beta = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        """x (..., d)  ->  (..., d)"""
        return layer_norm(x, self.gamma, self.beta, self.eps)


def layer_norm_rnn_step(x_t, h_prev, W_xh, W_hh, gamma, beta):
    """h_t = tanh(LN(x_t W_xh + h_prev W_hh)), the sum normalised, not its terms.  Ba et al. 2016, eq. 4

    x_t (B, d_in)  h_prev (B, d_h)  W_xh (d_in, d_h)  W_hh (d_h, d_h)  gamma, beta (d_h,)  ->  (B, d_h)
    """
    return torch.tanh(layer_norm(x_t @ W_xh + h_prev @ W_hh, gamma, beta))


class StepwiseLayerNorm(LayerNorm):
    """LayerNorm for a recurrent layer, which passes the step as well; nothing here depends on it."""

    def forward(self, x, t):
        """x (B, d), the values at step t  ->  (B, d)"""
        return super().forward(x)


class StepwiseBatchNorm(nn.Module):
    """BatchNorm with statistics of its own for each time step; gamma and beta are shared by all.

    StepwiseBatchNorm(d, steps, gamma).  Cooijmans et al. 2016, section 3
    """

    def __init__(self, d, steps, gamma=1.0):
        super().__init__()
        self.norms = nn.ModuleList(BatchNorm(d) for _ in range(steps))
        first = self.norms[0]
        nn.init.constant_(first.gamma, gamma)
        for part in self.norms:
            part.gamma, part.beta = first.gamma, first.beta

    def forward(self, x, t):
        """x (B, d), the values at step t, counted from 0  ->  (B, d)"""
        if t >= len(self.norms):
            raise IndexError(f"no statistics for step {t + 1}: training had {len(self.norms)} steps")
        return self.norms[t](x)


class NormLSTM(rnn.LSTM):
    """The LSTM with a norm on both products and on the cell before the output.  NormLSTM(d_in, d_h, make)

    [i, f, g, o] = norm(x_t W) + norm(h_{t-1} U) + b      h_t = o * tanh(norm(c_t))
    make(d): gives a module that is called with (x, t).
    Ba et al. 2016, eqs. 20 to 22 (layer norm); Cooijmans et al. 2016, eqs. 6 to 8 (batch norm)
    """

    def __init__(self, d_in, d_h, make):
        super().__init__(d_in, d_h)
        self.norm_x, self.norm_h, self.norm_c = make(4 * d_h), make(4 * d_h), make(d_h)

    def start(self, X):
        return *super().start(X), 0                                  # h_0, c_0, the number of the step

    def step(self, x_t, state):
        h_prev, c_prev, t = state
        sums = self.norm_x(x_t @ self.W, t) + self.norm_h(h_prev @ self.U, t) + self.b
        i, f, g, o = sums.chunk(4, dim=-1)                           # each (B, d_h)
        c_t = torch.sigmoid(f) * c_prev + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(self.norm_c(c_t, t)), c_t, t + 1

"""Recurrent networks from scratch: the plain RNN, the LSTM, the GRU.  Lesson 01

Every layer reads X (B, n, d_in) and returns (H (B, n, d_h), its last state), as torch's do with
batch_first=True; weights are stored input-first, so that x W is written as it is read.
"""

import math

import torch
from torch import nn


def rnn_step(x_t, h_prev, W_xh, W_hh, b_h):
    """h_t = tanh(x_t W_xh + h_prev W_hh + b_h).  Elman 1990

    x_t (B, d_in)  h_prev (B, d_h)  W_xh (d_in, d_h)  W_hh (d_h, d_h)  b_h (d_h,)  ->  (B, d_h)
    """
    return torch.tanh(x_t @ W_xh + h_prev @ W_hh + b_h)    # (B, d_h)


def rnn_forward(X, h_0, W_xh, W_hh, b_h):
    """Every hidden state, one step after the other.

    X (B, n, d_in)  h_0 (B, d_h)  ->  H (B, n, d_h), H[:, t] the state after reading X[:, t]
    """
    h_t, states = h_0, []
    for t in range(X.size(1)):
        h_t = rnn_step(X[:, t], h_t, W_xh, W_hh, b_h)      # (B, d_h)
        states.append(h_t)
    return torch.stack(states, dim=1)                      # (B, n, d_h)


def gradient_norms(H, W_hh):
    """The Frobenius norm of dh_n/dh_t for t = 1 ... n.  Pascanu et al. 2013, eq. 5

    H (n, d_h): the states h_1 ... h_n of one sequence  W_hh (d_h, d_h)  ->  (n,), the last sqrt(d_h)
    """
    n, d_h = H.shape
    dh_n = torch.eye(d_h, dtype=H.dtype, device=H.device)  # dh_n/dh_n; [i, j] = dh_n[j] / dh_t[i]
    norms = [dh_n.norm()]
    for t in range(n - 1, 0, -1):
        jacobian = W_hh * (1 - H[t] ** 2)                  # [i, j] = dh_{t+1}[j] / dh_t[i]
        dh_n = jacobian @ dh_n                             # (d_h, d_h)
        norms.append(dh_n.norm())
    return torch.stack(norms[::-1])                        # (n,)


def lstm_step(x_t, h_prev, c_prev, W, U, b):
    """c_t = f * c_prev + i * g, h_t = o * tanh(c_t).  Hochreiter & Schmidhuber 1997; Gers et al. 2000

    x_t (B, d_in)  h_prev, c_prev (B, d_h)  W (d_in, 4 d_h)  U (d_h, 4 d_h)  b (4 d_h,)
    ->  h_t, c_t (B, d_h).  The last axis holds input gate i, forget gate f, candidate g, output gate o.
    """
    a_i, a_f, a_g, a_o = (x_t @ W + h_prev @ U + b).chunk(4, dim=-1)            # each (B, d_h)
    i, f, o = torch.sigmoid(a_i), torch.sigmoid(a_f), torch.sigmoid(a_o)        # between 0 and 1
    g = torch.tanh(a_g)                                                         # between -1 and 1
    c_t = f * c_prev + i * g                                                    # (B, d_h)
    return o * torch.tanh(c_t), c_t


def gru_step(x_t, h_prev, W, U, b_W, b_U):
    """h_t = (1 - z) * n + z * h_prev, with n = tanh(x W_n + b + r * (h U_n + b')).  Cho et al. 2014

    x_t (B, d_in)  h_prev (B, d_h)  W (d_in, 3 d_h)  U (d_h, 3 d_h)  b_W, b_U (3 d_h,), in the order
    r, z, n along the last axis  ->  h_t (B, d_h).  The reset gate acts after the product with U, as
    in torch.nn.GRU; the paper's acts before it.
    """
    x_r, x_z, x_n = (x_t @ W + b_W).chunk(3, dim=-1)                # each (B, d_h)
    h_r, h_z, h_n = (h_prev @ U + b_U).chunk(3, dim=-1)             # each (B, d_h)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    n = torch.tanh(x_n + r * h_n)                                   # candidate state
    return (1 - z) * n + z * h_prev


class _Recurrent(nn.Module):
    """What the three layers share: weights drawn as torch draws them, and the walk along time."""

    def __init__(self, d_in, d_h, gates):
        super().__init__()
        self.d_h = d_h
        self.W = nn.Parameter(torch.empty(d_in, gates * d_h))
        self.U = nn.Parameter(torch.empty(d_h, gates * d_h))
        self.b = nn.Parameter(torch.empty(gates * d_h))
        for weight in self.parameters():
            nn.init.uniform_(weight, -1 / math.sqrt(d_h), 1 / math.sqrt(d_h))

    def forward(self, X, state=None):
        """X (B, n, d_in), state as returned or None for zeros  ->  H (B, n, d_h), last state"""
        state = self.start(X) if state is None else state
        states = []
        for t in range(X.size(1)):
            state = self.step(X[:, t], state)
            states.append(state[0] if isinstance(state, tuple) else state)
        return torch.stack(states, dim=1), state                    # (B, n, d_h)

    def start(self, X):
        return X.new_zeros(X.size(0), self.d_h)


class RNN(_Recurrent):
    """The plain recurrent layer, `rnn_step` along time: RNN(d_in, d_h)."""

    def __init__(self, d_in, d_h):
        super().__init__(d_in, d_h, gates=1)

    def step(self, x_t, h_prev):
        return rnn_step(x_t, h_prev, self.W, self.U, self.b)


class LSTM(_Recurrent):
    """`lstm_step` along time: LSTM(d_in, d_h); its state is the pair (h_t, c_t).

    forget_bias is added to the bias of the forget gate: at +1 the cell starts out keeping most of
    what it holds.  Jozefowicz et al. 2015
    """

    def __init__(self, d_in, d_h, forget_bias=0.0):
        super().__init__(d_in, d_h, gates=4)
        with torch.no_grad():
            self.b[d_h:2 * d_h] += forget_bias

    def start(self, X):
        return super().start(X), super().start(X)

    def step(self, x_t, state):
        return lstm_step(x_t, *state, self.W, self.U, self.b)


class GRU(_Recurrent):
    """`gru_step` along time: GRU(d_in, d_h).

    keep_bias is added to the bias of z: at +3 the layer starts out keeping its state.
    """

    def __init__(self, d_in, d_h, keep_bias=0.0):
        super().__init__(d_in, d_h, gates=3)
        self.b_U = nn.Parameter(torch.empty(3 * d_h).uniform_(-1 / math.sqrt(d_h), 1 / math.sqrt(d_h)))
        with torch.no_grad():
            self.b[d_h:2 * d_h] += keep_bias

    def step(self, x_t, h_prev):
        return gru_step(x_t, h_prev, self.W, self.U, self.b, self.b_U)

"""Convolutions over a sequence: causal, dilated, gated; how far they see.  Lesson 02

A sequence is X (B, n, d) as everywhere in the course.  (torch.nn.Conv1d expects (B, d, n) and stores its
weight as (d_out, d_in, k); here it is (k, d_in, d_out), one matrix for each distance.)
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

# Makes up for the gate: initial variance 4 / (k d_in) in place of 1 / (3 k d_in).  Gehring et al. 2017, 3.5
GLU_GAIN = 2 * math.sqrt(3)


def causal_conv1d(X, W, b, dilation=1):
    """Y[t] = sum_j X[t - (k - 1 - j) dilation] W[j] + b, zeros before the start.  Oord et al. 2016, 2.1

    X (B, n, d_in)  W (k, d_in, d_out): W[k - 1] multiplies the present input, W[0] the oldest  b (d_out,)
    ->  Y (B, n, d_out); Y[t] depends on X[t] and earlier inputs only.
    """
    n, k = X.size(1), W.size(0)
    reach = (k - 1) * dilation                                          # distance of the oldest input
    past = F.pad(X, (0, 0, reach, 0))                                   # (B, reach + n, d_in)
    return sum((past[:, j * dilation:j * dilation + n] @ W[j] for j in range(k)), b)    # (B, n, d_out)


def gated_linear_unit(X):
    """a * sigmoid(b), where X = [a, b]: first the content, then its gate.  Dauphin et al. 2017, eq. 1

    X (..., 2 d)  ->  (..., d)
    """
    a, b = X.chunk(2, dim=-1)              # each (..., d)
    return a * torch.sigmoid(b)            # (..., d)


def receptive_field(kernel_size, dilations):
    """How long a stretch of inputs one output looks at: 1 + (k - 1) (sum of the dilations).

    kernel_size: k, the same in every layer.  dilations: one for each layer, [1, 1, 1] for three plain layers.
    """
    return 1 + (kernel_size - 1) * sum(dilations)


def path_length(n, layer, kernel_size=3):
    """Steps or layers between the input at 0 and the output at n - 1.  Vaswani et al. 2017, Table 1

    layer: 'recurrent' n - 1, 'convolution' ceil((n - 1) / (k - 1)), 'dilated' (by 1, k, k^2, ...)
    ceil(log_k n), 'attention' 1.
    """
    if layer == "recurrent":
        return n - 1
    if layer == "convolution":
        return math.ceil((n - 1) / (kernel_size - 1))
    if layer == "dilated":
        layers = 0
        while kernel_size ** layers < n:    # whole numbers: math.log(125, 5) is 3.0000000000000004
            layers += 1
        return layers
    if layer == "attention":
        return 1
    raise ValueError(f"layer is {layer!r}: choose 'recurrent', 'convolution', 'dilated' or 'attention'")


class CausalConv1d(nn.Module):
    """`causal_conv1d` as a module, initialised like torch.nn.Conv1d: CausalConv1d(d_in, d_out, k).

    gain: multiplies the initial W; GLU_GAIN gives the initialisation of ConvS2S.
    """

    def __init__(self, d_in, d_out, kernel_size, dilation=1, gain=1.0):
        super().__init__()
        self.dilation = dilation
        bound = 1 / math.sqrt(d_in * kernel_size)
        self.W = nn.Parameter(gain * torch.empty(kernel_size, d_in, d_out).uniform_(-bound, bound))
        self.b = nn.Parameter(torch.empty(d_out).uniform_(-bound, bound))

    def forward(self, X):                                              # X (B, n, d_in)
        return causal_conv1d(X, self.W, self.b, self.dilation)         # (B, n, d_out)


class GatedConvolution(nn.Module):
    """X + GLU(convolution of X): a layer of ConvS2S.  Gehring et al. 2017, section 3.2

    The convolution gives 2 d_h numbers per position, content and gate; the input is added to the result.
    """

    def __init__(self, d_h, kernel_size, dilation=1, gain=1.0):
        super().__init__()
        self.convolution = CausalConv1d(d_h, 2 * d_h, kernel_size, dilation, gain)

    def forward(self, X):                                              # X (B, n, d_h)
        return X + gated_linear_unit(self.convolution(X))              # (B, n, d_h)


class ConvolutionStack(nn.Module):
    """Gated convolutions, one per dilation, lowest first: ConvolutionStack(d_in, d_h, k, [1, 2, 4]).

    A linear layer first maps each input to d_h dimensions.  Returns H (B, n, d_h) and its last position, as
    the recurrent layers do.
    """

    def __init__(self, d_in, d_h, kernel_size, dilations, gain=1.0):
        super().__init__()
        self.d_h = d_h
        self.embedding = nn.Linear(d_in, d_h)
        self.layers = nn.Sequential(*[GatedConvolution(d_h, kernel_size, dilation, gain)
                                      for dilation in dilations])

    def forward(self, X):                                              # X (B, n, d_in)
        H = self.layers(self.embedding(X))                             # (B, n, d_h)
        return H, H[:, -1]

"""The block of decoder-only models, and the feed-forward network of the newer ones.  Exercise 11"""

import torch.nn.functional as F
from torch import nn

from .attention import MultiHeadAttention, causal_mask
from .transformer import FeedForward


class SwiGLU(nn.Module):
    """W_2(silu(W_1 x) * W_3 x), without biases.  Shazeer 2020, eq. 6

    SwiGLU(d_model, d_ff); x (..., d_model)  ->  (..., d_model)
    """

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff, bias=False)           # the gate
        self.W_2 = nn.Linear(d_ff, d_model, bias=False)
        self.W_3 = nn.Linear(d_model, d_ff, bias=False)           # what it lets through

    def forward(self, x):
        return self.W_2(F.silu(self.W_1(x)) * self.W_3(x))        # (..., d_ff), then (..., d_model)


class DecoderOnlyBlock(nn.Module):
    """x = x + attention(norm_1(x)), then x = x + feed_forward(norm_2(x)): pre-norm, causal, no memory.

    DecoderOnlyBlock(d_model, h, d_ff).  Radford et al. 2019, section 2.3
    """

    def __init__(self, d_model, h, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        """x (B, n, d_model)  ->  (B, n, d_model)"""
        normed = self.norm_1(x)
        x = x + self.attention(normed, normed, normed, causal_mask(x.size(1)).to(x.device))[0]
        return x + self.feed_forward(self.norm_2(x))

"""Multi-head attention that knows the distance of two positions: one learned number for each.  Lesson 13"""

import math

import torch
from torch import nn

from .attention import MultiHeadAttention, merge_heads, split_heads

LONGEST = 64    # distances from here on share their number


class RelativeAttention(MultiHeadAttention):
    """MultiHeadAttention, with b[head, j - i] added to the score of query i and key j.  Raffel et al. 2020

    RelativeAttention(d_model, h).  At first b is about -|j - i| / 2, so that each
    head starts by attending to near tokens.
    """

    def __init__(self, d_model, h):
        super().__init__(d_model, h)
        offset = torch.arange(2 * LONGEST - 1) - (LONGEST - 1)    # j - i
        self.distance = nn.Parameter((torch.randn(h, 2 * LONGEST - 1) - offset.abs()) / 2)

    def forward(self, q, k, v, mask=None):
        """As MultiHeadAttention.  If there are fewer queries than keys, they are the last ones."""
        Q, K, V = (split_heads(X, self.h) for X in (self.W_Q(q), self.W_K(k), self.W_V(v)))
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]                                  # (B, 1, n, m): the same for every head
        output, weights = self.attend(Q, K, V, mask)
        return self.W_O(merge_heads(output)), weights

    def attend(self, Q, K, V, mask=None):
        """softmax(Q K^T / sqrt(d_k) + b) V.  Q (B, h, n, d_k)  K, V (B, h, m, d_k)  ->  output, weights"""
        scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1)) + self.bias(Q.size(-2), K.size(-2))
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(dim=-1)                          # (B, h, n, m)
        return weights @ V, weights

    def bias(self, n, m):
        """b for the last n of m positions as queries, and all m as keys  ->  (h, n, m)"""
        offset = torch.arange(m) - torch.arange(m - n, m)[:, None]    # (n, m): j - i
        return self.distance[:, offset.clamp(1 - LONGEST, LONGEST - 1) + LONGEST - 1]

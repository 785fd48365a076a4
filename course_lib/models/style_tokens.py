"""Style tokens: a bank of learned vectors that a reference looks up.  Lesson 05, Wang et al. 2018

How a sentence is said becomes a mixture of a few tokens, found by attention: the query comes from a
recording, keys and values from the bank.  The weights can also be set by hand.
"""

import math

import torch
from torch import nn

from .attention import attention


def style_embedding(reference, tokens, W_Q, W_K, W_V, h):
    """Attention of a reference to a bank of tokens, with h heads.  Wang et al. 2018, section 3.2

    reference (B, d_ref)  tokens (m, d_tok)  W_Q (d_ref, d_model)  W_K, W_V (d_tok, d_model)
    ->  embedding (B, d_model), weights (B, h, m).  Head i owns the i-th d_model / h columns.
    """
    bank = torch.tanh(tokens)                                          # (m, d_tok)
    Q, K, V = (X.unflatten(-1, (h, -1)).transpose(0, 1)                # (h, B or m, d_model / h)
               for X in (reference @ W_Q, bank @ W_K, bank @ W_V))
    output, weights = attention(Q, K, V)                               # (h, B, d_model / h), (h, B, m)
    return output.transpose(0, 1).flatten(1), weights.transpose(0, 1)


class StyleTokens(nn.Module):
    """A bank of m learned tokens: StyleTokens(m, d_ref, d_tok, d_model, h); forward is `style_embedding`."""

    def __init__(self, m, d_ref, d_tok, d_model, h=1):
        super().__init__()
        if d_model % h:
            raise ValueError(f"d_model = {d_model} can't be cut into h = {h} heads of equal width")
        self.h = h
        self.tokens = nn.Parameter(0.5 * torch.randn(m, d_tok))
        self.W_Q = nn.Parameter(torch.randn(d_ref, d_model) / math.sqrt(d_ref))
        self.W_K = nn.Parameter(torch.randn(d_tok, d_model) / math.sqrt(d_tok))
        self.W_V = nn.Parameter(torch.randn(d_tok, d_model) / math.sqrt(d_tok))

    def forward(self, reference):
        """reference (B, d_ref)  ->  embedding (B, d_model), weights (B, h, m)"""
        return style_embedding(reference, self.tokens, self.W_Q, self.W_K, self.W_V, self.h)

    def mix(self, weights):
        """The embedding of weights set by hand, without a reference: (B, h, m)  ->  (B, d_model)"""
        V = (torch.tanh(self.tokens) @ self.W_V).unflatten(-1, (self.h, -1))    # (m, h, d_model / h)
        return torch.einsum("bhm,mhd->bhd", weights, V).flatten(1)              # (B, d_model)

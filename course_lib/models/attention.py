"""Attention: a sum of values, weighted by how well each key answers the query.  Lessons 04, 05, 08 and 09

Every attention here returns `(output, weights)`; a mask is Boolean, True = may attend.
"""

import math

import torch
from torch import nn


def attention(Q, K, V, mask=None):
    """softmax(Q K^T / sqrt(d_k)) V, and the weights.  Vaswani et al. 2017, eq. 1

    Q (..., n, d_k)  K (..., m, d_k)  V (..., m, d_v)  mask (..., n, m): True = may attend
    """
    d_k = Q.size(-1)
    scores = Q @ K.transpose(-2, -1) / math.sqrt(d_k)             # (..., n, m)
    if mask is not None:
        scores = scores + torch.where(mask, 0.0, -math.inf)       # exp(-inf) = 0
    weights = scores.softmax(dim=-1)                              # (..., n, m), rows sum to 1
    return weights @ V, weights                                   # (..., n, d_v), (..., n, m)


def softmax(x, dim=-1):
    """exp(x) / sum of exp(x) along dim, with the maximum subtracted first, so that exp cannot overflow.

    x of any shape  ->  the same shape, positive, sums along dim are 1
    """
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))              # the largest is exp(0) = 1
    return e / e.sum(dim=dim, keepdim=True)


def softmax_jacobian(p):
    """dp_i/dx_j = p_i (1 if i = j else 0) - p_i p_j, where p = softmax(x).

    p (..., n)  ->  (..., n, n), symmetric, rows sum to 0
    """
    return torch.diag_embed(p) - p[..., :, None] * p[..., None, :]    # (..., n, n)


def additive_score(s, H, W_s, W_h, v):
    """e_j = tanh(s W_s + h_j W_h) · v, for every word j.  Bahdanau et al. 2015, appendix A.1.2

    s (B, d_s)  H (B, m, d_h)  W_s (d_s, d_a)  W_h (d_h, d_a)  v (d_a,)  ->  e (B, m)
    """
    hidden = torch.tanh((s @ W_s)[:, None] + H @ W_h)             # (B, m, d_a)
    return hidden @ v                                             # (B, m)


def dot_score(s, H):
    """e_j = s · h_j.  Luong et al. 2015, section 3.1

    s (B, d)  H (B, m, d)  ->  e (B, m)
    """
    return (H @ s[:, :, None])[..., 0]                            # (B, m)


def general_score(s, H, W):
    """e_j = (s W) · h_j.  Luong et al. 2015, section 3.1

    s (B, d_s)  H (B, m, d_h)  W (d_s, d_h)  ->  e (B, m)
    """
    return dot_score(s @ W, H)                                    # (B, m)


def attend(e, H, mask=None):
    """c = sum_j a_j h_j with a = softmax(e).  Bahdanau et al. 2015, eqs. 5 and 6

    e (B, m)  H (B, m, d_h)  mask (B, m): True = may attend  ->  context (B, d_h), weights (B, m)
    """
    if mask is not None:
        e = e.masked_fill(~mask, -math.inf)                       # exp(-inf) = 0
    weights = e.softmax(dim=-1)                                   # (B, m), rows sum to 1
    return (weights[:, None] @ H)[:, 0], weights                  # (B, d_h), (B, m)


def attentional_state(context, s, W_c):
    """tanh([c; s] W_c): the context first.  Luong et al. 2015, eq. 5

    context (B, d_h)  s (B, d_s)  W_c (d_h + d_s, d_s)  ->  (B, d_s)
    """
    return torch.tanh(torch.cat([context, s], dim=-1) @ W_c)      # (B, d_s)


def self_attention(X, W_Q, W_K, W_V, mask=None):
    """attention(X W_Q, X W_K, X W_V): one source, three projections.  Vaswani et al. 2017, section 3.2.3

    X (B, n, d_model)  W_Q, W_K (d_model, d_k)  W_V (d_model, d_v)  mask (n, n) or (B, 1 or n, n)
    ->  output (B, n, d_v), weights (B, n, n)
    """
    return attention(X @ W_Q, X @ W_K, X @ W_V, mask)


def causal_mask(n):
    """mask[i, j] = (j <= i): position i may attend to itself and to what came before.  (n, n), Boolean"""
    return torch.ones(n, n, dtype=torch.bool).tril()


def padding_mask(lengths, m):
    """mask[b, 0, j] = (j < lengths[b]): all may attend to a sentence's words, nobody to its padding.

    lengths (B,)  m: the padded length  ->  (B, 1, m), Boolean; the 1 stands for every query
    """
    return (torch.arange(m) < lengths[:, None])[:, None]          # (B, 1, m)


def attend_with_cache(Q_t, K_t, V_t, cache=None):
    """Attention of the newest position to itself and to all before it, whose keys and values are kept.

    Q_t, K_t (..., 1, d_k)  V_t (..., 1, d_v)  cache: None at the first step, then (K, V) of the step before
    ->  output (..., 1, d_v), the cache (K (..., t, d_k), V (..., t, d_v)) for the next step
    """
    K, V = (K_t, V_t) if cache is None else (torch.cat([old, new], dim=-2)
                                             for old, new in zip(cache, (K_t, V_t), strict=True))
    return attention(Q_t, K, V)[0], (K, V)


def leakage(f, X, i):
    """How much output i depends on each input: the Frobenius norm of df(X)[i] / dX[j], for j = 0 .. n-1.

    f maps (n, d) to (n, d')  X (n, d)  i: a position  ->  (n,); 0 where f(X)[i] does not depend on X[j]
    """
    jacobian = torch.autograd.functional.jacobian(lambda X: f(X)[i], X.detach())    # (d', n, d)
    return jacobian.pow(2).sum(dim=(0, 2)).sqrt()                 # (n,)


def split_heads(X, h):
    """The h slices of width d_model / h, each a sequence of its own.  Vaswani et al. 2017, section 3.2.2

    X (B, n, d_model)  ->  (B, h, n, d_k)
    """
    B, n, d_model = X.shape
    return X.view(B, n, h, d_model // h).transpose(1, 2)          # (B, n, h, d_k), then (B, h, n, d_k)


def merge_heads(X):
    """Concat(head_1, .., head_h): the inverse of split_heads.  X (B, h, n, d_k)  ->  (B, n, d_model)"""
    return X.transpose(1, 2).flatten(2)                           # (B, n, h, d_k), then (B, n, d_model)


class MultiHeadAttention(nn.Module):
    """Concat(head_1, .., head_h) W_O, head_i = attention of slice i.  Vaswani et al. 2017, section 3.2.2

    MultiHeadAttention(d_model, h); the columns of W_Q of all heads stand side by side in one matrix, as
    do those of W_K and W_V.
    """

    def __init__(self, d_model, h):
        super().__init__()
        if d_model % h:
            raise ValueError(f"d_model = {d_model} cannot be split evenly among h = {h} heads: lesson 09")
        self.h = h
        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, q, k, v, mask=None):
        """q (B, n, d_model)  k, v (B, m, d_model)  mask (n, m), (B, n, m) or (B, 1, m): True = may attend

        ->  output (B, n, d_model), weights (B, h, n, m)
        """
        Q, K, V = (split_heads(X, self.h) for X in (self.W_Q(q), self.W_K(k), self.W_V(v)))
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]                                  # (B, 1, n, m): the same for every head
        output, weights = attention(Q, K, V, mask)                # (B, h, n, d_k), (B, h, n, m)
        return self.W_O(merge_heads(output)), weights

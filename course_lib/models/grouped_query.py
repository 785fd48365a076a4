"""Grouped-query attention: several query heads share the keys and values of one head.  Lesson 09"""

from torch import nn

from .attention import attention, merge_heads, split_heads


class GroupedQueryAttention(nn.Module):
    """h query heads, h_kv heads of keys and values.  Ainslie et al. 2023, section 2.2

    GroupedQueryAttention(d_model, h, h_kv); query heads 0 .. h / h_kv - 1 use head 0 of the keys and values,
    the next h / h_kv head 1, and so on.  h_kv = h is multi-head attention, h_kv = 1 multi-query attention.
    """

    def __init__(self, d_model, h, h_kv):
        super().__init__()
        if d_model % h or h % h_kv:
            raise ValueError(f"h = {h} must divide d_model = {d_model}, and h_kv = {h_kv} must divide h")
        self.h, self.h_kv = h, h_kv
        self.W_Q, self.W_O = (nn.Linear(d_model, d_model, bias=False) for _ in range(2))
        self.W_K, self.W_V = (nn.Linear(d_model, h_kv * d_model // h, bias=False) for _ in range(2))

    def forward(self, q, k, v, mask=None):
        """q (B, n, d_model)  k, v (B, m, d_model)  mask (n, m), (B, n, m) or (B, 1, m): True = may attend

        ->  output (B, n, d_model), weights (B, h, n, m)
        """
        Q = split_heads(self.W_Q(q), self.h)                                       # (B, h, n, d_k)
        K, V = (split_heads(X, self.h_kv).repeat_interleave(self.h // self.h_kv, dim=1)
                for X in (self.W_K(k), self.W_V(v)))                               # (B, h, m, d_k)
        if mask is not None and mask.dim() == 3:
            mask = mask[:, None]                                                   # (B, 1, n, m)
        output, weights = attention(Q, K, V, mask)
        return self.W_O(merge_heads(output)), weights

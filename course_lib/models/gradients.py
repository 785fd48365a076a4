"""Gradients by hand: what autograd does, written out as matrix products.  Exercise 05"""

import math


def attention_backward(Q, K, V, grad_output):
    """The gradients of L to Q, K and V, from its gradient to the output of scaled dot-product attention.

    With A = softmax(Q K^T / sqrt(d_k)) and Y = A V:  dV = A^T dY,  dA = dY V^T,
    dS = A * (dA - rowsum(A * dA)),  dQ = dS K / sqrt(d_k),  dK = dS^T Q / sqrt(d_k).

    Q (..., n, d_k)  K (..., m, d_k)  V (..., m, d_v)  grad_output (..., n, d_v)  ->  the shapes of Q, K and V
    """
    scale = 1 / math.sqrt(Q.size(-1))
    weights = (scale * Q @ K.transpose(-2, -1)).softmax(dim=-1)                        # (..., n, m)
    grad_weights = grad_output @ V.transpose(-2, -1)                                   # (..., n, m)
    mean = (weights * grad_weights).sum(dim=-1, keepdim=True)                          # (..., n, 1)
    grad_scores = scale * weights * (grad_weights - mean)                              # (..., n, m)
    return grad_scores @ K, grad_scores.transpose(-2, -1) @ Q, weights.transpose(-2, -1) @ grad_output

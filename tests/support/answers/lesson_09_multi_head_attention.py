"""Answers to exercise 09 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from answers import right, wrong

# ---------------------------------------------------------------- split_heads

def split(X, h):
    return torch.stack(X.chunk(h, dim=-1), dim=1)


right("split_heads")(split)
right("split_heads")(lambda X, h: X.reshape(*X.shape[:2], h, -1).permute(0, 2, 1, 3).contiguous())
right("split_heads")(lambda X, h: torch.einsum("bnhk->bhnk", X.unflatten(2, (h, -1))))


@right("split_heads")
def head_by_head(X, h):
    d_k = X.shape[2] // h
    return torch.cat([X[:, None, :, i * d_k:(i + 1) * d_k] for i in range(h)], dim=1)


wrong("split_heads")(lambda X, h: 2 * split(X, h))
wrong("split_heads")(lambda X, h: split(X, h).flip(2))
wrong("split_heads")(lambda X, h: split(X, h).flip(3))
wrong("split_heads")(lambda X, h: split(X, h).detach())
wrong("split_heads")(lambda X, h: split(X.flip(0), h) + 1)
wrong("split_heads")(lambda X, h: split(X, h) / h + 1)
wrong("split_heads")(lambda X, h: split(X, h).mean(dim=1))
wrong("split_heads")(lambda X, h: split(X.double(), h).half())
wrong("split_heads")(lambda X, h: split(X, h).squeeze()[..., None])
wrong("split_heads")(lambda X, h: split(X, 2))


@wrong("split_heads")
def changes_x(X, h):
    heads = split(X, h)
    with torch.no_grad():
        X += 1
    return heads


# ---------------------------------------------------------------- merge_heads

def merge(X):
    return torch.cat([X[:, i] for i in range(X.size(1))], dim=-1)


right("merge_heads")(merge)
right("merge_heads")(lambda X: X.permute(0, 2, 1, 3).reshape(X.size(0), X.size(2), -1))
right("merge_heads")(lambda X: X.transpose(1, 2).contiguous().view(len(X), X.size(2), X.size(1) * X.size(3)))
right("merge_heads")(lambda X: torch.cat(X.unbind(1), 2))

wrong("merge_heads")(lambda X: 2 * merge(X))
wrong("merge_heads")(lambda X: merge(X).flip(1))
wrong("merge_heads")(lambda X: merge(X).flip(-1))
wrong("merge_heads")(lambda X: merge(X).detach())
wrong("merge_heads")(lambda X: merge(X) / X.size(1) + 1)
wrong("merge_heads")(lambda X: merge(X)[:, :1])
wrong("merge_heads")(lambda X: X.amax(dim=1))
wrong("merge_heads")(lambda X: merge(X).half())
wrong("merge_heads")(lambda X: [merge(X)])
wrong("merge_heads")(lambda X: merge(X.roll(1, dims=1)) + 1)


# ---------------------------------------------------------------- MultiHeadAttention

class Right(nn.Module):
    """Plain and right; the wrong ones below change one line each."""

    def __init__(self, d_model, h):
        super().__init__()
        self.h = h
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def heads(self, X):
        return X.view(X.size(0), X.size(1), self.h, -1).transpose(1, 2)

    def share(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~(mask if mask.dim() == 2 else mask.unsqueeze(1)), float("-inf"))
        return F.softmax(scores, dim=-1)

    def forward(self, q, k, v, mask=None):
        Q, K, V = self.heads(self.W_Q(q)), self.heads(self.W_K(k)), self.heads(self.W_V(v))
        weights = self.share(Q @ K.mT / math.sqrt(Q.size(-1)), mask)
        return self.W_O((weights @ V).transpose(1, 2).flatten(2)), weights


right("MultiHeadAttention")(Right)


@right("MultiHeadAttention")
class HeadByHead(Right):
    def forward(self, q, k, v, mask=None):
        d_k = q.size(-1) // self.h
        Q, K, V = self.W_Q(q), self.W_K(k), self.W_V(v)
        outputs, weights = [], []
        for i in range(self.h):
            mine = slice(i * d_k, (i + 1) * d_k)
            scores = torch.bmm(Q[..., mine], K[..., mine].transpose(1, 2)) / d_k ** 0.5
            if mask is not None:
                scores = scores.masked_fill(mask.logical_not(), -math.inf)
            weights.append(scores.softmax(-1))
            outputs.append(weights[-1] @ V[..., mine])
        return self.W_O(torch.cat(outputs, dim=-1)), torch.stack(weights, dim=1)


@right("MultiHeadAttention")
class ByEinsum(Right):
    def forward(self, q, k, v, mask=None):
        Q, K, V = (torch.einsum("bnd,ed->bne", x, W.weight).unflatten(-1, (self.h, -1))
                   for x, W in ((q, self.W_Q), (k, self.W_K), (v, self.W_V)))
        scores = torch.einsum("bnhk,bmhk->bhnm", Q, K) * Q.size(-1) ** -0.5
        if mask is not None:
            mask = mask.expand(q.size(0), q.size(1), k.size(1))[:, None]
            scores = scores + torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -1e9)
        weights = scores.softmax(dim=3)
        return self.W_O(torch.einsum("bhnm,bmhk->bnhk", weights, V).flatten(2)), weights


@right("MultiHeadAttention")
class ContributionsAdded(Right):
    def forward(self, q, k, v, mask=None):
        _, weights = super().forward(q, k, v, mask)
        V = self.heads(self.W_V(v))
        rows = self.W_O.weight.T.unflatten(0, (self.h, -1))
        return [sum(weights[:, i] @ V[:, i] @ rows[i] for i in range(self.h)), weights]


@right("MultiHeadAttention")
class BatchTimesHeads(Right):
    def forward(self, q, k, v, mask=None):
        Q, K, V = (self.heads(W(x)).flatten(0, 1) for W, x in ((self.W_Q, q), (self.W_K, k), (self.W_V, v)))
        scores = torch.bmm(Q, K.mT) / math.sqrt(Q.size(-1))                # (B h, n, m)
        if mask is not None:
            mask = mask.expand(len(q), q.size(1), k.size(1)).repeat_interleave(self.h, dim=0)
            scores = scores.masked_fill(~mask, -math.inf)
        weights = scores.softmax(-1)
        output = torch.bmm(weights, V).unflatten(0, (-1, self.h))
        return self.W_O(output.transpose(1, 2).flatten(2)), weights.unflatten(0, (-1, self.h))


def changed(change):
    class Changed(Right):
        def forward(self, q, k, v, mask=None):
            return change(super().forward, q, k, v, mask)
    return Changed


wrong("MultiHeadAttention")(changed(lambda f, q, k, v, mask: (2 * f(q, k, v, mask)[0], f(q, k, v, mask)[1])))
wrong("MultiHeadAttention")(changed(lambda f, q, k, v, mask: f(-q, k, v, mask)))
wrong("MultiHeadAttention")(changed(lambda f, q, k, v, mask: f(q, k, v.flip(1), mask)))
wrong("MultiHeadAttention")(changed(lambda f, q, k, v, mask: f(q.detach(), k, v, mask)))
wrong("MultiHeadAttention")(changed(lambda f, *rest: (f(*rest)[0].relu(), f(*rest)[1])))
wrong("MultiHeadAttention")(changed(lambda f, *rest: (f(*rest)[0], f(*rest)[1].detach())))
wrong("MultiHeadAttention")(changed(lambda f, *rest: (f(*rest)[0], f(*rest)[1].flip(1))))
wrong("MultiHeadAttention")(changed(lambda f, q, k, v, mask: f(q, k, v)
                                    if mask is not None and mask.dim() == 3 else f(q, k, v, mask)))


@wrong("MultiHeadAttention")
class OtherNames(Right):
    def __init__(self, d_model, h):
        super().__init__(d_model, h)
        self.q_proj = self.W_Q
        del self.W_Q

    def forward(self, q, k, v, mask=None):
        return q, k


@wrong("MultiHeadAttention")
class NoModule:
    def __init__(self, d_model, h):
        self.h = h


@wrong("MultiHeadAttention")
class NoForward(nn.Module):
    def __init__(self, d_model, h):
        super().__init__()
        self.W_Q, self.W_K, self.W_V, self.W_O = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))


@wrong("MultiHeadAttention")
class NarrowProjections(Right):
    def __init__(self, d_model, h):
        super().__init__(d_model, h)
        self.W_Q = nn.Linear(d_model, d_model // h, bias=False)


@wrong("MultiHeadAttention")
class DropoutInTraining(Right):
    def forward(self, q, k, v, mask=None):
        output, weights = super().forward(q, k, v, mask)
        return (0.5 * output if self.training else output), weights


@wrong("MultiHeadAttention")
class SquaredWeights(Right):
    def share(self, scores, mask):
        return super().share(scores, mask) ** 2


# ---------------------------------------------------------------- GroupedQueryAttention

class Grouped(nn.Module):
    """Keys and values broadcast over an axis for the members of a group."""

    def __init__(self, d_model, h, h_kv):
        super().__init__()
        self.h, self.h_kv, self.d_k = h, h_kv, d_model // h
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, h_kv * self.d_k, bias=False)
        self.W_V = nn.Linear(d_model, h_kv * self.d_k, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def share(self, scores):
        return scores.softmax(-1)

    def forward(self, q, k, v, mask=None):
        Q = self.W_Q(q).unflatten(-1, (self.h_kv, -1, self.d_k))                   # (B, n, h_kv, group, d_k)
        K, V = (W(x).unflatten(-1, (self.h_kv, self.d_k)) for W, x in ((self.W_K, k), (self.W_V, v)))
        scores = torch.einsum("bngid,bmgd->bginm", Q, K) / math.sqrt(self.d_k)
        if mask is not None:
            mask = mask.expand(q.size(0), q.size(1), k.size(1))[:, None, None]
            scores = scores.masked_fill(~mask, -math.inf)
        weights = self.share(scores)                                               # (B, h_kv, group, n, m)
        output = torch.einsum("bginm,bmgd->bngid", weights, V).flatten(2)
        return self.W_O(output), weights.flatten(1, 2)


right("GroupedQueryAttention")(Grouped)


@right("GroupedQueryAttention")
class HeadsOneByOne(Grouped):
    def forward(self, q, k, v, mask=None):
        Q, K, V = (W(x).split(self.d_k, dim=-1) for W, x in ((self.W_Q, q), (self.W_K, k), (self.W_V, v)))
        outputs, weights = [], []
        for i in range(self.h):
            shared = i // (self.h // self.h_kv)
            scores = Q[i] @ K[shared].mT * self.d_k ** -0.5
            weights.append((scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(-1))
            outputs.append(weights[-1] @ V[shared])
        return self.W_O(torch.cat(outputs, -1)), torch.stack(weights, dim=1)


@right("GroupedQueryAttention")
class WiderMatrices(Grouped):
    """The rows of W_K and W_V repeated, then multi-head attention."""

    def forward(self, q, k, v, mask=None):
        whole = Right(q.size(-1), self.h)
        whole.W_Q, whole.W_O = self.W_Q, self.W_O
        wide = [W.weight.unflatten(0, (self.h_kv, -1)).repeat_interleave(self.h // self.h_kv, 0).flatten(0, 1)
                for W in (self.W_K, self.W_V)]
        K, V = k @ wide[0].T, v @ wide[1].T
        whole.W_K = whole.W_V = nn.Identity()
        return whole(q, K, V, mask)


def changed_groups(change):
    class Changed(Grouped):
        def forward(self, q, k, v, mask=None):
            return change(super().forward, q, k, v, mask)
    wrong("GroupedQueryAttention")(Changed)


changed_groups(lambda f, *rest: (2 * f(*rest)[0], f(*rest)[1]))
changed_groups(lambda f, q, k, v, mask: f(-q, k, v, mask))
changed_groups(lambda f, q, k, v, mask: f(q, k, v.flip(1), mask))
changed_groups(lambda f, q, k, v, mask: f(q.detach(), k, v, mask))
changed_groups(lambda f, *rest: (f(*rest)[0].relu(), f(*rest)[1]))
changed_groups(lambda f, *rest: (f(*rest)[0], f(*rest)[1].flip(1)))
changed_groups(lambda f, *rest: (f(*rest)[0] + rest[0], f(*rest)[1]))


# ---------------------------------------------------------------- parallel_heads

def parallel(X, W_Q, W_K, W_V, W_O, h, mask=None, change=lambda weights: weights):
    Q, K, V = (split(X @ W, h) for W in (W_Q, W_K, W_V))
    scores = Q @ K.mT / math.sqrt(Q.size(-1))
    weights = change((scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(-1))
    return (weights @ V).permute(0, 2, 1, 3).flatten(2) @ W_O, weights


right("parallel_heads")(parallel)


@right("parallel_heads")
def columns_of_each_head(X, W_Q, W_K, W_V, W_O, h, mask=None):
    found = [one_head(X, *matrices, mask) for matrices in zip(
        *(W.chunk(h, dim=1) for W in (W_Q, W_K, W_V)), W_O.chunk(h), strict=True)]
    return sum(output for output, _ in found), torch.stack([weights for _, weights in found], dim=1)


def one_head(X, W_Q, W_K, W_V, W_O, mask):
    scores = X @ W_Q @ (X @ W_K).mT / W_Q.size(1) ** 0.5
    weights = (scores if mask is None else scores.masked_fill(~mask, -math.inf)).softmax(-1)
    return weights @ X @ W_V @ W_O, weights


@right("parallel_heads")
def by_einsum_in_parallel(X, W_Q, W_K, W_V, W_O, h, mask=None):
    Q, K, V = (torch.einsum("bnd,dhk->bhnk", X, W.unflatten(1, (h, -1))) for W in (W_Q, W_K, W_V))
    scores = torch.einsum("bhnk,bhmk->bhnm", Q, K) / Q.size(-1) ** 0.5
    if mask is not None:
        scores = scores + torch.zeros(mask.shape, dtype=X.dtype).masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("bhnm,bhmk,hkd->bnd", weights, V, W_O.unflatten(0, (h, -1))), weights


wrong("parallel_heads")(lambda *given: parallel(*given, change=torch.square))
wrong("parallel_heads")(lambda *given: parallel(*given, change=torch.sqrt))
wrong("parallel_heads")(lambda *given: parallel(*given, change=lambda weights: weights.flip(1)))
wrong("parallel_heads")(lambda *given: (parallel(*given)[0], parallel(*given)[1].mean(dim=1)))
wrong("parallel_heads")(lambda X, *rest: (parallel(X, *rest)[0] + X, parallel(X, *rest)[1]))
wrong("parallel_heads")(lambda X, W_Q, W_K, *rest: parallel(X, W_K, W_Q, *rest))
wrong("parallel_heads")(lambda X, *rest: parallel(2 * X, *rest))
wrong("parallel_heads")(lambda *given: parallel(*given)[0])

"""Answers to exercise 08 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math

import torch
import torch.nn.functional as F

from answers import right, wrong

# ---------------------------------------------------------------- causal_mask

def causal(n):
    return torch.arange(n)[:, None] >= torch.arange(n)


right("causal_mask")(causal)
right("causal_mask")(lambda n: torch.tensor([[j <= i for j in range(n)] for i in range(n)]))
right("causal_mask")(lambda n: ~torch.ones(n, n).triu(diagonal=1).bool())
right("causal_mask")(lambda n: torch.tril(torch.ones((n, n))) == 1)

wrong("causal_mask")(lambda n: causal(n + 1))
wrong("causal_mask")(lambda n: causal(n - 1))
wrong("causal_mask")(lambda n: causal(n).flip(0))
wrong("causal_mask")(lambda n: causal(n).tolist())
wrong("causal_mask")(lambda n: causal(n) & ~causal(n).tril(-2))
wrong("causal_mask")(lambda n: causal(n)[0])
wrong("causal_mask")(lambda n: causal(n).double())
wrong("causal_mask")(lambda n: torch.zeros(n, n, dtype=torch.bool))
wrong("causal_mask")(lambda n: causal(n)[None, None])
wrong("causal_mask")(lambda n: causal(4))


# ---------------------------------------------------------------- padding_mask

def padding(lengths, m):
    return torch.arange(m)[None, None, :] < lengths[:, None, None]


right("padding_mask")(padding)
right("padding_mask")(lambda lengths, m: torch.tensor(
    [[[j < length for j in range(m)]] for length in lengths.tolist()]))
right("padding_mask")(lambda lengths, m: torch.stack(
    [(torch.arange(m) < length).unsqueeze(0) for length in lengths]))


@right("padding_mask")
def filled_in(lengths, m):
    mask = torch.zeros(len(lengths), 1, m, dtype=torch.bool)
    for b, length in enumerate(lengths):
        mask[b, :, :length] = True
    return mask


wrong("padding_mask")(lambda lengths, m: padding(lengths, m + 1))
wrong("padding_mask")(lambda lengths, m: padding(lengths, m).tolist())
wrong("padding_mask")(lambda lengths, m: padding(lengths.flip(0) + 1, m))
wrong("padding_mask")(lambda lengths, m: padding(lengths * 0 + m, m))
wrong("padding_mask")(lambda lengths, m: padding(lengths.max().expand(len(lengths)), m))
wrong("padding_mask")(lambda lengths, m: padding(lengths.min().expand(len(lengths)), m))
wrong("padding_mask")(lambda lengths, m: torch.arange(m) == lengths[:, None, None] - 1)
wrong("padding_mask")(lambda lengths, m: padding(lengths, m) & causal(m))
wrong("padding_mask")(lambda lengths, m: padding(lengths, m).double())
wrong("padding_mask")(lambda lengths, m: padding(lengths, m)[0])


@wrong("padding_mask")
def changes_lengths(lengths, m):
    mask = padding(lengths, m)
    lengths -= 1
    return mask


# ---------------------------------------------------------------- self_attention

def attend(X, W_Q, W_K, W_V, mask=None, scale=None, change=lambda weights: weights):
    scores = torch.einsum("bnd,dk,bme,ek->bnm", X, W_Q, X, W_K) / (scale or W_K.shape[1] ** 0.5)
    if mask is not None:
        scores = torch.where(mask, scores, torch.tensor(float("-inf"), dtype=scores.dtype))
    weights = change(torch.softmax(scores, -1))
    return torch.einsum("bnm,bmd,dv->bnv", weights, X, W_V), weights


right("self_attention")(attend)


@right("self_attention")
def sentence_by_sentence(X, W_Q, W_K, W_V, mask=None):
    results = []
    for b, x in enumerate(X):
        scores = (x @ W_Q) @ (x @ W_K).T / math.sqrt(W_Q.size(1))
        if mask is not None:
            allowed = mask if mask.dim() == 2 else mask[b]
            scores = scores.masked_fill(allowed == False, -math.inf)    # noqa: E712
        weights = F.softmax(scores, dim=1)
        results.append((weights @ (x @ W_V), weights))
    return tuple(map(torch.stack, zip(*results, strict=True)))


@right("self_attention")
def projected_at_once(X, W_Q, W_K, W_V, mask=None):
    d_k = W_Q.size(1)
    Q, K, V = (X @ torch.cat([W_Q, W_K, W_V], dim=1)).split([d_k, d_k, W_V.size(1)], dim=-1)
    scores = torch.bmm(Q * d_k ** -0.5, K.mT)
    if mask is not None:
        scores = scores + (~mask).to(scores) * -1e9
    weights = torch.exp(scores - scores.max(-1, keepdim=True).values)
    weights = weights / weights.sum(-1, keepdim=True)
    return weights @ V, weights


@right("self_attention")
def mixed_before_projecting(X, W_Q, W_K, W_V, mask=None):
    weights = (X @ (W_Q @ W_K.T) @ X.transpose(1, 2)).div(math.sqrt(W_K.size(-1)))
    if mask is not None:
        weights = weights.masked_fill(torch.logical_not(mask), -torch.inf)
    weights = weights.softmax(2)
    return [weights @ X @ W_V, weights]


wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X, -Q, K, V, mask))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X, Q, K, 2 * V, mask))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X, Q, K, V, mask, scale=2 * Q.size(1) ** 0.5))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X, Q, K, V, mask, change=lambda w: w * w))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X, Q, K, V, mask, change=lambda w: w.mT))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X.flip(1), Q, K, V, mask))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X.abs(), Q, K, V, mask))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X.tanh(), Q, K, V, mask))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(F.normalize(X, dim=-1), Q, K, V, mask))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X.detach(), Q, K, V, mask))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X, Q.detach(), K, V, mask))
wrong("self_attention")(lambda *given: (attend(*given)[0][0], attend(*given)[1]))
wrong("self_attention")(lambda X, Q, K, V, mask=None: attend(X, Q, K, V, None if mask is None else mask.mT))
wrong("self_attention")(lambda *given: (attend(*given)[0].relu(), attend(*given)[1]))


# ---------------------------------------------------------------- leakage

def by_rows(f, X, i, norm=lambda J: J.pow(2).sum(dim=(0, 2)).sqrt()):
    """One gradient for each number of f(X)[i]; norm of the Jacobian (d', n, d)."""
    X = X.detach().clone().requires_grad_(True)
    y = f(X)[i]
    return norm(torch.stack([torch.autograd.grad(number, X, retain_graph=True)[0] for number in y]))


right("leakage")(by_rows)


@right("leakage")
def by_backward(f, X, i):
    total = torch.zeros(len(X), dtype=X.dtype)
    for k in range(f(X).shape[1]):
        copy = X.clone().detach().requires_grad_()
        f(copy)[i, k].backward()
        total = total + (copy.grad ** 2).sum(dim=1)
    return total ** 0.5


@right("leakage")
def by_jacrev(f, X, i):
    return torch.linalg.matrix_norm(torch.func.jacrev(f)(X)[i].transpose(0, 1))


@right("leakage")
def whole_jacobian(f, X, i):
    J = torch.autograd.functional.jacobian(f, X)                 # (n, d', n, d)
    return torch.stack([J[i, :, j].norm() for j in range(X.size(0))])


@right("leakage")
def left_and_put_back(f, X, i):
    X.requires_grad_(True)
    try:
        return by_rows(f, X, i)
    finally:
        X.requires_grad_(False)


wrong("leakage")(lambda f, X, i: 2 * by_rows(f, X, i))
wrong("leakage")(lambda f, X, i: by_rows(f, X, i).flip(0) + 1)
wrong("leakage")(lambda f, X, i: by_rows(f, 2 * X, i))
wrong("leakage")(lambda f, X, i: by_rows(f, X.abs(), i))
wrong("leakage")(lambda f, X, i: by_rows(f, X, i)[None])
wrong("leakage")(lambda f, X, i: by_rows(f, X, i).tolist())
wrong("leakage")(lambda f, X, i: by_rows(f, X, i, lambda J: J.abs().amax(dim=(0, 2))))
wrong("leakage")(lambda f, X, i: by_rows(f, X, i).log())
wrong("leakage")(lambda f, X, i: by_rows(f, X, i) / by_rows(f, X, i).sum())
wrong("leakage")(lambda f, X, i: f(X).norm(dim=1))
wrong("leakage")(lambda f, X, i: by_rows(f, X, i).double().float().half())


@wrong("leakage")
def changes_x(f, X, i):
    norms = by_rows(f, X, i)
    X += 1
    return norms


# ---------------------------------------------------------------- sliding_window_mask

def near(n, window, change=lambda i, j, window: i - window < j <= i):
    return torch.tensor([[change(i, j, window) for j in range(n)] for i in range(n)]).view(n, n)


right("sliding_window_mask")(near)


@right("sliding_window_mask")
def two_triangles(n, window):
    lower = torch.ones(n, n, dtype=torch.bool).tril()
    return lower & ~lower.tril(-window)


@right("sliding_window_mask")
def bands(n, window):
    mask = torch.zeros(n, n)
    for back in range(min(window, n)):
        mask += torch.diag(torch.ones(n - back), -back)
    return mask > 0


wrong("sliding_window_mask")(lambda n, window: near(n, 2 * window))
wrong("sliding_window_mask")(lambda n, window: near(n, window)[None])
wrong("sliding_window_mask")(lambda n, window: near(n, window, lambda i, j, w: (i - j) % w == 0))
wrong("sliding_window_mask")(lambda n, window: near(n, window, lambda i, j, w: j <= i and (i - j) % 2 == 0))
wrong("sliding_window_mask")(lambda n, window: near(n, window + 2))
wrong("sliding_window_mask")(lambda n, window: near(n, window).tolist())
wrong("sliding_window_mask")(lambda n, window: near(n, window).flip(0))


# ---------------------------------------------------------------- packed_mask

@right("packed_mask")
def pair_by_pair(documents):
    n = documents.size(1)
    return torch.tensor([[[j <= i and bool(row[i] == row[j]) for j in range(n)] for i in range(n)]
                         for row in documents])


@right("packed_mask")
def by_difference(documents):
    apart = documents.unsqueeze(2) - documents.unsqueeze(1)
    n = documents.size(1)
    return (apart == 0) & torch.ones(n, n, dtype=torch.bool).tril()


@right("packed_mask")
def by_starts(documents):
    """Each position may look back to where its run begins."""
    n = documents.size(1)
    places = torch.arange(n)
    new = torch.ones_like(documents, dtype=torch.bool)
    new[:, 1:] = documents[:, 1:] != documents[:, :-1]
    start = (new * places).cummax(dim=1).values
    return (places >= start[..., None]) & (places <= places[:, None])


@right("packed_mask")
def by_one_hot(documents):
    hot = torch.nn.functional.one_hot(documents).float()
    return torch.tril(hot @ hot.mT).bool()


wrong("packed_mask")(lambda documents: by_difference(documents.flip(1)))
wrong("packed_mask")(lambda documents: by_difference(documents)[:, :, :-1])
wrong("packed_mask")(lambda documents: by_difference(documents).transpose(0, 1))
wrong("packed_mask")(lambda documents: by_difference(documents // 2))
wrong("packed_mask")(lambda documents: by_difference(documents % 2))
wrong("packed_mask")(lambda documents: by_difference(documents).any(dim=0))
wrong("packed_mask")(lambda documents: by_difference(documents) & (documents > documents.min())[:, None])


# ---------------------------------------------------------------- language_features

def features(X, W_Q, W_K, W_V, change=lambda scores: scores):
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    n = X.size(-2)
    scores = change(Q @ K.mT / math.sqrt(Q.size(-1)))
    return scores.masked_fill(torch.ones(n, n).triu(1) > 0, -math.inf).softmax(-1) @ V


right("language_features")(features)


@right("language_features")
def word_by_word(X, W_Q, W_K, W_V):
    found = []
    for i in range(X.size(-2)):
        past = X[..., :i + 1, :]
        scores = (past @ W_K) @ (X[..., i, :] @ W_Q)[..., None] / W_Q.size(1) ** 0.5
        found.append((scores.softmax(-2) * (past @ W_V)).sum(-2))
    return torch.stack(found, dim=-2)


@right("language_features")
def centred_keys_change_nothing(X, W_Q, W_K, W_V):
    K = X @ W_K
    scores = (X @ W_Q) @ (K - K.mean(-2, keepdim=True).detach()).mT / math.sqrt(K.size(-1))
    scores = scores + torch.full(scores.shape[-2:], -math.inf, dtype=X.dtype).triu(1)
    return torch.softmax(scores, -1) @ (X @ W_V)


wrong("language_features")(lambda X, *W: features(2 * X, *W))
wrong("language_features")(lambda X, *W: features(X / X.std(dim=-2, keepdim=True), *W))
wrong("language_features")(lambda X, *W: features(X - X[..., :1, :], *W))
wrong("language_features")(lambda X, *W: features(X - X.mean(dim=-2, keepdim=True) / 2, *W))
wrong("language_features")(lambda X, *W: features(X, *W) + X.mean(dim=-2, keepdim=True).sum())
wrong("language_features")(lambda X, *W: features(X, *W, change=lambda scores: 2 * scores))
wrong("language_features")(lambda X, *W: features(X, *W, change=torch.tanh))
wrong("language_features")(lambda X, *W: features(X, *W).detach())

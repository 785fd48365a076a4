"""Answers to exercise 05 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math

import torch
import torch.nn.functional as F

from answers import right, wrong

# ---------------------------------------------------------------- softmax

def share(x, dim=-1):
    e = (x - x.max(dim=dim, keepdim=True).values).exp()
    return e / e.sum(dim, keepdim=True)


@right("softmax")
def by_logsumexp(x, dim=-1):
    x = x - x.max(dim, keepdim=True)[0]
    return torch.exp(x - x.logsumexp(dim, keepdim=True))


@right("softmax")
def by_pairs(x, dim=-1):
    """1 / sum over k of exp(x_k - x_i): no maximum; beyond 80 the share is 0 anyhow."""
    x = x.movedim(dim, -1)
    ahead = (x[..., None, :] - x[..., :, None]).clamp(max=80)    # [i, k] = x_k - x_i
    return (1 / torch.exp(ahead).sum(dim=-1)).movedim(-1, dim)


@right("softmax")
def last_axis_first(x, dim=-1):
    moved = x.transpose(dim, 0)
    e = torch.exp(moved - moved.detach().amax(0))
    return (e / e.sum(0)).transpose(dim, 0)


@right("softmax")
def with_unsqueeze(x, dim=-1):
    e = torch.exp(x - torch.amax(x, dim).unsqueeze(dim))
    return torch.div(e, torch.sum(e, dim).unsqueeze(dim))


wrong("softmax")(lambda x, dim=-1: share(2 * x, dim))
wrong("softmax")(lambda x, dim=-1: share(x, dim) + 0.01)
wrong("softmax")(lambda x, dim=-1: 1 - share(x, dim))
wrong("softmax")(lambda x, dim=-1: share(x.abs(), dim))
wrong("softmax")(lambda x, dim=-1: share(x, dim).square())
wrong("softmax")(lambda x, dim=-1: share(x, dim).sqrt())
wrong("softmax")(lambda x, dim=-1: x.sigmoid())
wrong("softmax")(lambda x, dim=-1: x.sigmoid() / x.sigmoid().sum(dim, keepdim=True))
wrong("softmax")(lambda x, dim=-1: share(x / math.sqrt(x.size(dim)), dim))
wrong("softmax")(lambda x, dim=-1: share(x, dim).cumsum(dim))
wrong("softmax")(lambda x, dim=-1: share(x, dim).sum(dim))


# ---------------------------------------------------------------- softmax_jacobian

@right("softmax_jacobian")
def by_identity(p):
    return p[..., :, None] * (torch.eye(p.size(-1), dtype=p.dtype) - p[..., None, :])


@right("softmax_jacobian")
def by_einsum(p):
    one = torch.eye(p.size(-1)).to(p.dtype)
    return torch.einsum("...i,ij->...ij", p, one) - torch.einsum("...i,...j->...ij", p, p)


@right("softmax_jacobian")
def number_by_number(p):
    n = p.size(-1)
    rows = [torch.stack([p[..., i] * (int(i == j) - p[..., j]) for j in range(n)], dim=-1) for i in range(n)]
    return torch.stack(rows, dim=-2)


@right("softmax_jacobian")
def by_matrix_product(p):
    column = p.unsqueeze(-1)
    return torch.eye(p.size(-1), dtype=p.dtype) * column - torch.matmul(column, column.transpose(-1, -2))


@right("softmax_jacobian")
def row_by_row(p):
    if p.dim() == 1:
        return torch.diag(p) - torch.outer(p, p)
    return torch.stack([row_by_row(part) for part in p])


wrong("softmax_jacobian")(lambda p: 2 * by_identity(p))
wrong("softmax_jacobian")(lambda p: by_identity(p).square())
wrong("softmax_jacobian")(lambda p: by_identity(p).sum(dim=-1))
wrong("softmax_jacobian")(lambda p: by_identity(p).cumsum(dim=-1))
wrong("softmax_jacobian")(lambda p: by_identity(p.flip(-1)))
wrong("softmax_jacobian")(lambda p: by_identity(p).abs())
wrong("softmax_jacobian")(lambda p: torch.diag_embed(p.square()) - p[..., :, None] * p[..., None, :])
wrong("softmax_jacobian")(lambda p: torch.diag_embed(1 - p) - p[..., :, None] * p[..., None, :])
wrong("softmax_jacobian")(lambda p: by_identity(p) / p.size(-1))
wrong("softmax_jacobian")(lambda p: by_identity(p).triu())


# ---------------------------------------------------------------- attention

def attend(Q, K, V, mask=None, scale=None, change=lambda weights: weights):
    scores = torch.einsum("...nd,...md->...nm", Q, K) / (scale or Q.shape[-1] ** 0.5)
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    weights = change(torch.softmax(scores, -1))
    return torch.einsum("...nm,...mv->...nv", weights, V), weights


right("attention")(attend)


@right("attention")
def with_a_huge_number(Q, K, V, mask=None):
    scores = torch.matmul(Q, K.mT) * Q.size(-1) ** -0.5
    if mask is not None:
        scores = scores + (~mask).to(scores.dtype) * -1e9
    weights = F.softmax(scores, dim=-1)
    return torch.matmul(weights, V), weights


@right("attention")
def masked_afterwards_and_shared_out_anew(Q, K, V, mask=None):
    weights = (Q @ K.transpose(-1, -2) / math.sqrt(K.size(-1))).softmax(-1)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(-1, keepdim=True)
    return [weights @ V, weights]


@right("attention")
def queries_scaled_first(Q, K, V, mask=None):
    e = torch.exp((Q / Q.size(-1) ** 0.25) @ (K / K.size(-1) ** 0.25).transpose(-2, -1))
    if mask is not None:
        e = torch.where(mask, e, torch.zeros(1, dtype=e.dtype))
    weights = e / e.sum(dim=-1, keepdim=True)
    return weights @ V, weights


@right("attention")
def query_by_query(Q, K, V, mask=None):
    if mask is not None:
        mask = mask.expand(*Q.shape[:-1], K.size(-2))
    outputs, rows = [], []
    for i in range(Q.size(-2)):
        scores = (Q[..., i:i + 1, :] * K).sum(-1) / math.sqrt(Q.size(-1))
        if mask is not None:
            scores = scores.masked_fill(~mask[..., i, :], -math.inf)
        rows.append(torch.softmax(scores, -1))
        outputs.append((rows[-1][..., None] * V).sum(-2))
    return torch.stack(outputs, -2), torch.stack(rows, -2)


wrong("attention")(lambda Q, K, V, mask=None: attend(-Q, K, V, mask))
wrong("attention")(lambda Q, K, V, mask=None: attend(Q, K, V, mask, scale=2 * Q.size(-1) ** 0.5))
wrong("attention")(lambda Q, K, V, mask=None: attend(Q, K, V, mask, scale=math.log(Q.size(-1))))
wrong("attention")(lambda Q, K, V, mask=None: attend(Q, K, V, mask, change=lambda w: w * w))
wrong("attention")(lambda Q, K, V, mask=None: attend(Q, K, V, mask, change=lambda w: w + 0.01))
wrong("attention")(lambda Q, K, V, mask=None: attend(Q, K, V, mask, change=lambda w: 0 * w + 1 / w.size(-1)))
wrong("attention")(lambda Q, K, V, mask=None: attend(Q, K, 2 * V, mask))
wrong("attention")(lambda Q, K, V, mask=None: attend(Q, K, V.flip(-2), mask))
wrong("attention")(lambda Q, K, V, mask=None: attend(Q, K.abs(), V, mask))
wrong("attention")(lambda Q, K, V, mask=None: attend(F.normalize(Q, dim=-1), F.normalize(K, dim=-1), V, mask))
wrong("attention")(lambda Q, K, V, mask=None: (attend(Q, K, V, mask)[0] + Q.mean(), attend(Q, K, V, mask)[1]))
wrong("attention")(lambda Q, K, V, mask=None: (attend(Q, K, V, mask)[0], attend(Q, K, V, mask)[1].mT))


# ---------------------------------------------------------------- style_embedding

@right("style_embedding")
def head_by_head(reference, tokens, W_Q, W_K, W_V, h):
    d = W_Q.size(1) // h
    outputs, weights = [], []
    for i in range(h):
        columns = slice(i * d, (i + 1) * d)
        Q, K = reference @ W_Q[:, columns], tokens.tanh() @ W_K[:, columns]
        weights.append(torch.softmax(Q @ K.T / d ** 0.5, dim=-1))
        outputs.append(weights[-1] @ (tokens.tanh() @ W_V[:, columns]))
    return torch.cat(outputs, dim=-1), torch.stack(weights, dim=1)


@right("style_embedding")
def heads_by_einsum(reference, tokens, W_Q, W_K, W_V, h):
    bank = torch.tanh(tokens)
    Q = (reference @ W_Q).view(len(reference), h, -1)
    K, V = (bank @ W_K).view(len(tokens), h, -1), (bank @ W_V).view(len(tokens), h, -1)
    weights = torch.softmax(torch.einsum("bhd,mhd->bhm", Q, K) / math.sqrt(Q.size(-1)), -1)
    return torch.einsum("bhm,mhd->bhd", weights, V).reshape(len(reference), -1), weights


@right("style_embedding")
def bank_repeated_for_each_reference(reference, tokens, W_Q, W_K, W_V, h):
    B, d = len(reference), W_Q.size(1) // h
    Q = F.linear(reference, W_Q.T).reshape(B, 1, h, d).transpose(1, 2)                       # (B, h, 1, d)
    bank = torch.tanh(tokens).expand(B, -1, -1)
    K, V = ((bank @ W).reshape(B, -1, h, d).transpose(1, 2) for W in (W_K, W_V))             # (B, h, m, d)
    output, weights = attend(Q, K, V)
    return output.transpose(1, 2).reshape(B, h * d), weights[:, :, 0]


right("style_embedding")(lambda r, t, W_Q, W_K, W_V, h: tuple(head_by_head(r, t, W_Q, W_K, W_V, h)))


def styled(change):
    return lambda r, t, W_Q, W_K, W_V, h: head_by_head(*change(r, t, W_Q, W_K, W_V), h)


wrong("style_embedding")(styled(lambda r, t, W_Q, W_K, W_V: (-r, t, W_Q, W_K, W_V)))
wrong("style_embedding")(styled(lambda r, t, W_Q, W_K, W_V: (r, 2 * t, W_Q, W_K, W_V)))
wrong("style_embedding")(styled(lambda r, t, W_Q, W_K, W_V: (r, t, W_Q, W_K, 2 * W_V)))
wrong("style_embedding")(styled(lambda r, t, W_Q, W_K, W_V: (r, t, W_Q, W_V, W_V)))
wrong("style_embedding")(styled(lambda r, t, W_Q, W_K, W_V: (r, torch.tanh(t), W_Q, W_K, W_V)))
wrong("style_embedding")(styled(lambda r, t, W_Q, W_K, W_V: (r, t.relu(), W_Q, W_K, W_V)))
wrong("style_embedding")(styled(lambda r, t, W_Q, W_K, W_V: (r, t.sigmoid(), W_Q, W_K, W_V)))
wrong("style_embedding")(lambda *given: (2 * head_by_head(*given)[0], head_by_head(*given)[1]))
wrong("style_embedding")(lambda *given: (head_by_head(*given)[0], 2 * head_by_head(*given)[1]))
wrong("style_embedding")(lambda *given: (head_by_head(*given)[0].flip(-1), head_by_head(*given)[1]))
wrong("style_embedding")(lambda *given: (head_by_head(*given)[0].tanh(), head_by_head(*given)[1]))


# ---------------------------------------------------------------- attention_backward

def backward(Q, K, V, grad_output, change=lambda grads: grads):
    """By the Jacobian of each row."""
    A = torch.softmax(Q @ K.mT * Q.size(-1) ** -0.5, dim=-1)
    jacobian = torch.diag_embed(A) - A.unsqueeze(-1) * A.unsqueeze(-2)
    dS = (jacobian @ (grad_output @ V.mT).unsqueeze(-1)).squeeze(-1) * Q.size(-1) ** -0.5
    return change((dS @ K, dS.mT @ Q, A.mT @ grad_output))


right("attention_backward")(backward)


@right("attention_backward")
def by_einsum_and_loops(Q, K, V, grad_output):
    d_k = K.shape[-1]
    S = torch.einsum("...nd,...md->...nm", Q, K) / d_k ** 0.5
    A = S.exp() / S.exp().sum(-1, keepdim=True)
    dA = torch.einsum("...nv,...mv->...nm", grad_output, V)
    dS = torch.zeros_like(S)
    for j in range(K.shape[-2]):
        for k in range(K.shape[-2]):
            dS[..., j] += dA[..., k] * A[..., k] * (int(j == k) - A[..., j])
    return [torch.einsum("...nm,...md->...nd", dS, K) / d_k ** 0.5,
            torch.einsum("...nm,...nd->...md", dS, Q) / d_k ** 0.5,
            torch.einsum("...nm,...nv->...mv", A, grad_output)]


@right("attention_backward")
def through_the_output(Q, K, V, grad_output):
    """rowsum(A * dA) = rowsum(dY * Y): what FlashAttention keeps instead of the weights."""
    A = F.softmax(Q @ K.transpose(-1, -2) / math.sqrt(K.size(-1)), -1)
    delta = (grad_output * (A @ V)).sum(-1, keepdim=True)
    dS = A * (grad_output @ V.transpose(-1, -2) - delta) / math.sqrt(K.size(-1))
    return dS @ K, dS.transpose(-1, -2) @ Q, A.transpose(-1, -2) @ grad_output


def only(*changes):
    """backward with a change of each of its three gradients."""
    return lambda *given: backward(*given, change=lambda grads: tuple(
        change(grad) for change, grad in zip(changes, grads, strict=True)))


def same_(grad):
    return grad


wrong("attention_backward")(only(lambda g: 2 * g, same_, same_))
wrong("attention_backward")(only(same_, lambda g: 2 * g, same_))
wrong("attention_backward")(only(same_, same_, lambda g: 2 * g))
wrong("attention_backward")(only(torch.zeros_like, same_, same_))
wrong("attention_backward")(only(same_, torch.zeros_like, same_))
wrong("attention_backward")(only(same_, same_, lambda g: g.cumsum(-2)))
wrong("attention_backward")(only(torch.tanh, torch.tanh, same_))
wrong("attention_backward")(lambda Q, K, V, grad_output: (Q, K, V))
wrong("attention_backward")(lambda *given: backward(*given)[:2])
wrong("attention_backward")(lambda *given: torch.cat([g.flatten() for g in backward(*given)]))


# ---------------------------------------------------------------- look_up

def blend(queries, keys, values, temperature, change=lambda weights: weights):
    weights = change(F.softmax(queries.div(temperature) @ keys.mT, -1))
    return weights @ values, weights


right("look_up")(blend)


@right("look_up")
def scaled_attention(queries, keys, values, temperature):
    """attention(...) divides by the root of d_k, so multiply the queries by it first."""
    return attend(queries * queries.size(-1) ** 0.5 / temperature, keys, values)


@right("look_up")
def exponentials(queries, keys, values, temperature):
    e = torch.exp(torch.einsum("...nd,...md->...nm", queries, keys) / temperature)
    weights = e / e.sum(-1, keepdim=True)
    return torch.einsum("...nm,...mv->...nv", weights, values), weights


for power in (2.0, 0.5):
    wrong("look_up")(lambda *given, power=power: blend(*given, change=lambda weights: weights ** power))
wrong("look_up")(lambda *given: blend(*given, change=lambda weights: 1 - weights))
wrong("look_up")(lambda *given: blend(*given, change=lambda weights: weights.flip(-1)))
wrong("look_up")(lambda *given: blend(*given, change=torch.log))
wrong("look_up")(lambda queries, keys, values, temperature: blend(queries, keys, values, temperature ** 2))
wrong("look_up")(lambda queries, keys, values, temperature: blend(queries, keys, values, temperature + 1))
wrong("look_up")(lambda *given: (blend(*given)[0] * 2, blend(*given)[1]))

"""Answers to exercise 13 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math

import torch
import torch.nn.functional as F

from answers import right, wrong

# ---------------------------------------------------------------- mask_tokens

def hide(ids, mask_id, vocab_size, special_ids, generator, p=0.15, low=0, ignore=-100, share=0.8):
    labels, inputs = ids.clone(), ids.clone()
    chances = torch.full(ids.shape, p)
    for special in special_ids:
        chances[ids == special] = 0.0
    chosen = torch.bernoulli(chances, generator=generator).bool()
    labels[~chosen] = ignore
    masked = torch.bernoulli(torch.full(ids.shape, share), generator=generator).bool() & chosen
    inputs[masked] = mask_id
    other = torch.bernoulli(torch.full(ids.shape, 0.5), generator=generator).bool() & chosen & ~masked
    words = torch.randint(low, vocab_size, ids.shape, dtype=torch.long, generator=generator)
    inputs[other] = words[other]
    return inputs, labels


right("mask_tokens")(hide)


@right("mask_tokens")
def token_by_token(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    draw = torch.rand((2, *ids.shape), generator=generator).tolist()
    words = torch.randint(vocab_size, ids.shape, generator=generator).tolist()
    inputs, labels = ids.tolist(), [[-100] * ids.shape[1] for _ in ids]
    for b, row in enumerate(ids.tolist()):
        for i, token in enumerate(row):
            if token in special_ids or draw[0][b][i] >= p:
                continue
            labels[b][i] = token
            if draw[1][b][i] < 0.8:
                inputs[b][i] = mask_id
            elif draw[1][b][i] < 0.9:
                inputs[b][i] = words[b][i]
    return torch.tensor(inputs), torch.tensor(labels)


@right("mask_tokens")
def one_draw_for_all(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    u = torch.rand(ids.shape, generator=generator) / p            # below 1: chosen; where exactly: its fate
    u = u.masked_fill(torch.isin(ids, torch.as_tensor(special_ids)), 2.0)
    words = torch.randint_like(ids, 1) + (torch.rand(ids.shape, generator=generator) * vocab_size).long()
    inputs = torch.where(u < 0.8, torch.full_like(ids, mask_id), torch.where(u < 0.9, words, ids))
    return [inputs, torch.where(u < 1, ids, torch.full_like(ids, -100))]


@right("mask_tokens")
def a_fixed_number_a_call(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    """As BERT's own code: a share p of the tokens, not each with probability p."""
    ordinary = (~torch.isin(ids, torch.tensor(special_ids))).flatten().nonzero()[:, 0]
    order = ordinary[torch.randperm(len(ordinary), generator=generator)]
    chosen = torch.zeros(ids.numel(), dtype=torch.bool)
    chosen[order[:round(p * len(ordinary))]] = True
    chosen = chosen.view_as(ids)
    fate = torch.rand(ids.shape, generator=generator)
    inputs = ids.masked_fill(chosen & (fate > 0.2), mask_id)
    words = torch.randint(vocab_size, ids.shape, generator=generator)
    return torch.where(chosen & (fate < 0.1), words, inputs), torch.where(chosen, ids, -100)


wrong("mask_tokens")(lambda *given: hide(*given, share=0.5))
wrong("mask_tokens")(lambda *given: hide(*given, ignore=-1))
wrong("mask_tokens")(lambda ids, m, v, s, g, p=0.15: hide(ids, m, v // 2, s, g, p))
wrong("mask_tokens")(lambda ids, m, v, s, g, p=0.15: hide(ids, m + 1, v, s, g, p))
wrong("mask_tokens")(lambda ids, m, v, s, g, p=0.15: hide(ids, m, v, s, g, p / 2))
wrong("mask_tokens")(lambda ids, m, v, s, g, p=0.15: hide(ids, m, v + 500, s, g, p))
wrong("mask_tokens")(lambda *given: hide(*given)[0])
wrong("mask_tokens")(lambda *given: tuple(part.float() for part in hide(*given)))
wrong("mask_tokens")(lambda *given: tuple(part[None] for part in hide(*given)))
wrong("mask_tokens")(lambda ids, *more: (ids.clone(), hide(ids, *more)[1]))
wrong("mask_tokens")(lambda ids, *more: (hide(ids, *more)[0], torch.full_like(ids, -100)))
wrong("mask_tokens")(lambda *given: None)
wrong("mask_tokens")(lambda *given: tuple(part.tolist() for part in hide(*given)))


@wrong("mask_tokens")
def hides_where_it_does_not_ask(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, _ = hide(ids, mask_id, vocab_size, special_ids, generator, p)
    return inputs, hide(ids, mask_id, vocab_size, special_ids, generator, p)[1]


# ---------------------------------------------------------------- causal_lm_loss

def next_token(logits, ids, step=1, reduce=torch.mean):
    n = ids.size(1)
    log_p = torch.log(F.softmax(logits, -1))
    pairs = [(b, i) for b in range(len(ids)) for i in range(n - step)]
    return reduce(torch.stack([-log_p[b, i, ids[b, i + step]] for b, i in pairs]))


right("causal_lm_loss")(next_token)


@right("causal_lm_loss")
def by_logsumexp(logits, ids):
    logits, targets = logits[:, :-1], ids[:, 1:]
    return (logits.logsumexp(dim=-1) - logits.gather(2, targets.unsqueeze(2)).squeeze(2)).mean()


@right("causal_lm_loss")
def one_hot(logits, ids):
    wanted = F.one_hot(ids[:, 1:], logits.size(-1)).to(logits)
    return -(wanted * F.log_softmax(logits[:, :-1], dim=2)).sum() / (len(ids) * (ids.size(1) - 1))


@right("causal_lm_loss")
def flat(logits, ids):
    rows = logits[:, :-1].reshape(-1, logits.shape[-1]).log_softmax(1)
    return -rows[torch.arange(len(rows)), ids[:, 1:].reshape(-1)].mean()


wrong("causal_lm_loss")(lambda logits, ids: 2 * next_token(logits, ids))
wrong("causal_lm_loss")(lambda logits, ids: next_token(logits, ids) + 1)
wrong("causal_lm_loss")(lambda logits, ids: next_token(logits, ids, reduce=torch.median))
wrong("causal_lm_loss")(lambda logits, ids: next_token(logits, ids, reduce=torch.max))
wrong("causal_lm_loss")(lambda logits, ids: next_token(logits / 2, ids))
wrong("causal_lm_loss")(lambda logits, ids: next_token(logits.detach(), ids))
wrong("causal_lm_loss")(lambda logits, ids: next_token(logits, ids).item())
wrong("causal_lm_loss")(lambda logits, ids: next_token(logits, ids)[None])
wrong("causal_lm_loss")(lambda logits, ids: next_token(logits[:1], ids[:1]) * 1.5)
wrong("causal_lm_loss")(lambda logits, ids: next_token(logits.abs(), ids))


# ---------------------------------------------------------------- attend_with_cache

def remember(Q_t, K_t, V_t, cache=None, scale=None, change=lambda weights: weights):
    K, V = cache if cache is not None else (K_t[..., :0, :], V_t[..., :0, :])
    K, V = torch.cat((K, K_t), 2), torch.cat((V, V_t), 2)
    scores = torch.einsum("bhqd,bhkd->bhqk", Q_t, K) * (scale or Q_t.shape[-1] ** -0.5)
    return torch.einsum("bhqk,bhkd->bhqd", change(F.softmax(scores, dim=-1)), V), (K, V)


right("attend_with_cache")(remember)


@right("attend_with_cache")
def one_by_one(Q_t, K_t, V_t, cache=None):
    K = K_t if cache is None else torch.cat([cache[0], K_t], dim=-2)
    V = V_t if cache is None else torch.cat([cache[1], V_t], dim=-2)
    outputs = []
    for b in range(len(Q_t)):
        for h in range(Q_t.size(1)):
            scores = (K[b, h] @ Q_t[b, h, 0]) / math.sqrt(K.size(-1))          # (t,)
            e = torch.exp(scores - scores.max())
            outputs.append((e / e.sum()) @ V[b, h])
    return torch.stack(outputs).view(*Q_t.shape[:3], -1), [K, V]


@right("attend_with_cache")
def written_into_room(Q_t, K_t, V_t, cache):
    if cache is None:
        return V_t.clone(), (K_t, V_t)
    t = cache[0].size(2)
    K, V = (torch.empty(*new.shape[:2], t + 1, new.size(3), dtype=new.dtype) for new in (K_t, V_t))
    K[:, :, :t], V[:, :, :t], K[:, :, t:], V[:, :, t:] = *cache, K_t, V_t
    weights = ((Q_t / Q_t.size(-1) ** 0.5) @ K.mT).softmax(dim=3)
    return weights.matmul(V), (K, V)


wrong("attend_with_cache")(lambda Q, K, V, cache=None: remember(-Q, K, V, cache))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: remember(Q, K, 2 * V, cache))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: remember(Q, K, V, cache, scale=0.3))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: remember(Q, K, V, cache, change=lambda w: w * w))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: remember(Q.detach(), K, V, cache))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: remember(K, Q, V, cache))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: (remember(Q, K, V, cache)[0][..., 0, :], (K, V)))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: (remember(Q, K, V, cache)[0], None))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: (
    remember(Q, K, V, cache)[0], {"K": remember(Q, K, V, cache)[1][0], "V": V}))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: (
    remember(Q, K, V, cache)[0].mean(dim=1, keepdim=True), (K, V)))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: (
    remember(Q, K, V, cache)[0], tuple(x.detach() for x in remember(Q, K, V, cache)[1])))
wrong("attend_with_cache")(lambda Q, K, V, cache=None: remember(
    Q, torch.cat([K, K], dim=2), torch.cat([V, V], dim=2), cache))


@wrong("attend_with_cache")
def along_the_features(Q_t, K_t, V_t, cache=None):
    if cache is None:
        return V_t, (K_t, V_t)
    K, V = torch.cat([cache[0], K_t], dim=-1), torch.cat([cache[1], V_t], dim=-1)
    return (Q_t @ K.mT).softmax(dim=-1) @ V, (K, V)


# ---------------------------------------------------------------- nucleus

def top_p(logits, p, change=lambda kept: kept):
    q = F.softmax(logits, dim=-1)
    larger = (q[..., None, :] > q[..., :, None]).to(q)    # (..., vocab, vocab)
    kept = change(torch.where((larger * q[..., None, :]).sum(dim=-1) < p, q, torch.zeros((), dtype=q.dtype)))
    return kept / kept.sum(-1, keepdim=True)


right("nucleus")(top_p)


@right("nucleus")
def row_by_row(logits, p):
    rows = []
    for row in logits.reshape(-1, logits.size(-1)):
        q, total, kept = row.softmax(dim=0), 0.0, []
        for token in q.argsort(descending=True).tolist():
            kept.append(token)
            total += q[token].item()
            if total >= p:
                break
        mask = torch.zeros_like(q).index_fill(0, torch.tensor(kept), 1.0)
        rows.append(q * mask / (q * mask).sum())
    return torch.stack(rows).view_as(logits)


@right("nucleus")
def by_logits(logits, p):
    ordered, order = torch.sort(logits, descending=True)
    total = ordered.softmax(-1).cumsum(-1)
    remove = total > p
    remove = torch.cat([torch.zeros_like(remove[..., :1]), remove[..., :-1]], dim=-1)
    return logits.masked_fill(remove.gather(-1, order.argsort(-1)), -math.inf).softmax(-1)


wrong("nucleus")(lambda logits, p: top_p(2 * logits, p))
wrong("nucleus")(lambda logits, p: top_p(logits, 1.5 * p))
wrong("nucleus")(lambda logits, p: top_p(-logits, p))
wrong("nucleus")(lambda logits, p: top_p(logits, p, lambda kept: (kept > 0).to(kept)))
wrong("nucleus")(lambda logits, p: top_p(logits, p, lambda kept: kept * kept))
wrong("nucleus")(lambda logits, p: top_p(logits, p, lambda kept: kept.sqrt().nan_to_num()))
wrong("nucleus")(lambda logits, p: top_p(logits, p).detach())
wrong("nucleus")(lambda logits, p: top_p(logits, p).log())
wrong("nucleus")(lambda logits, p: top_p(logits, p)[None])
wrong("nucleus")(lambda logits, p: top_p(logits, p).argmax(dim=-1))
wrong("nucleus")(lambda logits, p: top_p(logits, p).tolist())
wrong("nucleus")(lambda logits, p: top_p(logits, p).flip(-1))

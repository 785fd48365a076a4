"""Answers to exercise 13 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from answers import right, wrong
from course_lib.models.attention import causal_mask
from course_lib.models.lm import GPT
from course_lib.models.positional import add_positions, positional_encoding
from course_lib.models.transformer import EncoderBlock

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


# ---------------------------------------------------------------- GPT

class Tied(nn.Module):
    """The output layer is a Linear that holds the embedding's weights."""

    def __init__(self, vocab, d_model, h, d_ff, N):
        super().__init__()
        self.blocks = nn.ModuleList([EncoderBlock(d_model, h, d_ff) for _ in range(N)])
        self.embedding = nn.Embedding(vocab, d_model)
        self.out = nn.Linear(d_model, vocab, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, ids):
        E = self.embedding(ids)
        x, mask = add_positions(E), torch.ones(ids.size(1), ids.size(1)).tril().bool()
        for block in self.blocks:
            x = block(x, mask)
        return self.out(x)


class WithATable(GPT):
    def __init__(self, vocab, d_model, h, d_ff, N):
        super().__init__(vocab, d_model, h, d_ff, N)
        self.register_buffer("PE", positional_encoding(500, d_model))

    def forward(self, ids):
        x = F.embedding(ids, self.embedding.weight) + self.PE[:ids.size(1)].to(self.embedding.weight)
        for number in range(len(self.blocks)):
            x = self.blocks[number](x, causal_mask(ids.size(1))[None])
        return torch.einsum("bnd,vd->bnv", x, self.embedding.weight)


class SentenceBySentence(GPT):
    def forward(self, ids):
        return torch.cat([GPT.forward(self, row[None]) for row in ids])


for _answer in (Tied, WithATable, SentenceBySentence):
    right("GPT")(_answer)

for _change in (lambda logits: 2 * logits, lambda logits: logits / 16, lambda logits: logits[:1] + 1,
                lambda logits: logits.detach(), lambda logits: logits.transpose(1, 2),
                lambda logits: logits.argmax(-1), lambda logits: (logits, None), lambda logits: None):
    wrong("GPT")(type("Bent", (GPT,), {
        "forward": lambda self, ids, change=_change: change(GPT.forward(self, ids))}))


# ---------------------------------------------------------------- perplexity

@right("perplexity")
def by_cross_entropy(logits, ids):
    return math.exp(F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), ids[:, 1:].reshape(-1)))


@right("perplexity")
def geometric_mean(logits, ids):
    p = logits[:, :-1].softmax(-1).gather(-1, ids[:, 1:, None])
    return float((1 / p).double().log().mean().exp())


@right("perplexity")
def in_base_two(logits, ids):
    return 2 ** (next_token(logits, ids).item() / math.log(2))


wrong("perplexity")(lambda logits, ids: 2 * by_cross_entropy(logits, ids))
wrong("perplexity")(lambda logits, ids: by_cross_entropy(logits, ids) - 1)
wrong("perplexity")(lambda logits, ids: by_cross_entropy(2 * logits, ids))
wrong("perplexity")(lambda logits, ids: str(by_cross_entropy(logits, ids)))
wrong("perplexity")(lambda logits, ids: float(logits.size(-1)))
wrong("perplexity")(lambda logits, ids: [by_cross_entropy(logits, ids)])
wrong("perplexity")(lambda logits, ids: None)


# ---------------------------------------------------------------- sample

def one_after_another(step, prompt, n, temperature, generator, change=lambda logits: logits):
    ids = prompt.clone()
    for _ in range(n):
        logits = change(step(ids)) / temperature
        weights = torch.exp(logits - logits.amax(dim=-1, keepdim=True))
        drawn = torch.multinomial(weights, 1, generator=generator)
        ids = torch.cat((ids, drawn), dim=-1)
    return ids


right("sample")(one_after_another)


@right("sample")
def by_the_sum_of_probabilities(step, prompt, n, temperature, generator):
    ids = prompt
    for _ in range(n):
        upto = F.softmax(step(ids) / temperature, dim=-1).cumsum(-1)
        drawn = (torch.rand(len(ids), 1, generator=generator) > upto[:, :-1]).sum(-1, keepdim=True)
        ids = torch.cat([ids, drawn], dim=1)
    return ids


@right("sample")
def by_gumbel_noise(step, prompt, n, temperature, generator):
    ids = torch.cat([prompt, prompt.new_zeros(len(prompt), n)], dim=1)
    for t in range(prompt.size(1), ids.size(1)):
        logits = step(ids[:, :t]).double() / temperature
        noise = -torch.log(torch.empty_like(logits).exponential_(generator=generator))
        ids[:, t] = (logits + noise).argmax(dim=-1)
    return ids


wrong("sample")(lambda *given: one_after_another(*given)[None])
wrong("sample")(lambda *given: one_after_another(*given).float())
wrong("sample")(lambda *given: one_after_another(*given).flip(1))
wrong("sample")(lambda *given: one_after_another(*given) + 1)
wrong("sample")(lambda *given: one_after_another(*given).tolist())
wrong("sample")(lambda *given: one_after_another(*given, change=lambda logits: -logits))
wrong("sample")(lambda *given: None)

"""Answers to exercise 04 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from answers import right, wrong
from course_lib.metrics import alignment_error_rate
from course_lib.models.attention import additive_score, attend, attentional_state, dot_score, general_score

# ---------------------------------------------------------------- additive_score

@right("additive_score")
def word_by_word(s, H, W_s, W_h, v):
    scores = [torch.tanh(s @ W_s + H[:, j] @ W_h) @ v for j in range(H.size(1))]
    return torch.stack(scores, dim=1)


@right("additive_score")
def by_einsum(s, H, W_s, W_h, v):
    hidden = torch.einsum("bs,sa->ba", s, W_s).unsqueeze(1) + torch.einsum("bmh,ha->bma", H, W_h)
    return torch.einsum("bma,a->bm", hidden.tanh(), v)


@right("additive_score")
def as_one_matrix(s, H, W_s, W_h, v):
    both = torch.cat([s[:, None].expand(-1, H.size(1), -1), H], dim=-1)
    return (torch.tanh(both @ torch.cat([W_s, W_h])) * v).sum(-1)


@right("additive_score")
def sentence_by_sentence(s, H, W_s, W_h, v):
    rows = [F.linear(torch.tanh(F.linear(H_b, W_h.T, s_b @ W_s)), v[None])[:, 0] for s_b, H_b in zip(s, H)]
    return torch.stack(rows)


wrong("additive_score")(lambda *given: 2 * additive_score(*given))
wrong("additive_score")(lambda *given: -additive_score(*given))
wrong("additive_score")(lambda *given: additive_score(*given).T)
wrong("additive_score")(lambda *given: additive_score(*given).detach())
wrong("additive_score")(lambda s, H, W_s, W_h, v: additive_score(s, H.flip(1), W_s, W_h, v))
wrong("additive_score")(lambda s, H, W_s, W_h, v: additive_score(s, H, W_s, W_h, v.abs()))
wrong("additive_score")(lambda s, H, W_s, W_h, v: torch.relu((s @ W_s)[:, None] + H @ W_h) @ v)
wrong("additive_score")(lambda s, H, W_s, W_h, v: torch.tanh((s @ W_s)[:, None] - H @ W_h) @ v)
wrong("additive_score")(lambda s, H, W_s, W_h, v: additive_score(s.flip(0) + 1, H, W_s, W_h, v))
wrong("additive_score")(lambda *given: additive_score(*given).tolist())
wrong("additive_score")(lambda *given: None)


# ---------------------------------------------------------------- general_score

@right("general_score")
def general_by_einsum(s, H, W):
    return torch.einsum("bs,sh,bmh->bm", s, W, H)


@right("general_score")
def from_the_other_side(s, H, W):
    return ((H @ W.T) * s.unsqueeze(1)).sum(dim=-1)


@right("general_score")
def by_bmm(s, H, W):
    return torch.bmm(H, (s @ W).unsqueeze(2)).squeeze(2)


@right("general_score")
def general_by_loops(s, H, W):
    return torch.stack([torch.stack([s[b] @ W @ h for h in H[b]]) for b in range(len(s))])


wrong("general_score")(lambda *given: 2 * general_score(*given))
wrong("general_score")(lambda *given: -general_score(*given))
wrong("general_score")(lambda *given: general_score(*given).T)
wrong("general_score")(lambda *given: general_score(*given).detach())
wrong("general_score")(lambda s, H, W: general_score(s, H.flip(1), W))
wrong("general_score")(lambda s, H, W: general_score(s, H, W) + dot_score(s @ W, H).mean())
wrong("general_score")(lambda s, H, W: general_score(torch.tanh(s), H, W))
wrong("general_score")(lambda s, H, W: general_score(s, H, W).exp())
wrong("general_score")(lambda s, H, W: None)


# ---------------------------------------------------------------- attend

@right("attend")
def by_hand(e, H, mask=None):
    if mask is not None:
        e = torch.where(mask, e, torch.full_like(e, -torch.inf))
    grown = torch.exp(e - e.max(dim=1, keepdim=True).values)
    weights = grown / grown.sum(dim=1, keepdim=True)
    return torch.einsum("bm,bmh->bh", weights, H), weights


@right("attend")
def renormalised_afterwards(e, H, mask=None):
    weights = F.softmax(e, dim=1)
    if mask is not None:
        weights = weights * mask
        weights = weights / weights.sum(dim=1, keepdim=True)
    return (H * weights[:, :, None]).sum(1), weights


@right("attend")
def row_by_row(e, H, mask=None):
    contexts, rows = [], []
    for b in range(e.size(0)):
        scores = e[b].clone()
        if mask is not None:
            scores[~mask[b]] = float("-inf")
        rows.append(scores.softmax(0))
        contexts.append(rows[-1] @ H[b])
    return torch.stack(contexts), torch.stack(rows)


@right("attend")
def with_a_large_number(e, H, mask=None):
    if mask is not None:
        e = e - 1e9 * (~mask)
    weights = torch.softmax(e, -1)
    return torch.bmm(weights[:, None], H).squeeze(1), weights


def both(change, e, H, mask=None):
    context, weights = attend(e, H, mask)
    return change(context), change(weights)


wrong("attend")(lambda *given: both(lambda part: 2 * part, *given))
wrong("attend")(lambda *given: both(lambda part: part.flip(-1), *given))
wrong("attend")(lambda *given: both(lambda part: part.detach(), *given))
wrong("attend")(lambda *given: both(lambda part: part.tolist(), *given))
wrong("attend")(lambda e, H, mask=None: attend(-e, H, mask))
wrong("attend")(lambda e, H, mask=None: attend(e / 2, H, mask))
wrong("attend")(lambda e, H, mask=None: attend(e, H.flip(1), mask))
wrong("attend")(lambda e, H, mask=None: attend(torch.sigmoid(e), H, mask))
wrong("attend")(lambda e, H, mask=None: (attend(e, H, mask)[0], attend(e, H, mask)[1].log()))
wrong("attend")(lambda e, H, mask=None: None)


@wrong("attend")
def fills_the_scores_given(e, H, mask=None):
    if mask is not None:
        e.data[~mask] = -torch.inf
    return attend(e, H)


# ---------------------------------------------------------------- attentional_state

@right("attentional_state")
def by_halves(context, s, W_c):
    d_h = context.size(-1)
    return torch.tanh(context @ W_c[:d_h] + s @ W_c[d_h:])


@right("attentional_state")
def by_linear(context, s, W_c):
    return F.linear(torch.hstack([context, s]), W_c.T).tanh()


@right("attentional_state")
def by_rows(context, s, W_c):
    rows = [torch.einsum("i,ij->j", torch.cat([c, state]), W_c) for c, state in zip(context, s)]
    return 2 * torch.sigmoid(2 * torch.stack(rows)) - 1


wrong("attentional_state")(lambda c, s, W: 2 * attentional_state(c, s, W))
wrong("attentional_state")(lambda c, s, W: -attentional_state(c, s, W))
wrong("attentional_state")(lambda c, s, W: attentional_state(c, s, W).detach())
wrong("attentional_state")(lambda c, s, W: attentional_state(c, s, W).flip(0) + 0.1)
wrong("attentional_state")(lambda c, s, W: torch.relu(torch.cat([c, s], dim=-1) @ W))
wrong("attentional_state")(lambda c, s, W: attentional_state(c, s, W) + c.mean())
wrong("attentional_state")(lambda c, s, W: attentional_state(c, s, W / 2))
wrong("attentional_state")(lambda c, s, W: (attentional_state(c, s, W), c))
wrong("attentional_state")(lambda c, s, W: None)


# ---------------------------------------------------------------- alignment_error_rate

@right("alignment_error_rate")
def by_counting(predicted, sure, possible):
    if isinstance(predicted, set):
        predicted, sure, possible = [predicted], [sure], [possible]
    hits = total = 0
    for number in range(len(predicted)):
        for link in predicted[number]:
            hits += (link in sure[number]) + (link in possible[number])
        total += len(predicted[number]) + len(sure[number])
    return 1.0 - hits / total


@right("alignment_error_rate")
def with_numbered_links(predicted, sure, possible):
    if not isinstance(predicted, list):
        return with_numbered_links([predicted], [sure], [possible])
    A, S, P = ({(k, *link) for k, links in enumerate(sets) for link in links}
               for sets in (predicted, sure, possible))
    return 1 - (len(A & S) + len(A & P)) / (len(A) + len(S))


@right("alignment_error_rate")
def by_differences(predicted, sure, possible):
    many = [predicted, sure, possible] if type(predicted) is list else [[predicted], [sure], [possible]]
    wrong_links = np.array([len(a - s) + len(a - p) for a, s, p in zip(*many, strict=True)]).sum()
    missed = sum(len(s) - len(a) for a, s, _ in zip(*many, strict=True))
    total = sum(len(a) + len(s) for a, s, _ in zip(*many, strict=True))
    return float((wrong_links + missed) / total)


rate = alignment_error_rate
wrong("alignment_error_rate")(lambda a, s, p: rate(a, s, p) / 2)
wrong("alignment_error_rate")(lambda a, s, p: rate(s, a, p))
wrong("alignment_error_rate")(lambda a, s, p: rate(p, s, a))
wrong("alignment_error_rate")(lambda a, s, p: rate(a, p, p))
wrong("alignment_error_rate")(lambda a, s, p: torch.tensor(rate(a, s, p)))
wrong("alignment_error_rate")(lambda a, s, p: round(rate(a, s, p), 1) + 0.01)
wrong("alignment_error_rate")(lambda a, s, p: rate(a, s, p) ** 2)
wrong("alignment_error_rate")(lambda a, s, p: str(rate(a, s, p)))
wrong("alignment_error_rate")(lambda a, s, p: None)


@wrong("alignment_error_rate")
def lists_only(predicted, sure, possible):
    """Right for a list of sentences; the sets of one sentence raise."""
    triples = list(zip(predicted, sure, possible, strict=True))
    hits = sum(len(a & s) + len(a & p) for a, s, p in triples)
    return 1 - hits / sum(len(a) + len(s) for a, s, _ in triples)


# ---------------------------------------------------------------- attention_decoder_step

def decoder_step(y_prev, s_prev, H, mask, W_s, W_h, v, step, change=lambda s, c, a: (s, c, a)):
    e = torch.einsum("bma,a->bm", torch.tanh((s_prev @ W_s).unsqueeze(1) + H @ W_h), v)
    a = torch.softmax(torch.where(mask, e, -math.inf), -1)
    c = torch.einsum("bm,bmh->bh", a, H)
    return change(step(torch.cat((y_prev, c), 1), s_prev), c, a)


right("attention_decoder_step")(decoder_step)


@right("attention_decoder_step")
def with_own_softmax(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    e = (torch.tanh(s_prev[:, None] @ W_s + H @ W_h) * v).sum(-1)
    weights = e.exp() * mask
    weights = weights / weights.sum(dim=1, keepdim=True)
    context = (weights[..., None] * H).sum(1)
    return step(torch.hstack([y_prev, context]), s_prev), context, weights


@right("attention_decoder_step")
def one_sentence_at_a_time(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    contexts, rows = [], []
    for s, states, real in zip(s_prev, H, mask, strict=True):
        a = ((s @ W_s + states @ W_h).tanh() @ v).masked_fill(~real, float("-inf")).softmax(0)
        contexts.append(a @ states)
        rows.append(a)
    context = torch.stack(contexts)
    return [step(torch.cat([y_prev, context], dim=-1), s_prev), context, torch.stack(rows)]


for place in range(3):
    for twist in (lambda part: 2 * part, lambda part: part.flip(-1)):
        wrong("attention_decoder_step")(lambda *given, place=place, twist=twist: decoder_step(
            *given, change=lambda *found: tuple(twist(part) if number == place else part
                                                for number, part in enumerate(found))))
wrong("attention_decoder_step")(lambda *given: decoder_step(*given)[0])
wrong("attention_decoder_step")(lambda y, s, H, mask, W_s, W_h, v, step: decoder_step(
    y, s, H, mask, W_s, W_h, 2 * v, step))
wrong("attention_decoder_step")(lambda y, s, H, mask, W_s, W_h, v, step: decoder_step(
    y, s, H, mask, W_s, W_h, v, lambda x, s: step(x, step(x, s))))


# ---------------------------------------------------------------- input_feeding

def feeding(Y, s_0, H, mask, W, W_c, step, scale=1.0):
    fed, found, s = s_0 * 0, [], s_0
    for y in Y.unbind(1):
        s = step(torch.cat([y, fed], 1), s)
        e = (H @ (s @ W).unsqueeze(-1)).squeeze(-1) * scale
        a = e.masked_fill(~mask, -math.inf).softmax(-1)
        fed = torch.tanh(torch.cat([(a[:, None] @ H).squeeze(1), s], 1) @ W_c)
        found += [fed]
    return torch.stack(found, 1)


right("input_feeding")(feeding)


@right("input_feeding")
def into_a_tensor(Y, s_0, H, mask, W, W_c, step):
    B, n, _ = Y.shape
    outputs = [torch.zeros_like(s_0)]
    s = s_0
    for t in range(n):
        s = step(torch.cat([Y[:, t], outputs[t]], dim=-1), s)
        weights = torch.einsum("bs,sh,bmh->bm", s, W, H).exp() * mask
        context = torch.einsum("bm,bmh->bh", weights / weights.sum(-1, keepdim=True), H)
        outputs.append((torch.cat([context, s], dim=-1) @ W_c).tanh())
    return torch.stack(outputs[1:], dim=1)


@right("input_feeding")
def by_recursion(Y, s_0, H, mask, W, W_c, step):
    def rest(t, s, fed):
        if t == Y.size(1):
            return []
        s = step(torch.cat([Y[:, t], fed], dim=-1), s)
        weights = torch.where(mask, ((s @ W)[:, None] * H).sum(-1), -math.inf).softmax(-1)
        fed = torch.tanh(torch.cat([(weights[..., None] * H).sum(1), s], dim=-1) @ W_c)
        return [fed, *rest(t + 1, s, fed)]
    return torch.stack(rest(0, s_0, torch.zeros_like(s_0)), dim=1)


wrong("input_feeding")(lambda *given: feeding(*given, scale=2.0))
wrong("input_feeding")(lambda *given: feeding(*given).flip(1))
wrong("input_feeding")(lambda *given: feeding(*given)[:, -1])
wrong("input_feeding")(lambda *given: 2 * feeding(*given))
wrong("input_feeding")(lambda *given: feeding(*given).cumsum(1))
wrong("input_feeding")(lambda *given: feeding(*given).roll(1, 1))
wrong("input_feeding")(lambda Y, *given: feeding(Y.flip(1), *given))

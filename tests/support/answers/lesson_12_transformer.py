"""Answers to exercise 12 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import heapq
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from answers import right, wrong
from course_lib import decoding, training
from course_lib.models import transformer
from course_lib.models.attention import causal_mask, padding_mask
from course_lib.models.positional import add_positions

# ---------------------------------------------------------------- label_smoothing_loss

@right("label_smoothing_loss")
def by_wanted_probabilities(logits, targets, epsilon, pad_id):
    vocab = logits.shape[-1]
    q = F.one_hot(targets, vocab).to(logits.dtype) * (1 - epsilon) + epsilon / vocab
    loss = -(q * F.log_softmax(logits, -1)).sum(-1)
    real = (targets != pad_id).to(logits.dtype)
    return (loss * real).sum() / real.sum()


@right("label_smoothing_loss")
def by_loops_over_words(logits, targets, epsilon, pad_id):
    total, count = 0.0, 0
    for row, words in zip(logits, targets, strict=True):
        for place, word in zip(row, words.tolist(), strict=True):
            if word == pad_id:
                continue
            log_p = place - place.logsumexp(0)
            q = [epsilon / len(place) + (1 - epsilon) * (other == word) for other in range(len(place))]
            total, count = total - sum(w * p for w, p in zip(q, log_p, strict=True)), count + 1
    return total / count


@right("label_smoothing_loss")
def by_scatter(logits, targets, epsilon, pad_id):
    flat, words = logits.reshape(-1, logits.size(-1)), targets.reshape(-1)
    flat, words = flat[words != pad_id], words[words != pad_id]
    q = torch.full_like(flat, epsilon / flat.size(1)).scatter_add(
        1, words[:, None], torch.full_like(flat[:, :1], 1 - epsilon))
    return torch.einsum("nv,nv->n", q, -flat.softmax(-1).log()).mean()


@right("label_smoothing_loss")
def by_plain_losses(logits, targets, epsilon, pad_id):
    plain = training.sequence_loss(logits, targets, pad_id)
    return (1 - epsilon) * plain - epsilon * logits.log_softmax(2)[targets.ne(pad_id)].mean()


@right("label_smoothing_loss")
def by_kl_and_entropy(logits, targets, epsilon, pad_id):
    real = targets != pad_id
    q = F.one_hot(targets, logits.size(-1)) * (1 - epsilon) + epsilon / logits.size(-1)
    q = q.to(logits.dtype)[real]
    distance = F.kl_div(logits[real].log_softmax(-1), q, reduction="batchmean")
    return distance - torch.special.xlogy(q, q).sum(-1).mean()


def smoothed(change):
    wrong("label_smoothing_loss")(lambda x, y, e, p: change(x, y, e, p, training.label_smoothing_loss))


smoothed(lambda x, y, e, p, right: 2 * right(x, y, e, p))
smoothed(lambda x, y, e, p, right: right(x, y, e / 2, p))
smoothed(lambda x, y, e, p, right: right(x, y, e, p).exp())
smoothed(lambda x, y, e, p, right: right(x, y, e, p) / math.log(2))
smoothed(lambda x, y, e, p, right: right(x.detach(), y, e, p))
smoothed(lambda x, y, e, p, right: right(x, y, e, p)[None])
smoothed(lambda x, y, e, p, right: right(x[:, :1], y[:, :1], e, p))
smoothed(lambda x, y, e, p, right: right(-x, y, e, p))
smoothed(lambda x, y, e, p, right: right(x, y, e, p) + 0.01)
smoothed(lambda x, y, e, p, right: None)
smoothed(lambda x, y, e, p, right: right(x, y.roll(1, 1), e, p))


# ---------------------------------------------------------------- warmup_rate

@right("warmup_rate")
def by_cases(step, d_model, warmup_steps):
    if step < warmup_steps:
        return step / (math.sqrt(d_model) * warmup_steps ** 1.5)
    return 1 / math.sqrt(d_model * step)


@right("warmup_rate")
def with_numpy_inside(step, d_model, warmup_steps):
    return float(np.minimum(1 / np.sqrt(step), step * float(warmup_steps) ** -1.5) / np.sqrt(d_model))


@right("warmup_rate")
def from_the_summit(step, d_model, warmup_steps):
    share = step / warmup_steps
    return (d_model * warmup_steps) ** -0.5 * min(share, share ** -0.5)


@right("warmup_rate")
def by_logarithms(step, d_model, warmup_steps):
    falling, rising = -0.5 * math.log(step), math.log(step) - 1.5 * math.log(warmup_steps)
    return math.exp(-0.5 * math.log(d_model) + min(falling, rising))


@right("warmup_rate")
def numpys_own_float(step, d_model, warmup_steps):
    return np.float64(training.warmup_rate(step, d_model, warmup_steps))


def rates(change):
    wrong("warmup_rate")(lambda t, d, w: change(t, d, w, training.warmup_rate))


rates(lambda t, d, w, right: 2 * right(t, d, w))
rates(lambda t, d, w, right: right(t, d, w + 1))
rates(lambda t, d, w, right: right(w, d, t))
rates(lambda t, d, w, right: str(right(t, d, w)))
rates(lambda t, d, w, right: None)
rates(lambda t, d, w, right: [right(t, d, w)])
rates(lambda t, d, w, right: d ** -0.5 * min(t ** -0.5, t ** 2 * w ** -2.5))
rates(lambda t, d, w, right: d ** -0.5 * min(w ** -0.5, t * w ** -1.5, math.exp(-t / w)))
rates(lambda t, d, w, right: np.array(right(t, d, w)))


# ---------------------------------------------------------------- beam_search

@right("beam_search")
def with_tensors(step, state, bos_id, eos_id, beam, max_len, alpha=0.6):
    words, log_p, states = torch.tensor([[bos_id]]), torch.zeros(1), [state]
    done = []
    for _ in range(max_len):
        found = [step(row[-1].item(), one) for row, one in zip(words, states, strict=True)]
        logits, states = torch.stack([logits for logits, _ in found]), [after for _, after in found]
        total = log_p[:, None] + torch.log_softmax(logits, dim=-1)             # (live, vocab)
        log_p, places = total.view(-1).topk(min(beam, total.numel()))
        parents, tokens = places // total.size(1), places % total.size(1)
        words = torch.cat([words[parents], tokens[:, None]], dim=1)
        states = [states[parent] for parent in parents]
        ended = tokens == eos_id
        lp = ((5 + words.size(1) - 1) / 6) ** alpha
        done += [(score.item() / lp, row[1:-1].tolist())
                 for score, row in zip(log_p[ended], words[ended], strict=True)]
        states = [one for one, end in zip(states, ended, strict=True) if not end]
        words, log_p = words[~ended], log_p[~ended]
        if len(words) == 0:
            break
    return max(done)[1] if done else words[0, 1:].tolist()


@right("beam_search")
def with_a_heap(step, state, bos_id, eos_id, beam, max_len, alpha=0.6):
    live, best = [([], 0.0, step(bos_id, state))], None
    for length in range(1, max_len + 1):
        candidates = []
        for words, score, (logits, after) in live:
            p = torch.softmax(logits.double(), 0).tolist()
            candidates += [(words + [w], score + math.log(p[w]), after) for w in range(len(p))]
        live = []
        for words, score, after in heapq.nlargest(beam, candidates, key=lambda one: one[1]):
            if words[-1] != eos_id:
                live.append((words, score, step(words[-1], after)))
                continue
            worth = score * (6 / (5 + length)) ** alpha
            if best is None or worth > best[0]:
                best = worth, words[:-1]
        if not live:
            break
    return best[1] if best else max(live, key=lambda one: one[1])[0]


@right("beam_search")
def with_top_words_of_each(step, state, bos_id, eos_id, beam, max_len, alpha=0.6):
    hypotheses, finished = [{"tokens": [bos_id], "score": 0, "state": state}], []
    while hypotheses and len(hypotheses[0]["tokens"]) <= max_len:
        new = []
        for one in hypotheses:
            logits, after = step(torch.tensor(one["tokens"][-1]), one["state"])
            values, tokens = logits.log_softmax(0).topk(min(beam, len(logits)))
            new += [{"tokens": one["tokens"] + [int(t)], "score": one["score"] + float(v), "state": after}
                    for v, t in zip(values, tokens, strict=True)]
        new = sorted(new, key=lambda one: -one["score"])[:beam]
        finished += [one for one in new if one["tokens"][-1] == eos_id]
        hypotheses = [one for one in new if one["tokens"][-1] != eos_id]
    if not finished:
        return hypotheses[0]["tokens"][1:]
    best = max(finished, key=lambda one: one["score"] / ((4 + len(one["tokens"])) / 6) ** alpha)
    return best["tokens"][1:-1]


@right("beam_search")
def from_the_beginning_each_time(step, state, bos_id, eos_id, beam, max_len, alpha=0.6):
    def log_p(words):
        one = state
        for word in [bos_id, *words]:
            logits, one = step(word, one)
        return logits.log_softmax(-1).tolist()
    live, ended = {(): 0.0}, {}
    for _ in range(max_len):
        grown = {(*words, word): score + p for words, score in live.items()
                 for word, p in enumerate(log_p(words))}
        kept = dict(sorted(grown.items(), key=lambda one: one[1])[-beam:])
        ended |= {words: score / ((5 + len(words)) / 6) ** alpha
                  for words, score in kept.items() if words[-1] == eos_id}
        live = {words: score for words, score in kept.items() if words[-1] != eos_id}
    return list(max(ended, key=ended.get)[:-1] if ended else max(live, key=live.get))


def searches(change):
    wrong("beam_search")(lambda *given: change(decoding.beam_search, *given))


searches(lambda right, *given: right(*given)[::-1])
searches(lambda right, *given: right(*given)[1:])
searches(lambda right, *given: np.array(right(*given)))
searches(lambda right, *given: list(map(str, right(*given))))
searches(lambda right, *given: None)
searches(lambda right, *given: [right(*given)])
searches(lambda right, step, s, b, e, *more: right(step, s, e, b, *more))
searches(lambda right, step, s, *more: right(step, s + 1, *more))
searches(lambda right, step, s, b, e, k, n, a: right(step, s, b, e, k, n, 3 * a))
searches(lambda right, step, s, b, e, k, n, a: right(step, s, b, e, 2 * k, n, a))
searches(lambda right, step, *more: right(lambda t, s: (2 * step(t, s)[0], step(t, s)[1]), *more))
searches(lambda right, *given: (right(*given), 0.0))


# ---------------------------------------------------------------- Transformer

class Parts(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model, h, d_ff, N):
        super().__init__()
        self.source, self.target = nn.Embedding(vocab_src, d_model), nn.Embedding(vocab_tgt, d_model)
        self.encoder = nn.ModuleList([transformer.EncoderBlock(d_model, h, d_ff) for _ in range(N)])
        self.decoder = nn.ModuleList([transformer.DecoderBlock(d_model, h, d_ff) for _ in range(N)])

    def forward(self, src, tgt, pad_id):
        root = self.source.embedding_dim ** 0.5
        mask = padding_mask((src != pad_id).sum(dim=1), src.size(1))
        x, y = add_positions(root * self.source(src)), add_positions(root * self.target(tgt[:, :-1]))
        for block in self.encoder:
            x = block(x, mask)
        for block in self.decoder:
            y = block(y, x, causal_mask(y.size(1)), mask)
        return F.linear(y, self.target.weight)


right("Transformer")(Parts)


@right("Transformer")
class WithATiedLayer(Parts):
    def __init__(self, vocab_src, vocab_tgt, d_model, h, d_ff, N):
        super().__init__(vocab_src, vocab_tgt, d_model, h, d_ff, N)
        self.generator = nn.Linear(d_model, vocab_tgt, bias=False)
        self.generator.weight = self.target.weight
        nn.init.normal_(self.target.weight, std=d_model ** -0.5)
        self.scale = math.sqrt(d_model)

    def encode(self, src, mask):
        x = add_positions(self.source(src) * self.scale)
        for layer in self.encoder:
            x = layer(x, mask=mask)
        return x

    def forward(self, src, tgt, pad_id):
        given, mask = tgt[:, :-1], src.ne(pad_id).unsqueeze(1)
        own = causal_mask(given.shape[1]) & (given != pad_id).unsqueeze(1)
        y = add_positions(self.target(given) * self.scale)
        memory = self.encode(src, mask)
        for layer in self.decoder:
            y = layer(y, memory, self_mask=own, memory_mask=mask)
        return self.generator(y)


@right("Transformer")
class TiedTheOtherWay(nn.Module):
    """The layer comes first, and the embedding takes its weights."""

    def __init__(self, vocab_src, vocab_tgt, d_model, h, d_ff, N):
        super().__init__()
        self.scores = nn.Linear(d_model, vocab_tgt, bias=False)
        self.decoder, self.encoder = nn.ModuleList(), nn.ModuleList()
        for _ in range(N):
            self.encoder.append(transformer.EncoderBlock(d_model, h, d_ff))
            self.decoder.append(transformer.DecoderBlock(d_model, h, d_ff))
        self.target, self.source = nn.Embedding(vocab_tgt, d_model), nn.Embedding(vocab_src, d_model)
        self.target.weight = self.scores.weight

    def forward(self, src, tgt, pad_id):
        B, n = tgt.shape
        real = (src != pad_id).view(B, 1, -1).expand(B, src.size(1), -1)
        x = add_positions(self.source.weight[src] * math.sqrt(self.source.weight.size(1)))
        y = add_positions(F.embedding(tgt, self.target.weight) * math.sqrt(self.target.embedding_dim))
        for block in self.encoder:
            x = block(x, real)
        triangle = torch.arange(n)[:, None] >= torch.arange(n)
        for block in self.decoder:
            y = block(y, x, triangle.expand(B, n, n), real[:, :1])
        return self.scores(y)[:, :-1]


def assembled(forward):
    wrong("Transformer")(type("Bent", (Parts,), {"forward": forward}))


assembled(lambda self, src, tgt, pad_id: 2 * Parts.forward(self, src, tgt, pad_id))
assembled(lambda self, src, tgt, pad_id: Parts.forward(self, src.flip(1), tgt, pad_id))
assembled(lambda self, src, tgt, pad_id: Parts.forward(self, src, tgt, pad_id)[:, 1:])
assembled(lambda self, src, tgt, pad_id: (Parts.forward(self, src, tgt, pad_id), src))
assembled(lambda self, src, tgt, pad_id: Parts.forward(self, src, tgt, pad_id).double())
assembled(lambda self, src, tgt, pad_id: Parts.forward(self, src, tgt, pad_id).relu())
assembled(lambda self, src, tgt, pad_id: Parts.forward(self, src, tgt, pad_id).detach())
assembled(lambda self, src, tgt, pad_id: Parts.forward(self, tgt, src, pad_id))
assembled(lambda self, src, tgt, pad_id: None)
assembled(lambda self, src, tgt: Parts.forward(self, src, tgt, 0))


@wrong("Transformer")
class AnotherNorm(Parts):
    def __init__(self, vocab_src, vocab_tgt, d_model, h, d_ff, N):
        super().__init__(vocab_src, vocab_tgt, d_model, h, d_ff, N)
        self.norm = nn.LayerNorm(d_model)


@wrong("Transformer")
class OtherNames(nn.Module):
    def __init__(self, vocab_src, vocab_tgt, d_model, h, d_ff, N):
        super().__init__()
        self.parts = Parts(vocab_src, vocab_tgt, d_model, h, d_ff, N)

    def forward(self, src, tgt, pad_id):
        return self.parts(src, tgt, pad_id)


@wrong("Transformer")
class OneEmbedding(Parts):
    def __init__(self, vocab_src, vocab_tgt, d_model, h, d_ff, N):
        super().__init__(max(vocab_src, vocab_tgt), vocab_tgt, d_model, h, d_ff, N)
        self.target = self.source


@wrong("Transformer")
class KeepsItsMasks(Parts):
    """Right at the first call, and at none of another size."""
    kept = None

    def forward(self, src, tgt, pad_id):
        self.kept = src if self.kept is None else self.kept
        return Parts.forward(self, self.kept[:len(src)], tgt, pad_id)


@wrong("Transformer")
class PaddingLearnsNothing(Parts):
    """Word 0 is a word like others where the padding has another number."""

    def __init__(self, vocab_src, vocab_tgt, d_model, h, d_ff, N):
        super().__init__(vocab_src, vocab_tgt, d_model, h, d_ff, N)
        self.source = nn.Embedding(vocab_src, d_model, padding_idx=0)


# ---------------------------------------------------------------- train

def by_hand(model, batches, optimizer, rate, loss, max_norm, change=lambda loss: loss, kept=float):
    """Zeroes and clips without torch's helpers."""
    model.train(True)
    found, step, parameters = [], 0, [p for group in optimizer.param_groups for p in group["params"]]
    for batch in batches:
        step += 1
        for parameter in parameters:
            parameter.grad = None
        value = loss(model, batch)
        change(value).backward()
        norm = torch.cat([parameter.grad.flatten() for parameter in parameters]).norm()
        for parameter in parameters:
            parameter.grad.mul_(min(1.0, max_norm / norm.item()))
        for group in optimizer.param_groups:
            group.update(lr=rate(step))
        optimizer.step()
        found = [*found, kept(value)]
    return found


right("train")(by_hand)


@right("train")
def zeroed_after_the_step(model, batches, optimizer, rate, loss, max_norm):
    model.train()
    losses = []
    for number, batch in enumerate(list(batches)):
        value = loss(model, batch)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        for group in optimizer.param_groups:
            group["lr"] = rate(number + 1)
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        losses += value.detach().tolist(),
    model.eval()
    return losses


@right("train")
def with_torchs_gradients(model, batches, optimizer, rate, loss, max_norm):
    """By torch.autograd.grad, in training mode for each batch anew."""
    def one(step, batch):
        model.train()
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        value, parameters = loss(model, batch), list(model.parameters())
        for parameter, grad in zip(parameters, torch.autograd.grad(value, parameters), strict=True):
            parameter.grad = grad
        torch.nn.utils.clip_grad_norm_(parameters, max_norm=max_norm)
        optimizer.step()
        return value.item()
    return [one(step, batch) for step, batch in enumerate(batches, 1)]


@right("train")
def by_a_schedule_of_torchs(model, batches, optimizer, rate, loss, max_norm):
    first = [group["lr"] for group in optimizer.param_groups]
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, [lambda done, start=start: rate(done + 1) / start for start in first])
    losses = []
    model.train()
    for batch in batches:
        optimizer.zero_grad()
        value = loss(model, batch)
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        schedule.step()
        losses.append(value.item())
    return losses


wrong("train")(lambda *given: by_hand(*given, change=lambda loss: 2 * loss))
wrong("train")(lambda *given: by_hand(*given, change=lambda loss: loss ** 2))
wrong("train")(lambda *given: by_hand(*given, kept=lambda loss: round(loss.item(), 1)))
wrong("train")(lambda *given: by_hand(*given, kept=lambda loss: math.exp(loss.item())))
wrong("train")(lambda *given: by_hand(*given, kept=lambda loss: str(loss.item())))
wrong("train")(lambda *given: None if by_hand(*given) else None)
wrong("train")(lambda *given: by_hand(*given)[:-1])
wrong("train")(lambda model, batches, optimizer, rate, loss, most: by_hand(
    model, batches, optimizer, rate, loss, most / 2))
wrong("train")(lambda model, batches, optimizer, rate, loss, most: by_hand(
    model, batches, optimizer, lambda step: rate(step) / 2, loss, most))
wrong("train")(lambda model, batches, optimizer, rate, loss, most: by_hand(
    model, list(batches)[::-1], optimizer, rate, loss, most))
wrong("train")(lambda model, batches, optimizer, rate, loss, most: by_hand(
    model, list(batches) * 2, optimizer, rate, loss, most))
wrong("train")(lambda model, batches, optimizer, rate, loss, most: by_hand(
    model, list(batches)[:-1], optimizer, rate, loss, most))


# ---------------------------------------------------------------- translate

@right("translate")
def restores_the_mode(model, sentences, bos_id, eos_id, max_len):
    mode, found = model.training, []
    model.train(False)
    with torch.inference_mode():
        for sentence in sentences:
            tokens = torch.full((1, 1), bos_id)
            while tokens.size(1) <= max_len and (tokens.size(1) == 1 or tokens[0, -1] != eos_id):
                logits = model(torch.as_tensor(sentence)[None], tokens)
                tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
            found.append([token for token in tokens[0, 1:].tolist() if token != eos_id])
    model.train(mode)
    return found


@right("translate")
def without_dropouts_share(model, sentences, bos_id, eos_id, max_len):
    """Every dropout is told to drop nothing."""
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return by_greedy_decode(model, sentences, bos_id, eos_id, max_len)


@right("translate")
def by_greedy_decode(model, sentences, bos_id, eos_id, max_len):
    def step(token, state):
        sentence, before = state
        logits = model.eval()(torch.tensor([sentence]), torch.tensor([[*before, token]]))
        return logits[0][-1], (sentence, [*before, token])
    return [decoding.greedy_decode(step, (sentence, []), bos_id, eos_id, max_len) for sentence in sentences]


def translated(change=lambda found: found, read=lambda sentence: sentence,
               pick=lambda logits: logits.argmax()):
    def answer(model, sentences, bos_id, eos_id, max_len):
        def step(token, state):
            sentence, before = state
            logits = model.eval()(torch.tensor([read(sentence)]), torch.tensor([[*before, token]]))
            scores = torch.zeros_like(logits[0, -1])
            scores[pick(logits[0, -1])] = 1
            return scores, (sentence, [*before, token])
        return change([decoding.greedy_decode(step, (sentence, []), bos_id, eos_id, max_len)
                       for sentence in sentences])
    wrong("translate")(answer)


translated(lambda found: None)
translated(lambda found: found[::-1] + [[]])
translated(lambda found: [one[::-1] + [0] for one in found])
translated(lambda found: dict(enumerate(found)))
translated(lambda found: [" ".join(map(str, one)) for one in found])
translated(lambda found: [[float(token) for token in one] for one in found])
translated(read=lambda sentence: sentence[:1])
translated(pick=lambda logits: logits.topk(2).indices[1])
wrong("translate")(lambda model, *given: by_greedy_decode(nn.Identity(), *given))

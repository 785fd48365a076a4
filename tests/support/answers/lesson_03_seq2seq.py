"""Answers to exercise 03 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math
from collections import Counter, defaultdict
from itertools import zip_longest

import numpy as np
import torch
import torch.nn.functional as F

from answers import right, wrong
from course_lib.data import batches
from course_lib.decoding import greedy_decode
from course_lib.metrics import bleu
from course_lib.training import sequence_loss

# ---------------------------------------------------------------- pad_batch

@right("pad_batch")
def by_columns(sequences, pad_id):
    columns = list(zip_longest(*sequences, fillvalue=pad_id))
    return torch.tensor(columns).T.contiguous(), torch.tensor(list(map(len, sequences)))


@right("pad_batch")
def by_places(sequences, pad_id):
    ids = torch.zeros(len(sequences), max(len(s) for s in sequences), dtype=torch.long) + pad_id
    for b, sequence in enumerate(sequences):
        for i, word in enumerate(sequence):
            ids[b, i] = word
    return ids, torch.LongTensor([len(s) for s in sequences])


@right("pad_batch")
def by_numpy(sequences, pad_id):
    ids = np.full((len(sequences), max(map(len, sequences))), pad_id)
    for row, sequence in zip(ids, sequences, strict=True):
        row[:len(sequence)] = sequence
    return torch.from_numpy(ids), torch.from_numpy((ids != pad_id).sum(axis=1))


wrong("pad_batch")(lambda s, p: (batches.pad_batch(s, p)[0].flip(0), batches.pad_batch(s, p)[1]))
wrong("pad_batch")(lambda s, p: (batches.pad_batch(s, p)[0], batches.pad_batch(s, p)[1] + 1))
wrong("pad_batch")(lambda s, p: (batches.pad_batch(s, p)[0], batches.pad_batch(s, p)[1].float()))
wrong("pad_batch")(lambda s, p: (batches.pad_batch([x[::-1] for x in s], p)[0], batches.pad_batch(s, p)[1]))
wrong("pad_batch")(lambda s, p: (batches.pad_batch([x[1:] for x in s], p)[0], batches.pad_batch(s, p)[1] - 1))
wrong("pad_batch")(lambda s, p: (batches.pad_batch(s, -100)[0], batches.pad_batch(s, p)[1]))
wrong("pad_batch")(lambda s, p: torch.tensor(s))
wrong("pad_batch")(lambda s, p: None)


# ---------------------------------------------------------------- teacher_forcing

@right("teacher_forcing")
def row_by_row(ids, bos_id, eos_id, pad_id):
    inputs, targets = [], []
    for row in ids.tolist():
        words = [word for word in row if word != pad_id]
        inputs.append([bos_id, *row])
        targets.append([*words, eos_id] + [pad_id] * (len(row) - len(words)))
    return torch.tensor(inputs), torch.tensor(targets)


@right("teacher_forcing")
def by_where(ids, bos_id, eos_id, pad_id):
    B, n = ids.shape
    wide = torch.cat([ids, torch.full((B, 1), pad_id)], dim=-1)
    last = torch.arange(n + 1)[None] == (ids != pad_id).sum(-1, keepdim=True)
    return torch.cat([torch.full((B, 1), bos_id), ids], dim=-1), torch.where(last, eos_id, wide)


@right("teacher_forcing")
def by_scatter(ids, bos_id, eos_id, pad_id):
    inputs = torch.nn.functional.pad(ids, (1, 0), value=bos_id)
    lengths = (ids != pad_id).sum(dim=1, keepdim=True)
    return inputs, torch.nn.functional.pad(ids, (0, 1), value=pad_id).scatter(1, lengths, eos_id)


def forced(ids, bos_id, eos_id, pad_id):
    return batches.teacher_forcing(ids, bos_id, eos_id, pad_id)


wrong("teacher_forcing")(lambda ids, b, e, p: forced(ids, b, e, p)[0])
wrong("teacher_forcing")(lambda ids, b, e, p: forced(ids.flip(0), b, e, p))
wrong("teacher_forcing")(lambda ids, b, e, p: tuple(part.float() for part in forced(ids, b, e, p)))
wrong("teacher_forcing")(lambda ids, b, e, p: tuple(part.T for part in forced(ids, b, e, p)))
wrong("teacher_forcing")(lambda ids, b, e, p: forced(ids, 1, 2, 0))
wrong("teacher_forcing")(lambda ids, b, e, p: (forced(ids, b, e, p)[0].roll(1, 1), forced(ids, b, e, p)[1]))
wrong("teacher_forcing")(lambda ids, b, e, p: None)


@wrong("teacher_forcing")
def changes_ids(ids, bos_id, eos_id, pad_id):
    result = forced(ids, bos_id, eos_id, pad_id)
    ids[:, 0] = bos_id
    return result


# ---------------------------------------------------------------- sequence_loss

@right("sequence_loss")
def by_loops(logits, targets, pad_id):
    total, count = 0.0, 0
    for b in range(targets.size(0)):
        for i in range(targets.size(1)):
            if targets[b, i] != pad_id:
                total = total + torch.logsumexp(logits[b, i], 0) - logits[b, i, targets[b, i]]
                count += 1
    return total / count


@right("sequence_loss")
def by_mask(logits, targets, pad_id):
    real = (targets != pad_id).to(logits.dtype)
    p = torch.softmax(logits, -1).gather(2, targets.unsqueeze(2)).squeeze(2)
    return -(p.log() * real).sum() / real.sum()


@right("sequence_loss")
def by_one_hot(logits, targets, pad_id):
    real = targets != pad_id
    one_hot = torch.nn.functional.one_hot(targets, logits.size(-1)).to(logits.dtype)
    return -(torch.log_softmax(logits, 2) * one_hot).sum(-1).masked_select(real).mean()


wrong("sequence_loss")(lambda x, y, p: 2 * sequence_loss(x, y, p))
wrong("sequence_loss")(lambda x, y, p: sequence_loss(x, y, p) / math.log(2))
wrong("sequence_loss")(lambda x, y, p: sequence_loss(x, y, p).exp())
wrong("sequence_loss")(lambda x, y, p: sequence_loss(x.detach(), y, p))
wrong("sequence_loss")(lambda x, y, p: sequence_loss(x, y, p)[None])
wrong("sequence_loss")(lambda x, y, p: sequence_loss(x, y, p).double() if x.dtype == torch.float32 else
                       sequence_loss(x, y, p).float())
wrong("sequence_loss")(lambda x, y, p: sequence_loss(x[:, :1], y[:, :1], p))
wrong("sequence_loss")(lambda x, y, p: sequence_loss(-x, y, p))
wrong("sequence_loss")(lambda x, y, p: sequence_loss(x, y, p) + 0.01)


# ---------------------------------------------------------------- greedy_decode

@right("greedy_decode")
def by_while(step, state, bos_id, eos_id, max_len):
    words = [bos_id]
    while len(words) <= max_len:
        logits, state = step(words[-1], state)
        words.append(torch.argmax(logits).item())
        if words[-1] == eos_id:
            return words[1:-1]
    return words[1:]


@right("greedy_decode")
def by_recursion(step, state, bos_id, eos_id, max_len):
    if max_len == 0:
        return []
    logits, state = step(bos_id, state)
    word = max(range(len(logits)), key=lambda word: float(logits[word]))
    return [] if word == eos_id else [word, *by_recursion(step, state, word, eos_id, max_len - 1)]


@right("greedy_decode")
def by_softmax(step, state, bos_id, eos_id, max_len):
    words, token = [], torch.tensor(bos_id)
    while len(words) < max_len:
        logits, state = step(token, state)
        token = logits.softmax(-1).topk(1).indices[0]
        if token.item() == eos_id:
            break
        words += [token.item()]
    return words


wrong("greedy_decode")(lambda *given: greedy_decode(*given)[::-1] + [3])
wrong("greedy_decode")(lambda *given: greedy_decode(*given)[1:])
wrong("greedy_decode")(lambda *given: tuple(greedy_decode(*given)) + (3,))
wrong("greedy_decode")(lambda *given: list(map(str, greedy_decode(*given))))
wrong("greedy_decode")(lambda *given: None)
wrong("greedy_decode")(lambda step, s, b, e, n: greedy_decode(step, s, e, b, n))
wrong("greedy_decode")(lambda step, s, b, e, n: greedy_decode(step, s + 1, b, e, n))
wrong("greedy_decode")(lambda step, s, b, e, n: greedy_decode(lambda t, s: step(t, s + 1), s, b, e, n))
wrong("greedy_decode")(lambda step, s, b, e, n: [w for w in greedy_decode(step, s, b, e, n) if w % 2])


# ---------------------------------------------------------------- bleu

@right("bleu")
def by_dictionaries(candidates, references, max_n=4):
    matches, totals = defaultdict(int), defaultdict(int)
    for candidate, reference in zip(candidates, references, strict=True):
        for n in range(1, max_n + 1):
            left = [tuple(reference[i:i + n]) for i in range(len(reference) - n + 1)]
            for i in range(len(candidate) - n + 1):
                totals[n] += 1
                run = tuple(candidate[i:i + n])
                if run in left:
                    left.remove(run)
                    matches[n] += 1
    if any(matches[n] == 0 for n in range(1, max_n + 1)):
        return 0.0
    product = math.prod(matches[n] / totals[n] for n in range(1, max_n + 1)) ** (1 / max_n)
    written, wanted = sum(len(c) for c in candidates), sum(len(r) for r in references)
    return product * 100 * (1 if written >= wanted else math.exp(1 - wanted / written))


@right("bleu")
def by_minimum(candidates, references, max_n=4):
    precisions = []
    for n in range(1, max_n + 1):
        hit = all_runs = 0
        for c, r in zip(candidates, references, strict=True):
            ours = Counter(zip(*[c[i:] for i in range(n)], strict=False))
            theirs = Counter(zip(*[r[i:] for i in range(n)], strict=False))
            hit += sum(min(times, theirs[run]) for run, times in ours.items())
            all_runs += sum(ours.values())
        precisions.append(hit / all_runs)
    if min(precisions) == 0:
        return 0.0
    brevity = sum(map(len, references)) / sum(map(len, candidates))
    return 100.0 * float(np.exp(min(0, 1 - brevity))) * float(np.exp(np.mean(np.log(precisions))))


@right("bleu")
def by_joined_text(candidates, references, max_n=4):
    def grams(tokens, n):
        return Counter(" ".join(tokens[i:i + n]) for i in range(0, len(tokens) - n + 1))
    logs = 0.0
    for n in range(1, max_n + 1):
        pairs = [(grams(c, n), grams(r, n)) for c, r in zip(candidates, references, strict=True)]
        hit = sum((c & r).total() for c, r in pairs)
        if not hit:
            return 0.0
        logs += math.log(hit) - math.log(sum(c.total() for c, _ in pairs))
    short = 1 - sum(map(len, references)) / sum(map(len, candidates))
    return 100 * math.exp(logs / max_n + min(0.0, short))


wrong("bleu")(lambda c, r, n=4: bleu(c, r, n) / 2)
wrong("bleu")(lambda c, r, n=4: bleu(r, c, n))
wrong("bleu")(lambda c, r, n=4: bleu([x[::-1] for x in c], r, n))
wrong("bleu")(lambda c, r, n=4: bleu(c, r, n + 1))
wrong("bleu")(lambda c, r, n=4: torch.tensor(bleu(c, r, n)))
wrong("bleu")(lambda c, r, n=4: None)
wrong("bleu")(lambda c, r, n=4: 100.0 * sum(x == y for x, y in zip(c, r, strict=True)) / len(c))
wrong("bleu")(lambda c, r, n=4: bleu(c[:1], r[:1], n))
wrong("bleu")(lambda c, r, n=4: bleu([sum(c, [])], [sum(r, [])], n))


# ---------------------------------------------------------------- seq2seq_logits

def teacher_forced(source, lengths, target_inputs, encoder, decoder, W_out, change=lambda logits: logits):
    B, d_h, states = len(source), W_out.shape[0], []
    h = torch.zeros(B, d_h, dtype=W_out.dtype)
    for t in range(source.shape[1]):
        h = encoder(source[:, t], h)
        states.append(h)
    h = torch.stack([states[length - 1][row] for row, length in enumerate(lengths.tolist())])
    rows = []
    for t in range(target_inputs.shape[1]):
        h = decoder(target_inputs[:, t], h)
        rows.append(h)
    return change(torch.stack(rows, 1) @ W_out)


right("seq2seq_logits")(teacher_forced)


@right("seq2seq_logits")
def with_numbers_for_a_mask(source, lengths, target_inputs, encoder, decoder, W_out):
    h = torch.zeros(source.size(0), W_out.size(0)).to(W_out.dtype)
    for t, x_t in enumerate(source.T):
        real = (t < lengths).to(W_out.dtype).unsqueeze(1)
        h = real * encoder(x_t, h) + (1 - real) * h
    logits = []
    for y_t in target_inputs.T:
        h = decoder(y_t, h)
        logits.append(torch.matmul(h, W_out))
    return torch.stack(logits).transpose(0, 1)


@right("seq2seq_logits")
def one_sentence_after_the_other(source, lengths, target_inputs, encoder, decoder, W_out):
    found = []
    for x, length, y in zip(source, lengths.tolist(), target_inputs, strict=True):
        h = W_out.new_zeros(1, W_out.size(0))
        for word in x[:length]:
            h = encoder(word[None], h)
        row = []
        for word in y:
            h = decoder(word[None], h)
            row.append((h @ W_out)[0])
        found.append(torch.stack(row))
    return torch.stack(found)


for twist in (lambda logits: 2 * logits, lambda logits: logits.flip(1), lambda logits: logits.cumsum(1),
              lambda logits: logits.tanh(), lambda logits: logits.roll(1, -1),
              lambda logits: logits[:, :, :-1],
              lambda logits: logits.mean(1, keepdim=True).expand_as(logits)):
    wrong("seq2seq_logits")(lambda *given, twist=twist: teacher_forced(*given, change=twist))


# ---------------------------------------------------------------- training_step

def by_gather(model, optimizer, source, target, pad_id, change=lambda loss: loss, said=float):
    optimizer.zero_grad(set_to_none=False)
    inputs, targets = target[:, :-1], target[:, 1:]
    log_p = model(source, inputs).log_softmax(-1)
    loss = -log_p.gather(-1, targets.unsqueeze(-1)).squeeze(-1)[targets != pad_id].mean()
    change(loss).backward()
    optimizer.step()
    return said(loss)


right("training_step")(by_gather)


@right("training_step")
def flattened(model, optimizer, source, target, pad_id):
    logits = model(source, target[:, :-1])
    logits, targets = logits.reshape(-1, logits.size(-1)), target[:, 1:].reshape(-1)
    loss = F.cross_entropy(logits, targets, ignore_index=pad_id)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.detach().item()


@right("training_step")
def zeroed_by_hand(model, optimizer, source, target, pad_id):
    for parameter in model.parameters():
        parameter.grad = None
    real = target[:, 1:] != pad_id
    loss = F.nll_loss(F.log_softmax(model(source, target[:, :-1]), -1)[real], target[:, 1:][real])
    loss.backward()
    optimizer.step()
    return float(loss)


wrong("training_step")(lambda *given: by_gather(*given, change=lambda loss: 2 * loss))
wrong("training_step")(lambda *given: by_gather(*given, change=lambda loss: -loss))
wrong("training_step")(lambda *given: by_gather(*given, change=lambda loss: loss ** 2))
wrong("training_step")(lambda *given: by_gather(*given, said=lambda loss: loss))
wrong("training_step")(lambda *given: by_gather(*given, said=lambda loss: None))
wrong("training_step")(lambda *given: by_gather(*given, said=lambda loss: math.exp(loss.item())))
wrong("training_step")(lambda *given: by_gather(*given, said=lambda loss: loss.item() + 1))

"""Decoding: a model that predicts the next token generates a sentence.  Lessons 03 and 12"""

import math

import torch


def greedy_decode(step, state, bos_id, eos_id, max_len):
    """Take the likeliest token at each step, feed it back in, and stop at <eos>.

    step(token, state) -> (logits (vocab,), state), `token` an int.  state: whatever step takes and returns.
    Returns a list of ints without <bos> and <eos>, at most max_len of them.
    """
    token, tokens = bos_id, []
    for _ in range(max_len):
        logits, state = step(token, state)
        token = int(logits.argmax())
        if token == eos_id:
            break
        tokens.append(token)
    return tokens


@torch.inference_mode()
def greedy_batch(step, state, bos_id, eos_id, max_len, size, device=None):
    """`greedy_decode` for `size` sentences side by side: a list of lists of ints.

    step(tokens (size,), state) -> (logits (size, vocab), state).  A sentence that has ended is decoded on
    until all have, and cut at its <eos>.  device: where the model is, torch's default otherwise.
    """
    tokens, columns = torch.full((size,), bos_id, device=device), []
    ended = torch.zeros(size, dtype=torch.bool, device=device)
    for _ in range(max_len):
        logits, state = step(tokens, state)
        tokens = logits.argmax(dim=-1)                            # (size,)
        columns.append(tokens)
        ended = ended | (tokens == eos_id)
        if ended.all():
            break
    rows = torch.stack(columns, dim=1).tolist() if columns else [[] for _ in range(size)]
    return [row[:row.index(eos_id)] if eos_id in row else row for row in rows]


@torch.inference_mode()
def beam_search(step, state, bos_id, eos_id, beam, max_len, alpha=0.6):
    """Keep the `beam` most probable partial hypotheses; of those that end, return the best for its length.

    step, state, max_len and the result as in `greedy_decode`, and beam = 1 is that.  A sentence scores
    log p / ((5 + length) / 6)^alpha, its <eos> counted.  One that ends takes one of the `beam`
    places in that step; in the next step all places are free again.  If none has ended after max_len steps:
    the most probable one.  alpha >= 0.  Wu et al. 2016, eq. 14
    """
    def penalty(length):
        return ((5 + length) / 6) ** alpha

    live, finished = [(0.0, [bos_id], state)], []               # (log p, tokens from <bos>, state)
    for length in range(1, max_len + 1):
        steps = [step(words[-1], state) for _, words, state in live]
        log_p = torch.stack([before + logits.log_softmax(dim=-1)
                             for (before, _, _), (logits, _) in zip(live, steps, strict=True)])
        best, places = log_p.flatten().topk(min(beam, log_p.numel()))          # of (live, vocab)
        old, live = live, []
        for score, place in zip(best.tolist(), places.tolist()):
            row, token = divmod(place, log_p.size(1))
            if score == -math.inf:                              # impossible, and there was room
                continue
            if token == eos_id:
                finished.append((score / penalty(length), old[row][1]))
            else:
                live.append((score, old[row][1] + [token], steps[row][1]))
        highest = max((score for score, _ in finished), default=-math.inf)
        if not live or live[0][0] / penalty(max_len) <= highest:    # no ending of it could score higher
            break
    if finished:
        return max(finished, key=lambda found: found[0])[1][1:]
    return live[0][1][1:] if live else []

"""Writing a sentence word by word with a model that predicts the next one.  Lesson 03"""

import torch


def greedy_decode(step, state, bos_id, eos_id, max_len):
    """Take the likeliest word at each step, give it back in, and stop at <eos>.

    step(token, state) -> (logits (vocab,), state), `token` an int.  state: whatever step takes and returns.
    Returns the words as a list of ints, without <bos> and <eos>, max_len at the most.
    """
    token, words = bos_id, []
    for _ in range(max_len):
        logits, state = step(token, state)
        token = int(logits.argmax())
        if token == eos_id:
            break
        words.append(token)
    return words


@torch.no_grad()
def greedy_batch(step, state, bos_id, eos_id, max_len, size):
    """`greedy_decode` for `size` sentences side by side: a list of lists of ints.

    step(tokens (size,), state) -> (logits (size, vocab), state).  A sentence that has ended is decoded on
    until all have, and cut at its <eos>.
    """
    tokens, columns = torch.full((size,), bos_id), []
    ended = torch.zeros(size, dtype=torch.bool)
    for _ in range(max_len):
        logits, state = step(tokens, state)
        tokens = logits.argmax(dim=-1)                            # (size,)
        columns.append(tokens)
        ended = ended | (tokens == eos_id)
        if ended.all():
            break
    rows = torch.stack(columns, dim=1).tolist() if columns else [[] for _ in range(size)]
    return [row[:row.index(eos_id)] if eos_id in row else row for row in rows]

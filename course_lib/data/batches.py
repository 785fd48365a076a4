"""From sentences of any length to rectangles of numbers.  Lesson 03"""

import torch


def pad_batch(sequences, pad_id):
    """Sequences of different lengths as one rectangle, padded on the right.

    sequences: B lists of ints  ->  ids (B, n), n the longest of them; lengths (B,), without padding

    >>> ids, lengths = pad_batch([[5, 6, 7], [8]], pad_id=0)
    >>> ids.tolist(), lengths.tolist()
    ([[5, 6, 7], [8, 0, 0]], [3, 1])
    """
    lengths = torch.tensor([len(sequence) for sequence in sequences])        # (B,)
    ids = torch.full((len(sequences), int(lengths.max())), pad_id)           # (B, n)
    for row, sequence in zip(ids, sequences, strict=True):
        row[:len(sequence)] = torch.tensor(sequence, dtype=torch.long)
    return ids, lengths


def teacher_forcing(ids, bos_id, eos_id, pad_id):
    """What the decoder is given, and what it must predict: the same sentence, shifted by one step.

    ids (B, n), padded on the right  ->  inputs (B, n + 1), <bos> and then the sentence; targets (B, n + 1),
    the sentence and then <eos>, directly after its last token.  Williams & Zipser 1989

    >>> inputs, targets = teacher_forcing(torch.tensor([[5, 6, 7], [8, 0, 0]]), bos_id=1, eos_id=2, pad_id=0)
    >>> inputs.tolist(), targets.tolist()
    ([[1, 5, 6, 7], [1, 8, 0, 0]], [[5, 6, 7, 2], [8, 2, 0, 0]])
    """
    B, lengths = len(ids), (ids != pad_id).sum(dim=1)                        # (B,)
    inputs = torch.cat([ids.new_full((B, 1), bos_id), ids], dim=1)           # (B, n + 1)
    targets = torch.cat([ids, ids.new_full((B, 1), pad_id)], dim=1)          # (B, n + 1)
    targets[torch.arange(B), lengths] = eos_id
    return inputs, targets


def batches(sequences, size, generator):
    """Endless lists of `size` positions in `sequences`, each list of nearly equal lengths: little padding.

    sequences: anything with a length each, in any order.  Every sequence comes once a round.

    >>> draw = batches(["aaa", "b", "cc", "d"], 2, torch.Generator().manual_seed(0))
    >>> sorted(map(sorted, [next(draw), next(draw)]))
    [[0, 2], [1, 3]]
    """
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    while True:
        shuffled = torch.randperm(len(lengths), generator=generator)      # ties in another order each round
        order = shuffled[lengths[shuffled].argsort(stable=True)]
        parts = order.split(size)
        for number in torch.randperm(len(parts), generator=generator):
            yield parts[number].tolist()

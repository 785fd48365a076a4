"""Toy tasks, each made from a seed and small enough to read."""

import torch
import torch.nn.functional as F


def delayed_recall(generator, batch, lag, symbols=10):
    """Say the first letter of a random sequence after `lag` more letters have passed.

    Returns X (batch, lag + 2, symbols + 1), one-hot: lag + 1 letters and a question mark; and
    y (batch,), the number of the first letter.  `show_recall` writes a row as text.

    >>> X, y = delayed_recall(torch.Generator().manual_seed(0), batch=1, lag=4)
    >>> show_recall(X[0]), y.item()
    ('e h i f j ?', 4)
    """
    ids = torch.randint(symbols, (batch, lag + 2), generator=generator)
    ids[:, -1] = symbols                                      # the question mark
    return F.one_hot(ids, symbols + 1).float(), ids[:, 0]


def show_recall(X):
    """A row of `delayed_recall`, X (n, symbols + 1), as text."""
    mark = X.size(-1) - 1
    return " ".join("?" if i == mark else chr(ord("a") + i) for i in X.argmax(dim=-1).tolist())

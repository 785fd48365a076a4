"""Masks of current models: a sliding window, and several texts packed into one row.  Lesson 08

Both are Boolean, True = may attend, and causal.
"""

import torch


def sliding_window_mask(n, window):
    """mask[i, j] = (i - window < j <= i): the last `window` positions, itself included.

    Beltagy et al. 2020, section 3.1; Jiang et al. 2023, section 2  ->  (n, n), Boolean
    """
    distance = torch.arange(n)[:, None] - torch.arange(n)         # (n, n), how far j lies behind i
    return (distance >= 0) & (distance < window)


def packed_mask(documents):
    """mask[b, i, j] = (j <= i and both belong to the same document): several texts in a row, each on its own.

    documents (B, n), the number of the document of each position, in contiguous runs  ->  (B, n, n), Boolean
    """
    same = documents[:, :, None] == documents[:, None, :]         # (B, n, n)
    return same.tril()

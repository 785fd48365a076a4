"""Encoder-decoders with attention: RNNsearch (Bahdanau) and Luong's, with input feeding.  Lesson 04

The encoder runs once per sentence, and so does the source's part of every score (`keys`).  The decoder runs
one token at a time, since each step attends with the state that the previous step has left.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .attention import attend, attentional_state, dot_score


def drawn(*shape):
    """A weight as torch draws them: evenly within 1 / sqrt(its first size)."""
    return nn.Parameter(torch.empty(shape).uniform_(-1, 1) * shape[0] ** -0.5)


class Additive(nn.Module):
    """tanh(s W_s + h_j W_h) · v: `additive_score`, with h_j W_h computed once.  Additive(d_s, d_h, d_a)"""

    def __init__(self, d_s, d_h, d_a):
        super().__init__()
        self.W_s, self.W_h, self.v = drawn(d_s, d_a), drawn(d_h, d_a), drawn(d_a)

    def keys(self, H):
        """H (B, m, d_h)  ->  H W_h (B, m, d_a), the part of the score that depends on the source alone"""
        return H @ self.W_h

    def forward(self, s, keys):
        """s (B, d_s), keys (B, m, d_a)  ->  e (B, m)"""
        return torch.tanh((s @ self.W_s)[:, None] + keys) @ self.v


class Dot(nn.Module):
    """s · h_j: `dot_score`.  Nothing to learn; d_s must be d_h."""

    def keys(self, H):
        return H

    def forward(self, s, keys):
        return dot_score(s, keys)


class General(nn.Module):
    """(s W) · h_j: `general_score`, with h_j W^T computed once.  General(d_s, d_h)"""

    def __init__(self, d_s, d_h):
        super().__init__()
        self.W = drawn(d_s, d_h)

    def keys(self, H):
        return H @ self.W.T

    def forward(self, s, keys):
        return dot_score(s, keys)


class BiEncoder(nn.Module):
    """Two GRUs, one from each end: h_j = [forward; backward].  BiEncoder(vocab, d_emb, d_h), d_h even

    Bahdanau et al. 2015, section 3.2: h_j depends on the words up to j and on those from j on.
    """

    def __init__(self, vocab, d_emb, d_h):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_emb)
        self.gru = nn.GRU(d_emb, d_h // 2, batch_first=True, bidirectional=True)

    def forward(self, x, lengths):
        """x (B, m) token numbers, lengths (B,)  ->  H (B, m, d_h), mask (B, m): True where a word is"""
        m, E = x.size(1), self.embedding(x)                       # (B, m, d_emb)
        packed = pack_padded_sequence(E, lengths, batch_first=True, enforce_sorted=False)
        H, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=m)    # (B, m, d_h)
        return H, torch.arange(m) < lengths[:, None]


class Source(NamedTuple):
    """What every step of the decoder attends to; it stays the same for the whole sentence."""

    H: torch.Tensor       # (B, m, d_h), the encoder's states
    keys: torch.Tensor    # (B, m, ...), what the score needs of H
    mask: torch.Tensor    # (B, m), True where a word is


class RNNsearch(nn.Module):
    """c_i = attend(e(s_{i-1}, H), H), s_i = GRU([y_{i-1}; c_i], s_{i-1}), logits from [s_i; c_i].

    Bahdanau et al. 2015, section 3.1, with the linear output of lesson 03 in place of their maxout layer.
    RNNsearch(vocab_x, vocab_y, d_emb, d_h, d_a)
    """

    def __init__(self, vocab_x, vocab_y, d_emb=64, d_h=96, d_a=64):
        super().__init__()
        self.encoder = BiEncoder(vocab_x, d_emb, d_h)
        self.score = Additive(d_h, d_h, d_a)
        self.start = nn.Linear(d_h // 2, d_h)
        self.embedding = nn.Embedding(vocab_y, d_emb)
        self.gru = nn.GRUCell(d_emb + d_h, d_h)
        self.out = nn.Linear(2 * d_h, vocab_y)

    def begin(self, x, lengths):
        """x (B, m), lengths (B,)  ->  the state before the first token: (s_0, Source)"""
        H, mask = self.encoder(x, lengths)
        first = H[:, 0, H.size(-1) // 2:]                         # the backward GRU, after the whole sentence
        return torch.tanh(self.start(first)), Source(H, self.score.keys(H), mask)

    def look(self, y_prev, state):
        """One step: y_prev (B, d_emb), embedded  ->  [s_i; c_i], weights (B, m), the next state"""
        s, source = state
        e = self.score(s, source.keys)                            # (B, m): 1. score
        context, weights = attend(e, source.H, source.mask)       # (B, d_h), (B, m): 2. softmax, 3. sum
        s = self.gru(torch.cat([y_prev, context], dim=-1), s)     # (B, d_h): 4. concatenate, new state
        return torch.cat([s, context], dim=-1), weights, (s, source)

    def forward(self, x, lengths, y):
        """Teacher forcing: y (B, n) the previous tokens  ->  logits (B, n, vocab_y), weights (B, n, m)"""
        state, outputs, weights = self.begin(x, lengths), [], []
        for y_prev in self.embedding(y).unbind(dim=1):            # (B, d_emb)
            output, a_i, state = self.look(y_prev, state)
            outputs.append(output)
            weights.append(a_i)
        return self.out(torch.stack(outputs, dim=1)), torch.stack(weights, dim=1)    # 5. predict

    def step(self, y, state):
        """y (B,) the previous token  ->  logits (B, vocab_y), the next state"""
        output, _, state = self.look(self.embedding(y), state)
        return self.out(output), state


class Luong(RNNsearch):
    """s_i = GRU([y_{i-1}; s~_{i-1}], s_{i-1}), c_i = attend(e(s_i, H), H), s~_i = tanh([c_i; s_i] W_c).

    Luong et al. 2015, sections 3, 3.1 and 3.3 (input feeding: s~ goes back in); logits from s~_i.  Theirs is
    an LSTM, and their encoder reads in one direction.  score: 'dot' or 'general'
    Luong(vocab_x, vocab_y, score, d_emb, d_h)
    """

    def __init__(self, vocab_x, vocab_y, score="general", d_emb=64, d_h=96):
        super().__init__(vocab_x, vocab_y, d_emb, d_h)
        if score not in ("dot", "general"):
            raise ValueError(f"score is 'dot' or 'general', got {score!r}")
        self.score = Dot() if score == "dot" else General(d_h, d_h)
        self.W_c = drawn(2 * d_h, d_h)
        self.out = nn.Linear(d_h, vocab_y)

    def begin(self, x, lengths):
        """As RNNsearch, with s~_0 = 0: (s_0, s~_0, Source)"""
        s, source = super().begin(x, lengths)
        return s, torch.zeros_like(s), source

    def look(self, y_prev, state):
        """One step: y_prev (B, d_emb)  ->  s~_i (B, d_h), weights (B, m), the next state"""
        s, s_tilde, source = state
        s = self.gru(torch.cat([y_prev, s_tilde], dim=-1), s)     # (B, d_h): the new state comes first
        e = self.score(s, source.keys)                            # (B, m): 1. score
        context, weights = attend(e, source.H, source.mask)       # (B, d_h), (B, m): 2. softmax, 3. sum
        s_tilde = attentional_state(context, s, self.W_c)         # (B, d_h): 4. concatenate
        return s_tilde, weights, (s, s_tilde, source)

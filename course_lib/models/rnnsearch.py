"""Encoder-decoders that attend: RNNsearch (Bahdanau) and Luong's, with input feeding.  Lesson 04

The encoder's work is done once a sentence, what it gives to the scores too (`keys`); the decoder walks word
by word, since each step looks with the state that the step before has left.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .attention import attend, attentional_state, dot_score


def drawn(*shape):
    """A weight as torch draws them: evenly within 1 / sqrt(its first size)."""
    return nn.Parameter(torch.empty(shape).uniform_(-1, 1) * shape[0] ** -0.5)


class Additive(nn.Module):
    """v^T tanh(W_s s + W_h h_j): `additive_score` with W_h h_j computed once.  Additive(d_s, d_h, d_a)"""

    def __init__(self, d_s, d_h, d_a):
        super().__init__()
        self.W_s, self.W_h, self.v = drawn(d_s, d_a), drawn(d_h, d_a), drawn(d_a)

    def keys(self, H):
        """H (B, m, d_h)  ->  (B, m, d_a), what a score needs of the source"""
        return H @ self.W_h

    def forward(self, s, keys):
        """s (B, d_s), keys (B, m, d_a)  ->  e (B, m)"""
        return torch.tanh((s @ self.W_s)[:, None] + keys) @ self.v


class Dot(nn.Module):
    """s^T h_j.  Nothing to learn; d_s must be d_h."""

    def keys(self, H):
        return H

    def forward(self, s, keys):
        return dot_score(s, keys)


class General(nn.Module):
    """s^T W h_j: `general_score` with W h_j computed once.  General(d_s, d_h)"""

    def __init__(self, d_s, d_h):
        super().__init__()
        self.W = drawn(d_s, d_h)

    def keys(self, H):
        return H @ self.W.T

    def forward(self, s, keys):
        return dot_score(s, keys)


class BiEncoder(nn.Module):
    """Two GRUs, one from each end: h_j = [forward; backward].  BiEncoder(vocab, d_emb, d_h), d_h even

    Bahdanau et al. 2015, section 3.2: h_j tells of the words before j and of those after it.
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


class RNNsearch(nn.Module):
    """c_i = attend(e(s_{i-1}, H), H), s_i = GRU([E y_{i-1}; c_i], s_{i-1}), logits from [s_i; c_i].

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
        """x (B, m), lengths (B,)  ->  the state before the first word: s_0, and what every step looks at"""
        H, mask = self.encoder(x, lengths)
        first = H[:, 0, H.size(-1) // 2:]                         # the backward GRU, after the whole sentence
        return torch.tanh(self.start(first)), (H, self.score.keys(H), mask)

    def look(self, y_i, state):
        """y_i (B, d_emb) the word before, embedded  ->  [s_i; c_i], weights (B, m), the next state"""
        s, (H, keys, mask) = state
        context, weights = attend(self.score(s, keys), H, mask)   # (B, d_h), (B, m)
        s = self.gru(torch.cat([y_i, context], dim=-1), s)        # (B, d_h)
        return torch.cat([s, context], dim=-1), weights, (s, state[1])

    def forward(self, x, lengths, y):
        """Teacher forcing: y (B, n) the words before  ->  logits (B, n, vocab_y), weights (B, n, m)"""
        state, found, weights = self.begin(x, lengths), [], []
        for y_i in self.embedding(y).unbind(dim=1):               # (B, d_emb)
            out, a_i, state = self.look(y_i, state)
            found.append(out)
            weights.append(a_i)
        return self.out(torch.stack(found, dim=1)), torch.stack(weights, dim=1)

    def step(self, y, state):
        """y (B,) the word before  ->  logits (B, vocab_y), the next state"""
        out, _, state = self.look(self.embedding(y), state)
        return self.out(out), state


class Luong(RNNsearch):
    """s_i = GRU([E y_{i-1}; s~_{i-1}], s_{i-1}), c_i = attend(e(s_i, H), H), s~_i = tanh([c_i; s_i] W_c).

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
        """As RNNsearch; s is the pair (s_0, s~_0), and s~_0 is 0."""
        s, source = super().begin(x, lengths)
        return (s, torch.zeros_like(s)), source

    def look(self, y_i, state):
        """y_i (B, d_emb)  ->  s~_i (B, d_h), weights (B, m), the next state"""
        (s, s_tilde), (H, keys, mask) = state
        s = self.gru(torch.cat([y_i, s_tilde], dim=-1), s)        # (B, d_h): first the step ...
        context, weights = attend(self.score(s, keys), H, mask)   # (B, d_h), (B, m): ... then the look
        s_tilde = attentional_state(context, s, self.W_c)         # (B, d_h)
        return s_tilde, weights, ((s, s_tilde), state[1])

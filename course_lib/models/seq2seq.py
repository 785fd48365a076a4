"""The encoder-decoder with one context vector: RNNenc.  Lesson 03

Cho et al. 2014 (*Learning phrase representations*), sections 2.2 and 2.3; Sutskever et al. 2014.  The GRU is
torch's, which equals that of models/rnn.py and is faster.  Token numbers are (B, n), padded on the right; a
vector is a row, and a weight matrix is on its right.
"""

import torch
from torch import nn


class Encoder(nn.Module):
    """Reads a batch of sentences: h_t = GRU(E[x_t], h_{t-1}).  Encoder(vocab, d_emb, d_h)"""

    def __init__(self, vocab, d_emb, d_h):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_emb)
        self.gru = nn.GRU(d_emb, d_h, batch_first=True)

    def forward(self, x, lengths):
        """x (B, n) token numbers  lengths (B,)  ->  H (B, n, d_h), h_n (B, d_h) after the last real word"""
        H, _ = self.gru(self.embedding(x))                        # (B, n, d_h)
        return H, H[torch.arange(len(x)), lengths - 1]            # (B, d_h): not the state after padding


class Decoder(nn.Module):
    """s_i = GRU([E[y_{i-1}]; c], s_{i-1}), logits = [s_i; c] W_out + b_out.  Decoder(vocab, d_emb, d_h, d_c)

    Cho et al. 2014, section 2.2 and appendix A: c enters the first state, every step and every output.
    """

    def __init__(self, vocab, d_emb, d_h, d_c):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_emb)
        self.start = nn.Linear(d_c, d_h)
        self.gru = nn.GRU(d_emb + d_c, d_h, batch_first=True)
        self.out = nn.Linear(d_h + d_c, vocab)

    def first_state(self, c):
        """c (B, d_c)  ->  s_0 = tanh(c W_start + b_start) (B, d_h)"""
        return torch.tanh(self.start(c))

    def forward(self, y, s, c):
        """y (B, m) previous tokens  s (B, d_h)  c (B, d_c)  ->  logits (B, m, vocab), last state (B, d_h)"""
        c_i = c[:, None].expand(-1, y.size(1), -1)                # (B, m, d_c): the same c at every step
        S, s = self.gru(torch.cat([self.embedding(y), c_i], dim=-1), s[None])    # (B, m, d_h)
        return self.out(torch.cat([S, c_i], dim=-1)), s[0]


class RNNenc(nn.Module):
    """A sentence through one vector: c = tanh(h_n W_c + b_c).  RNNenc(vocab_x, vocab_y, d_emb, d_h, d_c)

    vocab_x, vocab_y: sizes of the two vocabularies.  d_c: width of the context vector; d_h if not given.
    """

    def __init__(self, vocab_x, vocab_y, d_emb=64, d_h=128, d_c=None):
        super().__init__()
        d_c = d_h if d_c is None else d_c
        self.encoder = Encoder(vocab_x, d_emb, d_h)
        self.context = nn.Linear(d_h, d_c)
        self.decoder = Decoder(vocab_y, d_emb, d_h, d_c)

    def encode(self, x, lengths):
        """x (B, n)  lengths (B,)  ->  c (B, d_c), all that the decoder gets of the sentence"""
        _, h_n = self.encoder(x, lengths)
        return torch.tanh(self.context(h_n))

    def forward(self, x, lengths, y):
        """Teacher forcing: x (B, n), lengths (B,), previous tokens y (B, m)  ->  logits (B, m, vocab_y)"""
        c = self.encode(x, lengths)
        logits, _ = self.decoder(y, self.decoder.first_state(c), c)
        return logits

    def begin(self, x, lengths):
        """The state before the first token of the translation: the pair (s_0, c)."""
        c = self.encode(x, lengths)
        return self.decoder.first_state(c), c

    def step(self, y, state):
        """previous token y (B,), state (s, c)  ->  logits (B, vocab_y), the next state"""
        s, c = state
        logits, s = self.decoder(y[:, None], s, c)
        return logits[:, 0], (s, c)

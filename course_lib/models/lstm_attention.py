"""An encoder-decoder of torch's own LSTMs, with attention after them: a baseline for lesson 12"""

import math

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class LSTMAttention(nn.Module):
    """s = LSTM(embedded tokens), e_ij = s_i W · h_j, logits from [s_i; c_i]: in training all at once.

    LSTMAttention(vocab_x, vocab_y, d_emb, d_h), d_h even.  Luong et al. 2015, sections 3 and 3.1 ('general'),
    without the tanh layer, and without input feeding, so that no step of the decoder waits for the attention
    of the step before.
    """

    def __init__(self, vocab_x, vocab_y, d_emb=64, d_h=128):
        super().__init__()
        self.source, self.target = nn.Embedding(vocab_x, d_emb), nn.Embedding(vocab_y, d_emb)
        self.encoder = nn.LSTM(d_emb, d_h // 2, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(d_emb, d_h, batch_first=True)
        self.W, self.out = nn.Linear(d_h, d_h, bias=False), nn.Linear(2 * d_h, vocab_y)

    def begin(self, src, pad_id=0):
        """src (B, m)  ->  s_0 and a cell of zeros (1, B, d_h), keys and H (B, m, d_h), mask (B, 1, m)"""
        mask = src != pad_id                                      # (B, m): True = a word
        E, lengths = self.source(src), mask.sum(dim=1)
        packed = pack_padded_sequence(E, lengths, batch_first=True, enforce_sorted=False)
        H, (ends, _) = self.encoder(packed)                       # ends (2, B, d_h / 2)
        H, _ = pad_packed_sequence(H, batch_first=True, total_length=src.size(1))    # (B, m, d_h)
        s = torch.cat([*ends], dim=-1)[None]
        return (s, torch.zeros_like(s)), self.W(H), H, mask[:, None]

    def run(self, tokens, state):
        """tokens (B, n), the previous ones  ->  logits (B, n, vocab_y), the next state"""
        s, keys, H, mask = state
        S, s = self.decoder(self.target(tokens), s)               # (B, n, d_h)
        scores = (S @ keys.transpose(1, 2)).masked_fill(~mask, -math.inf)    # (B, n, m)
        context = scores.softmax(dim=-1) @ H                      # (B, n, d_h)
        return self.out(torch.cat([S, context], dim=-1)), (s, keys, H, mask)

    def forward(self, src, tgt, pad_id=0):
        """src (B, m)  tgt (B, n + 1): <bos> and n tokens  ->  logits (B, n, vocab_y)"""
        return self.run(tgt[:, :-1], self.begin(src, pad_id))[0]

    def step(self, tokens, state):
        """tokens (B,) the previous ones  ->  logits (B, vocab_y), the next state"""
        logits, state = self.run(tokens[:, None], state)
        return logits[:, 0], state

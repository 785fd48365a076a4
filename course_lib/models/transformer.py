"""The blocks of the Transformer, and what they are assembled to.  Lessons 11 and 12

Vaswani et al. 2017, section 3.1: post-norm, x + f(x) is normalised.
"""

import math

import torch
from torch import nn

from .attention import MultiHeadAttention, causal_mask, split_heads
from .caching import cached_step
from .positional import positional_encoding


class Dropout(nn.Module):
    """In training each value is 0 with probability p, else divided by 1 - p.  Srivastava et al. 2014

    Dropout(p).  One random byte decides on each value, so p is rounded to 256ths: torch's own draws a float
    for each, which takes several times as long.
    """

    def __init__(self, p):
        super().__init__()
        self.dropped = round(256 * p)

    def forward(self, x):
        if not (self.training and self.dropped):
            return x
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device).random_(-2 ** 63, None)
        keep = words.view(torch.uint8)[:x.numel()].view(x.shape).ge_(self.dropped)    # 0 or 1
        return x * (keep * (256 / (256 - self.dropped)))


class FeedForward(nn.Module):
    """max(0, x W_1 + b_1) W_2 + b_2, at every position alike.  Vaswani et al. 2017, eq. 2

    FeedForward(d_model, d_ff); x (..., d_model)  ->  (..., d_model)
    """

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.W_2(self.W_1(x).relu())                       # (..., d_ff), then (..., d_model)


class EncoderBlock(nn.Module):
    """x = LayerNorm(x + attention(x)), then x = LayerNorm(x + feed-forward(x)).  Figure 1, left

    EncoderBlock(d_model, h, d_ff, dropout); dropout acts on f(x) before the sum, section 5.4.
    """

    def __init__(self, d_model, h, d_ff, dropout=0.0):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x, mask=None):
        """x (B, n, d_model)  mask (n, n), (B, n, n) or (B, 1, n)  ->  (B, n, d_model)"""
        return self.look(x, mask)[0]

    def look(self, x, mask=None):
        """What forward gives, and the weights (B, h, n, n)."""
        a, weights = self.attention(x, x, x, mask)
        x = self.norm_1(x + self.dropout(a))
        return self.norm_2(x + self.dropout(self.feed_forward(x))), weights


class DecoderBlock(nn.Module):
    """Masked self-attention, cross-attention, feed-forward, each x = LayerNorm(x + f(x)).  Figure 1, right

    DecoderBlock(d_model, h, d_ff, dropout).  memory: the encoder's output.  In the cross-attention, which the
    paper calls encoder-decoder attention (section 3.2.3), it gives K and V, and y gives Q.
    """

    def __init__(self, d_model, h, d_ff, dropout=0.0):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, h)
        self.cross_attention = MultiHeadAttention(d_model, h)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1, self.norm_2, self.norm_3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.dropout = Dropout(dropout)

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        """y (B, n, d_model)  memory (B, m, d_model)  self_mask (n, n)  memory_mask (B, 1, m)
        ->  (B, n, d_model)
        """
        return self.look(y, memory, self_mask, memory_mask)[0]

    def look(self, y, memory, self_mask=None, memory_mask=None):
        """What forward gives, and the weights (B, h, n, n) and (B, h, n, m)."""
        a, self_weights = self.self_attention(y, y, y, self_mask)
        y = self.norm_1(y + self.dropout(a))
        a, cross_weights = self.cross_attention(y, memory, memory, memory_mask)
        y = self.norm_2(y + self.dropout(a))
        return self.norm_3(y + self.dropout(self.feed_forward(y))), (self_weights, cross_weights)


def parameter_count(d_model, d_ff, N, vocab):
    """The weights of N encoder blocks, N decoder blocks and one embedding of `vocab` words that input and
    output share: 4 matrices per attention, two layers with biases per feed-forward, two vectors per norm.
    """
    attention, norm = 4 * d_model * d_model, 2 * d_model
    feed_forward = (d_model * d_ff + d_ff) + (d_ff * d_model + d_model)
    encoder_block = attention + feed_forward + 2 * norm
    decoder_block = 2 * attention + feed_forward + 3 * norm
    return N * (encoder_block + decoder_block) + vocab * d_model


class Transformer(nn.Module):
    """Encoder, decoder, an embedding each; the decoder's is the output layer, too.  Lesson 12

    Transformer(vocab_x, vocab_y, d_model, h, d_ff, N, dropout).  Vaswani et al. 2017, figure 1, sections 3.4
    and 5.4: embeddings times sqrt(d_model), plus positions, dropout on the sum and on every f(x).
    """

    def __init__(self, vocab_x, vocab_y, d_model=64, h=4, d_ff=256, N=2, dropout=0.0):
        super().__init__()
        self.source, self.target = nn.Embedding(vocab_x, d_model), nn.Embedding(vocab_y, d_model)
        for embedding in (self.source, self.target):
            nn.init.normal_(embedding.weight, std=d_model ** -0.5)    # of size 1 after the sqrt(d_model)
        self.encoder = nn.ModuleList(EncoderBlock(d_model, h, d_ff, dropout) for _ in range(N))
        self.decoder = nn.ModuleList(DecoderBlock(d_model, h, d_ff, dropout) for _ in range(N))
        self.dropout = Dropout(dropout)
        self.register_buffer("positions", positional_encoding(64, d_model), persistent=False)

    def embed(self, embedding, ids, first=0):
        """ids (B, n), the first of them at position `first`  ->  (B, n, d_model)"""
        last = first + ids.size(1)
        if last > len(self.positions):                            # computed once, for every sentence
            self.positions = positional_encoding(2 * last, embedding.embedding_dim).to(self.positions)
        E = embedding(ids) * math.sqrt(embedding.embedding_dim)
        return self.dropout(E + self.positions[first:last])

    def encode(self, src, pad_id=0):
        """src (B, m)  ->  memory (B, m, d_model), mask (B, 1, m): True = a word"""
        memory, mask, _ = self.look_encode(src, pad_id)
        return memory, mask

    def look_encode(self, src, pad_id=0):
        """What encode gives, and the weights of each block: a list of (B, h, m, m)."""
        mask, x, found = (src != pad_id)[:, None], self.embed(self.source, src), []
        for block in self.encoder:
            x, weights = block.look(x, mask)
            found.append(weights)
        return x, mask, found

    def look(self, src, tgt, pad_id=0):
        """What forward gives, and the weights of every block: encoder, decoder, memory, a list each."""
        memory, mask, encoder = self.look_encode(src, pad_id)
        y, decoder = self.embed(self.target, tgt[:, :-1]), []
        causal = causal_mask(y.size(1)).to(y.device)
        for block in self.decoder:
            y, weights = block.look(y, memory, causal, mask)
            decoder.append(weights)
        return y @ self.target.weight.T, (encoder, *map(list, zip(*decoder)))

    def forward(self, src, tgt, pad_id=0):
        """src (B, m)  tgt (B, n + 1): <bos> and n tokens  ->  logits (B, n, vocab_y)"""
        return self.look(src, tgt, pad_id)[0]

    def begin(self, src, pad_id=0):
        """The state before the first token: its position, an empty cache, and what every step attends to."""
        memory, mask = self.encode(src, pad_id)
        parts = [block.cross_attention for block in self.decoder]
        memories = [[split_heads(W(memory), part.h).contiguous() for W in (part.W_K, part.W_V)]
                    for part in parts]                           # copied once, not at every step
        return 0, [None] * len(self.decoder), memories, None if mask.all() else mask[:, None]

    def step(self, tokens, state):
        """tokens (B,) the previous tokens  ->  logits (B, vocab_y), the next state"""
        t, past, memories, mask = state
        y, after = self.embed(self.target, tokens[:, None], first=t)[:, 0], []    # (B, d_model)
        for block, before, memory in zip(self.decoder, past, memories):
            y, now = cached_step(block, y, before, memory, mask)
            after.append(now)
        return y @ self.target.weight.T, (t + 1, after, memories, mask)

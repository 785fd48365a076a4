"""Answers to exercise 11 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn

from answers import right, wrong
from course_lib.models.attention import MultiHeadAttention

# ---------------------------------------------------------------- FeedForward

class Two(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1, self.W_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)


@right("FeedForward")
class WithMax(Two):
    def forward(self, x):
        return self.W_2(torch.clamp(self.W_1(x), min=0))


@right("FeedForward")
class WithAModule(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_2 = nn.Linear(d_ff, d_model)
        self.relu = nn.ReLU()
        self.W_1 = nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.W_2(self.relu(self.W_1(x)))


@right("FeedForward")
class ByHand(Two):
    def forward(self, x):
        hidden = torch.einsum("...d,fd->...f", x, self.W_1.weight) + self.W_1.bias
        hidden = torch.where(hidden > 0, hidden, torch.zeros_like(hidden))
        return hidden @ self.W_2.weight.T + self.W_2.bias


@right("FeedForward")
class RowByRow(Two):
    def forward(self, x):
        rows = [self.W_2(F.relu(self.W_1(row))) for row in x.reshape(-1, x.size(-1))]
        return torch.stack(rows).view_as(x)


def bent(forward):
    wrong("FeedForward")(type("Bent", (Two,), {"forward": forward}))


bent(lambda self, x: self.W_2(F.leaky_relu(self.W_1(x))))
bent(lambda self, x: self.W_2(F.silu(self.W_1(x))))
bent(lambda self, x: self.W_2(F.softmax(self.W_1(x), dim=-1)))
bent(lambda self, x: 2 * self.W_2(self.W_1(x).relu()))
bent(lambda self, x: self.W_2(self.W_1(x).relu()).mean(dim=0))
bent(lambda self, x: self.W_2(self.W_1(x).relu().detach()))
bent(lambda self, x: self.W_2(self.W_1(x).abs()))
bent(lambda self, x: (self.W_2(self.W_1(x).relu()), x))
bent(lambda self, x: None)
bent(lambda self, x: F.linear(self.W_1(x).relu(), self.W_2.weight))


@wrong("FeedForward")
class OtherNames(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        return self.net(x)


@wrong("FeedForward")
class NoBias(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1, self.W_2 = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.W_2(self.W_1(x).relu())


# ---------------------------------------------------------------- EncoderBlock

class Encoder(nn.Module):
    def __init__(self, d_model, h, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, h)
        self.feed_forward = WithMax(d_model, d_ff)
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        a = self.norm_1(self.attention(x, x, x, mask)[0] + x)
        return self.norm_2(self.feed_forward(a) + a)


right("EncoderBlock")(Encoder)


class OwnAttention(nn.Module):
    """Head by head, with a loop; the right parameters, nothing of the course."""

    def __init__(self, d_model, h):
        super().__init__()
        for name in ("W_O", "W_V", "W_K", "W_Q"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))
        self.h = h

    def forward(self, q, k, v, mask=None):
        parts = []
        for Q, K, V in zip(*(W(x).chunk(self.h, dim=-1) for W, x in
                             ((self.W_Q, q), (self.W_K, k), (self.W_V, v))), strict=True):
            scores = torch.einsum("bnd,bmd->bnm", Q, K) / math.sqrt(Q.size(-1))
            if mask is not None:
                scores = torch.where(mask, scores, torch.tensor(-math.inf, dtype=scores.dtype))
            parts.append(scores.softmax(-1) @ V)
        return self.W_O(torch.cat(parts, dim=-1))


@right("EncoderBlock")
class WithOwnAttention(nn.Module):
    def __init__(self, d_model, h, d_ff):
        super().__init__()
        self.norm_2 = nn.LayerNorm(d_model, eps=1e-5)
        self.norm_1 = nn.LayerNorm(d_model, eps=1e-5)
        self.feed_forward, self.attention = RowByRow(d_model, d_ff), OwnAttention(d_model, h)

    def forward(self, x, mask=None):
        x = self.norm_1(x + self.attention(x, x, x, mask))
        return self.norm_2(x + self.feed_forward(x))


@right("EncoderBlock")
class WithDropoutOff(Encoder):
    def __init__(self, d_model, h, d_ff, dropout=0.0):
        super().__init__(d_model, h, d_ff)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        x = self.norm_1(x + self.dropout(self.attention(x, x, x, mask)[0]))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


def encoder(forward):
    wrong("EncoderBlock")(type("Bent", (Encoder,), {"forward": forward}))


encoder(lambda self, x, mask=None: 2 * Encoder.forward(self, x, mask))
encoder(lambda self, x, mask=None: Encoder.forward(self, Encoder.forward(self, x, mask), mask))
encoder(lambda self, x, mask=None: x + Encoder.forward(self, x, mask))
encoder(lambda self, x, mask=None: Encoder.forward(self, x, None if mask is None else mask.transpose(-2, -1)))
encoder(lambda self, x, mask=None: Encoder.forward(self, x.detach(), mask))
encoder(lambda self, x, mask=None: Encoder.forward(self, x, mask)[:, -1])
encoder(lambda self, x, mask=None: self.norm_2(self.norm_1(x + self.attention(x, x, x, mask)[0])
                                               - self.feed_forward(self.norm_1(x))))
encoder(lambda self, x, mask=None: self.norm_2(x + self.attention(x, x, x, mask)[0] + self.feed_forward(x)))
encoder(lambda self, x, mask=None: None)
encoder(lambda self, x: Encoder.forward(self, x))


@wrong("EncoderBlock")
class NoFeedForwardAttribute(nn.Module):
    def __init__(self, d_model, h, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, h)
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        return self.norm_2(self.norm_1(x + self.attention(x, x, x, mask)[0]))


# ---------------------------------------------------------------- DecoderBlock

class Decoder(nn.Module):
    def __init__(self, d_model, h, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, h)
        self.cross_attention = MultiHeadAttention(d_model, h)
        self.feed_forward = WithMax(d_model, d_ff)
        self.norm_1, self.norm_2, self.norm_3 = [nn.LayerNorm(d_model) for _ in range(3)]

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        a = self.norm_1(y + self.self_attention(y, y, y, self_mask)[0])
        b = self.norm_2(a + self.cross_attention(a, memory, memory, memory_mask)[0])
        return self.norm_3(b + self.feed_forward(b))


right("DecoderBlock")(Decoder)


@right("DecoderBlock")
class DecoderWithOwnAttention(Decoder):
    def __init__(self, d_model, h, d_ff):
        super().__init__(d_model, h, d_ff)
        self.self_attention, self.cross_attention = OwnAttention(d_model, h), OwnAttention(d_model, h)

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        y = self.norm_1(y + self.self_attention(y, y, y, self_mask))
        y = self.norm_2(self.cross_attention(y, memory, memory, memory_mask) + y)
        return self.norm_3(self.feed_forward(y) + y)


@right("DecoderBlock")
class InALoop(Decoder):
    def forward(self, y, memory, self_mask=None, memory_mask=None):
        parts = [lambda y: self.self_attention(y, y, y, self_mask)[0],
                 lambda y: self.cross_attention(y, memory, memory, memory_mask)[0], self.feed_forward]
        for norm, part in zip((self.norm_1, self.norm_2, self.norm_3), parts, strict=True):
            y = norm(y + part(y))
        return y


def decoder(forward):
    wrong("DecoderBlock")(type("Bent", (Decoder,), {"forward": forward}))


decoder(lambda self, y, memory, a=None, b=None: 2 * Decoder.forward(self, y, memory, a, b))
decoder(lambda self, y, memory, a=None, b=None: y + Decoder.forward(self, y, memory, a, b))
decoder(lambda self, y, memory, a=None, b=None: Decoder.forward(self, y, memory.detach(), a, b))
decoder(lambda self, y, memory, a=None, b=None: Decoder.forward(self, y, torch.tanh(memory), a, b))
decoder(lambda self, y, memory, a=None, b=None: Decoder.forward(self, y, memory, a if a is None else a.T, b))
decoder(lambda self, y, memory, a=None, b=None: Decoder.forward(self, y, memory, a, b)[:, -1:])
decoder(lambda self, y, memory, a=None, b=None: Decoder.forward(self, y, memory.flip(1), a, b) + 1)
decoder(lambda self, y, memory, a=None, b=None: self.norm_3(Decoder.forward(self, y, memory, a, b)))
decoder(lambda self, y, memory, a=None, b=None: memory)
decoder(lambda self, y, memory, a=None, b=None: None)
decoder(lambda self, y, memory: Decoder.forward(self, y, memory))


# ---------------------------------------------------------------- parameter_count

@right("parameter_count")
def counted_from_modules(d_model, d_ff, N, vocab):
    h = 1
    with torch.device("meta"):                                   # modules without memory
        parts = [nn.ModuleList(block(d_model, h, d_ff) for _ in range(N)) for block in (Encoder, Decoder)]
        parts.append(nn.Embedding(vocab, d_model))
    return sum(weight.numel() for part in parts for weight in part.parameters())


@right("parameter_count")
def multiplied_out(d_model, d_ff, N, vocab):
    return N * (12 * d_model ** 2 + 4 * d_model * d_ff + 2 * d_ff + 12 * d_model) + vocab * d_model


@right("parameter_count")
def block_by_block(d_model, d_ff, N, vocab):
    total = vocab * d_model
    for attentions in [1] * N + [2] * N:
        total += attentions * 4 * d_model * d_model
        total += d_model * d_ff + d_ff + d_ff * d_model + d_model
        total += (attentions + 1) * (d_model + d_model)
    return total


def counts(change):
    wrong("parameter_count")(lambda d_model, d_ff, N, vocab: change(d_model, d_ff, N, vocab, multiplied_out))


counts(lambda d, f, N, vocab, right: right(d, f, N, vocab) + 1)
counts(lambda d, f, N, vocab, right: right(f, d, N, vocab))
counts(lambda d, f, N, vocab, right: right(d, f, 2 * N, vocab))
counts(lambda d, f, N, vocab, right: right(d, f, N, vocab) + 512 * d)
counts(lambda d, f, N, vocab, right: torch.tensor(right(d, f, N, vocab)))
counts(lambda d, f, N, vocab, right: str(right(d, f, N, vocab)))
counts(lambda d, f, N, vocab, right: 4 * right(d, f, N, vocab))
counts(lambda d, f, N, vocab, right: right(d, f, N, N))
counts(lambda d, f, N, vocab, right: None)


# ---------------------------------------------------------------- SwiGLU

class Three(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_3, self.W_1 = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.W_2 = nn.Linear(d_ff, d_model, bias=False)


def gated(forward):
    return type("Gated", (Three,), {"forward": forward})


right("SwiGLU")(gated(lambda self, x: self.W_2(self.W_3(x) * self.W_1(x) * self.W_1(x).sigmoid())))
right("SwiGLU")(gated(lambda self, x: self.W_2(nn.SiLU()(self.W_1(x)).mul(self.W_3(x)))))
right("SwiGLU")(gated(lambda self, x: torch.einsum(
    "...f,df->...d", F.silu(x @ self.W_1.weight.T) * (x @ self.W_3.weight.mT), self.W_2.weight)))
right("SwiGLU")(gated(lambda self, x: self.W_2(self.W_1(x) / (1 + torch.exp(-self.W_1(x))) * self.W_3(x))))

wrong("SwiGLU")(gated(lambda self, x: 2 * self.W_2(F.silu(self.W_1(x)) * self.W_3(x))))
wrong("SwiGLU")(gated(lambda self, x: self.W_2(F.silu(self.W_1(x)) * self.W_3(x) ** 2)))
wrong("SwiGLU")(gated(lambda self, x: self.W_2(F.silu(self.W_1(x)) * self.W_1(x))))
wrong("SwiGLU")(gated(lambda self, x: self.W_2(torch.tanh(self.W_1(x)) * self.W_3(x))))
wrong("SwiGLU")(gated(lambda self, x: self.W_2(F.silu(self.W_1(x)).detach() * self.W_3(x))))
wrong("SwiGLU")(gated(lambda self, x: self.W_2(F.softmax(self.W_1(x), -1) * self.W_3(x))))
wrong("SwiGLU")(gated(lambda self, x: self.W_2(F.silu(self.W_1(x)) - self.W_3(x))))
wrong("SwiGLU")(gated(lambda self, x: None))


@wrong("SwiGLU")
class GateAndValueInOne(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1, self.W_2 = nn.Linear(d_model, 2 * d_ff, bias=False), nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        gate, value = self.W_1(x).chunk(2, dim=-1)
        return self.W_2(F.silu(gate) * value)


# ---------------------------------------------------------------- DecoderOnlyBlock

class Causal(Encoder):
    def forward(self, x, change=lambda mask: mask):
        n, a = x.shape[1], self.norm_1(x)
        x = self.attention(a, a, a, change(torch.ones(n, n).tril() == 1))[0] + x
        return self.feed_forward(self.norm_2(x)) + x


right("DecoderOnlyBlock")(Causal)


@right("DecoderOnlyBlock")
class CausalWithOwnAttention(WithOwnAttention):
    def forward(self, x):
        mask = torch.arange(x.size(1))[:, None] >= torch.arange(x.size(1))
        x = x + self.attention(*3 * [self.norm_1(x)], mask)
        return x + self.feed_forward(self.norm_2(x))


@right("DecoderOnlyBlock")
class SentenceBySentence(Encoder):
    def forward(self, x):
        return torch.cat([Causal.forward(self, sentence[None]) for sentence in x])


@right("DecoderOnlyBlock")
class TokenByToken(Encoder):
    """Each position is asked alone, about all before it and itself: no mask is needed."""

    def forward(self, x):
        a = self.norm_1(x)
        seen = [self.attention(a[:, i:i + 1], a[:, :i + 1], a[:, :i + 1])[0] for i in range(x.size(1))]
        x = x + torch.cat(seen, dim=1)
        return x + self.feed_forward(self.norm_2(x))


def causal(forward):
    wrong("DecoderOnlyBlock")(type("Bent", (Causal,), {"forward": forward}))


causal(lambda self, x: 2 * Causal.forward(self, x))
causal(lambda self, x: Causal.forward(self, Causal.forward(self, x)))
causal(lambda self, x: x + Causal.forward(self, x))
causal(lambda self, x: self.norm_2(Causal.forward(self, x)))
causal(lambda self, x: Causal.forward(self, x, lambda mask: mask.triu(-1)))
causal(lambda self, x: Causal.forward(self, x.detach()))
causal(lambda self, x: Causal.forward(self, x).mean(dim=1))
causal(lambda self, x: Causal.forward(self, x)[:, -1:])
causal(lambda self, x: x)
causal(lambda self, x: None)
causal(lambda self, x, mask: Causal.forward(self, x))


# ---------------------------------------------------------------- decoder_layers

@right("decoder_layers")
def in_a_loop(block, y, memory, self_mask=None, memory_mask=None):
    parts = [lambda y: block.self_attention(y, y, y, self_mask)[0],
             lambda y: block.cross_attention(y, memory, memory, memory_mask)[0], block.feed_forward]
    for norm, part in zip((block.norm_1, block.norm_2, block.norm_3), parts, strict=True):
        y = norm(part(y) + y)
    return y


@right("decoder_layers")
def with_keywords(block, y, memory, self_mask=None, memory_mask=None):
    a, _ = block.self_attention(q=y, k=y, v=y, mask=self_mask)
    b = block.norm_1(y + a)
    c, _ = block.cross_attention(q=b, k=memory, v=memory, mask=memory_mask)
    d = block.norm_2(b + c)
    return block.norm_3(d + block.feed_forward(d))


@right("decoder_layers")
def from_the_inside_out(block, y, memory, self_mask=None, memory_mask=None):
    def after(norm, y, change):
        return getattr(block, norm)(torch.add(y, change))
    y = after("norm_1", y, block.self_attention(y, y, y, self_mask)[0])
    y = after("norm_2", y, block.cross_attention(y, memory, memory, memory_mask)[0])
    return after("norm_3", y, block.feed_forward(y))


wrong("decoder_layers")(lambda *given: 2 * in_a_loop(*given))
wrong("decoder_layers")(lambda *given: in_a_loop(*given).detach())
wrong("decoder_layers")(lambda block, y, *more: y + in_a_loop(block, y, *more))
wrong("decoder_layers")(lambda block, y, *more: block.norm_3(in_a_loop(block, y, *more)))
wrong("decoder_layers")(lambda block, y, memory, *more: in_a_loop(block, y, memory.detach(), *more))
wrong("decoder_layers")(lambda block, y, memory, *more: in_a_loop(block, y, memory.tanh(), *more))
wrong("decoder_layers")(lambda block, y, *more: in_a_loop(block, in_a_loop(block, y, *more), *more))
wrong("decoder_layers")(lambda block, y, memory, *more: memory)
wrong("decoder_layers")(lambda *given: (in_a_loop(*given), None))

"""Two Transformers to compare ours with: torch's own, and one in the style of the Annotated Transformer.

Both take the weights of a `models.transformer.Transformer` and then give the same logits; both have
forward(src, tgt, pad_id) as it has, and `greedy(src, length)`, which runs the decoder over all words so far.
"""

import copy
import math

import torch
from torch import nn

from course_lib.data.vocab import BOS, PAD
from course_lib.models.attention import causal_mask
from course_lib.models.positional import positional_encoding


class Baseline(nn.Module):
    """What both share: embeddings, positions, output.  Baseline(ours, dropout) copies `ours`, untrained."""

    def __init__(self, ours, dropout):
        super().__init__()
        self.source, self.target = copy.deepcopy(ours.source), copy.deepcopy(ours.target)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("positions", positional_encoding(512, self.source.embedding_dim))

    def embed(self, embedding, ids):
        E = embedding(ids) * math.sqrt(embedding.embedding_dim)
        return self.dropout(E + self.positions[:ids.size(1)])

    def forward(self, src, tgt, pad_id=PAD):
        """src (B, m)  tgt (B, n + 1)  ->  logits (B, n, vocab_y)"""
        memory = self.encode(src, src == pad_id)
        return self.decode(tgt[:, :-1], memory, src == pad_id) @ self.target.weight.T

    @torch.inference_mode()
    def greedy(self, src, length, pad_id=PAD):
        """src (B, m)  ->  (B, length), whatever the words; <eos> ends nothing"""
        padding = src == pad_id
        memory, y = self.encode(src, padding), src.new_full((len(src), 1), BOS)
        for _ in range(length):
            last = self.decode(y, memory, padding)[:, -1]
            y = torch.cat([y, (last @ self.target.weight.T).argmax(dim=-1, keepdim=True)], dim=1)
        return y[:, 1:]


class TorchTransformer(Baseline):
    """torch.nn.Transformer with the weights of ours; biases that ours lacks are 0."""

    def __init__(self, ours, dropout=0.0):
        super().__init__(ours, dropout)
        block = ours.encoder[0]
        d_model, d_ff, h = self.source.embedding_dim, block.feed_forward.W_1.out_features, block.attention.h
        self.both = nn.Transformer(d_model, h, len(ours.encoder), len(ours.decoder), d_ff, dropout,
                                   batch_first=True)
        self.both.encoder.norm = self.both.decoder.norm = None    # torch adds one that the paper has not
        for theirs, block in [*zip(self.both.encoder.layers, ours.encoder),
                              *zip(self.both.decoder.layers, ours.decoder)]:
            copy_block(theirs, block)

    def encode(self, src, padding):
        return self.both.encoder(self.embed(self.source, src), src_key_padding_mask=padding)

    def decode(self, y, memory, padding):
        future = ~causal_mask(y.size(1)).to(y.device)
        return self.both.decoder(self.embed(self.target, y), memory, tgt_mask=future, tgt_is_causal=True,
                                 memory_key_padding_mask=padding)


ATTENTIONS = {"attention": "self_attn", "self_attention": "self_attn", "cross_attention": "multihead_attn"}


@torch.no_grad()
def copy_block(theirs, ours):
    """Give torch's TransformerEncoderLayer or DecoderLayer our block's weights; the other biases become 0."""
    for name, part in ours.named_children():
        if name in ATTENTIONS:
            attention = getattr(theirs, ATTENTIONS[name])
            attention.in_proj_weight.copy_(torch.cat([part.W_Q.weight, part.W_K.weight, part.W_V.weight]))
            attention.out_proj.weight.copy_(part.W_O.weight)
            attention.in_proj_bias.zero_()
            attention.out_proj.bias.zero_()
        if name.startswith("norm"):
            getattr(theirs, name.replace("_", "")).load_state_dict(part.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward.W_1.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.W_2.state_dict())


class Annotated(Baseline):
    """In the manner of *The Annotated Transformer* (Rush 2018): its modules, its dropouts, written anew.

    Norm after the sum, as in the paper and in ours; there it stands before.
    """

    def __init__(self, ours, dropout=0.0):
        super().__init__(ours, dropout)
        self.encoder = nn.ModuleList(_Layer(block, [block.attention], dropout) for block in ours.encoder)
        self.decoder = nn.ModuleList(_Layer(block, [block.self_attention, block.cross_attention], dropout)
                                     for block in ours.decoder)

    def encode(self, src, padding):
        x, mask = self.embed(self.source, src), ~padding[:, None, None]
        for layer in self.encoder:
            x = layer(x, [(None, mask)])
        return x

    def decode(self, y, memory, padding):
        causal, mask = causal_mask(y.size(1)).to(y.device), ~padding[:, None, None]
        y = self.embed(self.target, y)
        for layer in self.decoder:
            y = layer(y, [(None, causal), (memory, mask)])
        return y


class _Layer(nn.Module):
    """Attentions and a feed-forward, each within dropout, sum and norm."""

    def __init__(self, ours, attentions, dropout):
        super().__init__()
        self.attentions = nn.ModuleList(_Heads(part, dropout) for part in attentions)
        self.first = copy.deepcopy(ours.feed_forward.W_1)
        self.second = copy.deepcopy(ours.feed_forward.W_2)
        norms = [norm for name, norm in ours.named_children() if name.startswith("norm")]
        self.norms = nn.ModuleList(map(_Norm, norms))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, looks):
        for part, norm, (memory, mask) in zip(self.attentions, self.norms, looks):
            other = x if memory is None else memory
            x = norm(x + self.dropout(part(x, other, other, mask)))
        f = self.second(self.dropout(self.first(x).relu()))
        return self.norms[-1](x + self.dropout(f))


class _Heads(nn.Module):
    """Four linear layers with biases, and dropout on the weights."""

    def __init__(self, ours, dropout):
        super().__init__()
        d_model = ours.W_Q.in_features
        self.h, self.d_k = ours.h, d_model // ours.h
        self.linears = nn.ModuleList(nn.Linear(d_model, d_model) for _ in range(4))
        for linear, weight in zip(self.linears, (ours.W_Q, ours.W_K, ours.W_V, ours.W_O)):
            linear.load_state_dict({"weight": weight.weight, "bias": torch.zeros(d_model)})
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask):
        B = query.size(0)
        query, key, value = [linear(x).view(B, -1, self.h, self.d_k).transpose(1, 2)
                             for linear, x in zip(self.linears, (query, key, value))]
        scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(self.d_k)
        weights = self.dropout(scores.masked_fill(mask == 0, -1e9).softmax(dim=-1))
        x = torch.matmul(weights, value).transpose(1, 2).contiguous().view(B, -1, self.h * self.d_k)
        return self.linears[-1](x)


class _Norm(nn.Module):
    """A layer norm by its formula."""

    def __init__(self, ours):
        super().__init__()
        self.gain, self.shift = nn.Parameter(ours.weight.clone()), nn.Parameter(ours.bias.clone())
        self.eps = ours.eps

    def forward(self, x):
        mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
        return self.gain * (x - mean) / torch.sqrt(var + self.eps) + self.shift

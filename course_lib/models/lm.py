"""Language models of one kind of block: encoder-only as BERT, decoder-only as GPT.  Lesson 13

Devlin et al. 2019, section 3; Radford et al. 2018, section 3.1.
"""

import math

import torch
from torch import nn

from .attention import causal_mask, merge_heads, split_heads
from .positional import positional_encoding
from .relative import RelativeAttention
from .transformer import Dropout, EncoderBlock


class LanguageModel(nn.Module):
    """Token embedding plus positions, N blocks, and logits by the same embedding.

    LanguageModel(vocab, d_model, h, d_ff, N, causal, dropout).  causal: a position attends
    to itself and previous positions (decoder-only); otherwise to all (encoder-only).  Nothing else differs.
    """

    def __init__(self, vocab, d_model, h, d_ff, N, causal, dropout=0.0):
        super().__init__()
        self.causal, self.d_model = causal, d_model
        self.embedding = nn.Embedding(vocab, d_model)             # shared by input and output
        self.bias = nn.Parameter(torch.zeros(vocab))              # how frequent a token is
        self.blocks = nn.ModuleList(EncoderBlock(d_model, h, d_ff, dropout) for _ in range(N))
        for block in self.blocks:
            block.attention = RelativeAttention(d_model, h)       # scores also depend on the distance
        self.dropout = Dropout(dropout)
        self.register_buffer("positions", positional_encoding(64, d_model), persistent=False)
        for name, weight in self.named_parameters():
            if weight.dim() == 2 and "distance" not in name:      # norms and biases as torch starts them
                nn.init.xavier_uniform_(weight, gain=0.5 if "W_Q" in name or "W_K" in name else 1.0)
        nn.init.normal_(self.embedding.weight, std=d_model ** -0.5)

    def forward(self, ids):
        """ids (B, n)  ->  logits (B, n, vocab), before the softmax"""
        return self.scores(self.states(ids))

    def states(self, ids):
        """The last block's output.  ids (B, n)  ->  (B, n, d_model)"""
        return self.look(ids)[0]

    def scores(self, x):
        """x (..., d_model)  ->  logits (..., vocab): a product with each token's embedding, and its bias."""
        return x @ self.embedding.weight.T + self.bias

    def look(self, ids):
        """The last block's output (B, n, d_model), and the attention weights of each block (B, h, n, n)."""
        mask = causal_mask(ids.size(1)).to(ids.device) if self.causal else None
        x, seen = self.embed(ids), []                             # (B, n, d_model)
        for block in self.blocks:
            x, weights = block.look(x, mask)
            seen.append(weights)
        return x, seen

    def embed(self, ids, start=0):
        """sqrt(d_model) / 2 E[ids] + PE, from position `start` on.  ids (B, n)  ->  (B, n, d_model)

        Half the factor of the Transformer, found by trial for models as small as ours.
        """
        last = start + ids.size(1)
        if last > len(self.positions):                            # a longer table, once
            self.positions = positional_encoding(2 * last, self.d_model).to(self.positions)
        return self.dropout(self.embedding(ids) * (math.sqrt(self.d_model) / 2) + self.positions[start:last])


class GPT(nn.Module):
    """Embedding and positions, N causal blocks, the embedding again: nothing else is learned.  Exercise 13

    GPT(vocab, d_model, h, d_ff, N).  `LanguageModel` without dropout, bias and factor on the embedding.
    """

    def __init__(self, vocab, d_model, h, d_ff, N):
        super().__init__()
        self.embedding = nn.Embedding(vocab, d_model)
        self.blocks = nn.ModuleList(EncoderBlock(d_model, h, d_ff) for _ in range(N))

    def forward(self, ids):
        """ids (B, n)  ->  logits (B, n, vocab)"""
        n, d_model = ids.size(1), self.embedding.embedding_dim
        x = self.embedding(ids) + positional_encoding(n, d_model).to(self.embedding.weight)
        for block in self.blocks:
            x = block(x, causal_mask(n).to(ids.device))
        return x @ self.embedding.weight.T


def next_logits(model, ids, caches=None):
    """The logits after one more token, from the keys and values kept of all before it.

    ids (B,)  caches: None at first, then what was returned before  ->  logits (B, vocab), caches
    """
    caches = caches or [None] * len(model.blocks)
    start = 0 if caches[0] is None else caches[0][0].size(-2)     # how many tokens are in the caches
    x, grown = model.embed(ids[:, None], start), []               # (B, 1, d_model)
    for block, cache in zip(model.blocks, caches, strict=True):
        W = block.attention
        Q_t, K, V = (split_heads(project(x), W.h) for project in (W.W_Q, W.W_K, W.W_V))    # (B, h, 1, d_k)
        if cache is not None:                                     # as attend_with_cache
            K, V = torch.cat([cache[0], K], dim=-2), torch.cat([cache[1], V], dim=-2)      # (B, h, t, d_k)
        output, cache = W.attend(Q_t, K, V)[0], (K, V)
        x = block.norm_1(x + block.dropout(W.W_O(merge_heads(output))))
        x = block.norm_2(x + block.dropout(block.feed_forward(x)))
        grown.append(cache)
    return model.scores(x[:, 0]), grown


def mask_tokens(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    """Choose each ordinary token with probability p; 80 % of these become [MASK], 10 % random, 10 % stay.

    ids (B, n)  special_ids: a list, never chosen  ->  inputs (B, n), labels (B, n): the old token where one
    was chosen, -100 elsewhere.  A random token may be any of the vocabulary, special ones included.
    Devlin et al. 2019, section 3.1, task 1
    """
    draw = lambda: torch.rand(ids.shape, generator=generator)
    chosen = (draw() < p) & ~torch.isin(ids, torch.tensor(special_ids))    # (B, n)
    fate = draw()
    anything = torch.randint(vocab_size, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (fate >= 0.9), anything, inputs)
    return inputs, ids.masked_fill(~chosen, -100)


def causal_lm_loss(logits, ids):
    """The mean of -log p(next token): the logits of position i are compared with token i + 1.

    logits (B, n, vocab), before the softmax  ids (B, n)  ->  scalar over B (n - 1) positions
    Radford et al. 2018, eq. 1
    """
    log_p = logits[:, :-1].log_softmax(dim=-1)                    # (B, n - 1, vocab)
    return -log_p.gather(-1, ids[:, 1:, None]).mean()             # (B, n - 1, 1)


def perplexity(logits, ids):
    """exp of the mean -log p(next token) over B (n - 1) positions, as in `causal_lm_loss`: a float."""
    return causal_lm_loss(logits, ids).exp().item()


def nucleus(logits, p):
    """The smallest set of most likely tokens whose probabilities reach p, renormalised; 0 for all others.

    logits (..., vocab)  p: 0 < p <= 1  ->  probabilities (..., vocab).  Holtzman et al. 2020, section 3.1
    """
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    before = probabilities.cumsum(dim=-1) - probabilities         # sum over the more likely tokens
    kept = probabilities.masked_fill(before >= p, 0.0)            # the one that crosses p stays
    kept = torch.zeros_like(kept).scatter(-1, order, kept)        # back into the vocabulary's order
    return kept / kept.sum(dim=-1, keepdim=True)


@torch.no_grad()
def generate(model, ids, length, generator, temperature=1.0, p=1.0, cached=True):
    """`length` more tokens, each drawn from the nucleus of softmax(logits / temperature).

    ids (B, n), n >= 1  ->  (B, n + length).  cached: keep keys and values instead of reading all anew.
    """
    caches = None
    for place in range(ids.size(1) - 1 if cached else 0):
        _, caches = next_logits(model, ids[:, place], caches)
    for _ in range(length):
        if cached:
            logits, caches = next_logits(model, ids[:, -1], caches)    # (B, vocab)
        else:
            logits = model(ids)[:, -1]
        drawn = torch.multinomial(nucleus(logits / temperature, p), 1, generator=generator)    # (B, 1)
        ids = torch.cat([ids, drawn], dim=1)
    return ids

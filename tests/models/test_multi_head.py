"""Self-attention, masks, leakage and multi-head attention: equal to torch's own to 1e-5."""

import pytest
import torch
import torch.nn.functional as F
from attention_cases import CLOSE, seeded, some_mask  # noqa: F401
from torch import nn

from course_lib.models.attention import (
    MultiHeadAttention,
    causal_mask,
    leakage,
    merge_heads,
    padding_mask,
    self_attention,
    split_heads,
)
from course_lib.models.grouped_query import GroupedQueryAttention

# ---------------------------------------------------------------- lesson 08

@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_causal_mask_allows_what_came_before(n):
    mask = causal_mask(n)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[j <= i for j in range(n)] for i in range(n)]


def test_the_padding_mask_allows_the_words():
    mask = padding_mask(torch.tensor([3, 1]), 4)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[[True, True, True, False]], [[True, False, False, False]]]


@pytest.mark.parametrize("B, n, d_model, d_k, d_v", [(2, 5, 6, 3, 4), (1, 4, 4, 4, 4), (3, 1, 2, 5, 3)])
def test_self_attention_equals_torchs(B, n, d_model, d_k, d_v):
    X, W_Q, W_K = torch.randn(B, n, d_model), torch.randn(d_model, d_k), torch.randn(d_model, d_k)
    W_V = torch.randn(d_model, d_v)
    lengths = torch.arange(1, B + 1).clamp(max=n)
    for mask in (None, causal_mask(n), some_mask(B, n, n), padding_mask(lengths, n),
                 causal_mask(n) & padding_mask(lengths, n)):
        output, weights = self_attention(X, W_Q, W_K, W_V, mask)
        want = F.scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V, mask)
        assert output.shape == (B, n, d_v) and weights.shape == (B, n, n)
        torch.testing.assert_close(output, want, **CLOSE)


def test_a_padded_sentence_comes_out_as_if_alone():
    short, W = torch.randn(1, 3, 4), [torch.randn(4, 4) for _ in range(3)]
    padded = F.pad(short, (0, 0, 0, 2), value=7.0)
    output, weights = self_attention(padded, *W, padding_mask(torch.tensor([3]), 5))
    torch.testing.assert_close(output[:, :3], self_attention(short, *W)[0], **CLOSE)
    assert (weights[..., 3:] == 0).all() and not output.isnan().any()


def test_leakage_is_the_norm_of_the_jacobian():
    A, W, X = torch.randn(4, 4), torch.randn(3, 5), torch.randn(4, 3)
    J = torch.autograd.functional.jacobian(lambda X: torch.tanh(A @ X @ W), X)    # (4, 5, 4, 3)
    for i in range(4):
        want = torch.stack([J[i, :, j].norm() for j in range(4)])
        torch.testing.assert_close(leakage(lambda X: torch.tanh(A @ X @ W), X, i), want, **CLOSE)
    assert not X.requires_grad


def test_nothing_leaks_through_a_causal_mask():
    X, W = torch.randn(5, 4), [torch.randn(4, 4) for _ in range(3)]

    def f(X):
        return self_attention(X[None], *W, causal_mask(5))[0][0]

    felt = torch.stack([leakage(f, X, i) for i in range(5)])
    assert ((felt > 0) == causal_mask(5)).all()


# ---------------------------------------------------------------- lesson 09

SHAPES = [(2, 3, 8, 4), (1, 5, 6, 2), (3, 4, 6, 6), (2, 2, 5, 1)]    # B, n, d_model, h


@pytest.mark.parametrize("B, n, d_model, h", SHAPES)
def test_a_head_is_a_slice_and_merging_goes_back(B, n, d_model, h):
    X, d_k = torch.randn(B, n, d_model), d_model // h
    heads = split_heads(X, h)
    assert heads.shape == (B, h, n, d_k)
    for i in range(h):
        assert torch.equal(heads[:, i], X[..., i * d_k:(i + 1) * d_k])
    assert torch.equal(merge_heads(heads), X)


@pytest.mark.parametrize("B, n, d_model, h", SHAPES)
@pytest.mark.parametrize("m", [1, 4, 7])
def test_multi_head_attention_equals_torchs(B, n, d_model, h, m):
    ours = MultiHeadAttention(d_model, h)
    theirs = nn.MultiheadAttention(d_model, h, bias=False, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.W_Q.weight, ours.W_K.weight, ours.W_V.weight]))
        theirs.out_proj.weight.copy_(ours.W_O.weight)
    q, k, v = torch.randn(B, n, d_model), torch.randn(B, m, d_model), torch.randn(B, m, d_model)
    for mask in (None, some_mask(n, m), some_mask(B, n, m), some_mask(B, 1, m)):
        output, weights = ours(q, k, v, mask)
        forbidden = None if mask is None else ~mask.expand(B, n, m).repeat_interleave(h, dim=0)
        want, shares = theirs(q, k, v, attn_mask=forbidden, average_attn_weights=False)
        torch.testing.assert_close(output, want, **CLOSE)
        torch.testing.assert_close(weights, shares, **CLOSE)


def test_one_head_is_self_attention_and_one_more_matrix():
    layer, X = MultiHeadAttention(6, 1), torch.randn(2, 4, 6)
    W_Q, W_K, W_V = (part.weight.T for part in (layer.W_Q, layer.W_K, layer.W_V))
    output, weights = self_attention(X, W_Q, W_K, W_V, causal_mask(4))
    found, shares = layer(X, X, X, causal_mask(4))
    torch.testing.assert_close(found, output @ layer.W_O.weight.T, **CLOSE)
    torch.testing.assert_close(shares[:, 0], weights, **CLOSE)


@pytest.mark.parametrize("h", [1, 2, 4, 8])
def test_heads_cost_no_parameters(h):
    assert sum(p.numel() for p in MultiHeadAttention(16, h).parameters()) == 4 * 16 * 16


def test_a_width_that_heads_do_not_divide_is_refused():
    with pytest.raises(ValueError, match="d_model = 6 .* h = 4"):
        MultiHeadAttention(6, 4)


@pytest.mark.parametrize("h, h_kv", [(6, 2), (6, 3), (4, 1), (4, 4)])
def test_grouped_query_attention_equals_torchs(h, h_kv):
    layer = GroupedQueryAttention(3 * h, h, h_kv)
    q, k, v = (torch.randn(2, size, 3 * h) for size in (4, 5, 5))
    for mask in (None, some_mask(4, 5), some_mask(2, 4, 5), padding_mask(torch.tensor([5, 2]), 5)):
        output, weights = layer(q, k, v, mask)
        Q = split_heads(layer.W_Q(q), h)
        K, V = split_heads(layer.W_K(k), h_kv), split_heads(layer.W_V(v), h_kv)
        torchs = mask[:, None] if mask is not None and mask.dim() == 3 else mask
        want = F.scaled_dot_product_attention(Q, K, V, torchs, enable_gqa=True)
        torch.testing.assert_close(output, layer.W_O(want.transpose(1, 2).flatten(2)), **CLOSE)
        assert weights.shape == (2, h, 4, 5)


@pytest.mark.parametrize("h, h_kv", [(6, 2), (4, 1), (4, 4)])
def test_it_is_multi_head_attention_whose_key_and_value_heads_are_repeated(h, h_kv):
    d_model = 3 * h
    layer = GroupedQueryAttention(d_model, h, h_kv)
    q, k = torch.randn(2, 4, d_model), torch.randn(2, 5, d_model)
    theirs = nn.MultiheadAttention(d_model, h, bias=False, batch_first=True)
    repeated = [W.weight.view(h_kv, 3, d_model).repeat_interleave(h // h_kv, 0).flatten(0, 1)
                for W in (layer.W_K, layer.W_V)]
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([layer.W_Q.weight, *repeated]))
        theirs.out_proj.weight.copy_(layer.W_O.weight)
    for ours, torchs in zip(layer(q, k, k), theirs(q, k, k, average_attn_weights=False), strict=True):
        torch.testing.assert_close(ours, torchs, **CLOSE)


@pytest.mark.parametrize("sizes", [(8, 3, 1), (8, 4, 3)])
def test_grouped_heads_must_divide_evenly(sizes):
    with pytest.raises(ValueError, match="must divide"):
        GroupedQueryAttention(*sizes)

"""Attention and its parts: equal to torch's own to 1e-5, with and without mask, for n != m."""

import math

import pytest
import torch
import torch.nn.functional as F
from attention_cases import CLOSE, seeded, some_mask  # noqa: F401

from course_lib.models.attention import (
    additive_score,
    attend,
    attention,
    attentional_state,
    dot_score,
    general_score,
    softmax,
    softmax_jacobian,
)

# ---------------------------------------------------------------- attention (lesson 05)

BATCHES = [(), (1,), (2,), (2, 3)]
SIZES = [(3, 5, 4, 6), (5, 3, 4, 2), (4, 4, 4, 4), (1, 1, 1, 1)]    # n, m, d_k, d_v


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("n, m, d_k, d_v", SIZES)
def test_attention_equals_torchs(batch, n, m, d_k, d_v):
    Q, K, V = torch.randn(*batch, n, d_k), torch.randn(*batch, m, d_k), torch.randn(*batch, m, d_v)
    for mask in (None, some_mask(n, m), some_mask(*batch, n, m)):
        output, weights = attention(Q, K, V, mask)
        assert output.shape == (*batch, n, d_v) and weights.shape == (*batch, n, m)
        torch.testing.assert_close(output, F.scaled_dot_product_attention(Q, K, V, mask), **CLOSE)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(*batch, n), **CLOSE)
        if mask is not None:
            assert (weights.masked_select(~mask.expand_as(weights)) == 0).all()


def test_a_mask_of_one_row_serves_all_queries():
    Q, K, V, mask = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6), some_mask(2, 1, 5)
    want = F.scaled_dot_product_attention(Q, K, V, mask)
    torch.testing.assert_close(attention(Q, K, V, mask)[0], want, **CLOSE)


def test_attention_has_torchs_gradients():
    given = [torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)]
    mask, pull = some_mask(3, 5), torch.randn(2, 3, 6)

    def gradients(attend):
        leaves = [tensor.clone().requires_grad_() for tensor in given]
        return torch.autograd.grad((attend(*leaves) * pull).sum(), leaves)

    ours = gradients(lambda Q, K, V: attention(Q, K, V, mask)[0])
    theirs = gradients(lambda Q, K, V: F.scaled_dot_product_attention(Q, K, V, mask))
    for left, right in zip(ours, theirs, strict=True):
        torch.testing.assert_close(left, right, **CLOSE)


def test_the_values_take_no_part_in_the_weights():
    Q, K, V = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 6)
    assert torch.equal(attention(Q, K, V)[1], attention(Q, K, 10 * V.flip(1))[1])


def test_keys_and_values_may_be_shuffled_together():
    Q, K, V, shuffle = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 6), torch.randperm(5)
    torch.testing.assert_close(attention(Q, K, V)[0], attention(Q, K[shuffle], V[shuffle])[0], **CLOSE)


# ---------------------------------------------------------------- softmax (lesson 05)

@pytest.mark.parametrize("shape, dim", [((4,), -1), ((3, 5), 0), ((2, 3, 4), 1), ((2, 3, 4), -1)])
@pytest.mark.parametrize("level", [0.0, 1e4, -1e4])
def test_softmax_equals_torchs_at_any_level(shape, dim, level):
    x = torch.randn(shape, dtype=torch.float64) + level
    torch.testing.assert_close(softmax(x, dim), torch.softmax(x, dim))


def test_softmax_of_scores_far_apart_and_of_minus_infinity():
    x = torch.tensor([[1e4, 0.0, -1e4], [-math.inf, 0.0, 0.0]])
    assert softmax(x).tolist() == [[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 3, 5)])
def test_the_jacobian_is_autograds(shape):
    x = torch.randn(shape)
    J = softmax_jacobian(softmax(x))
    rows = x.reshape(-1, shape[-1])
    want = torch.stack([torch.autograd.functional.jacobian(softmax, row) for row in rows])
    torch.testing.assert_close(J, want.reshape(*shape, shape[-1]), **CLOSE)
    torch.testing.assert_close(J.sum(dim=-1), torch.zeros(shape), **CLOSE)


# ---------------------------------------------------------------- scores and attend (lesson 04)

SCORES = [(2, 5, 3, 4), (1, 1, 2, 3), (3, 3, 3, 3)]    # B, m, d_s, d_h


@pytest.mark.parametrize("B, m, d_s, d_h", SCORES)
def test_scores_equal_torchs_layers_word_by_word(B, m, d_s, d_h):
    s, H, W = torch.randn(B, d_s), torch.randn(B, m, d_h), torch.randn(d_s, d_h)
    W_s, W_h, v = torch.randn(d_s, 6), torch.randn(d_h, 6), torch.randn(6)
    for j in range(m):
        want = F.linear(torch.tanh(F.linear(s, W_s.T) + F.linear(H[:, j], W_h.T)), v[None])[:, 0]
        torch.testing.assert_close(additive_score(s, H, W_s, W_h, v)[:, j], want, **CLOSE)
        want = F.bilinear(s, H[:, j], W[None])[:, 0]
        torch.testing.assert_close(general_score(s, H, W)[:, j], want, **CLOSE)
    if d_s == d_h:
        torch.testing.assert_close(dot_score(s, H), general_score(s, H, torch.eye(d_s)), **CLOSE)


@pytest.mark.parametrize("B, m, d_s, d_h", SCORES)
def test_attend_equals_torchs_attention_with_one_query(B, m, d_s, d_h):
    e, H = torch.randn(B, m), torch.randn(B, m, d_h)
    for mask in (None, some_mask(B, m)):
        context, weights = attend(e, H, mask)
        bias = e if mask is None else e.masked_fill(~mask, -math.inf)    # torch adds it to its own scores, 0
        want = F.scaled_dot_product_attention(torch.zeros(B, 1, d_h), H, H, bias[:, None])[:, 0]
        torch.testing.assert_close(context, want, **CLOSE)
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(B), **CLOSE)
        assert mask is None or (weights[~mask] == 0).all()


def test_the_attentional_state_equals_a_linear_layer():
    context, s, W_c = torch.randn(2, 5), torch.randn(2, 3), torch.randn(8, 3)
    layer = torch.nn.Linear(8, 3, bias=False)
    layer.weight.data.copy_(W_c.T)
    want = torch.tanh(layer(torch.cat([context, s], dim=-1)))
    torch.testing.assert_close(attentional_state(context, s, W_c), want, **CLOSE)

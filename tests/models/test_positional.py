"""The table of positions obeys the formula to the last digit, and its rows differ by one rotation."""

import math

import pytest
import torch

from course_lib.models.attention import attention, causal_mask
from course_lib.models.positional import add_positions, alibi_bias, positional_encoding, rotary, shift_matrix


@pytest.mark.parametrize("n, d_model", [(1, 2), (7, 6), (6, 6), (50, 128)])
def test_the_table_is_the_papers_formula(n, d_model):
    PE = positional_encoding(n, d_model)
    assert PE.shape == (n, d_model) and PE.dtype == torch.float32
    for pos in range(n):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            assert PE[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-7)
            assert PE[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-7)


def test_far_positions_are_exact():
    """A table computed in float32 is off by 1e-4 and more here."""
    row = positional_encoding(5001, 64)[5000]
    want = [f(5000 / 10000 ** (2 * i / 64)) for i in range(32) for f in (math.sin, math.cos)]
    torch.testing.assert_close(row, torch.tensor(want), rtol=0, atol=1e-6)


def test_a_longer_table_begins_with_the_shorter_one():
    assert torch.equal(positional_encoding(40, 8)[:9], positional_encoding(9, 8))


def test_no_two_positions_are_alike():
    PE = positional_encoding(2000, 64).double()
    distance = torch.cdist(PE, PE) + 10 * torch.eye(2000)
    assert distance.min() > 0.5


def test_dot_products_depend_on_the_distance_alone():
    PE = positional_encoding(600, 64).double()
    for k in (0, 1, 7, 100):
        products = (PE[:600 - k] * PE[k:]).sum(dim=1)
        assert products.max() - products.min() < 1e-5
    torch.testing.assert_close((PE * PE).sum(dim=1), torch.full((600,), 32.0, dtype=torch.float64))


@pytest.mark.parametrize("k", [-7, -1, 0, 1, 5, 100])
@pytest.mark.parametrize("d_model", [2, 6, 64])
def test_one_matrix_shifts_every_position(k, d_model):
    PE, M = positional_encoding(300, d_model), shift_matrix(k, d_model)
    here = torch.arange(100, 200)
    torch.testing.assert_close(PE[here] @ M.T, PE[here + k], rtol=0, atol=1e-5)


def test_shifts_are_rotations_that_add_up():
    M, back = shift_matrix(3, 8), shift_matrix(-3, 8)
    torch.testing.assert_close(M @ M.T, torch.eye(8), rtol=0, atol=1e-6)
    torch.testing.assert_close(back, M.T)
    torch.testing.assert_close(M @ shift_matrix(4, 8), shift_matrix(7, 8), rtol=0, atol=1e-6)


def test_positions_are_added_along_the_sentence():
    E = torch.randn(3, 5, 6, generator=torch.Generator().manual_seed(0))
    before = E.clone()
    result = add_positions(E)
    assert torch.equal(E, before)
    for sentence in range(3):
        added = result[sentence] - E[sentence]
        torch.testing.assert_close(added, positional_encoding(5, 6), rtol=0, atol=1e-6)
    assert add_positions(E.double()).dtype == torch.float64
    same = add_positions(E[:1].expand(4, -1, -1))
    assert torch.equal(same[0], same[3]), "the same sentence is the same in every row of a batch"


def test_gradients_flow_to_the_embeddings():
    E = torch.randn(2, 3, 4).requires_grad_()
    add_positions(E).sum().backward()
    assert torch.equal(E.grad, torch.ones(2, 3, 4))


@pytest.mark.parametrize("make", [positional_encoding, shift_matrix])
def test_an_odd_width_is_refused(make):
    with pytest.raises(ValueError, match="d_model = 5 is odd"):
        make(3, 5)


@pytest.mark.parametrize("base", [10000, 100])
def test_rotary_multiplies_complex_numbers(base):
    """Su et al. 2021, eq. 12: pair i of x, as a complex number, times e^(i m theta)."""
    x = torch.randn(2, 3, 7, 10, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    positions = torch.tensor([0, 1, 5, 6, 30, 31, 400])
    theta = torch.tensor([base ** (-2 * i / 10) for i in range(5)], dtype=torch.float64)
    turn = torch.polar(torch.ones(7, 5, dtype=torch.float64), torch.outer(positions.double(), theta))
    want = torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (5, 2))) * turn).flatten(-2)
    torch.testing.assert_close(rotary(x, positions, base), want)
    assert rotary(x.float(), positions).dtype == torch.float32


def test_rotary_products_depend_on_the_distance_alone():
    q, k = torch.randn(2, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    here = torch.arange(50)
    for distance in (0, 1, 20):
        products = (rotary(q.expand(50, -1), here) * rotary(k.expand(50, -1), here + distance)).sum(dim=-1)
        assert products.max() - products.min() < 1e-9
    assert torch.equal(rotary(q[None], torch.tensor([0])), q[None])


def test_rotary_and_the_shift_matrix_turn_the_same_pairs():
    """The table's rows are (sin, cos), so its pairs turn against rotary's."""
    x = torch.randn(1, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(rotary(x, torch.tensor([5]))[0], shift_matrix(-5, 8) @ x[0], rtol=0, atol=1e-5)


def test_alibi_is_the_papers_formula():
    bias = alibi_bias(6, 8)
    assert bias.shape == (8, 6, 6) and bias.dtype == torch.float32
    slopes = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]     # section 3, for 8 heads
    for head, slope in enumerate(slopes):
        for i in range(6):
            assert bias[head, i].tolist() == [-slope * (i - j) if j <= i else -math.inf for j in range(6)]


def test_alibi_makes_attention_causal_and_prefers_what_is_near():
    Q = torch.zeros(2, 5, 4)
    weights = (Q @ Q.mT + alibi_bias(5, 2)).softmax(dim=-1)
    assert not weights.masked_select(~causal_mask(5)).any()
    assert (weights[:, 4].diff(dim=-1) > 0).all() and (weights[0, 4] - weights[1, 4])[-1] > 0
    flat = attention(Q, Q, Q, causal_mask(5))[1]
    assert (flat[:, 4] - weights[:, 4]).abs().max() > 0.001

"""The table of positions obeys the formula to the last digit, and its rows differ by one rotation."""

import math

import pytest
import torch

from course_lib.models.positional import add_positions, positional_encoding, shift_matrix


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

"""What tests of attention share: how close is equal, a fixed seed for each test, and a random mask."""

import pytest
import torch

CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def some_mask(*shape):
    """True = may attend; every query may attend to something."""
    mask = torch.rand(shape) < 0.5
    mask[..., 0] = True
    return mask

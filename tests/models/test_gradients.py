"""Gradients by hand are autograd's."""

import pytest
import torch

from course_lib.models.attention import attention
from course_lib.models.gradients import attention_backward


@pytest.mark.parametrize("batch, n, m, d_k, d_v", [
    ((), 3, 5, 4, 2), ((2,), 4, 4, 4, 4), ((2, 3), 1, 6, 5, 3)])
def test_the_gradients_of_attention_are_autograds(batch, n, m, d_k, d_v):
    torch.manual_seed(0)
    given = [torch.randn(*batch, *size, dtype=torch.float64, requires_grad=True)
             for size in ((n, d_k), (m, d_k), (m, d_v))]
    grad_output = torch.randn(*batch, n, d_v, dtype=torch.float64)
    right = torch.autograd.grad(attention(*given)[0], given, grad_output)
    found = attention_backward(*(X.detach() for X in given), grad_output)
    for ours, autograds in zip(found, right, strict=True):
        torch.testing.assert_close(ours, autograds, rtol=0, atol=1e-10)

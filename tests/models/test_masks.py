"""The masks of current models: each is what a loop says, and text stays on its own under them."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.models.attention import causal_mask
from course_lib.models.masks import packed_mask, sliding_window_mask

CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.mark.parametrize("n, window", [(1, 1), (5, 1), (5, 2), (6, 3), (4, 4), (4, 9)])
def test_a_window_is_what_a_loop_says(n, window):
    want = torch.tensor([[i - window < j <= i for j in range(n)] for i in range(n)])
    assert torch.equal(sliding_window_mask(n, window), want)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_window_as_long_as_the_text_is_the_causal_mask(n):
    assert torch.equal(sliding_window_mask(n, n), causal_mask(n))


def test_packed_texts_attend_as_each_would_alone():
    """With torch's attention: a row of three texts gives what the three give one by one."""
    torch.manual_seed(0)
    documents = torch.tensor([[7, 7, 7, 2, 2, 5], [0, 1, 1, 1, 1, 3]])
    Q, K, V = (torch.randn(2, 6, 4) for _ in range(3))
    packed = F.scaled_dot_product_attention(Q, K, V, packed_mask(documents))
    for row, numbers in enumerate(documents):
        for number in numbers.unique():
            one = numbers == number
            alone = F.scaled_dot_product_attention(Q[row, one], K[row, one], V[row, one], is_causal=True)
            torch.testing.assert_close(packed[row, one], alone, **CLOSE)


def test_one_document_is_the_causal_mask():
    assert torch.equal(packed_mask(torch.zeros(2, 5, dtype=torch.long)), causal_mask(5).expand(2, 5, 5))

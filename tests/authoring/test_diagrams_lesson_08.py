"""The numbers in lesson 08's diagrams are those that the formulas give."""

import math

import torch

from course_lib.models.attention import causal_mask, padding_mask, self_attention
from course_lib.models.masks import packed_mask
from course_tools.authoring.diagrams import lesson_08 as drawn

TWO_DIGITS = {"rtol": 0, "atol": 0.0051}
X = torch.tensor(drawn.X, dtype=torch.float32)
W = torch.tensor([[0.0, 1], [2, 0]]), torch.tensor([[1.0, 0], [1, 1]]), 10 * torch.eye(2)


def close(shown, value):
    torch.testing.assert_close(torch.tensor(shown, dtype=torch.float32), value, **TWO_DIGITS)


def test_one_source():
    output, weights = self_attention(X[None], *W)
    for shown, value in [(drawn.Q, X @ W[0]), (drawn.K, X @ W[1]), (drawn.V, X @ W[2]),
                         (drawn.SCORES, X @ W[0] @ (X @ W[1]).T / math.sqrt(2)),
                         (drawn.WEIGHTS, weights[0]), (drawn.OUTPUT, output[0])]:
        close(shown, value)


def test_the_ladder():
    average = causal_mask(3) / torch.arange(1, 4)[:, None]
    output, weights = self_attention(X[None], *W, causal_mask(3))
    for shown, value in [(drawn.AVERAGE, average), (drawn.AVERAGES, average @ X), (drawn.CAUSAL, weights[0]),
                         (drawn.CAUSAL_OUTPUT, output[0])]:
        close(shown, value)


def test_the_masks():
    causal, padding = causal_mask(5), padding_mask(torch.tensor([3]), 5)[0].expand(5, 5)
    assert drawn.SHORT.count("pad") == 2
    packed = packed_mask(torch.tensor([drawn.DOCUMENTS]))[0]
    for name, mask in [("Causal", causal), ("Padding", padding), ("Causal and padding", causal & padding),
                       ("Packed", packed)]:
        assert torch.equal(torch.tensor(drawn.ALLOWED[name]), mask)

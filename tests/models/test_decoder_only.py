"""The decoder-only block is torch's pre-norm layer under a causal mask; SwiGLU is Shazeer's formula."""

import pytest
import torch
from torch import nn

from course_lib.models.attention import causal_mask
from course_lib.models.decoder_only import DecoderOnlyBlock, SwiGLU
from course_tools.benchmarks.transformer_baselines import copy_block

CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.mark.parametrize("d_model, h, d_ff", [(8, 2, 12), (6, 3, 6), (4, 1, 20)])
def test_the_block_equals_torchs(d_model, h, d_ff):
    torch.manual_seed(d_model)
    ours = DecoderOnlyBlock(d_model, h, d_ff)
    with torch.no_grad():
        for weight in ours.parameters():
            weight.copy_(0.5 * torch.randn_like(weight) + (weight.dim() == 1))
    theirs = nn.TransformerEncoderLayer(d_model, h, d_ff, dropout=0.0, batch_first=True, norm_first=True)
    copy_block(theirs, ours)
    for n in (1, 5):
        x = torch.randn(3, n, d_model).requires_grad_()
        output, want = ours(x), theirs(x, src_mask=~causal_mask(n))
        torch.testing.assert_close(output, want, **CLOSE)
        got, wanted = [torch.autograd.grad(result.pow(2).sum(), x)[0] for result in (output, want)]
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def test_the_block_does_not_see_the_future():
    torch.manual_seed(0)
    block, x = DecoderOnlyBlock(8, 2, 16), torch.randn(1, 6, 8).requires_grad_()
    gradient, = torch.autograd.grad(block(x)[0, 2].sum(), x)
    assert not gradient[0, 3:].any() and gradient[0, :3].abs().sum(dim=-1).all()


def test_swiglu_is_the_formula_number_by_number():
    torch.manual_seed(0)
    layer, x = SwiGLU(3, 4), torch.randn(2, 3)
    W_1, W_2, W_3 = (W.weight.tolist() for W in (layer.W_1, layer.W_2, layer.W_3))
    for row, output in zip(x.tolist(), layer(x), strict=True):
        gate, value = ([sum(w * v for w, v in zip(line, row, strict=True)) for line in W] for W in (W_1, W_3))
        hidden = [g / (1 + 2.718281828459045 ** -g) * v for g, v in zip(gate, value, strict=True)]
        want = torch.tensor([sum(w * v for w, v in zip(line, hidden, strict=True)) for line in W_2])
        torch.testing.assert_close(output, want, **CLOSE)
    assert sum(weight.numel() for weight in layer.parameters()) == 3 * 3 * 4

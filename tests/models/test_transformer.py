"""The blocks are torch's own, weights copied, to 1e-5, with and without masks; the count counts."""

import pytest
import torch
from torch import nn

from course_lib.models.attention import causal_mask, padding_mask
from course_lib.models.transformer import DecoderBlock, EncoderBlock, FeedForward, parameter_count
from course_tools.benchmarks.transformer_baselines import copy_block

CLOSE = {"rtol": 0, "atol": 1e-5}
SIZES = [(8, 2, 12), (6, 3, 6), (4, 1, 20)]


def drawn(module):
    """The module with random parameters, gains and shifts of the norms too."""
    with torch.no_grad():
        for weight in module.parameters():
            weight.copy_(0.5 * torch.randn_like(weight) + (weight.dim() == 1))
    return module


def encoders(d_model, h, d_ff):
    ours = drawn(EncoderBlock(d_model, h, d_ff))
    theirs = nn.TransformerEncoderLayer(d_model, h, d_ff, dropout=0.0, batch_first=True)
    copy_block(theirs, ours)
    return ours, theirs


def decoders(d_model, h, d_ff):
    ours = drawn(DecoderBlock(d_model, h, d_ff))
    theirs = nn.TransformerDecoderLayer(d_model, h, d_ff, dropout=0.0, batch_first=True)
    copy_block(theirs, ours)
    return ours, theirs


@pytest.mark.parametrize("d_model, h, d_ff", SIZES)
def test_the_encoder_block_equals_torchs(d_model, h, d_ff):
    torch.manual_seed(d_model)
    ours, theirs = encoders(d_model, h, d_ff)
    x = torch.randn(3, 5, d_model).requires_grad_()
    padding = padding_mask(torch.tensor([5, 2, 4]), 5)
    causal, hidden = causal_mask(5), ~padding[:, 0]
    masks = [(None, {}), (causal, {"src_mask": ~causal}), (padding, {"src_key_padding_mask": hidden}),
             (causal & padding, {"src_mask": ~causal, "src_key_padding_mask": hidden})]
    for mask, inverted in masks:
        output, want = ours(x, mask), theirs(x, **inverted)
        torch.testing.assert_close(output, want, **CLOSE)
        got, wanted = [torch.autograd.grad(result.pow(2).sum(), x)[0] for result in (output, want)]
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("d_model, h, d_ff", SIZES)
@pytest.mark.parametrize("n, m", [(4, 6), (5, 2), (3, 3)])
def test_the_decoder_block_equals_torchs(d_model, h, d_ff, n, m):
    torch.manual_seed(n)
    ours, theirs = decoders(d_model, h, d_ff)
    y, memory = torch.randn(2, n, d_model), torch.randn(2, m, d_model)
    causal, padding = causal_mask(n), padding_mask(torch.tensor([m, 1]), m)
    for self_mask, memory_mask in [(None, None), (causal, None), (None, padding), (causal, padding)]:
        want = theirs(y, memory, tgt_mask=None if self_mask is None else ~self_mask,
                      memory_key_padding_mask=None if memory_mask is None else ~memory_mask[:, 0])
        torch.testing.assert_close(ours(y, memory, self_mask, memory_mask), want, **CLOSE)


def test_look_gives_the_same_and_the_weights():
    torch.manual_seed(0)
    encoder, decoder = EncoderBlock(8, 2, 12), DecoderBlock(8, 2, 12)
    x, y = torch.randn(3, 5, 8), torch.randn(3, 4, 8)
    output, weights = encoder.look(x)
    assert torch.equal(output, encoder(x)) and weights.shape == (3, 2, 5, 5)
    output, (self_weights, cross_weights) = decoder.look(y, x, causal_mask(4))
    assert torch.equal(output, decoder(y, x, causal_mask(4)))
    assert self_weights.shape == (3, 2, 4, 4) and cross_weights.shape == (3, 2, 4, 5)
    assert (self_weights.triu(diagonal=1) == 0).all()
    torch.testing.assert_close(cross_weights.sum(dim=-1), torch.ones(3, 2, 4))


def test_the_future_does_not_reach_the_past():
    torch.manual_seed(0)
    block, y, memory = DecoderBlock(8, 2, 12), torch.randn(1, 5, 8).requires_grad_(), torch.randn(1, 3, 8)
    grad, = torch.autograd.grad(block(y, memory, causal_mask(5))[0, 2].pow(3).sum(), y)
    assert (grad[0, 3:] == 0).all() and (grad[0, :3] != 0).any(dim=-1).all()


def test_dropout_acts_in_training_alone_and_starts_at_zero():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    plain, dropping = EncoderBlock(8, 2, 12), EncoderBlock(8, 2, 12, dropout=0.5)
    dropping.load_state_dict(plain.state_dict())
    assert torch.equal(plain(x), plain(x)), "no dropout unless asked for"
    assert not torch.equal(dropping(x), dropping(x))
    torch.testing.assert_close(dropping.eval()(x), plain(x))


def test_feed_forward_treats_every_position_alike():
    torch.manual_seed(0)
    part, x = FeedForward(4, 9), torch.randn(2, 3, 4)
    torch.testing.assert_close(part(x)[1, 2], part(x[1, 2]))


@pytest.mark.parametrize("d_model, d_ff, N, vocab", [(8, 20, 2, 11), (6, 6, 1, 3), (16, 64, 3, 50)])
def test_the_count_is_that_of_the_modules(d_model, d_ff, N, vocab):
    blocks = [block(d_model, 2, d_ff) for block in (EncoderBlock, DecoderBlock) for _ in range(N)]
    parts = [*blocks, nn.Embedding(vocab, d_model)]
    counted = sum(weight.numel() for part in parts for weight in part.parameters())
    assert parameter_count(d_model, d_ff, N, vocab) == counted


def test_torchs_layers_have_the_same_numbers_but_for_the_biases_of_the_projections():
    theirs = sum(w.numel() for w in nn.TransformerEncoderLayer(8, 2, 20).parameters())
    ours = sum(w.numel() for w in EncoderBlock(8, 2, 20).parameters())
    assert theirs - ours == 4 * 8

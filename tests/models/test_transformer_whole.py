"""The whole Transformer: torch's own with the same weights, and word by word as all at once."""

import math

import pytest
import torch
from torch import nn

from course_lib.data.vocab import BOS, EOS, PAD
from course_lib.decoding import beam_search, greedy_batch
from course_lib.models.attention import causal_mask
from course_lib.models.positional import positional_encoding
from course_lib.models.transformer import Dropout, Transformer
from course_lib.training import sequence_loss
from course_tools.benchmarks.transformer_baselines import copy_block

CLOSE = {"rtol": 0, "atol": 1e-5}


def model_and_batch(d_model=8, h=2, d_ff=12, N=2, m=5, n=7, seed=0, **more):
    torch.manual_seed(seed)
    model = Transformer(11, 13, d_model, h, d_ff, N, **more)
    src, tgt = torch.randint(4, 11, (3, m)), torch.randint(4, 13, (3, n + 1))
    tgt[:, 0] = BOS
    src[1, m - 2:], tgt[1, n - 1:] = PAD, PAD
    return model, src, tgt


def torchs(model, d_model, h, d_ff, N):
    """torch's encoder and decoder with the model's weights; without last norms, which the paper lacks."""
    make = {"dropout": 0.0, "batch_first": True}
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d_model, h, d_ff, **make), N,
                                    enable_nested_tensor=False)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(d_model, h, d_ff, **make), N)
    for ours, theirs in [*zip(model.encoder, encoder.layers), *zip(model.decoder, decoder.layers)]:
        copy_block(theirs, ours)
    return encoder, decoder


@pytest.mark.parametrize("d_model, h, d_ff, N", [(8, 2, 12, 2), (6, 3, 6, 1), (4, 1, 20, 3)])
@pytest.mark.parametrize("m, n", [(5, 7), (4, 2), (3, 3)])
def test_it_equals_torchs(d_model, h, d_ff, N, m, n):
    model, src, tgt = model_and_batch(d_model, h, d_ff, N, m, n, seed=m)
    encoder, decoder = torchs(model, d_model, h, d_ff, N)
    places, pad, given = positional_encoding(10, d_model), src == PAD, tgt[:, :-1]
    x = model.source(src) * math.sqrt(d_model) + places[:m]
    y = model.target(given) * math.sqrt(d_model) + places[:n]
    memory = encoder(x, src_key_padding_mask=pad)
    want = decoder(y, memory, tgt_mask=~causal_mask(n), memory_key_padding_mask=pad) @ model.target.weight.T
    torch.testing.assert_close(model(src, tgt, PAD), want, **CLOSE)


def test_no_word_feels_a_later_one_nor_the_padding_beside_it():
    model, src, tgt = model_and_batch()
    logits, changed = model(src, tgt, PAD), tgt.clone()
    changed[0, 4] = 4 + (changed[0, 4] - 3) % 9
    moved = (model(src, changed, PAD) - logits).abs().amax(dim=-1)           # (3, 7)
    assert moved[0, :4].max() < 1e-6 < 1e-3 < moved[0, 4] and moved[1:].max() < 1e-6
    torch.testing.assert_close(model(src[1:2, :3], tgt[1:2, :6], PAD), logits[1:2, :5], **CLOSE)


@pytest.mark.parametrize("n", [7, 70])
def test_word_by_word_it_says_what_it_says_at_once(n):
    model, src, tgt = model_and_batch(n=n)
    with torch.inference_mode():
        state, found = model.begin(src, PAD), []
        for tokens in tgt[:, :-1].unbind(dim=1):
            logits, state = model.step(tokens, state)
            found.append(logits)
        torch.testing.assert_close(torch.stack(found, dim=1), model(src, tgt, PAD), **CLOSE)


def test_a_state_may_be_used_twice():
    model, src, tgt = model_and_batch()
    with torch.inference_mode():
        _, state = model.step(tgt[:, 0], model.begin(src))
        first, second = model.step(tgt[:, 1], state)[0], model.step(tgt[:, 2], state)[0]
        assert torch.equal(model.step(tgt[:, 1], state)[0], first) and not torch.equal(first, second)


def test_greedy_in_a_batch_is_greedy_alone_and_a_beam_of_one():
    model, src, _ = model_and_batch(seed=3)

    def step(token, state):
        logits, state = model.step(torch.tensor([token]), state)
        return logits[0], state

    with torch.inference_mode():
        together = greedy_batch(model.step, model.begin(src), BOS, EOS, 9, 3)
        for row, alone in zip(together, src, strict=True):
            assert beam_search(step, model.begin(alone[None]), BOS, EOS, 1, 9) == row


def test_look_gives_the_weights_of_every_block():
    model, src, tgt = model_and_batch()
    logits, (encoder, decoder, memory) = model.look(src, tgt, PAD)
    assert torch.equal(logits, model(src, tgt, PAD))
    assert [[w.shape for w in kind] for kind in (encoder, decoder, memory)] == [
        [(3, 2, 5, 5)] * 2, [(3, 2, 7, 7)] * 2, [(3, 2, 7, 5)] * 2]
    assert all((w.triu(diagonal=1) == 0).all() for w in decoder)
    assert all((w[1, ..., 3:] == 0).all() for w in [*encoder, *memory])


def test_it_begins_near_guessing():
    torch.manual_seed(0)
    model, src, tgt = Transformer(200, 200), torch.randint(4, 200, (8, 9)), torch.randint(4, 200, (8, 10))
    assert math.log(200) - 0.5 < sequence_loss(model(src, tgt), tgt[:, 1:], PAD) < math.log(200) + 1.5


def test_dropout_is_on_in_training_alone():
    model, src, tgt = model_and_batch(dropout=0.5)
    assert not torch.equal(model(src, tgt), model(src, tgt))
    model.eval()
    assert torch.equal(model(src, tgt), model(src, tgt))


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize("shape", [(100_000,), (33, 301, 7)])
def test_dropout_drops_the_share_asked_for_and_keeps_the_mean(p, shape):
    torch.manual_seed(0)
    x = torch.ones(shape, requires_grad=True)
    y = Dropout(p)(x)
    assert abs((y == 0).float().mean().item() - p) < 0.01 and abs(y.mean().item() - 1) < 0.02
    assert y.unique().numel() == 2
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())

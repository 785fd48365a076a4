"""Style tokens, their melodies and sounds: equal to torch's attention, and what the lesson says of them."""

import doctest

import pytest
import torch
from IPython.display import HTML, Markdown

from course_lib.data import toy
from course_lib.models.style_tokens import StyleTokens, style_embedding
from course_lib.widgets import listen

CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("B, m, d_ref, d_tok, d_model, h", [
    (3, 5, 4, 7, 6, 2), (1, 4, 3, 5, 4, 1), (4, 4, 4, 4, 4, 4)])
def test_style_embedding_equals_torchs_multi_head_attention(B, m, d_ref, d_tok, d_model, h):
    reference, tokens = torch.randn(B, d_ref), torch.randn(m, d_tok)
    W_Q, W_K, W_V = torch.randn(d_ref, d_model), torch.randn(d_tok, d_model), torch.randn(d_tok, d_model)
    theirs = torch.nn.MultiheadAttention(d_model, h, bias=False, batch_first=True)
    with torch.no_grad():    # torch's own projections pass on what ours have made
        theirs.in_proj_weight.copy_(torch.eye(d_model).repeat(3, 1))
        theirs.out_proj.weight.copy_(torch.eye(d_model))
    bank = torch.tanh(tokens).expand(B, -1, -1)
    given = (reference @ W_Q)[:, None], bank @ W_K, bank @ W_V
    want, want_weights = theirs(*given, average_attn_weights=False)
    embedding, weights = style_embedding(reference, tokens, W_Q, W_K, W_V, h)
    assert embedding.shape == (B, d_model) and weights.shape == (B, h, m)
    torch.testing.assert_close(embedding, want[:, 0], **CLOSE)
    torch.testing.assert_close(weights, want_weights[:, :, 0], **CLOSE)


@pytest.mark.parametrize("h", [1, 2])
def test_weights_set_by_hand_give_what_the_attention_gives(h):
    bank = StyleTokens(m=5, d_ref=3, d_tok=4, d_model=6, h=h)
    embedding, weights = bank(torch.randn(2, 3))
    torch.testing.assert_close(bank.mix(weights), embedding, **CLOSE)
    alone = torch.eye(5)[2].expand(1, h, 5)
    torch.testing.assert_close(bank.mix(alone)[0], torch.tanh(bank.tokens[2]) @ bank.W_V, **CLOSE)


def test_every_parameter_of_the_bank_learns():
    bank = StyleTokens(m=5, d_ref=3, d_tok=4, d_model=6, h=3)
    bank(torch.randn(2, 3))[0].square().sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in bank.parameters())


def test_heads_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="d_model = 6 .* h = 4"):
        StyleTokens(m=5, d_ref=3, d_tok=4, d_model=6, h=4)


# ---------------------------------------------------------------- melodies and sounds

def test_the_examples_in_the_docstrings():
    assert doctest.testmod(toy).failed == 0


def test_contours_repeat_and_hold_what_they_promise():
    accents, style, strength, pitch = toy.contours(torch.Generator().manual_seed(3), 200, syllables=7)
    again = toy.contours(torch.Generator().manual_seed(3), 200, syllables=7)
    assert all(map(torch.equal, (accents, style, strength, pitch), again))
    assert accents.shape == (200, 7) and pitch.shape == (200, 42)
    assert set(accents.unique().tolist()) == {0, 1, 2} and set(style.unique().tolist()) == {0, 1, 2, 3}
    assert 0.5 <= strength.min() and strength.max() <= 1.2
    torch.testing.assert_close(pitch, toy.melody(accents, style, strength))


def test_a_style_is_what_its_name_says():
    accents, ones = torch.tensor([[2, 0, 1, 0]]).expand(4, -1), torch.ones(4)
    plain = toy.melody(accents[:1])[0]
    falling, rising, lively, trembling = toy.melody(accents, torch.arange(4), ones) - plain
    assert (falling.diff() < 0).all() and falling[-1] == -7
    assert (rising.diff() > 0).all() and rising[-1] == 9
    torch.testing.assert_close(lively, 3 + 1.5 * plain)
    assert trembling.diff().abs().min() > 0.1 and trembling.abs().max() <= 1.5
    half = toy.melody(accents, torch.arange(4), 0.5 * ones) - plain
    torch.testing.assert_close(half[0], 0.5 * falling)


def test_a_tone_sings_at_its_pitch():
    wave = toy.tone(torch.full((50,), 12.0), rate=8000, frame=0.02, rest=100.0)    # an octave up: 200 hertz
    assert wave.shape == (8000,) and wave.abs().max() <= 1 and wave[0].abs() < 0.01 and wave[-1].abs() < 0.01
    assert torch.fft.rfft(wave).abs().argmax() == 200    # one second: a hertz a place


def test_listen_plays_live_and_says_so_in_stored_outputs(monkeypatch):
    monkeypatch.setenv("COURSE_STATIC", "0")
    waves = {"a < b": torch.sin(torch.arange(800.0)), "quiet": torch.zeros(800)}
    played = listen(waves)
    assert isinstance(played, HTML) and played.data.count("<audio") == 2 and "a &lt; b" in played.data
    assert len(played.data) < 10_000
    monkeypatch.setenv("COURSE_STATIC", "1")
    assert isinstance(listen(waves), Markdown) and "2 sounds" in listen(waves).data

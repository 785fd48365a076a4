"""Bahdanau's and Luong's models: their scores are those of models/attention.py, padding changes nothing."""

import pytest
import torch
import torch.nn.functional as F

from course_lib.data.batches import pad_batch
from course_lib.decoding import greedy_batch, greedy_decode
from course_lib.models.attention import additive_score, attend, attentional_state, dot_score, general_score
from course_lib.models.rnnsearch import Additive, BiEncoder, Dot, General, Luong, RNNsearch

CLOSE = {"rtol": 0, "atol": 1e-5}
MAKE = {"additive": lambda: RNNsearch(9, 8, d_emb=3, d_h=6, d_a=5),
        "dot": lambda: Luong(9, 8, "dot", d_emb=3, d_h=6),
        "general": lambda: Luong(9, 8, "general", d_emb=3, d_h=6)}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.fixture(params=MAKE)
def model(request):
    return MAKE[request.param]()


def numbers(B, n, vocab=9):
    return torch.randint(3, vocab, (B, n))


# ---------------------------------------------------------------- the scores, computed once a sentence

@pytest.mark.parametrize("B, m, d_s, d_h, d_a", [(2, 5, 3, 4, 6), (1, 1, 2, 3, 4), (3, 3, 3, 3, 3)])
def test_keys_computed_beforehand_give_the_same_scores(B, m, d_s, d_h, d_a):
    s, H = torch.randn(B, d_s), torch.randn(B, m, d_h)
    additive, general = Additive(d_s, d_h, d_a), General(d_s, d_h)
    want = additive_score(s, H, additive.W_s, additive.W_h, additive.v)
    torch.testing.assert_close(additive(s, additive.keys(H)), want, **CLOSE)
    torch.testing.assert_close(general(s, general.keys(H)), general_score(s, H, general.W), **CLOSE)
    if d_s == d_h:
        torch.testing.assert_close(Dot()(s, Dot().keys(H)), dot_score(s, H), **CLOSE)


# ---------------------------------------------------------------- the encoder

@pytest.mark.parametrize("lengths", [[5, 2, 4], [3], [4, 4]])
def test_the_encoder_equals_torchs_on_each_sentence_alone(lengths):
    encoder = BiEncoder(9, d_emb=3, d_h=6)
    sequences = [numbers(1, n)[0].tolist() for n in lengths]
    x, given = pad_batch(sequences, 0)
    H, mask = encoder(x, given)
    assert H.shape == (len(lengths), max(lengths), 6)
    assert mask.tolist() == [[j < n for j in range(max(lengths))] for n in lengths]
    for b, sequence in enumerate(sequences):
        alone, _ = encoder.gru(encoder.embedding(torch.tensor([sequence])))
        torch.testing.assert_close(H[b, :len(sequence)], alone[0], **CLOSE)


# ---------------------------------------------------------------- the models, written out from the papers

def test_rnnsearch_equals_the_formulas():
    model, x, y = MAKE["additive"](), numbers(2, 5), numbers(2, 4, vocab=8)
    H, mask = model.encoder(x, torch.tensor([5, 3]))
    s = torch.tanh(F.linear(H[:, 0, 3:], model.start.weight, model.start.bias))
    logits, weights = model(x, torch.tensor([5, 3]), y)
    assert logits.shape == (2, 4, 8) and weights.shape == (2, 4, 5)
    for i in range(4):
        e = additive_score(s, H, model.score.W_s, model.score.W_h, model.score.v)
        context, a = attend(e, H, mask)
        s = model.gru(torch.cat([model.embedding(y[:, i]), context], dim=-1), s)
        want = F.linear(torch.cat([s, context], dim=-1), model.out.weight, model.out.bias)
        torch.testing.assert_close(weights[:, i], a, **CLOSE)
        torch.testing.assert_close(logits[:, i], want, **CLOSE)


@pytest.mark.parametrize("score", ["dot", "general"])
def test_luong_equals_the_formulas(score):
    model, x, y = MAKE[score](), numbers(2, 5), numbers(2, 4, vocab=8)
    H, mask = model.encoder(x, torch.tensor([5, 3]))
    s, s_tilde = torch.tanh(model.start(H[:, 0, 3:])), torch.zeros(2, 6)
    logits, weights = model(x, torch.tensor([5, 3]), y)
    for i in range(4):
        s = model.gru(torch.cat([model.embedding(y[:, i]), s_tilde], dim=-1), s)
        e = dot_score(s, H) if score == "dot" else general_score(s, H, model.score.W)
        context, a = attend(e, H, mask)
        s_tilde = attentional_state(context, s, model.W_c)
        torch.testing.assert_close(weights[:, i], a, **CLOSE)
        torch.testing.assert_close(logits[:, i], model.out(s_tilde), **CLOSE)


# ---------------------------------------------------------------- what every one of them must keep

def test_weights_are_shares_and_padding_gets_none(model):
    lengths = torch.tensor([6, 2, 4])
    _, weights = model(numbers(3, 6), lengths, numbers(3, 5, vocab=8))
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 5), **CLOSE)
    assert (weights >= 0).all()
    for b, n in enumerate(lengths):
        assert (weights[b, :, n:] == 0).all()


def test_padding_changes_nothing(model):
    sequences = [numbers(1, n)[0].tolist() for n in (6, 2, 4)]
    x, lengths = pad_batch(sequences, 0)
    y = numbers(3, 5, vocab=8)
    logits, weights = model(x, lengths, y)
    for b, sequence in enumerate(sequences):
        alone, a = model(torch.tensor([sequence]), lengths[b:b + 1], y[b:b + 1])
        torch.testing.assert_close(logits[b:b + 1], alone, **CLOSE)
        torch.testing.assert_close(weights[b:b + 1, :, :len(sequence)], a, **CLOSE)


def test_words_to_come_do_not_reach_back(model):
    x, lengths, y = numbers(1, 4), torch.tensor([4]), numbers(1, 5, vocab=8)
    changed = y.clone()
    changed[0, 3] = 7 if y[0, 3] != 7 else 6
    logits, other = model(x, lengths, y)[0], model(x, lengths, changed)[0]
    torch.testing.assert_close(logits[:, :3], other[:, :3], rtol=0, atol=0)
    assert (logits[:, 3:] - other[:, 3:]).abs().max() > 0


def test_every_weight_gets_a_gradient(model):
    logits, _ = model(numbers(2, 4), torch.tensor([4, 3]), numbers(2, 5, vocab=8))
    logits.pow(2).sum().backward()
    missing = [name for name, weight in model.named_parameters()
               if weight.grad is None or not weight.grad.any()]
    assert not missing


@pytest.mark.parametrize("max_len", [0, 1, 4, 20])
def test_steps_teacher_forcing_and_decoding_agree(model, max_len):
    with torch.no_grad():
        model.out.weight.mul_(6)
        model.embedding.weight.mul_(3)
    x, lengths = pad_batch([numbers(1, n)[0].tolist() for n in (6, 2, 4)], 0)
    y, state = numbers(3, 4, vocab=8), model.begin(x, lengths)
    logits, _ = model(x, lengths, y)
    for i in range(4):
        one, state = model.step(y[:, i], state)
        torch.testing.assert_close(one, logits[:, i], **CLOSE)

    def step(token, state):
        logits, state = model.step(torch.tensor([token]), state)
        return logits[0], state

    with torch.no_grad():
        one_by_one = [greedy_decode(step, model.begin(x[b:b + 1, :n], lengths[b:b + 1]), 1, 2, max_len)
                      for b, n in enumerate(lengths)]
    assert greedy_batch(model.step, model.begin(x, lengths), 1, 2, max_len, 3) == one_by_one


def test_an_unknown_score_is_refused():
    with pytest.raises(ValueError, match="'dot' or 'general', got 'additive'"):
        Luong(9, 8, "additive")

"""RNNenc, its batches, its loss, its decoding: equal to torch's parts, and indifferent to padding."""

import doctest

import pytest
import torch
import torch.nn.functional as F

from course_lib.data import batches as module
from course_lib.data.batches import batches, pad_batch, teacher_forcing
from course_lib.decoding import greedy_batch, greedy_decode
from course_lib.models import rnn
from course_lib.models.seq2seq import Decoder, Encoder, RNNenc
from course_lib.training import sequence_loss

CLOSE = {"rtol": 0, "atol": 1e-5}


def numbers(B, n, vocab=9):
    return torch.randint(3, vocab, (B, n))


def same_weights(ours, theirs):
    """Copy torch's GRU into that of models/rnn.py."""
    with torch.no_grad():
        for mine, other in [(ours.W, theirs.weight_ih_l0.T), (ours.U, theirs.weight_hh_l0.T),
                            (ours.b, theirs.bias_ih_l0), (ours.b_U, theirs.bias_hh_l0)]:
            mine.copy_(other)
    return ours


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


# ---------------------------------------------------------------- the model

@pytest.mark.parametrize("B, n, d_emb, d_h", [(2, 5, 3, 4), (1, 1, 2, 3), (3, 4, 4, 4)])
def test_the_encoder_is_the_gru_of_lesson_01(B, n, d_emb, d_h):
    encoder = Encoder(9, d_emb, d_h)
    ours = same_weights(rnn.GRU(d_emb, d_h), encoder.gru)
    x = numbers(B, n)
    H, h_n = encoder(x, torch.full((B,), n))
    want, last = ours(encoder.embedding(x))
    assert H.shape == (B, n, d_h) and h_n.shape == (B, d_h)
    torch.testing.assert_close(H, want, **CLOSE)
    torch.testing.assert_close(h_n, last, **CLOSE)


@pytest.mark.parametrize("d_h, d_c", [(4, 3), (4, 4)])
def test_the_decoder_equals_torchs_cell_step_by_step(d_h, d_c):
    B, m, vocab = 2, 5, 7
    decoder, cell = Decoder(vocab, 3, d_h, d_c), torch.nn.GRUCell(3 + d_c, d_h)
    weights = decoder.gru.state_dict()
    cell.load_state_dict({name.removesuffix("_l0"): weight for name, weight in weights.items()})
    y, c = torch.randint(vocab, (B, m)), torch.randn(B, d_c)
    s = torch.tanh(c @ decoder.start.weight.T + decoder.start.bias)
    torch.testing.assert_close(decoder.first_state(c), s, **CLOSE)
    logits, last = decoder(y, s, c)
    assert logits.shape == (B, m, vocab) and last.shape == (B, d_h)
    for i in range(m):
        s = cell(torch.cat([F.embedding(y[:, i], decoder.embedding.weight), c], dim=-1), s)
        want = torch.cat([s, c], dim=-1) @ decoder.out.weight.T + decoder.out.bias
        torch.testing.assert_close(logits[:, i], want, **CLOSE)
    torch.testing.assert_close(last, s, **CLOSE)


def test_padding_changes_nothing():
    model = RNNenc(9, 8, d_emb=3, d_h=5, d_c=4)
    sequences = [numbers(1, n)[0].tolist() for n in (6, 2, 4)]
    x, lengths = pad_batch(sequences, 0)
    c = model.encode(x, lengths)
    assert c.shape == (3, 4)
    for row, sequence in zip(c, sequences, strict=True):
        alone = model.encode(torch.tensor([sequence]), torch.tensor([len(sequence)]))
        torch.testing.assert_close(row, alone[0], **CLOSE)
    longer = torch.cat([x, torch.zeros(3, 2, dtype=torch.long)], dim=1)
    torch.testing.assert_close(model.encode(longer, lengths), c, **CLOSE)


def test_teacher_forcing_and_steps_give_the_same_logits():
    model, y = RNNenc(9, 8, d_emb=3, d_h=5), numbers(2, 4, vocab=8)
    x, lengths = numbers(2, 6), torch.tensor([6, 3])
    logits = model(x, lengths, y)
    state = model.begin(x, lengths)
    assert state[1].shape == (2, 5), "d_c is d_h where it is not given"
    for i in range(y.size(1)):
        one, state = model.step(y[:, i], state)
        torch.testing.assert_close(one, logits[:, i], **CLOSE)


def test_words_to_come_do_not_reach_back():
    model, y = RNNenc(9, 8, d_emb=3, d_h=5), numbers(1, 5, vocab=8)
    x, lengths = numbers(1, 4), torch.tensor([4])
    changed = y.clone()
    changed[0, 3] = 7 if y[0, 3] != 7 else 6
    logits, other = model(x, lengths, y), model(x, lengths, changed)
    torch.testing.assert_close(logits[:, :3], other[:, :3], rtol=0, atol=0)
    assert (logits[:, 3:] - other[:, 3:]).abs().min(dim=-1).values.max() > 0


# ---------------------------------------------------------------- batches

def test_pad_batch_keeps_every_word():
    sequences = [[5, 6, 7], [8], [9, 4]]
    ids, lengths = pad_batch(sequences, pad_id=11)
    assert ids.tolist() == [[5, 6, 7], [8, 11, 11], [9, 4, 11]] and lengths.tolist() == [3, 1, 2]
    assert ids.dtype == lengths.dtype == torch.int64
    assert sequences == [[5, 6, 7], [8], [9, 4]]


def test_the_examples_are_true():
    assert doctest.testmod(module).failed == 0


def test_inputs_are_one_step_behind_the_targets():
    ids = torch.tensor([[5, 6, 7], [8, 0, 0]])
    inputs, targets = teacher_forcing(ids, 1, 2, 0)
    assert inputs.tolist() == [[1, 5, 6, 7], [1, 8, 0, 0]]
    assert targets.tolist() == [[5, 6, 7, 2], [8, 2, 0, 0]]
    assert ids.tolist() == [[5, 6, 7], [8, 0, 0]]


def test_a_round_of_batches_brings_every_sequence_once_with_little_padding():
    lengths = [3, 9, 4, 4, 8, 3, 9, 7, 8, 3]
    draw = batches([range(length) for length in lengths], 3, torch.Generator().manual_seed(0))
    for _ in range(3):
        round_ = [next(draw) for _ in range(4)]
        assert sorted(sum(round_, [])) == list(range(10))
        assert sorted(map(len, round_)) == [1, 3, 3, 3]
        for rows in round_:
            spread = [lengths[row] for row in rows]
            assert max(spread) - min(spread) <= 4
    repeat = batches([range(length) for length in lengths], 3, torch.Generator().manual_seed(0))
    again = batches([range(length) for length in lengths], 3, torch.Generator().manual_seed(0))
    assert [next(repeat) for _ in range(9)] == [next(again) for _ in range(9)]


# ---------------------------------------------------------------- loss and decoding

@pytest.mark.parametrize("pad_id", [0, 4])
def test_the_loss_equals_torchs(pad_id):
    logits = torch.randn(3, 5, 6, requires_grad=True)
    targets = torch.randint(6, (3, 5))
    targets[1, 2:] = targets[2, 4:] = pad_id
    want = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=pad_id)
    torch.testing.assert_close(sequence_loss(logits, targets, pad_id), want, **CLOSE)
    got, = torch.autograd.grad(sequence_loss(logits, targets, pad_id), logits)
    torch.testing.assert_close(got, torch.autograd.grad(want, logits)[0], **CLOSE)
    assert sequence_loss(1e4 * logits, targets, pad_id).isfinite()


def counting(token, state):
    """Says state, state - 1, ..., 2, where 2 is <eos>."""
    return torch.eye(9)[state], state - 1


def test_greedy_decoding_stops_at_eos_or_at_max_len():
    assert greedy_decode(counting, 6, bos_id=1, eos_id=2, max_len=20) == [6, 5, 4, 3]
    assert greedy_decode(counting, 6, bos_id=1, eos_id=2, max_len=3) == [6, 5, 4]
    assert greedy_decode(counting, 2, bos_id=1, eos_id=2, max_len=3) == []
    assert greedy_decode(counting, 6, bos_id=1, eos_id=2, max_len=0) == []


@pytest.mark.parametrize("max_len", [0, 1, 4, 30])
def test_all_at_once_is_the_same_as_one_by_one(max_len):
    model = RNNenc(9, 8, d_emb=3, d_h=5)
    with torch.no_grad():
        model.decoder.out.weight.mul_(6)      # lets sentences differ, and some end
        model.decoder.embedding.weight.mul_(3)
    sequences = [numbers(1, n)[0].tolist() for n in (6, 2, 4, 5, 3, 7)]
    x, lengths = pad_batch(sequences, 0)

    def step(token, state):
        logits, state = model.step(torch.tensor([token]), state)
        return logits[0], state

    one_by_one = [greedy_decode(step, model.begin(x[b:b + 1], lengths[b:b + 1]), 1, 2, max_len)
                  for b in range(len(sequences))]
    together = greedy_batch(model.step, model.begin(x, lengths), 1, 2, max_len, len(sequences))
    assert together == one_by_one
    assert all(len(row) <= max_len and 2 not in row for row in together)

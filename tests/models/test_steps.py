"""Single steps as functions are those of the models, and a whole pass of them is the library's."""

import math

import torch

from course_lib.models.attention import attentional_state
from course_lib.models.convolution import causal_conv1d
from course_lib.models.rnn import rnn_forward
from course_lib.models.rnnsearch import Luong, RNNsearch
from course_lib.models.steps import (
    attention_decoder_step,
    causal_conv_step,
    gated_block,
    input_feeding,
    rnn_forward_masked,
    seq2seq_logits,
    training_step,
    truncated_states,
)

CLOSE = {"rtol": 0, "atol": 1e-5}


def test_a_decoder_step_is_rnnsearchs():
    torch.manual_seed(0)
    model, y_prev = RNNsearch(9, 8, d_emb=3, d_h=6, d_a=5), torch.randn(2, 3)
    state = s_prev, source = model.begin(torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]), torch.tensor([4, 2]))
    output, weights, (s, _) = model.look(y_prev, state)
    found = attention_decoder_step(y_prev, s_prev, source.H, source.mask, model.score.W_s, model.score.W_h,
                                   model.score.v, model.gru)
    for ours, theirs in zip(found, (s, output[:, 6:], weights), strict=True):
        torch.testing.assert_close(ours, theirs, **CLOSE)


def test_input_feeding_is_luongs():
    torch.manual_seed(0)
    model, y = Luong(9, 8, "general", d_emb=3, d_h=6), torch.randint(3, 8, (2, 5))
    x, lengths = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]), torch.tensor([4, 2])
    s_0, _, source = model.begin(x, lengths)
    found = input_feeding(model.embedding(y), s_0, source.H, source.mask, model.score.W, model.W_c, model.gru)
    torch.testing.assert_close(model.out(found), model(x, lengths, y)[0], **CLOSE)
    assert attentional_state(source.H[:, 0], s_0, model.W_c).shape == s_0.shape


def test_steps_of_a_convolution_are_the_whole_convolution():
    torch.manual_seed(0)
    for k, dilation in ((2, 1), (3, 4), (5, 2)):
        X, W, b = torch.randn(2, 12, 3), torch.randn(k, 3, 4), torch.randn(4)
        window, outputs = torch.zeros(2, (k - 1) * dilation, 3), []
        for x_t in X.unbind(dim=1):
            y_t, window = causal_conv_step(x_t, window, W, b, dilation)
            outputs.append(y_t)
        torch.testing.assert_close(torch.stack(outputs, dim=1), causal_conv1d(X, W, b, dilation), **CLOSE)


def test_a_gated_block_is_torchs_convolution_and_glu():
    torch.manual_seed(0)
    X, W, b = torch.randn(2, 7, 3), torch.randn(3, 3, 6), torch.randn(6)
    padded = torch.nn.functional.pad(X.transpose(1, 2), (4, 0))
    found = torch.nn.functional.conv1d(padded, W.permute(2, 1, 0), b, dilation=2)    # (B, 2 d, n)
    right = X + torch.nn.functional.glu(found, dim=1).transpose(1, 2)
    torch.testing.assert_close(gated_block(X, W, b, 2), right, **CLOSE)


def test_a_masked_run_is_that_of_packed_sequences():
    torch.manual_seed(0)
    model, X, lengths = torch.nn.RNN(3, 4, batch_first=True), torch.randn(3, 6, 3), torch.tensor([2, 6, 4])
    packed = torch.nn.utils.rnn.pack_padded_sequence(X, lengths, batch_first=True, enforce_sorted=False)
    right, last = model(packed)
    right = torch.nn.utils.rnn.pad_packed_sequence(right, batch_first=True)[0]
    H, h_last = rnn_forward_masked(X, lengths, torch.zeros(3, 4), model.weight_ih_l0.T, model.weight_hh_l0.T,
                                   model.bias_ih_l0 + model.bias_hh_l0)
    torch.testing.assert_close(h_last, last[0], **CLOSE)
    for row, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(H[row, :length], right[row, :length], **CLOSE)
        assert (H[row, length:] == H[row, length - 1]).all()


def test_no_gradient_crosses_a_window():
    torch.manual_seed(0)
    X, h_0 = torch.randn(2, 7, 3, requires_grad=True), torch.randn(2, 4)
    weights = torch.randn(3, 4), torch.randn(4, 4), torch.randn(4)
    H = truncated_states(X, h_0, 3, *weights)
    torch.testing.assert_close(H, rnn_forward(X, h_0, *weights), **CLOSE)
    for t in range(7):
        gradient, = torch.autograd.grad(H[:, t].sum(), X, retain_graph=True)
        reached = gradient.norm(dim=(0, 2)) > 0
        assert reached.tolist() == [3 * (t // 3) <= place <= t for place in range(7)]


def test_logits_are_those_of_torchs_cells():
    torch.manual_seed(0)
    E_x, E_y, W_out = torch.randn(9, 3), torch.randn(8, 3), torch.randn(4, 8)
    encoder, decoder = torch.nn.GRU(3, 4, batch_first=True), torch.nn.GRU(3, 4, batch_first=True)
    source, lengths, inputs = torch.randint(9, (2, 5)), torch.tensor([3, 5]), torch.randint(8, (2, 4))
    packed = torch.nn.utils.rnn.pack_padded_sequence(E_x[source], lengths, True, enforce_sorted=False)
    right = decoder(E_y[inputs], encoder(packed)[1])[0] @ W_out
    found = seq2seq_logits(source, lengths, inputs, lambda x, h: encoder(E_x[x][:, None], h[None])[1][0],
                           lambda y, h: decoder(E_y[y][:, None], h[None])[1][0], W_out)
    torch.testing.assert_close(found, right, **CLOSE)


def test_a_training_step_learns_the_next_token():
    torch.manual_seed(0)
    table, target = torch.nn.Parameter(torch.zeros(6, 6)), torch.tensor([[1, 4, 5, 2], [1, 3, 2, 0]])
    optimizer = torch.optim.Adam([table], lr=0.5)
    losses = [training_step(lambda source, inputs: table[inputs], optimizer, target, target, 0)
              for _ in range(60)]
    assert abs(losses[0] - math.log(6)) < 1e-5 and losses[-1] < losses[0] / 2
    assert table.argmax(dim=1)[[4, 5, 3]].tolist() == [5, 2, 2] and table.grad[0].abs().sum() == 0

"""The norms are torch's own, parameters copied, to 1e-5; so are the recurrent layers built on them."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models import norm, rnn

CLOSE = {"rtol": 0, "atol": 1e-5}


def drawn(layer, theirs):
    """Both with the same random gamma and beta."""
    with torch.no_grad():
        layer.gamma.copy_(1 + 0.5 * torch.randn_like(layer.gamma))
        layer.beta.copy_(torch.randn_like(layer.beta))
        theirs.weight.copy_(layer.gamma)
        theirs.bias.copy_(layer.beta)
    return layer, theirs


@pytest.mark.parametrize("eps", [1e-5, 0.3])
@pytest.mark.parametrize("N, d", [(2, 3), (7, 4), (4, 4), (64, 1)])
def test_batch_norm_equals_torchs(N, d, eps):
    torch.manual_seed(N)
    x, gamma, beta = 2 + 3 * torch.randn(N, d), torch.randn(d), torch.randn(d)
    want = F.batch_norm(x, None, None, gamma, beta, training=True, eps=eps)
    torch.testing.assert_close(norm.batch_norm(x, gamma, beta, eps), want, **CLOSE)


@pytest.mark.parametrize("eps", [1e-5, 0.3])
@pytest.mark.parametrize("shape", [(5,), (1, 4), (3, 4), (2, 3, 5), (2, 3, 4, 2)])
def test_layer_norm_equals_torchs(shape, eps):
    torch.manual_seed(len(shape))
    x, gamma, beta = 2 + 3 * torch.randn(shape), torch.randn(shape[-1]), torch.randn(shape[-1])
    want = F.layer_norm(x, shape[-1:], gamma, beta, eps)
    torch.testing.assert_close(norm.layer_norm(x, gamma, beta, eps), want, **CLOSE)


@pytest.mark.parametrize("eps", [1e-6, 0.3])
@pytest.mark.parametrize("shape", [(5,), (1, 4), (3, 4), (2, 3, 5)])
def test_rms_norm_equals_torchs(shape, eps):
    torch.manual_seed(len(shape))
    x, gamma = 2 + 3 * torch.randn(shape), torch.randn(shape[-1])
    torch.testing.assert_close(norm.rms_norm(x, gamma, eps), F.rms_norm(x, shape[-1:], gamma, eps), **CLOSE)


@pytest.mark.parametrize("lengths", [[4, 2, 3], [4, 4, 4], [1, 4, 1]])
def test_masked_batch_norm_equals_torchs_of_the_real_tokens_one_after_the_other(lengths):
    torch.manual_seed(sum(lengths))
    X, gamma, beta = 2 + 3 * torch.randn(3, 4, 5), torch.randn(5), torch.randn(5)
    tokens = torch.cat([sentence[:length] for sentence, length in zip(X, lengths, strict=True)])
    want = F.batch_norm(tokens, None, None, gamma, beta, training=True)
    found = norm.masked_batch_norm(X, torch.tensor(lengths), gamma, beta)
    real = torch.cat([row[:length] for row, length in zip(found, lengths, strict=True)])
    torch.testing.assert_close(real, want, **CLOSE)
    assert all(row[length:].eq(0).all() for row, length in zip(found, lengths, strict=True))
    padded = X.clone()
    padded[torch.arange(4) >= torch.tensor(lengths)[:, None]] = 1e6
    torch.testing.assert_close(norm.masked_batch_norm(padded, torch.tensor(lengths), gamma, beta), found)


@pytest.mark.parametrize("momentum", [0.1, 0.7])
def test_the_modules_equal_torchs_in_both_modes_with_gradients(momentum):
    torch.manual_seed(2)
    pairs = [drawn(norm.BatchNorm(3, momentum), nn.BatchNorm1d(3, momentum=momentum)),
             drawn(norm.LayerNorm(3), nn.LayerNorm(3))]
    for ours, theirs in pairs:
        for N, training in [(4, True), (2, True), (6, False), (1, False), (5, True), (3, False)]:
            x = (2 + torch.randn(N, 3)).requires_grad_()
            same = x.detach().clone().requires_grad_()
            outputs = ours.train(training)(x), theirs.train(training)(same)
            torch.testing.assert_close(*outputs, **CLOSE)
            for layer, output in zip((ours, theirs), outputs, strict=True):
                layer.zero_grad()
                output.pow(3).sum().backward()
            torch.testing.assert_close(x.grad, same.grad, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(ours.gamma.grad, theirs.weight.grad, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(ours.beta.grad, theirs.bias.grad, rtol=1e-4, atol=1e-4)
    ours, theirs = pairs[0]
    torch.testing.assert_close(ours.running_mean, theirs.running_mean, **CLOSE)
    torch.testing.assert_close(ours.running_var, theirs.running_var, **CLOSE)


def test_positions_as_rows_equal_torchs_batch_norm_of_sequences():
    torch.manual_seed(3)
    X, theirs = torch.randn(1, 5, 3), nn.BatchNorm1d(3)
    ours = norm.BatchNorm(3)(X.flatten(0, 1)).unflatten(0, (1, 5))
    torch.testing.assert_close(ours, theirs(X.transpose(1, 2)).transpose(1, 2), **CLOSE)


def test_one_row_is_refused_in_training_alone():
    layer = norm.BatchNorm(3)
    with pytest.raises(ValueError, match="at least 2 rows"):
        layer(torch.randn(1, 3))
    assert layer.running_mean.eq(0).all()
    assert layer.eval()(torch.randn(1, 3)).shape == (1, 3)


def test_the_running_statistics_are_saved_and_not_trained():
    layer = norm.BatchNorm(3)
    assert set(layer.state_dict()) == {"gamma", "beta", "running_mean", "running_var"}
    assert {name for name, _ in layer.named_parameters()} == {"gamma", "beta"}


def test_the_recurrent_step_is_torchs_parts():
    torch.manual_seed(4)
    x_t, h_prev, W_xh, W_hh = torch.randn(2, 3), torch.randn(2, 4), torch.randn(3, 4), torch.randn(4, 4)
    gamma, beta = torch.randn(4), torch.randn(4)
    want = torch.tanh(F.layer_norm(x_t @ W_xh + h_prev @ W_hh, (4,), gamma, beta))
    torch.testing.assert_close(norm.layer_norm_rnn_step(x_t, h_prev, W_xh, W_hh, gamma, beta), want, **CLOSE)


class Nothing(nn.Module):
    def __init__(self, d):
        super().__init__()

    def forward(self, x, t):
        return x


def test_an_lstm_without_norms_is_the_lstm():
    torch.manual_seed(5)
    plain, ours = rnn.LSTM(3, 4), norm.NormLSTM(3, 4, Nothing)
    ours.load_state_dict(plain.state_dict())
    X = torch.randn(2, 6, 3)
    torch.testing.assert_close(ours(X)[0], plain(X)[0], **CLOSE)


def test_the_layer_norm_lstm_equals_the_papers_equations_with_torchs_layer_norm():
    torch.manual_seed(6)
    layer, X = norm.NormLSTM(3, 4, norm.StepwiseLayerNorm), torch.randn(2, 5, 3)
    for part in (layer.norm_x, layer.norm_h, layer.norm_c):
        nn.init.normal_(part.gamma)
        nn.init.normal_(part.beta)

    def torchs(part, x):
        return F.layer_norm(x, x.shape[-1:], part.gamma, part.beta)

    h, c, states = torch.zeros(2, 4), torch.zeros(2, 4), []
    for t in range(5):
        sums = torchs(layer.norm_h, h @ layer.U) + torchs(layer.norm_x, X[:, t] @ layer.W) + layer.b  # eq. 20
        i, f, g, o = sums.chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()  # eq. 21
        h = o.sigmoid() * torchs(layer.norm_c, c).tanh()  # eq. 22
        states.append(h)
    H, state = layer(X)
    torch.testing.assert_close(H, torch.stack(states, dim=1), **CLOSE)
    assert state[2] == 5 and H.shape == (2, 5, 4)


def test_a_stepwise_batch_norm_keeps_statistics_for_each_step_and_one_gamma():
    torch.manual_seed(7)
    layer = norm.StepwiseBatchNorm(3, steps=2, gamma=0.1)
    first, second = torch.randn(4, 3), 5 + torch.randn(4, 3)
    layer(first, 0), layer(second, 1)
    theirs = nn.BatchNorm1d(3)
    theirs(second)
    torch.testing.assert_close(layer.norms[1].running_mean, theirs.running_mean, **CLOSE)
    assert layer.norms[0].running_mean.abs().max() < 0.2
    assert [tuple(part.shape) for part in layer.parameters()] == [(3,), (3,)]
    assert layer.norms[1].gamma is layer.norms[0].gamma and layer.norms[0].gamma.eq(0.1).all()
    with pytest.raises(IndexError, match="no statistics for step 3: training had 2 steps"):
        layer(first, 2)

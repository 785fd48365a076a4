"""The recurrent layers are torch's own, weights copied, to 1e-5."""

import pytest
import torch

from course_lib.models import rnn

CLOSE = {"rtol": 0, "atol": 1e-5}
SIZES = [(2, 5, 3, 4), (1, 1, 2, 3), (3, 7, 4, 4), (2, 3, 5, 1)]    # B, n, d_in, d_h
LAYERS = {rnn.RNN: torch.nn.RNN, rnn.LSTM: torch.nn.LSTM, rnn.GRU: torch.nn.GRU}


def torchs(ours, theirs, d_in, d_h):
    """torch's layer with the weights of ours."""
    layer = theirs(d_in, d_h, batch_first=True)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(ours.W.T)
        layer.weight_hh_l0.copy_(ours.U.T)
        layer.bias_ih_l0.copy_(ours.b)
        layer.bias_hh_l0.copy_(getattr(ours, "b_U", torch.zeros_like(ours.b)))
    return layer


@pytest.mark.parametrize("given", [False, True], ids=["from zeros", "from a state"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_equals_torchs(kind, size, given):
    torch.manual_seed(1)
    B, n, d_in, d_h = size
    ours = kind(d_in, d_h)
    X, h, c = torch.randn(B, n, d_in), torch.randn(B, d_h), torch.randn(B, d_h)
    state = None if not given else (h, c) if kind is rnn.LSTM else h
    theirs = None if not given else (h[None], c[None]) if kind is rnn.LSTM else h[None]
    H, last = ours(X, state)
    want_H, want_last = torchs(ours, LAYERS[kind], d_in, d_h)(X, theirs)
    assert H.shape == (B, n, d_h)
    torch.testing.assert_close(H, want_H, **CLOSE)
    for got, want in zip(last if kind is rnn.LSTM else [last],
                         want_last if kind is rnn.LSTM else [want_last], strict=True):
        torch.testing.assert_close(got, want[0], **CLOSE)


@pytest.mark.parametrize("kind", LAYERS)
def test_the_gradients_equal_torchs(kind):
    torch.manual_seed(2)
    ours = kind(3, 4)
    theirs = torchs(ours, LAYERS[kind], 3, 4)
    X = torch.randn(2, 6, 3)
    for layer in (ours, theirs):
        layer(X)[0].pow(2).sum().backward()
    torch.testing.assert_close(ours.W.grad, theirs.weight_ih_l0.grad.T, **CLOSE)
    torch.testing.assert_close(ours.U.grad, theirs.weight_hh_l0.grad.T, **CLOSE)
    torch.testing.assert_close(ours.b.grad, theirs.bias_ih_l0.grad, **CLOSE)


@pytest.mark.parametrize("kind", LAYERS)
def test_weights_start_where_torchs_start(kind):
    torch.manual_seed(0)
    values = torch.cat([weight.flatten() for weight in kind(40, 16).parameters()])
    assert values.abs().max() <= 0.25 and values.abs().max() > 0.24    # 1 / sqrt(16)


def test_rnn_forward_is_the_layer():
    torch.manual_seed(3)
    layer, X, h_0 = rnn.RNN(3, 4), torch.randn(2, 5, 3), torch.randn(2, 4)
    H = rnn.rnn_forward(X, h_0, layer.W, layer.U, layer.b)
    torch.testing.assert_close(H, torchs(layer, torch.nn.RNN, 3, 4)(X, h_0[None])[0], **CLOSE)


@pytest.mark.parametrize("kind, option", [(rnn.LSTM, "forget_bias"), (rnn.GRU, "keep_bias")])
def test_a_raised_bias_raises_one_gate_alone(kind, option):
    torch.manual_seed(4)
    plain = kind(2, 3)
    torch.manual_seed(4)
    raised = kind(2, 3, **{option: 2.5})
    change = raised.b - plain.b
    assert torch.allclose(change[3:6], torch.tensor(2.5), atol=1e-6)     # the second gate: f, z
    assert change[:3].eq(0).all() and change[6:].eq(0).all()
    assert torch.equal(raised.W, plain.W) and torch.equal(raised.U, plain.U)


@pytest.mark.parametrize("bias, least, most", [(0.0, 0.0, 0.05), (3.0, 0.3, 0.5), (20.0, 0.4999, 0.5001)])
@pytest.mark.parametrize("kind, option", [(rnn.LSTM, "forget_bias"), (rnn.GRU, "keep_bias")])
def test_the_higher_the_bias_the_longer_the_state_is_kept(kind, option, bias, least, most):
    layer = kind(2, 3, **{option: bias})
    with torch.no_grad():
        for weight in layer.parameters():
            weight[:] = 0.0
        layer.b[3:6] += bias                            # nothing but this bias: no input, no candidate
    kept = 0.5 * torch.ones(1, 3)
    state = layer(torch.zeros(1, 5, 2), (torch.zeros(1, 3), kept) if kind is rnn.LSTM else kept)[1]
    held = state[1] if kind is rnn.LSTM else state
    assert least < held.min().item() <= held.max().item() < most


@pytest.mark.parametrize("n, d_h", [(6, 3), (2, 5), (1, 4)])
def test_gradient_norms_equals_autograd(n, d_h):
    torch.manual_seed(6)
    W_xh, W_hh = torch.randn(2, d_h).double(), 0.7 * torch.randn(d_h, d_h).double()
    b_h, X = torch.randn(d_h).double(), torch.randn(1, n, 2).double()
    H = rnn.rnn_forward(X, torch.zeros(1, d_h).double(), W_xh, W_hh, b_h)
    norms = rnn.gradient_norms(H[0], W_hh)
    for t in range(n):
        def last(h_t, t=t):
            return h_t if t == n - 1 else rnn.rnn_forward(X[:, t + 1:], h_t[None], W_xh, W_hh, b_h)[0, -1]
        jacobian = torch.autograd.functional.jacobian(last, H[0, t])
        torch.testing.assert_close(norms[t], jacobian.norm(), rtol=1e-8, atol=1e-10)
    assert norms.shape == (n,) and norms[-1].item() == pytest.approx(d_h ** 0.5)

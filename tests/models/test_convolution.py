"""The convolutions are torch's own, weights copied, to 1e-5; they see what the formula says."""

import math

import pytest
import torch
import torch.nn.functional as F

from course_lib.models import convolution
from course_lib.models.convolution import CausalConv1d, ConvolutionStack, GatedConvolution

CLOSE = {"rtol": 0, "atol": 1e-5}
SIZES = [(2, 7, 3, 4), (1, 5, 2, 3), (3, 3, 3, 3), (2, 1, 4, 2)]    # B, n, d_in, d_out


def torchs(layer):
    """torch's Conv1d with the weights of ours; it neither pads nor takes (B, n, d)."""
    k, d_in, d_out = layer.W.shape
    theirs = torch.nn.Conv1d(d_in, d_out, k, dilation=layer.dilation)
    with torch.no_grad():
        theirs.weight.copy_(layer.W.permute(2, 1, 0))
        theirs.bias.copy_(layer.b)
    reach = (k - 1) * layer.dilation
    return theirs, lambda X: theirs(F.pad(X.transpose(1, 2), (reach, 0))).transpose(1, 2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("k, dilation", [(1, 1), (2, 1), (3, 1), (3, 2), (2, 5), (4, 3)])
def test_the_convolution_equals_torchs(size, k, dilation):
    torch.manual_seed(1)
    B, n, d_in, d_out = size
    layer, X = CausalConv1d(d_in, d_out, k, dilation), torch.randn(B, n, d_in)
    Y = layer(X)
    assert Y.shape == (B, n, d_out)
    torch.testing.assert_close(Y, torchs(layer)[1](X), **CLOSE)


def test_the_gradients_equal_torchs():
    torch.manual_seed(2)
    layer = CausalConv1d(3, 4, 3, dilation=2)
    theirs, forward = torchs(layer)
    mine = torch.randn(2, 6, 3).requires_grad_()
    yours = mine.detach().clone().requires_grad_()
    layer(mine).pow(2).sum().backward()
    forward(yours).pow(2).sum().backward()
    torch.testing.assert_close(layer.W.grad, theirs.weight.grad.permute(2, 1, 0), rtol=0, atol=1e-4)
    torch.testing.assert_close(layer.b.grad, theirs.bias.grad, rtol=0, atol=1e-4)
    torch.testing.assert_close(mine.grad, yours.grad, rtol=0, atol=1e-4)


@pytest.mark.parametrize("gain", [1.0, convolution.GLU_GAIN])
def test_weights_start_where_torchs_start_times_the_gain(gain):
    torch.manual_seed(0)
    W = CausalConv1d(32, 64, 2, gain=gain).W
    bound = gain / math.sqrt(32 * 2)
    assert 0.98 * bound < W.abs().max() <= bound
    torch.manual_seed(0)
    torchs_W = torch.nn.Conv1d(32, 64, 2).weight
    assert W.std().item() == pytest.approx(gain * torchs_W.std().item(), rel=0.05)


def test_the_gain_for_glu_gives_gehrings_variance():
    torch.manual_seed(0)
    W = CausalConv1d(64, 128, 3, gain=convolution.GLU_GAIN).W
    assert W.var().item() == pytest.approx(4 / (3 * 64), rel=0.03)


def test_the_gain_widens_every_layer_and_no_bias():
    torch.manual_seed(5)
    plain = ConvolutionStack(3, 4, 2, [1, 2])
    torch.manual_seed(5)
    wide = ConvolutionStack(3, 4, 2, [1, 2], gain=2.0)
    for narrow_layer, wide_layer in zip(plain.layers, wide.layers, strict=True):
        torch.testing.assert_close(wide_layer.convolution.W, 2 * narrow_layer.convolution.W)
        torch.testing.assert_close(wide_layer.convolution.b, narrow_layer.convolution.b)


@pytest.mark.parametrize("shape", [(6,), (3, 4), (2, 5, 6), (2, 3, 4, 2)])
def test_the_gated_linear_unit_equals_torchs(shape):
    torch.manual_seed(3)
    X = torch.randn(shape)
    torch.testing.assert_close(convolution.gated_linear_unit(X), F.glu(X, dim=-1), **CLOSE)


def test_a_gated_convolution_is_its_input_and_the_gated_output():
    torch.manual_seed(4)
    layer, X = GatedConvolution(3, 2, dilation=2), torch.randn(2, 5, 3)
    torch.testing.assert_close(layer(X), X + F.glu(torchs(layer.convolution)[1](X), dim=-1), **CLOSE)


def test_a_stack_is_its_layers_one_after_the_other():
    torch.manual_seed(5)
    stack, X = ConvolutionStack(3, 4, 2, [1, 2, 4]), torch.randn(2, 9, 3)
    H = stack.embedding(X)
    for layer in stack.layers:
        H = layer(H)
    got, last = stack(X)
    assert got.shape == (2, 9, 4) and stack.d_h == 4
    torch.testing.assert_close(got, H)
    torch.testing.assert_close(last, H[:, -1])
    assert [layer.convolution.dilation for layer in stack.layers] == [1, 2, 4]


@pytest.mark.parametrize("k, dilations", [(2, [1]), (3, [1, 1, 1]), (2, [1, 2, 4, 8]), (3, [1, 3, 9]),
                                          (4, [3, 1, 2]), (1, [1, 5])])
def test_the_field_by_formula_is_the_field_by_gradient(k, dilations):
    torch.manual_seed(6)
    field = convolution.receptive_field(k, dilations)
    stack = ConvolutionStack(3, 4, k, dilations).double()
    X = torch.randn(1, field + 6, 3).double().requires_grad_()
    grad, = torch.autograd.grad(stack(X)[0][0, -1].sum(), X)
    size = grad[0].norm(dim=-1).flip(0)                   # by distance
    assert (size[field:] == 0).all() and size[field - 1] > 0


def test_no_output_sees_a_later_word():
    torch.manual_seed(7)
    stack = ConvolutionStack(2, 3, 3, [1, 2])
    jacobian = torch.autograd.functional.jacobian(lambda X: stack(X[None])[0][0], torch.randn(9, 2))
    assert (jacobian.abs().sum(dim=(1, 3)).triu(diagonal=1) == 0).all()


@pytest.mark.parametrize("n", [2, 3, 8, 9, 10, 27, 28, 100])
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_path_is_the_least_number_of_layers_that_reach(n, k):
    plain = next(layers for layers in range(n) if convolution.receptive_field(k, [1] * layers) >= n)
    dilated = next(L for L in range(n) if convolution.receptive_field(k, [k ** l for l in range(L)]) >= n)
    assert convolution.path_length(n, "convolution", k) == plain
    assert convolution.path_length(n, "dilated", k) == dilated
    assert convolution.path_length(n, "recurrent", k) == n - 1
    assert convolution.path_length(n, "attention", k) == 1


@pytest.mark.parametrize("k", [2, 3, 5, 10])
def test_exact_powers_take_no_layer_too_many(k):
    for layers in range(1, 12):
        assert convolution.path_length(k ** layers, "dilated", k) == layers
        assert convolution.path_length(k ** layers + 1, "dilated", k) == layers + 1


def test_the_kernel_of_a_path_is_3_unless_given():
    assert convolution.path_length(9, "dilated") == 2 and convolution.path_length(9, "convolution") == 4


def test_an_unknown_layer_is_named_with_the_choices():
    with pytest.raises(ValueError) as problem:
        convolution.path_length(9, "convolutional")
    words = ["'convolutional'", "'recurrent'", "'convolution'", "'dilated'", "'attention'"]
    assert [word for word in words if word not in str(problem.value)] == []


def test_a_papers_own_numbers():
    assert convolution.receptive_field(5, [1] * 6) == 25                             # ConvS2S, section 3.2
    assert convolution.receptive_field(2, [2 ** l for l in range(10)]) == 1024       # WaveNet, section 2.1

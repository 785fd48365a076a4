"""Exercise 02: the causal convolution, how far it sees, its gate, and the length of a path."""

import math

import torch
import torch.nn.functional as F

from course_lib.models import convolution, steps

from ..judging.draw import different, telling, whole
from ..judging.spec import Item, normal

IN_CODE, IN_GATE = "From formula to code", "The gated linear unit"
IN_FIELD, IN_PATH = "Look inside: the receptive field", "Look inside: the length of the path"


# ---------------------------------------------------------------- causal_conv1d

def _convolution_inputs(generator):
    # (k - 1) * dilation is even throughout, so that "half of the padding on each side" means one thing
    def draw(B, n, d_in, d_out, k, dilation=None, dtype=torch.float32):
        given = {"X": normal(generator, B, n, d_in, dtype=dtype),
                 "W": normal(generator, k, d_in, d_out, scale=0.5, dtype=dtype),
                 "b": normal(generator, d_out, dtype=dtype)}
        return given if dilation is None else {**given, "dilation": dilation}

    def widths():
        return different(generator, 3, high=6)                                  # B, d_in, d_out

    def trial(n, k, dilation=None, B=None, dtype=torch.float32):
        first, *others = widths()
        return draw(B or first, n, *others, k=k, dilation=dilation, dtype=dtype)
    gap, wide, equal = whole(generator, 2, 4), 2 * whole(generator, 1, 3), whole(generator, 3, 6)
    return [trial(2 * gap + whole(generator, 2, 5), k=3, dilation=gap),
            trial(whole(generator, 5, 8), k=3, dtype=torch.float64),
            draw(equal, equal, equal, equal, k=3, dilation=1),
            trial(wide + whole(generator, 4, 7), k=2, dilation=wide),
            trial(whole(generator, 2, 4), k=3, dilation=gap),                   # fewer words than the field
            trial(whole(generator, 8, 11), k=3, dilation=3, B=1)]


causal_conv1d = Item("causal_conv1d", 3, _convolution_inputs, convolution.causal_conv1d, ("Y (B, n, d_out)",), IN_CODE,
                     free=("conv1d", "conv2d", "conv3d", "convolution", "conv_tbc", "conv_transpose1d",
                           "conv_transpose2d", "conv_transpose3d"))


def _convolve(X, W, b, dilation=1, left=None, right=0, pad=F.pad):
    """Y[t] = b + sum_j padded[t + j dilation] W[j], for the n positions that the padding gives."""
    reach = (len(W) - 1) * dilation
    padded = pad(X, (0, 0, reach if left is None else left, right))
    n = X.size(1)
    return b + sum(padded[:, j * dilation:j * dilation + n] @ W[j] for j in range(len(W)))


@causal_conv1d.mistake("The output depends on the future: half of the padding is on the right. A causal convolution puts all (k - 1) * dilation zeros on the left.")
def sees_the_future(X, W, b, dilation=1):
    half = (len(W) - 1) * dilation // 2
    return _convolve(X, W, b, dilation, left=half, right=half)


@causal_conv1d.mistake("The padding is on the right, so each output sees only the present and the future. Put all of the zeros on the left.")
def pads_on_the_right(X, W, b, dilation=1):
    return _convolve(X, W, b, dilation, left=0, right=(len(W) - 1) * dilation)


@causal_conv1d.mistake("The convolution looks to the right: it uses t + ... where t - ... belongs, so W[0] meets the most distant FUTURE input.")
def looks_to_the_right(X, W, b, dilation=1):
    return _convolve(X.flip(1), W, b, dilation).flip(1)


@causal_conv1d.mistake("The dilation is ignored. Neighbouring weights meet inputs that are `dilation` positions apart, not 1.")
def dilation_ignored(X, W, b, dilation=1):
    return _convolve(X, W, b, 1)


@causal_conv1d.mistake("The dilation is one too large: dilation 1 means no gap, dilation 2 means every second input.")
def dilation_counts_the_gap(X, W, b, dilation=1):
    return _convolve(X, W, b, dilation + 1)


@causal_conv1d.mistake("The dilation is used as a stride. Every position has an output; the gaps are between the inputs.")
def dilation_as_stride(X, W, b, dilation=1):
    return _convolve(X, W, b, 1)[:, ::dilation]


@causal_conv1d.mistake("The kernel is flipped: W[k - 1] meets the present input and W[0] the oldest one.")
def kernel_flipped(X, W, b, dilation=1):
    return _convolve(X, W.flip(0), b, dilation)


@causal_conv1d.mistake("The present input is left out, so every output is one position late. Y[t] depends on X[t] too.")
def present_left_out(X, W, b, dilation=1):
    return _convolve(F.pad(X, (0, 0, 1, 0))[:, :-1], W, b, dilation)


@causal_conv1d.mistake("Only the present input is used. The other k - 1 weights meet the inputs before it.")
def only_the_present(X, W, b, dilation=1):
    return X @ W[-1] + b


@causal_conv1d.mistake("The padding is missing, so the output is shorter than the input. Zeros stand for the inputs before the start.")
def no_padding(X, W, b, dilation=1):
    reach = (len(W) - 1) * dilation
    return torch.stack([b + sum(X[:, t - reach + j * dilation] @ W[j] for j in range(len(W)))
                        for t in range(reach, X.size(1))], dim=1)


@causal_conv1d.mistake("Positions with an incomplete window have no output. Use the inputs that exist, and zeros for the missing ones.")
def waits_for_a_full_window(X, W, b, dilation=1):
    Y = _convolve(X, W, b, dilation)
    missing = torch.arange(X.size(1)) < (len(W) - 1) * dilation
    return Y.masked_fill(missing[:, None], 0.0)


@causal_conv1d.mistake("The sequence is treated as a circle (torch.roll does that). The inputs before the start are zeros, not the ones from the end.")
def wraps_around(X, W, b, dilation=1):
    k = len(W)
    return b + sum(X.roll((k - 1 - j) * dilation, dims=1) @ W[j] for j in range(k))


@causal_conv1d.mistake("The padding repeats the first input. Before the start there are zeros.")
def repeats_the_first_word(X, W, b, dilation=1):
    first = X[:, :1].expand(-1, (len(W) - 1) * dilation, -1)
    return _convolve(torch.cat([first, X], dim=1), W, b, dilation, left=0)[:, :X.size(1)]


@causal_conv1d.mistake("The bias b is left out.")
def bias_left_out(X, W, b, dilation=1):
    return _convolve(X, W, torch.zeros_like(b), dilation)


@causal_conv1d.mistake("The bias is added once for each of the k weights. Add it only once.")
def bias_for_every_weight(X, W, b, dilation=1):
    return _convolve(X, W, len(W) * b, dilation)


@causal_conv1d.mistake("This is the mean over the k weights. The formula has a sum.")
def mean_for_sum(X, W, b, dilation=1):
    return _convolve(X, W / len(W), b, dilation)


@causal_conv1d.mistake("Each W[j] is transposed. An input is a row on the left: X[:, t] @ W[j].")
def W_transposed(X, W, b, dilation=1):
    return _convolve(X, W.transpose(1, 2), b, dilation)


@causal_conv1d.mistake("The convolution runs along the batch. X is (B, n, d_in), so time is axis 1.")
def along_the_batch(X, W, b, dilation=1):
    return _convolve(X.transpose(0, 1), W, b, dilation).transpose(0, 1)


# ---------------------------------------------------------------- receptive_field

def _field_inputs(generator):
    def some(low, high):
        return whole(generator, low, high)

    def doubling(layers):
        return [2 ** layer for layer in range(layers)]

    def draw():
        given = [(some(3, 6), doubling(some(3, 5))), (2, doubling(some(3, 7))), (some(3, 6), [1] * some(4, 8)),
                 (some(4, 10), [some(2, 9)]), (some(3, 6), different(generator, some(3, 5), 1, 7)),
                 (1, different(generator, 2, 1, 9))]
        return [{"kernel_size": k, "dilations": dilations} for k, dilations in given]
    return telling(receptive_field, draw)


receptive_field = Item("receptive_field", 1, _field_inputs, convolution.receptive_field, ("the field",), IN_FIELD,
                       gradients=False)


@receptive_field.mistake("The result is one too small: the present position counts too, 1 + ...")
def present_not_counted(kernel_size, dilations):
    return (kernel_size - 1) * sum(dilations)


@receptive_field.mistake("The dilations are ignored. A layer with dilation 4 adds 4 (k - 1) positions, not k - 1.")
def ignores_dilation(kernel_size, dilations):
    return 1 + (kernel_size - 1) * len(dilations)


@receptive_field.mistake("The receptive fields of the layers are multiplied. Each layer ADDS (k - 1) * dilation positions.")
def multiplies(kernel_size, dilations):
    return math.prod(1 + (kernel_size - 1) * dilation for dilation in dilations)


@receptive_field.mistake("k to the power of the number of layers is right only if the dilations are 1, k, k^2, ... Use the dilations that are given.")
def power_of_k(kernel_size, dilations):
    return kernel_size ** len(dilations)


@receptive_field.mistake("2 to the power of the number of layers is right only if k = 2 and the dilations double. Use the dilations that are given.")
def power_of_two(kernel_size, dilations):
    return 2 ** len(dilations)


@receptive_field.mistake("k is used where k - 1 belongs: one of the k weights meets the position itself and adds nothing.")
def k_for_k_minus_1(kernel_size, dilations):
    return 1 + kernel_size * sum(dilations)


@receptive_field.mistake("This is k times the sum of the dilations. It should be 1, for the present, plus k - 1 times that sum.")
def k_times_the_sum(kernel_size, dilations):
    return kernel_size * sum(dilations)


@receptive_field.mistake("The present position is counted in every layer. Count it once: 1 + what each layer adds.")
def fields_added(kernel_size, dilations):
    return sum(1 + (kernel_size - 1) * dilation for dilation in dilations)


@receptive_field.mistake("The count starts from k instead of 1, so one layer is counted twice.")
def starts_from_k(kernel_size, dilations):
    return kernel_size + (kernel_size - 1) * sum(dilations)


@receptive_field.mistake("Only the last layer is counted. Every layer adds its (k - 1) * dilation.")
def only_the_last_layer(kernel_size, dilations):
    return 1 + (kernel_size - 1) * dilations[-1]


@receptive_field.mistake("Both sides are counted. A causal convolution sees only the past.")
def both_sides(kernel_size, dilations):
    return 1 + 2 * (kernel_size - 1) * sum(dilations)


@receptive_field.mistake("The dilations are multiplied. Each layer adds its own (k - 1) * dilation positions, so sum them.")
def dilations_multiplied(kernel_size, dilations):
    return 1 + (kernel_size - 1) * math.prod(dilations)


@receptive_field.mistake("The layers are multiplied, each as k * dilation. Each layer ADDS (k - 1) * dilation positions to the 1 of the present.")
def layers_multiplied(kernel_size, dilations):
    return math.prod(kernel_size * dilation for dilation in dilations)


@receptive_field.mistake("kernel_size is not used: 3 is fixed in its place.")
def kernel_size_taken_as_3(kernel_size, dilations):
    return 1 + 2 * sum(dilations)


@receptive_field.mistake("kernel_size is not used: 1 + the sum of the dilations holds only for a kernel of size 2. Each layer adds (k - 1) * dilation positions.")
def kernel_size_taken_as_2(kernel_size, dilations):
    return 1 + sum(dilations)


# ---------------------------------------------------------------- gated_linear_unit

def _gate_inputs(generator):
    def draw(*shape, dtype=torch.float32):
        return {"X": normal(generator, *shape, scale=1.5, dtype=dtype)}
    def even(count):
        return [2 * half for half in different(generator, count, 1, 5)]
    equal = 2 * whole(generator, 1, 4)
    return [draw(*even(3)), draw(*even(2), dtype=torch.float64), draw(equal, equal), draw(*even(1)),
            draw(*even(4)), draw(1, *even(2))]


gated_linear_unit = Item("gated_linear_unit", 1, _gate_inputs, convolution.gated_linear_unit, ("result (..., d)",),
                         IN_GATE, free=("glu",))


def _gated(X, content=lambda a: a, gate=torch.sigmoid, mix=torch.mul, dim=-1):
    """The two halves of X, each through its function, and mixed."""
    a, b = X.chunk(2, dim=dim)
    return mix(content(a), gate(b))


@gated_linear_unit.mistake("The halves are swapped: the first is the content a, the second the gate b.")
def halves_swapped(X):
    return _gated(X, content=torch.sigmoid, gate=lambda b: b)


@gated_linear_unit.mistake("A tanh is used for the gate. A gate lies between 0 and 1, so it needs a sigmoid.")
def tanh_for_sigmoid(X):
    return _gated(X, gate=torch.tanh)


@gated_linear_unit.mistake("The content a goes through a tanh, as in an LSTM's gate. Here a stays as it is.")
def tanh_of_content(X):
    return _gated(X, content=torch.tanh)


@gated_linear_unit.mistake("Both halves go through the sigmoid. Only b does; a stays as it is.")
def gate_on_both(X):
    return _gated(X, content=torch.sigmoid)


@gated_linear_unit.mistake("All of X is gated by itself. Split the last axis into two halves first: the second one is the gate.")
def gates_itself(X):
    return X * torch.sigmoid(X)


@gated_linear_unit.mistake("a is gated by itself and b is not used. The gate is sigmoid(b).")
def second_half_unused(X):
    return _gated(X, gate=lambda b: 1.0) * torch.sigmoid(X[..., :X.size(-1) // 2])


@gated_linear_unit.mistake("The sigmoid is missing: this is a * b.")
def no_sigmoid(X):
    return _gated(X, gate=lambda b: b)


@gated_linear_unit.mistake("A ReLU is used where the sigmoid belongs.")
def relu_for_sigmoid(X):
    return _gated(X, gate=torch.relu)


@gated_linear_unit.mistake("A softmax is used where the sigmoid belongs: each value has a gate of its own.")
def softmax_for_sigmoid(X):
    return _gated(X, gate=lambda b: b.softmax(dim=-1))


@gated_linear_unit.mistake("Content and gate are added. Multiply them.")
def adds(X):
    return _gated(X, mix=torch.add)


@gated_linear_unit.mistake("The gate is inverted: 1 - sigmoid(b) closes where b is large. Use sigmoid(b).")
def gate_inverted(X):
    return _gated(X, gate=lambda b: 1 - torch.sigmoid(b))


@gated_linear_unit.mistake("Only the gate is returned. Multiply it by the content a.")
def only_the_gate(X):
    return _gated(X, content=torch.ones_like)


@gated_linear_unit.mistake("Every second value is taken. The halves are X[..., :d] and X[..., d:].")
def interleaved(X):
    return X[..., 0::2] * torch.sigmoid(X[..., 1::2])


@gated_linear_unit.mistake("The wrong axis is split: the halves lie along the LAST axis, dim=-1.")
def cuts_axis_1(X):
    return _gated(X, dim=1)


@gated_linear_unit.mistake("The batch is split. The halves lie along the last axis, dim=-1 (the default of chunk is 0).")
def cuts_the_batch(X):
    return _gated(X, dim=0)


# ---------------------------------------------------------------- path_length

def _powers(logarithm):
    """(k^L, k) for which this quotient of rounded logarithms lies a little above L."""
    return [(k ** L, k) for k in range(3, 14) for L in range(2, 7)
            if k ** L < 20_000 and math.ceil(logarithm(k ** L, k)) > L]


ROUNDED_UP = [_powers(way) for way in (math.log, lambda n, k: math.log2(n) / math.log2(k),
                                       lambda n, k: math.log10(n) / math.log10(k))]


def _path_inputs(generator):
    def some(low, high):
        return whole(generator, low, high)

    def draw():
        given = [("recurrent", some(5, 60)), ("recurrent", some(60, 200), some(4, 8)),
                 ("attention", some(5, 60)), ("attention", some(20, 90), some(4, 8)),
                 ("convolution", 2), ("convolution", 2, some(5, 8)), ("convolution", 2 * some(3, 20))]
        for k in (4, some(5, 8)):                        # n - 1 divides by k - 1, or leaves 1, or all but 1
            given += [("convolution", (k - 1) * some(3, 9) + 1 + rest, k) for rest in (0, 1, k - 2)]
        given += [("dilated", 2), ("dilated", some(10, 26)), ("dilated", 3 ** some(2, 5) + some(1, 9)),
                  ("dilated", 2 ** some(3, 7), 2), ("dilated", 2 ** some(3, 7) + 1, 2),
                  ("dilated", 2 ** some(8, 11) + 1, 2), ("dilated", some(30, 300), some(4, 10))]
        given += [("dilated", *powers[some(0, len(powers))]) for powers in ROUNDED_UP]
        return [dict(zip(("n", "layer", "kernel_size"), (n, layer, *k), strict=False)) for layer, n, *k in given]
    return telling(path_length, draw)


path_length = Item("path_length", 2, _path_inputs, convolution.path_length, ("the path length",), IN_PATH,
                   gradients=False)


def _path(n, layer, kernel_size, **other):
    """path_length with the formula of some layers exchanged: layer=lambda n, k: ..."""
    return other[layer](n, kernel_size) if layer in other else convolution.path_length(n, layer, kernel_size)


def _floor_of_log(n, k):
    return convolution.path_length(n + 1, "dilated", k) - 1    # whole numbers: the largest L with k^L <= n


@path_length.mistake("The division is rounded down. Round it up: with one layer too few the position is out of reach.")
def floor_for_ceiling(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, convolution=lambda n, k: (n - 1) // (k - 1), dilated=_floor_of_log)


@path_length.mistake("'convolution': the division is rounded down. Round it up, since a fraction of a layer takes a whole layer.")
def floor_for_convolution(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, convolution=lambda n, k: (n - 1) // (k - 1))


@path_length.mistake("'dilated': the logarithm is rounded down. Round it up: the receptive field k^layers must be at least n.")
def floor_for_dilated(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, dilated=_floor_of_log)


@path_length.mistake("'dilated': this is the natural logarithm. Its base must be the kernel size.")
def natural_logarithm(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, dilated=lambda n, k: math.ceil(math.log(n)))


@path_length.mistake("'dilated': the logarithm has base 2. Its base must be the kernel size.")
def base_two(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, dilated=lambda n, k: (n - 1).bit_length())


@path_length.mistake("'dilated': the logarithm is taken of n - 1. The receptive field k^layers must cover all n positions.")
def logarithm_of_n_minus_1(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, dilated=lambda n, k: convolution.path_length(n - 1, "dilated", k))


@path_length.mistake("'dilated': the logarithm has a rounding error before the ceiling: math.log(125, 5) is 3.0000000000000004, and ceil makes 4 of it. Count in whole numbers: multiply by k until you reach n.")
def ceiling_of_a_rounded_logarithm(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, dilated=lambda n, k: math.ceil(math.log(n, k)))


@path_length.mistake("'recurrent' and 'convolution' are one too large: from position 0 to n - 1 there are n - 1 steps, and (n - 1) / (k - 1) is rounded UP, which is not the same as // and + 1.")
def n_for_n_minus_1(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, recurrent=lambda n, k: n, convolution=lambda n, k: math.ceil(n / (k - 1)))


@path_length.mistake("'recurrent': n is used where n - 1 belongs. Between n positions there are n - 1 steps.")
def n_for_recurrent(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, recurrent=lambda n, k: n)


@path_length.mistake("'convolution': this is n / (k - 1) rounded up, or (n - 1) // (k - 1) + 1, which is one too large where the division is exact. It should be (n - 1) / (k - 1), rounded up.")
def n_for_convolution(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, convolution=lambda n, k: math.ceil(n / (k - 1)))


@path_length.mistake("'convolution': divide by k - 1, not by k, since one of the k weights meets the position itself.")
def divides_by_k(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, convolution=lambda n, k: math.ceil((n - 1) / k))


@path_length.mistake("'convolution': n / k, or (n - 1) // k + 1, is the order of growth given in the papers. The exact number is (n - 1) / (k - 1), rounded up.")
def n_over_k(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, convolution=lambda n, k: math.ceil(n / k))


@path_length.mistake("'convolution' and 'dilated' are swapped: with dilation the path grows with the logarithm.")
def convolution_and_dilated_swapped(n, layer, kernel_size=3):
    swapped = {"convolution": "dilated", "dilated": "convolution"}
    return convolution.path_length(n, swapped.get(layer, layer), kernel_size)


@path_length.mistake("kernel_size is not used. 3 is only its default.")
def kernel_size_ignored(n, layer, kernel_size=3):
    return convolution.path_length(n, layer)


@path_length.mistake("'attention': every position reaches every other one directly, so the path is 1 at any length, not n - 1.")
def attention_like_recurrent(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, attention=lambda n, k: n - 1)


@path_length.mistake("'attention': there is one layer to pass through, so the path is 1, not 0.")
def attention_zero(n, layer, kernel_size=3):
    return _path(n, layer, kernel_size, attention=lambda n, k: 0)


@path_length.mistake("kernel_size is not used: this is the result for a kernel of size 2.")
def kernel_size_taken_as_2_in_path(n, layer, kernel_size=3):
    return convolution.path_length(n, layer, 2)


@path_length.mistake("The argument layer is not used. n - 1 holds for 'recurrent' only; the other three have shorter paths.")
def layer_ignored(n, layer, kernel_size=3):
    return n - 1


@path_length.mistake("Every path is one too long. Count the steps from one position to the next: the last position is n - 1 away, not n.")
def one_too_many(n, layer, kernel_size=3):
    return convolution.path_length(n, layer, kernel_size) + 1


@path_length.mistake("n is returned for every layer. 'recurrent' takes n - 1 steps, and the other three take fewer.")
def always_n(n, layer, kernel_size=3):
    return n


# ---------------------------------------------------------------- causal_conv_step

CONVOLUTIONS = causal_conv1d.free


def _stream_inputs(generator):
    def draw(B, d_in, d_out, k, dilation, dtype=torch.float32):
        return {"x_t": normal(generator, B, d_in, dtype=dtype), "window": normal(generator, B, (k - 1) * dilation, d_in, dtype=dtype),
                "W": normal(generator, k, d_in, d_out, scale=0.5, dtype=dtype), "b": normal(generator, d_out, dtype=dtype), "dilation": dilation}

    def trial(k, dilation, B=None, dtype=torch.float32):
        first, *widths = different(generator, 3, high=7)
        return draw(B or first, *widths, k, dilation, dtype)
    equal = whole(generator, 3, 6)
    return [trial(3, whole(generator, 2, 4)), trial(3, 3, dtype=torch.float64), trial(whole(generator, 4, 6), 1),
            trial(2, whole(generator, 3, 5), B=1), draw(equal, equal, equal, 3, 2)]


causal_conv_step = Item("causal_conv_step", 3, _stream_inputs, steps.causal_conv_step,
                        ("y_t (B, d_out)", "window (of the old one's shape)"), IN_CODE, uses=("causal_conv1d",),
                        free=CONVOLUTIONS, kind="transfer")


def _streamed(x_t, window, W, b, dilation, places=None, keep=lambda inputs: inputs[:, 1:]):
    """causal_conv_step that reads other places of the inputs, or keeps others of them."""
    inputs = torch.cat([window, x_t[:, None]], dim=1)
    places = range(0, len(W) * dilation, dilation) if places is None else places
    return sum((inputs[:, place] @ W[j] for j, place in enumerate(places)), b), keep(inputs)


@causal_conv_step.mistake("The oldest input is not dropped, so the window grows at every step. Keep the last (k - 1) * dilation inputs.")
def oldest_not_dropped(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W, b, dilation, keep=lambda inputs: inputs)


@causal_conv_step.mistake("The window is returned as it was. Drop its oldest input and append x_t.")
def window_not_moved(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W, b, dilation, keep=lambda inputs: inputs[:, :-1].clone())


@causal_conv_step.mistake("x_t is put in front of the window. The oldest input stands first, so x_t belongs at the end.")
def newest_first(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W, b, dilation, keep=lambda inputs: torch.cat([inputs[:, -1:], inputs[:, :-2]], dim=1))


@causal_conv_step.mistake("The dilation is ignored: the last k inputs are read. Read every dilation-th one, back from the present.")
def reads_the_last_k(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W, b, dilation, places=range(-len(W), 0))


@causal_conv_step.mistake("The dilation is ignored: the oldest k inputs are read. Read every dilation-th one, so that the last is the present.")
def reads_the_first_k(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W, b, dilation, places=range(len(W)))


@causal_conv_step.mistake("The present x_t is left out of y_t. W[k - 1] meets the present.")
def present_not_read(x_t, window, W, b, dilation):
    return _streamed(torch.zeros_like(x_t), window, W, b, dilation)[0], _streamed(x_t, window, W, b, dilation)[1]


@causal_conv_step.mistake("The kernel is flipped. W[k - 1] meets the present, W[0] the farthest past.")
def kernel_flipped_in_the_step(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W.flip(0), b, dilation)


@causal_conv_step.mistake("The bias b is left out.")
def step_without_bias(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W, torch.zeros_like(b), dilation)


@causal_conv_step.mistake("The bias b is added once for each of the k matrices. Add it once.")
def bias_k_times(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W, len(W) * b, dilation)


@causal_conv_step.mistake("The caller's window is changed in place, but the caller may still need it, to generate another continuation. Make a new one with torch.cat.")
def window_changed_in_place(x_t, window, W, b, dilation):
    y_t, moved = _streamed(x_t, window, W, b, dilation)
    with torch.no_grad():
        window.copy_(moved)
    return y_t, window


@causal_conv_step.mistake("The two results are swapped. Return y_t first, then the window.")
def window_first(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W, b, dilation)[::-1]


@causal_conv_step.mistake("Only y_t is returned. The next step needs the new window as well: return y_t, window.")
def only_y_t(x_t, window, W, b, dilation):
    return _streamed(x_t, window, W, b, dilation)[0]


# ---------------------------------------------------------------- gated_block

def _block_inputs(generator):
    def draw(B, n, d, k, dilation, dtype=torch.float32):
        return {"X": normal(generator, B, n, d, dtype=dtype), "W": normal(generator, k, d, 2 * d, scale=0.5, dtype=dtype),
                "b": normal(generator, 2 * d, dtype=dtype), "dilation": dilation}
    B, d = different(generator, 2, high=6)
    other, width = different(generator, 2, high=6)
    equal = whole(generator, 5, 7)
    return [draw(B, whole(generator, 6, 9), d, 3, 1), draw(other, whole(generator, 7, 10), width, 3, 2),
            draw(B, 6, width, 3, 1, torch.float64), draw(1, whole(generator, 6, 9), d, whole(generator, 4, 6), 1),
            draw(equal, equal, equal, 3, 2)]


def _gated_block(X, W, b, dilation, left=None, gate=torch.sigmoid, exchanged=False, joined=lambda X, content, gate: X + content * gate):
    """gated_block with another padding, gate or sum."""
    reach = (len(W) - 1) * dilation
    left = reach if left is None else left
    padded = F.pad(X, (0, 0, left, reach - left))
    content, switch = (b + sum(padded[:, j * dilation:j * dilation + X.size(1)] @ W[j] for j in range(len(W)))).chunk(2, dim=-1)
    return joined(X, switch, gate(content)) if exchanged else joined(X, content, gate(switch))


gated_block = Item("gated_block", 2, _block_inputs, steps.gated_block, ("Y (B, n, d)",), IN_GATE,
                   uses=("causal_conv1d", "gated_linear_unit"), free=(*CONVOLUTIONS, "glu"))


def _from_the_future(answer, trial):
    X = trial["X"].clone().requires_grad_()
    with torch.enable_grad():
        gradient, = torch.autograd.grad(answer(X, trial["W"], trial["b"], 1)[:, 3].sum(), X)
    return (f"With dilation 1, output 3 depends on X[:, 4], the input after it: the gradient between them has the norm "
            f"{gradient[:, 4].norm():.2f}. In a causal block it is 0.")


@gated_block.plant("The input is padded on both sides, half of the zeros on each, as in a convolution over images. Its author compared only shapes.", _from_the_future)
def _padded_on_both_sides(X, W, b, dilation):
    return _gated_block(X, W, b, dilation, left=(len(W) - 1) * dilation // 2)


@gated_block.mistake("All of the padding is on the right, so each output sees only the present and the future. Put it on the left.")
def block_of_the_future(X, W, b, dilation):
    return _gated_block(X, W, b, dilation, left=0)


@gated_block.mistake("X is no longer added. The block is X + content * gate.")
def residual_removed(X, W, b, dilation):
    return _gated_block(X, W, b, dilation, joined=lambda X, content, gate: content * gate)


@gated_block.mistake("X is inside the gate. The gate multiplies the convolution's content only: X + content * gate.")
def residual_inside_the_gate(X, W, b, dilation):
    return _gated_block(X, W, b, dilation, joined=lambda X, content, gate: (X + content) * gate)


@gated_block.mistake("The halves are exchanged. The first half is the content, the second one goes through the sigmoid.")
def halves_exchanged(X, W, b, dilation):
    return _gated_block(X, W, b, dilation, exchanged=True)


@gated_block.mistake("The gate is a tanh. It is a sigmoid, between 0 and 1.")
def tanh_for_the_gate(X, W, b, dilation):
    return _gated_block(X, W, b, dilation, gate=torch.tanh)


@gated_block.mistake("The present is left out: there is one zero too many on the left. (k - 1) * dilation zeros let W[k - 1] meet the present.")
def present_left_out_of_the_block(X, W, b, dilation):
    shifted = F.pad(X, (0, 0, 1, 0))[:, :-1]
    return _gated_block(shifted, W, b, dilation, joined=lambda _, content, gate: X + content * gate)


@gated_block.mistake("The dilation is ignored, so the block always reads the last k words. Pass it on.")
def dilation_ignored_in_the_block(X, W, b, dilation):
    return _gated_block(X, W, b, 1)


ITEMS = [causal_conv1d, receptive_field, gated_linear_unit, path_length, causal_conv_step, gated_block]

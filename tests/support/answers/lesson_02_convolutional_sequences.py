"""Answers to exercise 02 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import math

import torch
import torch.nn.functional as F

from answers import right, wrong

# ---------------------------------------------------------------- causal_conv1d

def convolve(X, W, b, dilation=1):
    n, k = X.size(1), W.size(0)
    padded = F.pad(X, (0, 0, (k - 1) * dilation, 0))
    return sum(padded[:, j * dilation:j * dilation + n] @ W[j] for j in range(k)) + b


@right("causal_conv1d")
def word_by_word(X, W, b, dilation=1):
    k, outputs = len(W), []
    for t in range(X.shape[1]):
        y = b.expand(X.shape[0], -1)
        for j in range(k):
            s = t - (k - 1 - j) * dilation
            if s >= 0:
                y = y + X[:, s] @ W[j]
        outputs.append(y)
    return torch.stack(outputs, 1)


@right("causal_conv1d")
def by_einsum_over_windows(X, W, b, dilation=1):
    reach = (W.size(0) - 1) * dilation
    zeros = X.new_zeros(X.size(0), reach, X.size(2))
    windows = torch.cat([zeros, X], 1).unfold(1, reach + 1, 1)[..., ::dilation]      # (B, n, d_in, k)
    return torch.einsum("bnik,kio->bno", windows, W) + b


@right("causal_conv1d")
def by_one_product(X, W, b, dilation=1):
    n, k = X.size(1), W.size(0)
    padded = torch.nn.functional.pad(X, [0, 0, (k - 1) * dilation, 0, 0, 0])
    index = torch.arange(n)[:, None] + dilation * torch.arange(k)                    # (n, k)
    return torch.addmm(b, padded[:, index].flatten(2).flatten(0, 1), W.flatten(0, 1)).view(X.size(0), n, -1)


@right("causal_conv1d")
def product_first_then_shift(X, W, b, dilation=1):
    n, k = X.size(1), W.size(0)
    Y = b.repeat(X.size(0), n, 1)
    for j in range(k):
        late = (k - 1 - j) * dilation
        P = X @ W[j]
        Y = Y + torch.cat([torch.zeros_like(P[:, :min(late, n)]), P[:, :max(n - late, 0)]], dim=1)
    return Y


@right("causal_conv1d")
def by_a_matrix_of_shifts(X, W, b, dilation=1):
    k, Y = len(W), b
    for back in range(k):
        shift = torch.zeros(X.size(1), X.size(1), dtype=X.dtype)
        for t in range(back * dilation, X.size(1)):
            shift[t, t - back * dilation] = 1.0
        Y = Y + shift @ X @ W[k - 1 - back]
    return Y


wrong("causal_conv1d")(lambda X, W, b, dilation=1: 2 * convolve(X, W, b, dilation))
wrong("causal_conv1d")(lambda X, W, b, dilation=1: convolve(X, W, -b, dilation))
wrong("causal_conv1d")(lambda X, W, b, dilation=1: torch.tanh(convolve(X, W, b, dilation)))
wrong("causal_conv1d")(lambda X, W, b, dilation=1: convolve(X, W, b, 2 * dilation))
wrong("causal_conv1d")(lambda X, W, b, dilation=1: convolve(X, W[1:], b, dilation))
wrong("causal_conv1d")(lambda X, W, b, dilation=1: convolve(X, W, b, dilation).cumsum(1))
wrong("causal_conv1d")(lambda X, W, b, dilation=1: convolve(X, W, b, dilation).transpose(1, 2))
wrong("causal_conv1d")(lambda X, W, b, dilation=1: convolve(X, W, b, dilation).flip(1))
wrong("causal_conv1d")(lambda X, W, b, dilation=1: convolve(X, W.roll(1, 0), b, dilation))
wrong("causal_conv1d")(lambda X, W, b, dilation=1: convolve(X, W, b, dilation) + X.mean())
wrong("causal_conv1d")(lambda X, W, b, dilation=1: X @ W.sum(0) + b)
wrong("causal_conv1d")(lambda X, W, b, dilation=1: convolve(X[:1].expand_as(X), W, b, dilation)[:, 1:])


@wrong("causal_conv1d")
def fails_where_the_sequence_is_short(X, W, b, dilation=1):
    k = len(W)
    Y = X @ W[k - 1] + b
    for back in range(1, k):
        Y[:, back * dilation:] += X[:, :-back * dilation] @ W[k - 1 - back]
    return Y * (1.0 if (k - 1) * dilation < X.size(1) else 0.5)


@wrong("causal_conv1d")
def changes_its_input(X, W, b, dilation=1):
    Y = convolve(X, W, b, dilation)
    X[:, 0] = 0.0
    return Y


# ---------------------------------------------------------------- receptive_field

@right("receptive_field")
def layer_by_layer(kernel_size, dilations):
    field = 1
    for dilation in dilations:
        field += (kernel_size - 1) * dilation
    return field


@right("receptive_field")
def by_walking_back(kernel_size, dilations):
    seen = {0}
    for dilation in reversed(dilations):
        seen = {t + j * dilation for t in seen for j in range(kernel_size)}
    return max(seen) + 1


@right("receptive_field")
def by_measurement(kernel_size, dilations):
    x = torch.zeros(200)
    x[100] = 1.0
    for dilation in dilations:
        x = sum(x.roll(j * dilation) for j in range(kernel_size))
    return int(x.nonzero().max() - x.nonzero().min()) + 1


right("receptive_field")(lambda k, d: sum((k - 1) * each for each in d) + 1)

wrong("receptive_field")(lambda k, d: 2 + (k - 1) * sum(d))
wrong("receptive_field")(lambda k, d: 1 + (k - 1) * max(d) + len(d))
wrong("receptive_field")(lambda k, d: 1 + (k - 1) * d[0])
wrong("receptive_field")(lambda k, d: 1 + (k + 1) * sum(d))
wrong("receptive_field")(lambda k, d: (1 + (k - 1)) * math.prod(d))
wrong("receptive_field")(lambda k, d: 1 + (k - 1) * sum(d) ** 2)
wrong("receptive_field")(lambda k, d: sum(d))
wrong("receptive_field")(lambda k, d: k + sum(d))
wrong("receptive_field")(lambda k, d: [1 + (k - 1) * sum(d)])
wrong("receptive_field")(lambda k, d: str(1 + (k - 1) * sum(d)))
wrong("receptive_field")(lambda k, d: 1 + (k - 1) * len(set(d)))


# ---------------------------------------------------------------- gated_linear_unit

@right("gated_linear_unit")
def by_slices(X):
    d = X.shape[-1] // 2
    return X[..., :d] * X[..., d:].sigmoid()


@right("gated_linear_unit")
def by_exponentials(X):
    a, b = torch.tensor_split(X, 2, dim=X.dim() - 1)
    return a / (1 + (-b).exp())


@right("gated_linear_unit")
def by_reshape(X):
    parts = X.unflatten(-1, (2, -1))
    return torch.mul(parts.select(-2, 0), torch.sigmoid(parts.select(-2, 1)))


right("gated_linear_unit")(lambda X: torch.split(X, X.size(-1) // 2, -1)[0] * (
    0.5 + 0.5 * torch.tanh(0.5 * torch.split(X, X.size(-1) // 2, -1)[1])))


def parts(X):
    return X.chunk(2, -1)


wrong("gated_linear_unit")(lambda X: parts(X)[0] * torch.sigmoid(2 * parts(X)[1]))
wrong("gated_linear_unit")(lambda X: parts(X)[0] - torch.sigmoid(parts(X)[1]))
wrong("gated_linear_unit")(lambda X: torch.sigmoid(parts(X)[0] * parts(X)[1]))
wrong("gated_linear_unit")(lambda X: parts(X)[0] * F.gelu(parts(X)[1]))
wrong("gated_linear_unit")(lambda X: parts(X)[0] * F.silu(parts(X)[1]))
wrong("gated_linear_unit")(lambda X: parts(X)[0] * F.hardsigmoid(parts(X)[1]))
wrong("gated_linear_unit")(lambda X: -parts(X)[0] * torch.sigmoid(parts(X)[1]))
wrong("gated_linear_unit")(lambda X: torch.cat([parts(X)[0] * torch.sigmoid(parts(X)[1])] * 2, -1))
wrong("gated_linear_unit")(lambda X: parts(X)[0] + parts(X)[0] * torch.sigmoid(parts(X)[1]))
wrong("gated_linear_unit")(lambda X: parts(X)[0] * torch.exp(parts(X)[1]))
wrong("gated_linear_unit")(lambda X: parts(X)[0].detach() * torch.sigmoid(parts(X)[1]))


# ---------------------------------------------------------------- path_length

@right("path_length")
def by_recursion(n, layer, kernel_size=3):
    if layer == "dilated":
        return 0 if n <= 1 else 1 + by_recursion(-(-n // kernel_size), layer, kernel_size)
    return {"recurrent": n - 1, "convolution": -(-(n - 1) // (kernel_size - 1)), "attention": 1}[layer]


@right("path_length")
def logarithm_rounded_with_care(n, layer, kernel_size=3):
    if layer == "recurrent":
        return n - 1
    if layer == "convolution":
        return math.ceil((n - 1) / (kernel_size - 1))
    return math.ceil(round(math.log(n) / math.log(kernel_size), 9)) if layer == "dilated" else 1


@right("path_length")
def by_walking(n, layer, kernel_size=3):
    position, passed = 0, 0
    while position < n - 1:
        step = {"recurrent": 1, "convolution": kernel_size - 1, "attention": n,
                "dilated": (kernel_size - 1) * kernel_size ** passed}[layer]
        position, passed = position + step, passed + 1
    return passed


def path(n, layer, k, **other):
    return other[layer](n, k) if layer in other else by_recursion(n, layer, k)


wrong("path_length")(lambda n, layer, k=3: 2 * by_recursion(n, layer, k))
wrong("path_length")(lambda n, layer, k=3: path(n, layer, k, dilated=lambda n, k: math.ceil(n / k)))
wrong("path_length")(lambda n, layer, k=3: path(n, layer, k, dilated=lambda n, k: math.ceil(math.sqrt(n))))
wrong("path_length")(lambda n, layer, k=3: path(n, layer, k, dilated=lambda n, k: round(math.log(n, k))))
wrong("path_length")(lambda n, layer, k=3: path(n, layer, k, dilated=lambda n, k: math.ceil(math.log10(n))))
wrong("path_length")(lambda n, layer, k=3: path(n, layer, k, attention=lambda n, k: n * n))
wrong("path_length")(lambda n, layer, k=3: path(n, layer, k, convolution=lambda n, k: (n - 1) / (k - 1)))
wrong("path_length")(lambda n, layer, k=3: path(n, layer, k, convolution=lambda n, k: round(n / k)))
wrong("path_length")(lambda n, layer, k=3: path(n, layer, k, recurrent=lambda n, k: n - 2))


# ---------------------------------------------------------------- causal_conv_step

def stream(x_t, window, W, b, dilation, change=lambda y_t, window: (y_t, window)):
    inputs = torch.cat((window, x_t.unsqueeze(1)), 1)
    return change(torch.einsum("bki,kio->bo", inputs[:, ::dilation], W) + b, inputs[:, 1:])


right("causal_conv_step")(stream)


@right("causal_conv_step")
def from_the_present_back(x_t, window, W, b, dilation):
    y_t = x_t @ W[-1] + b
    for back in range(1, len(W)):
        y_t = y_t + window[:, -back * dilation] @ W[-1 - back]
    return y_t, torch.cat([window, x_t[:, None]], dim=1)[:, -window.size(1):]


@right("causal_conv_step")
def in_a_new_tensor(x_t, window, W, b, dilation):
    moved = torch.roll(window, -1, dims=1)
    moved = torch.cat([moved[:, :-1], x_t[:, None]], dim=1)
    y_t = b.expand(len(x_t), -1)
    for j in range(W.size(0) - 1):
        y_t = y_t + torch.matmul(window[:, j * dilation], W[j])
    return [y_t + torch.matmul(x_t, W[-1]), moved]


wrong("causal_conv_step")(lambda *given: stream(*given, change=lambda y, window: (2 * y, window)))
wrong("causal_conv_step")(lambda *given: stream(*given, change=lambda y, window: (y.relu(), window)))
wrong("causal_conv_step")(lambda *given: stream(*given, change=lambda y, window: (y, 0 * window)))
wrong("causal_conv_step")(lambda *given: stream(*given, change=lambda y, window: (y, window.flip(1))))
wrong("causal_conv_step")(lambda *given: stream(*given, change=lambda y, window: (y, window[:, 1:])))
wrong("causal_conv_step")(lambda *given: stream(*given, change=lambda y, window: (y.sum(0), window)))
wrong("causal_conv_step")(lambda x_t, window, W, b, dilation: stream(-x_t, window, W, b, dilation))


# ---------------------------------------------------------------- gated_block

def block(X, W, b, dilation, change=lambda X, content, gate: X + content * gate.sigmoid()):
    padded = torch.cat([X.new_zeros(len(X), (len(W) - 1) * dilation, X.size(2)), X], dim=1)
    found = torch.stack([padded[:, j * dilation:][:, :X.size(1)] @ W[j] for j in range(len(W))]).sum(0) + b
    return change(X, *found.tensor_split(2, dim=-1))


right("gated_block")(block)


@right("gated_block")
def step_by_step(X, W, b, dilation):
    d, outputs = X.size(2), []
    for t in range(X.size(1)):
        found = b
        for back in range(len(W)):
            if t - back * dilation >= 0:
                found = found + X[:, t - back * dilation] @ W[-1 - back]
        outputs.append(X[:, t] + found[:, :d] * torch.sigmoid(found[:, d:]))
    return torch.stack(outputs, dim=1)


@right("gated_block")
def with_two_kernels(X, W, b, dilation):
    d, reach = X.size(-1), (W.size(0) - 1) * dilation
    padded = F.pad(X, (0, 0, reach, 0))
    content, gate = (b[part] + sum(padded[:, j * dilation:j * dilation + X.size(1)] @ W[j][:, part]
                                   for j in range(len(W))) for part in (slice(0, d), slice(d, None)))
    return content / (1 + torch.exp(-gate)) + X


for twist in (lambda X, content, gate: X - content * gate.sigmoid(),
              lambda X, content, gate: X + content, lambda X, content, gate: X + content * gate,
              lambda X, content, gate: X * content * gate.sigmoid(),
              lambda X, content, gate: X + content.tanh() * gate.sigmoid(),
              lambda X, content, gate: X + content * (1 - gate.sigmoid()),
              lambda X, content, gate: (X + content * gate.sigmoid()).relu()):
    wrong("gated_block")(lambda *given, twist=twist: block(*given, change=twist))

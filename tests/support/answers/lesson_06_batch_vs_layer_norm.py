"""Answers to exercise 06 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import torch
from torch import nn

from answers import right, wrong

# ---------------------------------------------------------------- batch_norm

def bn(x, gamma, beta, eps=1e-5):
    return gamma * (x - x.mean(0)) / (x.var(0, correction=0) + eps).sqrt() + beta


@right("batch_norm")
def column_by_column(x, gamma, beta, eps=1e-5):
    columns = []
    for j in range(x.shape[1]):
        column = x[:, j]
        mean = sum(column) / len(column)
        var = sum((value - mean) ** 2 for value in column) / len(column)
        columns.append(gamma[j] * (column - mean) * torch.rsqrt(var + eps) + beta[j])
    return torch.stack(columns, dim=1)


@right("batch_norm")
def by_var_mean(x, gamma, beta, eps=1e-5):
    var, mean = torch.var_mean(x, dim=0, unbiased=False, keepdim=True)
    return torch.addcmul(beta, gamma.expand_as(x), (x - mean) / (var + eps) ** 0.5)


@right("batch_norm")
def by_two_moments(x, gamma, beta, eps=1e-5):
    mean = torch.einsum("nd->d", x) / x.size(0)
    scale = gamma / torch.sqrt((x - mean).pow(2).mean(axis=0) + eps)
    return x * scale + (beta - mean * scale)


@right("batch_norm")
def by_a_centring_matrix(x, gamma, beta, eps=1e-5):
    N = x.size(0)
    centred = (torch.eye(N, dtype=x.dtype) - 1 / N) @ x
    return centred / torch.sqrt((centred * centred).sum(0) / N + eps) * gamma + beta


FORMULA_WRONG = [
    lambda f, x, gamma, beta, eps=1e-5: 2 * f(x, gamma, beta, eps),
    lambda f, x, gamma, beta, eps=1e-5: f(x, gamma, -beta, eps),
    lambda f, x, gamma, beta, eps=1e-5: f(x, gamma ** 2, beta, eps),
    lambda f, x, gamma, beta, eps=1e-5: f(x, 1 + gamma, beta, eps),
    lambda f, x, gamma, beta, eps=1e-5: f(x, gamma, beta, eps ** 2),
    lambda f, x, gamma, beta, eps=1e-5: f(x, gamma, beta, 2 * eps),
    lambda f, x, gamma, beta, eps=1e-5: f(x.abs(), gamma, beta, eps),
    lambda f, x, gamma, beta, eps=1e-5: torch.tanh(f(x, gamma, beta, eps)),
    lambda f, x, gamma, beta, eps=1e-5: f(x, gamma, beta, eps) + x,
    lambda f, x, gamma, beta, eps=1e-5: f(x, gamma, beta, eps).double(),
    lambda f, x, gamma, beta, eps=1e-5: f(x, gamma, beta, eps).detach(),
    lambda f, x, gamma, beta, eps=1e-5: f(x, gamma.detach(), beta, eps),
]
for each in FORMULA_WRONG:
    wrong("batch_norm")(lambda *given, each=each: each(bn, *given))
wrong("batch_norm")(lambda x, gamma, beta, eps=1e-5: bn(x, gamma, beta, eps).T)
wrong("batch_norm")(lambda x, gamma, beta, eps=1e-5: gamma * (x - x.median(0)[0]) / (
    x.var(0, correction=0) + eps).sqrt() + beta)
wrong("batch_norm")(lambda x, gamma, beta, eps=1e-5: (x - x.amin(0)) / (x.amax(0) - x.amin(0)))


@wrong("batch_norm")
def in_place(x, gamma, beta, eps=1e-5):
    y = bn(x, gamma, beta, eps)
    x -= x.mean(0)
    return y


# ---------------------------------------------------------------- layer_norm

def ln(x, gamma, beta, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    return gamma * (x - mean) / (x.var(-1, correction=0, keepdim=True) + eps).sqrt() + beta


@right("layer_norm")
def row_by_row(x, gamma, beta, eps=1e-5):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        centred = row - row.sum() / len(row)
        rows.append(gamma * centred * ((centred @ centred) / len(row) + eps) ** -0.5 + beta)
    return torch.stack(rows).reshape(x.shape)


@right("layer_norm")
def transposed_batch_norm(x, gamma, beta, eps=1e-5):
    columns = x.flatten(0, -2).T                                       # (d, N)
    normal = (columns - columns.mean(0)) / torch.sqrt(columns.var(0, unbiased=False) + eps)
    return (normal.T * gamma + beta).view(x.shape)


@right("layer_norm")
def by_var_mean_last(x, gamma, beta, eps=1e-5):
    var, mean = torch.var_mean(x, -1, correction=0)
    return (x - mean[..., None]) * torch.rsqrt(var + eps)[..., None] * gamma + beta


@right("layer_norm")
def by_mean_of_squares(x, gamma, beta, eps=1e-5):
    centred = x - torch.mean(x, dim=x.dim() - 1).unsqueeze(-1)
    return centred.div((centred.square().mean(-1, True) + eps).sqrt()).mul(gamma).add(beta)


for each in FORMULA_WRONG:
    wrong("layer_norm")(lambda *given, each=each: each(ln, *given))
wrong("layer_norm")(lambda x, gamma, beta, eps=1e-5: ln(x, gamma, beta, eps).transpose(-1, -2))
wrong("layer_norm")(lambda x, gamma, beta, eps=1e-5: torch.softmax(x, -1) * gamma + beta)
wrong("layer_norm")(lambda x, gamma, beta, eps=1e-5: gamma * x / x.norm(dim=-1, keepdim=True) + beta)
wrong("layer_norm")(lambda x, gamma, beta, eps=1e-5: ln(x, gamma, beta, eps)[0])


# ---------------------------------------------------------------- BatchNorm

class Right(nn.Module):
    """Plain and right; the wrong ones below change one line each."""

    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
        self.register_buffer("running_mean", torch.zeros(d))
        self.register_buffer("running_var", torch.ones(d))
        self.momentum = momentum
        self.eps = eps

    def update(self, x):
        with torch.no_grad():
            m = self.momentum
            self.running_mean = (1 - m) * self.running_mean + m * x.mean(0)
            self.running_var = (1 - m) * self.running_var + m * x.var(0)

    def normalise(self, x, mean, var):
        return self.gamma * (x - mean) / torch.sqrt(var + self.eps) + self.beta

    def forward(self, x):
        if not self.training:
            return self.normalise(x, self.running_mean, self.running_var)
        self.update(x)
        return self.normalise(x, x.mean(0), x.var(0, correction=0))


right("BatchNorm")(Right)


@right("BatchNorm")
class InPlace(Right):
    def update(self, x):
        x = x.detach()
        self.running_mean.mul_(1 - self.momentum).add_(self.momentum * x.mean(dim=0))
        self.running_var.mul_(1 - self.momentum).add_(self.momentum * x.var(dim=0, unbiased=True))


@right("BatchNorm")
class ByData(Right):
    def update(self, x):
        N = len(x)
        var = ((x - x.mean(0)) ** 2).sum(0) / (N - 1)
        mean = x.mean(0).data
        self.running_mean.data = self.running_mean.data + self.momentum * (mean - self.running_mean.data)
        self.running_var.data += self.momentum * (var.data - self.running_var.data)


@right("BatchNorm")
class LikeTorch(Right):
    """With torch's third buffer, and the update after the output."""

    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        self.register_buffer("num_batches_tracked", torch.tensor(0))

    def forward(self, x):
        mean, var = self.running_mean, self.running_var
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            with torch.no_grad():
                N = x.size(0)
                self.running_mean.copy_((1 - self.momentum) * self.running_mean + self.momentum * mean)
                unbiased = var * N / (N - 1)
                self.running_var.copy_((1 - self.momentum) * self.running_var + self.momentum * unbiased)
                self.num_batches_tracked += 1
        return (x - mean) * (var + self.eps).rsqrt() * self.gamma + self.beta


@wrong("BatchNorm")
class TwiceTheOutput(Right):
    def forward(self, x):
        return 2 * super().forward(x)


@wrong("BatchNorm")
class OtherNames(Right):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        self.weight = nn.Parameter(torch.ones(d))
        del self.gamma

    gamma = property(lambda self: self.weight)


@wrong("BatchNorm")
class NoModule:
    def __init__(self, d, momentum=0.1, eps=1e-5):
        self.gamma = torch.ones(d)

    def __call__(self, x):
        return x


@wrong("BatchNorm")
class NoForward(nn.Module):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
        self.register_buffer("running_mean", torch.zeros(d))
        self.register_buffer("running_var", torch.ones(d))


@wrong("BatchNorm")
class NoSuper(nn.Module):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        self.gamma = nn.Parameter(torch.ones(d))


@wrong("BatchNorm")
class ColumnsOfOne(Right):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        self.gamma = nn.Parameter(torch.ones(1, d))


@wrong("BatchNorm")
class MeanDetached(Right):
    def forward(self, x):
        if not self.training:
            return super().forward(x)
        self.update(x)
        return self.normalise(x, x.mean(0).detach(), x.var(0, correction=0).detach())


@wrong("BatchNorm")
class MomentumSquared(Right):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum ** 2, eps)


@wrong("BatchNorm")
class MeanOfAllBatches(Right):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        self.seen = 0

    def update(self, x):
        self.seen, self.momentum = self.seen + 1, 1 / (self.seen + 1)
        super().update(x)


@wrong("BatchNorm")
class OnlyTheMeanRemembered(Right):
    def update(self, x):
        with torch.no_grad():
            self.running_mean.lerp_(x.mean(0), self.momentum)


@wrong("BatchNorm")
class BetaStartsAtOne(Right):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        nn.init.ones_(self.beta)


@wrong("BatchNorm")
class ChangesItsInput(Right):
    def forward(self, x):
        y = super().forward(x)
        with torch.no_grad():
            x += 1
        return y


# ---------------------------------------------------------------- layer_norm_rnn_step

def step(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return torch.tanh(ln(x_t @ W_xh + h_prev @ W_hh, gamma, beta))


@right("layer_norm_rnn_step")
def one_product(x_t, h_prev, W_xh, W_hh, gamma, beta):
    total = torch.cat([x_t, h_prev], dim=1) @ torch.cat([W_xh, W_hh])
    return ln(total, gamma, beta).tanh()


@right("layer_norm_rnn_step")
def one_by_one(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return torch.stack([torch.tanh(row_by_row((x @ W_xh + h @ W_hh)[None], gamma, beta)[0])
                        for x, h in zip(x_t, h_prev, strict=True)])


@right("layer_norm_rnn_step")
def by_einsum(x_t, h_prev, W_xh, W_hh, gamma, beta):
    total = torch.einsum("bi,ij->bj", x_t, W_xh) + torch.einsum("bi,ij->bj", h_prev, W_hh)
    total = total - total.mean(1, keepdim=True)
    spread = (total.pow(2).mean(1, keepdim=True) + 1e-5).sqrt()
    return 2 * torch.sigmoid(2 * (gamma * total / spread + beta)) - 1


wrong("layer_norm_rnn_step")(lambda *given: 2 * step(*given))
wrong("layer_norm_rnn_step")(lambda *given: torch.relu(step(*given)))
wrong("layer_norm_rnn_step")(lambda *given: step(*given).detach())
wrong("layer_norm_rnn_step")(lambda *given: step(*given).T)
wrong("layer_norm_rnn_step")(lambda *given: torch.tanh(step(*given)))
wrong("layer_norm_rnn_step")(lambda x, h, W, U, g, b: step(x, h, W, -U, g, b))
wrong("layer_norm_rnn_step")(lambda x, h, W, U, g, b: step(x, h, W, U, g, -b))
wrong("layer_norm_rnn_step")(lambda x, h, W, U, g, b: step(x, h, W, U, b, g))
wrong("layer_norm_rnn_step")(lambda x, h, W, U, g, b: torch.tanh(ln(x @ W + h @ U, g, b) + x @ W))
wrong("layer_norm_rnn_step")(lambda x, h, W, U, g, b: step(x, h, W, U, g, b) + h)


# ---------------------------------------------------------------- rms_norm

def rms(x, gamma, eps=1e-6):
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() * gamma


right("rms_norm")(rms)


@right("rms_norm")
def by_the_length_of_a_row(x, gamma, eps=1e-6):
    d = x.shape[-1]
    return gamma * x / ((torch.einsum("...d,...d->...", x, x) / d + eps) ** 0.5)[..., None]


@right("rms_norm")
def rms_row_by_row(x, gamma, eps=1e-6):
    rows = [gamma * row / torch.sqrt(sum(value ** 2 for value in row) / len(row) + eps)
            for row in x.reshape(-1, x.size(-1))]
    return torch.stack(rows).view(x.shape)


wrong("rms_norm")(lambda *given, **more: 2 * rms(*given, **more))
wrong("rms_norm")(lambda x, gamma, eps=1e-6: rms(x, gamma ** 2, eps))
wrong("rms_norm")(lambda x, gamma, eps=1e-6: rms(x, gamma, 2 * eps))
wrong("rms_norm")(lambda x, gamma, eps=1e-6: rms(x.abs(), gamma, eps))
wrong("rms_norm")(lambda x, gamma, eps=1e-6: rms(x, gamma, eps) + x)
wrong("rms_norm")(lambda x, gamma, eps=1e-6: rms(x, gamma, eps).detach())
wrong("rms_norm")(lambda x, gamma, eps=1e-6: rms(rms(x, gamma, eps), gamma, eps))
wrong("rms_norm")(lambda x, gamma, eps=1e-6: gamma * x / x.abs().amax(-1, keepdim=True))


# ---------------------------------------------------------------- masked_batch_norm

@right("masked_batch_norm")
def by_sums(X, lengths, gamma, beta, eps=1e-5):
    mask = (torch.arange(X.shape[1])[None] < lengths[:, None]).to(X.dtype).unsqueeze(-1)
    mean = (X * mask).sum(dim=(0, 1)) / mask.sum()
    var = (((X - mean) * mask) ** 2).sum(dim=(0, 1)) / mask.sum()
    return (gamma * (X - mean) / torch.sqrt(var + eps) + beta) * mask


@right("masked_batch_norm")
def token_by_token(X, lengths, gamma, beta, eps=1e-5):
    tokens = torch.cat([sentence[:length] for sentence, length in zip(X, lengths.tolist(), strict=True)])
    tokens, Y, start = bn(tokens, gamma, beta, eps), [], 0
    for length in lengths.tolist():
        rest = torch.zeros(X.size(1) - length, X.size(2), dtype=X.dtype)
        Y.append(torch.cat([tokens[start:start + length], rest]))
        start += length
    return torch.stack(Y)


@right("masked_batch_norm")
def picked_and_put_back(X, lengths, gamma, beta, eps=1e-5):
    real = torch.arange(X.size(1)).expand(X.shape[:2]) < lengths.unsqueeze(1)
    var, mean = torch.var_mean(X[real], 0, correction=0)
    Y = torch.zeros(X.shape, dtype=X.dtype)
    Y[real] = (X[real] - mean) * (var + eps) ** -0.5 * gamma + beta
    return Y


for each in FORMULA_WRONG:
    wrong("masked_batch_norm")(lambda X, lengths, gamma, beta, eps=1e-5, each=each: each(
        lambda x, *rest: by_sums(x, lengths, *rest), X, gamma, beta, eps))
wrong("masked_batch_norm")(lambda X, lengths, *rest: by_sums(X, lengths.clamp(min=2) - 1, *rest))
wrong("masked_batch_norm")(lambda X, lengths, *rest: by_sums(X, lengths, *rest)[:, :int(lengths.max()) - 1])


# ---------------------------------------------------------------- RunningNorm

right("RunningNorm")(Right)
right("RunningNorm")(InPlace)
right("RunningNorm")(LikeTorch)


class Shared(Right):
    """Mean and variance chosen by the mode; the wrong ones below change one line each."""

    def statistics(self, x):
        if self.training:
            self.update(x)
            return x.mean(dim=0), x.var(dim=0, unbiased=False)
        return self.running_mean, self.running_var

    def forward(self, x):
        return self.normalise(x, *self.statistics(x))


right("RunningNorm")(Shared)


@wrong("RunningNorm")
class SmallerMomentumInEval(Shared):
    def statistics(self, x):
        found = super().statistics(x)
        if not self.training:
            self.momentum /= 2
            self.update(x)
            self.momentum *= 2
        return found


@wrong("RunningNorm")
class MeanAlone(Shared):
    def update(self, x):
        with torch.no_grad():
            self.running_mean.lerp_(x.mean(0), self.momentum)


@wrong("RunningNorm")
class UpdatedTwice(Shared):
    def update(self, x):
        super().update(x)
        super().update(x)


@wrong("RunningNorm")
class VarianceOfEvalSquared(Shared):
    def statistics(self, x):
        mean, var = super().statistics(x)
        return mean, var if self.training else var ** 2


@wrong("RunningNorm")
class WithoutGamma(Shared):
    def normalise(self, x, mean, var):
        return (x - mean) / torch.sqrt(var + self.eps)


@wrong("RunningNorm")
class TwiceTheEps(Shared):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, 0.01 + 2 * eps)

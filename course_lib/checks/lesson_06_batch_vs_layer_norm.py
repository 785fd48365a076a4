"""Exercise 06: batch norm as a function and as a module, layer norm, and a recurrent step with it."""

import torch
from torch import nn

from ..models import norm
from .draw import decimal, different, sizes, whole
from .spec import Item, normal

IN_CODE, IN_MODES = "From formula to code", "Two modes: training and eval"
IN_LAYER, IN_TIME = "Layer norm: the other direction", "Look inside: gradients through time"
FREE = ("batch_norm", "batch_norm1d", "lazy_batch_norm1d", "native_batch_norm", "layer_norm", "native_layer_norm",
        "instance_norm", "instance_norm1d", "group_norm", "native_group_norm")


def _like(x, mean, spread, gamma, beta):
    """gamma (x - mean) / spread + beta: the mistakes below exchange one part of it each."""
    return gamma * (x - mean) / spread + beta


def _moments(x, dim, correction=0):
    return x.mean(dim, keepdim=True), x.var(dim, correction=correction, keepdim=True)


def _weights(generator, d, dtype):
    return {"gamma": 1.0 + normal(generator, d, scale=0.5, dtype=dtype), "beta": normal(generator, d, dtype=dtype)}


# ---------------------------------------------------------------- batch_norm

def _batch_norm_inputs(generator):
    def draw(N, d, dtype=torch.float32, scale=1.0, **eps):
        x = scale * (0.7 + normal(generator, N, d, dtype=dtype))
        return {"x": x, **_weights(generator, d, dtype), **eps}
    eps, others = decimal(generator, 0.15, 0.4), different(generator, 2, low=3)
    return [draw(*different(generator, 2, low=3), eps=eps), draw(*others, torch.float64, eps=eps / 2),
            draw(*[whole(generator, 3, 6)] * 2, eps=eps), draw(*different(generator, 2, low=3), scale=0.005)]


batch_norm = Item("batch_norm", 1, _batch_norm_inputs, norm.batch_norm, ("y (N, d)",), IN_CODE, free=FREE)


@batch_norm.mistake("Mean and variance are computed over the features of each row. Batch norm computes them over the rows, one pair for each column (dim=0).")
def over_features(x, gamma, beta, eps=1e-5):
    return norm.layer_norm(x, gamma, beta, eps)


@batch_norm.mistake("Mean and variance are one number each for the whole table. There is one pair for each column (dim=0).")
def over_everything(x, gamma, beta, eps=1e-5):
    return _like(x, x.mean(), torch.sqrt(x.var(correction=0) + eps), gamma, beta)


def _named_for(item, dim, each):
    """The mistakes in the formula itself, which both norms share.  each: "column" or "row"."""

    def spread(x, eps, correction=0):
        mean, var = _moments(x, dim, correction)
        return mean, torch.sqrt(var + eps)

    @item.mistake(f"The variance is divided by n - 1 (torch's default). Divide by n, the number of values in a {each}: "
                  "correction=0.")
    def unbiased_variance(x, gamma, beta, eps=1e-5):
        return _like(x, *spread(x, eps, correction=1), gamma, beta)

    @item.mistake("eps is added after the square root. It belongs inside: sqrt(var + eps).")
    def eps_outside_the_root(x, gamma, beta, eps=1e-5):
        mean, var = _moments(x, dim)
        return _like(x, mean, torch.sqrt(var) + eps, gamma, beta)

    @item.mistake("x.std() + eps differs from sqrt(var + eps) in two ways: std divides by n - 1, and eps belongs inside the root.")
    def unbiased_std_plus_eps(x, gamma, beta, eps=1e-5):
        mean, var = _moments(x, dim, correction=1)
        return _like(x, mean, torch.sqrt(var) + eps, gamma, beta)

    @item.mistake("eps is left out: where all values are equal, this divides by zero.")
    def eps_left_out(x, gamma, beta, eps=1e-5):
        return _like(x, *spread(x, 0.0), gamma, beta)

    @item.mistake("The argument eps is not used: 1e-5 is fixed in its place.")
    def eps_fixed(x, gamma, beta, eps=1e-5):
        return _like(x, *spread(x, 1e-5), gamma, beta)

    @item.mistake("The square root is missing. Divide by the standard deviation, not by the variance.")
    def divided_by_variance(x, gamma, beta, eps=1e-5):
        mean, var = _moments(x, dim)
        return _like(x, mean, var + eps, gamma, beta)

    @item.mistake("The mean is not subtracted before the division.")
    def mean_not_subtracted(x, gamma, beta, eps=1e-5):
        return _like(x, 0.0, spread(x, eps)[1], gamma, beta)

    @item.mistake("Only the mean is subtracted. The division by the standard deviation is missing.")
    def not_divided(x, gamma, beta, eps=1e-5):
        return _like(x, spread(x, eps)[0], 1.0, gamma, beta)

    @item.mistake("gamma is left out. The normalised values are multiplied by it.")
    def gamma_left_out(x, gamma, beta, eps=1e-5):
        return _like(x, *spread(x, eps), 1.0, beta)

    @item.mistake("beta is left out. It is added at the end.")
    def beta_left_out(x, gamma, beta, eps=1e-5):
        return _like(x, *spread(x, eps), gamma, 0.0)

    @item.mistake("gamma and beta are both left out. Multiply the normalised values by gamma, then add beta.")
    def gamma_and_beta_left_out(x, gamma, beta, eps=1e-5):
        return _like(x, *spread(x, eps), 1.0, 0.0)

    @item.mistake("The mean of the squares is used as the variance. Subtract the mean before squaring: var = mean((x - mean)^2).")
    def mean_square_for_variance(x, gamma, beta, eps=1e-5):
        return _like(x, _moments(x, dim)[0], torch.sqrt(x.pow(2).mean(dim=dim, keepdim=True) + eps), gamma, beta)

    @item.mistake(f"x.std() is used for sqrt(var + eps). It divides by n - 1 instead of n, the number of values in a {each}, "
                  "and eps is missing.")
    def std_alone(x, gamma, beta, eps=1e-5):
        return _like(x, *spread(x, 0.0, correction=1), gamma, beta)

    @item.mistake("beta is added before gamma multiplies. The order is gamma * (...) + beta.")
    def beta_before_gamma(x, gamma, beta, eps=1e-5):
        return gamma * _like(x, *spread(x, eps), 1.0, beta)

    @item.mistake("gamma and beta are exchanged: gamma multiplies, beta is added.")
    def gamma_and_beta_swapped(x, gamma, beta, eps=1e-5):
        return _like(x, *spread(x, eps), beta, gamma)


_named_for(batch_norm, 0, "column")


# ---------------------------------------------------------------- BatchNorm

def _module_inputs(generator):
    def draw(d, rows, *settings, dtype=torch.float32, given=True):
        state = {**_weights(generator, d, dtype), "running_mean": normal(generator, d, dtype=dtype),
                 "running_var": 0.5 + torch.rand(d, generator=generator, dtype=dtype)}
        calls = [(mode, [0.7 + 1.3 * normal(generator, N, d, dtype=dtype)]) for mode, N in
                 zip(["train", "train", "eval", "eval"], [*rows, 1], strict=True)]
        return {"arguments": [d, *settings], "state": state if given else {}, "calls": calls, "reads": NAMES}
    def trial(*settings, **how):
        d, *rows = different(generator, 4)
        return draw(d, rows, *settings, **how)
    momentum, eps = decimal(generator, 0.2, 0.4), decimal(generator, 0.1, 0.3)
    equal = whole(generator, 3, 6)
    return [trial(momentum, eps), trial(momentum / 2, 2 * eps, dtype=torch.float64), draw(equal, [equal] * 3),
            trial(given=False)]


NAMES = ["gamma", "beta", "running_mean", "running_var"]
BatchNorm = Item("BatchNorm", 3, _module_inputs, norm.BatchNorm,
                 ("training_output_1 (N, d)", "training_output_2 (N, d)", "eval_output (N, d)",
                  "eval_output_of_one_row (1, d)", "gamma (d,)", "beta (d,)", "running_mean (d,)", "running_var (d,)",
                  "takes_gradients, a list of names"),
                 IN_MODES, uses=("batch_norm",), free=FREE, probe="build")


def _eval(layer, x, mean, var):
    return _like(x, mean, torch.sqrt(var + layer.eps), layer.gamma, layer.beta)


def _variance(x):
    """x.var(0) without torch's warning at a single row, where it is nan."""
    return (x - x.mean(0)).pow(2).sum(0) / (len(x) - 1)


@BatchNorm.mistake("In eval mode the layer still uses the batch's own mean and variance. Use the running ones there, so that a row's result does not depend on the other rows.")
class batch_statistics_in_eval(norm.BatchNorm):
    def forward(self, x):
        if self.training:
            self._remember(x.detach())
        return norm.batch_norm(x, self.gamma, self.beta, self.eps)


@BatchNorm.mistake("In training mode the layer normalises by the running mean and variance. Use the batch's own there.")
class running_statistics_in_training(norm.BatchNorm):
    def forward(self, x):
        if self.training:
            self._remember(x.detach())
        return _eval(self, x, self.running_mean, self.running_var)


@BatchNorm.mistake("momentum multiplies the wrong term: running = (1 - momentum) * running + momentum * batch.")
class momentum_on_the_wrong_side(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, 1 - momentum, eps)


@BatchNorm.mistake("The argument momentum is not used: 0.1 is fixed in its place.")
class momentum_fixed(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, 0.1, eps)


@BatchNorm.mistake("The argument eps is not used: 1e-5 is fixed in its place.")
class module_eps_fixed(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum)


@BatchNorm.mistake("running_var is updated with the variance divided by N. It is used on other data later, so torch divides by N - 1 here (the output still uses N).")
class running_biased_variance(norm.BatchNorm):
    def _remember(self, x):
        self.running_mean.lerp_(x.mean(0), self.momentum)
        self.running_var.lerp_(x.var(0, correction=0), self.momentum)


@BatchNorm.mistake("The training output uses the variance divided by N - 1. That one is for running_var only; the output divides by N.")
class unbiased_output(norm.BatchNorm):
    def forward(self, x):
        if not self.training:
            return super().forward(x)
        self._remember(x.detach())
        return _eval(self, x, x.mean(0), x.var(0))


@BatchNorm.mistake("running_var is updated with the standard deviation. It holds the variance.")
class running_standard_deviation(norm.BatchNorm):
    def _remember(self, x):
        self.running_mean.lerp_(x.mean(0), self.momentum)
        self.running_var.lerp_(x.std(0), self.momentum)


@BatchNorm.mistake("The running mean and variance never change. Each training step mixes the batch's into them.")
class never_remembers(norm.BatchNorm):
    def _remember(self, x):
        pass


@BatchNorm.mistake("The running mean and variance are replaced by the last batch's. Mix in only the fraction `momentum` of it.")
class remembers_the_last_batch(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, 1.0, eps)


@BatchNorm.mistake("running = running + momentum * batch grows without bound. Scale the old value by 1 - momentum.")
class old_value_not_scaled(norm.BatchNorm):
    def _remember(self, x):
        self.running_mean += self.momentum * x.mean(0)
        self.running_var += self.momentum * x.var(0)


@BatchNorm.mistake("The running statistics also change in eval mode. Evaluation must not change the model.")
class remembers_in_eval(norm.BatchNorm):
    def forward(self, x):
        if self.training:
            return super().forward(x)
        before = self.running_mean.clone(), self.running_var.clone()
        self.running_mean.lerp_(x.detach().mean(0), self.momentum)
        self.running_var.lerp_(_variance(x.detach()), self.momentum)
        return _eval(self, x, *before)


@BatchNorm.mistake("The running statistics are updated in eval mode, before they are used. Evaluation must not change the model.")
class remembers_first_in_eval(norm.BatchNorm):
    def forward(self, x):
        if self.training:
            return super().forward(x)
        self.running_mean.lerp_(x.detach().mean(0), self.momentum)
        self.running_var.lerp_(_variance(x.detach()), self.momentum)
        return _eval(self, x, self.running_mean, self.running_var)


@BatchNorm.mistake("gamma and beta are left out in eval mode. They belong in both modes.")
class gamma_and_beta_only_in_training(norm.BatchNorm):
    def forward(self, x):
        return super().forward(x) if self.training else (x - self.running_mean) / torch.sqrt(self.running_var + self.eps)


@BatchNorm.mistake("In eval mode eps is added after the square root. It belongs inside: sqrt(running_var + eps).")
class eval_eps_outside_the_root(norm.BatchNorm):
    def forward(self, x):
        if self.training:
            return super().forward(x)
        return _like(x, self.running_mean, self.running_var.sqrt() + self.eps, self.gamma, self.beta)


@BatchNorm.mistake("In eval mode the square root is missing. Divide by sqrt(running_var + eps).")
class eval_divided_by_variance(norm.BatchNorm):
    def forward(self, x):
        if self.training:
            return super().forward(x)
        return _like(x, self.running_mean, self.running_var + self.eps, self.gamma, self.beta)


@BatchNorm.mistake("Gradients flow into running_mean and running_var. Make them buffers (register_buffer, not nn.Parameter) and update them under torch.no_grad().")
class running_stats_get_gradients(norm.BatchNorm):
    def forward(self, x):
        if not self.training:
            return super().forward(x)
        self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * x.mean(0)
        self.running_var = (1 - self.momentum) * self.running_var + self.momentum * x.var(0)
        return norm.batch_norm(x, self.gamma, self.beta, self.eps)


@BatchNorm.mistake("running_mean and running_var are nn.Parameter, to which no computed tensor can be assigned. They are not trained: make "
                   "them buffers, self.register_buffer('running_mean', torch.zeros(d)).")
class running_stats_are_parameters(running_stats_get_gradients):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        mean, var = self.running_mean, self.running_var
        del self.running_mean, self.running_var
        self.running_mean, self.running_var = nn.Parameter(mean), nn.Parameter(var)


@BatchNorm.mistake("running_mean and running_var are not in state_dict(), so they are not saved with the model. Create them with self.register_buffer('running_mean', torch.zeros(d)), and running_var likewise.")
class no_buffers(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        mean, var = self.running_mean, self.running_var
        del self.running_mean, self.running_var
        self.running_mean, self.running_var = mean, var


@BatchNorm.mistake("gamma and beta are not in state_dict(), so they are neither trained nor saved. Wrap them in nn.Parameter.")
class no_parameters(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        del self.gamma, self.beta
        self.gamma, self.beta = torch.ones(d), torch.zeros(d)


@BatchNorm.mistake("gamma and beta receive no gradient, so they are never trained. Make them nn.Parameter, not buffers.")
class gamma_and_beta_are_buffers(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        del self.gamma, self.beta
        self.register_buffer("gamma", torch.ones(d))
        self.register_buffer("beta", torch.zeros(d))


@BatchNorm.mistake("running_var starts at 0. It starts at 1, so that an untrained layer leaves its input as it is.")
class running_var_starts_at_zero(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        self.running_var.zero_()


@BatchNorm.mistake("gamma starts at 0, which makes every output 0 at first. It starts at 1.")
class gamma_starts_at_zero(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        nn.init.zeros_(self.gamma)


@BatchNorm.mistake("Mean and variance are computed over the features of each row. Batch norm has one pair for each column (dim=0), in training and in the running statistics.")
class module_over_features(norm.BatchNorm):
    def forward(self, x):
        if not self.training:
            return super().forward(x)
        self._remember(x.detach())
        return norm.layer_norm(x, self.gamma, self.beta, self.eps)


# ---------------------------------------------------------------- layer_norm

def _layer_norm_inputs(generator):
    def draw(*shape, dtype=torch.float32, scale=1.0, **eps):
        x = scale * (0.7 + normal(generator, *shape, dtype=dtype))
        return {"x": x, **_weights(generator, shape[-1], dtype), **eps}
    def shape(axes):
        return different(generator, axes, low=3)
    eps = decimal(generator, 0.15, 0.4)
    return [draw(*shape(3), eps=eps), draw(*shape(3), dtype=torch.float64, eps=eps / 2),
            draw(*[whole(generator, 3, 6)] * 3, eps=eps), draw(whole(generator, 3, 7), 2, eps=eps),
            draw(1, *shape(3), eps=eps / 2), draw(*shape(2), scale=0.005)]


layer_norm = Item("layer_norm", 1, _layer_norm_inputs, norm.layer_norm, ("y (..., d)",), IN_LAYER, free=FREE)


@layer_norm.mistake("Mean and variance are computed over the batch (dim=0). Layer norm computes them over the last axis, so that no row depends on another.")
def over_batch(x, gamma, beta, eps=1e-5):
    return norm.batch_norm(x, gamma, beta, eps)


@layer_norm.mistake("Mean and variance are computed over all axes but the last, as in batch norm. Layer norm computes them over the last axis alone.")
def over_batch_and_positions(x, gamma, beta, eps=1e-5):
    return norm.batch_norm(x.flatten(0, -2), gamma, beta, eps).reshape(x.shape)


@layer_norm.mistake("Mean and variance are computed over all axes but the batch, so the positions of a sentence share them. Each position has its own (dim=-1 alone).")
def over_all_but_batch(x, gamma, beta, eps=1e-5):
    mean, var = _moments(x, tuple(range(1, x.dim())))
    return _like(x, mean, torch.sqrt(var + eps), gamma, beta)


@layer_norm.mistake("Mean and variance are one number each for the whole tensor. Each position has its own (dim=-1).")
def layer_over_everything(x, gamma, beta, eps=1e-5):
    return over_everything(x, gamma, beta, eps)


@layer_norm.mistake("Mean and variance are computed over axis 1, which holds the positions if there are three axes. The features are the last axis, dim=-1.")
def over_axis_1(x, gamma, beta, eps=1e-5):
    mean, var = _moments(x, 1)
    return _like(x, mean, torch.sqrt(var + eps), gamma, beta)


@layer_norm.mistake("This divides by the root of the mean square and does not subtract the mean. That is RMSNorm, a different norm.")
def root_mean_square(x, gamma, beta, eps=1e-5):
    return _like(x, 0.0, torch.sqrt((x ** 2).mean(-1, keepdim=True) + eps), gamma, beta)


_named_for(layer_norm, -1, "row")


# ---------------------------------------------------------------- layer_norm_rnn_step

def _step_inputs(generator):
    def draw(B, d_in, d_h, dtype=torch.float32):
        return {"x_t": normal(generator, B, d_in, dtype=dtype), "h_prev": normal(generator, B, d_h, dtype=dtype),
                "W_xh": normal(generator, d_in, d_h, scale=0.6, dtype=dtype),
                "W_hh": normal(generator, d_h, d_h, scale=0.6, dtype=dtype), **_weights(generator, d_h, dtype)}
    usual, other, one, equal = sizes(generator, 3, low=3)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


layer_norm_rnn_step = Item(
    "layer_norm_rnn_step", 2, _step_inputs, norm.layer_norm_rnn_step, ("h_t (B, d_h)",), IN_TIME,
    uses=("layer_norm",), free=(*FREE, "rnn_tanh_cell"))


def _step(x_t, h_prev, W_xh, W_hh, gamma, beta, normalise=norm.layer_norm, squash=torch.tanh):
    return squash(normalise(x_t @ W_xh + h_prev @ W_hh, gamma, beta))


@layer_norm_rnn_step.mistake("The norm comes after the tanh. It comes before: tanh(LN(sum)).")
def norm_after_tanh(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return norm.layer_norm(torch.tanh(x_t @ W_xh + h_prev @ W_hh), gamma, beta)


@layer_norm_rnn_step.mistake("Each product is normalised separately. Normalise once, their sum.")
def norm_on_each_term(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return torch.tanh(norm.layer_norm(x_t @ W_xh, gamma, beta) + norm.layer_norm(h_prev @ W_hh, gamma, beta))


@layer_norm_rnn_step.mistake("Only h_prev @ W_hh is normalised. Normalise the sum, with x_t @ W_xh included.")
def norm_on_the_state_term(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return torch.tanh(x_t @ W_xh + norm.layer_norm(h_prev @ W_hh, gamma, beta))


@layer_norm_rnn_step.mistake("Only x_t @ W_xh is normalised. Normalise the sum, with h_prev @ W_hh included.")
def norm_on_the_input_term(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return torch.tanh(norm.layer_norm(x_t @ W_xh, gamma, beta) + h_prev @ W_hh)


@layer_norm_rnn_step.mistake("The norm is taken over the batch. Layer norm takes it over the d_h units of each row.")
def norm_over_batch(*inputs):
    return _step(*inputs, normalise=norm.batch_norm)


@layer_norm_rnn_step.mistake("The previous state is normalised before the product. Normalise the sum of the products.")
def norm_of_h_prev(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return torch.tanh(x_t @ W_xh + norm.layer_norm(h_prev, gamma, beta) @ W_hh)


@layer_norm_rnn_step.mistake("The tanh is missing.")
def no_tanh(*inputs):
    return _step(*inputs, squash=lambda total: total)


@layer_norm_rnn_step.mistake("A sigmoid is used where the formula has a tanh.")
def sigmoid_for_tanh(*inputs):
    return _step(*inputs, squash=torch.sigmoid)


@layer_norm_rnn_step.mistake("The norm is missing: this is the plain RNN step.")
def no_norm(*inputs):
    return _step(*inputs, normalise=lambda total, gamma, beta: total)


@layer_norm_rnn_step.mistake("W_hh is transposed. h_prev is a row on the left, so the product is h_prev @ W_hh.")
def W_hh_transposed(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return _step(x_t, h_prev, W_xh, W_hh.T, gamma, beta)


@layer_norm_rnn_step.mistake("The input x_t is ignored: the term x_t @ W_xh is missing.")
def input_ignored(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return _step(0 * x_t, h_prev, W_xh, W_hh, gamma, beta)


@layer_norm_rnn_step.mistake("The previous state is ignored: the term h_prev @ W_hh is missing.")
def state_ignored(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return _step(x_t, 0 * h_prev, W_xh, W_hh, gamma, beta)


@layer_norm_rnn_step.mistake("gamma and beta are not used. LN(...) includes gamma * ... + beta.")
def without_gamma_and_beta(*inputs):
    return _step(*inputs, normalise=lambda total, gamma, beta: norm.layer_norm(total, 1.0, 0.0))


@layer_norm_rnn_step.mistake("gamma and beta are applied after the tanh. They belong to the norm, inside the tanh.")
def gamma_and_beta_after_tanh(x_t, h_prev, W_xh, W_hh, gamma, beta):
    return gamma * torch.tanh(norm.layer_norm(x_t @ W_xh + h_prev @ W_hh, 1.0, 0.0)) + beta


ITEMS = [batch_norm, BatchNorm, layer_norm, layer_norm_rnn_step]

"""Exercise 06: batch norm as a function and as a module, layer norm, a recurrent step with it, and their kin."""

import torch
from torch import nn

from course_lib.models import norm

from ..judging.draw import decimal, different, sizes, whole
from ..judging.spec import Item, normal

IN_CODE, IN_MODES = "Batch norm", "Two modes: training and eval"
IN_LAYER, IN_TIME = "Layer norm", "Gradients through time"
FREE = ("batch_norm", "batch_norm1d", "lazy_batch_norm1d", "native_batch_norm", "layer_norm", "native_layer_norm",
        "instance_norm", "instance_norm1d", "group_norm", "native_group_norm", "rms_norm",
        "RMSNorm")


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


# ---------------------------------------------------------------- rms_norm

def _rms_inputs(generator):
    def draw(*shape, dtype=torch.float32, scale=1.0, **eps):
        x = scale * (0.7 + normal(generator, *shape, dtype=dtype))
        return {"x": x, "gamma": _weights(generator, shape[-1], dtype)["gamma"], **eps}
    def shape(axes):
        return different(generator, axes, low=3)
    eps = decimal(generator, 0.15, 0.4)
    return [draw(*shape(3), eps=eps), draw(*shape(3), dtype=torch.float64, eps=eps / 2),
            draw(*[whole(generator, 3, 6)] * 3, eps=eps), draw(1, *shape(2), eps=eps / 2), draw(*shape(2), scale=0.005)]


rms_norm = Item("rms_norm", 1, _rms_inputs, norm.rms_norm, ("y (..., d)",), IN_LAYER, free=FREE, kind="transfer")


def _mean_square(x, dim=-1):
    return x.pow(2).mean(dim, keepdim=True)


def _mistaken_rms(name, sentence, formula):
    """Name a mistake by its formula."""
    def answer(x, gamma, eps=1e-6):
        return formula(x, gamma, eps)
    answer.__name__ = name
    rms_norm.mistake(sentence)(answer)


_mistaken_rms("rms_mean_subtracted", "The mean is subtracted, which makes it layer norm without beta. RMSNorm divides x itself, by the root of its mean square.",
              lambda x, gamma, eps: norm.layer_norm(x, gamma, 0.0, eps))
_mistaken_rms("rms_mean_subtracted_in_front", "The mean is subtracted from x before the division. RMSNorm leaves the mean where it is.",
              lambda x, gamma, eps: gamma * (x - x.mean(-1, keepdim=True)) / torch.sqrt(_mean_square(x) + eps))
_mistaken_rms("rms_variance", "x is divided by its standard deviation, in which the mean is subtracted. RMSNorm uses the mean of x^2 itself.",
              lambda x, gamma, eps: gamma * x / torch.sqrt(_moments(x, -1)[1] + eps))
_mistaken_rms("rms_root_left_out", "The root is missing: x is divided by its mean square. Divide by sqrt(mean square + eps).",
              lambda x, gamma, eps: gamma * x / (_mean_square(x) + eps))
_mistaken_rms("rms_sum_for_mean", "The squares are added up, not averaged, so wide inputs come out smaller. Take their mean over the d features.",
              lambda x, gamma, eps: gamma * x / torch.sqrt(x.pow(2).sum(-1, keepdim=True) + eps))
_mistaken_rms("rms_eps_outside_the_root", "eps is added after the square root. It belongs inside: sqrt(mean square + eps).",
              lambda x, gamma, eps: gamma * x / (_mean_square(x).sqrt() + eps))
_mistaken_rms("rms_norm_of_the_row", "x.norm() is the root of the SUM of squares, and eps is added to it. Divide by sqrt(mean square + eps).",
              lambda x, gamma, eps: gamma * x / (x.norm(dim=-1, keepdim=True) + eps))
_mistaken_rms("rms_eps_left_out", "eps is left out: a row of zeros would be divided by zero.",
              lambda x, gamma, eps: gamma * x / _mean_square(x).sqrt())
_mistaken_rms("rms_eps_fixed", "The argument eps is not used: 1e-6 is fixed in its place.",
              lambda x, gamma, eps: norm.rms_norm(x, gamma))
_mistaken_rms("rms_mean_of_absolute_values", "The mean of the absolute values is used. Take the root of the mean of the squares.",
              lambda x, gamma, eps: gamma * x / (x.abs().mean(-1, keepdim=True) + eps))
_mistaken_rms("rms_gamma_left_out", "gamma is left out. The divided values are multiplied by it.",
              lambda x, gamma, eps: norm.rms_norm(x, 1.0, eps))
_mistaken_rms("rms_gamma_added", "gamma is added. The divided values are multiplied by it; RMSNorm has no shift.",
              lambda x, gamma, eps: norm.rms_norm(x, 1.0, eps) + gamma)
_mistaken_rms("rms_one_plus_gamma", "The result is multiplied by 1 + gamma, which some models do with a gamma that starts at 0. Here multiply by gamma itself.",
              lambda x, gamma, eps: norm.rms_norm(x, 1 + gamma, eps))
_mistaken_rms("rms_over_batch", "The mean square is taken over the batch (dim=0). Each position has its own, over its features (dim=-1).",
              lambda x, gamma, eps: gamma * x / torch.sqrt(_mean_square(x, 0) + eps))
_mistaken_rms("rms_over_everything", "There is one mean square for the whole tensor. Each position has its own (dim=-1).",
              lambda x, gamma, eps: gamma * x / torch.sqrt(x.pow(2).mean() + eps))


@rms_norm.mistake("When eps is not given, 1e-5 is used, as in layer_norm. The default here is 1e-6.")
def rms_default_of_layer_norm(x, gamma, eps=1e-5):
    return norm.rms_norm(x, gamma, eps)


# ---------------------------------------------------------------- masked_batch_norm

def _masked_inputs(generator):
    def draw(B, n, d, dtype=torch.float32, scale=1.0, lengths=None, **eps):
        X = scale * (0.7 + normal(generator, B, n, d, dtype=dtype))
        short = [n, *different(generator, 1, 2, n)] + [whole(generator, 1, n) for _ in range(B)]
        lengths = torch.tensor(lengths or (short[:B] if B > 1 else short[1:2]))
        padding = torch.arange(n) >= lengths[:, None]
        X[padding] = X[padding] * 1.5 + 2.0 * scale                     # what stands there is nobody's business
        return {"X": X, "lengths": lengths, **_weights(generator, d, dtype), **eps}
    def shape():
        return different(generator, 3, low=3)
    eps, equal, B = decimal(generator, 0.15, 0.4), whole(generator, 3, 6), whole(generator, 2, 5)
    n, d = different(generator, 2, low=4)
    return [draw(*shape(), eps=eps), draw(*shape(), torch.float64, eps=eps / 2), draw(*[equal] * 3, eps=eps),
            draw(1, n, d, eps=eps), draw(B, n, d, lengths=[n] * B, eps=eps), draw(*shape(), scale=0.005)]


def _real(X, lengths):
    return (torch.arange(X.size(1)) < lengths[:, None])[..., None]      # (B, n, 1)


masked_batch_norm = Item(
    "masked_batch_norm", 3, _masked_inputs, norm.masked_batch_norm, ("Y (B, n, d)",), IN_CODE, uses=("batch_norm",), free=FREE,
    kind="transfer", properties=((lambda trial, Y: not Y.masked_fill(_real(trial["X"], trial["lengths"]), 0.0).any(),
                                  "Y must be 0 at the padded positions."),))


def _by_moments(moments, zeroed=True):
    """masked_batch_norm with another mean and variance: those that moments(X, real) gives."""
    def answer(X, lengths, gamma, beta, eps=1e-5):
        real = _real(X, lengths)
        mean, var = moments(X, real.to(X.dtype))
        Y = _like(X, mean, torch.sqrt(var + eps), gamma, beta)
        return Y.masked_fill(~real, 0.0) if zeroed else Y
    return answer


def _of_the_real(X, real, dim=(0, 1), correction=0):
    """Mean and variance over the real tokens along `dim`."""
    count = real.sum(dim, keepdim=True)
    mean = (X * real).sum(dim, keepdim=True) / count.clamp(min=1)
    return mean, ((X - mean) ** 2 * real).sum(dim, keepdim=True) / (count - correction).clamp(min=1)


def _mistaken_masked(name, sentence, answer):
    answer.__name__ = name
    masked_batch_norm.mistake(sentence)(answer)


_mistaken_masked("padding_counted", "The padding is counted in the mean and variance. They are taken over the real tokens alone.",
                 _by_moments(lambda X, real: _moments(X, (0, 1))))
_mistaken_masked("padding_counted_and_kept", "The padding is treated like real tokens: it is counted in mean and variance, and not 0 in the result.",
                 _by_moments(lambda X, real: _moments(X, (0, 1)), zeroed=False))
_mistaken_masked("padding_zeroed_and_counted", "The padding is set to 0 and then counted as tokens that are 0. Divide by the number of real tokens, and leave the padding out of both sums.",
                 _by_moments(lambda X, real: _moments(X * real, (0, 1))))
_mistaken_masked("divided_by_all_places", "The sums over the real tokens are divided by B n, the number of all places. Divide by the number of real tokens, lengths.sum().",
                 _by_moments(lambda X, real: (
                     (X * real).mean((0, 1)), ((X - (X * real).mean((0, 1))) ** 2 * real).mean((0, 1)))))
_mistaken_masked("variance_with_padding", "The mean is right, but the variance counts the padding. Mask the squares (X - mean)^2 as well before you add them up.",
                 _by_moments(lambda X, real: (_of_the_real(X, real)[0], (X - _of_the_real(X, real)[0]).pow(2).mean((0, 1)))))
_mistaken_masked("variance_of_zeroed_padding", "The mean is right, but in the variance each padded place counts as a token that is 0. Mask the squares (X - mean)^2, not X, before you add them up.",
                 _by_moments(lambda X, real: (_of_the_real(X, real)[0], (X * real - _of_the_real(X, real)[0]).pow(2).sum((0, 1)) / real.sum())))
_mistaken_masked("statistics_per_position", "Each position has a mean and variance of its own, over the sentences that reach it. There is one pair for each feature, over all real tokens of all positions.",
                 _by_moments(lambda X, real: _of_the_real(X, real, (0,))))
_mistaken_masked("statistics_per_sentence", "Each sentence has a mean and variance of its own. There is one pair for each feature, over the real tokens of the whole batch.",
                 _by_moments(lambda X, real: _of_the_real(X, real, (1,))))
_mistaken_masked("statistics_per_token", "Mean and variance are computed over the features of each token, as in layer norm. There is one pair for each feature, over all real tokens.",
                 _by_moments(lambda X, real: _moments(X, -1)))
_mistaken_masked("one_mean_for_all_features", "All features share one mean and one variance. Each feature has its own.",
                 _by_moments(lambda X, real: tuple(part.mean() for part in (
                     _of_the_real(X, real)[0], (_of_the_real(X, real)[1] + (_of_the_real(X, real)[0] - _of_the_real(X, real)[0].mean()) ** 2)))))
_mistaken_masked("padding_not_zeroed", "The values at the padding are normalised like the others. They have to be 0 in the result.",
                 _by_moments(_of_the_real, zeroed=False))
_mistaken_masked("masked_unbiased_variance", "The variance is divided by the number of real tokens minus 1. Divide by the number itself: correction=0.",
                 _by_moments(lambda X, real: _of_the_real(X, real, correction=1)))


@masked_batch_norm.mistake("The padding is beta in the result: it was set to 0 before gamma and beta. Set it to 0 at the very end.")
def padding_is_beta(X, lengths, gamma, beta, eps=1e-5):
    return norm.masked_batch_norm(X, lengths, gamma, 0.0, eps) + beta


@masked_batch_norm.mistake("eps is added after the square root. It belongs inside: sqrt(var + eps).")
def masked_eps_outside(X, lengths, gamma, beta, eps=1e-5):
    mean, var = _of_the_real(X, _real(X, lengths).to(X.dtype))
    return _like(X, mean, var.sqrt() + eps, gamma, beta).masked_fill(~_real(X, lengths), 0.0)


@masked_batch_norm.mistake("The argument eps is not used: 1e-5 is fixed in its place. Hand it on.")
def masked_eps_fixed(X, lengths, gamma, beta, eps=1e-5):
    return norm.masked_batch_norm(X, lengths, gamma, beta)


# ---------------------------------------------------------------- RunningNorm

def _running_inputs(generator):
    def draw(d, rows, *settings, dtype=torch.float32):
        state = {**_weights(generator, d, dtype), "running_mean": normal(generator, d, dtype=dtype),
                 "running_var": 0.5 + torch.rand(d, generator=generator, dtype=dtype)}
        first, second, third = (0.7 + 1.3 * normal(generator, N, d, dtype=dtype) for N in rows)
        calls = [("train", [first]), ("eval", [second]), ("eval", [second.clone()]), ("train", [third])]
        return {"arguments": [d, *settings], "state": state, "calls": calls, "reads": NAMES}
    def trial(*settings, **how):
        d, *rows = different(generator, 4, low=3)
        return draw(d, rows, *settings, **how)
    momentum, eps = decimal(generator, 0.2, 0.4), decimal(generator, 0.1, 0.3)
    equal = whole(generator, 3, 6)
    return [trial(momentum, eps), trial(momentum / 2, 2 * eps, dtype=torch.float64), draw(equal, [equal] * 3), trial(momentum)]


RunningNorm = Item("RunningNorm", 2, _running_inputs, norm.BatchNorm,
                   ("training_output_1 (N, d)", "eval_output_1 (N, d)", "eval_output_2 (N, d)", "training_output_2 (N, d)",
                    "gamma (d,)", "beta (d,)", "running_mean (d,)", "running_var (d,)", "takes_gradients, a list of names"),
                   IN_MODES, free=FREE, probe="build")


def _second_call(answer, trial):
    layer = answer(*trial["arguments"]).eval()
    layer.load_state_dict(trial["state"])
    _, (x,) = trial["calls"][1]
    with torch.no_grad():
        first, second = layer(x)[0, 0].item(), layer(x)[0, 0].item()
    return (f"In eval mode the layer gives {first:.3f} for the first feature of a row. Called again at once with the same "
            f"rows, it gives {second:.3f}.")


class _Running(norm.BatchNorm):
    """RunningNorm as it is handed out, in its parts: `updates` says when, `chosen` what it normalises by."""

    def updates(self):
        return self.training

    def update(self, x):
        with torch.no_grad():
            self.running_mean.lerp_(x.mean(dim=0), self.momentum)
            self.running_var.lerp_(x.var(dim=0), self.momentum)

    def chosen(self, x):
        return (x.mean(dim=0), x.var(dim=0, correction=0)) if self.training else (self.running_mean, self.running_var)

    def forward(self, x):
        if self.updates():
            self.update(x)
        mean, var = self.chosen(x)
        return _like(x, mean, torch.sqrt(var + self.eps), self.gamma, self.beta)


@RunningNorm.plant("The running statistics are updated in eval mode, too. Its author compared it with nn.BatchNorm1d in training, then on one large evaluation batch, where it hardly shows.", _second_call)
class _updated_in_both_modes(_Running):
    def updates(self):
        return True


@RunningNorm.mistake("The running statistics never change now. They are what eval mode normalises by, so training has to update them.")
class no_update_at_all(_Running):
    def updates(self):
        return False


@RunningNorm.mistake("The running statistics change in eval mode and stay as they are in training. It is the other way round.")
class updates_in_eval_only(_Running):
    def updates(self):
        return not self.training


@RunningNorm.mistake("The running statistics are updated after the output is computed, but still in eval mode. Evaluation must not change the layer at all.")
class updates_after_the_output(_Running):
    def forward(self, x):
        before = self.running_mean.clone(), self.running_var.clone()
        self.update(x)
        mean, var = self.chosen(x) if self.training else before
        return _like(x, mean, torch.sqrt(var + self.eps), self.gamma, self.beta)


def _half_repaired(name, still):
    """Name the repair after which one of the two running statistics, `still`, is updated in both modes."""
    def update(self, x):
        if self.training or still == "running_mean":
            self.running_mean.lerp_(x.detach().mean(dim=0), self.momentum)
        if self.training or still == "running_var":
            self.running_var.lerp_(x.detach().var(dim=0), self.momentum)
    RunningNorm.mistake(f"{still} is still updated in eval mode. Evaluation must change neither of the two running statistics.")(
        type(name, (_Running,), {"updates": lambda self: True, "update": update}))


_half_repaired("only_the_mean_repaired", "running_var")
_half_repaired("only_the_variance_repaired", "running_mean")


@RunningNorm.mistake("In eval mode the layer normalises by the batch's own mean and variance. Use the running ones there: a row's result must not depend on the other rows.")
class running_ignored_in_eval(_Running):
    def chosen(self, x):
        return x.mean(dim=0), x.var(dim=0, correction=0)


@RunningNorm.mistake("In training mode the layer normalises by the running mean and variance. Use the batch's own there.")
class running_used_in_training(_Running):
    def chosen(self, x):
        return self.running_mean, self.running_var


@RunningNorm.mistake("After the first evaluation the layer never updates its running statistics again, not even in training. Ask for the mode instead of changing momentum.")
class frozen_by_the_first_evaluation(_Running):
    def updates(self):
        if not self.training:
            self.momentum = 0.0
        return True


@RunningNorm.mistake("running_var is updated with the variance divided by N. The running variance uses N - 1, as torch does; only the output divides by N.")
class running_norm_biased_variance(_Running):
    def update(self, x):
        self.running_mean.lerp_(x.detach().mean(dim=0), self.momentum)
        self.running_var.lerp_(x.detach().var(dim=0, correction=0), self.momentum)


@RunningNorm.mistake("Gradients flow into the running statistics now. Update them with detached values.")
class running_norm_gradients(_Running):
    def update(self, x):
        self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * x.mean(dim=0)
        self.running_var = (1 - self.momentum) * self.running_var + self.momentum * x.var(dim=0)


@RunningNorm.mistake("In eval mode the running statistics are reset to 0 and 1. They have to keep what training found.")
class reset_in_eval(_Running):
    def chosen(self, x):
        if not self.training:
            self.running_mean.zero_()
            self.running_var.fill_(1.0)
        return super().chosen(x)


ITEMS = [batch_norm, BatchNorm, layer_norm, layer_norm_rnn_step, rms_norm, masked_batch_norm, RunningNorm]

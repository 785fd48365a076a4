"""Exercise 01: the recurrent step, its gradient through time, gates, and clipping."""

import torch

from course_lib.models import rnn, steps
from course_lib.training import clip_gradient as right_clip

from ..judging.draw import decimal, different, sizes, whole
from ..judging.spec import Item, normal

IN_CODE, IN_GRADIENT = "From formula to code", "Look inside: the gradient through time"
IN_LSTM, IN_GRU = "From formula to code: the LSTM, gate by gate", "From formula to code: the GRU beside it"
IN_CLIPPING = "Look inside: when the gradient explodes"


# ---------------------------------------------------------------- rnn_step

def _step_inputs(generator):
    def draw(B, d_in, d_h, dtype=torch.float32):
        return {"x_t": normal(generator, B, d_in, dtype=dtype), "h_prev": normal(generator, B, d_h, dtype=dtype),
                "W_xh": normal(generator, d_in, d_h, scale=0.4, dtype=dtype),
                "W_hh": normal(generator, d_h, d_h, scale=0.4, dtype=dtype),
                "b_h": normal(generator, d_h, scale=0.4, dtype=dtype)}
    usual, other, one, equal = sizes(generator, 3)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


rnn_step = Item("rnn_step", 1, _step_inputs, rnn.rnn_step, ("h_t (B, d_h)",), IN_CODE, free=("rnn_tanh_cell",),
                properties=((lambda trial, h_t: bool((h_t.abs() <= 1).all()),
                             "h_t must lie between -1 and 1: tanh comes last."),))


@rnn_step.mistake("The tanh is missing: h_t is the bare sum, so nothing keeps it between -1 and 1.")
def no_tanh(x_t, h_prev, W_xh, W_hh, b_h):
    return x_t @ W_xh + h_prev @ W_hh + b_h


@rnn_step.mistake("The bias b_h is left out of the sum.")
def no_bias(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.tanh(x_t @ W_xh + h_prev @ W_hh)


@rnn_step.mistake("W_hh is transposed. In this course h_prev is a row on the left, so the product is h_prev @ W_hh.")
def W_hh_transposed(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.tanh(x_t @ W_xh + h_prev @ W_hh.T + b_h)


@rnn_step.mistake("The input x_t is ignored: the term x_t @ W_xh is missing.")
def input_ignored(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.tanh(h_prev @ W_hh + b_h)


@rnn_step.mistake("The previous state is ignored: the term h_prev @ W_hh is missing, so nothing is remembered.")
def state_ignored(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.tanh(x_t @ W_xh + b_h)


@rnn_step.mistake("The bias is added after the tanh. It belongs inside the tanh, next to the two products.")
def bias_after_tanh(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.tanh(x_t @ W_xh + h_prev @ W_hh) + b_h


@rnn_step.mistake("A sigmoid is used where the formula has a tanh.")
def sigmoid_for_tanh(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.sigmoid(x_t @ W_xh + h_prev @ W_hh + b_h)


@rnn_step.mistake("The tanh is applied to each term before they are added. Apply it once, to the sum.")
def tanh_of_each_term(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.tanh(x_t @ W_xh) + torch.tanh(h_prev @ W_hh) + b_h


# ---------------------------------------------------------------- rnn_forward

def _forward_inputs(generator):
    def draw(B, n, d_in, d_h, dtype=torch.float32):
        step = {"W_xh": normal(generator, d_in, d_h, scale=0.4, dtype=dtype),
                "W_hh": normal(generator, d_h, d_h, scale=0.4, dtype=dtype),
                "b_h": normal(generator, d_h, scale=0.4, dtype=dtype)}
        return {"X": normal(generator, B, n, d_in, dtype=dtype), "h_0": normal(generator, B, d_h, dtype=dtype), **step}
    usual, other, one, equal = sizes(generator, 4)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


rnn_forward = Item("rnn_forward", 2, _forward_inputs, rnn.rnn_forward, ("H (B, n, d_h)",), IN_CODE,
                   uses=("rnn_step",), free=("rnn_tanh", "rnn_tanh_cell"))


def _walk(X, h_0, weights, order=None, carry=True):
    """The states of an RNN; the mistakes below change one thing of it each."""
    h_t, states = h_0, []
    for t in order if order is not None else range(X.size(1)):
        h = rnn.rnn_step(X[:, t], h_t, *weights)
        h_t = h if carry else h_t
        states.append(h)
    return states


@rnn_forward.mistake("The state is not carried forward: every step starts again from h_0. Give each step the h_t of the step before.")
def state_not_carried(X, h_0, *weights):
    return torch.stack(_walk(X, h_0, weights, carry=False), dim=1)


@rnn_forward.mistake("Time and batch are swapped: X is (B, n, d_in), so step t reads X[:, t], not X[t].")
def time_and_batch_swapped(X, h_0, *weights):
    return torch.stack(_walk(X.transpose(0, 1), h_0, weights), dim=0)


@rnn_forward.mistake("The states are stacked along the wrong axis: H is (B, n, d_h), so time is dim=1.")
def stacked_along_batch(X, h_0, *weights):
    return torch.stack(_walk(X, h_0, weights), dim=0)


@rnn_forward.mistake("Only the last state is returned. H holds the state after every step, with shape (B, n, d_h).")
def only_the_last(X, h_0, *weights):
    return _walk(X, h_0, weights)[-1]


@rnn_forward.mistake("The sequence is read from its end: step 1 must read X[:, 0].")
def reads_backwards(X, h_0, *weights):
    return torch.stack(_walk(X, h_0, weights, order=range(X.size(1) - 1, -1, -1)), dim=1)


@rnn_forward.mistake("The states are right but in reversed order: H[:, 0] must be the state after the first step.")
def reversed_order(X, h_0, *weights):
    return torch.stack(_walk(X, h_0, weights)[::-1], dim=1)


@rnn_forward.mistake("The sequence is read from its end and the states are put back in place. That is the backward half of a bidirectional RNN; here step 1 reads X[:, 0].")
def backward_direction(X, h_0, *weights):
    return torch.stack(_walk(X, h_0, weights, order=range(X.size(1) - 1, -1, -1))[::-1], dim=1)


@rnn_forward.mistake("H contains h_0. It should begin with the state after the first step and have n entries.")
def h_0_included(X, h_0, *weights):
    return torch.stack([h_0, *_walk(X, h_0, weights)], dim=1)


@rnn_forward.mistake("H is shifted by one: it begins with h_0 and lacks the last state. H[:, t] is the state AFTER reading X[:, t].")
def one_state_late(X, h_0, *weights):
    return torch.stack([h_0, *_walk(X, h_0, weights)[:-1]], dim=1)


@rnn_forward.mistake("h_0 is ignored: the first step starts from zeros instead.")
def h_0_ignored(X, h_0, *weights):
    return torch.stack(_walk(X, torch.zeros_like(h_0), weights), dim=1)


# ---------------------------------------------------------------- gradient_norms

def _gradient_inputs(generator):
    def draw(n, d_h, dtype=torch.float32):
        return {"H": torch.tanh(normal(generator, n, d_h, dtype=dtype)),
                "W_hh": normal(generator, d_h, d_h, scale=0.7, dtype=dtype)}
    usual, other = (different(generator, 2, low=3) for _ in range(2))
    return [draw(*usual), draw(*other, torch.float64), draw(*[whole(generator, 3, 6)] * 2),
            draw(1, whole(generator, 2, 6))]


gradient_norms = Item("gradient_norms", 3, _gradient_inputs, rnn.gradient_norms, ("norms (n,)",), IN_GRADIENT,
                      gradients=False)


def _norms(H, W_hh, jacobian, norm=torch.linalg.norm, product=torch.matmul):
    """gradient_norms with its Jacobian, norm or product exchanged."""
    grad = torch.eye(H.size(1), dtype=H.dtype)
    norms = [norm(grad)]
    for t in range(len(H) - 1, 0, -1):
        grad = product(jacobian(H, W_hh, t), grad)
        norms.append(norm(grad))
    return torch.stack(norms[::-1])


def _jacobian(H, W_hh, t):
    return W_hh * (1 - H[t] ** 2)


@gradient_norms.mistake("The derivative of tanh is missing: each step multiplies by W_hh AND by 1 - h^2.")
def tanh_derivative_left_out(H, W_hh):
    return _norms(H, W_hh, lambda H, W_hh, t: W_hh)


@gradient_norms.mistake("1 - h^2 scales the rows of W_hh. It should scale the columns, since column j of W_hh produces unit j of the next state (in the column-vector convention W_hh is transposed here).")
def W_hh_not_transposed(H, W_hh):
    return _norms(H, W_hh, lambda H, W_hh, t: torch.diag(1 - H[t] ** 2) @ W_hh)


@gradient_norms.mistake("There is one step too few: dh_n/dh_n counts too, and its norm, sqrt(d_h), is the last of the n entries.")
def one_step_too_few(H, W_hh):
    return rnn.gradient_norms(H, W_hh)[:-1]


@gradient_norms.mistake("There is one step too many: between h_t and h_n lie n - t steps, so the last entry has none.")
def one_step_too_many(H, W_hh):
    grad = torch.eye(H.size(1), dtype=H.dtype)
    norms = []
    for t in range(len(H) - 1, -1, -1):
        grad = _jacobian(H, W_hh, t) @ grad
        norms.append(grad.norm())
    return torch.stack(norms[::-1])


@gradient_norms.mistake("The Jacobians are multiplied element by element (*). The chain rule needs the matrix product (@).")
def elementwise_product(H, W_hh):
    return _norms(H, W_hh, _jacobian, product=torch.mul)


@gradient_norms.mistake("1 - h^2 is computed from the state before the step. Use the state AFTER it, h_{t+1}, which is the output of that tanh.")
def derivative_one_step_early(H, W_hh):
    return _norms(H, W_hh, lambda H, W_hh, t: W_hh * (1 - H[t - 1] ** 2))


@gradient_norms.mistake("The norms are in reversed order: the first entry belongs to h_1, the last to h_n.")
def reversed_norms(H, W_hh):
    return rnn.gradient_norms(H, W_hh).flip(0)


@gradient_norms.mistake("This is the largest singular value. The Frobenius norm is the square root of the sum of all squared entries.")
def spectral_norm(H, W_hh):
    return _norms(H, W_hh, _jacobian, norm=lambda grad: torch.linalg.matrix_norm(grad, 2))


@gradient_norms.mistake("The square root is missing: these are the squares of the norms.")
def squared_norm(H, W_hh):
    return rnn.gradient_norms(H, W_hh) ** 2


@gradient_norms.mistake("Each entry is the norm of a single step's Jacobian. Multiply the Jacobians of all steps from t to n.")
def not_accumulated(H, W_hh):
    steps = [_jacobian(H, W_hh, t + 1).norm() for t in range(len(H) - 1)]
    return torch.stack([*steps, torch.eye(H.size(1), dtype=H.dtype).norm()])


@gradient_norms.mistake("1 - h is used where the derivative of tanh is 1 - h^2.")
def derivative_not_squared(H, W_hh):
    return _norms(H, W_hh, lambda H, W_hh, t: W_hh * (1 - H[t]))


# ---------------------------------------------------------------- lstm_step

def _lstm_inputs(generator):
    def draw(B, d_in, d_h, dtype=torch.float32):
        return {"x_t": normal(generator, B, d_in, dtype=dtype), "h_prev": normal(generator, B, d_h, dtype=dtype),
                "c_prev": normal(generator, B, d_h, dtype=dtype),
                "W": normal(generator, d_in, 4 * d_h, scale=0.5, dtype=dtype),
                "U": normal(generator, d_h, 4 * d_h, scale=0.5, dtype=dtype),
                "b": normal(generator, 4 * d_h, scale=0.5, dtype=dtype)}
    usual, other, one, equal = sizes(generator, 3)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


lstm_step = Item("lstm_step", 2, _lstm_inputs, rnn.lstm_step, ("h_t (B, d_h)", "c_t (B, d_h)"), IN_LSTM,
                 free=("lstm_cell", "lstm"))


def _lstm(x_t, h_prev, c_prev, W, U, b, order=(0, 1, 2, 3), candidate=torch.tanh, squash=torch.tanh):
    """lstm_step with the gates read in another order, or other functions."""
    parts = (x_t @ W + h_prev @ U + b).chunk(4, dim=-1)
    i, f, g, o = (parts[k] for k in order)
    c_t = torch.sigmoid(f) * c_prev + torch.sigmoid(i) * candidate(g)
    return torch.sigmoid(o) * squash(c_t), c_t


@lstm_step.mistake("The gates are read in the order i, f, o, g, or are exchanged in the formulas. The last axis holds i, f, g, o.")
def order_ifog(*inputs):
    return _lstm(*inputs, order=(0, 1, 3, 2))


@lstm_step.mistake("The gates are read in the order f, i, g, o, or i and f are exchanged: c_t = f * c_prev + i * g. The last axis holds i, f, g, o.")
def order_figo(*inputs):
    return _lstm(*inputs, order=(1, 0, 2, 3))


@lstm_step.mistake("The gates are read in the order f, i, o, g, or are exchanged in the formulas. The last axis holds i, f, g, o.")
def order_fiog(*inputs):
    return _lstm(*inputs, order=(1, 0, 3, 2))


@lstm_step.mistake("The gates are read in the order i, g, f, o, or are exchanged in the formulas. The last axis holds i, f, g, o.")
def order_igfo(*inputs):
    return _lstm(*inputs, order=(0, 2, 1, 3))


@lstm_step.mistake("The gates are read in the order i, o, f, g, or are exchanged in the formulas. The last axis holds i, f, g, o.")
def order_iofg(*inputs):
    return _lstm(*inputs, order=(0, 2, 3, 1))


@lstm_step.mistake("A tanh is missing in h_t: it is o * tanh(c_t), not o * c_t.")
def tanh_of_c_left_out(*inputs):
    return _lstm(*inputs, squash=lambda c_t: c_t)


@lstm_step.mistake("The candidate g goes through a sigmoid. It takes a tanh; the sigmoid is for the three gates i, f and o.")
def sigmoid_for_g(*inputs):
    return _lstm(*inputs, candidate=torch.sigmoid)


@lstm_step.mistake("The tanh of the candidate g is missing.")
def no_tanh_for_g(*inputs):
    return _lstm(*inputs, candidate=lambda g: g)


@lstm_step.mistake("The sigmoid of the gates is missing. Without it their values are not between 0 and 1.")
def gates_without_sigmoid(x_t, h_prev, c_prev, W, U, b):
    i, f, g, o = (x_t @ W + h_prev @ U + b).chunk(4, dim=-1)
    c_t = f * c_prev + i * torch.tanh(g)
    return o * torch.tanh(c_t), c_t


@lstm_step.mistake("The two results are swapped: h_t comes first, c_t second.")
def results_swapped(*inputs):
    return rnn.lstm_step(*inputs)[::-1]


@lstm_step.mistake("Only h_t is returned. The next step needs c_t as well: return h_t, c_t.")
def only_h(*inputs):
    return rnn.lstm_step(*inputs)[0]


@lstm_step.mistake("The bias b is left out.")
def lstm_no_bias(x_t, h_prev, c_prev, W, U, b):
    return rnn.lstm_step(x_t, h_prev, c_prev, W, U, torch.zeros_like(b))


@lstm_step.mistake("The forget gate is missing. In c_t = f * c_prev + i * g, f scales the old cell state before it is kept.")
def forget_gate_left_out(x_t, h_prev, c_prev, W, U, b):
    i, _, g, o = (x_t @ W + h_prev @ U + b).chunk(4, dim=-1)
    c_t = c_prev + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c_t), c_t


@lstm_step.mistake("The input gate is missing. In c_t = f * c_prev + i * g, i scales the candidate before it is added.")
def input_gate_left_out(x_t, h_prev, c_prev, W, U, b):
    _, f, g, o = (x_t @ W + h_prev @ U + b).chunk(4, dim=-1)
    c_t = torch.sigmoid(f) * c_prev + torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c_t), c_t


@lstm_step.mistake("The output gate is missing: h_t is o * tanh(c_t).")
def output_gate_left_out(x_t, h_prev, c_prev, W, U, b):
    c_t = rnn.lstm_step(x_t, h_prev, c_prev, W, U, b)[1]
    return torch.tanh(c_t), c_t


@lstm_step.mistake("The forget gate scales h_prev. It should scale the cell state: c_t = f * c_prev + i * g.")
def forgets_the_state(x_t, h_prev, c_prev, W, U, b):
    return rnn.lstm_step(x_t, h_prev, h_prev, W, U, b)


@lstm_step.mistake("The second result is the old cell state. Return the new one, c_t.")
def old_cell_returned(x_t, h_prev, c_prev, W, U, b):
    return rnn.lstm_step(x_t, h_prev, c_prev, W, U, b)[0], c_prev.clone()


@lstm_step.mistake("h_t is computed from the old cell state. Use tanh(c_t), with the new one.")
def old_cell_in_h(x_t, h_prev, c_prev, W, U, b):
    o = (x_t @ W + h_prev @ U + b).chunk(4, dim=-1)[3]
    return torch.sigmoid(o) * torch.tanh(c_prev), rnn.lstm_step(x_t, h_prev, c_prev, W, U, b)[1]


# ---------------------------------------------------------------- gru_step

def _gru_inputs(generator):
    def draw(B, d_in, d_h, dtype=torch.float32):
        return {"x_t": normal(generator, B, d_in, dtype=dtype), "h_prev": normal(generator, B, d_h, dtype=dtype),
                "W": normal(generator, d_in, 3 * d_h, scale=0.5, dtype=dtype),
                "U": normal(generator, d_h, 3 * d_h, scale=0.5, dtype=dtype),
                "b_W": normal(generator, 3 * d_h, scale=0.7, dtype=dtype),
                "b_U": normal(generator, 3 * d_h, scale=0.7, dtype=dtype)}
    usual, other, one, equal = sizes(generator, 3)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


gru_step = Item("gru_step", 2, _gru_inputs, rnn.gru_step, ("h_t (B, d_h)",), IN_GRU, free=("gru_cell", "gru"))


def _gru(x_t, h_prev, W, U, b_W, b_U, order=(0, 1, 2), squash=torch.tanh, reset=True):
    """gru_step with its parts read in another order, or another candidate."""
    x, h = (x_t @ W + b_W).chunk(3, dim=-1), (h_prev @ U + b_U).chunk(3, dim=-1)
    r, z = (torch.sigmoid(x[k] + h[k]) for k in order[:2])
    n = squash(x[order[2]] + (r if reset else 1.0) * h[order[2]])
    return (1 - z) * n + z * h_prev


@gru_step.mistake("z and 1 - z are swapped. Here z keeps the old state: h_t = (1 - z) * n + z * h_prev.")
def z_swapped(x_t, h_prev, W, U, b_W, b_U):
    (x_r, x_z, x_n), (h_r, h_z, h_n) = (x_t @ W + b_W).chunk(3, -1), (h_prev @ U + b_U).chunk(3, -1)
    r, z = torch.sigmoid(x_r + h_r), torch.sigmoid(x_z + h_z)
    return z * torch.tanh(x_n + r * h_n) + (1 - z) * h_prev


@gru_step.mistake("The reset gate is applied before the product with U (the form in the paper, with the bias outside). torch.nn.GRU and this exercise apply it afterwards: r * (h_prev @ U_n + b_U_n).")
def reset_before_product(x_t, h_prev, W, U, b_W, b_U):
    d_h = h_prev.size(-1)
    r, z = torch.sigmoid((x_t @ W + b_W + h_prev @ U + b_U)[:, :2 * d_h]).chunk(2, -1)
    n = torch.tanh((x_t @ W + b_W)[:, 2 * d_h:] + (r * h_prev) @ U[:, 2 * d_h:] + b_U[2 * d_h:])
    return (1 - z) * n + z * h_prev


@gru_step.mistake("The candidate's bias b_U is outside the reset gate. It belongs inside: r * (h_prev @ U_n + b_U_n).")
def bias_outside_reset(x_t, h_prev, W, U, b_W, b_U):
    d_h = h_prev.size(-1)
    r, z = torch.sigmoid((x_t @ W + b_W + h_prev @ U + b_U)[:, :2 * d_h]).chunk(2, -1)
    n = torch.tanh((x_t @ W + b_W)[:, 2 * d_h:] + r * (h_prev @ U[:, 2 * d_h:]) + b_U[2 * d_h:])
    return (1 - z) * n + z * h_prev


@gru_step.mistake("Both biases of the candidate are inside the reset gate. b_W belongs outside: x W_n + b_W_n + r * (...).")
def both_biases_inside_reset(x_t, h_prev, W, U, b_W, b_U):
    d_h = h_prev.size(-1)
    r, z = torch.sigmoid((x_t @ W + b_W + h_prev @ U + b_U)[:, :2 * d_h]).chunk(2, -1)
    n = torch.tanh((x_t @ W)[:, 2 * d_h:] + r * (h_prev @ U + b_U + b_W)[:, 2 * d_h:])
    return (1 - z) * n + z * h_prev


@gru_step.mistake("The parts are read in the order z, r, n, or r and z are exchanged in the formulas. The last axis holds r, z, n.")
def order_zrn(*inputs):
    return _gru(*inputs, order=(1, 0, 2))


@gru_step.mistake("The candidate n goes through a sigmoid. It takes a tanh; the sigmoid is for the two gates r and z.")
def sigmoid_for_n(*inputs):
    return _gru(*inputs, squash=torch.sigmoid)


@gru_step.mistake("The tanh of the candidate n is missing.")
def no_tanh_for_n(*inputs):
    return _gru(*inputs, squash=lambda n: n)


@gru_step.mistake("The reset gate r is not used. It scales the old state's contribution to the candidate.")
def reset_left_out(*inputs):
    return _gru(*inputs, reset=False)


@gru_step.mistake("The biases b_W and b_U are left out.")
def gru_no_bias(x_t, h_prev, W, U, b_W, b_U):
    return rnn.gru_step(x_t, h_prev, W, U, torch.zeros_like(b_W), torch.zeros_like(b_U))


@gru_step.mistake("The bias b_W is left out.")
def gru_no_b_w(x_t, h_prev, W, U, b_W, b_U):
    return rnn.gru_step(x_t, h_prev, W, U, torch.zeros_like(b_W), b_U)


@gru_step.mistake("The bias b_U is left out.")
def gru_no_b_u(x_t, h_prev, W, U, b_W, b_U):
    return rnn.gru_step(x_t, h_prev, W, U, b_W, torch.zeros_like(b_U))


@gru_step.mistake("Only the candidate is returned. Mix it with the old state: (1 - z) * n + z * h_prev.")
def only_the_candidate(x_t, h_prev, W, U, b_W, b_U):
    (x_r, _, x_n), (h_r, _, h_n) = (x_t @ W + b_W).chunk(3, -1), (h_prev @ U + b_U).chunk(3, -1)
    return torch.tanh(x_n + torch.sigmoid(x_r + h_r) * h_n)


# ---------------------------------------------------------------- clip_gradient

def _clip_inputs(generator):
    def draw(shapes, length, max_norm, dtype=torch.float32):
        grads = [normal(generator, *shape, dtype=dtype) for shape in shapes]
        norm = torch.stack([grad.norm() for grad in grads]).norm()
        return {"grads": [grad * length / norm for grad in grads], "max_norm": max_norm}

    def between(low, high):
        return decimal(generator, low, high)
    a, b, c, d = different(generator, 4, high=6)
    return [draw([(a, b), (c,)], length=between(8, 12), max_norm=between(1.1, 1.5)),
            draw([(d,), (a, a), (b,)], length=between(0.5, 0.8), max_norm=between(1.7, 2.3)),
            draw([(b, d)], length=between(2, 4), max_norm=between(0.4, 0.7), dtype=torch.float64),
            draw([(c,), (d, c)], length=between(1.15, 1.4), max_norm=between(0.7, 0.9)),
            draw([(b, c)], length=between(1.55, 1.65), max_norm=between(1.8, 2.2)),     # its square is longer
            draw([(d,), (a,)], length=between(0.85, 0.95), max_norm=between(0.4, 0.6))]


clip_gradient = Item("clip_gradient", 1, _clip_inputs, right_clip, ("grads, a list of tensors",), IN_CLIPPING,
                     free=("clip_grad_norm_",), gradients=False)


def _global_norm(grads):
    return torch.sqrt(sum(grad.pow(2).sum() for grad in grads))


@clip_gradient.mistake("Each tensor is clipped by its own norm, which changes the direction of the gradient as a whole. Take one norm over all tensors together.")
def per_tensor(grads, max_norm):
    return [grad * min(1.0, max_norm / float(grad.norm())) for grad in grads]


@clip_gradient.mistake("Single values are clipped to +-max_norm, which changes the direction of the gradient. Scale all values by one common factor.")
def clips_values(grads, max_norm):
    return [grad.clamp(-max_norm, max_norm) for grad in grads]


@clip_gradient.mistake("A gradient shorter than max_norm is scaled up. The factor is min(1, max_norm / norm).")
def scales_up(grads, max_norm):
    return [grad * max_norm / _global_norm(grads) for grad in grads]


@clip_gradient.mistake("The gradients passed in are changed in place. Return new tensors: the caller still needs the old ones.")
def changes_its_inputs(grads, max_norm):
    scale = min(1.0, max_norm / float(_global_norm(grads)))
    for grad in grads:
        grad.mul_(scale)
    return grads


@clip_gradient.mistake("The norms of the tensors are added. The global norm is the square root of the sum of all squared values.")
def sum_of_norms(grads, max_norm):
    return [grad * min(1.0, max_norm / float(sum(g.norm() for g in grads))) for grad in grads]


@clip_gradient.mistake("The square root is missing in the norm: max_norm is divided by the sum of squares.")
def root_left_out(grads, max_norm):
    return [grad * min(1.0, max_norm / float(_global_norm(grads) ** 2)) for grad in grads]


@clip_gradient.mistake("The gradients are scaled to length 1. Multiply by max_norm / norm, not by 1 / norm.")
def unit_length(grads, max_norm):
    return [grad / _global_norm(grads) if _global_norm(grads) > max_norm else grad for grad in grads]


@clip_gradient.mistake("The comparison is the wrong way round: scale the gradients when the norm is LARGER than max_norm.")
def comparison_turned(grads, max_norm):
    return [grad * max(1.0, max_norm / float(_global_norm(grads))) for grad in grads]


@clip_gradient.mistake("Nothing is clipped: the gradients are returned unchanged.")
def nothing_clipped(grads, max_norm):
    return [grad.clone() for grad in grads]


# ---------------------------------------------------------------- rnn_forward_masked

def _masked_inputs(generator):
    def draw(B, n, d_in, d_h, dtype=torch.float32):
        trial = {"X": normal(generator, B, n, d_in, dtype=dtype), "lengths": torch.randint(1, n, (B,), generator=generator),
                 "h_0": normal(generator, B, d_h, dtype=dtype), "W_xh": normal(generator, d_in, d_h, scale=0.4, dtype=dtype),
                 "W_hh": normal(generator, d_h, d_h, scale=0.4, dtype=dtype), "b_h": normal(generator, d_h, scale=0.4, dtype=dtype)}
        if B > 2:  # one sentence fills the batch; the first one does not, and is not the longest
            trial["lengths"][0], trial["lengths"][1] = n - 2, n
        return trial
    usual, other, one, equal = sizes(generator, 4, low=3)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


rnn_forward_masked = Item("rnn_forward_masked", 3, _masked_inputs, steps.rnn_forward_masked, ("H (B, n, d_h)", "h_last (B, d_h)"),
                          IN_CODE, uses=("rnn_step",), free=("rnn_tanh", "rnn_tanh_cell", "pack_padded_sequence"), kind="transfer")


def _masked_walk(X, lengths, h_0, weights, padded=lambda h, before, h_0: before, late=0, words=lambda X, real: X):
    """rnn_forward_masked with another value in the place of a state past the end."""
    h, states = h_0, []
    for t in range(X.size(1)):
        real = (t < lengths + late)[:, None]
        new = rnn.rnn_step(words(X[:, t], real), h, *weights)
        h = torch.where(real, new, padded(new, h, h_0))
        states.append(h)
    return torch.stack(states, dim=1), h


def _at_the_end(H, lengths):
    return H[torch.arange(len(H)), lengths - 1]


@rnn_forward_masked.mistake("The padding keeps updating the states, and h_last is the state after it. Past the end of its sentence a state stays as it is.")
def padding_keeps_updating(X, lengths, h_0, *weights):
    H = rnn.rnn_forward(X, h_0, *weights)
    return H, H[:, -1]


@rnn_forward_masked.mistake("h_last is right, but in H the padding keeps updating the states. Past the end of its sentence a state stays as it is.")
def padding_updates_H(X, lengths, h_0, *weights):
    H = rnn.rnn_forward(X, h_0, *weights)
    return H, _at_the_end(H, lengths)


@rnn_forward_masked.mistake("H is right, but h_last is the state after the padding. Take the state after the last real word, the last one of your masked run.")
def last_of_the_unmasked_run(X, lengths, h_0, *weights):
    return _masked_walk(X, lengths, h_0, weights)[0], rnn.rnn_forward(X, h_0, *weights)[:, -1]


@rnn_forward_masked.mistake("Past a sentence's end H holds zeros. The state should stay as it is there.")
def zeros_past_the_end(X, lengths, h_0, *weights):
    H = rnn.rnn_forward(X, h_0, *weights)
    real = torch.arange(X.size(1)) < lengths[:, None]
    return H * real[..., None], _at_the_end(H, lengths)


@rnn_forward_masked.mistake("Past a sentence's end the state becomes zero, in h_last too. It should stay as it is there.")
def state_set_to_zero(X, lengths, h_0, *weights):
    return _masked_walk(X, lengths, h_0, weights, padded=lambda new, before, h_0: torch.zeros_like(before))


@rnn_forward_masked.mistake("Past a sentence's end the state goes back to h_0. It should stay as it is there.")
def back_to_h_0(X, lengths, h_0, *weights):
    return _masked_walk(X, lengths, h_0, weights, padded=lambda new, before, h_0: h_0)


@rnn_forward_masked.mistake("The words past the end are set to zero, but the step is still taken: h W_hh + b changes the state. Keep the old state instead.")
def words_zeroed_only(X, lengths, h_0, *weights):
    return _masked_walk(X, lengths, h_0, weights, padded=lambda new, before, h_0: new, words=lambda x, real: x * real)


@rnn_forward_masked.mistake("h_last is right. In H the words past the end are set to zero, but the step is still taken: h W_hh + b changes the state. Keep the old state instead.")
def words_zeroed_in_H(X, lengths, h_0, *weights):
    H, _ = words_zeroed_only(X, lengths, h_0, *weights)
    return H, _at_the_end(H, lengths)


@rnn_forward_masked.mistake("The two states are exchanged: the old one is kept while a sentence lasts, and the new one is taken past its end. torch.where(condition, new, old) gives the new one where the condition is True.")
def new_and_old_exchanged(X, lengths, h_0, *weights):
    h, states = h_0, []
    for t in range(X.size(1)):
        h = torch.where((t < lengths)[:, None], h, rnn.rnn_step(X[:, t], h, *weights))
        states.append(h)
    return torch.stack(states, dim=1), h


@rnn_forward_masked.mistake("Each sentence gets one step too many: padding is read once. With t from 0, the real words are those with t < length.")
def padding_read_once(X, lengths, h_0, *weights):
    return _masked_walk(X, lengths, h_0, weights, late=1)


@rnn_forward_masked.mistake("Each sentence gets one step too few: its last word is not read. With t from 0, the real words are those with t < length.")
def last_word_not_read(X, lengths, h_0, *weights):
    return _masked_walk(X, lengths, h_0, weights, late=-1)


@rnn_forward_masked.mistake("The rows are left sorted by length. Bring them back into the order in which they came.")
def left_sorted(X, lengths, h_0, *weights):
    order = lengths.argsort(descending=True, stable=True)
    return tuple(part[order] for part in _masked_walk(X, lengths, h_0, weights))


@rnn_forward_masked.mistake("Every sentence is cut at the length of the first one. Each has its own: compare t with lengths, which has one entry per row.")
def length_of_the_first(X, lengths, h_0, *weights):
    return _masked_walk(X, lengths[:1].expand(len(X)), h_0, weights)


@rnn_forward_masked.mistake("Only H is returned. Return (H, h_last).")
def only_H(X, lengths, h_0, *weights):
    return _masked_walk(X, lengths, h_0, weights)[0]


# ---------------------------------------------------------------- truncated_states

def _window_inputs(generator):
    def draw(B, n, d_in, d_h, window, dtype=torch.float32):
        return {"X": normal(generator, B, n, d_in, dtype=dtype), "h_0": normal(generator, B, d_h, dtype=dtype), "window": window,
                "W_xh": normal(generator, d_in, d_h, scale=0.5, dtype=dtype), "W_hh": normal(generator, d_h, d_h, scale=0.5, dtype=dtype),
                "b_h": normal(generator, d_h, scale=0.3, dtype=dtype)}
    B, d_in, d_h = different(generator, 3)
    equal = whole(generator, 5, 8)
    return [draw(B, whole(generator, 7, 10), d_in, d_h, 3), draw(B, whole(generator, 6, 9), d_h, d_in, 2), draw(1, 8, d_in, d_h, 3, torch.float64),
            draw(d_in, whole(generator, 9, 12), B, d_h, 4), draw(equal, equal, equal, equal, whole(generator, 2, 4))]


truncated_states = Item("truncated_states", 2, _window_inputs, steps.truncated_states,
                        ("H (B, n, d_h)", "gradient_norm (n, n): from the state of a row to the word of a column"), IN_GRADIENT, uses=("rnn_step",),
                        free=("rnn_tanh", "rnn_tanh_cell"), gradients=False, probe="traced")


def _windows(X, h_0, window, W_xh, W_hh, b_h, begins=lambda t, window: t % window == 0, carried=lambda h, h_0: h.detach(), kept=lambda h: h):
    h, states = h_0, []
    for t in range(X.size(1)):
        h = carried(h, h_0) if begins(t, window) else h
        h = rnn.rnn_step(X[:, t], h, W_xh, W_hh, b_h)
        states.append(kept(h))
    return torch.stack(states, dim=1)


def _lost_within_a_window(answer, trial):
    from ..judging.probes import call_and_trace
    _, depends = call_and_trace(answer, {**trial, "window": 3})
    return (f"With a window of 3, H[:, 5] and X[:, 4] are in the same window, but the gradient between them is {depends[5, 4]:.3f}. "
            "Within a window gradients should flow.")


@truncated_states.plant("The state is detached after every step, not only where a new window begins, so nothing is learned over more than one step.", _lost_within_a_window)
def _detaches_after_every_step(*given):
    return _windows(*given, begins=lambda t, window: True)


@truncated_states.mistake("Nothing is detached, so gradients flow through the whole sequence. Detach the state where a new window begins.")
def never_detached(*given):
    return _windows(*given, begins=lambda t, window: False)


@truncated_states.mistake("The state goes back to h_0 at each new window. Its value should be carried on; only the gradient is cut.")
def window_starts_from_h_0(*given):
    return _windows(*given, carried=lambda h, h_0: h_0)


@truncated_states.mistake("The state becomes zero at each new window. Its value should be carried on; only the gradient is cut.")
def window_starts_from_zeros(*given):
    return _windows(*given, carried=lambda h, h_0: torch.zeros_like(h))


@truncated_states.mistake("The returned states are detached, so nothing can be learned from them at all. Detach only the state that enters a new window.")
def returned_states_detached(*given):
    return _windows(*given, kept=lambda h: h.detach())


@truncated_states.mistake("The windows are shifted by one step: the state is detached after the first step of each window. Detach before the steps 0, window, 2 * window ...")
def windows_shifted(*given):
    return _windows(*given, begins=lambda t, window: t % window == 1 % window)


@truncated_states.mistake("The windows are shifted by one step: the state is detached before the last step of each window. Detach before the steps 0, window, 2 * window ...")
def windows_end_early(*given):
    return _windows(*given, begins=lambda t, window: (t + 1) % window == 0)


@truncated_states.mistake("The condition is inverted: the state is detached at every step but those where a window begins. Detach where t % window is 0.")
def condition_inverted(*given):
    return _windows(*given, begins=lambda t, window: t % window != 0)


@truncated_states.mistake("The last state of each window is detached before it is put into the result, so nothing can be learned from it. Put it there first, and detach what enters the next window.")
def last_of_a_window_detached(X, h_0, window, *weights):
    H = steps.truncated_states(X, h_0, window, *weights)
    last = torch.arange(X.size(1)) % window == window - 1
    return torch.where(last[:, None], H.detach(), H)


@truncated_states.mistake("The windows are one step too long. Detach the state before the steps 0, window, 2 * window ...")
def windows_too_long(*given):
    return _windows(*given, begins=lambda t, window: t % (window + 1) == 0)


@truncated_states.mistake("Only the first window is cut off from the rest. Detach the state wherever a new window begins.")
def detached_once(*given):
    return _windows(*given, begins=lambda t, window: t == window)


ITEMS = [rnn_step, rnn_forward, gradient_norms, lstm_step, gru_step, clip_gradient, rnn_forward_masked, truncated_states]

"""Answers to exercise 01 that its checks have no name for: right ones in other styles, and wrong ones.

A right one must pass; a wrong one must fail, undiagnosed.
"""

import functools
import math

import torch
import torch.nn.functional as F
from torch import nn

from answers import right, wrong

# ---------------------------------------------------------------- rnn_step

def step(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.tanh(x_t @ W_xh + h_prev @ W_hh + b_h)


@right("rnn_step")
def by_einsum(x_t, h_prev, W_xh, W_hh, b_h):
    a = torch.einsum("bi,ij->bj", x_t, W_xh) + torch.einsum("bi,ij->bj", h_prev, W_hh)
    return (a + b_h.unsqueeze(0)).tanh()


@right("rnn_step")
def by_linear(x_t, h_prev, W_xh, W_hh, b_h):
    return F.tanh(F.linear(x_t, W_xh.T, b_h) + F.linear(h_prev, W_hh.T))


@right("rnn_step")
def by_one_product(x_t, h_prev, W_xh, W_hh, b_h):
    return torch.tanh(torch.addmm(b_h, torch.cat([x_t, h_prev], dim=1), torch.cat([W_xh, W_hh], dim=0)))


@right("rnn_step")
def by_loops(x_t, h_prev, W_xh, W_hh, b_h):
    rows = []
    for x, h in zip(x_t, h_prev, strict=True):
        row = []
        for j in range(len(b_h)):
            a = b_h[j]
            for i in range(len(x)):
                a = a + x[i] * W_xh[i, j]
            for i in range(len(h)):
                a = a + h[i] * W_hh[i, j]
            row.append(torch.tanh(a))
        rows.append(torch.stack(row))
    return torch.stack(rows)


@right("rnn_step")
def by_exponentials(x_t, h_prev, W_xh, W_hh, b_h):
    return 2 * torch.sigmoid(2 * (x_t @ W_xh + h_prev @ W_hh + b_h)) - 1


right("rnn_step")(lambda x, h, W, U, b: torch.tanh(b + torch.mm(h, U) + torch.mm(x, W)))
right("rnn_step")(functools.partial(lambda squash, x, h, W, U, b: squash(x @ W + h @ U + b), torch.tanh))

wrong("rnn_step")(lambda x, h, W, U, b: torch.tanh(x @ W - h @ U + b))
wrong("rnn_step")(lambda x, h, W, U, b: torch.tanh(2 * (x @ W + h @ U + b)))
wrong("rnn_step")(lambda x, h, W, U, b: torch.tanh(x @ W + h @ U - b))
wrong("rnn_step")(lambda x, h, W, U, b: torch.relu(x @ W + h @ U + b))
wrong("rnn_step")(lambda x, h, W, U, b: h + torch.tanh(x @ W + h @ U + b))
wrong("rnn_step")(lambda x, h, W, U, b: step(x, h, W, U, b).mean(0, keepdim=True).expand(len(x), -1))
wrong("rnn_step")(lambda x, h, W, U, b: torch.tanh(x @ W + h @ U + b.roll(1)))
wrong("rnn_step")(lambda x, h, W, U, b: torch.tanh(x @ W + torch.tanh(h) @ U + b))
wrong("rnn_step")(lambda x, h, W, U, b: torch.tanh(x @ W + h @ W + b))
wrong("rnn_step")(lambda x, h, W, U, b: step(x, h, W, U, b)[:, :-1])
wrong("rnn_step")(lambda x, h, W, U, b: F.hardtanh(x @ W + h @ U + b))


# ---------------------------------------------------------------- rnn_forward

@right("rnn_forward")
def into_a_tensor(X, h_0, *weights):
    H = X.new_empty(X.size(0), X.size(1), h_0.size(1))
    h = h_0
    for t in range(X.size(1)):
        h = step(X[:, t], h, *weights)
        H[:, t] = h
    return H


@right("rnn_forward")
def by_recursion(X, h_0, *weights):
    h = step(X[:, 0], h_0, *weights)
    rest = [by_recursion(X[:, 1:], h, *weights)] if X.size(1) > 1 else []
    return torch.cat([h.unsqueeze(1), *rest], dim=1)


@right("rnn_forward")
def input_product_first(X, h_0, W_xh, W_hh, b_h):
    states = [h_0]
    for a in (X @ W_xh + b_h).unbind(1):
        states.append(torch.tanh(a + states[-1] @ W_hh))
    return torch.stack(states[1:], 1)


@right("rnn_forward")
def one_sequence_at_a_time(X, h_0, *weights):
    rows = []
    for x, h in zip(X, h_0, strict=True):
        h, row = h[None], []
        for word in x:
            h = step(word[None], h, *weights)
            row.append(h[0])
        rows.append(torch.stack(row))
    return torch.stack(rows)


right("rnn_forward")(lambda X, h, *weights: torch.stack(
    [h := step(x, h, *weights) for x in X.transpose(0, 1)]).transpose(0, 1))


def states(X, h, *weights):
    found = []
    for t in range(X.size(1)):
        h = step(X[:, t], h, *weights)
        found.append(h)
    return found


@wrong("rnn_forward")
def no_squashing(X, h, W_xh, W_hh, b_h):
    found = []
    for t in range(X.size(1)):
        h = X[:, t] @ W_xh + h @ W_hh + b_h
        found.append(h)
    return torch.stack(found, 1)


@wrong("rnn_forward")
def every_input_twice(X, h, *weights):
    found = []
    for t in range(X.size(1)):
        h = step(X[:, t], step(X[:, t], h, *weights), *weights)
        found.append(h)
    return torch.stack(found, 1)


@wrong("rnn_forward")
def one_memory_for_all(X, h, *weights):
    h, found = h.clone(), []
    for t in range(X.size(1)):
        h.copy_(step(X[:, t], h, *weights))
        found.append(h)
    return torch.stack(found, 1)


@wrong("rnn_forward")
def last_step_left_out(X, h, *weights):
    H = torch.stack(states(X, h, *weights), 1)
    return torch.cat([H[:, :-1], torch.zeros_like(H[:, :1])], 1)


wrong("rnn_forward")(lambda X, h, *weights: torch.stack(states(X[:, 1:], h, *weights), 1))
wrong("rnn_forward")(lambda X, h, *weights: torch.stack(states(X, h, *weights), 1).cumsum(1))
wrong("rnn_forward")(lambda X, h, *weights: 2 * torch.stack(states(X, h, *weights), 1))
wrong("rnn_forward")(lambda X, h, *weights: -torch.stack(states(X, h, *weights), 1))
wrong("rnn_forward")(lambda X, h, *weights: torch.stack(states(X.roll(1, 1), h, *weights), 1))
wrong("rnn_forward")(lambda X, h, *weights: torch.stack(states(X, h.flip(0), *weights), 1)[:, :, :-1])


# ---------------------------------------------------------------- gradient_norms

@right("gradient_norms")
def products_anew(H, W_hh):
    n, norms = len(H), []
    for t in range(n):
        product = torch.eye(H.size(1), dtype=H.dtype)
        for s in range(t + 1, n):
            product = product @ (W_hh @ torch.diag(1 - H[s].square()))
        norms.append((product ** 2).sum().sqrt())
    return torch.stack(norms)


@right("gradient_norms")
def column_vectors(H, W_hh):
    grad, norms = torch.eye(W_hh.size(0), dtype=W_hh.dtype), []
    for h in reversed(H):
        norms.insert(0, torch.linalg.matrix_norm(grad))
        grad = grad @ torch.diag(1 - h * h) @ W_hh.T
    return torch.stack(norms)


@right("gradient_norms")
def by_einsum_and_loops(H, W_hh):
    jacobians = torch.einsum("ij,tj->tij", W_hh, 1 - H ** 2)
    grads = [torch.eye(H.size(1)).to(H.dtype)]
    for jacobian in jacobians[1:].flip(0):
        grads.append(torch.einsum("ij,jk->ik", jacobian, grads[-1]))
    return torch.stack([torch.sqrt(torch.einsum("ij,ij->", g, g)) for g in grads]).flip(0)


@right("gradient_norms")
def through_the_state_alone(H, W_hh):
    """By autograd: the step is undone and redone with the input that it must have had."""
    norms = []
    for t in range(len(H)):
        def rest(h, t=t):
            for s in range(t + 1, len(H)):
                h = torch.tanh((h - H[s - 1]) @ W_hh + torch.atanh(H[s]))
            return h
        norms.append(torch.autograd.functional.jacobian(rest, H[t]).norm())
    return torch.stack(norms)


def norms_of(H, W_hh, jacobian=lambda H, W, t: W * (1 - H[t] ** 2), norm=torch.linalg.norm):
    grad, norms = torch.eye(H.size(1), dtype=H.dtype), []
    for t in range(len(H) - 1, -1, -1):
        norms.insert(0, norm(grad))
        grad = jacobian(H, W_hh, t) @ grad
    return torch.stack(norms)


@wrong("gradient_norms")
def product_turned_round(H, W_hh):
    grad, norms = torch.eye(H.size(1), dtype=H.dtype), []
    for t in range(len(H) - 1, -1, -1):
        norms.insert(0, grad.norm())
        grad = grad @ (W_hh * (1 - H[t] ** 2))
    return torch.stack(norms)


wrong("gradient_norms")(lambda H, W: norms_of(H, W) / math.sqrt(len(W)))
wrong("gradient_norms")(lambda H, W: 2 * norms_of(H, W))
wrong("gradient_norms")(lambda H, W: -norms_of(H, W))
wrong("gradient_norms")(lambda H, W: norms_of(H, W).log())
wrong("gradient_norms")(lambda H, W: norms_of(H, W, norm=lambda grad: grad.abs().sum()))
wrong("gradient_norms")(lambda H, W: norms_of(H, W, norm=lambda grad: grad.abs().max()))
wrong("gradient_norms")(lambda H, W: norms_of(H, W, norm=torch.trace))
wrong("gradient_norms")(lambda H, W: norms_of(H, W, lambda H, W, t: W * (1 + H[t] ** 2)))
wrong("gradient_norms")(lambda H, W: norms_of(H, W, lambda H, W, t: W.T * (1 - H[t] ** 2)))
wrong("gradient_norms")(lambda H, W: norms_of(H, W, lambda H, W, t: W * (1 - torch.tanh(H[t]) ** 2)))
wrong("gradient_norms")(lambda H, W: norms_of(H, W).cumsum(0))


# ---------------------------------------------------------------- lstm_step

@right("lstm_step")
def by_slices(x_t, h_prev, c_prev, W, U, b):
    d = h_prev.shape[1]
    a = torch.matmul(x_t, W) + torch.matmul(h_prev, U) + b
    i, f, o = a[:, :d].sigmoid(), a[:, d:2 * d].sigmoid(), a[:, 3 * d:].sigmoid()
    c = f.mul(c_prev).add(i * a[:, 2 * d:3 * d].tanh())
    return [o * c.tanh(), c]


@right("lstm_step")
def gate_by_gate(x_t, h_prev, c_prev, W, U, b):
    weights = zip(W.chunk(4, 1), U.chunk(4, 1), b.chunk(4), strict=True)
    parts = [x_t @ w + h_prev @ u + bias for w, u, bias in weights]
    c_t = c_prev / (1 + torch.exp(-parts[1])) + parts[2].tanh() / (1 + torch.exp(-parts[0]))
    return torch.tanh(c_t) / (1 + torch.exp(-parts[3])), c_t


@right("lstm_step")
def by_reshape(x_t, h_prev, c_prev, W, U, b):
    a = (torch.cat([x_t, h_prev], 1) @ torch.cat([W, U]) + b).reshape(len(x_t), 4, -1)
    gates = torch.sigmoid(a)
    c_t = torch.addcmul(gates[:, 1] * c_prev, gates[:, 0], torch.tanh(a[:, 2]))
    return gates[:, 3] * torch.tanh(c_t), c_t


@right("lstm_step")
def one_row_at_a_time(x_t, h_prev, c_prev, W, U, b):
    rows = []
    for x, h, c in zip(x_t, h_prev, c_prev, strict=True):
        i, f, g, o = torch.split(torch.einsum("i,ij->j", x, W) + torch.einsum("i,ij->j", h, U) + b, len(h))
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        rows.append((o.sigmoid() * c.tanh(), c))
    return tuple(map(torch.stack, zip(*rows, strict=True)))


def lstm(x, h, c, W, U, b, new=None, out=None, shift=0.0):
    i, f, g, o = (x @ W + h @ U + b).chunk(4, -1)
    i, f, g, o = torch.sigmoid(i), torch.sigmoid(f + shift), torch.tanh(g), torch.sigmoid(o)
    c_t = new(i, f, g, o, c) if new else f * c + i * g
    return (out(o, c_t) if out else o * torch.tanh(c_t)), c_t


wrong("lstm_step")(lambda *given: lstm(*given, new=lambda i, f, g, o, c: f * c - i * g))
wrong("lstm_step")(lambda *given: lstm(*given, shift=1.0))
wrong("lstm_step")(lambda *given: lstm(*given, new=lambda i, f, g, o, c: f * c + (1 - f) * g))
wrong("lstm_step")(lambda *given: lstm(*given, new=lambda i, f, g, o, c: (1 - f) * c + i * g))
wrong("lstm_step")(lambda *given: lstm(*given, new=lambda i, f, g, o, c: f * (c + i * g)))
wrong("lstm_step")(lambda *given: lstm(*given, out=lambda o, c: o * torch.sigmoid(c)))
wrong("lstm_step")(lambda *given: lstm(*given, out=lambda o, c: torch.tanh(o * c)))
wrong("lstm_step")(lambda *given: lstm(*given, out=lambda o, c: o + torch.tanh(c)))
wrong("lstm_step")(lambda x, h, c, W, U, b: lstm(x, -h, c, W, U, b))
wrong("lstm_step")(lambda x, h, c, W, U, b: lstm(x, h, c, W, U, 2 * b))
wrong("lstm_step")(lambda *given: tuple(2 * part for part in lstm(*given)))


# ---------------------------------------------------------------- gru_step

@right("gru_step")
def gru_by_slices(x_t, h_prev, W, U, b_W, b_U):
    d = h_prev.shape[-1]
    gates = torch.sigmoid(x_t @ W[:, :2 * d] + h_prev @ U[:, :2 * d] + b_W[:2 * d] + b_U[:2 * d])
    r, z = gates[:, :d], gates[:, d:]
    n = (x_t @ W[:, 2 * d:] + b_W[2 * d:] + r * (h_prev @ U[:, 2 * d:] + b_U[2 * d:])).tanh()
    return torch.lerp(n, h_prev, z)


@right("gru_step")
def gru_by_einsum(x_t, h_prev, W, U, b_W, b_U):
    x = torch.einsum("bi,igd->gbd", x_t, W.unflatten(1, (3, -1))) + b_W.view(3, 1, -1)
    h = torch.einsum("bi,igd->gbd", h_prev, U.unflatten(1, (3, -1))) + b_U.view(3, 1, -1)
    r, z = torch.sigmoid(x[:2] + h[:2])
    n = torch.tanh(x[2] + r * h[2])
    return n - z * (n - h_prev)


@right("gru_step")
def gru_row_by_row(x_t, h_prev, W, U, b_W, b_U):
    d, rows = h_prev.size(1), []
    for x, h in zip(x_t, h_prev, strict=True):
        a, u = F.linear(x, W.T, b_W), F.linear(h, U.T, b_U)
        r, z = torch.sigmoid(a[:d] + u[:d]), torch.sigmoid(a[d:2 * d] + u[d:2 * d])
        rows.append((1 - z) * torch.tanh(a[2 * d:] + r * u[2 * d:]) + z * h)
    return torch.stack(rows)


def gru(x_t, h, W, U, b_W, b_U, mix=None, squash=torch.tanh, gate=torch.sigmoid):
    (x_r, x_z, x_n), (h_r, h_z, h_n) = (x_t @ W + b_W).chunk(3, -1), (h @ U + b_U).chunk(3, -1)
    r, z = gate(x_r + h_r), gate(x_z + h_z)
    n = squash(x_n + r * h_n)
    return mix(n, z, h, r) if mix else (1 - z) * n + z * h


right("gru_step")(lambda *given: gru(*given, mix=lambda n, z, h, r: torch.addcmul(n, z, h - n)))

wrong("gru_step")(lambda *given: gru(*given, mix=lambda n, z, h, r: n + z * h))
wrong("gru_step")(lambda *given: gru(*given, mix=lambda n, z, h, r: (1 - r) * n + r * h))
wrong("gru_step")(lambda *given: gru(*given, mix=lambda n, z, h, r: (1 - z) * n - z * h))
wrong("gru_step")(lambda *given: gru(*given, mix=lambda n, z, h, r: torch.tanh((1 - z) * n + z * h)))
wrong("gru_step")(lambda *given: gru(*given, mix=lambda n, z, h, r: (1 - z) * n + h))
wrong("gru_step")(lambda *given: gru(*given, mix=lambda n, z, h, r: (n + h) / 2))
wrong("gru_step")(lambda *given: gru(*given, squash=torch.relu))
wrong("gru_step")(lambda *given: gru(*given, gate=torch.tanh))
wrong("gru_step")(lambda *given: gru(*given, gate=lambda a: a))
wrong("gru_step")(lambda x, h, W, U, b_W, b_U: gru(x, h, W, U, b_W, b_W))
wrong("gru_step")(lambda x, h, W, U, b_W, b_U: gru(-x, h, W, U, b_W, b_U))


# ---------------------------------------------------------------- clip_gradient

@right("clip_gradient")
def one_long_vector(grads, max_norm):
    norm = torch.cat([grad.reshape(-1) for grad in grads]).norm().item()
    return [grad.clone() if norm <= max_norm else grad / norm * max_norm for grad in grads]


@right("clip_gradient")
def number_by_number(grads, max_norm):
    total = math.sqrt(math.fsum(value ** 2 for grad in grads for value in grad.flatten().tolist()))
    return [grad.mul(max_norm / max(total, max_norm)) for grad in grads]


@right("clip_gradient")
def norm_of_norms(grads, max_norm):
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(grad) for grad in grads]))
    factor = torch.clamp(max_norm / norm, max=1.0)
    return [grad * factor for grad in grads]


right("clip_gradient")(lambda grads, max_norm: list(torch._foreach_mul(
    grads, min(1.0, max_norm / float(nn.utils.get_total_norm(grads))))))


def scaled(grads, max_norm, norm):
    return [grad * min(1.0, max_norm / float(norm)) for grad in grads]


def total(grads):
    return torch.cat([grad.flatten() for grad in grads]).norm()


wrong("clip_gradient")(lambda grads, k: scaled(grads, k, max(grad.abs().max() for grad in grads)))
wrong("clip_gradient")(lambda grads, k: scaled(grads, k, sum(grad.abs().sum() for grad in grads)))
wrong("clip_gradient")(lambda grads, k: scaled(grads, k, grads[-1].norm() * 0.9))
wrong("clip_gradient")(lambda grads, k: scaled(grads, 2 * k, total(grads)))
wrong("clip_gradient")(lambda grads, k: scaled(grads, k, total(grads) + 1))
wrong("clip_gradient")(lambda grads, k: scaled(grads, k, total(grads) / sum(map(torch.numel, grads)) ** 0.5))
wrong("clip_gradient")(lambda grads, k: [-grad for grad in scaled(grads, k, total(grads))])
wrong("clip_gradient")(lambda grads, k: scaled(grads, k, total(grads))[:-1])
wrong("clip_gradient")(lambda grads, k: torch.cat([g.flatten() for g in scaled(grads, k, total(grads))]))
wrong("clip_gradient")(lambda grads, k: [g.clamp(min=-0.1) for g in scaled(grads, k, total(grads))])


# ---------------------------------------------------------------- rnn_forward_masked

def sentence_after_sentence(X, lengths, h_0, W_xh, W_hh, b_h, change=lambda H, h_last: (H, h_last)):
    rows = []
    for x, length, h in zip(X, lengths.tolist(), h_0, strict=True):
        states = []
        for t in range(len(x)):
            h = torch.tanh(x[t] @ W_xh + h @ W_hh + b_h) if t < length else h
            states.append(h)
        rows.append(torch.stack(states))
    H = torch.stack(rows)
    return change(H, H[:, -1])


right("rnn_forward_masked")(sentence_after_sentence)


@right("rnn_forward_masked")
def with_a_mask_of_numbers(X, lengths, h_0, W_xh, W_hh, b_h):
    mask = (torch.arange(X.shape[1]).unsqueeze(0) < lengths.unsqueeze(1)).to(X.dtype).unsqueeze(2)
    h, states = h_0, []
    for t in range(X.shape[1]):
        new = torch.tanh(X[:, t] @ W_xh + h @ W_hh + b_h)
        h = mask[:, t] * new + (1 - mask[:, t]) * h
        states += [h]
    return [torch.stack(states, 1), states[-1]]


@right("rnn_forward_masked")
def gathered_afterwards(X, lengths, h_0, W_xh, W_hh, b_h):
    h, states = h_0, []
    for x_t in X.unbind(1):
        h = torch.tanh(x_t @ W_xh + h @ W_hh + b_h)
        states.append(h)
    H, last = torch.stack(states, 1), lengths - 1
    place = torch.minimum(torch.arange(X.size(1))[None], last[:, None])
    H = H.gather(1, place[..., None].expand(-1, -1, H.size(2)))
    return H, H[torch.arange(len(H)), last]


for twist in (lambda H, h_last: (H, 2 * h_last), lambda H, h_last: (2 * H, h_last),
              lambda H, h_last: (H, H[:, 0]), lambda H, h_last: (H.flip(1), h_last),
              lambda H, h_last: (H[:, 1:], h_last), lambda H, h_last: (H, h_last[:, None]),
              lambda H, h_last: (H, H.mean(1)), lambda H, h_last: h_last):
    wrong("rnn_forward_masked")(lambda *given, twist=twist: sentence_after_sentence(*given, change=twist))


# ---------------------------------------------------------------- truncated_states

@right("truncated_states")
def in_pieces(X, h_0, window, W_xh, W_hh, b_h):
    found, h = [], h_0
    for piece in X.split(window, dim=1):
        h = h.detach()
        for x_t in piece.unbind(1):
            h = torch.tanh(x_t @ W_xh + h @ W_hh + b_h)
            found.append(h)
    return torch.stack(found, 1)


@right("truncated_states")
def through_data(X, h_0, window, W_xh, W_hh, b_h):
    H = []
    for t in range(X.shape[1]):
        before = H[-1] if t else h_0
        if t and t % window == 0:
            before = before.clone().detach()
        H.append((X[:, t] @ W_xh + before @ W_hh + b_h).tanh())
    return torch.stack(H, dim=1)


@right("truncated_states")
def with_no_grad(X, h_0, window, W_xh, W_hh, b_h):
    h, H = h_0, []
    for t in range(X.size(1)):
        if t % window == 0:
            with torch.no_grad():
                h = h + 0
        h = torch.tanh(X[:, t] @ W_xh + h @ W_hh + b_h)
        H.append(h)
    return torch.stack(H, dim=1)


for change in (lambda H: 2 * H, lambda H: H.flip(1), lambda H: H.cumsum(1), lambda H: H.roll(1, 1),
               lambda H: H + H.mean(1, keepdim=True), lambda H: H[:, ::2], lambda H: H.relu()):
    wrong("truncated_states")(lambda *given, change=change: change(in_pieces(*given)))

"""Mistakes as learners write them, each in a form other than the checks' own, and the name each gets."""

import inspect
import math

import pytest
import torch
from torch import nn

from course_lib import decoding, metrics, training
from course_lib.data import batches
from course_lib.models import attention as attentions
from course_lib.models import convolution, lm, norm, positional, residual, transformer
from course_lib.models.attention import MultiHeadAttention, attention
from course_tools.items import registry
from course_tools.judging.judge import examine

CASES = []


def named(item, mistake):
    """Decorator: an answer that gets this name."""
    return lambda answer: CASES.append(pytest.param(item, answer, mistake, id=f"{item}-{mistake}")) or answer


# ---------------------------------------------------------------- a dtype left out hides no name

@named("gradient_norms", "elementwise_product")
def _(H, W_hh):
    grad = torch.eye(H.size(1))
    norms = [grad.norm()]
    for t in range(len(H) - 1, 0, -1):
        grad = (W_hh * (1 - H[t] ** 2)) * grad
        norms.append(grad.norm())
    return torch.stack(norms[::-1])


@named("residual_gradient", "plain_product")
def _(jacobians):
    product = torch.eye(len(jacobians[0]))
    for J in jacobians:
        product = J @ product
    return product


@named("shift_matrix", "wrong_way")
def _(k, d_model):
    M = torch.eye(d_model)
    for i in range(0, d_model, 2):
        w = k / 10000 ** (i / d_model)
        M[i, i] = M[i + 1, i + 1] = math.cos(w)
        M[i, i + 1], M[i + 1, i] = -math.sin(w), math.sin(w)
    return M


@named("softmax_jacobian", "identity_for_diag")
def _(p):
    return torch.eye(p.size(-1)) - p[..., :, None] * p[..., None, :]


# ---------------------------------------------------------------- two mistakes at once: one shows on a part

def scores(Q, K):
    return Q @ K.transpose(-2, -1)


@named("attention", "no_scale")
def _(Q, K, V, mask=None):
    weights = (scores(Q, K) if mask is None else scores(Q, K) * mask).softmax(-1)
    return weights @ V, weights


@named("attention", "d_k_not_its_root")
def _(Q, K, V, mask=None):
    found = scores(Q, K) / Q.size(-1)
    weights = (found if mask is None else found.masked_fill(mask, -math.inf)).softmax(-1)
    return weights @ V, weights


@named("attend", "scores_as_weights")
def _(e, H, mask=None):
    weights = e if mask is None else e.masked_fill(mask, 0)
    return (weights[:, None] @ H)[:, 0], weights


@named("self_attention", "keys_tied_to_queries")
def _(X, W_Q, W_K, W_V, mask=None):
    return attention(X @ W_Q, X @ W_Q, X @ W_V, None if mask is None else ~mask)


@named("softmax", "always_the_first_axis")
def _(x, dim=-1):
    return torch.exp(x) / torch.exp(x).sum(dim=0)


@named("sublayer", "norm_of_f_only")
def _(x, f, norm, order):
    return norm(f(x)) + x if order == "post" else norm(x) + f(norm(x))


@named("MultiHeadAttention", "scale_missing")
class _(MultiHeadAttention):
    def forward(self, q, k, v, mask=None):
        Q, K, V = (attentions.split_heads(X, self.h) for X in (self.W_Q(q), self.W_K(k), self.W_V(v)))
        if mask is not None:
            mask = mask[:, None] if mask.dim() == 3 else mask
        weights = (scores(Q, K) if mask is None else scores(Q, K).masked_fill(mask, -1e9)).softmax(-1)
        return self.W_O(attentions.merge_heads(weights @ V)), weights


@named("BatchNorm", "eval_eps_outside_the_root")
class _(norm.BatchNorm):
    """In training the variance is the unbiased one, in eval mode eps stands outside the root."""

    def forward(self, x):
        if not self.training:
            return self.gamma * (x - self.running_mean) / (self.running_var.sqrt() + self.eps) + self.beta
        self._remember(x.detach())
        return self.gamma * (x - x.mean(0)) / (x.var(0) + self.eps).sqrt() + self.beta


# ---------------------------------------------------------------- the classics

@named("attention", "T_turns_every_axis")
def _(Q, K, V, mask=None):
    found = Q @ K.T / math.sqrt(Q.size(-1))
    weights = (found if mask is None else found.masked_fill(~mask, -math.inf)).softmax(-1)
    return weights @ V, weights


@named("self_attention", "self_T_turns_every_axis")
def _(X, W_Q, W_K, W_V, mask=None):
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    found = Q @ K.T / K.size(-1) ** 0.5
    weights = (found if mask is None else found.masked_fill(mask == 0, -math.inf)).softmax(-1)
    return weights @ V, weights


@named("attend_with_cache", "cached_T_turns_every_axis")
def _(Q_t, K_t, V_t, cache=None):
    K, V = (K_t, V_t) if cache is None else (torch.cat([cache[0], K_t], 2), torch.cat([cache[1], V_t], 2))
    return (Q_t @ K.T / K.size(-1) ** 0.5).softmax(-1) @ V, (K, V)


@named("MultiHeadAttention", "module_T_turns_every_axis")
class _(MultiHeadAttention):
    def forward(self, q, k, v, mask=None):
        Q, K, V = (attentions.split_heads(X, self.h) for X in (self.W_Q(q), self.W_K(k), self.W_V(v)))
        found = Q @ K.T / math.sqrt(Q.size(-1))
        if mask is not None:
            found = found.masked_fill(~(mask[:, None] if mask.dim() == 3 else mask), -math.inf)
        return self.W_O(attentions.merge_heads(found.softmax(-1) @ V)), found.softmax(-1)


@named("softmax_jacobian", "p_times_one_minus_p")
def _(p):
    return p.unsqueeze(-1) * (1 - p).unsqueeze(-2)


@named("softmax_jacobian", "p_j_times_one_minus_p_i")
def _(p):
    return p[..., None, :] * (1 - p[..., :, None])


@named("softmax_jacobian", "sigmoids_derivative_in_every_column")
def _(p):
    return (p * (1 - p)).unsqueeze(-1).expand(*p.shape, p.size(-1))


@named("softmax_jacobian", "sigmoids_derivative_in_every_row")
def _(p):
    return (p * (1 - p)).unsqueeze(-2).expand(*p.shape, p.size(-1)).clone()


@named("softmax", "always_axis_1")
def _(x, dim=-1):
    e = torch.exp(x - x.max(dim=1, keepdim=True).values)
    return e / e.sum(dim=1, keepdim=True)


@named("softmax", "always_the_last_axis")
def _(x, dim=-1):
    return attentions.softmax(x)


@named("receptive_field", "layers_multiplied")
def _(kernel_size, dilations):
    field = 1
    for dilation in dilations:
        field *= kernel_size * dilation
    return field


@named("receptive_field", "dilations_multiplied")
def _(kernel_size, dilations):
    return 1 + (kernel_size - 1) * math.prod(dilations)


@named("receptive_field", "multiplies")
def _(kernel_size, dilations):
    field = 1
    for dilation in dilations:
        field *= (kernel_size - 1) * dilation + 1
    return field


@named("teacher_forcing", "targets_are_the_inputs")
def _(ids, bos_id, eos_id, pad_id):
    inputs = torch.cat([torch.full((len(ids), 1), bos_id), ids], dim=1)
    return inputs, inputs.clone()


@named("teacher_forcing", "ids_twice")
def _(ids, bos_id, eos_id, pad_id):
    return ids, ids


@named("attend_with_cache", "entries_replaced")
def _(Q_t, K_t, V_t, cache=None):
    if cache is None:
        cache = [K_t, V_t]
    else:
        cache[0] = torch.cat([cache[0], K_t], dim=2)
        cache[1] = torch.cat([cache[1], V_t], dim=2)
    return attention(Q_t, cache[0], cache[1])[0], cache


@named("attend_with_cache", "list_changed")
def _(Q_t, K_t, V_t, cache=None):
    if cache is None:
        cache = [K_t, V_t]
    else:
        cache = cache if isinstance(cache, list) else list(cache)
        cache[0], cache[1] = torch.cat([cache[0], K_t], -2), torch.cat([cache[1], V_t], -2)
    return attention(Q_t, *cache)[0], cache


@named("BatchNorm", "running_stats_are_parameters")
class _(nn.Module):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))
        self.running_mean, self.running_var = nn.Parameter(torch.zeros(d)), nn.Parameter(torch.ones(d))
        self.momentum, self.eps = momentum, eps

    def forward(self, x):
        if self.training:
            mean, var = x.mean(0), x.var(0, correction=0)
            self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * mean
            self.running_var = (1 - self.momentum) * self.running_var + self.momentum * x.var(0)
        else:
            mean, var = self.running_mean, self.running_var
        return self.gamma * (x - mean) / (var + self.eps).sqrt() + self.beta


@named("BatchNorm", "running_stats_get_gradients")
class _(norm.BatchNorm):
    def __init__(self, d, momentum=0.1, eps=1e-5):
        super().__init__(d, momentum, eps)
        mean, var = self.running_mean, self.running_var
        del self.running_mean, self.running_var
        self.running_mean, self.running_var = nn.Parameter(mean), nn.Parameter(var)

    def _remember(self, x):
        with torch.no_grad():
            self.running_mean.mul_(1 - self.momentum).add_(self.momentum * x.mean(0))
            self.running_var.mul_(1 - self.momentum).add_(self.momentum * x.var(0))


@named("greedy_decode", "never_token_0")
def _(step, state, bos_id, eos_id, max_len):
    words, token = [], bos_id
    for _ in range(max_len):
        logits, state = step(token, state)
        token = int(logits[1:].argmax()) + 1
        if token == eos_id:
            break
        words.append(token)
    return words


@named("greedy_decode", "token_0_left_out")
def _(step, state, bos_id, eos_id, max_len):
    return list(filter(None, decoding.greedy_decode(step, state, bos_id, eos_id, max_len)))


@named("greedy_decode", "stops_at_token_0")
def _(step, state, bos_id, eos_id, max_len):
    words, token = [], bos_id
    for _ in range(max_len):
        logits, state = step(token, state)
        token = int(logits.argmax())
        if token == eos_id or not token:
            break
        words.append(token)
    return words


@named("MultiHeadAttention", "last_mask_remembered")
class _(MultiHeadAttention):
    mask = None

    def forward(self, q, k, v, mask=None):
        self.mask = self.mask if mask is None else mask
        return super().forward(q, k, v, self.mask)


class Decoder(transformer.DecoderBlock):
    def cross(self, y, memory, mask):
        return self.cross_attention(y, memory, memory, mask)[0]

    def forward(self, y, memory, self_mask=None, memory_mask=None):
        y = self.norm_1(y + self.self_attention(y, y, y, self_mask)[0])
        y = self.norm_2(y + self.cross(y, memory, memory_mask))
        return self.norm_3(y + self.feed_forward(y))


@named("DecoderBlock", "keys_and_values_from_y")
class _(Decoder):
    def cross(self, y, memory, mask):
        return self.cross_attention(y, y, y, mask)[0]


@named("DecoderBlock", "keys_and_values_from_y_unmasked")
class _(Decoder):
    def cross(self, y, memory, mask):
        return self.cross_attention(y, y, y)[0]


@named("DecoderBlock", "query_from_memory")
class _(Decoder):
    def cross(self, y, memory, mask):
        return self.cross_attention(memory, y, y, mask)[0]


@named("DecoderBlock", "query_from_memory_unmasked")
class _(Decoder):
    def cross(self, y, memory, mask):
        return self.cross_attention(memory, y, y)[0]


@named("DecoderBlock", "keys_and_values_from_y_with_self_mask")
class _(Decoder):
    def forward(self, y, memory, self_mask=None, memory_mask=None):
        self.mine = self_mask
        return super().forward(y, memory, self_mask, memory_mask)

    def cross(self, y, memory, mask):
        return self.cross_attention(y, y, y, self.mine)[0]


@named("leakage", "all_outputs")
def _(f, X, i):
    J = torch.autograd.functional.jacobian(f, X)                       # (n, d', n, d)
    return J.pow(2).sum(dim=(0, 1, 3)).sqrt()


@named("leakage", "norms_summed_over_outputs")
def _(f, X, i):
    J = torch.autograd.functional.jacobian(f, X)
    return J.pow(2).sum(dim=(1, 3)).sqrt().sum(dim=0)


@named("leakage", "all_outputs_summed")
def _(f, X, i):
    X = X.detach().clone().requires_grad_()
    grad, = torch.autograd.grad(f(X).sum(), X)
    return grad.norm(dim=-1)


@named("beam_search", "finished_go_on")
def _(step, state, bos_id, eos_id, beam, max_len, alpha=0.6):
    live, ended = [(0.0, [bos_id], state)], []
    for _ in range(max_len):
        grown = []
        for score, words, before in live:
            logits, after = step(words[-1], before)
            grown += [(score + value, [*words, token], after)
                      for token, value in enumerate(logits.log_softmax(dim=-1).tolist())]
        live = sorted(grown, key=lambda one: one[0], reverse=True)[:beam]
        ended += [one for one in live if one[1][-1] == eos_id]
    found = max(ended, key=lambda one: one[0] / ((5 + len(one[1]) - 1) / 6) ** alpha) if ended else live[0]
    words = found[1][1:]
    return words[:words.index(eos_id)] if eos_id in words else words


def extended(step, state, bos_id, eos_id, beam, max_len, alpha, cut):
    """Finished hypotheses stay in the beam, are extended, and the best of the last step is taken."""
    live = [(0.0, [bos_id], state)]
    for _ in range(max_len):
        grown = []
        for score, words, before in live:
            logits, after = step(words[-1], before)
            grown += [(score + value, [*words, token], after)
                      for token, value in enumerate(logits.log_softmax(dim=-1).tolist())]
        live = sorted(grown, key=lambda one: one[0], reverse=True)[:beam]
    found = max(live, key=lambda one: one[0] / ((5 + len(one[1]) - 1) / 6) ** alpha)[1][1:]
    return cut(found, eos_id)


named("beam_search", "eos_is_a_word")(lambda *given: extended(
    *given, cut=lambda words, eos: words[:words.index(eos)] if eos in words else words))
named("beam_search", "eos_is_dropped")(lambda *given: extended(
    *given, cut=lambda words, eos: [word for word in words if word != eos]))


def in_order(*order):
    """A training loop as learners write it, its lines in another order, some of them left out."""
    def loop(model, batches, optimizer, rate, loss, max_norm):
        model.train()
        losses = []
        for step, batch in enumerate(batches, start=1):
            optimizer.param_groups[0]["lr"] = optimizer.param_groups[1]["lr"] = rate(step)
            value = loss(model, batch)
            lines = {"zero": optimizer.zero_grad, "backward": value.backward, "step": optimizer.step,
                     "clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), max_norm)}
            for line in order:
                lines[line]()
            losses.append(value.item())
        return losses
    return loop


for name, *order in (("steps_unclipped", "zero", "backward", "step", "clip"),
                     ("steps_unclipped", "zero", "clip", "backward", "step"),
                     ("steps_unclipped", "backward", "step", "zero"),
                     ("gradients_not_zeroed", "backward", "clip", "step"),
                     ("parameters_never_change", "backward", "zero", "clip", "step"),
                     ("parameters_never_change", "backward", "clip", "zero", "step"),
                     ("parameters_never_change", "zero", "clip", "step"),
                     ("step_before_backward", "step", "zero", "backward", "clip"),
                     ("step_missing", "zero", "backward", "clip")):
    named("train", name)(in_order(*order))


def looped(**changes):
    """The library's loop with some of its arguments changed."""
    def loop(model, batches, optimizer, rate, loss, max_norm):
        given = {"model": model, "batches": batches, "optimizer": optimizer, "rate": rate, "loss": loss,
                 "max_norm": max_norm}
        return training.train(**given | {name: change(given[name]) for name, change in changes.items()})
    return loop


named("train", "rate_from_step_0")(looped(rate=lambda rate: lambda step: rate(step - 1)))
named("train", "rate_set_once")(looped(rate=lambda rate: lambda step: rate(1)))
named("train", "max_norm_taken_as_1")(looped(max_norm=lambda most: 1.0))
named("train", "steps_unclipped")(looped(max_norm=lambda most: math.inf))
named("train", "first_batch_only")(looped(batches=lambda batches: list(batches)[:1]))


@named("train", "losses_keep_their_graph")
def _(model, batches, optimizer, rate, loss, max_norm):
    kept = []

    def keeping(model, batch):
        kept.append(loss(model, batch))
        return kept[-1]
    training.train(model, batches, optimizer, rate, keeping, max_norm)
    return kept


@named("train", "evaluation_mode_switched_on")
def _(model, *given):
    train, model.train = model.train, lambda: train(False)
    return training.train(model, *given)


def greedy(model, sentences, bos_id, eos_id, max_len, inputs=lambda tokens: tokens):
    model.eval()
    found = []
    for sentence in sentences:
        tokens = [bos_id]
        while len(tokens) <= max_len:
            token = model(torch.tensor([sentence]), torch.tensor([inputs(tokens)]))[0, -1].argmax().item()
            if token == eos_id:
                break
            tokens.append(token)
        found.append(tokens[1:])
    return found


named("translate", "only_the_last_token_given")(
    lambda *given: greedy(*given, inputs=lambda tokens: tokens[-1:]))
named("translate", "first_position_read")(lambda *given: greedy(*given, inputs=lambda tokens: tokens[:1]))
named("translate", "one_token_short")(lambda *given: greedy(*given[:4], given[4] - 1))
named("translate", "translation_never_ends")(lambda *given: greedy(*given[:4], 10 ** 6))
named("translate", "first_sentence_only")(lambda model, some, *given: greedy(model, some[:1], *given))
named("translate", "source_reversed_for_translation")(
    lambda model, some, *given: greedy(model, [one[::-1] for one in some], *given))


# ---------------------------------------------------------------- loops over time

def rnn_states(X, h, weights, before=lambda t, h: h, after=lambda t, new, old: new):
    """The states of an RNN, with a change before and after each step."""
    W_xh, W_hh, b_h = weights
    states = []
    for t in range(X.size(1)):
        old = before(t, h)
        h = after(t, torch.tanh(X[:, t] @ W_xh + old @ W_hh + b_h), old)
        states.append(h)
    return torch.stack(states, dim=1)


@named("rnn_forward_masked", "words_zeroed_in_H")
def _(X, lengths, h_0, *weights):
    real = torch.arange(X.size(1)) < lengths[:, None]
    H = rnn_states(X.masked_fill(~real[..., None], 0.0), h_0, weights)
    return H, H[range(len(X)), lengths - 1]


@named("rnn_forward_masked", "new_and_old_exchanged")
def _(X, lengths, h_0, *weights):
    H = rnn_states(X, h_0, weights, after=lambda t, new, old: torch.where((t >= lengths)[:, None], new, old))
    return H, H[:, -1]


@named("truncated_states", "windows_end_early")
def _(X, h_0, window, *weights):
    return rnn_states(X, h_0, weights, before=lambda t, h: h.detach() if t % window == window - 1 else h)


@named("truncated_states", "condition_inverted")
def _(X, h_0, window, *weights):
    return rnn_states(X, h_0, weights, before=lambda t, h: h.detach() if t % window else h)


@named("truncated_states", "last_of_a_window_detached")
def _(X, h_0, window, *weights):
    return rnn_states(X, h_0, weights, after=lambda t, new, _: new if (t + 1) % window else new.detach())


def translated(source, lengths, target_inputs, encoder, decoder, W_out, over):
    """seq2seq_logits with another state, over(t, new, old), where a sentence is over."""
    h, logits = torch.zeros(len(source), len(W_out), dtype=W_out.dtype), []
    for t in range(source.size(1)):
        new = encoder(source[:, t], h)
        h = torch.where((t < lengths)[:, None], new, over(t, new, h))
    for y in target_inputs.T:
        h = decoder(y, h)
        logits.append(h @ W_out)
    return torch.stack(logits, dim=1)


@named("seq2seq_logits", "one_padding_token_read")
def _(source, lengths, *given):
    return translated(source, lengths, *given,
                      over=lambda t, new, old: torch.where((t == lengths)[:, None], new, old))


@named("seq2seq_logits", "zeros_past_the_source")
def _(source, lengths, *given):
    return translated(source, lengths, *given, over=lambda t, new, old: torch.zeros_like(new))


def one_step_of_training(inputs, targets):
    def step(model, optimizer, source, target, pad_id):
        optimizer.zero_grad()
        logits = model(source, target[inputs]).transpose(1, 2)
        loss = nn.CrossEntropyLoss(ignore_index=pad_id)(logits, target[targets])
        loss.backward()
        optimizer.step()
        return float(loss)
    return step


named("training_step", "unshifted_and_whole")(one_step_of_training((...,), (...,)))
named("training_step", "inputs_not_shortened")(one_step_of_training((...,), (..., slice(1, None))))


# ---------------------------------------------------------------- arguments that are not used

def four_times(given):
    return 4 * given["d_model"]


def ignoring(item, mistake, reference, **fixed):
    """The reference with some arguments replaced, whatever is given."""
    names = list(inspect.signature(reference).parameters)

    def answer(*inputs, **more):
        given = {**dict(zip(names, inputs, strict=False)), **more}
        given |= {name: value(given) if callable(value) else value for name, value in fixed.items()}
        return reference(**given)
    named(item, mistake)(answer)


ignoring("causal_conv1d", "dilation_ignored", convolution.causal_conv1d, dilation=1)
ignoring("receptive_field", "kernel_size_taken_as_3", convolution.receptive_field, kernel_size=3)
ignoring("receptive_field", "kernel_size_taken_as_2", convolution.receptive_field, kernel_size=2)
ignoring("path_length", "kernel_size_ignored", convolution.path_length, kernel_size=3)
ignoring("path_length", "kernel_size_taken_as_2_in_path", convolution.path_length, kernel_size=2)
ignoring("path_length", "layer_ignored", convolution.path_length, layer="recurrent")
ignoring("path_length", "always_n", lambda n, layer, kernel_size=3: n)
ignoring("pad_batch", "pads_with_zero", batches.pad_batch, pad_id=0)
ignoring("teacher_forcing", "pad_id_taken_as_0", batches.teacher_forcing, pad_id=0)
ignoring("sequence_loss", "padding_is_zero", registry.find("sequence_loss")[1].reference, pad_id=0)
ignoring("sequence_loss", "counts_padding", registry.find("sequence_loss")[1].reference, pad_id=-100)
ignoring("greedy_decode", "never_stops_without_eos", decoding.greedy_decode, max_len=10 ** 6)
ignoring("greedy_decode", "bos_and_eos_fixed", decoding.greedy_decode, bos_id=1, eos_id=2)
ignoring("greedy_decode", "never_stops", decoding.greedy_decode, eos_id=-1)
ignoring("bleu", "always_four", metrics.bleu, max_n=4)
ignoring("attend", "mask_ignored", registry.find("attend")[1].reference, mask=None)
ignoring("softmax", "always_the_first_axis", attentions.softmax, dim=0)
ignoring("attention", "mask_ignored", attention, mask=None)
ignoring("style_embedding", "one_head", registry.find("style_embedding")[1].reference, h=1)
ignoring("batch_norm", "eps_fixed", norm.batch_norm, eps=1e-5)
ignoring("layer_norm", "eps_left_out", norm.layer_norm, eps=0.0)
ignoring("sublayer", "always_pre", residual.sublayer, order="pre")
ignoring("sublayer", "always_post", residual.sublayer, order="post")
ignoring("padding_mask", "width_of_the_longest", attentions.padding_mask,
         m=lambda given: int(given["lengths"].max()))
ignoring("self_attention", "self_mask_ignored", attentions.self_attention, mask=None)
ignoring("leakage", "always_output_0", attentions.leakage, i=0)
ignoring("leakage", "always_the_last_output", attentions.leakage, i=-1)
ignoring("split_heads", "h_ignored", attentions.split_heads, h=1)
ignoring("shift_matrix", "always_one_step", positional.shift_matrix, k=1)
ignoring("parameter_count", "d_ff_taken_as_4_d_model", transformer.parameter_count, d_ff=four_times)
ignoring("parameter_count", "one_block_each", transformer.parameter_count, N=1)
ignoring("parameter_count", "six_blocks_each", transformer.parameter_count, N=6)
ignoring("parameter_count", "embedding_forgotten", transformer.parameter_count, vocab=0)
SMOOTHED = registry.find("label_smoothing_loss")[1].reference
ignoring("label_smoothing_loss", "epsilon_fixed", SMOOTHED, epsilon=0.1)
ignoring("label_smoothing_loss", "padding_taken_as_zero", SMOOTHED, pad_id=0)
ignoring("label_smoothing_loss", "counts_the_padding", SMOOTHED, pad_id=-100)
RATE = registry.find("warmup_rate")[1].reference
ignoring("warmup_rate", "warmup_taken_as_4000", RATE, warmup_steps=4000)
ignoring("warmup_rate", "d_model_taken_as_512", RATE, d_model=512)
ignoring("beam_search", "beam_ignored", decoding.beam_search, beam=1)
ignoring("beam_search", "alpha_always_06", decoding.beam_search, alpha=0.6)
ignoring("beam_search", "no_length_penalty", decoding.beam_search, alpha=0)
ignoring("beam_search", "never_ends", decoding.beam_search, max_len=10 ** 6)
ignoring("mask_tokens", "p_ignored", lm.mask_tokens, p=0.15)
ignoring("mask_tokens", "masks_special_tokens", lm.mask_tokens, special_ids=lambda given: [-1])
ignoring("attend_with_cache", "cache_ignored", attentions.attend_with_cache, cache=None)
ignoring("nucleus", "p_fixed", lm.nucleus, p=0.9)
ignoring("nucleus", "nothing_cut", lm.nucleus, p=1.0)


def built(item, mistake, reference, **fixed):
    """The reference's class with some arguments of its constructor replaced."""
    names = list(inspect.signature(reference).parameters)

    def build(self, *given, **more):
        given = {**dict(zip(names, given, strict=False)), **more}
        given |= {name: value(given) if callable(value) else value for name, value in fixed.items()}
        reference.__init__(self, **given)
    named(item, mistake)(type(reference.__name__, (reference,), {"__init__": build}))


built("BatchNorm", "momentum_fixed", norm.BatchNorm, momentum=0.1)
built("BatchNorm", "module_eps_fixed", norm.BatchNorm, eps=1e-5)
built("MultiHeadAttention", "one_head", MultiHeadAttention, h=1)
built("FeedForward", "d_ff_ignored", transformer.FeedForward, d_ff=four_times)
built("EncoderBlock", "encoder_d_ff_ignored", transformer.EncoderBlock, d_ff=four_times)
built("DecoderBlock", "decoder_d_ff_ignored", transformer.DecoderBlock, d_ff=four_times)
built("EncoderBlock", "one_head", transformer.EncoderBlock, h=1)
built("DecoderBlock", "decoder_one_head", transformer.DecoderBlock, h=1)
built("Transformer", "one_block_each", transformer.Transformer, N=1)
built("Transformer", "one_head_each", transformer.Transformer, h=1)


@pytest.mark.parametrize("item, answer, mistake", CASES)
def test_a_mistake_gets_its_name(item, answer, mistake):
    verdict = examine(registry.find(item)[1], answer)
    assert verdict.mistake == mistake, verdict

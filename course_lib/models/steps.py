"""One step, or one pass, of the models before the Transformer, as functions.  Exercises 01 to 04"""

import torch
import torch.nn.functional as F

from .attention import additive_score, attend, attentional_state, general_score
from .convolution import causal_conv1d, gated_linear_unit
from .rnn import rnn_step


def rnn_forward_masked(X, lengths, h_0, W_xh, W_hh, b_h):
    """`rnn_forward` for sentences of different lengths: past a sentence's end its state stays as it is.

    X (B, n, d_in), padded  lengths (B,), each 1 to n  h_0 (B, d_h)  ->  H (B, n, d_h), h_last (B, d_h)
    """
    h, states = h_0, []
    for t in range(X.size(1)):
        real = (t < lengths)[:, None]                             # (B, 1)
        h = torch.where(real, rnn_step(X[:, t], h, W_xh, W_hh, b_h), h)
        states.append(h)
    return torch.stack(states, dim=1), h


def truncated_states(X, h_0, window, W_xh, W_hh, b_h):
    """`rnn_forward` for truncated backpropagation through time: no gradient crosses into an earlier window.

    X (B, n, d_in)  h_0 (B, d_h)  window: steps that learn together  ->  H (B, n, d_h).  Williams & Peng 1990
    """
    h, states = h_0, []
    for t in range(X.size(1)):
        if t % window == 0:
            h = h.detach()
        h = rnn_step(X[:, t], h, W_xh, W_hh, b_h)
        states.append(h)
    return torch.stack(states, dim=1)


def seq2seq_logits(source, lengths, target_inputs, encoder, decoder, W_out):
    """The logits of an encoder-decoder with teacher forcing.  Sutskever et al. 2014, section 2

    source (B, m), padded  lengths (B,)  target_inputs (B, n)  W_out (d_h, vocab)  ->  logits (B, n, vocab)
    encoder(x_t, h) -> h and decoder(y_t, h) -> h take token numbers (B,) and states (B, d_h); the encoder
    starts from zeros, and its state after the last real word starts the decoder.
    """
    h = W_out.new_zeros(len(source), W_out.size(0))               # (B, d_h)
    for t in range(source.size(1)):
        h = torch.where((t < lengths)[:, None], encoder(source[:, t], h), h)
    logits = []
    for y_t in target_inputs.unbind(dim=1):
        h = decoder(y_t, h)                                       # (B, d_h)
        logits.append(h @ W_out)
    return torch.stack(logits, dim=1)                             # (B, n, vocab)


def training_step(model, optimizer, source, target, pad_id):
    """One step of training with teacher forcing; returns its loss, a float.

    target (B, n): <bos> words <eos> and padding  model(source, inputs) -> logits (B, n - 1, vocab)
    """
    logits = model(source, target[:, :-1])
    loss = F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=pad_id)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def causal_conv_step(x_t, window, W, b, dilation=1):
    """One step of `causal_conv1d` while a sequence is generated: only the inputs still needed are kept.

    x_t (B, d_in)  window (B, (k - 1) dilation, d_in), the inputs before x_t, oldest first, zeros at first
    W (k, d_in, d_out)  b (d_out,)  ->  y_t (B, d_out), the window for the next step
    """
    inputs = torch.cat([window, x_t[:, None]], dim=1)             # (B, (k - 1) dilation + 1, d_in)
    y_t = sum((inputs[:, j * dilation] @ W[j] for j in range(len(W))), b)
    return y_t, inputs[:, 1:]                                     # the oldest is no longer needed


def gated_block(X, W, b, dilation=1):
    """X + GLU(causal_conv1d(X)): a residual block of ConvS2S.  Gehring et al. 2017, section 3.2

    X (B, n, d)  W (k, d, 2 d)  b (2 d,)  ->  (B, n, d)
    """
    return X + gated_linear_unit(causal_conv1d(X, W, b, dilation))


def attention_decoder_step(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    """A step of Bahdanau's decoder: score with the old state, attend, then step.  Bahdanau et al. 2015, A.2.2

    y_prev (B, d_y)  s_prev (B, d_s)  H (B, m, d_h)  mask (B, m)  W_s (d_s, d_a)  W_h (d_h, d_a)  v (d_a,)
    step(x, s) -> s takes x (B, d_y + d_h)  ->  s_t (B, d_s), context (B, d_h), weights (B, m)
    """
    e = additive_score(s_prev, H, W_s, W_h, v)                    # (B, m)
    context, weights = attend(e, H, mask)                         # (B, d_h), (B, m)
    s_t = step(torch.cat([y_prev, context], dim=-1), s_prev)      # (B, d_s)
    return s_t, context, weights


def input_feeding(Y, s_0, H, mask, W, W_c, step):
    """Luong's decoder: each step also gets the attentional state before it.  Luong et al. 2015, section 3.3

    Y (B, n, d_y)  s_0 (B, d_s)  H (B, m, d_h)  mask (B, m)  W (d_s, d_h)  W_c (d_h + d_s, d_s)
    step(x, s) -> s takes x (B, d_y + d_s)  ->  the attentional states (B, n, d_s)
    """
    outputs, s, fed = [], s_0, torch.zeros_like(s_0)
    for t in range(Y.size(1)):
        s = step(torch.cat([Y[:, t], fed], dim=-1), s)            # (B, d_s)
        context, _ = attend(general_score(s, H, W), H, mask)      # (B, d_h)
        fed = attentional_state(context, s, W_c)                  # (B, d_s)
        outputs.append(fed)
    return torch.stack(outputs, dim=1)                            # (B, n, d_s)

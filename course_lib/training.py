"""The training loop of every lesson, clipping, warm-up, and the loss of a batch of sentences."""

import math

import torch
from tqdm.auto import tqdm

from . import runtime


def clip_gradient(grads, max_norm):
    """Scale all gradients by min(1, max_norm / norm), norm taken over all of them together.

    grads: list of tensors of any shapes.  max_norm: float > 0.  Returns a new list; the direction of
    the whole gradient stays, only its length is limited.  Pascanu et al. 2013, algorithm 1
    """
    norm = math.sqrt(sum(float(grad.pow(2).sum()) for grad in grads))
    scale = min(1.0, max_norm / norm) if norm > 0 else 1.0
    return [grad * scale for grad in grads]


def sequence_loss(logits, targets, pad_id):
    """The mean of -log p(right token) over all real tokens of the batch; padding does not count.

    logits (B, n, vocab), before the softmax  targets (B, n), pad_id where there is none  ->  scalar
    """
    log_p = logits.log_softmax(dim=-1)                           # (B, n, vocab)
    surprise = -log_p.gather(-1, targets[..., None])[..., 0]     # (B, n)
    return surprise[targets != pad_id].mean()


def label_smoothing_loss(logits, targets, epsilon, pad_id):
    """Cross-entropy with a target of 1 - epsilon on the correct token plus epsilon / vocab on every token.

    logits (B, n, vocab), before the softmax  targets (B, n), pad_id where there is none  epsilon 0 to 1
    ->  scalar.  The correct token is in the vocabulary, so its target is 1 - epsilon + epsilon / vocab, as in
    torch's cross_entropy.  Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4
    """
    log_p = logits.log_softmax(dim=-1)                           # (B, n, vocab)
    correct = log_p.gather(-1, targets[..., None])[..., 0]       # (B, n)
    losses = -(1 - epsilon) * correct - epsilon * log_p.mean(dim=-1)
    return losses[targets != pad_id].mean()


def warmup_rate(step, d_model, warmup_steps):
    """d_model^-0.5 min(step^-0.5, step warmup_steps^-1.5): it rises linearly, then falls as 1 / sqrt(step).

    step: from 1; the peak is at warmup_steps.  Vaswani et al. 2017, eq. 3
    """
    return d_model ** -0.5 * min(step ** -0.5, step * warmup_steps ** -1.5)


def fit(parameters, loss, steps, lr=1e-2, max_norm=None, rate=None, label="training"):
    """The training loop that lesson 01 writes out, with a progress bar; returns the list of losses.

    parameters: tensors to learn, or an nn.Module.  loss: called with the step's number from 0, draws
    its own batch, returns a scalar tensor.  max_norm: clip the gradient to that norm.  rate: maps a
    step's number to a factor on `lr` (warm-up, decay).  The bar is not shown in stored outputs.

    Raises ValueError at the first loss that is not finite, with the step at which it appeared.
    """
    parameters = list(parameters.parameters() if hasattr(parameters, "parameters") else parameters)
    optimizer = torch.optim.Adam(parameters, lr=lr)
    losses = []
    with tqdm(total=steps, desc=label, disable=runtime.static(), leave=False) as bar:
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = lr * (rate(step) if rate else 1.0)
            error = loss(step)                         # 1. draw a batch, predict, compare
            optimizer.zero_grad()                      # 2. forget the last gradient
            error.backward()                           # 3. compute the new one
            _clip(parameters, max_norm)                # 4. limit its length
            optimizer.step()                           # 5. change the parameters a little
            losses.append(error.item())
            _show(bar, step, losses[-1])
    return losses


def train(model, batches, optimizer, rate, loss, max_norm):
    """The same loop for any model, optimizer and schedule: one step for each batch.  Returns the losses.

    batches: an iterable of whatever loss(model, batch) -> scalar takes.  rate(step): the learning rate of all
    parameters, step from 1.  max_norm: clip the gradient of all of them together to that norm.  Exercise 12
    """
    model.train()
    losses = []
    for step, batch in enumerate(batches, start=1):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        error = loss(model, batch)
        optimizer.zero_grad()
        error.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()
        losses.append(error.item())
    return losses


def _clip(parameters, max_norm):
    """Replace the gradients by clipped ones; max_norm None leaves them as they are."""
    with_grad = [p for p in parameters if p.grad is not None]
    if max_norm is not None:
        clipped = clip_gradient([p.grad for p in with_grad], max_norm)
        for parameter, grad in zip(with_grad, clipped, strict=True):
            parameter.grad = grad


def _show(bar, step, loss):
    if not math.isfinite(loss):
        raise ValueError(f"the loss is {loss} at step {step}: lower lr, or clip the gradient with max_norm")
    bar.set_postfix(loss=f"{loss:.4f}", refresh=False)
    bar.update()

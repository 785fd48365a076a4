"""The training loop of every lesson, the clipping it uses, and the loss of a batch of sentences."""

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
    """The mean of -log p(right word) over all real tokens of the batch; padding does not count.

    logits (B, n, vocab), before the softmax  targets (B, n), pad_id where there is none  ->  scalar
    """
    log_p = logits.log_softmax(dim=-1)                           # (B, n, vocab)
    surprise = -log_p.gather(-1, targets[..., None])[..., 0]     # (B, n)
    return surprise[targets != pad_id].mean()


def fit(parameters, loss, steps, lr=1e-2, max_norm=None, rate=None, label="training"):
    """Minimise `loss(step)` by Adam; return the list of losses.

    parameters: tensors to learn, or an nn.Module.  loss: called with the step's number from 0, draws
    its own batch, returns a scalar tensor.  max_norm: clip the gradient to that norm.  rate: maps a
    step's number to a factor on `lr` (warm-up, decay).  A progress bar with the loss runs along,
    in a notebook and in a terminal; not in stored outputs.

    Raises ValueError at the first loss that is not finite, with the step at which it appeared.
    """
    parameters = list(parameters.parameters() if hasattr(parameters, "parameters") else parameters)
    optimizer = torch.optim.Adam(parameters, lr=lr)
    losses = []
    with tqdm(total=steps, desc=label, disable=runtime.static(), leave=False) as bar:
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = lr * (rate(step) if rate else 1.0)
            losses.append(_update(optimizer, parameters, loss(step), max_norm))
            if not math.isfinite(losses[-1]):
                raise ValueError(f"the loss is {losses[-1]} at step {step}: "
                                 "lower lr, or clip the gradient with max_norm")
            bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
            bar.update()
    return losses


def _update(optimizer, parameters, loss, max_norm):
    optimizer.zero_grad()
    loss.backward()
    if max_norm is not None:
        with_grad = [p for p in parameters if p.grad is not None]
        clipped = clip_gradient([p.grad for p in with_grad], max_norm)
        for parameter, grad in zip(with_grad, clipped, strict=True):
            parameter.grad = grad
    optimizer.step()
    return loss.item()

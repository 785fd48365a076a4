"""Recall against lag: five recurrent layers, each at six to eight learning rates and with five seeds.

A network reads random letters and a question mark, and should name the first letter (`delayed_recall`).
near: "random", or "copy" if in training the last letter is a copy of the first.  All networks are tested on
rows in which first and last letter differ.
value: how often the network names the first letter.  last: how often it names the last one.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, grad, vmap

from course_lib.data.toy import delayed_recall
from course_lib.models import rnn

RATES = {"random": (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1, 1.0),
         "copy": (3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)}
SEEDS = range(5)
STEPS = (600, 1200)
LAGS = {"random": (5, 10, 20, 40, 80), "copy": (6, 10, 20)}
D_H = 32
LAYERS = {"RNN": lambda: rnn.RNN(11, D_H),
          "LSTM": lambda: rnn.LSTM(11, D_H),
          "LSTM, bias +3": lambda: rnn.LSTM(11, D_H, forget_bias=3.0),
          "GRU": lambda: rnn.GRU(11, D_H),
          "GRU, bias +3": lambda: rnn.GRU(11, D_H, keep_bias=3.0)}


class Reader(nn.Module):
    """A recurrent layer, and a linear layer on its last hidden state, as in the lesson."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer
        self.out = nn.Linear(D_H, 10)

    def forward(self, X):                        # X (B, n, 11)
        H, _ = self.layer(X)                     # H (B, n, d_h)
        return self.out(H[:, -1])                # (B, 10)


def run(budget):
    """A row for each layer, lag, rate, seed and number of steps; a small budget: fewer steps and lags."""
    torch.set_num_threads(1)
    steps = [max(1, round(budget * number)) for number in STEPS]
    for near, lags in LAGS.items():
        for lag in lags[:max(1, round(budget * len(lags)))]:
            for model in LAYERS:
                yield from runs(near, lag, model, steps)


def runs(near, lag, model, steps):
    """All rates and seeds of one layer at one lag, trained as one batch of networks."""
    networks, rates = [], RATES[near]
    for seed in SEEDS:
        torch.manual_seed(seed)
        networks.append(Reader(LAYERS[model]()))
    generators = [torch.Generator().manual_seed(1000 + seed) for seed in SEEDS]
    weights = {name: torch.stack([network.get_parameter(name).detach() for network in networks] * len(rates))
               for name, _ in networks[0].named_parameters()}                    # (rates x seeds, ...)
    name_letter = vmap(lambda weights, X: functional_call(networks[0], weights, X), in_dims=(0, None))
    gradient = vmap(grad(lambda weights, X, y: F.cross_entropy(functional_call(networks[0], weights, X), y)))
    optimizer = Adam(weights, torch.tensor(rates).repeat_interleave(len(SEEDS)))
    for step in range(1, max(steps) + 1):
        X, y = zip(*[batch(generator, near, lag) for generator in generators])
        optimizer.step(gradient(weights, torch.stack(X * len(rates)), torch.stack(y * len(rates))))
        if step in steps:
            X, first, last = test_rows(lag)
            with torch.no_grad():
                named = name_letter(weights, X).argmax(dim=-1)                   # (rates x seeds, rows)
            for number, answers in enumerate(named):
                yield {"near": near, "model": model, "lag": lag, "rate": rates[number // len(SEEDS)],
                       "seed": SEEDS[number % len(SEEDS)], "steps": step,
                       "value": round((answers == first).float().mean().item(), 4),
                       "last": round((answers == last).float().mean().item(), 4)}


def batch(generator, near, lag):
    X, y = delayed_recall(generator, 32, lag)
    if near == "copy":
        X[:, -2] = X[:, 0]
    return X, y                                  # X (32, lag + 2, 11), y (32,)


def test_rows(lag):
    X, first = delayed_recall(torch.Generator().manual_seed(99), 1000, lag)
    last = X[:, -2].argmax(dim=-1)
    differ = first != last
    return X[differ], first[differ], last[differ]


class Adam:
    """Adam for a batch of networks, each with its own rate and its own gradient, clipped to norm 1."""

    def __init__(self, weights, rates):
        self.weights, self.rates, self.steps = weights, rates, 0
        self.mean = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        self.square = {name: torch.zeros_like(weight) for name, weight in weights.items()}

    def step(self, gradients):
        self.steps += 1
        norm = torch.stack([g.flatten(1).pow(2).sum(dim=1) for g in gradients.values()]).sum(dim=0).sqrt()
        scale = (1 / norm).clamp(max=1)
        for name, weight in self.weights.items():
            shape = (-1, *[1] * (weight.dim() - 1))
            g = gradients[name] * scale.view(shape)
            self.mean[name].mul_(0.9).add_(g, alpha=0.1)
            self.square[name].mul_(0.999).addcmul_(g, g, value=0.001)
            mean = self.mean[name] / (1 - 0.9 ** self.steps)
            square = self.square[name] / (1 - 0.999 ** self.steps)
            weight -= self.rates.view(shape) * mean / (square.sqrt() + 1e-8)

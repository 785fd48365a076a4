"""Train many networks of one kind at once, with all seeds and all learning rates, as one batch of networks.

A step of one small network keeps a processor waiting most of the time.  35 of them as one batch, with vmap
over their stacked parameters, take little longer than a few, and each learns exactly what it would learn
alone with torch.optim.Adam.
"""

import torch
from torch.func import functional_call, grad_and_value, vmap


class Many:
    """Networks of one kind, one for each rate and seed, as parameters of shape (rates, seeds, ...).

    make: returns an untrained network; the weights that it draws depend on the seed alone, and are the same
    for all rates.  It must be a network that torch.func.vmap can run: course_lib's, but not nn.LSTM.
    """

    def __init__(self, make, rates, seeds):
        self.rates, self.seeds, self.step, networks = list(rates), list(seeds), 0, []
        for seed in self.seeds:
            torch.manual_seed(seed)
            networks.append(make())
        self.network = networks[0]
        stacked = {name: torch.stack([network.get_parameter(name).detach() for network in networks])
                   for name, _ in self.network.named_parameters()}                   # (seeds, ...)
        self.parameters = {name: torch.stack([weight] * len(self.rates)) for name, weight in stacked.items()}
        self.mean = {name: torch.zeros_like(weight) for name, weight in self.parameters.items()}
        self.square = {name: torch.zeros_like(weight) for name, weight in self.parameters.items()}

    def call(self, parameters):
        """The network with these parameters, as a function."""
        return lambda *inputs: functional_call(self.network, parameters, inputs)

    def train(self, batch, loss, steps, rate=None, max_norm=None, first=1000):
        """Adam, as `course_lib.training.fit` has it.  Returns the losses, (steps, rates, seeds).

        batch: of a torch.Generator, the tensors of one step; each seed has its own generator, and all rates
        see the same batches.  loss: of a network and these tensors, a scalar.  rate: maps the number of the
        step, from 0, to a factor on the learning rates.  max_norm: each network's gradient is clipped to it.
        first: the generators' first seed.  A second call goes on where the first one ended.
        """
        if self.step == 0:
            self.generators = [torch.Generator().manual_seed(first + seed) for seed in self.seeds]
        gradient = grad_and_value(lambda parameters, data: loss(self.call(parameters), *data))
        gradients = vmap(vmap(gradient, randomness="different"), in_dims=(0, None), randomness="different")
        losses = []
        for _ in range(steps):
            data = [torch.stack(part) for part in zip(*map(batch, self.generators))]    # (seeds, ...) each
            found, value = gradients(self.parameters, tuple(data))
            self._adam(found, rate(self.step) if rate else 1.0, max_norm)
            losses.append(value.detach())
            self.step += 1
        return torch.stack(losses)

    @torch.no_grad()
    def _adam(self, gradients, factor, max_norm):
        step, lead = self.step + 1, (len(self.rates), len(self.seeds))
        if max_norm is not None:
            norm = sum(g.reshape(*lead, -1).square().sum(dim=-1) for g in gradients.values()).sqrt()
            scale = (max_norm / (norm + 1e-6)).clamp(max=1)                          # (rates, seeds)
        for name, weight in self.parameters.items():
            ones = [1] * (weight.dim() - 2)
            g = gradients[name]
            if max_norm is not None:
                g = g * scale.view(*lead, *ones)
            self.mean[name].lerp_(g, 0.1)
            self.square[name].mul_(0.999).addcmul_(g, g, value=0.001)
            root = (self.square[name] / (1 - 0.999 ** step)).sqrt() + 1e-8
            rates = torch.tensor(self.rates, dtype=weight.dtype).view(-1, 1, *ones) * factor
            weight -= rates * self.mean[name] / (1 - 0.9 ** step) / root

    @torch.no_grad()
    def evaluate(self, measure, *data):
        """measure(network, *data), a tensor, for all networks on the same data: (rates, seeds, ...)."""
        one = lambda parameters: measure(self.call(parameters), *data)
        return vmap(vmap(one, randomness="different"), randomness="different")(self.parameters)

    def state(self, rate, seed):
        """The state dict of one trained network."""
        place = self.rates.index(rate), self.seeds.index(seed)
        return {name: weight[place].clone() for name, weight in self.parameters.items()}

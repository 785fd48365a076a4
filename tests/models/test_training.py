"""Label smoothing is torch's; the warm-up is eq. 3 of Vaswani et al. 2017; both loops do the same."""

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_lib.training import fit, label_smoothing_loss, sequence_loss, train, warmup_rate

PAD = 0


def drawn(B, n, vocab):
    torch.manual_seed(B * n)
    targets = torch.randint(1, vocab, (B, n))
    targets[0, n // 2 + 1:] = PAD
    return torch.randn(B, n, vocab, dtype=torch.float64, requires_grad=True), targets


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("B, n, vocab", [(3, 5, 7), (1, 4, 4), (2, 1, 9)])
def test_label_smoothing_is_torchs(B, n, vocab, epsilon):
    logits, targets = drawn(B, n, vocab)
    ours = label_smoothing_loss(logits, targets, epsilon, PAD)
    theirs = F.cross_entropy(logits.transpose(1, 2), targets, ignore_index=PAD, label_smoothing=epsilon)
    assert ours.shape == () and torch.allclose(ours, theirs)
    (got,), (wanted,) = torch.autograd.grad(ours, logits), torch.autograd.grad(theirs, logits)
    assert torch.allclose(got, wanted)


def test_without_smoothing_it_is_the_loss_of_lesson_03():
    logits, targets = drawn(3, 5, 7)
    smoothed = label_smoothing_loss(logits, targets, 0.0, PAD)
    assert torch.allclose(smoothed, sequence_loss(logits, targets, PAD))


def test_the_best_smoothed_logits_give_the_smoothed_shares():
    vocab, epsilon = 5, 0.1
    shares = torch.full((vocab,), epsilon / vocab)
    shares[2] += 1 - epsilon
    logits = shares.log()[None, None].requires_grad_()
    label_smoothing_loss(logits, torch.tensor([[2]]), epsilon, PAD).backward()
    assert logits.grad.abs().max() < 1e-6


def test_warm_up_climbs_in_a_line_and_falls_as_one_over_the_root():
    rates = [warmup_rate(step, 512, 4000) for step in range(1, 16001)]
    assert max(range(16000), key=rates.__getitem__) == 3999
    assert rates[0] == pytest.approx(512 ** -0.5 * 4000 ** -1.5)
    assert rates[1999] == pytest.approx(rates[3999] / 2) and rates[15999] == pytest.approx(rates[3999] / 2)
    assert rates[3999] == pytest.approx(7e-4, rel=0.01)                 # the paper's own summit
    assert warmup_rate(10, 64, 20) == pytest.approx(2 * warmup_rate(10, 256, 20))


@pytest.mark.parametrize("max_norm", [0.05, 0.5, 100.0])
def test_the_loop_for_any_model_is_the_one_of_lesson_01(max_norm):
    """`fit` counts its steps from 0, takes its rate as a factor, and clips by the course's own function."""
    torch.manual_seed(0)
    first, data = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(12, 5, 4)
    second = copy.deepcopy(first)

    def loss(model, batch):
        return (model(batch[:, :3]) - batch[:, 3:]).pow(2).mean()
    one = train(first, iter(data), torch.optim.Adam(first.parameters()),
                lambda step: 0.1 * warmup_rate(step, 4, 5), loss, max_norm)
    two = fit(second, lambda step: loss(second, data[step]), 12, lr=0.1, max_norm=max_norm,
              rate=lambda step: warmup_rate(step + 1, 4, 5))
    assert one == pytest.approx(two, rel=1e-4) and all(isinstance(number, float) for number in one)
    for left, right in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)


def test_the_loop_sets_every_group_and_trains_in_training_mode():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)).eval()
    optimizer = torch.optim.SGD([{"params": part.parameters(), "lr": 9.0} for part in model])
    modes = []

    def loss(model, batch):
        modes.append([part.training for part in model.modules()])
        return model(batch).sum()
    train(model, [torch.ones(1, 2)] * 3, optimizer, lambda step: step / 10, loss, 1.0)
    assert [group["lr"] for group in optimizer.param_groups] == [0.3, 0.3]
    assert modes == [[True] * 3] * 3

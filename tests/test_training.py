"""Label smoothing is torch's; the warm-up is eq. 3 of Vaswani et al. 2017."""

import pytest
import torch
from torch.nn import functional as F

from course_lib.training import label_smoothing_loss, sequence_loss, warmup_rate

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

"""The Transformers that ours is timed against give the same numbers, so that the race is fair."""

import pytest
import torch

from course_tools.benchmarks import transformer


@pytest.fixture(scope="module")
def same():
    """Three models with the weights of ours, without dropout: it would differ from run to run."""
    torch.manual_seed(0)
    return transformer.models(dropout=0.0)


@pytest.mark.parametrize("name", ["torch.nn.Transformer", "Annotated manner"])
@pytest.mark.parametrize("mode", [True, False], ids=["train", "eval"])
@pytest.mark.filterwarnings("ignore:.*nested tensor")
def test_the_logits_are_equal(same, name, mode):
    src, tgt = transformer.batch(5, 9)
    assert (src == 0).any() and not (src == 0).all(dim=1).any()
    with torch.no_grad():
        assert (same[name].train(mode)(src, tgt) - same["ours"].train(mode)(src, tgt)).abs().max() < 1e-4


@pytest.mark.parametrize("name", ["torch.nn.Transformer", "Annotated manner"])
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.filterwarnings("ignore:.*nested tensor")
def test_greedy_writing_gives_the_same_words(same, name, size):
    src, _ = transformer.batch(size, 9)
    theirs, ours = (transformer.greedy(same[each].eval(), src, 12) for each in (name, "ours"))
    assert theirs.shape == (size, 12) and torch.equal(theirs, ours)


def test_the_products_are_counted_as_torch_counts_them(same):
    from torch.utils.flop_counter import FlopCounterMode
    src, tgt = transformer.batch()
    with FlopCounterMode(display=False) as counter:
        same["ours"].train()(src, tgt).sum().backward()
    assert counter.get_total_flops() == pytest.approx(transformer.products(*src.shape), rel=0.02)


def test_the_bench_prints_every_race(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench", "--rounds", "1"])
    for name, value in {"BATCH": 2, "LENGTH": 4}.items():
        monkeypatch.setattr(transformer, name, value)
    monkeypatch.setattr(transformer, "race", lambda works, rounds: dict.fromkeys(works, 0.5))
    transformer.main()
    printed = capsys.readouterr().out
    assert printed.count("times torch.nn.Transformer") == 12 and printed.count("goal") == 4


@pytest.mark.filterwarnings("ignore:.*nested tensor")
def test_fast_products_may_round_but_give_about_the_same(same):
    other = transformer.models()["ours"]
    assert transformer.largest_difference(same["ours"], same["torch.nn.Transformer"]) < 0.1
    assert transformer.largest_difference(same["ours"], other) > 0.1


def test_what_follows_a_work_of_another_precision_is_float32_again():
    seen = []

    def broken():
        seen.append(torch.get_float32_matmul_precision())
        raise ValueError

    with pytest.raises(ValueError):
        transformer.at(transformer.FAST, broken)
    assert [*seen, torch.get_float32_matmul_precision()] == ["medium", "highest"]

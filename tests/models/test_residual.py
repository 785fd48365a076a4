"""The residual networks are torch's layers and a sum, to 1e-5; products and paths are autograd's."""

import doctest
import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import jacrev

from course_lib.data import toy
from course_lib.models.residual import (
    PlainNet,
    ResidualBlock,
    ResidualNet,
    block,
    normalise,
    path_counts,
    path_gradients,
    residual_forward,
    residual_gradient,
    sublayer,
)

CLOSE = {"rtol": 0, "atol": 1e-5}
SIZES = [(2, 5), (1, 5), (2, 3, 5), (5, 5), (5,)]    # shapes of x, d = 5


def layers(net):
    """torch's own layers with the weights of ours, each ReLU then Linear."""
    found = []
    for W, b in zip(net.W, net.b, strict=True):
        linear = nn.Linear(*W.shape)
        with torch.no_grad():
            linear.weight.copy_(W.T)
            linear.bias.copy_(b)
        found.append(nn.Sequential(nn.ReLU(), linear))
    return found


@pytest.mark.parametrize("shape", SIZES)
def test_a_plain_net_is_torchs_layers_in_a_row(shape):
    torch.manual_seed(0)
    net, x = PlainNet(4, d=5, classes=3), torch.randn(shape)
    torch.testing.assert_close(net(x), net.out(nn.Sequential(*layers(net))(x)), **CLOSE)


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_a_residual_net_adds_each_layer_to_its_input(shape, scale):
    torch.manual_seed(1)
    net, x = ResidualNet(4, d=5, classes=3, scale=scale), torch.randn(shape)
    y = x
    for layer in layers(net):
        y = y + scale * layer(y)
    torch.testing.assert_close(net(x), net.out(y), **CLOSE)


@pytest.mark.parametrize("order", ["post", "pre"])
def test_the_norm_is_torchs_in_either_place(order):
    torch.manual_seed(2)
    net, x = ResidualNet(3, d=6, classes=4, order=order), torch.randn(2, 5, 6)
    norm = nn.LayerNorm(6)
    y = x
    for layer in layers(net):
        y = norm(y + layer(y)) if order == "post" else y + layer(norm(y))
    torch.testing.assert_close(net(x), net.out(norm(y) if order == "pre" else y), **CLOSE)


@pytest.mark.parametrize("order", ["post", "pre"])
def test_a_sublayer_equals_torchs_encoder_layer_around_the_feed_forward(order):
    torch.manual_seed(3)
    theirs = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, norm_first=order == "pre", batch_first=True)
    x = torch.randn(2, 5, 8)
    mixed = sublayer(x, lambda x: theirs.self_attn(x, x, x)[0], theirs.norm1, order)
    fed = lambda x: theirs.linear2(torch.relu(theirs.linear1(x)))
    torch.testing.assert_close(sublayer(mixed, fed, theirs.norm2, order), theirs(x), **CLOSE)


def test_an_unknown_order_or_initialisation_is_named_with_the_choices():
    with pytest.raises(ValueError, match="'middle'.*'post' or 'pre'"):
        sublayer(torch.ones(2), torch.relu, normalise, "middle")
    with pytest.raises(ValueError, match="'xavier'.*'default' or 'he'"):
        PlainNet(2, init="xavier")


def test_plain_and_residual_have_the_same_parameters():
    torch.manual_seed(4)
    plain = PlainNet(6)
    torch.manual_seed(4)
    residual = ResidualNet(6)
    assert residual.state_dict().keys() == plain.state_dict().keys()
    assert all(torch.equal(a, b) for a, b in zip(plain.parameters(), residual.parameters(), strict=True))
    assert sum(p.numel() for p in ResidualNet(6, order="pre").parameters()) == 6 * (64 * 64 + 64) + 650


def test_weights_start_where_torchs_start():
    torch.manual_seed(5)
    net, linear = PlainNet(20, d=64), nn.Linear(64, 64)
    assert net.W.abs().max() <= 1 / 8 and net.b.abs().max() <= 1 / 8
    assert net.W.std().item() == pytest.approx(linear.weight.std().item(), rel=0.03)
    he = PlainNet(20, d=64, init="he")
    assert he.W.std().item() == pytest.approx(math.sqrt(2 / 64), rel=0.02) and not he.b.any()


def test_states_are_every_layer_and_nothing_is_kept():
    torch.manual_seed(6)
    for net in (PlainNet(3, d=4), ResidualNet(3, d=4), ResidualNet(3, d=4, order="pre")):
        x = torch.randn(2, 4)
        before = x.clone()
        states = net.states(x)
        assert len(states) == 4 and states[0] is x and torch.equal(x, before)
        assert torch.equal(net.read(states[-1]), net(x))


def test_a_block_left_out_is_passed_by():
    torch.manual_seed(7)
    x = torch.randn(2, 4)
    for kind in (PlainNet, ResidualNet):
        net = kind(3, d=4)
        first, _, third = net.blocks()
        y = x
        for f in (first, third):
            y = f(y) if kind is PlainNet else y + f(y)
        torch.testing.assert_close(net(x, without={1}), net.out(y))
        assert torch.equal(net(x, without={0, 1, 2}), net.out(x))


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_the_product_is_autograds(depth):
    torch.manual_seed(8)
    net, x = ResidualNet(depth, d=4).double(), torch.randn(4).double()
    jacobians = [jacrev(f)(state) for f, state in zip(net.blocks(), net.states(x), strict=False)]
    whole = jacrev(lambda x: residual_forward(x, net.blocks())[-1])(x)
    torch.testing.assert_close(residual_gradient(jacobians), whole)
    torch.testing.assert_close(path_gradients(jacobians).sum(dim=0), whole)


def test_the_parts_by_length_are_the_sums_over_the_paths():
    torch.manual_seed(9)
    jacobians = list(torch.randn(5, 3, 3).double())
    parts, counts = torch.zeros(6, 3, 3).double(), [0] * 6
    for taken in itertools.product([False, True], repeat=5):
        path = torch.eye(3).double()
        for J, through in zip(jacobians, taken, strict=True):
            path = J @ path if through else path
        parts[sum(taken)] += path
        counts[sum(taken)] += 1
    torch.testing.assert_close(path_gradients(jacobians), parts)
    assert path_counts(5) == counts


@pytest.mark.parametrize("n", [0, 1, 2, 10, 64])
def test_the_paths_add_up(n):
    counts = path_counts(n)
    assert len(counts) == n + 1 and sum(counts) == 2 ** n and counts == counts[::-1]


def test_minus_the_identity_cancels_the_skip():
    J = jacrev(lambda x: x + block(x, -torch.eye(3), torch.zeros(3)))(torch.tensor([2.0, -1.0, 0.5]))
    assert torch.equal(J, torch.diag(torch.tensor([0.0, 1.0, 0.0])))


def test_normalise_is_layer_norm_without_gain_and_shift():
    x = torch.randn(2, 3, 7)
    torch.testing.assert_close(normalise(x), nn.LayerNorm(7, elementwise_affine=False)(x))
    torch.testing.assert_close(normalise(3 * x), F.layer_norm(x, (7,)), rtol=0, atol=1e-4)


# ---------------------------------------------------------------- the pictures

def test_a_glyph_is_its_digit_in_one_of_four_places():
    X, y = toy.glyphs(torch.Generator().manual_seed(0), 400, noise=0.0)
    assert X.shape == (400, 64) and set(y.tolist()) == set(range(10))
    seen = {(digit, toy.show_glyph(picture)) for picture, digit in zip(X, y.tolist(), strict=True)}
    assert len(seen) == len({picture for _, picture in seen}) == 40
    one = [picture for digit, picture in seen if digit == 1]
    assert any(picture.split("\n")[:2] == ["···#····", "··##····"] for picture in one)


def test_glyphs_repeat_and_noise_is_as_large_as_asked():
    draw = lambda noise: toy.glyphs(torch.Generator().manual_seed(3), 500, noise)[0]
    assert torch.equal(draw(0.3), draw(0.3))
    assert (draw(0.3) - draw(0.0)).std().item() == pytest.approx(0.3, rel=0.03)


def test_the_example_of_glyphs_is_what_it_gives():
    found = doctest.DocTestFinder().find(toy.glyphs, "glyphs", globs=vars(toy).copy())
    assert sum(doctest.DocTestRunner().run(test).failed for test in found) == 0 and found[0].examples


@pytest.mark.parametrize("order", ["post", "pre"])
def test_a_residual_block_is_the_second_half_of_torchs_encoder_layer(order):
    torch.manual_seed(3)
    theirs = nn.TransformerEncoderLayer(6, 2, 10, dropout=0.0, norm_first=order == "pre", batch_first=True)
    ours, X = ResidualBlock(6, 10, order, 0.3).eval(), torch.randn(2, 5, 6)
    for mine, other in ((ours.W_1, theirs.linear1), (ours.W_2, theirs.linear2), (ours.norm, theirs.norm2)):
        nn.init.normal_(other.bias)
        mine.load_state_dict(other.state_dict())
    nn.init.normal_(theirs.norm2.weight)
    ours.norm.load_state_dict(theirs.norm2.state_dict())
    nn.init.zeros_(theirs.self_attn.out_proj.weight)
    nn.init.zeros_(theirs.self_attn.out_proj.bias)
    given = X if order == "pre" else theirs.norm1(X)
    torch.testing.assert_close(ours(given), theirs(X), **CLOSE)


def test_dropout_hits_the_branch_alone_and_only_in_training():
    torch.manual_seed(4)
    block, X = ResidualBlock(6, 10, "pre", 0.4), torch.randn(1, 6).expand(20_000, 6)
    change = block.eval()(X[:1]) - X[:1]
    found = (block.train()(X) - X) / change
    kept = found.abs() > 0.5
    torch.testing.assert_close(found[kept], torch.full_like(found[kept], 1 / 0.6), rtol=1e-3, atol=1e-3)
    assert found[~kept].abs().max() < 1e-3 and abs(kept.float().mean() - 0.6) < 0.02

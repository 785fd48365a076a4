"""Exercise 07: the residual path, its gradient, norms beside it, the paths through it; a block, and a stack."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models import residual

from ..judging.draw import decimal, different, whole
from ..judging.spec import Item, normal

IN_CODE, IN_NORM = "From formula to code", "The norm: after the sum or inside the branch"
IN_PATHS = "Many short paths"


def _layer(generator, d, dtype, scale=0.6):
    """A block, x -> tanh(x) W + b, as numbers: the probe makes the function of them."""
    return {"function": "layer", "W": normal(generator, d, d, scale=scale, dtype=dtype),
            "b": normal(generator, d, scale=0.5, dtype=dtype)}


# ---------------------------------------------------------------- residual_forward

def _forward_inputs(generator):
    def draw(L, *shape, dtype=torch.float32):
        return {"x": normal(generator, *shape, dtype=dtype),
                "blocks": [_layer(generator, shape[-1], dtype) for _ in range(L)]}
    def usual(shape, **how):
        return draw(whole(generator, 3, 6), *shape, **how)
    equal = whole(generator, 3, 6)
    return [usual(different(generator, 2)), usual(different(generator, 2), dtype=torch.float64), draw(equal, equal, equal),
            usual([1, *different(generator, 2)]), draw(1, *different(generator, 2))]


residual_forward = Item("residual_forward", 2, _forward_inputs, residual.residual_forward,
                        ("states, a list of L + 1 tensors", ), IN_CODE, probe="functions")


def _states(x, blocks, step):
    """The list that step(states, f, number) grows by one tensor a block."""
    states = [x]
    for number, f in enumerate(blocks):
        states.append(step(states, f, number))
    return states


@residual_forward.mistake("The skip connection is missing: each block returns f(x) alone. Add the block's input: x + f(x).")
def f_alone(x, blocks):
    return _states(x, blocks, lambda states, f, _: f(states[-1]))


@residual_forward.mistake("Every skip connection starts at the first input. Add the input of THIS block, not x_0.")
def skip_from_the_first(x, blocks):
    return _states(x, blocks, lambda states, f, _: states[0] + f(states[-1]))


@residual_forward.mistake("Every block is given the first input. Block l takes the output of the block before it.")
def blocks_read_the_first(x, blocks):
    return _states(x, blocks, lambda states, f, _: states[-1] + f(states[0]))


@residual_forward.mistake("x is added twice. It should be x + f(x), with one x.")
def skip_twice(x, blocks):
    return _states(x, blocks, lambda states, f, _: 2 * states[-1] + f(states[-1]))


@residual_forward.mistake("f(x) is added twice. It should be x + f(x), with one f(x).")
def block_twice(x, blocks):
    return _states(x, blocks, lambda states, f, _: states[-1] + 2 * f(states[-1]))


@residual_forward.mistake("f is applied to its own result, x + f(f(x)). Call each block once.")
def block_of_block(x, blocks):
    return _states(x, blocks, lambda states, f, _: states[-1] + f(f(states[-1])))


@residual_forward.mistake("All earlier states are added, not only the last one. The skip connection spans one block: x_l + f(x_l).")
def all_earlier_states(x, blocks):
    return _states(x, blocks, lambda states, f, _: sum(states) + f(states[-1]))


@residual_forward.mistake("x is multiplied by f(x). The skip connection is a sum.")
def multiplied(x, blocks):
    return _states(x, blocks, lambda states, f, _: states[-1] * f(states[-1]))


@residual_forward.mistake("f(x) is subtracted: it is x + f(x).")
def subtracted(x, blocks):
    return _states(x, blocks, lambda states, f, _: states[-1] - f(states[-1]))


@residual_forward.mistake("x is changed in place (x += ... or x.add_), so the caller's tensor is overwritten and the list holds one tensor L + 1 times. Write x = x + f(x).")
def changes_x_in_place(x, blocks):
    states = [x]
    for f in blocks:
        x += f(x)
        states.append(x)
    return states


@residual_forward.mistake("The list holds one tensor L + 1 times, because it is changed in place. Make a new one: x = x + f(x).")
def one_tensor_in_place(x, blocks):
    x = x.clone()
    states = [x]
    for f in blocks:
        x += f(x)
        states.append(x)
    return states


@residual_forward.mistake("x itself is missing: the list begins with the input and has L + 1 entries for L blocks.")
def x_not_included(x, blocks):
    return residual.residual_forward(x, blocks)[1:]


@residual_forward.mistake("The last output is missing: the list has L + 1 entries for L blocks.")
def last_not_included(x, blocks):
    return residual.residual_forward(x, blocks)[:-1]


@residual_forward.mistake("Only the last output is returned. Return a list of all of them, x included.")
def only_the_last(x, blocks):
    return residual.residual_forward(x, blocks)[-1]


@residual_forward.mistake("The blocks are applied from the last to the first. blocks[0] comes first.")
def blocks_reversed(x, blocks):
    return residual.residual_forward(x, blocks[::-1])


@residual_forward.mistake("The list is in reversed order: it begins with x and ends with the last output.")
def list_reversed(x, blocks):
    return residual.residual_forward(x, blocks)[::-1]


@residual_forward.mistake("The outputs are stacked into one tensor. Return them as a list.")
def one_stack(x, blocks):
    return torch.stack(residual.residual_forward(x, blocks))


@residual_forward.mistake("The list holds the blocks' outputs f(x) without the skip connection, although the next block is given the sum. Put the sum x + f(x) into the list.")
def outputs_without_skip(x, blocks):
    states = residual.residual_forward(x, blocks)
    return [x, *(f(state) for f, state in zip(blocks, states, strict=False))]


# ---------------------------------------------------------------- residual_gradient

def _gradient_inputs(generator):
    def draw(L, d, dtype=torch.float32):
        return {"jacobians": [normal(generator, d, d, scale=0.6, dtype=dtype) for _ in range(L)]}
    return [draw(*different(generator, 2, 3, 6)), draw(*different(generator, 2, 2, 6), torch.float64),
            draw(*[whole(generator, 3, 5)] * 2), draw(1, whole(generator, 3, 7)), draw(*different(generator, 2, 2, 6))]


residual_gradient = Item("residual_gradient", 2, _gradient_inputs, residual.residual_gradient,
                         ("gradient (d, d)",), IN_CODE)


def _eye(J):
    return torch.eye(J.size(-1), dtype=J.dtype)


def _product(matrices):
    """The last one leftmost."""
    product = _eye(matrices[0])
    for matrix in matrices:
        product = matrix @ product
    return product


@residual_gradient.mistake("The skip connections are missing: this is the product of the J alone. Each factor is I + J.")
def plain_product(jacobians):
    return _product(jacobians)


@residual_gradient.mistake("The order is reversed. The last block's factor is leftmost: (I + J_L) ... (I + J_1).")
def order_reversed(jacobians):
    return _product([_eye(J) + J for J in jacobians][::-1])


@residual_gradient.mistake("I is added once, to the product of the J. Every block has a skip connection of its own: multiply the (I + J).")
def identity_plus_product(jacobians):
    return _eye(jacobians[0]) + _product(jacobians)


@residual_gradient.mistake("I is added once, to the product of the J in the wrong order. Every block has a skip connection of its own: multiply the (I + J), the last block leftmost.")
def identity_plus_product_reversed(jacobians):
    return _eye(jacobians[0]) + _product(jacobians[::-1])


@residual_gradient.mistake("The terms are added instead of multiplied: I + J_1 + ... + J_L leaves out every path through two or more blocks.")
def first_order(jacobians):
    return _eye(jacobians[0]) + sum(jacobians)


@residual_gradient.mistake("The factors I + J are added. The chain rule multiplies them.")
def sum_of_factors(jacobians):
    return sum(_eye(J) + J for J in jacobians)


@residual_gradient.mistake("The matrices are multiplied element by element (*). The chain rule needs the matrix product (@).")
def elementwise(jacobians):
    product = torch.ones_like(jacobians[0])
    for J in jacobians:
        product = product * (_eye(J) + J)
    return product


@residual_gradient.mistake("1 is added to every entry (J + 1). The Jacobian of the skip connection is the identity matrix, torch.eye(d).")
def ones_for_identity(jacobians):
    return _product([1 + J for J in jacobians])


@residual_gradient.mistake("The first block is left out.")
def first_left_out(jacobians):
    return _product([_eye(jacobians[0]), *(_eye(J) + J for J in jacobians[1:])])


@residual_gradient.mistake("The last block is left out.")
def last_left_out(jacobians):
    return _product([_eye(jacobians[0]), *(_eye(J) + J for J in jacobians[:-1])])


@residual_gradient.mistake("The result is transposed. Entry [i, j] is d x_L[i] / d x_0[j], and no J needs transposing.")
def transposed(jacobians):
    return residual.residual_gradient(jacobians).T


@residual_gradient.mistake("Every J is transposed before the product. J[i, j] is already d f[i] / d x[j], so use it as it is.")
def each_transposed(jacobians):
    return _product([_eye(J) + J.T for J in jacobians])


@residual_gradient.mistake("The factors are I - J. The block is added to the skip connection, so the factor is I + J.")
def minus(jacobians):
    return _product([_eye(J) - J for J in jacobians])


@residual_gradient.mistake("This is the norm of the gradient. Return the matrix itself, (d, d).")
def its_norm(jacobians):
    return residual.residual_gradient(jacobians).norm()


# ---------------------------------------------------------------- sublayer

def _sublayer_inputs(generator):
    def draw(order, *shape, dtype=torch.float32):
        d = shape[-1]
        return {"x": normal(generator, *shape, scale=1.5, dtype=dtype), "f": _layer(generator, d, dtype),
                "norm": {"function": "norm", "gamma": 1 + normal(generator, d, scale=0.4, dtype=dtype),
                         "beta": normal(generator, d, scale=0.4, dtype=dtype)}, "order": order}
    def shape(axes):
        return different(generator, axes, low=3)
    equal = whole(generator, 3, 6)
    return [draw("post", *shape(3)), draw("pre", 1, *shape(2)), draw("pre", *shape(2), dtype=torch.float64),
            draw("post", 1, *shape(1)), draw("post", *shape(3), dtype=torch.float64), draw("pre", *[equal] * 3)]


sublayer = Item("sublayer", 2, _sublayer_inputs, residual.sublayer, ("y (..., d)",), IN_NORM, probe="functions")


def _post(x, f, norm):
    return norm(x + f(x))


def _pre(x, f, norm):
    return x + f(norm(x))


def _mistaken(sentence, post=_post, pre=_pre):
    """Name a mistake with another formula for one order, or for both."""
    def register(name):
        def answer(x, f, norm, order):
            return (post if order == "post" else pre)(x, f, norm)
        answer.__name__ = name
        sublayer.mistake(sentence)(answer)
    return register


_mistaken("'post' and 'pre' are swapped: 'post' is norm(x + f(x)), 'pre' is x + f(norm(x)).", _pre, _post)("swapped")
_mistaken("'pre' gives the post-norm formula. With 'pre' the norm is applied to the input of f: x + f(norm(x)).",
          pre=_post)("always_post")
_mistaken("'post' gives the pre-norm formula. With 'post' the norm is applied to the sum: norm(x + f(x)).", post=_pre)("always_pre")
_mistaken("With 'pre' the skip connection is normalised as well. Add x itself, x + f(norm(x)), to keep the residual path unchanged.",
          pre=lambda x, f, norm: norm(x) + f(norm(x)))("norm_on_the_skip")
_mistaken("With 'post' only f(x) is normalised. The norm is applied to the whole sum: norm(x + f(x)).",
          post=lambda x, f, norm: norm(f(x)) + x)("norm_of_f_only")
_mistaken("With 'pre' the norm comes after f, x + norm(f(x)). It comes before: x + f(norm(x)).",
          pre=lambda x, f, norm: x + norm(f(x)))("norm_behind_f")
_mistaken("Both orders give x + norm(f(x)). 'post' is norm(x + f(x)), 'pre' is x + f(norm(x)).",
          lambda x, f, norm: x + norm(f(x)), lambda x, f, norm: x + norm(f(x)))("norm_behind_f_twice")
_mistaken("With 'post' each term is normalised separately, norm(x) + norm(f(x)). Add first, then normalise once.",
          post=lambda x, f, norm: norm(x) + norm(f(x)))("norm_of_each_term")
_mistaken("With 'post' both x and the sum are normalised. f is given x itself: norm(x + f(x)).",
          post=lambda x, f, norm: norm(x + f(norm(x))))("post_norms_twice")
_mistaken("With 'pre' the sum is normalised as well. With 'pre' there is only one norm, before f.",
          pre=lambda x, f, norm: norm(x + f(norm(x))))("pre_norms_twice")
_mistaken("With 'post' the skip connection is missing: norm(f(x)) lacks the x inside the norm.",
          post=lambda x, f, norm: norm(f(x)))("post_without_skip")
_mistaken("With 'pre' the skip connection is missing: f(norm(x)) lacks the x in front.",
          pre=lambda x, f, norm: f(norm(x)))("pre_without_skip")
_mistaken("The skip connection is missing in both orders. Add x, inside the norm for 'post', outside for 'pre'.",
          lambda x, f, norm: norm(f(x)), lambda x, f, norm: f(norm(x)))("no_skip")
_mistaken("The norm is missing in both orders: this is x + f(x).",
          lambda x, f, norm: x + f(x), lambda x, f, norm: x + f(x))("no_norm")
_mistaken("With 'post' the norm is missing. It should be norm(x + f(x)).", post=lambda x, f, norm: x + f(x))("post_without_norm")
_mistaken("With 'pre' the norm is missing. It should be x + f(norm(x)).", pre=lambda x, f, norm: x + f(x))("pre_without_norm")


@sublayer.mistake("The norm you were given is not used. Call norm(...), which has its own gamma and beta.")
def own_norm(x, f, norm, order):
    return residual.sublayer(x, f, lambda z: F.layer_norm(z, z.shape[-1:]), order)


# ---------------------------------------------------------------- path_counts

def _count_inputs(generator):
    numbers = [*different(generator, 3, 2, 13), whole(generator, 13, 18), 0, 1]    # 2^n paths can be tried
    return [{"n_blocks": n} for n in numbers]


path_counts = Item("path_counts", 1, _count_inputs, residual.path_counts, ("counts, a list of n + 1 numbers",), IN_PATHS,
                   gradients=False,
                   properties=((lambda trial, counts: sum(counts) == 2 ** trial["n_blocks"],
                                "The counts must add up to 2^n: every path takes or skips each of n blocks."),))


@path_counts.mistake("2^n is the number of all paths together. Return how many there are of each length, a list of n + 1 counts.")
def all_together(n_blocks):
    return 2 ** n_blocks


@path_counts.mistake("2^n is the number of all paths together. The list has one count for each length, 0 to n.")
def all_together_in_a_list(n_blocks):
    return [2 ** n_blocks]


@path_counts.mistake("2^k is the number of paths of any length through k blocks. Count the paths of length k through n blocks.")
def powers_of_two(n_blocks):
    return [2 ** length for length in range(n_blocks + 1)]


@path_counts.mistake("There is one entry too few: the path of length 0, which skips every block, counts too.")
def without_length_0(n_blocks):
    return residual.path_counts(n_blocks)[1:]


@path_counts.mistake("There is one entry too few: the path of length n, through every block, counts too (range ends before its end).")
def without_length_n(n_blocks):
    return residual.path_counts(n_blocks)[:-1]


@path_counts.mistake("These are the counts for one block more. Choose from n_blocks, not from n_blocks + 1.")
def one_block_more(n_blocks):
    return residual.path_counts(n_blocks + 1)


@path_counts.mistake("These are the counts for n + 1 blocks, cut off after n + 1 entries. Choose from n_blocks.")
def chosen_from_one_more(n_blocks):
    return [math.comb(n_blocks + 1, length) for length in range(n_blocks + 1)]


@path_counts.mistake("These are running sums. Entry k counts the paths of length k, not of length at most k.")
def running_sums(n_blocks):
    counts = residual.path_counts(n_blocks)
    return [sum(counts[:length + 1]) for length in range(n_blocks + 1)]


@path_counts.mistake("These are fractions. Return the counts themselves.")
def shares(n_blocks):
    return [count / 2 ** n_blocks for count in residual.path_counts(n_blocks)]


@path_counts.mistake("Here the order of the blocks counts. A path takes or skips each block in their fixed order: count combinations, not permutations.")
def permutations(n_blocks):
    return [math.perm(n_blocks, length) for length in range(n_blocks + 1)]


@path_counts.mistake("Each length is counted once. There are n ways to go through exactly one block, and more for two.")
def one_of_each(n_blocks):
    return [1] * (n_blocks + 1)


@path_counts.mistake("This is length times count. Return the counts alone.")
def times_length(n_blocks):
    return [length * count for length, count in enumerate(residual.path_counts(n_blocks))]


# ---------------------------------------------------------------- ResidualBlock

COPIES = 8  # of each row in eval mode: results drawn at random do not agree by chance
ROWS = 4000  # equal rows in training: each possible outcome of dropout is met many times


def _block_inputs(generator):
    def draw(order, d, d_ff, p, shape, dtype=torch.float32):
        state = {"W_1.weight": normal(generator, d_ff, d, scale=0.7, dtype=dtype), "W_1.bias": normal(generator, d_ff, scale=0.5, dtype=dtype),
                 "W_2.weight": normal(generator, d, d_ff, scale=0.7, dtype=dtype), "W_2.bias": normal(generator, d, scale=0.5, dtype=dtype),
                 "norm.weight": 1 + normal(generator, d, scale=0.4, dtype=dtype), "norm.bias": normal(generator, d, scale=0.4, dtype=dtype)}
        row, *others = (normal(generator, *sizes, scale=1.5, dtype=dtype) for sizes in ([1, d], [*shape, d], [*shape, d]))
        often = [torch.cat([x] * COPIES) for x in others]               # in eval mode all copies give the same
        calls = [("eval", often[:1]), ("train", [row.expand(ROWS, d).clone()]), ("eval", often[1:])]
        return {"arguments": [d, d_ff, order, p], "state": state, "calls": calls, "reads": list(state), "whole": True}

    def trial(order, axes, **how):
        while True:
            d_ff, *shape = different(generator, 1 + axes, low=4) if axes else (3, 3)         # sizes that are equal
            found = draw(order, 3, d_ff, decimal(generator, 0.3, 0.42), shape, **how)
            if _told_apart(found):
                return found
    return [trial("pre", 2), trial("post", 2), trial("post", 1, dtype=torch.float64), trial("pre", 0), trial("post", 2)]


def _right_outcomes(trial):
    """What each of the 2^d ways to drop features gives for the row of the training call, (2^d, d)."""
    (d, d_ff, order, p), row = trial["arguments"], trial["calls"][1][1][0][:1]
    block = residual.ResidualBlock(d, d_ff, order, p).to(row.dtype).eval()
    block.load_state_dict(trial["state"])
    kept = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=row.dtype)] * d) / (1 - p)
    with torch.no_grad():
        return residual.sublayer(row, lambda x: block.branch(x) * kept, block.norm, order)


def _key(rows):
    """One number for each row, by which rows are sorted."""
    return rows.double() @ torch.tensor([1.0, 2 ** 0.5, 3 ** 0.5], dtype=torch.float64)


def _told_apart(trial):
    """Whether all outcomes differ clearly, also from those with other scales and places for the dropout."""
    outcomes = _right_outcomes(trial)
    keys = _key(outcomes).sort().values
    return bool(keys.diff().min() > 0.02)


def _outcomes(rows):
    """The different rows of (ROWS, 3), sorted by `_key`; where they are more than 2^3, some are too rare to be met."""
    rows = rows[_key(rows).argsort()]
    first = torch.cat([torch.tensor([True]), _key(rows).diff() > 1e-3])
    return rows[first] if first.sum() <= 8 else "more than 8 different rows"


def _seen(trial, output):
    """A block's results with the training call's as its different rows, and how many of them are not changed."""
    if not (isinstance(output, list) and isinstance(output[1], torch.Tensor) and output[1].shape == (ROWS, 3)):
        return output
    rows, p = output[1], trial["arguments"][3]
    nothing = _right_outcomes(trial)[0].to(rows.dtype)
    share = torch.isclose(rows, nothing, 1e-4, 1e-4).all(dim=1).double().mean().item()
    usual = 0.5 < share / p ** 3 < 1.7    # 1 if right; no named mistake comes near to either bound
    return [_steady(output[0]), _outcomes(rows), _steady(output[2]), *output[3:], usual]


def _steady(output):
    """A result in eval mode, if it is the same for all copies in the batch."""
    steady = isinstance(output, torch.Tensor) and len(set(map(tuple, output.flatten(1).tolist()))) * COPIES <= len(output)
    return output if steady else "drawn at random"


ResidualBlock = Item(
    "ResidualBlock", 3, _block_inputs, residual.ResidualBlock,
    ("output in eval mode (B, n, d)", "training_outcomes (outcomes, d)",
     "output in eval mode, called again (B, n, d)", "W_1.weight", "W_1.bias", "W_2.weight", "W_2.bias", "norm.weight",
     "norm.bias", "takes_gradients, a list of names", "'the whole branch is dropped in a share dropout ** d of the rows'"),
    IN_NORM, uses=("sublayer",), kind="transfer", probe="build", view=_seen, gradients=False)


class _Parts(residual.ResidualBlock):
    """The right one in its parts; each mistake below exchanges one of them."""

    def inner(self, x):
        return self.W_2(torch.relu(self.W_1(x)))

    def drop(self, x):
        return self.dropout(x)

    def post(self, x):
        return self.norm(x + self.drop(self.inner(x)))

    def pre(self, x):
        return x + self.drop(self.inner(self.norm(x)))

    def forward(self, x):
        return self.post(x) if self.order == "post" else self.pre(x)


def _mistaken_block(name, sentence, **methods):
    """Name a mistake by the methods that it exchanges."""
    ResidualBlock.mistake(sentence)(type(name, (_Parts,), methods))


_mistaken_block("orders_exchanged", "'post' and 'pre' are exchanged: 'post' is norm(x + drop(f(x))), 'pre' is x + drop(f(norm(x))).",
                forward=lambda self, x: self.pre(x) if self.order == "post" else self.post(x))
_mistaken_block("block_always_post", "The argument order is not used: the norm always comes after the sum. With 'pre' it stands before W_1, inside the branch.",
                pre=_Parts.post)
_mistaken_block("block_always_pre", "The argument order is not used: the norm always stands before W_1. With 'post' it comes after the sum.",
                post=_Parts.pre)
_mistaken_block("block_norm_on_the_skip", "With 'pre' the skip connection is normalised as well. Add x as it came in, so that the residual path stays free.",
                pre=lambda self, x: self.norm(x) + self.drop(self.inner(self.norm(x))))
_mistaken_block("block_norm_of_the_branch", "With 'post' only the branch is normalised, x + norm(drop(f(x))). The norm is applied to the sum.",
                post=lambda self, x: x + self.norm(self.drop(self.inner(x))))
_mistaken_block("dropout_on_the_sum", "Dropout is applied to the whole sum, so parts of x are lost too. It belongs on the branch, before x is added.",
                post=lambda self, x: self.norm(self.drop(x + self.inner(x))), pre=lambda self, x: self.drop(x + self.inner(self.norm(x))))
_mistaken_block("dropout_after_the_norm", "With 'post' dropout comes after the norm. It belongs on the branch, before x is added.",
                post=lambda self, x: self.drop(self.norm(x + self.inner(x))))
_mistaken_block("dropout_on_the_result", "Dropout is applied to the block's result, so parts of x are lost too. It belongs on the branch, before x is added.",
                post=lambda self, x: self.drop(self.norm(x + self.inner(x))), pre=lambda self, x: self.drop(x + self.inner(self.norm(x))))
_mistaken_block("dropout_in_eval", "Dropout is active in eval mode, too. Use an nn.Dropout part, or give F.dropout the mode: training=self.training.",
                drop=lambda self, x: F.dropout(x, self.dropout.p))
_mistaken_block("dropout_missing", "Nothing is dropped in training. The branch goes through dropout before x is added.",
                drop=lambda self, x: x)
_mistaken_block("dropout_on_the_hidden_layer", "Dropout is applied to the d_ff hidden values after the ReLU. It belongs after W_2, on the branch's output.",
                inner=lambda self, x: self.W_2(self.dropout(torch.relu(self.W_1(x)))), drop=lambda self, x: x)
_mistaken_block("dropout_twice", "Dropout is applied twice: to the hidden layer and to the branch's output. Only the output goes through it.",
                inner=lambda self, x: self.W_2(self.dropout(torch.relu(self.W_1(x)))))
_mistaken_block("dropout_not_scaled", "What is kept is not divided by 1 - dropout, so training and eval mode differ on average. nn.Dropout does it for you.",
                drop=lambda self, x: x * (torch.rand_like(x) >= self.dropout.p) if self.training else x)
_mistaken_block("dropout_keeps_that_share", "dropout is taken as the share that is KEPT. It is the probability with which a value is dropped.",
                drop=lambda self, x: F.dropout(x, 1 - self.dropout.p, self.training))
_mistaken_block("whole_rows_dropped", "The whole branch of a row is dropped at once. Dropout decides for each value separately.",
                drop=lambda self, x: x * F.dropout(torch.ones_like(x[..., :1]), self.dropout.p, self.training))
_mistaken_block("block_without_norm", "The norm is left out in both orders.",
                post=lambda self, x: x + self.drop(self.inner(x)), pre=lambda self, x: x + self.drop(self.inner(x)))
_mistaken_block("block_without_skip", "The skip connection is missing in both orders: x has to be added to the branch.",
                post=lambda self, x: self.norm(self.drop(self.inner(x))), pre=lambda self, x: self.drop(self.inner(self.norm(x))))
_mistaken_block("relu_left_out", "The ReLU is missing, so W_1 and W_2 together are one linear layer.",
                inner=lambda self, x: self.W_2(self.W_1(x)))
_mistaken_block("relu_last", "The ReLU comes after W_2, so the branch can only add. It stands between W_1 and W_2.",
                inner=lambda self, x: torch.relu(self.W_2(self.W_1(x))))
_mistaken_block("gelu_for_relu", "A GELU is used where the formula has a ReLU.",
                inner=lambda self, x: self.W_2(F.gelu(self.W_1(x))))


# ---------------------------------------------------------------- deep_stack

def _stack_inputs(generator):
    def draw(n, B, d, dtype=torch.float32):
        return {"n": n, "weights": normal(generator, n + 2, d, d, scale=0.5, dtype=dtype), "x": normal(generator, B, d, dtype=dtype)}
    n, others = whole(generator, 4, 7), different(generator, 3, low=3)
    return [draw(n, *different(generator, 2, low=3)), draw(*others, torch.float64), draw(*[whole(generator, 3, 6)] * 3),
            draw(whole(generator, 3, 6), 1, whole(generator, 3, 8)), draw(2, *different(generator, 2, low=3))]


def _deep_stack(make_block, n):
    return nn.Sequential(*[make_block() for _ in range(n)])


deep_stack = Item("deep_stack", 2, _stack_inputs, _deep_stack,
                  ("output (B, d)", "the number of calls of make_block", "the number of parameters of the stack",
                   "output after a training step (B, d)"), IN_CODE, probe="stack", gradients=False)


def _equal_weights(answer, trial):
    x, d, n = trial["x"], trial["x"].size(-1), trial["n"]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        stack = answer(lambda: nn.Linear(d, d), n)
    stack(x).pow(2).mean().backward()
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter -= 0.1 * parameter.grad
    first, *_, last = stack
    return (f"{n} blocks were trained for one step. Afterwards the weights of the first and of the last block differ by "
            f"{(first.weight - last.weight).abs().max():.4f}. Each block has gradients of its own, so they should differ.")


@deep_stack.plant("[make_block()] * n holds one block n times, so all share their weights. Its author tested with n = 1, then only looked at shapes.", _equal_weights)
def _one_block_many_times(make_block, n):
    return nn.Sequential(*[make_block()] * n)


class _Stack(nn.Module):
    """Blocks in order, and apply(blocks, x): the mistakes below exchange either."""

    def __init__(self, blocks, apply=None):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self.apply_to = apply

    def forward(self, x):
        if self.apply_to:
            return self.apply_to(self.blocks, x)
        for block in self.blocks:
            x = block(x)
        return x


class _Hidden(_Stack):
    def __init__(self, blocks):
        super().__init__([])
        del self.blocks
        self.blocks = [*blocks]


class _MadeInForward(nn.Module):
    def __init__(self, make_block, n):
        super().__init__()
        self.make_block, self.n = make_block, n

    def forward(self, x):
        for _ in range(self.n):
            x = self.make_block()(x)
        return x


def _mistaken_stack(name, sentence, answer):
    answer.__name__ = name
    deep_stack.mistake(sentence)(answer)


_mistaken_stack("kept_in_a_list", "The blocks are kept in a plain Python list, so the stack has no parameters and an optimizer would train nothing. Use nn.ModuleList or nn.Sequential.",
                lambda make_block, n: _Hidden(make_block() for _ in range(n)))
_mistaken_stack("one_block_copied", "One block is made and copied n - 1 times, so all begin with equal weights. Call make_block n times instead.",
                lambda make_block, n: _Stack(_copies(make_block(), n)))
_mistaken_stack("first_applied_n_times", "There are n blocks, but the first is applied n times and the others never. Apply each of them once.",
                lambda make_block, n: _Stack([make_block() for _ in range(n)], lambda blocks, x: _times(blocks[0], x, n)))
_mistaken_stack("made_in_forward", "make_block is called in forward, so every call has new, untrained blocks. Make them once, when the stack is built.",
                _MadeInForward)
_mistaken_stack("one_block_too_few", "There is one block too few: make_block has to be called n times.",
                lambda make_block, n: _Stack(make_block() for _ in range(n - 1)))
_mistaken_stack("one_block_too_many", "There is one block too many: make_block has to be called n times.",
                lambda make_block, n: _Stack(make_block() for _ in range(n + 1)))
_mistaken_stack("blocks_from_the_last", "The blocks are applied from the last to the first. The block that was made first comes first.",
                lambda make_block, n: _Stack([make_block() for _ in range(n)], lambda blocks, x: _Stack.forward(_Stack(reversed(blocks)), x)))
_mistaken_stack("only_the_last_block", "Every block is given the input x, and only the last one's result is returned. Each block takes the output of the one before it.",
                lambda make_block, n: _Stack([make_block() for _ in range(n)], lambda blocks, x: blocks[-1](x)))
_mistaken_stack("blocks_side_by_side", "Every block is given the input x and the results are added up. Each block takes the output of the one before it.",
                lambda make_block, n: _Stack([make_block() for _ in range(n)], lambda blocks, x: sum(block(x) for block in blocks)))
_mistaken_stack("skip_added_again", "x is added to every block's result. Some blocks have a skip connection of their own, others have none. Give the next block the result as it is.",
                lambda make_block, n: _Stack([make_block() for _ in range(n)], _with_skips))
_mistaken_stack("gradients_cut", "No gradient reaches any block but the last: the states between are detached, so the others are never trained.",
                lambda make_block, n: _Stack([make_block() for _ in range(n)], _detached))


def _times(block, x, n):
    for _ in range(n):
        x = block(x)
    return x


def _copies(block, n):
    return [block, *(copy.deepcopy(block) for _ in range(n - 1))]


def _with_skips(blocks, x):
    for block in blocks:
        x = x + block(x)
    return x


def _detached(blocks, x):
    for block in blocks:
        x = block(x.detach())
    return x


ITEMS = [residual_forward, residual_gradient, sublayer, path_counts, ResidualBlock, deep_stack]

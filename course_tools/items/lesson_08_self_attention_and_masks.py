"""Exercise 08: causal, padding, sliding-window and packed masks, self-attention, and what depends on what."""

import math

import torch

from course_lib.models import attention as models
from course_lib.models import masks

from ..judging.draw import different, sizes, telling, whole
from ..judging.spec import Item, normal
from .lesson_05_query_key_value import attention_by, scale_after_softmax, turned_by_T, zero_times_infinity

IN_CAUSAL, IN_PADDING, IN_PACKED = "The causal mask", "The padding mask", "Both at once, and packed texts"
IN_CODE, IN_LEAKAGE = "From formula to code", "Testing a mask with gradients"
SDPA = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")


# ---------------------------------------------------------------- causal_mask

def _causal_inputs(generator):
    return [{"n": n} for n in (*different(generator, 4, 3, 41), 1, 2)]


causal_mask = Item("causal_mask", 1, _causal_inputs, models.causal_mask, ("mask (n, n), Boolean",), IN_CAUSAL,
                   gradients=False)


@causal_mask.mistake("The present is excluded. Position i may attend to itself too, j <= i, so the diagonal is True.")
def present_excluded(n):
    return torch.ones(n, n, dtype=torch.bool).tril(-1)


@causal_mask.mistake("This is the upper triangle. Row i is the query, and it may attend to itself and to earlier positions, j <= i.")
def upper_triangle(n):
    return torch.ones(n, n, dtype=torch.bool).triu()


@causal_mask.mistake("The mask is inverted: True means MAY attend, and here the future is True.")
def inverted(n):
    return ~models.causal_mask(n)


@causal_mask.mistake("The mask holds floats. It has to be Boolean, dtype=torch.bool.")
def floats(n):
    return torch.ones(n, n).tril()


@causal_mask.mistake("The mask holds integers. It has to be Boolean, dtype=torch.bool.")
def whole_numbers(n):
    return models.causal_mask(n).long()


@causal_mask.mistake("This mask is meant to be added to the scores (0 and -inf). Here True = may attend, False = may not.")
def to_be_added(n):
    return torch.full((n, n), -math.inf).triu(1)


@causal_mask.mistake("Every position may attend to the next one. The diagonal is the last one that is True (tril without an argument).")
def one_word_ahead(n):
    return torch.ones(n, n, dtype=torch.bool).tril(1)


@causal_mask.mistake("Only the diagonal is True. A position may attend to all previous positions as well.")
def only_itself(n):
    return torch.eye(n, dtype=torch.bool)


@causal_mask.mistake("Everything is allowed. The future, j > i, must be False.")
def all_allowed(n):
    return torch.ones(n, n, dtype=torch.bool)


@causal_mask.mistake("The shape is (1, n, n). It should be (n, n), which serves every sentence of a batch.")
def with_a_batch_axis(n):
    return models.causal_mask(n)[None]


# ---------------------------------------------------------------- padding_mask

def _padding_inputs(generator):
    def draw(B, m, longest=None):
        """Lengths of 1 to `longest`, m where it is not given: the longest is among them, and a shorter one."""
        longest = longest or m
        lengths = torch.randint(1, longest, (B,), generator=generator)
        lengths[whole(generator, 0, B)] = longest
        return {"lengths": lengths, "m": m}
    equal = whole(generator, 3, 7)
    B, m, n, few = different(generator, 4, 3, 12)
    return [draw(B, m + 2, m), draw(n, B + n), draw(equal, equal), draw(1, m, m - 1), draw(few, n + few + 3, n)]


padding_mask = Item("padding_mask", 2, _padding_inputs, models.padding_mask, ("mask (B, 1, m), Boolean",), IN_PADDING,
                    gradients=False)


@padding_mask.mistake("The mask hides queries, (B, m, 1). Padding must not be attended TO, so mask the keys, the last axis.")
def masks_queries(lengths, m):
    return models.padding_mask(lengths, m).transpose(1, 2)


@padding_mask.mistake("The mask hides queries and keys, (B, m, m), so a padded query has no key left and its row becomes nan. Mask the keys only: (B, 1, m).")
def masks_both(lengths, m):
    mask = models.padding_mask(lengths, m)
    return mask & mask.transpose(1, 2)


@padding_mask.mistake("One position too many is allowed. Positions count from 0, so it is j < length, not j <= length.")
def one_too_many(lengths, m):
    return models.padding_mask(lengths + 1, m)


@padding_mask.mistake("The last token of each sentence is masked. It should be j < length.")
def one_too_few(lengths, m):
    return models.padding_mask(lengths - 1, m)


@padding_mask.mistake("The mask is inverted: True means MAY attend, and here the padding is True.")
def padding_is_true(lengths, m):
    return ~models.padding_mask(lengths, m)


@padding_mask.mistake("The shape is (B, m). Scores are (B, n, m), so an axis of 1 for the queries is needed: (B, 1, m).")
def query_axis_missing(lengths, m):
    return models.padding_mask(lengths, m)[:, 0]


@padding_mask.mistake("The shape is (1, B, m). The axis of 1 belongs between batch and keys: (B, 1, m).")
def query_axis_in_front(lengths, m):
    return models.padding_mask(lengths, m).transpose(0, 1)


@padding_mask.mistake("The rows are repeated, (B, m, m). An axis of 1 serves every query, however many there are: (B, 1, m).")
def repeated_rows(lengths, m):
    return models.padding_mask(lengths, m).expand(-1, m, -1)


@padding_mask.mistake("lengths (B,) is compared directly with the m positions, which pairs one length with each POSITION. Use lengths[:, None], so that each sentence is compared with all positions.")
def lengths_without_an_axis(lengths, m):
    return (torch.arange(m) < lengths)[:, None]


@padding_mask.mistake("lengths (B,) is compared directly with the m positions, and no axis is added. Use lengths[:, None] first, then an axis of 1 for the queries.")
def lengths_without_any_axis(lengths, m):
    return torch.arange(m) < lengths


@padding_mask.mistake("The shape has an axis for heads too, (B, 1, 1, m). It should be (B, 1, m).")
def with_an_axis_for_heads(lengths, m):
    return models.padding_mask(lengths, m)[:, None]


@padding_mask.mistake("The mask assumes padding on the left. The tokens come first, the padding after them.")
def padding_on_the_left(lengths, m):
    return models.padding_mask(lengths, m).flip(-1)


@padding_mask.mistake("The mask is as wide as the longest sentence. Its width is m.")
def width_of_the_longest(lengths, m):
    return models.padding_mask(lengths, int(lengths.max()))


@padding_mask.mistake("The mask holds floats. It has to be Boolean: a comparison gives that.")
def padding_floats(lengths, m):
    return models.padding_mask(lengths, m).float()


@padding_mask.mistake("The mask holds integers. It has to be Boolean: a comparison gives that.")
def padding_whole_numbers(lengths, m):
    return models.padding_mask(lengths, m).long()


@padding_mask.mistake("This mask is meant to be added to the scores (0 and -inf). Here True = may attend, False = may not.")
def padding_to_be_added(lengths, m):
    mask = models.padding_mask(lengths, m)
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


# ---------------------------------------------------------------- self_attention

def _self_inputs(generator):
    def draw(B, n, d_model, d_k, d_v, mask=None, dtype=torch.float32):
        X = normal(generator, B, n, d_model, dtype=dtype)
        W_Q, W_K, W_V = (normal(generator, d_model, d, scale=0.7, dtype=dtype) for d in (d_k, d_k, d_v))
        trial = {"X": X, "W_Q": W_Q, "W_K": W_K, "W_V": W_V}
        return trial if mask is None else {**trial, "mask": mask}

    def scattered(B, n):
        """Every query may attend to two keys or more, the first and the last not to all."""
        mask = torch.rand(B, n, n, generator=generator) < 0.4
        mask |= torch.eye(n, dtype=torch.bool) | torch.eye(n, dtype=torch.bool).roll(1, 1)
        mask[:, 0, n - 2] = mask[:, n - 1, 1] = False
        return mask

    def padding(B, n):
        lengths = torch.tensor([n, *different(generator, B - 1, 2, n)])
        return models.padding_mask(lengths, n)

    usual, other, one, equal = sizes(generator, 5)
    n = whole(generator, 4, 7)
    B, short, wide, d_v = different(generator, 4, 2, 8)
    return [draw(*usual), draw(B, n, *sorted((short, wide)), d_v, mask=scattered(B, n)),
            draw(*other, dtype=torch.float64), draw(*equal, mask=models.causal_mask(equal[0])), draw(*one),
            draw(3, n, *different(generator, 3), mask=padding(3, n))]


self_attention = Item("self_attention", 2, _self_inputs, models.self_attention,
                      ("output (B, n, d_v)", "weights (B, n, n)"), IN_CODE, free=SDPA, properties=(
    (lambda trial, found: torch.allclose(found[1].sum(dim=-1), torch.ones((), dtype=found[1].dtype), atol=1e-4),
     "Each row of weights must add up to 1, over the keys, its last axis."),
    (lambda trial, found: trial.get("mask") is None
     or bool((found[1].masked_fill(trial["mask"], 0) == 0).all()),
     "A word that the mask forbids (False) must get a weight of exactly 0.")))


def _projected(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X @ W_V


@self_attention.mistake("One projection is used for all three. Q, K and V come from the same X, but each through a matrix of its own.")
def one_projection(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_Q, W_Q, mask)


@self_attention.mistake("The keys are made with W_Q. They have their own matrix, W_K; otherwise the scores are symmetric.")
def keys_tied_to_queries(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_Q, W_V, mask)


@self_attention.mistake("The queries are made with W_K. They have their own matrix, W_Q; otherwise the scores are symmetric.")
def queries_tied_to_keys(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_K, W_K, W_V, mask)


@self_attention.mistake("The values are made with W_K. They have their own matrix, W_V.")
def values_tied_to_keys(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_K, W_K, mask)


@self_attention.mistake("W_Q and W_K are exchanged: a row of the scores belongs to the QUERY.")
def queries_and_keys_exchanged(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_K, W_Q, W_V, mask)


@self_attention.mistake("X itself is averaged. The values are X W_V.")
def x_as_values(X, W_Q, W_K, W_V, mask=None):
    return models.attention(X @ W_Q, X @ W_K, X, mask)


@self_attention.mistake("X itself is used as queries, keys and values. Each of them is X times a matrix of its own.")
def no_projection(X, W_Q, W_K, W_V, mask=None):
    return models.attention(X, X, X, mask)


@self_attention.mistake("W_V is applied twice, before and after the weighted average. Apply it once.")
def values_projected_twice(X, W_Q, W_K, W_V, mask=None):
    output, weights = models.self_attention(X, W_Q, W_K, W_V, mask)
    return output @ W_V, weights


@self_attention.mistake("The scores are divided by sqrt(d_model), the width of X. The scale is sqrt(d_k), the width of Q and K.")
def scale_by_d_model(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, math.sqrt(X.size(-1)))


@self_attention.mistake("The scores are divided by sqrt(d_v), the width of V. The scale is sqrt(d_k), the width of Q and K.")
def scale_by_d_v(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, math.sqrt(W_V.size(-1)))


@self_attention.mistake("The scores are divided by sqrt(n), the number of positions. The scale is sqrt(d_k), the width of Q and K.")
def scale_by_n(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, math.sqrt(X.size(-2)))


@self_attention.mistake("K.T reverses the order of ALL axes, the batch's as well. Exchange only the last two: K.transpose(-2, -1).")
def self_T_turns_every_axis(X, W_Q, W_K, W_V, mask=None):
    return turned_by_T(*_projected(X, W_Q, W_K, W_V), mask)


@self_attention.mistake("The scale is missing. Divide the scores by sqrt(d_k).")
def self_without_scale(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, 1.0)


@self_attention.mistake("The scores are divided by d_k. Divide by its ROOT.")
def scale_not_the_root(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, W_K.size(-1))


@self_attention.mistake("Every weight is nan where there is a mask: 0 * -inf is nan, and so is a softmax over nothing but -inf. Fill only the masked scores: masked_fill(~mask, -inf).")
def self_zero_times_infinity(X, W_Q, W_K, W_V, mask=None):
    return zero_times_infinity(*_projected(X, W_Q, W_K, W_V), mask)


@self_attention.mistake("The scale is applied after the softmax, so the rows no longer sum to 1. Divide the SCORES by sqrt(d_k).")
def self_scaled_after_softmax(X, W_Q, W_K, W_V, mask=None):
    return scale_after_softmax(*_projected(X, W_Q, W_K, W_V), mask)


@self_attention.mistake("A matrix is transposed. Tokens are rows, so Q = X W_Q, with (B, n, d_model) @ (d_model, d_k).")
def projections_transposed(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q.T, W_K.T, W_V.T, mask)


@self_attention.mistake("The matrices are on the left, W X. Tokens are rows, so the product is X W: X @ W_Q.")
def matrices_on_the_left(X, W_Q, W_K, W_V, mask=None):
    return models.attention(W_Q @ X, W_K @ X, W_V @ X, mask)


@self_attention.mistake("The softmax is taken over the queries (dim=-2). Each query distributes its attention over the keys, so use dim=-1.")
def self_softmax_over_queries(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, dim=-2)


@self_attention.mistake("The softmax is taken over the first axis. Each query distributes its attention over the keys, so use dim=-1.")
def self_softmax_over_the_batch(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, dim=0)


@self_attention.mistake("The mask is ignored: positions where it is False still get weight.")
def self_mask_ignored(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_K, W_V)


@self_attention.mistake("The mask is inverted. True means MAY attend, so -inf goes where it is False (~mask).")
def self_mask_inverted(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_K, W_V, None if mask is None else ~mask)


@self_attention.mistake("The mask is applied after the softmax, so masked scores still count in its denominator. Put -inf into the SCORES.")
def self_mask_after_softmax(X, W_Q, W_K, W_V, mask=None):
    weights = models.self_attention(X, W_Q, W_K, W_V)[1]
    weights = weights if mask is None else weights * mask
    return weights @ (X @ W_V), weights


@self_attention.mistake("Masked scores are set to 0, and exp(0) = 1 still gives them weight. Set them to -inf.")
def forbidden_scores_zero(X, W_Q, W_K, W_V, mask=None):
    Q, K, V = _projected(X, W_Q, W_K, W_V)
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    weights = (scores if mask is None else scores * mask).softmax(dim=-1)
    return weights @ V, weights


@self_attention.mistake("The mask is added as 0 and 1, which only raises some scores by 1. Masked scores must become -inf.")
def self_mask_added(X, W_Q, W_K, W_V, mask=None):
    Q, K, V = _projected(X, W_Q, W_K, W_V)
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    weights = (scores if mask is None else scores + mask).softmax(dim=-1)
    return weights @ V, weights


@self_attention.mistake("Masked weights are set to 0 for the output only. Mask the scores, before the softmax.")
def self_masks_only_the_output(X, W_Q, W_K, W_V, mask=None):
    output, weights = models.self_attention(X, W_Q, W_K, W_V)
    return (output if mask is None else (weights * mask) @ (X @ W_V)), weights


@self_attention.mistake("The future is always masked. Without a mask every position may attend to every position.")
def always_causal(X, W_Q, W_K, W_V, mask=None):
    causal = models.causal_mask(X.size(-2))
    return models.self_attention(X, W_Q, W_K, W_V, causal if mask is None else causal & mask)


@self_attention.mistake("The second result is the scores. Return the weights, after the softmax.")
def self_scores_for_weights(X, W_Q, W_K, W_V, mask=None):
    Q, K, _ = _projected(X, W_Q, W_K, W_V)
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    return models.self_attention(X, W_Q, W_K, W_V, mask)[0], scores


@self_attention.mistake("The two results are swapped: output first, weights second.")
def self_results_swapped(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_K, W_V, mask)[::-1]


@self_attention.mistake("Only the output is returned. The weights are needed as well: return output, weights.")
def self_only_the_output(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_K, W_V, mask)[0]


# ---------------------------------------------------------------- leakage

def _leakage_inputs(generator):
    def draw(n, d, d_out, i, dtype=torch.float32, causal=False):
        A = normal(generator, n, n, scale=0.6, dtype=dtype)
        return {"f": {"function": "mix", "A": A.tril() if causal else A,
                      "W": normal(generator, d, d_out, scale=0.6, dtype=dtype)},
                "X": normal(generator, n, d, dtype=dtype), "i": i}
    def trial(low=1, **how):
        n, d, d_out = different(generator, 3, low=3)
        return draw(n, d, d_out, whole(generator, low, n - 1) if low else 0, **how)
    equal = whole(generator, 3, 6)
    return [trial(), trial(dtype=torch.float64, causal=True), draw(equal, equal, equal, equal - 1), trial(causal=True),
            draw(1, *different(generator, 2), 0), trial(low=0)]


leakage = Item("leakage", 3, _leakage_inputs, models.leakage,
               ("norms (n,)", "arguments that require gradients afterwards, a list of names"), IN_LEAKAGE, probe="watched",
               gradients=False)


def _jacobian(f, X, of=lambda Y: Y):
    """of(f(X)) differentiated by X: (shape of of(f(X)), n, d)"""
    return torch.autograd.functional.jacobian(lambda X: of(f(X)), X.detach())


@leakage.mistake("The gradients of the features of f(X)[i] are added up (by summing first, or because X.grad accumulates), so derivatives of opposite sign cancel. Keep them separate, then take the norm over all of them.")
def features_summed(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i].sum()).norm(dim=-1)


@leakage.mistake("The norm is missing. For each position j there is a whole matrix of derivatives: return its Frobenius norm.")
def no_norm(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i])


@leakage.mistake("The norm is missing: this is the gradient of the summed output, (n, d). Return one value for each position.")
def gradient_of_the_sum(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i].sum())


@leakage.mistake("The derivatives are added instead of squared, so opposite signs cancel. The Frobenius norm is the root of the sum of squares.")
def slopes_added(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).sum(dim=(0, 2))


@leakage.mistake("Absolute derivatives are added up. The Frobenius norm is the root of the sum of SQUARES.")
def absolute_slopes(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).abs().sum(dim=(0, 2))


@leakage.mistake("The square root is missing: this is the squared norm.")
def norm_squared(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).pow(2).sum(dim=(0, 2))


@leakage.mistake("This is the largest singular value of each matrix of derivatives. The Frobenius norm is asked for.")
def spectral_norm(f, X, i):
    return torch.linalg.matrix_norm(_jacobian(f, X, lambda Y: Y[i]).transpose(0, 1), 2)


@leakage.mistake("This takes the mean of the squares under the root. The Frobenius norm takes their SUM.")
def root_of_the_mean(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).pow(2).mean(dim=(0, 2)).sqrt()


@leakage.mistake("The roles are exchanged: this is how every output depends on position i. The question is how output i depends on every position j.")
def who_feels_i(f, X, i):
    return _jacobian(f, X)[:, :, i].pow(2).sum(dim=(1, 2)).sqrt()


@leakage.mistake("i is not used: all outputs are differentiated together. Only f(X)[i] counts.")
def all_outputs(f, X, i):
    return _jacobian(f, X).pow(2).sum(dim=(0, 1, 3)).sqrt()


@leakage.mistake("i is not used: this is the gradient of the sum of ALL outputs, f(X).sum(). Differentiate f(X)[i] alone, one feature at a time.")
def all_outputs_summed(f, X, i):
    return _jacobian(f, X, torch.sum).norm(dim=-1)


@leakage.mistake("i is not used, since f(X).sum() is differentiated, and X requires gradients afterwards. Differentiate f(X)[i] alone, on "
                 "a copy of X.")
def all_outputs_summed_and_grad_left(f, X, i):
    norms = all_outputs_summed(f, X, i)
    X.requires_grad_()
    return norms


@leakage.mistake("The norms of all outputs are added up. Only output i is asked for.")
def norms_summed_over_outputs(f, X, i):
    return _jacobian(f, X).pow(2).sum(dim=(1, 3)).sqrt().sum(dim=0)


@leakage.mistake("i is not used: this is the leakage of output 0.")
def always_output_0(f, X, i):
    return models.leakage(f, X, 0)


@leakage.mistake("i is not used: this is the leakage of the last output.")
def always_the_last_output(f, X, i):
    return models.leakage(f, X, len(X) - 1)


@leakage.mistake("The norm also runs over the positions, so one value is left. Return one for each position j.")
def one_number(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).norm()


@leakage.mistake("The norm runs over the positions. It runs over the features of output i and of input j, so that (n,) is left.")
def norm_over_words(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).pow(2).sum(dim=(0, 1)).sqrt()


@leakage.mistake("The output index counts from 1 here. It is f(X)[i], and i begins at 0.")
def counts_from_one(f, X, i):
    return models.leakage(f, X, i - 1)


@leakage.mistake("The result is right, but X requires gradients afterwards. Work on a copy, X.detach().clone().requires_grad_(), and leave the caller's X as it was.")
def grad_left_on_x(f, X, i):
    norms = models.leakage(f, X, i)
    X.requires_grad_()
    return norms


@leakage.mistake("The gradients of the features are added up (by summing first, or in X.grad), and X requires gradients afterwards. Differentiate each feature of f(X)[i] separately, on a detached copy of X.")
def summed_and_grad_left(f, X, i):
    X.requires_grad_()
    gradient, = torch.autograd.grad(f(X)[i].sum(), X)
    return gradient.norm(dim=-1)


@leakage.mistake("The norm of f(X)[i] is differentiated. Differentiate each feature of f(X)[i] first; the norm comes last.")
def gradient_of_the_norm(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i].norm()).norm(dim=-1)


# ---------------------------------------------------------------- sliding_window_mask

def _window_inputs(generator):
    def draw(n, window):
        return {"n": n, "window": window}

    def drawn():
        sizes, windows = different(generator, 3, 7, 24), different(generator, 3, 2, 6)
        short = whole(generator, 2, 6)
        return [*map(draw, sizes, windows), draw(whole(generator, 4, 9), 1), draw(short, short), draw(short, short + 3), draw(1, 2)]
    return telling(sliding_window_mask, drawn)


sliding_window_mask = Item("sliding_window_mask", 1, _window_inputs, masks.sliding_window_mask, ("mask (n, n), Boolean",), IN_CAUSAL,
                           gradients=False, kind="transfer")


def _distance(n):
    """How far j lies behind i, (n, n)."""
    return torch.arange(n)[:, None] - torch.arange(n)


def _mistaken_window(name, sentence, answer):
    answer.__name__ = name
    sliding_window_mask.mistake(sentence)(answer)


_mistaken_window("window_one_too_wide", "The window is one position too wide: i - j may be 0 up to window - 1, which is `window` positions with the present.",
                 lambda n, window: masks.sliding_window_mask(n, window + 1))
_mistaken_window("window_one_too_narrow", "The window is one position too narrow. The present counts as one of the `window` positions.",
                 lambda n, window: masks.sliding_window_mask(n, window - 1))
_mistaken_window("window_on_both_sides", "The window reaches into the future as well. It is causal: j <= i.",
                 lambda n, window: _distance(n).abs() < window)
_mistaken_window("window_ahead", "The window looks ahead. Row i is the query, and it may attend to the last positions up to i, not to the next ones.",
                 lambda n, window: masks.sliding_window_mask(n, window).T)
_mistaken_window("window_without_the_present", "The present is excluded: these are the `window` positions before i. The diagonal is True and counts as one of them.",
                 lambda n, window: (_distance(n) > 0) & (_distance(n) <= window))
_mistaken_window("window_present_left_out", "The present is excluded, so row i holds window - 1 positions. The diagonal is True.",
                 lambda n, window: (_distance(n) > 0) & (_distance(n) < window))
_mistaken_window("window_ignored", "The window is ignored: this is the plain causal mask. Positions further back than window - 1 are False.",
                 lambda n, window: models.causal_mask(n))
_mistaken_window("not_causal_at_all", "Only the far past is False, and the whole future is True. The mask is causal as well: j <= i.",
                 lambda n, window: _distance(n) < window)
_mistaken_window("first_positions", "Every position sees the FIRST positions of the sentence. The window moves along: the last `window` up to i.",
                 lambda n, window: (torch.arange(n) < window) & models.causal_mask(n))
_mistaken_window("blocks_for_windows", "The sentence is cut into blocks of `window`, so the first position of a block sees nothing before it. The window slides: each position has its own.",
                 lambda n, window: (torch.arange(n)[:, None] // window == torch.arange(n) // window) & models.causal_mask(n))
_mistaken_window("window_inverted", "The mask is inverted: True means MAY attend, and here what is out of reach is True.",
                 lambda n, window: ~masks.sliding_window_mask(n, window))
_mistaken_window("window_floats", "The mask holds floats. It has to be Boolean: a comparison gives that.",
                 lambda n, window: masks.sliding_window_mask(n, window).float())
_mistaken_window("window_to_be_added", "This mask is meant to be added to the scores (0 and -inf). Here True = may attend, False = may not.",
                 lambda n, window: torch.zeros(n, n).masked_fill(~masks.sliding_window_mask(n, window), -math.inf))


# ---------------------------------------------------------------- packed_mask

def _packed_inputs(generator):
    def draw(B, n, most=4):
        """Rows of 2 to `most` documents; the numbers of a row are all different, in no order."""
        rows = []
        for _ in range(B):
            cuts = sorted([0, *different(generator, whole(generator, 1, most), 1, n)])
            numbers = torch.tensor(different(generator, len(cuts), 0, 10))
            rows.append(numbers[(torch.arange(n)[:, None] >= torch.tensor(cuts)).sum(dim=1) - 1])
        return {"documents": torch.stack(rows)}

    def drawn():
        B, n, other, more = different(generator, 4, 4, 11)
        equal = whole(generator, 4, 8)
        return [draw(B, n), draw(2, other), draw(1, more), draw(equal, equal), draw(3, other + 8)]
    return telling(packed_mask, drawn)


packed_mask = Item("packed_mask", 2, _packed_inputs, masks.packed_mask, ("mask (B, n, n), Boolean",), IN_PACKED, uses=("causal_mask",),
                   gradients=False, kind="transfer")


def _same_document(documents):
    return documents[:, :, None] == documents[:, None]


def _mistaken_packing(name, sentence, answer):
    answer.__name__ = name
    packed_mask.mistake(sentence)(answer)


_mistaken_packing("packed_not_causal", "The future is allowed: within its document a position may attend to later ones. Add the causal condition, j <= i.",
                  _same_document)
_mistaken_packing("documents_ignored", "The documents are ignored: this is the causal mask, so a text can read the one before it in the row.",
                  lambda documents: models.causal_mask(documents.size(1)).expand(*documents.shape, -1).clone())
_mistaken_packing("documents_ignored_without_a_batch", "This is the causal mask (n, n). Each row has its own documents, so the shape is (B, n, n).",
                  lambda documents: models.causal_mask(documents.size(1)))
_mistaken_packing("previous_token_only", "A position sees itself and the token before it only. It may attend to ALL earlier tokens of its document.",
                  lambda documents: masks.packed_mask(documents) & masks.sliding_window_mask(documents.size(1), 2))
_mistaken_packing("only_itself_in_packing", "Only the diagonal is True. A position may attend to all earlier tokens of its document as well.",
                  lambda documents: torch.eye(documents.size(1), dtype=torch.bool).expand(*documents.shape, -1).clone())
_mistaken_packing("first_document_only", "Only the first document of a row may be attended to. Each document attends to itself.",
                  lambda documents: masks.packed_mask(documents) & (documents == documents[:, :1])[:, None])
_mistaken_packing("first_document_for_all", "Every position may attend to the first document, and to nothing else. Compare the document of the query with that of the key.",
                  lambda documents: (documents == documents[:, :1])[:, None] & models.causal_mask(documents.size(1)))
_mistaken_packing("packed_present_excluded", "The present is excluded. A position may attend to itself, so the diagonal is True.",
                  lambda documents: _same_document(documents).tril(-1))
_mistaken_packing("packed_upper_triangle", "The triangle is the wrong one: within its document each position sees only itself and what FOLLOWS. It is j <= i.",
                  lambda documents: _same_document(documents).triu())
_mistaken_packing("numbers_compared_by_size", "Document numbers are compared with >=. They are names, not an order: the test is whether they are equal.",
                  lambda documents: (documents[:, :, None] >= documents[:, None]).tril())
_mistaken_packing("numbers_compared_by_size_the_other_way", "Document numbers are compared with <=. They are names, not an order: the test is whether they are equal.",
                  lambda documents: (documents[:, :, None] <= documents[:, None]).tril())
_mistaken_packing("first_row_for_all", "The documents of the first row are used for the whole batch. Each row has its own.",
                  lambda documents: masks.packed_mask(documents[:1].expand_as(documents)).clone())
_mistaken_packing("packed_inverted", "The mask is inverted: True means MAY attend, and here what is out of reach is True.",
                  lambda documents: ~masks.packed_mask(documents))
_mistaken_packing("packed_floats", "The mask holds floats. It has to be Boolean: combine Boolean masks with &, not with *.",
                  lambda documents: masks.packed_mask(documents).float())
_mistaken_packing("packed_whole_numbers", "The mask holds integers. It has to be Boolean: combine Boolean masks with &, not with *.",
                  lambda documents: masks.packed_mask(documents).long())
_mistaken_packing("packed_axis_for_heads", "The shape has an axis for heads too, (B, 1, n, n). It should be (B, n, n).",
                  lambda documents: masks.packed_mask(documents)[:, None])


# ---------------------------------------------------------------- language_features

def _language_inputs(generator):
    def draw(batch, n, d, d_k, d_v, dtype=torch.float32):
        X = normal(generator, batch, n, d, dtype=dtype)
        return {"X": X, **{name: normal(generator, d, width, scale=0.7, dtype=dtype)
                           for name, width in (("W_Q", d_k), ("W_K", d_k), ("W_V", d_v))}}
    def trial(batch, low=3, **how):
        n, *widths = different(generator, 4, low=low, high=10)
        return draw(batch, n, *widths, **how)
    equal = whole(generator, 3, 6)
    return [trial(2, low=5), trial(3, dtype=torch.float64), trial(4), draw(equal, *[equal] * 4), trial(1)]


def _language_features(X, W_Q, W_K, W_V):
    return models.self_attention(X, W_Q, W_K, W_V, models.causal_mask(X.size(-2)))[0]


language_features = Item("language_features", 2, _language_inputs, _language_features, ("output (B, n, d_v)",), IN_LEAKAGE,
                         uses=("causal_mask", "self_attention"), free=SDPA)


def _leak(answer, trial):
    X, *matrices = trial.values()
    found = models.leakage(lambda X: answer(X[None], *matrices)[0], X[0], 2)[4]
    return f"leakage(..., i=2)[4] is {found:.3f}: output 2 depends on X[4], which lies in its future. It should be 0."


@language_features.plant("The features are centred over the sentence before attention, so the mean carries the future into every position. Its author looked at the weights, which are 0 above the diagonal.", _leak)
def _centred_over_the_sentence(X, W_Q, W_K, W_V):
    return _language_features(X - X.mean(dim=-2, keepdim=True), W_Q, W_K, W_V)


def _mistaken_features(name, sentence, answer):
    answer.__name__ = name
    language_features.mistake(sentence)(answer)


def _running_mean(X):
    return X.cumsum(dim=-2) / torch.arange(1, X.size(-2) + 1, dtype=X.dtype)[:, None]


_mistaken_features("mask_left_out", "There is no mask now, so every position attends to the future. The mask was right; keep it.",
                   lambda X, *W: models.self_attention(X, *W)[0])
_mistaken_features("centred_and_unmasked", "The mask is gone, and what let the future through is still there. Put the mask back and look at what happens before the attention.",
                   lambda X, *W: models.self_attention(X - X.mean(dim=-2, keepdim=True), *W)[0])
_mistaken_features("centred_over_features", "The mean of each token's features is subtracted. That leaks nothing, but it is not in the formula: attention is given X itself.",
                   lambda X, *W: _language_features(X - X.mean(dim=-1, keepdim=True), *W))
_mistaken_features("centred_over_the_past", "The mean of the tokens up to each position is subtracted. That leaks nothing, but it is not in the formula: attention is given X itself.",
                   lambda X, *W: _language_features(X - _running_mean(X), *W))
_mistaken_features("centred_over_everything", "The mean of the whole tensor is subtracted. It still holds the future, and it is not in the formula: attention is given X itself.",
                   lambda X, *W: _language_features(X - X.mean(), *W))
_mistaken_features("centred_scores_only", "The values come from X now, but queries and keys are still computed from something that knows the future.",
                   lambda *given: _scores_centred(*given))
_mistaken_features("output_centred", "The output is centred over the sentence, so each position still depends on all others. Return what attention gives.",
                   lambda X, *W: _language_features(X, *W) - _language_features(X, *W).mean(dim=-2, keepdim=True))
_mistaken_features("mask_transposed", "The mask is the other triangle: each position attends to itself and to the future. It is True for j <= i.",
                   lambda X, *W: models.self_attention(X, *W, models.causal_mask(X.size(-2)).T)[0])
_mistaken_features("both_results", "The weights are returned as well. Return the output alone.",
                   lambda X, *W: models.self_attention(X, *W, models.causal_mask(X.size(-2))))
_mistaken_features("weights_for_output", "The weights are returned. Return the output, (..., n, d_v).",
                   lambda X, *W: models.self_attention(X, *W, models.causal_mask(X.size(-2)))[1])


def _scores_centred(X, W_Q, W_K, W_V):
    centred = X - X.mean(dim=-2, keepdim=True)
    return models.attention(centred @ W_Q, centred @ W_K, X @ W_V, models.causal_mask(X.size(-2)))[0]


ITEMS = [causal_mask, padding_mask, self_attention, leakage, sliding_window_mask, packed_mask, language_features]

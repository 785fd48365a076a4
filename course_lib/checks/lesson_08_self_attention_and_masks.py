"""Exercise 08: causal and padding masks, self-attention, and who feels whom."""

import math

import torch

from ..models import attention as models
from .draw import different, sizes, whole
from .lesson_05_query_key_value import attention_by, scale_after_softmax, turned_by_T, zero_times_infinity
from .spec import Item, normal

IN_FUTURE, IN_PADDING = "A mask for the future", "A mask for padding"
IN_CODE, IN_FEELS = "From formula to code", "Who feels whom"
SDPA = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")


# ---------------------------------------------------------------- causal_mask

def _causal_inputs(generator):
    return [{"n": n} for n in (*different(generator, 4, 3, 41), 1, 2)]


causal_mask = Item("causal_mask", 1, _causal_inputs, models.causal_mask, ("mask (n, n), Boolean",), IN_FUTURE,
                   gradients=False)


@causal_mask.mistake("the present is excluded: word i may attend to itself too, j <= i, so the diagonal is True.")
def present_excluded(n):
    return torch.ones(n, n, dtype=torch.bool).tril(-1)


@causal_mask.mistake("this is the upper triangle: row i is the word that asks, and it may look back, j <= i.")
def upper_triangle(n):
    return torch.ones(n, n, dtype=torch.bool).triu()


@causal_mask.mistake("the mask is inverted: True means MAY attend, and here the future is True.")
def inverted(n):
    return ~models.causal_mask(n)


@causal_mask.mistake("the mask holds numbers; it has to be Boolean, dtype=torch.bool.")
def floats(n):
    return torch.ones(n, n).tril()


@causal_mask.mistake("the mask holds whole numbers; it has to be Boolean, dtype=torch.bool.")
def whole_numbers(n):
    return models.causal_mask(n).long()


@causal_mask.mistake("this mask is to be added to the scores, 0 and -inf; here True = may attend, False = may not.")
def to_be_added(n):
    return torch.full((n, n), -math.inf).triu(1)


@causal_mask.mistake("every word may look one word ahead: the diagonal is the last one that is True (tril without an argument).")
def one_word_ahead(n):
    return torch.ones(n, n, dtype=torch.bool).tril(1)


@causal_mask.mistake("only the diagonal is True: a word may attend to all words before it as well.")
def only_itself(n):
    return torch.eye(n, dtype=torch.bool)


@causal_mask.mistake("everything is allowed: the future, j > i, is to be False.")
def all_allowed(n):
    return torch.ones(n, n, dtype=torch.bool)


@causal_mask.mistake("the shape is (1, n, n); (n, n) is wanted, it serves every sentence of a batch.")
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


@padding_mask.mistake("it masks the queries, (B, m, 1): the padding is not to be looked AT, so the keys, the last axis, "
                      "are masked.")
def masks_queries(lengths, m):
    return models.padding_mask(lengths, m).transpose(1, 2)


@padding_mask.mistake("it masks queries and keys, (B, m, m): a padded query is left without any key, which gives NaN. Mask the "
                      "keys only, (B, 1, m).")
def masks_both(lengths, m):
    mask = models.padding_mask(lengths, m)
    return mask & mask.transpose(1, 2)


@padding_mask.mistake("one position too many is allowed: positions count from 0, so j < length, not j <= length.")
def one_too_many(lengths, m):
    return models.padding_mask(lengths + 1, m)


@padding_mask.mistake("the last word of each sentence is masked: j < length.")
def one_too_few(lengths, m):
    return models.padding_mask(lengths - 1, m)


@padding_mask.mistake("the mask is inverted: True means MAY attend, and here the padding is True.")
def padding_is_true(lengths, m):
    return ~models.padding_mask(lengths, m)


@padding_mask.mistake("the shape is (B, m); with scores (B, n, m) an axis of 1 for the queries is needed: (B, 1, m).")
def query_axis_missing(lengths, m):
    return models.padding_mask(lengths, m)[:, 0]


@padding_mask.mistake("the shape is (1, B, m): the axis of 1 stands between batch and keys, (B, 1, m).")
def query_axis_in_front(lengths, m):
    return models.padding_mask(lengths, m).transpose(0, 1)


@padding_mask.mistake("the rows are repeated, (B, m, m); an axis of 1 serves every query, whatever their number: (B, 1, m).")
def repeated_rows(lengths, m):
    return models.padding_mask(lengths, m).expand(-1, m, -1)


@padding_mask.mistake("lengths (B,) is compared with m positions as it is, one length a POSITION; give it an axis first, lengths[:, None], "
                      "so that each sentence is compared with all positions.")
def lengths_without_an_axis(lengths, m):
    return (torch.arange(m) < lengths)[:, None]


@padding_mask.mistake("lengths (B,) is compared with the m positions as it is, and no axis is added; lengths[:, None] first, then an axis of "
                      "1 for the queries.")
def lengths_without_any_axis(lengths, m):
    return torch.arange(m) < lengths


@padding_mask.mistake("there is an axis for heads too, (B, 1, 1, m); (B, 1, m) is wanted.")
def with_an_axis_for_heads(lengths, m):
    return models.padding_mask(lengths, m)[:, None]


@padding_mask.mistake("the padding is taken to be on the left; the words come first, the padding after them.")
def padding_on_the_left(lengths, m):
    return models.padding_mask(lengths, m).flip(-1)


@padding_mask.mistake("the mask is as wide as the longest sentence; its width is m.")
def width_of_the_longest(lengths, m):
    return models.padding_mask(lengths, int(lengths.max()))


@padding_mask.mistake("the mask holds numbers; it has to be Boolean: a comparison gives that.")
def padding_floats(lengths, m):
    return models.padding_mask(lengths, m).float()


@padding_mask.mistake("the mask holds whole numbers; it has to be Boolean: a comparison gives that.")
def padding_whole_numbers(lengths, m):
    return models.padding_mask(lengths, m).long()


@padding_mask.mistake("this mask is to be added to the scores, 0 and -inf; here True = may attend, False = may not.")
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
     "each row of weights must add up to 1, over the keys, its last axis."),
    (lambda trial, found: trial.get("mask") is None
     or bool((found[1].masked_fill(trial["mask"], 0) == 0).all()),
     "a word that the mask forbids (False) must get a weight of exactly 0.")))


def _projected(X, W_Q, W_K, W_V):
    return X @ W_Q, X @ W_K, X @ W_V


@self_attention.mistake("one projection serves for all three: Q, K and V come from the same X, but each through a matrix "
                        "of its own.")
def one_projection(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_Q, W_Q, mask)


@self_attention.mistake("the keys are made with W_Q; they have their own matrix, W_K, or the scores are symmetric.")
def keys_tied_to_queries(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_Q, W_V, mask)


@self_attention.mistake("the queries are made with W_K; they have their own matrix, W_Q, or the scores are symmetric.")
def queries_tied_to_keys(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_K, W_K, W_V, mask)


@self_attention.mistake("the values are made with W_K; they have their own matrix, W_V.")
def values_tied_to_keys(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_K, W_K, mask)


@self_attention.mistake("W_Q and W_K are exchanged: a row of scores belongs to the word that ASKS.")
def queries_and_keys_exchanged(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_K, W_Q, W_V, mask)


@self_attention.mistake("X itself is mixed: the values are X W_V.")
def x_as_values(X, W_Q, W_K, W_V, mask=None):
    return models.attention(X @ W_Q, X @ W_K, X, mask)


@self_attention.mistake("X itself serves as queries, keys and values: each is X times a matrix of its own.")
def no_projection(X, W_Q, W_K, W_V, mask=None):
    return models.attention(X, X, X, mask)


@self_attention.mistake("X is mixed first and projected twice: W_V comes once, before or after mixing.")
def values_projected_twice(X, W_Q, W_K, W_V, mask=None):
    output, weights = models.self_attention(X, W_Q, W_K, W_V, mask)
    return output @ W_V, weights


@self_attention.mistake("the scores are divided by sqrt(d_model), the width of X; the scale is sqrt(d_k), the width of Q "
                        "and K.")
def scale_by_d_model(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, math.sqrt(X.size(-1)))


@self_attention.mistake("the scores are divided by sqrt(d_v), the width of V; the scale is sqrt(d_k), the width of Q and K.")
def scale_by_d_v(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, math.sqrt(W_V.size(-1)))


@self_attention.mistake("the scores are divided by sqrt(n), the number of words; the scale is sqrt(d_k), the width of Q and K.")
def scale_by_n(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, math.sqrt(X.size(-2)))


@self_attention.mistake("K.T turns the order of ALL axes, the batch's as well. Exchange the last two: K.transpose(-2, -1).")
def self_T_turns_every_axis(X, W_Q, W_K, W_V, mask=None):
    return turned_by_T(*_projected(X, W_Q, W_K, W_V), mask)


@self_attention.mistake("the scale is missing: divide the scores by sqrt(d_k).")
def self_without_scale(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, 1.0)


@self_attention.mistake("the scores are divided by d_k; divide by its ROOT.")
def scale_not_the_root(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, W_K.size(-1))


@self_attention.mistake("every weight is nan where there is a mask: 0 * -inf is nan, and so is a row of nothing but -inf. Fill only what "
                        "is forbidden: masked_fill(~mask, -inf).")
def self_zero_times_infinity(X, W_Q, W_K, W_V, mask=None):
    return zero_times_infinity(*_projected(X, W_Q, W_K, W_V), mask)


@self_attention.mistake("the scale comes after the softmax, so rows no longer add up to 1; divide the SCORES by sqrt(d_k).")
def self_scaled_after_softmax(X, W_Q, W_K, W_V, mask=None):
    return scale_after_softmax(*_projected(X, W_Q, W_K, W_V), mask)


@self_attention.mistake("a matrix is transposed: words are rows, so Q = X W_Q, with (B, n, d_model) @ (d_model, d_k).")
def projections_transposed(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q.T, W_K.T, W_V.T, mask)


@self_attention.mistake("the matrices stand on the left, W X; words are rows, so it is X W: X @ W_Q.")
def matrices_on_the_left(X, W_Q, W_K, W_V, mask=None):
    return models.attention(W_Q @ X, W_K @ X, W_V @ X, mask)


@self_attention.mistake("the softmax runs over the queries (dim=-2); each word shares 1 among its KEYS, dim=-1.")
def self_softmax_over_queries(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, dim=-2)


@self_attention.mistake("the softmax runs over the first axis; each word shares 1 among its KEYS, dim=-1.")
def self_softmax_over_the_batch(X, W_Q, W_K, W_V, mask=None):
    return attention_by(*_projected(X, W_Q, W_K, W_V), mask, dim=0)


@self_attention.mistake("the mask is ignored: words where it is False still get weight.")
def self_mask_ignored(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_K, W_V)


@self_attention.mistake("the mask is inverted: True means MAY attend, so -inf goes where it is False (~mask).")
def self_mask_inverted(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_K, W_V, None if mask is None else ~mask)


@self_attention.mistake("the mask acts after the softmax, so what it forbids still counts in the sum below; put -inf into the "
                        "SCORES.")
def self_mask_after_softmax(X, W_Q, W_K, W_V, mask=None):
    weights = models.self_attention(X, W_Q, W_K, W_V)[1]
    weights = weights if mask is None else weights * mask
    return weights @ (X @ W_V), weights


@self_attention.mistake("forbidden scores are set to 0, and exp(0) = 1 still gives them weight; set them to -inf.")
def forbidden_scores_zero(X, W_Q, W_K, W_V, mask=None):
    Q, K, V = _projected(X, W_Q, W_K, W_V)
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    weights = (scores if mask is None else scores * mask).softmax(dim=-1)
    return weights @ V, weights


@self_attention.mistake("the mask is added as 0 and 1, which only raises some scores by 1; forbidden scores become -inf.")
def self_mask_added(X, W_Q, W_K, W_V, mask=None):
    Q, K, V = _projected(X, W_Q, W_K, W_V)
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    weights = (scores if mask is None else scores + mask).softmax(dim=-1)
    return weights @ V, weights


@self_attention.mistake("the forbidden weights are zeroed for the output only; forbid the scores, before the softmax.")
def self_masks_only_the_output(X, W_Q, W_K, W_V, mask=None):
    output, weights = models.self_attention(X, W_Q, W_K, W_V)
    return (output if mask is None else (weights * mask) @ (X @ W_V)), weights


@self_attention.mistake("the future is always masked; without a mask every word may attend to every word.")
def always_causal(X, W_Q, W_K, W_V, mask=None):
    causal = models.causal_mask(X.size(-2))
    return models.self_attention(X, W_Q, W_K, W_V, causal if mask is None else causal & mask)


@self_attention.mistake("the second result is the scores; return the weights, after the softmax.")
def self_scores_for_weights(X, W_Q, W_K, W_V, mask=None):
    Q, K, _ = _projected(X, W_Q, W_K, W_V)
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
    return models.self_attention(X, W_Q, W_K, W_V, mask)[0], scores


@self_attention.mistake("the two results are swapped: output first, weights second.")
def self_results_swapped(X, W_Q, W_K, W_V, mask=None):
    return models.self_attention(X, W_Q, W_K, W_V, mask)[::-1]


@self_attention.mistake("only the output is returned; the weights are wanted as well: return output, weights.")
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
               ("norms (n,)", "arguments that require gradients afterwards, a list of names"), IN_FEELS, probe="watched",
               gradients=False)


def _jacobian(f, X, of=lambda Y: Y):
    """of(f(X)) differentiated by X: (shape of of(f(X)), n, d)"""
    return torch.autograd.functional.jacobian(lambda X: of(f(X)), X.detach())


@leakage.mistake("the gradients of the numbers of f(X)[i] are added up, by summing first or because X.grad collects them, so slopes "
                 "of both signs cancel; keep each apart, then take the norm over all.")
def features_summed(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i].sum()).norm(dim=-1)


@leakage.mistake("the norm is missing: for each word j there is a whole matrix of slopes; return its Frobenius norm, one "
                 "number a word.")
def no_norm(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i])


@leakage.mistake("the norm is missing: this is the gradient of the summed output, (n, d); one number a word is wanted.")
def gradient_of_the_sum(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i].sum())


@leakage.mistake("the slopes are added up instead of squared, so that both signs cancel; Frobenius: the root of the sum of squares.")
def slopes_added(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).sum(dim=(0, 2))


@leakage.mistake("absolute slopes are added up; Frobenius is the root of the sum of SQUARES.")
def absolute_slopes(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).abs().sum(dim=(0, 2))


@leakage.mistake("the root is missing: this is the norm squared.")
def norm_squared(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).pow(2).sum(dim=(0, 2))


@leakage.mistake("this is the largest singular value of each matrix of slopes; the Frobenius norm was asked for.")
def spectral_norm(f, X, i):
    return torch.linalg.matrix_norm(_jacobian(f, X, lambda Y: Y[i]).transpose(0, 1), 2)


@leakage.mistake("this is the mean of the squares under the root; the Frobenius norm takes their SUM.")
def root_of_the_mean(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).pow(2).mean(dim=(0, 2)).sqrt()


@leakage.mistake("the roles are turned: this is how every output feels word i; asked is how output i feels every word j.")
def who_feels_i(f, X, i):
    return _jacobian(f, X)[:, :, i].pow(2).sum(dim=(1, 2)).sqrt()


@leakage.mistake("i is not used: all outputs are differentiated together; only f(X)[i] is asked for.")
def all_outputs(f, X, i):
    return _jacobian(f, X).pow(2).sum(dim=(0, 1, 3)).sqrt()


@leakage.mistake("i is not used: the gradient is that of the sum of ALL outputs, f(X).sum(). Differentiate f(X)[i] alone, one number of it "
                 "at a time.")
def all_outputs_summed(f, X, i):
    return _jacobian(f, X, torch.sum).norm(dim=-1)


@leakage.mistake("i is not used, since f(X).sum() is differentiated, and X requires gradients afterwards. Differentiate f(X)[i] alone, on "
                 "a copy of X.")
def all_outputs_summed_and_grad_left(f, X, i):
    norms = all_outputs_summed(f, X, i)
    X.requires_grad_()
    return norms


@leakage.mistake("the norms of all outputs are added up; only output i is asked for.")
def norms_summed_over_outputs(f, X, i):
    return _jacobian(f, X).pow(2).sum(dim=(1, 3)).sqrt().sum(dim=0)


@leakage.mistake("i is not used: this is the leakage of output 0.")
def always_output_0(f, X, i):
    return models.leakage(f, X, 0)


@leakage.mistake("i is not used: this is the leakage of the last output.")
def always_the_last_output(f, X, i):
    return models.leakage(f, X, len(X) - 1)


@leakage.mistake("the norm runs over the words as well, so one number is left; there is one for each word j.")
def one_number(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).norm()


@leakage.mistake("the norm runs over the words; it runs over the numbers of output i and of word j, so that (n,) is left.")
def norm_over_words(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i]).pow(2).sum(dim=(0, 1)).sqrt()


@leakage.mistake("the output counts from 1 here: f(X)[i], and i begins at 0.")
def counts_from_one(f, X, i):
    return models.leakage(f, X, i - 1)


@leakage.mistake("the result is right, but X requires gradients afterwards: work on a copy, X.detach().clone().requires_grad_(), "
                 "so that the caller's X stays as it was.")
def grad_left_on_x(f, X, i):
    norms = models.leakage(f, X, i)
    X.requires_grad_()
    return norms


@leakage.mistake("the gradients of the features are added up, by summing first or in X.grad, and X requires gradients afterwards: "
                 "differentiate each number of f(X)[i] apart, on a detached copy of X.")
def summed_and_grad_left(f, X, i):
    X.requires_grad_()
    gradient, = torch.autograd.grad(f(X)[i].sum(), X)
    return gradient.norm(dim=-1)


@leakage.mistake("the norm is taken of f(X)[i], and then differentiated; differentiate each number of f(X)[i] first, the norm comes "
                 "last.")
def gradient_of_the_norm(f, X, i):
    return _jacobian(f, X, lambda Y: Y[i].norm()).norm(dim=-1)


ITEMS = [causal_mask, padding_mask, self_attention, leakage]

"""Exercise 05: softmax, its Jacobian, scaled dot-product attention, and style tokens."""

import math

import torch

from course_lib.models import attention as models
from course_lib.models import gradients, style_tokens

from ..judging.draw import decimal, different, whole
from ..judging.spec import Item, normal

IN_CODE = "From formula to code"
IN_SOFTMAX = "From formula to code: the softmax and its derivative"
IN_TEMPERATURE, IN_TOKENS = "Look inside: temperature", "Style tokens"
SDPA = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")


# ---------------------------------------------------------------- softmax

def _softmax_inputs(generator):
    def draw(*shape, dtype=torch.float32):
        return normal(generator, *shape, dtype=dtype)

    def shape(axes):
        return different(generator, axes, high=6)
    high = whole(generator, 720, 900)                    # every exp overflows, in float64 as well
    levels = draw(3, whole(generator, 3, 6)) + high * torch.tensor([[0.0], [1.0], [-1.0]])
    wide = draw(2, whole(generator, 4, 7))
    wide[:, whole(generator, 0, 3)] = torch.tensor([1e4, -1e4])
    equal = whole(generator, 3, 6)
    return [{"x": draw(*shape(3))}, {"x": draw(*shape(2), dtype=torch.float64), "dim": 0}, {"x": draw(equal, equal)},
            {"x": draw(*shape(3)), "dim": 1}, {"x": draw(1, *shape(1)), "dim": -1},
            {"x": draw(*shape(2)) + high, "dim": 0}, {"x": levels[torch.randperm(3, generator=generator)]}, {"x": wide}]


softmax = Item("softmax", 1, _softmax_inputs, models.softmax, ("p, the shape of x",), IN_SOFTMAX,
               free=("softmax", "log_softmax", "softmin", "Softmax", "Softmin", "LogSoftmax"),
               properties=((lambda trial, p: bool((p >= 0).all()), "Softmax gives no negative numbers."),
                           (lambda trial, p: torch.allclose(p.sum(trial.get("dim", -1)).double(),
                                                            torch.ones((), dtype=torch.float64), atol=1e-4),
                            "The sum along dim must be 1.")))


def _ratio(x, dim, of=torch.exp):
    e = of(x)
    return e / e.sum(dim=dim, keepdim=True)


@softmax.mistake("exp overflows: for large x it gives inf / inf = nan. Subtract the maximum along dim first.")
def overflows(x, dim=-1):
    return _ratio(x, dim)


@softmax.mistake("Something other than the maximum is subtracted, perhaps the mean, so a value far above it still overflows. Subtract the MAXIMUM.")
def subtracts_the_mean(x, dim=-1):
    return _ratio(x - x.mean(dim=dim, keepdim=True), dim)


@softmax.mistake("The maximum of the WHOLE tensor is subtracted, so rows far below it become 0 / 0. Subtract each row's own maximum: amax(dim=dim, keepdim=True).")
def global_maximum(x, dim=-1):
    return _ratio(x - x.max(), dim)


@softmax.mistake("dim is ignored: the sum always runs along the last axis.")
def always_the_last_axis(x, dim=-1):
    return models.softmax(x, -1)


@softmax.mistake("dim is ignored: the sum always runs along the first axis.")
def always_the_first_axis(x, dim=-1):
    return models.softmax(x, 0)


@softmax.mistake("When dim is not given, the sum runs along the first axis. The default is the last one, dim=-1.")
def default_is_the_first_axis(x, dim=0):
    return models.softmax(x, dim)


@softmax.mistake("The sum runs over the whole tensor. It should run along dim only.")
def sum_of_everything(x, dim=-1):
    e = torch.exp(x - x.max())
    return e / e.sum()


@softmax.mistake("keepdim=True is missing: without it the maximum and the sum are broadcast along the wrong axis.")
def keepdim_left_out(x, dim=-1):
    e = torch.exp(x - x.amax(dim=dim, keepdim=True))
    return e / e.sum(dim=dim)


@softmax.mistake("exp is missing: x itself is divided by its sum, so weights can be negative.")
def no_exp(x, dim=-1):
    return _ratio(x, dim, of=lambda x: x)


@softmax.mistake("The largest result is 1: exp(x - maximum) must still be divided by its SUM.")
def divides_by_the_largest(x, dim=-1):
    return torch.exp(x - x.amax(dim=dim, keepdim=True))


@softmax.mistake("The sign is wrong: the smallest x gets the largest weight (that is softmin).")
def softmin(x, dim=-1):
    return models.softmax(-x, dim)


@softmax.mistake("This is the logarithm of the softmax: the exp is missing.")
def log_of_it(x, dim=-1):
    return models.softmax(x, dim).log()


@softmax.mistake("The powers have base 2. exp has base e = 2.718.")
def base_two(x, dim=-1):
    return models.softmax(x * math.log(2), dim)


@softmax.mistake("Large x are clamped to keep exp finite, so all of them get the same weight. Subtract the maximum instead.")
def clamps_large_values(x, dim=-1):
    return _ratio(x.clamp(-80, 80), dim)


@softmax.mistake("nan is replaced after the overflow, which loses the large values. Subtract the maximum before exp.")
def nan_to_zero(x, dim=-1):
    return torch.nan_to_num(_ratio(x, dim))


@softmax.mistake("x is changed in place, but the caller still needs it. Write x - maximum, not x -= maximum.")
def in_place(x, dim=-1):
    with torch.no_grad():
        x.sub_(x.amax(dim=dim, keepdim=True))
    return _ratio(x, dim)


@softmax.mistake("dim is ignored: the sum always runs along axis 1.")
def always_axis_1(x, dim=-1):
    return models.softmax(x, 1)


@softmax.mistake("dim is ignored: the sum always runs along the last axis but one, dim=-2.")
def always_the_last_but_one(x, dim=-1):
    return models.softmax(x, -2)


# ---------------------------------------------------------------- softmax_jacobian

def _jacobian_inputs(generator):
    def draw(*shape, dtype=torch.float32):
        return {"p": normal(generator, *shape, dtype=dtype).softmax(dim=-1)}
    equal = whole(generator, 3, 6)
    return [draw(*different(generator, 2, low=3)), draw(whole(generator, 3, 8)),
            draw(*different(generator, 3, low=3), dtype=torch.float64), draw(equal, equal), draw(1, whole(generator, 3, 8))]


softmax_jacobian = Item("softmax_jacobian", 2, _jacobian_inputs, models.softmax_jacobian, ("jacobian (..., n, n)",),
                        IN_SOFTMAX, gradients=False, properties=(
    (lambda trial, J: torch.allclose(J, J.transpose(-2, -1), atol=1e-5), "The Jacobian of softmax is symmetric."),
    (lambda trial, J: bool((J.diagonal(dim1=-2, dim2=-1) >= 0).all()),
     "The diagonal is p_i (1 - p_i), never negative: raising x_i raises p_i.")))


def _outer(p):
    return p[..., :, None] * p[..., None, :]


@softmax_jacobian.mistake("Only the diagonal is there. Raising x_j also lowers every other p_i, by p_i p_j.")
def diagonal_only(p):
    return torch.diag_embed(p * (1 - p))


@softmax_jacobian.mistake("The term - p_i p_j is missing: diag(p) alone ignores that the probabilities sum to 1.")
def outer_product_missing(p):
    return torch.diag_embed(p)


@softmax_jacobian.mistake("The sign is wrong: the Jacobian is diag(p) - p p^T.")
def sign_turned(p):
    return _outer(p) - torch.diag_embed(p)


@softmax_jacobian.mistake("p p^T is added to diag(p). It should be subtracted: the Jacobian is diag(p) - p p^T.")
def outer_product_added(p):
    return torch.diag_embed(p) + _outer(p)


@softmax_jacobian.mistake("p_i (1 - p_j) is used everywhere. The term p_i belongs on the diagonal only; elsewhere the entry is - p_i p_j.")
def p_times_one_minus_p(p):
    return p[..., :, None] * (1 - p[..., None, :])


@softmax_jacobian.mistake("p (1 - p) is one value for each x. The Jacobian has one for each PAIR: (..., n, n).")
def sigmoids_derivative(p):
    return p * (1 - p)


@softmax_jacobian.mistake("The diagonal of p p^T is left out. The diagonal of the Jacobian is p_i - p_i^2.")
def diagonal_not_lowered(p):
    return torch.diag_embed(p) - _outer(p) * (1 - torch.eye(p.size(-1), dtype=p.dtype))


@softmax_jacobian.mistake("The identity is used where diag(p) belongs.")
def identity_for_diag(p):
    return torch.eye(p.size(-1), dtype=p.dtype) - _outer(p)


@softmax_jacobian.mistake("p^T p, a single number, is subtracted. p p^T is a matrix with p_i p_j in row i, column j.")
def inner_product(p):
    return torch.diag_embed(p) - (p * p).sum(dim=-1)[..., None, None]


@softmax_jacobian.mistake("The softmax is applied once more: p is already its result.")
def softmax_twice(p):
    return models.softmax_jacobian(p.softmax(dim=-1))


@softmax_jacobian.mistake("The Jacobians of the batch are added up. Each row of the batch has its own: (..., n, n).")
def summed_over_the_batch(p):
    return models.softmax_jacobian(p).flatten(0, -3).sum(dim=0) if p.dim() > 1 else models.softmax_jacobian(p)


@softmax_jacobian.mistake("Each row is multiplied by p once too often: J_ij is p_i ([i = j] - p_j), with one factor p_i.")
def one_factor_too_many(p):
    return models.softmax_jacobian(p) * p[..., :, None]


@softmax_jacobian.mistake("p_j (1 - p_i) is used everywhere. On the diagonal the entry is p_i (1 - p_i), elsewhere - p_i p_j.")
def p_j_times_one_minus_p_i(p):
    return p[..., None, :] * (1 - p[..., :, None])


@softmax_jacobian.mistake("p_i (1 - p_i) fills the whole row i. It belongs on the diagonal only; elsewhere the entry is - p_i p_j.")
def sigmoids_derivative_in_every_column(p):
    return (p * (1 - p))[..., :, None].expand(*p.shape, p.size(-1)).clone()


@softmax_jacobian.mistake("p_j (1 - p_j) fills the whole column j. It belongs on the diagonal only; elsewhere the entry is - p_i p_j.")
def sigmoids_derivative_in_every_row(p):
    return (p * (1 - p))[..., None, :].expand(*p.shape, p.size(-1)).clone()


# ---------------------------------------------------------------- attention

def _attention_inputs(generator):
    def draw(batch, n, m, d_k, d_v, mask=None, dtype=torch.float32):
        trial = {"Q": normal(generator, *batch, n, d_k, dtype=dtype), "K": normal(generator, *batch, m, d_k, dtype=dtype),
                 "V": normal(generator, *batch, m, d_v, dtype=dtype)}
        return trial if mask is None else {**trial, "mask": _mask(generator, *mask)}

    def trial(batch, mask=None, dtype=torch.float32):
        n, m, d_k, d_v, B = different(generator, 5, low=3)
        sizes = {"B": B, "n": n, "m": m}
        return draw([sizes.get(axis, axis) for axis in batch], n, m, d_k, d_v,
                    mask=mask and [sizes.get(axis, axis) for axis in mask], dtype=dtype)
    equal = whole(generator, 3, 6)
    return [trial(["B"]), trial(["B"], mask=["B", "n", "m"]), trial(["B"], dtype=torch.float64),
            draw([equal], *[equal] * 4, mask=[equal, equal]), trial(["B"], mask=["B", 1, "m"]), trial([]), trial([1, "B"])]


def _mask(generator, *shape):
    """Every query may attend to two keys at least, and not to one at least."""
    order = torch.rand(shape, generator=generator).argsort(dim=-1)
    allowed = torch.randint(2, shape[-1], (*shape[:-1], 1), generator=generator)
    return order < allowed


attention = Item("attention", 3, _attention_inputs, models.attention, ("output (..., n, d_v)", "weights (..., n, m)"),
                 IN_CODE, uses=("softmax",), free=SDPA, properties=(
    (lambda trial, found: torch.allclose(found[1].sum(dim=-1), torch.ones((), dtype=found[1].dtype), atol=1e-4),
     "Each row of weights must add up to 1, over the keys, its last axis."),
    (lambda trial, found: trial.get("mask") is None
     or bool((found[1].masked_fill(trial["mask"], 0) == 0).all()),
     "A key that the mask forbids (False) must get a weight of exactly 0.")))


def _scores(Q, K, scale=None):
    return Q @ K.transpose(-2, -1) / (math.sqrt(Q.size(-1)) if scale is None else scale)


def _masked(scores, mask):
    return scores if mask is None else scores.masked_fill(~mask, -math.inf)


def attention_by(Q, K, V, mask=None, scale=None, dim=-1):
    """attention with another scale, or softmax along another axis: the mistakes of lessons 08 and 09, too."""
    weights = _masked(_scores(Q, K, scale), mask).softmax(dim=dim)
    return weights @ V, weights


def turned_by_T(Q, K, V, mask=None):
    """attention with K.T, which turns the order of all axes and not only of the last two."""
    scores = Q @ K.permute(*reversed(range(K.dim()))) / math.sqrt(Q.size(-1))
    weights = _masked(scores, mask).softmax(dim=-1)
    return weights @ V, weights


@attention.mistake("K.T reverses the order of ALL axes, the batch's as well. Exchange only the last two: K.transpose(-2, -1).")
def T_turns_every_axis(Q, K, V, mask=None):
    return turned_by_T(Q, K, V, mask)


@attention.mistake("The scale is missing. Divide the scores by sqrt(d_k) before the softmax.")
def no_scale(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, 1.0)


@attention.mistake("The scores are divided by d_k. Divide by its ROOT, sqrt(d_k).")
def d_k_not_its_root(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, Q.size(-1))


@attention.mistake("The scores are divided by sqrt(d_v), the width of V. The scale is sqrt(d_k), the width of Q and K.")
def root_of_d_v(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, math.sqrt(V.size(-1)))


@attention.mistake("The scores are divided by sqrt(n), the number of queries. The scale is sqrt(d_k), the width of Q and K.")
def root_of_n(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, math.sqrt(Q.size(-2)))


@attention.mistake("The scores are divided by sqrt(m), the number of keys. The scale is sqrt(d_k), the width of Q and K.")
def root_of_m(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, math.sqrt(K.size(-2)))


@attention.mistake("The scores are multiplied by sqrt(d_k). Divide by it.")
def times_the_root(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, 1 / math.sqrt(Q.size(-1)))


@attention.mistake("The scores are divided by sqrt(d_k) three times: in Q, in K and in the scores. Once is enough.")
def scaled_in_q_and_k_and_scores(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, Q.size(-1) * math.sqrt(Q.size(-1)))


@attention.mistake("Every weight is nan where there is a mask: 0 * -inf is nan, and so is a softmax over nothing but -inf. Fill only the masked scores: masked_fill(~mask, -inf).")
def zero_times_infinity(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, math.nan if mask is not None else None)


@attention.mistake("The scale is applied after the softmax, so the rows no longer sum to 1. Divide the SCORES by sqrt(d_k).")
def scale_after_softmax(Q, K, V, mask=None):
    weights = _masked(_scores(Q, K, 1.0), mask).softmax(dim=-1) / math.sqrt(Q.size(-1))
    return weights @ V, weights


@attention.mistake("The softmax is taken over the queries (dim=-2). Each query distributes its attention over the keys, so use dim=-1.")
def softmax_over_queries(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, dim=-2)


@attention.mistake("The softmax is taken over the first axis. Each query distributes its attention over the keys, so use dim=-1.")
def softmax_over_the_first_axis(Q, K, V, mask=None):
    return attention_by(Q, K, V, mask, dim=0)


@attention.mistake("The mask is inverted. True means MAY attend, so -inf goes where it is False (~mask).")
def mask_inverted(Q, K, V, mask=None):
    return models.attention(Q, K, V, None if mask is None else ~mask)


@attention.mistake("The mask is applied after the softmax, and the remaining weights no longer sum to 1. Put -inf into the SCORES.")
def mask_after_softmax(Q, K, V, mask=None):
    weights = models.attention(Q, K, V)[1]
    weights = weights if mask is None else weights * mask
    return weights @ V, weights


@attention.mistake("The mask is ignored: keys where it is False still get weight.")
def mask_ignored(Q, K, V, mask=None):
    return models.attention(Q, K, V)


@attention.mistake("The mask is added as 0 and 1, which only raises some scores by 1. Masked scores must become -inf.")
def mask_added(Q, K, V, mask=None):
    scores = _scores(Q, K)
    weights = (scores if mask is None else scores + mask).softmax(dim=-1)
    return weights @ V, weights


@attention.mistake("Masked scores are set to 0, and exp(0) = 1 still gives them weight. Set them to -inf.")
def masked_with_zero(Q, K, V, mask=None):
    scores = _scores(Q, K)
    weights = (scores if mask is None else scores * mask).softmax(dim=-1)
    return weights @ V, weights


@attention.mistake("The masked VALUES are set to 0, but their weights stay. Mask the scores, before the softmax.")
def masks_only_the_output(Q, K, V, mask=None):
    output, weights = models.attention(Q, K, V)
    return (output if mask is None else (weights * mask) @ V), weights


@attention.mistake("V is averaged with the raw scores as weights. Take the softmax of the scores first.")
def values_by_scores(Q, K, V, mask=None):
    scores, weights = _scores(Q, K), models.attention(Q, K, V, mask)[1]
    return (scores if mask is None else scores.masked_fill(~mask, 0)) @ V, weights


@attention.mistake("There is no softmax: V is averaged with the raw scores, and they are returned as the weights.")
def no_softmax(Q, K, V, mask=None):
    scores = _scores(Q, K) if mask is None else _scores(Q, K).masked_fill(~mask, 0)
    return scores @ V, scores


@attention.mistake("The second result is the scores. Return the weights, after the softmax.")
def scores_for_weights(Q, K, V, mask=None):
    return models.attention(Q, K, V, mask)[0], _masked(_scores(Q, K), mask)


@attention.mistake("The two results are swapped: output first, weights second.")
def results_swapped(Q, K, V, mask=None):
    return models.attention(Q, K, V, mask)[::-1]


@attention.mistake("Only the output is returned. The weights are needed as well: return output, weights.")
def only_the_output(Q, K, V, mask=None):
    return models.attention(Q, K, V, mask)[0]


@attention.mistake("The keys are averaged instead of the values. The output is weights @ V.")
def keys_for_values(Q, K, V, mask=None):
    weights = models.attention(Q, K, V, mask)[1]
    return weights @ K, weights


@attention.mistake("The scores are transposed, K Q^T. A row belongs to a query, so it is Q K^T.")
def keys_ask(Q, K, V, mask=None):
    return attention_by(K, Q, V, mask)


@attention.mistake("V is on the left, V P. The weights average the ROWS of V, so the product is P V: weights @ V.")
def values_on_the_left(Q, K, V, mask=None):
    weights = models.attention(Q, K, V, mask)[1]
    return V @ weights, weights


@attention.mistake("K is not transposed. The scores are Q K^T, (..., n, m): use K.transpose(-2, -1).")
def keys_not_transposed(Q, K, V, mask=None):
    weights = _masked(Q @ K / math.sqrt(Q.size(-1)), mask).softmax(dim=-1)
    return weights @ V, weights


@attention.mistake("Each query takes only the value of its best key (hard attention). Soft attention averages ALL values by their weights.")
def picks_the_best(Q, K, V, mask=None):
    weights = models.attention(Q, K, V, mask)[1]
    best = torch.zeros_like(weights).scatter(-1, weights.argmax(dim=-1, keepdim=True), 1.0)
    return best @ V, weights


# ---------------------------------------------------------------- style_embedding

def _style_inputs(generator):
    def draw(B, m, d_ref, d_tok, d_model, h, dtype=torch.float32):
        return {"reference": normal(generator, B, d_ref, dtype=dtype), "tokens": normal(generator, m, d_tok, dtype=dtype),
                "W_Q": normal(generator, d_ref, d_model, scale=0.6, dtype=dtype),
                "W_K": normal(generator, d_tok, d_model, scale=0.6, dtype=dtype),
                "W_V": normal(generator, d_tok, d_model, scale=0.6, dtype=dtype), "h": h}
    def trial(h, d_k, B=None, dtype=torch.float32):
        first, *others = different(generator, 4)
        return draw(B or first, *others, h * d_k, h, dtype)
    equal = 2 * whole(generator, 2, 4)
    return [trial(2, whole(generator, 3, 5)), trial(whole(generator, 2, 5), 3, dtype=torch.float64),
            trial(1, whole(generator, 3, 6), B=1), draw(*[equal] * 5, 2), trial(whole(generator, 3, 5), 2)]


style_embedding = Item("style_embedding", 3, _style_inputs, style_tokens.style_embedding,
                       ("embedding (B, d_model)", "weights (B, h, m)"), IN_TOKENS, uses=("softmax", "attention"),
                       free=SDPA)


def _heads(X, h):
    """(rows, d_model) -> (h, rows, d_model / h), contiguous columns"""
    return X.unflatten(-1, (h, -1)).transpose(0, 1)


def _style(reference, tokens, W_Q, W_K, W_V, h, key=torch.tanh, value=torch.tanh, scale=None, dim=-1, heads=_heads):
    """style_embedding with one thing exchanged."""
    Q, K, V = heads(reference @ W_Q, h), heads(key(tokens) @ W_K, h), heads(value(tokens) @ W_V, h)
    output, weights = attention_by(Q, K, V, None, scale, dim)
    return output.transpose(0, 1).flatten(1), weights.transpose(0, 1)


def _same(x):
    return x


@style_embedding.mistake("The tanh is missing: keys and values are computed from tanh(tokens).")
def tanh_left_out(*given):
    return _style(*given, key=_same, value=_same)


@style_embedding.mistake("The values are computed from the tokens without the tanh. Both K and V use tanh(tokens).")
def tanh_for_keys_only(*given):
    return _style(*given, value=_same)


@style_embedding.mistake("The keys are computed from the tokens without the tanh. Both K and V use tanh(tokens).")
def tanh_for_values_only(*given):
    return _style(*given, key=_same)


@style_embedding.mistake("The tanh is applied after the projection. Apply it to the tokens, before W_K and W_V.")
def tanh_after_projection(reference, tokens, W_Q, W_K, W_V, h):
    Q, K, V = (_heads(X, h) for X in (reference @ W_Q, torch.tanh(tokens @ W_K), torch.tanh(tokens @ W_V)))
    output, weights = models.attention(Q, K, V)
    return output.transpose(0, 1).flatten(1), weights.transpose(0, 1)


@style_embedding.mistake("The tanh is applied to the reference too. Only the tokens go through it.")
def tanh_of_the_reference(reference, *rest):
    return _style(torch.tanh(reference), *rest)


@style_embedding.mistake("The roles are swapped. The query comes from the REFERENCE; keys and values come from the tokens.")
def tokens_ask(reference, tokens, W_Q, W_K, W_V, h):
    K, Q = _heads(reference @ W_Q, h), _heads(torch.tanh(tokens) @ W_K, h)
    weights = _scores(Q, K).softmax(dim=-1)                                        # (h, m, B)
    return (weights @ K).transpose(0, 1).flatten(1), weights.transpose(0, 1)


@style_embedding.mistake("The softmax is taken over the batch. Each reference distributes its attention over the TOKENS, the last axis.")
def softmax_over_the_batch(*given):
    return _style(*given, dim=-2)


@style_embedding.mistake("The softmax is taken over the heads. Each head distributes its attention over the TOKENS, the last axis.")
def softmax_over_the_heads(*given):
    return _style(*given, dim=0)


@style_embedding.mistake("h is ignored: there is one head of width d_model. Split Q, K and V into h heads of d_model / h columns.")
def one_head(reference, tokens, W_Q, W_K, W_V, h):
    return _style(reference, tokens, W_Q, W_K, W_V, 1)


@style_embedding.mistake("One head's weights are copied to all heads. Each head has its own columns of Q and K, and so its own weights.")
def one_head_copied(reference, tokens, W_Q, W_K, W_V, h):
    embedding, weights = _style(reference, tokens, W_Q, W_K, W_V, 1)
    return embedding, weights.expand(-1, h, -1)


@style_embedding.mistake("The scale is sqrt(d_model). A head is only d_model / h wide, so it is sqrt(d_model / h).")
def scale_of_the_whole(*given):
    return _style(*given, scale=math.sqrt(given[2].size(-1)))


@style_embedding.mistake("The scale is missing. Divide the scores by sqrt(d_model / h).")
def style_without_scale(*given):
    return _style(*given, scale=1.0)


@style_embedding.mistake("The scores are divided by d_model / h. Divide by its ROOT.")
def scale_not_a_root(*given):
    return _style(*given, scale=given[2].size(-1) / given[5])


@style_embedding.mistake("The scale is the root of the tokens' width d_tok. It should be that of a head's width, sqrt(d_model / h).")
def scale_of_the_tokens(*given):
    return _style(*given, scale=math.sqrt(given[1].size(-1)))


@style_embedding.mistake("Each head takes every h-th column. Head i should take d_model / h NEIGHBOURING columns.")
def heads_interleaved(reference, tokens, W_Q, W_K, W_V, h):
    def heads(X, h):
        return X.unflatten(-1, (-1, h)).movedim(-1, 0)
    return _style(reference, tokens, W_Q, W_K, W_V, h, heads=heads)


@style_embedding.mistake("The heads are made by a bare reshape, which mixes rows and columns. Split the last axis into (h, d_model / h), then move h to the front.")
def heads_by_reshape(reference, tokens, W_Q, W_K, W_V, h):
    def heads(X, h):
        return X.reshape(h, X.size(0), -1)
    return _style(reference, tokens, W_Q, W_K, W_V, h, heads=heads)


@style_embedding.mistake("The heads are right but are joined by a bare reshape, which mixes the references. Move h behind B first, then join the last two axes.")
def joined_by_reshape(reference, tokens, W_Q, W_K, W_V, h):
    Q, K, V = (_heads(X, h) for X in (reference @ W_Q, tokens.tanh() @ W_K, tokens.tanh() @ W_V))
    output, weights = models.attention(Q, K, V)
    return output.reshape(len(reference), -1), weights.transpose(0, 1)


@style_embedding.mistake("The weights are (h, B, m). The batch comes first: (B, h, m).")
def heads_before_batch(*given):
    embedding, weights = _style(*given)
    return embedding, weights.transpose(0, 1)


@style_embedding.mistake("The weights are averaged over the heads. Return those of every head, (B, h, m).")
def weights_averaged(*given):
    embedding, weights = _style(*given)
    return embedding, weights.mean(dim=1)


@style_embedding.mistake("The keys are averaged. The values have a projection of their own, W_V.")
def keys_are_the_values(reference, tokens, W_Q, W_K, W_V, h):
    return _style(reference, tokens, W_Q, W_K, W_K, h)


@style_embedding.mistake("W_K and W_V are exchanged: W_K makes the keys, W_V the values.")
def projections_exchanged(reference, tokens, W_Q, W_K, W_V, h):
    return _style(reference, tokens, W_Q, W_V, W_K, h)


@style_embedding.mistake("The two results are swapped: embedding first, weights second.")
def style_results_swapped(*given):
    return _style(*given)[::-1]


@style_embedding.mistake("Only the embedding is returned. The weights are needed as well: return embedding, weights.")
def only_the_embedding(*given):
    return _style(*given)[0]


# ---------------------------------------------------------------- attention_backward

AUTOGRAD = ("backward", "grad", "vjp", "jacobian", "jacrev", "jacfwd", "hessian", "autograd")


def _backward_inputs(generator):
    def draw(batch, n, m, d_k, d_v, dtype=torch.float32):
        return {"Q": normal(generator, *batch, n, d_k, dtype=dtype), "K": normal(generator, *batch, m, d_k, dtype=dtype),
                "V": normal(generator, *batch, m, d_v, dtype=dtype), "grad_output": normal(generator, *batch, n, d_v, dtype=dtype)}

    def trial(*batch, dtype=torch.float32):
        return draw(batch, *different(generator, 4, low=2), dtype=dtype)
    n, d_k, d_v = different(generator, 3, low=2)
    return [trial(2), trial(3, dtype=torch.float64), trial(), draw([2], n, n, d_k, d_v), draw([2], *[whole(generator, 3, 6)] * 4),
            trial(2, 3)]


attention_backward = Item("attention_backward", 3, _backward_inputs, gradients.attention_backward,
                          ("grad_Q, the shape of Q", "grad_K, the shape of K", "grad_V, the shape of V"), IN_SOFTMAX,
                          free=AUTOGRAD, gradients=False, kind="transfer")


def _backward(Q, K, V, grad_output, scale=None, outer=None, jacobian=lambda A, dA: A * (dA - (A * dA).sum(dim=-1, keepdim=True))):
    """attention_backward with another scale in the weights, another one outside, or another Jacobian."""
    root = 1 / math.sqrt(Q.size(-1))
    scale, outer = root if scale is None else scale, root if outer is None else outer
    weights = (scale * Q @ K.transpose(-2, -1)).softmax(dim=-1)
    grad_scores = outer * jacobian(weights, grad_output @ V.transpose(-2, -1))
    return grad_scores @ K, grad_scores.transpose(-2, -1) @ Q, weights.transpose(-2, -1) @ grad_output


@attention_backward.mistake("grad_Q and grad_K lack the scale. The scores are Q K^T / sqrt(d_k), so both are divided by sqrt(d_k) as well.")
def scale_left_out_of_the_gradients(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, outer=1.0)


@attention_backward.mistake("The scale is missing altogether: in the weights, and in grad_Q and grad_K. The scores are Q K^T / sqrt(d_k).")
def no_scale_at_all(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, scale=1.0, outer=1.0)


@attention_backward.mistake("The weights are computed without the scale. They are softmax(Q K^T / sqrt(d_k)), as in the forward pass.")
def weights_without_the_scale(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, scale=1.0)


@attention_backward.mistake("grad_Q and grad_K are divided by d_k. The scale is applied once, so divide by sqrt(d_k).")
def gradients_scaled_twice(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, outer=1 / Q.size(-1))


@attention_backward.mistake("The second term of the softmax's Jacobian is missing. A score also lowers all other weights of its row: subtract the row sum of weights * grad_weights.")
def second_term_missing(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, jacobian=lambda A, dA: A * dA)


@attention_backward.mistake("Only the diagonal of the softmax's Jacobian is used, weights * (1 - weights). A score also changes all other weights of its row.")
def diagonal_of_the_jacobian_only(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, jacobian=lambda A, dA: A * (1 - A) * dA)


@attention_backward.mistake("The row sum is subtracted without the factor weights. Entry (i, j) is weights_ij * (grad_weights_ij - row sum).")
def row_sum_without_its_factor(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, jacobian=lambda A, dA: A * dA - (A * dA).sum(dim=-1, keepdim=True))


@attention_backward.mistake("The sum in the softmax's Jacobian runs over the queries. Each query has a softmax of its own, so sum over the keys, dim=-1.")
def sum_over_the_queries(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, jacobian=lambda A, dA: A * (dA - (A * dA).sum(dim=-2, keepdim=True)))


@attention_backward.mistake("The row sum of grad_weights is subtracted. It should be the sum of weights * grad_weights, the mean under the weights.")
def sum_not_weighted(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, jacobian=lambda A, dA: A * (dA - dA.sum(dim=-1, keepdim=True)))


@attention_backward.mistake("The softmax is not differentiated at all: the gradient to the weights is used as the gradient to the scores.")
def softmax_not_differentiated(Q, K, V, grad_output):
    return _backward(Q, K, V, grad_output, jacobian=lambda A, dA: dA)


@attention_backward.mistake("The weights are not transposed in grad_V. Y = weights V, so grad_V = weights^T grad_output, with one row for each key.")
def weights_not_transposed(Q, K, V, grad_output):
    grad_Q, grad_K, _ = _backward(Q, K, V, grad_output)
    return grad_Q, grad_K, (Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))).softmax(dim=-1) @ grad_output


@attention_backward.mistake("The gradient to the scores is not transposed in grad_K. grad_K = grad_scores^T Q / sqrt(d_k), with one row for each key.")
def scores_not_transposed(Q, K, V, grad_output):
    grad_Q, _, grad_V = _backward(Q, K, V, grad_output)
    weights = (Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))).softmax(dim=-1)
    grad_weights = grad_output @ V.transpose(-2, -1)
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(dim=-1, keepdim=True))
    return grad_Q, grad_scores @ Q / math.sqrt(Q.size(-1)), grad_V


@attention_backward.mistake("K.T reverses the order of ALL axes, the batch's as well. Exchange only the last two: K.transpose(-2, -1), and the same for the other matrices.")
def backward_T_turns_every_axis(Q, K, V, grad_output):
    weights = (Q @ K.T / math.sqrt(Q.size(-1))).softmax(dim=-1)
    grad_weights = grad_output @ V.T
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(dim=-1, keepdim=True)) / math.sqrt(Q.size(-1))
    return grad_scores @ K, grad_scores.T @ Q, weights.T @ grad_output


@attention_backward.mistake("grad_Q and grad_K are exchanged. Return (grad_Q, grad_K, grad_V).")
def gradients_exchanged(Q, K, V, grad_output):
    grad_Q, grad_K, grad_V = _backward(Q, K, V, grad_output)
    return grad_K, grad_Q, grad_V


@attention_backward.mistake("The sign of grad_Q and grad_K is flipped. Return the gradients themselves, not the direction of a training step.")
def gradients_negated(Q, K, V, grad_output):
    grad_Q, grad_K, grad_V = _backward(Q, K, V, grad_output)
    return -grad_Q, -grad_K, grad_V


# ---------------------------------------------------------------- look_up

def _look_up_inputs(generator):
    def draw(batch, n, m, d_k, d_v, dtype=torch.float32):
        return {"queries": normal(generator, *batch, n, d_k, dtype=dtype), "keys": normal(generator, *batch, m, d_k, dtype=dtype),
                "values": normal(generator, *batch, m, d_v, dtype=dtype), "temperature": decimal(generator, 0.4, 0.9)}

    def trial(*batch, dtype=torch.float32):
        return draw(batch, *different(generator, 4, low=3), dtype=dtype)
    return [trial(), trial(2, dtype=torch.float64), trial(3), draw([2], *[whole(generator, 3, 6)] * 4), trial(1)]


def _look_up(queries, keys, values, temperature):
    weights = (queries @ keys.transpose(-2, -1) / temperature).softmax(dim=-1)          # (..., n, m)
    return weights @ values, weights


look_up = Item("look_up", 2, _look_up_inputs, _look_up, ("output (..., n, d_v)", "weights (..., n, m)"), IN_TEMPERATURE, free=SDPA)


def _first_row_sum(answer, trial):
    _, weights = answer(**trial)
    return f"The weights of query 0 sum to {weights.flatten(0, -2)[0].sum():.2f}. They should sum to 1."


@look_up.plant("The softmax is taken over the queries (dim=-2). Its author checked only that all weights together sum to n, with n = m.", _first_row_sum)
def _softmax_over_the_queries(queries, keys, values, temperature):
    weights = (queries @ keys.transpose(-2, -1) / temperature).softmax(dim=-2)
    return weights @ values, weights


def _found_by(queries, keys, values, factor):
    weights = (factor * queries @ keys.transpose(-2, -1)).softmax(dim=-1)
    return weights @ values, weights


@look_up.mistake("The weights are divided by their sum afterwards, so the softmax over the queries is still in them. Take the softmax over the keys.")
def normalised_afterwards(queries, keys, values, temperature):
    weights = (queries @ keys.transpose(-2, -1) / temperature).softmax(dim=-2)
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ values, weights


@look_up.mistake("The scores are multiplied by the temperature. Divide by it: a low temperature makes the choice harder.")
def times_the_temperature(queries, keys, values, temperature):
    return _found_by(queries, keys, values, temperature)


@look_up.mistake("The temperature is ignored. The scores are divided by it before the softmax.")
def temperature_ignored(queries, keys, values, temperature):
    return _found_by(queries, keys, values, 1.0)


@look_up.mistake("The scores are divided by sqrt(d_k) as well. Here the temperature alone sets the scale.")
def root_of_d_k_as_well(queries, keys, values, temperature):
    return _found_by(queries, keys, values, 1 / (temperature * math.sqrt(queries.size(-1))))


@look_up.mistake("The scores are divided by sqrt(d_k) instead of the temperature.")
def root_of_d_k_instead(queries, keys, values, temperature):
    return _found_by(queries, keys, values, 1 / math.sqrt(queries.size(-1)))


@look_up.mistake("The weights are divided by the temperature after the softmax. Divide the scores, before it.")
def temperature_after_the_softmax(queries, keys, values, temperature):
    weights = (queries @ keys.transpose(-2, -1)).softmax(dim=-1) / temperature
    return weights @ values, weights


@look_up.mistake("The softmax is taken over queries and keys together. Each query has weights of its own, which sum to 1 over the keys.")
def softmax_over_everything(queries, keys, values, temperature):
    scores = queries @ keys.transpose(-2, -1) / temperature
    weights = scores.flatten(-2).softmax(dim=-1).view_as(scores)
    return weights @ values, weights


ITEMS = [softmax, softmax_jacobian, attention, style_embedding, attention_backward, look_up]

"""Exercise 09: heads split, heads merged, and multi-head attention as a module."""

import math

import torch
from torch import nn

from ..models import attention as models
from .lesson_05_query_key_value import attention_by, scale_after_softmax
from .spec import Item, normal

IN_SPLIT, IN_MERGE, IN_OPERATION = "Splitting", "Merging", "Operation"
FREE = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")


# ---------------------------------------------------------------- split_heads

def _split_inputs(generator):
    def draw(B, n, d_model, h, dtype=torch.float32):
        return {"X": normal(generator, B, n, d_model, dtype=dtype), "h": h}
    return [draw(2, 3, 8, 2), draw(3, 5, 6, 3, torch.float64), draw(1, 4, 10, 2), draw(4, 4, 16, 4), draw(2, 7, 3, 3),
            draw(3, 2, 5, 1)]


split_heads = Item("split_heads", 1, _split_inputs, models.split_heads, ("heads (B, h, n, d_k)",), IN_SPLIT)


@split_heads.mistake("X.view(B, h, n, d_k) reads on in memory and mixes words and heads: cut to (B, n, h, d_k) first, then "
                     "transpose(1, 2).")
def view_without_transpose(X, h):
    B, n, d_model = X.shape
    return X.view(B, h, n, d_model // h)


@split_heads.mistake("the heads take every h-th number of a word; head i owns d_k numbers that stand TOGETHER: cut to "
                     "(B, n, h, d_k).")
def heads_interleaved(X, h):
    return X.unflatten(-1, (-1, h)).permute(0, 3, 1, 2)


@split_heads.mistake("the heads are still behind the words, (B, n, h, d_k): transpose(1, 2) brings them forward.")
def not_transposed(X, h):
    return X.unflatten(-1, (h, -1))


@split_heads.mistake("the last two axes have changed places, (B, h, d_k, n); words stand before numbers, (B, h, n, d_k).")
def words_last(X, h):
    return models.split_heads(X, h).transpose(2, 3)


@split_heads.mistake("the transpose comes before the cut, on (B, n, d_model): cut first, view(B, n, h, d_k), then transpose(1, 2).")
def transposed_before_the_cut(X, h):
    B, n, d_model = X.shape
    return X.transpose(1, 2).reshape(B, h, n, d_model // h)


@split_heads.mistake("h and d_k have changed roles: these are d_k heads of h numbers each.")
def h_and_d_k_exchanged(X, h):
    return models.split_heads(X, X.size(-1) // h)


@split_heads.mistake("the heads stand before the batch, (h, B, n, d_k); the batch comes first, (B, h, n, d_k).")
def heads_before_batch(X, h):
    return models.split_heads(X, h).transpose(0, 1)


@split_heads.mistake("batch and heads are one axis, (B h, n, d_k); here they stay apart, (B, h, n, d_k).")
def one_axis(X, h):
    return models.split_heads(X, h).flatten(0, 1)


@split_heads.mistake("only the first head is returned; all h are wanted, (B, h, n, d_k).")
def first_head_only(X, h):
    return models.split_heads(X, h)[:, 0]


@split_heads.mistake("the heads come in reversed order: head 0 has the first d_k numbers.")
def heads_reversed(X, h):
    return models.split_heads(X, h).flip(1)


@split_heads.mistake("every head gets the whole word; each gets its own d_model / h numbers.")
def whole_word_for_every_head(X, h):
    return X[:, None].expand(-1, h, -1, -1)


@split_heads.mistake("the pieces are separate tensors (torch.split or chunk); stack them to one tensor, torch.stack(pieces, dim=1).")
def separate_pieces(X, h):
    return X.chunk(h, dim=-1)


# ---------------------------------------------------------------- merge_heads

def _merge_inputs(generator):
    def draw(B, h, n, d_k, dtype=torch.float32):
        return {"X": normal(generator, B, h, n, d_k, dtype=dtype)}
    return [draw(2, 4, 3, 5), draw(3, 2, 5, 4, torch.float64), draw(1, 3, 4, 2), draw(4, 4, 4, 4), draw(2, 3, 5, 1),
            draw(3, 1, 2, 4)]


merge_heads = Item("merge_heads", 1, _merge_inputs, models.merge_heads, ("merged (B, n, d_model)",), IN_MERGE)


@merge_heads.mistake("the reshape comes without a transpose, which mixes heads and words: words before heads first, "
                     "transpose(1, 2).")
def reshape_without_transpose(X):
    B, h, n, d_k = X.shape
    return X.reshape(B, n, h * d_k)


@merge_heads.mistake("flatten(2) comes without a transpose: it joins words and numbers, (B, h, n d_k); heads and numbers are "
                     "to be joined.")
def words_joined(X):
    return X.flatten(2)


@merge_heads.mistake("the numbers of the heads alternate; each head's d_k numbers stay TOGETHER: (B, n, h, d_k), then flatten.")
def merged_interleaved(X):
    return X.permute(0, 2, 3, 1).flatten(2)


@merge_heads.mistake("the heads are added up; they are laid side by side (W_O will do the adding).")
def heads_summed(X):
    return X.sum(dim=1)


@merge_heads.mistake("the heads are averaged; they are laid side by side.")
def heads_averaged(X):
    return X.mean(dim=1)


@merge_heads.mistake("the heads follow each other along the words, (B, h n, d_k); they are to stand side by side in each word.")
def along_the_words(X):
    return X.flatten(1, 2)


@merge_heads.mistake("the heads come in reversed order: head 0 goes first.")
def merged_reversed(X):
    return models.merge_heads(X.flip(1))


@merge_heads.mistake("the words are at the front but not joined, (B, n, h, d_k): flatten(2) is still to come.")
def not_flattened(X):
    return X.transpose(1, 2)


@merge_heads.mistake("the wrong axes change places: heads and words do, transpose(1, 2), not words and numbers.")
def numbers_transposed(X):
    return X.transpose(2, 3).flatten(2)


@merge_heads.mistake("the numbers stand before the words, (B, d_model, n); words come first, (B, n, d_model).")
def numbers_before_words(X):
    return models.merge_heads(X).transpose(1, 2)


@merge_heads.mistake("only the first head is there; all h stand side by side.")
def merged_first_head_only(X):
    return X[:, 0]


# ---------------------------------------------------------------- MultiHeadAttention

def _module_inputs(generator):
    def draw(B, n, m, d_model, h, mask, dtype=torch.float32):
        state = {f"W_{name}.weight": normal(generator, d_model, d_model, scale=1.2 / math.sqrt(d_model), dtype=dtype)
                 for name in "QKVO"}
        def given(n, m):
            return [normal(generator, B, size, d_model, dtype=dtype) for size in (n, m, m)]
        calls = [("train", given(n, m)), ("eval", [*given(n, m), _mask(generator, *mask)])]
        return {"arguments": [d_model, h], "state": state, "calls": calls, "reads": [], "whole": True}
    return [draw(2, 3, 5, 8, 4, (2, 3, 5)), draw(3, 4, 5, 6, 2, (4, 5), torch.float64), draw(1, 2, 4, 6, 3, (1, 1, 4)),
            draw(4, 4, 4, 16, 4, (4, 4, 4)), draw(3, 2, 6, 4, 2, (3, 1, 6))]


def _mask(generator, *shape):
    """Every query may attend to two keys at least, and not to one at least."""
    order = torch.rand(shape, generator=generator).argsort(dim=-1)
    allowed = torch.randint(2, shape[-1], (*shape[:-1], 1), generator=generator)
    return order < allowed


def _rows_sum_to_one(trial, output):
    one = torch.ones((), dtype=torch.float64)
    return all(torch.allclose(found[1].double().sum(dim=-1), one, atol=1e-4) for found in output[:2])


def _mask_is_kept(trial, output):
    mask = trial["calls"][1][1][3]
    mask = mask[:, None] if mask.dim() == 3 else mask
    return bool((output[1][1].masked_fill(mask, 0) == 0).all())


MultiHeadAttention = Item(
    "MultiHeadAttention", 3, _module_inputs, models.MultiHeadAttention,
    ("without_mask: output (B, n, d_model), weights (B, h, n, m)", "with_mask: output (B, n, d_model), weights (B, h, n, m)",
     "takes_gradients, a list of names"), IN_OPERATION, uses=("split_heads", "merge_heads"), handed=("attention",), free=FREE,
    probe="build", properties=(
        (_rows_sum_to_one, "each row of weights must add up to 1, over the keys, its last axis."),
        (_mask_is_kept, "a key that the mask forbids (False) must get a weight of exactly 0, in every head.")))


def _for_heads(mask):
    return mask[:, None] if mask is not None and mask.dim() == 3 else mask


class _Heads(models.MultiHeadAttention):
    """The right one in its parts; each mistake below exchanges one of them."""

    split, merge = staticmethod(models.split_heads), staticmethod(models.merge_heads)

    def project(self, q, k, v):
        return self.W_Q(q), self.W_K(k), self.W_V(v)

    def scale(self, Q):
        return math.sqrt(Q.size(-1))

    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V, _for_heads(mask), self.scale(Q))

    def finish(self, merged):
        return self.W_O(merged)

    def forward(self, q, k, v, mask=None):
        Q, K, V = (self.split(X, self.h) for X in self.project(q, k, v))
        output, weights = self.attend(Q, K, V, mask)
        return self.finish(self.merge(output)), weights


@MultiHeadAttention.mistake("the scores are divided by sqrt(d_model); a head is only d_k = d_model / h wide: sqrt(d_k).")
class scale_by_d_model(_Heads):
    def scale(self, Q):
        return math.sqrt(self.W_Q.in_features)


@MultiHeadAttention.mistake("the scale is missing: divide the scores by sqrt(d_k), d_k = d_model / h.")
class scale_missing(_Heads):
    def scale(self, Q):
        return 1.0


@MultiHeadAttention.mistake("the scores are divided by d_k; divide by its ROOT.")
class scale_no_root(_Heads):
    def scale(self, Q):
        return Q.size(-1)


@MultiHeadAttention.mistake("the scores are divided by sqrt(h), the number of heads; the scale is sqrt(d_k), their width.")
class scale_by_h(_Heads):
    def scale(self, Q):
        return math.sqrt(self.h)


@MultiHeadAttention.mistake("the scale comes after the softmax, so rows no longer add up to 1; divide the SCORES by sqrt(d_k).")
class module_scaled_after_softmax(_Heads):
    def attend(self, Q, K, V, mask):
        return scale_after_softmax(Q, K, V, _for_heads(mask))


@MultiHeadAttention.mistake("W_O is left out of forward: the merged heads pass through it at the end.")
class w_o_left_out(_Heads):
    def finish(self, merged):
        return merged


@MultiHeadAttention.mistake("there is no W_O: four nn.Linear without bias are wanted, W_Q, W_K, W_V and W_O.")
class no_w_o(_Heads):
    def __init__(self, d_model, h):
        super().__init__(d_model, h)
        del self.W_O


def _with_bias(names, sentence):
    class biased(_Heads):
        def __init__(self, d_model, h):
            super().__init__(d_model, h)
            for name in names:
                setattr(self, name, nn.Linear(d_model, d_model))
    biased.__name__ = "bias_in_" + "_".join(names).lower()
    MultiHeadAttention.mistake(sentence)(biased)


_with_bias(["W_Q", "W_K", "W_V", "W_O"], "the four projections have a bias; here they have none: nn.Linear(..., bias=False).")
_with_bias(["W_O"], "W_O has a bias; none of the four has one here: nn.Linear(d_model, d_model, bias=False).")


@MultiHeadAttention.mistake("the keys are projected by W_Q; they have their own matrix, W_K.")
class k_projected_by_w_q(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_Q(k), self.W_V(v)


@MultiHeadAttention.mistake("the values are projected by W_K; they have their own matrix, W_V.")
class v_projected_by_w_k(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_K(k), self.W_K(v)


@MultiHeadAttention.mistake("all three are projected by W_Q; each has a matrix of its own.")
class all_projected_by_w_q(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_Q(k), self.W_Q(v)


@MultiHeadAttention.mistake("W_K and W_V are exchanged: W_K projects k, W_V projects v.")
class w_k_and_w_v_exchanged(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_V(k), self.W_K(v)


@MultiHeadAttention.mistake("the values are made from k; the third argument, v, is not used.")
class values_from_k(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_K(k), self.W_V(k)


@MultiHeadAttention.mistake("the keys are made from v; they come from the second argument, k.")
class keys_from_v(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_K(v), self.W_V(v)


@MultiHeadAttention.mistake("q, k and v are not projected: W_Q, W_K and W_V come before the split.")
class not_projected(_Heads):
    def project(self, q, k, v):
        return q, k, v


@MultiHeadAttention.mistake("the mask is not broadcast over the heads: (B, n, m) needs an axis of 1 for them, mask[:, None]; "
                            "without it, its B lines up with the h heads.")
class mask_not_broadcast(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V, mask)


@MultiHeadAttention.mistake("the mask is ignored: keys where it is False still get weight.")
class module_mask_ignored(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V)


@MultiHeadAttention.mistake("the mask is inverted: True means MAY attend (nn.MultiheadAttention means the opposite).")
class module_mask_inverted(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V, None if mask is None else ~_for_heads(mask))


@MultiHeadAttention.mistake("only the first head is masked; the mask is the same for every head.")
class only_the_first_head_masked(_Heads):
    def attend(self, Q, K, V, mask):
        if mask is not None:
            free = torch.ones(Q.size(0), self.h - 1, Q.size(2), K.size(2), dtype=torch.bool)
            mask = torch.cat([_for_heads(mask).expand(Q.size(0), 1, Q.size(2), K.size(2)), free], dim=1)
        return attention_by(Q, K, V, mask)


@MultiHeadAttention.mistake("the mask acts after the softmax, so what it forbids still counts in the sum below; put -inf into "
                            "the SCORES.")
class module_mask_after_softmax(_Heads):
    def attend(self, Q, K, V, mask):
        weights = attention_by(Q, K, V)[1]
        weights = weights if mask is None else weights * _for_heads(mask)
        return weights @ V, weights


@MultiHeadAttention.mistake("what reaches W_O is only d_k wide: the heads are summed or averaged, or one alone is kept; lay all of them "
                            "side by side, (B, n, d_model).")
class heads_summed_before_w_o(_Heads):
    @staticmethod
    def merge(output):
        return output.sum(dim=1)


@MultiHeadAttention.mistake("the heads' outputs are averaged before W_O: they are laid side by side, (B, n, d_model).")
class heads_averaged_before_w_o(_Heads):
    @staticmethod
    def merge(output):
        return output.mean(dim=1).repeat(1, 1, output.size(1))


@MultiHeadAttention.mistake("the weights are averaged over the heads; return those of every head, (B, h, n, m).")
class averaged_weights(_Heads):
    def forward(self, q, k, v, mask=None):
        output, weights = super().forward(q, k, v, mask)
        return output, weights.mean(dim=1)


@MultiHeadAttention.mistake("h is ignored: one head of width d_model. Split Q, K and V into h heads.")
class one_head(_Heads):
    def __init__(self, d_model, h):
        super().__init__(d_model, 1)


@MultiHeadAttention.mistake("the heads are cut by a bare view, which mixes words and heads: (B, n, h, d_k) first, then "
                            "transpose(1, 2).")
class split_by_view(_Heads):
    split = staticmethod(view_without_transpose)


@MultiHeadAttention.mistake("split and merge are both bare reshapes, which mix words and heads: transpose(1, 2) is missing in "
                            "both.")
class split_and_merge_by_view(_Heads):
    split, merge = staticmethod(view_without_transpose), staticmethod(reshape_without_transpose)


@MultiHeadAttention.mistake("the heads are merged by a bare reshape, which mixes words and heads: transpose(1, 2) comes first.")
class merged_by_view(_Heads):
    merge = staticmethod(reshape_without_transpose)


@MultiHeadAttention.mistake("the heads take every h-th number; head i owns d_k numbers that stand TOGETHER.")
class split_interleaved(_Heads):
    split, merge = staticmethod(heads_interleaved), staticmethod(merged_interleaved)


@MultiHeadAttention.mistake("the softmax runs over the heads; each query shares 1 among its KEYS, dim=-1.")
class softmax_over_heads(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V, _for_heads(mask), dim=1)


@MultiHeadAttention.mistake("the softmax runs over the queries (dim=-2); each query shares 1 among its KEYS, dim=-1.")
class module_softmax_over_queries(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V, _for_heads(mask), dim=-2)


@MultiHeadAttention.mistake("q is added to the output; the residual path is built around this module, in lesson 11, not in it.")
class residual_inside(_Heads):
    def forward(self, q, k, v, mask=None):
        output, weights = super().forward(q, k, v, mask)
        return q + output, weights


@MultiHeadAttention.mistake("the two results are swapped: output first, weights second.")
class module_results_swapped(_Heads):
    def forward(self, q, k, v, mask=None):
        return super().forward(q, k, v, mask)[::-1]


@MultiHeadAttention.mistake("only the output is returned; the weights are wanted as well: return output, weights.")
class module_only_the_output(_Heads):
    def forward(self, q, k, v, mask=None):
        return super().forward(q, k, v, mask)[0]


ITEMS = [split_heads, merge_heads, MultiHeadAttention]

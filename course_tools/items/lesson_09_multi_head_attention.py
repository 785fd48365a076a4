"""Exercise 09: heads split, heads merged, multi-head attention as a module, and keys and values that heads share."""

import math

import torch
from torch import nn

from course_lib.models import attention as models
from course_lib.models import grouped_query

from ..judging.draw import different, whole
from ..judging.spec import Item, normal
from .lesson_05_query_key_value import attention_by, scale_after_softmax, turned_by_T

IN_SPLIT, IN_MODULE = "Split and merge", "The module"
FREE = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")


# ---------------------------------------------------------------- split_heads

def _split_inputs(generator):
    def draw(B, n, d_model, h, dtype=torch.float32):
        return {"X": normal(generator, B, n, d_model, dtype=dtype), "h": h}
    def trial(B=None, h=None, d_k=None, dtype=torch.float32):
        b, n, k, d = different(generator, 4, high=7)
        h, d_k = h or k, d_k or d
        return draw(B or b, n, h * d_k, h, dtype)
    equal = whole(generator, 3, 6)
    return [trial(), trial(dtype=torch.float64), trial(B=1), draw(equal, equal, equal ** 2, equal), trial(d_k=1), trial(h=1)]


split_heads = Item("split_heads", 1, _split_inputs, models.split_heads, ("heads (B, h, n, d_k)",), IN_SPLIT)


@split_heads.mistake("X.view(B, h, n, d_k) reads on in memory and mixes positions and heads. Split into (B, n, h, d_k) first, then transpose(1, 2).")
def view_without_transpose(X, h):
    B, n, d_model = X.shape
    return X.view(B, h, n, d_model // h)


@split_heads.mistake("Each head takes every h-th feature. Head i takes d_k NEIGHBOURING features: split into (B, n, h, d_k).")
def heads_interleaved(X, h):
    return X.unflatten(-1, (-1, h)).permute(0, 3, 1, 2)


@split_heads.mistake("The heads still come after the positions, (B, n, h, d_k). transpose(1, 2) moves them forward.")
def not_transposed(X, h):
    return X.unflatten(-1, (h, -1))


@split_heads.mistake("The last two axes are exchanged, (B, h, d_k, n). Positions come before features: (B, h, n, d_k).")
def words_last(X, h):
    return models.split_heads(X, h).transpose(2, 3)


@split_heads.mistake("The transpose comes before the split, on (B, n, d_model). Split first, view(B, n, h, d_k), then transpose(1, 2).")
def transposed_before_the_cut(X, h):
    B, n, d_model = X.shape
    return X.transpose(1, 2).reshape(B, h, n, d_model // h)


@split_heads.mistake("h and d_k are exchanged: these are d_k heads of h features each.")
def h_and_d_k_exchanged(X, h):
    return models.split_heads(X, X.size(-1) // h)


@split_heads.mistake("The heads come before the batch, (h, B, n, d_k). The batch comes first: (B, h, n, d_k).")
def heads_before_batch(X, h):
    return models.split_heads(X, h).transpose(0, 1)


@split_heads.mistake("Batch and heads are joined in one axis, (B h, n, d_k). Here they stay separate: (B, h, n, d_k).")
def one_axis(X, h):
    return models.split_heads(X, h).flatten(0, 1)


@split_heads.mistake("Only the first head is returned. Return all h: (B, h, n, d_k).")
def first_head_only(X, h):
    return models.split_heads(X, h)[:, 0]


@split_heads.mistake("The heads are in reversed order. Head 0 has the first d_k features.")
def heads_reversed(X, h):
    return models.split_heads(X, h).flip(1)


@split_heads.mistake("Every head gets the whole vector. Each gets its own d_model / h features.")
def whole_word_for_every_head(X, h):
    return X[:, None].expand(-1, h, -1, -1)


@split_heads.mistake("The heads are separate tensors (torch.split or chunk). Stack them into one tensor: torch.stack(pieces, dim=1).")
def separate_pieces(X, h):
    return X.chunk(h, dim=-1)


@split_heads.mistake("h is not used: there is one head, as wide as the whole vector. Split d_model into h heads of d_k = d_model / h features.")
def h_ignored(X, h):
    return X[:, None]


# ---------------------------------------------------------------- merge_heads

def _merge_inputs(generator):
    def draw(B, h, n, d_k, dtype=torch.float32):
        return {"X": normal(generator, B, h, n, d_k, dtype=dtype)}
    def trial(**fixed):
        return draw(**dict(zip(("B", "h", "n", "d_k"), different(generator, 4, high=7), strict=True)) | fixed)
    return [trial(), trial(dtype=torch.float64), trial(B=1), draw(*[whole(generator, 3, 6)] * 4), trial(d_k=1), trial(h=1)]


merge_heads = Item("merge_heads", 1, _merge_inputs, models.merge_heads, ("merged (B, n, d_model)",), IN_SPLIT)


@merge_heads.mistake("The reshape comes without a transpose, which mixes heads and positions. Move positions before heads first: transpose(1, 2).")
def reshape_without_transpose(X):
    B, h, n, d_k = X.shape
    return X.reshape(B, n, h * d_k)


@merge_heads.mistake("flatten(2) comes without a transpose, so it joins positions and features, (B, h, n d_k). Join heads and features.")
def words_joined(X):
    return X.flatten(2)


@merge_heads.mistake("The features of the heads alternate. Each head's d_k features stay TOGETHER: (B, n, h, d_k), then flatten.")
def merged_interleaved(X):
    return X.permute(0, 2, 3, 1).flatten(2)


@merge_heads.mistake("The heads are added up. Concatenate them; W_O mixes them afterwards.")
def heads_summed(X):
    return X.sum(dim=1)


@merge_heads.mistake("The heads are averaged. Concatenate them.")
def heads_averaged(X):
    return X.mean(dim=1)


@merge_heads.mistake("The heads are concatenated along the positions, (B, h n, d_k). Concatenate them along the features of each position.")
def along_the_words(X):
    return X.flatten(1, 2)


@merge_heads.mistake("The heads are in reversed order. Head 0 comes first.")
def merged_reversed(X):
    return models.merge_heads(X.flip(1))


@merge_heads.mistake("The positions come first, but the heads are not joined yet, (B, n, h, d_k). flatten(2) is missing.")
def not_flattened(X):
    return X.transpose(1, 2)


@merge_heads.mistake("The wrong axes are exchanged. Exchange heads and positions, transpose(1, 2), not positions and features.")
def numbers_transposed(X):
    return X.transpose(2, 3).flatten(2)


@merge_heads.mistake("The features come before the positions, (B, d_model, n). Positions come first: (B, n, d_model).")
def numbers_before_words(X):
    return models.merge_heads(X).transpose(1, 2)


@merge_heads.mistake("Only the first head is there. Concatenate all h.")
def merged_first_head_only(X):
    return X[:, 0]


# ---------------------------------------------------------------- MultiHeadAttention

def _module_inputs(generator):
    def draw(B, n, m, d_model, h, mask, dtype=torch.float32):
        state = {f"W_{name}.weight": normal(generator, d_model, d_model, scale=1.2 / math.sqrt(d_model), dtype=dtype)
                 for name in "QKVO"}
        def given(n, m):
            return [normal(generator, B, size, d_model, dtype=dtype) for size in (n, m, m)]
        calls = [("train", given(n, m)), ("eval", [*given(n, m), _mask(generator, *mask)]), ("train", given(n, m))]
        return {"arguments": [d_model, h], "state": state, "calls": calls, "reads": [], "whole": True}
    def trial(mask, B=None, dtype=torch.float32):
        b, n, m = different(generator, 3, 3, 7)
        h, d_k = different(generator, 2, 2, 5)
        sizes = {"B": B or b, "n": n, "m": m}
        return draw(B or b, n, m, h * d_k, h, [sizes.get(axis, axis) for axis in mask], dtype)
    equal = whole(generator, 3, 5)
    return [trial(["B", "n", "m"]), trial(["B", "n", "m"], dtype=torch.float64), trial([1, 1, "m"], B=1),
            draw(equal, equal, equal, equal ** 2, equal, [equal] * 3), trial(["B", 1, "m"]), trial(["n", "m"])]


def _mask(generator, *shape):
    """Every query may attend to two keys at least, and not to one at least."""
    order = torch.rand(shape, generator=generator).argsort(dim=-1)
    allowed = torch.randint(2, shape[-1], (*shape[:-1], 1), generator=generator)
    return order < allowed


def _rows_sum_to_one(trial, output):
    one = torch.ones((), dtype=torch.float64)
    return all(torch.allclose(found[1].double().sum(dim=-1), one, atol=1e-4) for found in output[:3])


def _mask_is_kept(trial, output):
    mask = trial["calls"][1][1][3]
    mask = mask[:, None] if mask.dim() == 3 else mask
    return bool((output[1][1].masked_fill(mask, 0) == 0).all())


MultiHeadAttention = Item(
    "MultiHeadAttention", 3, _module_inputs, models.MultiHeadAttention,
    ("without_mask: output (B, n, d_model), weights (B, h, n, m)", "with_mask: output (B, n, d_model), weights (B, h, n, m)",
     "without_mask_again: output (B, n, d_model), weights (B, h, n, m)",
     "takes_gradients, a list of names"), IN_MODULE, uses=("split_heads", "merge_heads"), handed=("attention",), free=FREE,
    probe="build", properties=(
        (_rows_sum_to_one, "Each row of weights must add up to 1, over the keys, its last axis."),
        (_mask_is_kept, "A key that the mask forbids (False) must get a weight of exactly 0, in every head.")))


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


@MultiHeadAttention.mistake("The scores are divided by sqrt(d_model). A head is only d_k = d_model / h wide, so divide by sqrt(d_k).")
class scale_by_d_model(_Heads):
    def scale(self, Q):
        return math.sqrt(self.W_Q.in_features)


@MultiHeadAttention.mistake("The scale is missing. Divide the scores by sqrt(d_k), where d_k = d_model / h.")
class scale_missing(_Heads):
    def scale(self, Q):
        return 1.0


@MultiHeadAttention.mistake("The scores are divided by d_k. Divide by its ROOT.")
class scale_no_root(_Heads):
    def scale(self, Q):
        return Q.size(-1)


@MultiHeadAttention.mistake("The scores are divided by sqrt(h), the number of heads. The scale is sqrt(d_k), the width of a head.")
class scale_by_h(_Heads):
    def scale(self, Q):
        return math.sqrt(self.h)


@MultiHeadAttention.mistake("The scale is applied after the softmax, so the rows no longer sum to 1. Divide the SCORES by sqrt(d_k).")
class module_scaled_after_softmax(_Heads):
    def attend(self, Q, K, V, mask):
        return scale_after_softmax(Q, K, V, _for_heads(mask))


@MultiHeadAttention.mistake("W_O is not used in forward. The merged heads go through it at the end.")
class w_o_left_out(_Heads):
    def finish(self, merged):
        return merged


@MultiHeadAttention.mistake("There is no W_O. The module has four nn.Linear without bias: W_Q, W_K, W_V and W_O.")
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


_with_bias(["W_Q", "W_K", "W_V", "W_O"], "The four projections have a bias. Here they have none: nn.Linear(..., bias=False).")
_with_bias(["W_O"], "W_O has a bias. None of the four projections has one here: nn.Linear(d_model, d_model, bias=False).")


@MultiHeadAttention.mistake("The keys are projected by W_Q. They have their own matrix, W_K.")
class k_projected_by_w_q(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_Q(k), self.W_V(v)


@MultiHeadAttention.mistake("The values are projected by W_K. They have their own matrix, W_V.")
class v_projected_by_w_k(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_K(k), self.W_K(v)


@MultiHeadAttention.mistake("W_Q projects all three inputs. Each has a matrix of its own.")
class all_projected_by_w_q(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_Q(k), self.W_Q(v)


@MultiHeadAttention.mistake("W_K and W_V are exchanged: W_K projects k, W_V projects v.")
class w_k_and_w_v_exchanged(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_V(k), self.W_K(v)


@MultiHeadAttention.mistake("The values are made from k. The third argument, v, is not used.")
class values_from_k(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_K(k), self.W_V(k)


@MultiHeadAttention.mistake("The keys are made from v. They come from the second argument, k.")
class keys_from_v(_Heads):
    def project(self, q, k, v):
        return self.W_Q(q), self.W_K(v), self.W_V(v)


@MultiHeadAttention.mistake("q, k and v are not projected. W_Q, W_K and W_V come before the split.")
class not_projected(_Heads):
    def project(self, q, k, v):
        return q, k, v


@MultiHeadAttention.mistake("The mask is not broadcast over the heads. (B, n, m) needs an axis of 1 for them, mask[:, None]; without it, its B is matched with the h heads.")
class mask_not_broadcast(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V, mask)


@MultiHeadAttention.mistake("The mask is ignored: keys where it is False still get weight.")
class module_mask_ignored(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V)


@MultiHeadAttention.mistake("The mask is inverted. True means MAY attend (nn.MultiheadAttention uses the opposite convention).")
class module_mask_inverted(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V, None if mask is None else ~_for_heads(mask))


@MultiHeadAttention.mistake("Only the first head is masked. The mask is the same for every head.")
class only_the_first_head_masked(_Heads):
    def attend(self, Q, K, V, mask):
        if mask is not None:
            free = torch.ones(Q.size(0), self.h - 1, Q.size(2), K.size(2), dtype=torch.bool)
            mask = torch.cat([_for_heads(mask).expand(Q.size(0), 1, Q.size(2), K.size(2)), free], dim=1)
        return attention_by(Q, K, V, mask)


@MultiHeadAttention.mistake("The mask is applied after the softmax, so masked scores still count in its denominator. Put -inf into the SCORES.")
class module_mask_after_softmax(_Heads):
    def attend(self, Q, K, V, mask):
        weights = attention_by(Q, K, V)[1]
        weights = weights if mask is None else weights * _for_heads(mask)
        return weights @ V, weights


@MultiHeadAttention.mistake("The input of W_O is only d_k wide: the heads are summed or averaged, or only one is kept. Concatenate all of them, (B, n, d_model).")
class heads_summed_before_w_o(_Heads):
    @staticmethod
    def merge(output):
        return output.sum(dim=1)


@MultiHeadAttention.mistake("The heads' outputs are averaged before W_O. Concatenate them, (B, n, d_model).")
class heads_averaged_before_w_o(_Heads):
    @staticmethod
    def merge(output):
        return output.mean(dim=1).repeat(1, 1, output.size(1))


@MultiHeadAttention.mistake("The weights are averaged over the heads. Return those of every head, (B, h, n, m).")
class averaged_weights(_Heads):
    def forward(self, q, k, v, mask=None):
        output, weights = super().forward(q, k, v, mask)
        return output, weights.mean(dim=1)


@MultiHeadAttention.mistake("h is ignored: there is one head of width d_model. Split Q, K and V into h heads.")
class one_head(_Heads):
    def __init__(self, d_model, h):
        super().__init__(d_model, 1)


@MultiHeadAttention.mistake("The heads are split by a bare view, which mixes positions and heads. Use (B, n, h, d_k) first, then transpose(1, 2).")
class split_by_view(_Heads):
    split = staticmethod(view_without_transpose)


@MultiHeadAttention.mistake("Both the split and the merge are bare reshapes, which mix positions and heads. transpose(1, 2) is missing in both.")
class split_and_merge_by_view(_Heads):
    split, merge = staticmethod(view_without_transpose), staticmethod(reshape_without_transpose)


@MultiHeadAttention.mistake("The heads are merged by a bare reshape, which mixes positions and heads. transpose(1, 2) comes first.")
class merged_by_view(_Heads):
    merge = staticmethod(reshape_without_transpose)


@MultiHeadAttention.mistake("Each head takes every h-th feature. Head i takes d_k NEIGHBOURING features.")
class split_interleaved(_Heads):
    split, merge = staticmethod(heads_interleaved), staticmethod(merged_interleaved)


@MultiHeadAttention.mistake("The softmax is taken over the heads. Each query distributes its attention over the keys, so use dim=-1.")
class softmax_over_heads(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V, _for_heads(mask), dim=1)


@MultiHeadAttention.mistake("The softmax is taken over the queries (dim=-2). Each query distributes its attention over the keys, so use dim=-1.")
class module_softmax_over_queries(_Heads):
    def attend(self, Q, K, V, mask):
        return attention_by(Q, K, V, _for_heads(mask), dim=-2)


@MultiHeadAttention.mistake("q is added to the output. The residual connection is built around this module, in lesson 11, not inside it.")
class residual_inside(_Heads):
    def forward(self, q, k, v, mask=None):
        output, weights = super().forward(q, k, v, mask)
        return q + output, weights


@MultiHeadAttention.mistake("The two results are swapped: output first, weights second.")
class module_results_swapped(_Heads):
    def forward(self, q, k, v, mask=None):
        return super().forward(q, k, v, mask)[::-1]


@MultiHeadAttention.mistake("Only the output is returned. The weights are needed as well: return output, weights.")
class module_only_the_output(_Heads):
    def forward(self, q, k, v, mask=None):
        return super().forward(q, k, v, mask)[0]


@MultiHeadAttention.mistake("K.T reverses the order of ALL axes, those of batch and heads as well. Exchange only the last two: K.transpose(-2, -1).")
class module_T_turns_every_axis(_Heads):
    def attend(self, Q, K, V, mask):
        return turned_by_T(Q, K, V, _for_heads(mask))


@MultiHeadAttention.mistake("The last mask is stored in the module and used again when none is given. Without a mask every key is allowed: use the argument, and store nothing.")
class last_mask_remembered(_Heads):
    def __init__(self, d_model, h):
        super().__init__(d_model, h)
        self.last = None

    def attend(self, Q, K, V, mask):
        self.last = self.last if mask is None else mask
        return super().attend(Q, K, V, self.last)


# ---------------------------------------------------------------- GroupedQueryAttention

def _grouped_inputs(generator):
    def draw(B, n, m, d_k, h, h_kv, mask, dtype=torch.float32):
        d_model = h * d_k
        state = {f"W_{name}.weight": normal(generator, width, d_model, scale=1.2 / math.sqrt(d_model), dtype=dtype)
                 for name, width in (("Q", d_model), ("K", h_kv * d_k), ("V", h_kv * d_k), ("O", d_model))}
        def given(n, m):
            return [normal(generator, B, size, d_model, dtype=dtype) for size in (n, m, m)]
        calls = [("train", given(n, m)), ("eval", [*given(n, m), _mask(generator, *mask)]), ("train", given(n, m))]
        return {"arguments": [d_model, h, h_kv], "state": state, "calls": calls, "reads": [], "whole": True}

    def trial(mask, h, h_kv, B=None, dtype=torch.float32):
        b, n, m, d_k = different(generator, 4, 3, 8)
        sizes = {"B": B or b, "n": n, "m": m}
        return draw(B or b, n, m, d_k, h, h_kv, [sizes.get(axis, axis) for axis in mask], dtype)
    groups = whole(generator, 2, 4)
    return [trial(["B", "n", "m"], 2 * groups, 2), trial(["B", "n", "m"], 4, 2, dtype=torch.float64),
            trial([1, 1, "m"], 3 * groups, 3, B=1), draw(4, 4, 4, 4, 4, 2, [4, 4, 4]), trial(["B", 1, "m"], 4, 1), trial(["n", "m"], 3, 3)]


GroupedQueryAttention = Item(
    "GroupedQueryAttention", 3, _grouped_inputs, grouped_query.GroupedQueryAttention,
    ("without_mask: output (B, n, d_model), weights (B, h, n, m)", "with_mask: output (B, n, d_model), weights (B, h, n, m)",
     "without_mask_again: output (B, n, d_model), weights (B, h, n, m)", "takes_gradients, a list of names"), IN_MODULE,
    uses=("split_heads", "merge_heads"), handed=("attention",), free=FREE, kind="transfer", probe="build", properties=(
        (_rows_sum_to_one, "Each row of weights must add up to 1, over the keys, its last axis."),
        (_mask_is_kept, "A key that the mask forbids (False) must get a weight of exactly 0, in every head.")))


class _Groups(grouped_query.GroupedQueryAttention):
    """The right one in its parts; each mistake below exchanges one of them."""

    def project(self, q, k, v):
        return models.split_heads(self.W_Q(q), self.h), *(models.split_heads(X, self.h_kv) for X in (self.W_K(k), self.W_V(v)))

    def share(self, K):
        """(B, h_kv, m, d_k) to (B, h, m, d_k)"""
        return K.repeat_interleave(self.h // self.h_kv, dim=1)

    share_keys = share_values = lambda self, X: self.share(X)

    def scale(self, Q):
        return math.sqrt(Q.size(-1))

    def masked(self, mask):
        return _for_heads(mask)

    def finish(self, output, weights):
        return self.W_O(models.merge_heads(output)), weights

    def forward(self, q, k, v, mask=None):
        Q, K, V = self.project(q, k, v)
        return self.finish(*attention_by(Q, self.share_keys(K), self.share_values(V), self.masked(mask), self.scale(Q)))


def _tiled(self, X):
    return X.repeat(1, self.h // self.h_kv, 1, 1)


def _mistaken_groups(name, sentence, **methods):
    """Name a mistake by the methods that it exchanges."""
    GroupedQueryAttention.mistake(sentence)(type(name, (_Groups,), methods))


def _full_width(self, d_model, h, h_kv):
    super(_Groups, self).__init__(d_model, h, h_kv)
    self.W_K, self.W_V = (nn.Linear(d_model, d_model, bias=False) for _ in range(2))


_mistaken_groups("repeat_for_repeat_interleave", "The key and value heads alternate, 0 1 0 1. Neighbouring query heads share one, 0 0 1 1: repeat each head before the next begins.",
                 share=_tiled)
_mistaken_groups("keys_alternate", "The values are shared by neighbouring query heads, but the key heads alternate, 0 1 0 1. Repeat both in the same order, 0 0 1 1.",
                 share_keys=_tiled)
_mistaken_groups("values_alternate", "The keys are shared by neighbouring query heads, but the value heads alternate, 0 1 0 1. Repeat both in the same order, 0 0 1 1.",
                 share_values=_tiled)
_mistaken_groups("full_width_w_k", "W_K and W_V are as wide as W_Q, so nothing is shared. They give h_kv heads only: h_kv * d_k features, with d_k = d_model / h.",
                 __init__=_full_width)
_mistaken_groups("first_key_and_value_head_only", "All query heads use the first key and value head. Each group of h / h_kv neighbouring query heads has its own.",
                 share=lambda self, X: X[:, :1].expand(-1, self.h, -1, -1))
_mistaken_groups("key_and_value_heads_averaged", "The key and value heads are averaged, and all query heads use the mean. Each group of query heads has one head of its own.",
                 share=lambda self, X: X.mean(dim=1, keepdim=True).expand(-1, self.h, -1, -1))
_mistaken_groups("keys_and_values_not_repeated", "There are h_kv heads of keys and values for h heads of queries. Each head of keys and values has to be repeated for all query heads of its group.",
                 share=lambda self, X: X)
_mistaken_groups("groups_reversed", "The groups are in reversed order. The first query heads use key and value head 0.",
                 share=lambda self, X: _Groups.share(self, X.flip(1)))
_mistaken_groups("scale_by_the_grouped_width", "The scores are divided by the root of h_kv * d_k, the width of W_K's output. The scale is sqrt(d_k), the width of one head.",
                 scale=lambda self, Q: math.sqrt(self.h_kv * Q.size(-1)))
_mistaken_groups("grouped_scale_by_d_model", "The scores are divided by sqrt(d_model). A head is only d_k = d_model / h wide, so divide by sqrt(d_k).",
                 scale=lambda self, Q: math.sqrt(self.h * Q.size(-1)))
_mistaken_groups("grouped_scale_missing", "The scale is missing. Divide the scores by sqrt(d_k), where d_k = d_model / h.",
                 scale=lambda self, Q: 1.0)
_mistaken_groups("grouped_mask_ignored", "The mask is ignored: keys where it is False still get weight.",
                 masked=lambda self, mask: None)
_mistaken_groups("grouped_mask_inverted", "The mask is inverted. True means MAY attend.",
                 masked=lambda self, mask: None if mask is None else ~_for_heads(mask))
_mistaken_groups("grouped_mask_not_broadcast", "The mask is not broadcast over the heads. (B, n, m) needs an axis of 1 for them, mask[:, None]; without it, its B is matched with the h heads.",
                 masked=lambda self, mask: mask)
_mistaken_groups("grouped_without_w_o", "W_O is not used in forward. The merged heads go through it at the end.",
                 finish=lambda self, output, weights: (models.merge_heads(output), weights))
_mistaken_groups("weights_averaged_in_groups", "The weights are averaged within each group, (B, h_kv, n, m). Every query head has weights of its own: (B, h, n, m).",
                 finish=lambda self, output, weights: (_Groups.finish(self, output, weights)[0], weights.unflatten(1, (self.h_kv, -1)).mean(dim=2)))
_mistaken_groups("grouped_weights_averaged", "The weights are averaged over the heads. Return those of every head, (B, h, n, m).",
                 finish=lambda self, output, weights: (_Groups.finish(self, output, weights)[0], weights.mean(dim=1)))
_mistaken_groups("grouped_results_swapped", "The two results are swapped: output first, weights second.",
                 finish=lambda self, output, weights: _Groups.finish(self, output, weights)[::-1])


# ---------------------------------------------------------------- parallel_heads

def _parallel_inputs(generator):
    def draw(B, n, d_k, h, mask=False, dtype=torch.float32):
        d_model = h * d_k
        trial = {"X": normal(generator, B, n, d_model, dtype=dtype), **{
            f"W_{name}": normal(generator, d_model, d_model, scale=1.2 / math.sqrt(d_model), dtype=dtype) for name in "QKVO"}, "h": h}
        return {**trial, "mask": models.causal_mask(n)} if mask else trial

    def trial(**how):
        B, n, d_k, h = different(generator, 4, 2, 7)
        return draw(B, max(n, 3), d_k, h, **how)
    B, d_k = different(generator, 2, 3, 6)
    return [draw(B, 6, d_k, 2, mask=True), trial(dtype=torch.float64), draw(*[whole(generator, 3, 5)] * 4, mask=True),
            draw(1, *different(generator, 3, 3, 7)), trial(mask=True)]


def _parallel_heads(X, W_Q, W_K, W_V, W_O, h, mask=None, split=models.split_heads, merge=models.merge_heads, scale=None):
    output, weights = attention_by(*(split(X @ W, h) for W in (W_Q, W_K, W_V)), mask, scale)
    return merge(output) @ W_O, weights


parallel_heads = Item("parallel_heads", 2, _parallel_inputs, _parallel_heads,
                      ("output (B, n, d_model)", "weights (B, h, n, n)"), IN_SPLIT, uses=("split_heads", "merge_heads"),
                      handed=("attention",), free=FREE)


def _leak(answer, trial):
    X, *others = trial.values()
    found = models.leakage(lambda X: answer(X[None], *others)[0][0], X[0], 0)[3]
    return (f"With n = 6, h = 2 and a causal mask, output 0 depends on token 3: the norm of its derivatives is {found:.3f}. "
            "It should be 0, since position 0 may attend to itself only.")


@parallel_heads.plant("The heads are split by view(B, h, n, d_k) without a transpose, which mixes positions and heads. Its author compared it with n = 1 and with h = 1, where it is right.", _leak)
def _split_by_a_bare_view(X, W_Q, W_K, W_V, W_O, h, mask=None):
    return _parallel_heads(X, W_Q, W_K, W_V, W_O, h, mask, split=view_without_transpose)


def _mistaken_parallel(name, sentence, change):
    """Name a mistake by the function that gives it, of the answer's arguments."""
    def answer(X, W_Q, W_K, W_V, W_O, h, mask=None):
        return change(X, W_Q, W_K, W_V, W_O, h, mask)
    answer.__name__ = name
    parallel_heads.mistake(sentence)(answer)


def _split_each(split_Q, split_K, split_V):
    def answer(X, W_Q, W_K, W_V, W_O, h, mask):
        output, weights = attention_by(split_Q(X @ W_Q, h), split_K(X @ W_K, h), split_V(X @ W_V, h), mask)
        return models.merge_heads(output) @ W_O, weights
    return answer


_mistaken_parallel("merge_changed_as_well", "The merge was right, and now it mixes positions and heads, as the split does. Change the split alone.",
                   lambda *given: _parallel_heads(*given, split=view_without_transpose, merge=reshape_without_transpose))
_mistaken_parallel("merge_changed_alone", "The split is right now, but the merge, which was right, is not any more. It needs its transpose(1, 2) back.",
                   lambda *given: _parallel_heads(*given, merge=reshape_without_transpose))
_mistaken_parallel("split_interleaved_in_parallel", "Each head takes every h-th feature now. Head i takes d_k NEIGHBOURING features: the view is (B, n, h, d_k).",
                   lambda *given: _parallel_heads(*given, split=heads_interleaved))
_mistaken_parallel("not_transposed_after_the_view", "The features are divided among the heads correctly now, (B, n, h, d_k). Positions and heads still have to change places before the attention.",
                   lambda *given: _parallel_heads(*given, split=lambda X, h: X.unflatten(-1, (h, -1)),
                                                  merge=lambda X: X.transpose(1, 2).reshape(*X.shape[:2], -1)))
_mistaken_parallel("transposed_before_the_view", "The transpose comes before the view, on (B, n, d_model). Split each position's features first, then bring the heads forward.",
                   lambda *given: _parallel_heads(*given, split=transposed_before_the_cut))
_mistaken_parallel("queries_split_alone", "Only the queries are split correctly. Keys and values need the same split.",
                   _split_each(models.split_heads, view_without_transpose, view_without_transpose))
_mistaken_parallel("values_still_viewed", "Queries and keys are split correctly, the values are not. All three need the same split.",
                   _split_each(models.split_heads, models.split_heads, view_without_transpose))
_mistaken_parallel("values_split_alone", "The values are split correctly, queries and keys are not. All three need the same split.",
                   _split_each(view_without_transpose, view_without_transpose, models.split_heads))
_mistaken_parallel("one_head_in_parallel", "There is one head of width d_model now, which is not what was asked for. Keep h heads, and find the line that mixes positions.",
                   lambda X, W_Q, W_K, W_V, W_O, h, mask: _parallel_heads(X, W_Q, W_K, W_V, W_O, 1, mask))
_mistaken_parallel("heads_in_reversed_order", "The heads are in reversed order. Head 0 has the first d_k features.",
                   lambda *given: _parallel_heads(*given, split=lambda X, h: models.split_heads(X, h).flip(1)))
_mistaken_parallel("mask_dropped", "The mask is not used any more. Hand it on to the attention.",
                   lambda *given: _parallel_heads(*given[:6]))
_mistaken_parallel("w_o_dropped", "W_O is not used any more. The merged heads are multiplied by it.",
                   lambda X, W_Q, W_K, W_V, W_O, h, mask: _parallel_heads(X, W_Q, W_K, W_V, torch.eye(len(W_O), dtype=X.dtype), h, mask))


ITEMS = [split_heads, merge_heads, MultiHeadAttention, GroupedQueryAttention, parallel_heads]

"""Exercise 04: the scores of Bahdanau and Luong, attending, the attentional state, alignment error rate."""

import math

import torch

from course_lib.metrics import alignment_error_rate as right_rate
from course_lib.models import attention as right
from course_lib.models import steps

from ..judging.draw import different, sizes, telling, whole
from ..judging.spec import Item, normal

IN_CODE, IN_LUONG = "From formula to code", "From formula to code: Luong's simpler score"
IN_ALIGNMENT = "Look inside: the alignment"


# ---------------------------------------------------------------- additive_score

def _additive_inputs(generator):
    def draw(B, m, d_s, d_h, d_a, dtype=torch.float32):
        return {"s": normal(generator, B, d_s, dtype=dtype), "H": normal(generator, B, m, d_h, dtype=dtype),
                "W_s": normal(generator, d_s, d_a, scale=0.5, dtype=dtype),
                "W_h": normal(generator, d_h, d_a, scale=0.5, dtype=dtype),
                "v": normal(generator, d_a, dtype=dtype)}
    usual, other, one, equal = sizes(generator, 5)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


additive_score = Item("additive_score", 2, _additive_inputs, right.additive_score, ("e (B, m)",), IN_CODE,
                      properties=((lambda trial, e: bool((e.abs() <= trial["v"].abs().sum() + 1e-4).all()),
                                   "e is larger than v allows: tanh lies between -1 and 1, so |e| is at most the sum of |v|."),))


def _projected(s, H, W_s, W_h):
    """s W_s and h_j W_h, ready to be added: (B, 1, d_a) and (B, m, d_a)."""
    return (s @ W_s)[:, None], H @ W_h


@additive_score.mistake("The tanh between the sum and v is missing. Without it s adds the same number to every e_j, and the softmax ignores that.")
def no_tanh(s, H, W_s, W_h, v):
    return sum(_projected(s, H, W_s, W_h)) @ v


@additive_score.mistake("The tanh is taken after the product with v. It belongs inside: tanh(s W_s + h_j W_h) · v.")
def tanh_after_v(s, H, W_s, W_h, v):
    return torch.tanh(sum(_projected(s, H, W_s, W_h)) @ v)


@additive_score.mistake("The state s is left out, so the scores would be the same at every step of the translation.")
def s_left_out(s, H, W_s, W_h, v):
    return torch.tanh(H @ W_h) @ v


@additive_score.mistake("v is multiplied in before the tanh. Take the tanh of the sum first, then its product with v.")
def v_before_the_sum(s, H, W_s, W_h, v):
    return torch.tanh(sum(_projected(s, H, W_s, W_h)) * v).sum(dim=-1)


@additive_score.mistake("v is missing: the d_a values are added with equal weight instead of those in v.")
def v_left_out(s, H, W_s, W_h, v):
    return torch.tanh(sum(_projected(s, H, W_s, W_h))).sum(dim=-1)


@additive_score.mistake("The encoder states H are left out, so every source word gets the same score.")
def H_left_out(s, H, W_s, W_h, v):
    return (torch.tanh(s @ W_s) @ v)[:, None].expand(-1, H.size(1)).clone()


@additive_score.mistake("The tanh is applied to each term before they are added. Apply it once, to the sum.")
def tanh_of_each_term(s, H, W_s, W_h, v):
    a, b = _projected(s, H, W_s, W_h)
    return (torch.tanh(a) + torch.tanh(b)) @ v


@additive_score.mistake("The two projections are multiplied. This score ADDS them: s W_s + h_j W_h.")
def product_for_sum(s, H, W_s, W_h, v):
    a, b = _projected(s, H, W_s, W_h)
    return torch.tanh(a * b) @ v


@additive_score.mistake("A sigmoid is used where the formula has a tanh.")
def sigmoid_for_tanh(s, H, W_s, W_h, v):
    return torch.sigmoid(sum(_projected(s, H, W_s, W_h))) @ v


@additive_score.mistake("This is the softmax of the scores. `additive_score` returns the scores themselves; `attend` takes their softmax.")
def softmax_already(s, H, W_s, W_h, v):
    return right.additive_score(s, H, W_s, W_h, v).softmax(dim=-1)


@additive_score.mistake("The last axis is still there. e is (B, m), one score for each source word: remove the axis of length 1.")
def axis_kept(s, H, W_s, W_h, v):
    return right.additive_score(s, H, W_s, W_h, v)[..., None]


@additive_score.mistake("s is aligned with the words instead of the batch. s @ W_s is (B, d_a) and needs an axis for the words: [:, None].")
def s_along_the_words(s, H, W_s, W_h, v):
    return torch.tanh(s @ W_s + H @ W_h) @ v


@additive_score.mistake("W_s and W_h are exchanged: W_s (d_s, d_a) projects the decoder's s, W_h (d_h, d_a) the encoder's H.")
def weights_swapped(s, H, W_s, W_h, v):
    return torch.tanh((s @ W_h)[:, None] + H @ W_s) @ v


@additive_score.mistake("W_h is transposed. Vectors are rows here: H @ W_h.")
def W_h_transposed(s, H, W_s, W_h, v):
    return torch.tanh((s @ W_s)[:, None] + H @ W_h.T) @ v


@additive_score.mistake("W_s is transposed. Vectors are rows here: s @ W_s.")
def W_s_transposed(s, H, W_s, W_h, v):
    return torch.tanh((s @ W_s.T)[:, None] + H @ W_h) @ v


# ---------------------------------------------------------------- general_score

def _general_inputs(generator):
    def draw(B, m, d_s, d_h, dtype=torch.float32):
        return {"s": normal(generator, B, d_s, dtype=dtype), "H": normal(generator, B, m, d_h, dtype=dtype),
                "W": normal(generator, d_s, d_h, scale=0.6, dtype=dtype)}
    usual, other, one, equal = sizes(generator, 4)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


general_score = Item("general_score", 1, _general_inputs, right.general_score, ("e (B, m)",), IN_LUONG)


@general_score.mistake("W is left out. That is the dot score, which cannot even be computed where d_s and d_h differ.")
def W_left_out(s, H, W):
    return (H @ s[:, :, None])[..., 0]


@general_score.mistake("W is transposed. W is (d_s, d_h), so s @ W has the same width as the h_j.")
def W_transposed(s, H, W):
    return (H @ (s @ W.T)[:, :, None])[..., 0]


@general_score.mistake("The score is divided by the square root of d_h. Luong's score is not scaled (scaling comes in lesson 05).")
def scaled(s, H, W):
    return right.general_score(s, H, W) / math.sqrt(H.size(-1))


@general_score.mistake("The score is divided by the square root of d_s. Luong's score is not scaled (scaling comes in lesson 05).")
def scaled_by_d_s(s, H, W):
    return right.general_score(s, H, W) / math.sqrt(s.size(-1))


@general_score.mistake("The score goes through a tanh. It should be the product (s W) · h_j itself.")
def squashed(s, H, W):
    return torch.tanh(right.general_score(s, H, W))


@general_score.mistake("This is the softmax of the scores. `general_score` returns the scores themselves; `attend` takes their softmax.")
def softmax_taken(s, H, W):
    return right.general_score(s, H, W).softmax(dim=-1)


@general_score.mistake("e has a last axis of length 1 too many. It is (B, m): `[..., 0]` or `.squeeze(-1)` removes the axis.")
def column_kept(s, H, W):
    return right.general_score(s, H, W)[..., None]


@general_score.mistake("e has a middle axis of length 1 too many. It is (B, m): `[:, 0]` or `.squeeze(1)` removes the axis.")
def row_kept(s, H, W):
    return right.general_score(s, H, W)[:, None]


@general_score.mistake("Words and features are mixed up: s W is multiplied with H along the words. The sum runs over d_h.")
def along_the_words(s, H, W):
    return ((s @ W)[:, None] @ H)[:, 0]


@general_score.mistake("The products are averaged over d_h. A dot product adds them.")
def mean_for_sum(s, H, W):
    return right.general_score(s, H, W) / H.size(-1)


@general_score.mistake("The vectors are scaled to length 1 first, which gives a cosine. The score is the product of the vectors as they are.")
def cosine(s, H, W):
    query = s @ W
    return right.dot_score(query / query.norm(dim=-1, keepdim=True), H / H.norm(dim=-1, keepdim=True))


@general_score.mistake("Every state is scored against the words of every sentence. e is (B, m): sentence b's state with sentence b's words only.")
def across_the_batch(s, H, W):
    return torch.einsum("as,sh,bmh->abm", s, W, H)


# ---------------------------------------------------------------- attend

def _attend_inputs(generator):
    def draw(B, m, d_h, masked=True, dtype=torch.float32, shift=0.0):
        trial = {"e": normal(generator, B, m, dtype=dtype) + shift, "H": normal(generator, B, m, d_h, dtype=dtype)}
        if masked:
            lengths = 1 + torch.randperm(m - 1, generator=generator)[:B]       # 1 to m - 1, all different
            trial["mask"] = torch.arange(m) < lengths[:, None]
        return trial
    def batch_first(low=2):
        B, m = sorted(different(generator, 2, low, 8))
        return B, m, next(d_h for d_h in different(generator, 3, 2, 8) if d_h not in (B, m))
    equal = whole(generator, 3, 6)
    return [draw(*batch_first()), draw(*batch_first(), masked=False), draw(*batch_first(), dtype=torch.float64),
            draw(1, *different(generator, 2, 3, 8)), draw(equal, equal, equal, masked=False),
            draw(*batch_first(), shift=-40.0)]                          # -20 is no -inf


def _sums_to_one(trial, output):
    return torch.allclose(output[1].double().sum(dim=-1), torch.ones(len(trial["e"]), dtype=torch.float64), atol=1e-4)


def _masked_is_zero(trial, output):
    return trial.get("mask") is None or bool((output[1][~trial["mask"]].abs() < 1e-6).all())


attend = Item("attend", 2, _attend_inputs, right.attend, ("context (B, d_h)", "weights (B, m)"), IN_CODE,
              free=("scaled_dot_product_attention", "multi_head_attention_forward"),
              properties=((_sums_to_one, "The weights of each sentence must add up to 1."),
                          (_masked_is_zero, "A masked word must get the weight 0 exactly: its score is minus infinity.")))


def _sum(weights, H):
    return (weights[..., None] * H).sum(dim=1)


def _masked(e, mask):
    return e if mask is None else e.masked_fill(~mask, -math.inf)


@attend.mistake("The softmax is taken over the batch. It belongs over the words of one sentence, dim=-1.")
def softmax_over_batch(e, H, mask=None):
    weights = _masked(e, mask).softmax(dim=0)
    return _sum(weights, H), weights


@attend.mistake("The weights are exp(e) without the division by their sum, so they do not add up to 1.")
def unnormalised(e, H, mask=None):
    weights = _masked(e, mask).exp()
    return _sum(weights, H), weights


@attend.mistake("The scores themselves are used as weights. Take their softmax first.")
def scores_as_weights(e, H, mask=None):
    weights = e if mask is None else e * mask
    return _sum(weights, H), weights


@attend.mistake("The mask is applied after the softmax, and the remaining weights no longer add up to 1. Set the masked scores to -inf BEFORE the softmax.")
def mask_after_softmax(e, H, mask=None):
    weights = e.softmax(dim=-1) if mask is None else e.softmax(dim=-1) * mask
    return _sum(weights, H), weights


@attend.mistake("The mask is inverted. True means MAY attend, so fill the scores where the mask is False: `~mask`.")
def mask_inverted(e, H, mask=None):
    return right.attend(e, H, None if mask is None else ~mask)


@attend.mistake("The mask is ignored, so padding receives attention.")
def mask_ignored(e, H, mask=None):
    return right.attend(e, H)


@attend.mistake("The mask is added to the scores as 0 and 1. A masked score has to become -inf.")
def mask_added(e, H, mask=None):
    return right.attend(e if mask is None else e + mask, H)


@attend.mistake("Masked scores are set to 0, but exp(0) is 1. A masked score has to become -inf.")
def masked_to_zero(e, H, mask=None):
    return right.attend(e if mask is None else e * mask, H)


@attend.mistake("The context is the plain mean of the states: the weights are computed but not used.")
def mean_of_states(e, H, mask=None):
    return H.mean(dim=1), right.attend(e, H, mask)[1]


@attend.mistake("The weighted states are averaged over m. The weights already add up to 1, so sum the weighted states.")
def mean_for_weighted_sum(e, H, mask=None):
    context, weights = right.attend(e, H, mask)
    return context / H.size(1), weights


@attend.mistake("The weighted states are not added up. The context is (B, d_h), one vector for each sentence.")
def not_summed(e, H, mask=None):
    weights = right.attend(e, H, mask)[1]
    return weights[..., None] * H, weights


@attend.mistake("The context still has an axis of length 1. It is (B, d_h): `[:, 0]` or `.squeeze(1)` removes the axis.")
def context_axis_kept(e, H, mask=None):
    context, weights = right.attend(e, H, mask)
    return context[:, None], weights


@attend.mistake("The two results are swapped: the context comes first, the weights second.")
def weights_first(e, H, mask=None):
    return right.attend(e, H, mask)[::-1]


@attend.mistake("Only the context is returned. The weights are needed as well: return context, weights.")
def only_the_context(e, H, mask=None):
    return right.attend(e, H, mask)[0]


@attend.mistake("The best word gets all the weight. That is hard attention (argmax), which passes no gradient; soft attention is a weighted average.")
def picks_the_best(e, H, mask=None):
    weights = torch.nn.functional.one_hot(_masked(e, mask).argmax(dim=-1), e.size(-1)).to(e.dtype)
    return _sum(weights, H), weights


@attend.mistake("e and H are combined along the wrong axis: the sum runs over the features of H instead of its words.")
def sum_over_features(e, H, mask=None):
    weights = right.attend(e, H, mask)[1]
    return (weights[..., None] * H).sum(dim=-1), weights


# ---------------------------------------------------------------- attentional_state

def _state_inputs(generator):
    def draw(B, d_h, d_s, dtype=torch.float32):
        return {"context": normal(generator, B, d_h, dtype=dtype), "s": normal(generator, B, d_s, dtype=dtype),
                "W_c": normal(generator, d_h + d_s, d_s, scale=0.5, dtype=dtype)}
    usual, other, one, equal = sizes(generator, 3)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


attentional_state = Item("attentional_state", 1, _state_inputs, right.attentional_state, ("s_tilde (B, d_s)",), IN_LUONG,
                         properties=((lambda trial, state: bool((state.abs() <= 1).all()),
                                      "The state must lie between -1 and 1: tanh comes last."),))


@attentional_state.mistake("The order is swapped. The context comes first, [context; s], so that it meets the upper rows of W_c.")
def order_swapped(context, s, W_c):
    return torch.tanh(torch.cat([s, context], dim=-1) @ W_c)


@attentional_state.mistake("The tanh after the product with W_c is missing.")
def tanh_missing(context, s, W_c):
    return torch.cat([context, s], dim=-1) @ W_c


@attentional_state.mistake("The context and s are added. Concatenate them, torch.cat([context, s], dim=-1), which does not need equal widths.")
def sum_instead_of_concatenation(context, s, W_c):
    return torch.tanh((context + s) @ W_c)


@attentional_state.mistake("s and the context are added. Concatenate them, torch.cat([context, s], dim=-1), which does not need equal widths.")
def sum_the_other_way(context, s, W_c):
    return torch.tanh((s + context) @ W_c)


@attentional_state.mistake("The context and s are concatenated along the batch. Use dim=-1: [context; s] is (B, d_h + d_s).")
def along_the_batch(context, s, W_c):
    return torch.tanh(torch.cat([context, s], dim=0) @ W_c)


@attentional_state.mistake("The tanh is taken before the product. It comes last: tanh([context; s] W_c).")
def tanh_before_W_c(context, s, W_c):
    return torch.tanh(torch.cat([context, s], dim=-1)) @ W_c


@attentional_state.mistake("The tanh is applied to each half's product before they are added. Apply it once, to the sum.")
def tanh_of_each_half(context, s, W_c):
    d_h = context.size(-1)
    return torch.tanh(context @ W_c[:d_h]) + torch.tanh(s @ W_c[d_h:])


@attentional_state.mistake("The context is left out, so nothing that was read from the source reaches the output.")
def context_left_out(context, s, W_c):
    return torch.tanh(s @ W_c[context.size(-1):])


@attentional_state.mistake("The decoder's state s is left out.")
def state_left_out(context, s, W_c):
    return torch.tanh(context @ W_c[:context.size(-1)])


@attentional_state.mistake("A sigmoid is used where the formula has a tanh.")
def sigmoid_in_state(context, s, W_c):
    return torch.sigmoid(torch.cat([context, s], dim=-1) @ W_c)


@attentional_state.mistake("s is added once more at the end. The attentional state REPLACES s (adding it would be a residual connection, lesson 07).")
def s_added(context, s, W_c):
    return s + right.attentional_state(context, s, W_c)


@attentional_state.mistake("Only [context; s] is returned. Multiply it by W_c and take the tanh.")
def not_projected(context, s, W_c):
    return torch.cat([context, s], dim=-1)


# ---------------------------------------------------------------- alignment_error_rate

def _rate_inputs(generator):
    def pick(cells, count):
        order = torch.randperm(len(cells), generator=generator)[:count]
        return {cells[number] for number in order.tolist()}

    def sentence(n, m, hits, near, misses):
        """Predicted links: so many of the sure ones, of the merely possible ones, and of the others."""
        cells = [(i, j) for i in range(n) for j in range(m) if i != j]       # (i, j) and (j, i) tell apart
        sure = pick(cells, hits + 2)
        possible = sure | pick(sorted(set(cells) - sure), near + 1)
        predicted = pick(sorted(sure), hits) | pick(sorted(possible - sure), near)
        return predicted | pick(sorted(set(cells) - possible), misses), sure, possible

    def trial(*sentences):
        return dict(zip(("predicted", "sure", "possible"), map(list, zip(*sentences, strict=True)), strict=True))

    def some():
        rows, columns = different(generator, 2, 4, 8)
        return sentence(rows, columns, *(whole(generator, low, high) for low, high in ((1, 5), (1, 4), (0, 5))))

    def empty():
        return sentence(*different(generator, 2, 3, 7), 0, 0, 0)

    def draw():
        one = dict(zip(("predicted", "sure", "possible"), some(), strict=True))
        return [trial(some(), some(), some()), one, trial(some(), some()), trial(empty(), some())]
    return telling(alignment_error_rate, draw)


alignment_error_rate = Item("alignment_error_rate", 2, _rate_inputs, right_rate, ("rate",), IN_ALIGNMENT, gradients=False)


def _counts(predicted, sure, possible):
    """|A and S|, |A and P|, |A|, |S|, |P| over all sentences."""
    if isinstance(predicted, set):
        predicted, sure, possible = [predicted], [sure], [possible]
    triples = list(zip(predicted, sure, possible, strict=True))
    return (sum(len(a & s) for a, s, _ in triples), sum(len(a & p) for a, _, p in triples),
            *(sum(map(len, links)) for links in (predicted, sure, possible)))


@alignment_error_rate.mistake("This is the fraction of correct links (accuracy), not an error rate, and it ignores sure links that were missed.")
def accuracy_instead(predicted, sure, possible):
    _, in_p, a, _, _ = _counts(predicted, sure, possible)
    return in_p / a


@alignment_error_rate.mistake("The 1 - ... is missing: an ERROR rate is 0 when every link is right.")
def not_taken_from_one(predicted, sure, possible):
    return 1 - right_rate(predicted, sure, possible)


@alignment_error_rate.mistake("The possible links are left out of the numerator, which is |A and S| + |A and P|.")
def possible_left_out(predicted, sure, possible):
    in_s, _, a, s, _ = _counts(predicted, sure, possible)
    return 1 - in_s / (a + s)


@alignment_error_rate.mistake("Hits among the sure links count twice and those among the possible ones not at all. The numerator is |A and S| + |A and P|.")
def sure_counted_twice(predicted, sure, possible):
    in_s, _, a, s, _ = _counts(predicted, sure, possible)
    return 1 - 2 * in_s / (a + s)


@alignment_error_rate.mistake("Each correct link counts once. Sure links are possible links too, so a sure hit counts twice in |A and S| + |A and P|.")
def sure_not_possible(predicted, sure, possible):
    _, in_p, a, s, _ = _counts(predicted, sure, possible)
    return 1 - in_p / (a + s)


@alignment_error_rate.mistake("The rates of the sentences are averaged. Add up the counts of all sentences first, then divide once.")
def macro_average(predicted, sure, possible):
    if isinstance(predicted, set):
        return right_rate(predicted, sure, possible)
    rates = [right_rate(*links) for links in zip(predicted, sure, possible, strict=True)]
    return sum(rates) / len(rates)


@alignment_error_rate.mistake("The denominator counts the possible links. It is |A| + |S|, so that leaving out a merely possible link costs nothing.")
def possible_in_denominator(predicted, sure, possible):
    in_s, in_p, a, _, p = _counts(predicted, sure, possible)
    return 1 - (in_s + in_p) / (a + p)


@alignment_error_rate.mistake("This is 1 - precision, so missing links cost nothing. Divide by |A| + |S|.")
def precision_only(predicted, sure, possible):
    _, in_p, a, _, _ = _counts(predicted, sure, possible)
    return 1 - in_p / a


@alignment_error_rate.mistake("This is 1 - recall, so predicting every link would be perfect. Divide by |A| + |S|.")
def recall_only(predicted, sure, possible):
    in_s, _, _, s, _ = _counts(predicted, sure, possible)
    return 1 - in_s / s


@alignment_error_rate.mistake("The links are read as (j, i). In all three sets i is the target position and j the source position, as given.")
def links_turned(predicted, sure, possible):
    if isinstance(predicted, set):
        return right_rate({(j, i) for i, j in predicted}, sure, possible)
    return right_rate([{(j, i) for i, j in links} for links in predicted], sure, possible)


@alignment_error_rate.mistake("This is a percentage. The rate lies between 0 and 1.")
def in_percent(predicted, sure, possible):
    return 100 * right_rate(predicted, sure, possible)


@alignment_error_rate.mistake("Only the first sentence is counted.")
def first_sentence_only(predicted, sure, possible):
    return right_rate(*(links if isinstance(links, set) else links[0] for links in (predicted, sure, possible)))


@alignment_error_rate.mistake("Links of different sentences are put into one set, where equal (i, j) become one. Count sentence by sentence, then add up.")
def sentences_merged(predicted, sure, possible):
    if isinstance(predicted, set):
        return right_rate(predicted, sure, possible)
    return right_rate(*(set().union(*links) for links in (predicted, sure, possible)))


@alignment_error_rate.mistake("This is 1 - intersection over union of A and S. The formula divides by |A| + |S|.")
def intersection_over_union(predicted, sure, possible):
    in_s, _, a, s, _ = _counts(predicted, sure, possible)
    return 1 - in_s / (a + s - in_s)


# ---------------------------------------------------------------- attention_decoder_step

def _step(generator, d_x, d_s, dtype):
    """A recurrent step for the probe "functions": (x, s) -> tanh(x W + s U)."""
    return {"function": "step", "W": normal(generator, d_x, d_s, scale=0.35, dtype=dtype), "U": normal(generator, d_s, d_s, scale=0.35, dtype=dtype)}


def _some(generator, B, m):
    """Masks of sentences of different lengths: True for two words at least, and for one too few at least."""
    return torch.arange(m) < torch.randint(2, m, (B, 1), generator=generator)


def _decoder_inputs(generator):
    def draw(B, m, d_y, d_s, d_h, d_a, dtype=torch.float32):
        return {"y_prev": normal(generator, B, d_y, dtype=dtype), "s_prev": normal(generator, B, d_s, dtype=dtype),
                "H": normal(generator, B, m, d_h, dtype=dtype), "mask": _some(generator, B, m),
                "W_s": normal(generator, d_s, d_a, scale=0.7, dtype=dtype), "W_h": normal(generator, d_h, d_a, scale=0.7, dtype=dtype),
                "v": normal(generator, d_a, dtype=dtype), "step": _step(generator, d_y + d_h, d_s, dtype)}
    usual, other, one, equal = sizes(generator, 6, low=3, high=10)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


attention_decoder_step = Item("attention_decoder_step", 3, _decoder_inputs, steps.attention_decoder_step,
                              ("s_t (B, d_s)", "context (B, d_h)", "weights (B, m)"), IN_CODE, uses=("additive_score", "attend"),
                              probe="functions", kind="transfer")


def _attended(s, H, mask, W_s, W_h, v):
    return right.attend(right.additive_score(s, H, W_s, W_h, v), H, mask)


def _joined(*parts):
    return torch.cat(parts, dim=-1)


@attention_decoder_step.mistake("The step is taken first, with a context of zeros, and the new state scores the words: Luong's order. Bahdanau's scores with s_prev, so that the context can enter the step.")
def luongs_order(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    s_t = step(_joined(y_prev, H.new_zeros(len(H), H.size(2))), s_prev)
    return s_t, *_attended(s_t, H, mask, W_s, W_h, v)


@attention_decoder_step.mistake("The words are scored with the state after a first step without context. Score them with s_prev; there is only one step.")
def a_step_before_the_step(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    context, weights = _attended(step(_joined(y_prev, H.new_zeros(len(H), H.size(2))), s_prev), H, mask, W_s, W_h, v)
    return step(_joined(y_prev, context), s_prev), context, weights


@attention_decoder_step.mistake("The state is right, but context and weights are computed once more with the new state. Return those that the step was made with.")
def attends_again_afterwards(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    context, _ = _attended(s_prev, H, mask, W_s, W_h, v)
    s_t = step(_joined(y_prev, context), s_prev)
    return s_t, *_attended(s_t, H, mask, W_s, W_h, v)


@attention_decoder_step.mistake("The context does not enter the step: zeros are put in its place. The step takes [y_prev; context].")
def step_without_context(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    context, weights = _attended(s_prev, H, mask, W_s, W_h, v)
    return step(_joined(y_prev, torch.zeros_like(context)), s_prev), context, weights


@attention_decoder_step.mistake("The previous word does not enter the step: zeros are put in its place. The step takes [y_prev; context].")
def word_left_out(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    context, weights = _attended(s_prev, H, mask, W_s, W_h, v)
    return step(_joined(torch.zeros_like(y_prev), context), s_prev), context, weights


@attention_decoder_step.mistake("The concatenation is swapped. The step takes [y_prev; context], the word first.")
def concatenation_swapped(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    context, weights = _attended(s_prev, H, mask, W_s, W_h, v)
    return step(_joined(context, y_prev), s_prev), context, weights


@attention_decoder_step.mistake("The mask is ignored, so padding gets weight. Pass it to attend.")
def mask_ignored_in_the_step(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    context, weights = _attended(s_prev, H, None, W_s, W_h, v)
    return step(_joined(y_prev, context), s_prev), context, weights


@attention_decoder_step.mistake("The mask is inverted, so only padding gets weight. True means MAY attend.")
def mask_inverted_in_the_step(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    context, weights = _attended(s_prev, H, ~mask, W_s, W_h, v)
    return step(_joined(y_prev, context), s_prev), context, weights


@attention_decoder_step.mistake("The step starts from zeros. It continues from s_prev: step([y_prev; context], s_prev).")
def state_not_carried(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    context, weights = _attended(s_prev, H, mask, W_s, W_h, v)
    return step(_joined(y_prev, context), torch.zeros_like(s_prev)), context, weights


@attention_decoder_step.mistake("The context is the plain mean of the real words. Weigh them with the softmax of the scores.")
def plain_mean(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    context, weights = right.attend(torch.zeros_like(H[..., 0]), H, mask)
    return step(_joined(y_prev, context), s_prev), context, weights


@attention_decoder_step.mistake("The three results are in another order. Return s_t, context, weights.")
def context_first(y_prev, s_prev, H, mask, W_s, W_h, v, step):
    s_t, context, weights = steps.attention_decoder_step(y_prev, s_prev, H, mask, W_s, W_h, v, step)
    return context, weights, s_t


# ---------------------------------------------------------------- input_feeding

def _feeding_inputs(generator):
    def draw(B, n, m, d_y, d_s, d_h, dtype=torch.float32):
        return {"Y": normal(generator, B, n, d_y, dtype=dtype), "s_0": normal(generator, B, d_s, dtype=dtype),
                "H": normal(generator, B, m, d_h, dtype=dtype), "mask": _some(generator, B, m),
                "W": normal(generator, d_s, d_h, scale=0.3, dtype=dtype), "W_c": normal(generator, d_h + d_s, d_s, scale=0.3, dtype=dtype),
                "step": _step(generator, d_y + d_s, d_s, dtype)}
    usual, other, one, equal = sizes(generator, 6, low=4, high=10)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


def _fed_by(feed, score="new", state=lambda s, output: s, joined=lambda context, s: _joined(context, s),
            entered=lambda y, fed: _joined(y, fed), masked=True):
    """input_feeding with another choice in one place: what is fed, which state scores, what is carried ..."""
    def loop(Y, s_0, H, mask, W, W_c, step):
        outputs, states, contexts, s = [], [], [], s_0
        for t in range(Y.size(1)):
            before, s = s, step(entered(Y[:, t], feed(outputs, states, contexts, s_0)), s)
            context, _ = right.attend(right.general_score(s if score == "new" else before, H, W), H, mask if masked else None)
            outputs.append(torch.tanh(joined(context, s) @ W_c))
            states.append(s)
            contexts.append(context)
            s = state(s, outputs[-1])
        return torch.stack(outputs, dim=1)
    return loop


def _last(outputs, states, contexts, s_0):
    return outputs[-1] if outputs else torch.zeros_like(s_0)


input_feeding = Item("input_feeding", 2, _feeding_inputs, steps.input_feeding, ("states (B, n, d_s)",), IN_LUONG,
                     uses=("general_score", "attend", "attentional_state"), probe="functions")


def _forgetful(answer, trial):
    """The gradient of output 3 to word 2, through a step without memory: it can only come by the feeding."""
    trial = {**trial, "Y": trial["Y"].clone().requires_grad_()}
    W = trial["step"]["W"]
    with torch.enable_grad():
        output = answer(**{**trial, "step": lambda x, s: torch.tanh(x @ W)})
        gradient, = torch.autograd.grad(output[:, 3].sum(), trial["Y"])
    return ("With a step that forgets its state, output 3 can know of the word Y[:, 2] only through what is fed. "
            f"Its gradient to Y[:, 2] has the norm {gradient[:, 2].norm():.3f}, and it should not be 0.")


@input_feeding.plant("outputs[0], the first attentional state, is fed at every step instead of the last one, outputs[-1]. With two words nobody notices.", _forgetful)
def _feeds_the_first(Y, s_0, H, mask, W, W_c, step):
    return _fed_by(lambda outputs, states, contexts, s_0: outputs[0] if outputs else torch.zeros_like(s_0))(Y, s_0, H, mask, W, W_c, step)


FEEDING = {
    "nothing_fed": ("Zeros are fed at every step. Feed the attentional state of the step before.",
                    _fed_by(lambda outputs, states, contexts, s_0: torch.zeros_like(s_0))),
    "recurrent_state_fed": ("The recurrent state s is fed. Feed the attentional state, tanh([c; s] W_c).",
                            _fed_by(lambda outputs, states, contexts, s_0: states[-1] if states else torch.zeros_like(s_0))),
    "initial_state_fed_first": ("s_0 is fed at the first step. Nothing has been attended to yet, so feed zeros.",
                                _fed_by(lambda outputs, states, contexts, s_0: outputs[-1] if outputs else s_0)),
    "one_step_late": ("The attentional state of two steps before is fed. Feed that of the last step, outputs[-1].",
                      _fed_by(lambda outputs, states, contexts, s_0: outputs[-2] if len(outputs) > 1 else torch.zeros_like(s_0))),
    "fed_before_the_word": ("The step gets [fed; y_t]. The word comes first: [y_t; fed].", _fed_by(_last, entered=lambda y, fed: _joined(fed, y))),
    "scores_with_the_old_state": ("The words are scored with the state before the step, Bahdanau's order. Luong scores with the new state.", _fed_by(_last, score="old")),
    "attentional_state_carried": ("The attentional state is carried on as the recurrent state. The step continues from its own state s.", _fed_by(_last, state=lambda s, output: output)),
    "state_before_the_context": ("The attentional state is made of [s; c]. The context comes first: tanh([c; s] W_c).", _fed_by(_last, joined=lambda context, s: _joined(s, context))),
    "padding_attended": ("The mask is ignored, so padding gets weight. Pass it to attend.", _fed_by(_last, masked=False)),
}
for _name, (_diagnosis, _answer) in FEEDING.items():
    _answer.__name__ = _name
    input_feeding.mistake(_diagnosis)(_answer)


ITEMS = [additive_score, general_score, attend, attentional_state, alignment_error_rate, attention_decoder_step, input_feeding]

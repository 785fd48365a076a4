"""Exercise 13: words to hide, the loss of the next token, a cache, a nucleus; a GPT, its perplexity, and sampling from it."""

import math

import torch
from torch import nn

from course_lib.models import lm, transformer
from course_lib.models.attention import attend_with_cache as right_cache
from course_lib.models.attention import attention, causal_mask
from course_lib.models.positional import positional_encoding

from ..judging.draw import decimal, different, sizes, whole
from ..judging.spec import Item, normal
from .lesson_05_query_key_value import turned_by_T
from .lesson_11_transformer_blocks import FREE, encoder_state

IN_MASKING, IN_NEXT, IN_CACHE, IN_NUCLEUS = "Words to hide", "The next token", "A cache", "The nucleus"
IN_MODEL, IN_WRITING = "One class, two models", "Generating text"
SDPA = ("scaled_dot_product_attention", "multi_head_attention_forward", "MultiheadAttention")


# ---------------------------------------------------------------- mask_tokens: judged by shares and invariants

def _mask_inputs(generator):
    def draw(B, n, vocab_size, mask_id, special_ids, p):
        ordinary = torch.tensor([number for number in range(vocab_size) if number not in special_ids])
        ids = ordinary[torch.randint(len(ordinary), (B, n), generator=generator)]
        ids[:, 0], ids[:, n // 2], ids[-1, -2:] = special_ids[0], special_ids[1], special_ids[-1]
        return {"ids": ids, "mask_id": mask_id, "vocab_size": vocab_size, "special_ids": special_ids,
                "generator": int(torch.randint(10 ** 6, (), generator=generator)), "p": p}
    def some(low, high):
        return whole(generator, low, high)
    last, mask_id, others = some(600, 900), some(1, 6), different(generator, 2, 6, 12)
    equal = some(30, 34)
    return [draw(some(12, 15), some(80, 100), some(800, 1000), 3, [0, 1, 2, 3], 0.15),
            draw(1, some(600, 700), last, last - 1, [last - 2, last - 1], 0.3),
            draw(equal, equal, some(1500, 2000), 1, [0, 1], 0.15),
            draw(3, some(250, 300), some(900, 1100), mask_id, [others[0], mask_id, 0], 0.2),
            draw(some(20, 24), some(60, 70), 40, 3, [0, 1, 2, 3], 0.15)]    # so few tokens that one past the end is met


RETURNS = ("what is returned", "the only label besides tokens and -100", "'a special token is chosen'",
           "'each label is the token that was there'", "'what is not chosen stays as it was'",
           "'all new tokens are in the vocabulary'", "'ids is unchanged afterwards'",
           "'the same generator gives the same again'",
           "'the next call draws anew'", "'every sentence of a batch is masked in the same places'",
           "'all chosen tokens of a call have the same fate'", "'all chosen tokens of a column have the same fate'",
           "'all new tokens of a row are the same'", "'all new tokens of a column are the same'",
           "'new tokens come from the whole vocabulary, not from ids alone'",
           "the share of the ordinary tokens that is chosen (label not -100)",
           "the share of [MASK] among the chosen", "the share of other tokens among the chosen",
           "the share that stays as it was among the chosen", "the share of new tokens from the upper half of the vocabulary")


def _findings(trial, calls):
    """What 25 calls and two more, with the generator anew, have in common: facts and rounded shares.

    The shares are left out where tokens are not drawn one by one: then they would be a matter of chance.
    """
    if not all(_two_like(trial["ids"], output) for output, _ in calls):
        return [_described(calls[0][0])] + [None] * (len(RETURNS) - 1)
    ids, special = trial["ids"], torch.isin(trial["ids"], torch.tensor(trial["special_ids"]))
    inputs, labels = (torch.stack([output[part] for output, _ in calls]) for part in (0, 1))
    again = torch.equal(inputs[:2], inputs[-2:]) and torch.equal(labels[:2], labels[-2:])
    inputs, labels = inputs[:-2], labels[:-2]
    chosen = labels != -100                                 # (25, B, n)
    kept, masked = chosen & (inputs == ids), chosen & (inputs == trial["mask_id"])
    other = chosen & ~kept & ~masked
    fates = torch.stack([fate.flatten(1).any(dim=1) for fate in (kept, masked, other)])    # (3, 25): which occur
    anew = not bool((inputs == inputs[0]).all() and (labels == labels[0]).all())
    alike = len(ids) > 1 and bool((chosen[:, :1] == chosen).all())
    strange = labels[chosen & (labels != ids)].unique().tolist()
    facts = ["none" if not strange else strange[0] if len(strange) == 1 else "several", bool((chosen & special).any()),
             bool((labels == ids)[chosen].all()), bool((inputs == ids)[~chosen].all()),
             bool(((inputs >= 0) & (inputs < trial["vocab_size"])).all()), all(torch.equal(ids, after["ids"]) for _, after in calls),
             again, anew, alike, bool((fates.sum(dim=0) == 1).all() and fates.any(dim=1).sum() > 1)]
    one_by_one = anew and not alike and not facts[-1]
    lines = [_shared(masked + 2 * other, chosen, 1), _shared(inputs, other, 2), _shared(inputs, other, 1),
             bool((~torch.isin(inputs[other], ids)).any()) or not bool(other.any())]
    shares = [_step(chosen[:, ~special], 0.05), *(_step(fate[chosen], 0.1) for fate in (masked, other, kept)),
              _step(inputs[other] >= trial["vocab_size"] / 2, 0.25)]
    return [_described(calls[0][0]), *facts, *(part if one_by_one else None for part in [*lines, *shares])]


def _shared(values, where, axis):
    """Whether there is one value only wherever several of `where` stand in a line along the axis; in nearly all
    of these lines, for a token that is drawn anew may be the one that was there."""
    most, least = (values.masked_fill(~where, other) for other in (-1, 10 ** 9))
    several = where.sum(dim=axis) > 1
    alike = (most.amax(dim=axis) == least.amin(dim=axis))[several]
    return bool(several.any() and alike.float().mean() > 0.9)


def _two_like(ids, output):
    return (isinstance(output, (list, tuple)) and len(output) == 2 and all(
        isinstance(part, torch.Tensor) and part.shape == ids.shape and part.dtype == ids.dtype for part in output))


def _described(output):
    if not isinstance(output, (list, tuple)):
        return ("one tensor" if isinstance(output, torch.Tensor) else
                "nothing (is the return missing?)" if output is None else "no tensors")
    return ", ".join(f"{str(part.dtype).removeprefix('torch.')} {tuple(part.shape)}" if isinstance(part, torch.Tensor)
                     else type(part).__name__ for part in output[:4])


def _step(hits, width):
    """The share of True, rounded to a multiple of `width`: chance does not reach the next one."""
    share = hits.float().mean().item() if hits.numel() else 0.0
    return round(round(share / width) * width, 2)


mask_tokens = Item("mask_tokens", 3, _mask_inputs, lm.mask_tokens, RETURNS, IN_MASKING, gradients=False, probe="draws",
                   view=_findings)


def _masked(ids, mask_id, vocab_size, special_ids, generator, p, mask=0.8, other=0.1, chosen=None, fate=None, anything=None):
    """(inputs, labels), with other shares or other draws."""
    if chosen is None:
        chosen = (torch.rand(ids.shape, generator=generator) < p) & ~torch.isin(ids, torch.tensor(special_ids))
    if fate is None:
        fate = torch.rand(ids.shape, generator=generator)
    if anything is None:
        anything = torch.randint(vocab_size, ids.shape, generator=generator)
    inputs = torch.where(chosen & (fate < mask), mask_id, ids)
    inputs = torch.where(chosen & (fate >= mask) & (fate < mask + other), anything, inputs)
    return inputs, ids.masked_fill(~chosen, -100)


@mask_tokens.mistake("Special tokens are chosen too. Those in special_ids are never masked and never predicted.")
def masks_special_tokens(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, [-1], generator, p)


@mask_tokens.mistake("Every place has a label. Only the chosen ones are predicted; all others get -100, or the model is rewarded for copying.")
def labels_everywhere(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p)[0], ids.clone()


@mask_tokens.mistake("All chosen tokens become [MASK]. Only 80 % do; 10 % become any token of the vocabulary and 10 % stay as they are.")
def always_mask(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p, mask=1.0)


@mask_tokens.mistake("ids is overwritten, but the caller still needs it (with inputs = ids or labels = ids both are one tensor). Work on a copy, ids.clone().")
def changes_ids(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, labels = _masked(ids, mask_id, vocab_size, special_ids, generator, p)
    return ids.copy_(inputs), labels


@mask_tokens.mistake("ids is overwritten before the labels are read from it, so they hold [MASK] where the old token should be. Work on a copy, ids.clone().")
def changes_ids_and_labels(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, labels = _masked(ids, mask_id, vocab_size, special_ids, generator, p)
    ids.copy_(inputs)
    return ids, inputs.masked_fill(labels == -100, -100)


@mask_tokens.mistake("The labels are read from the masked inputs. They must hold the ORIGINAL tokens, from ids.")
def labels_from_the_inputs(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, labels = _masked(ids, mask_id, vocab_size, special_ids, generator, p)
    return inputs, inputs.masked_fill(labels == -100, -100)


@mask_tokens.mistake("The labels are inverted: the chosen places have -100, and the others are predicted.")
def labels_inverted(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, labels = _masked(ids, mask_id, vocab_size, special_ids, generator, p)
    return inputs, ids.masked_fill(labels != -100, -100)


@mask_tokens.mistake("Places that are not predicted have the label 0, which is a token. The label that the loss ignores is -100.")
def labels_zero(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, labels = _masked(ids, mask_id, vocab_size, special_ids, generator, p)
    return inputs, labels.masked_fill(labels == -100, 0)


@mask_tokens.mistake("Only the places with [MASK] have a label. The chosen tokens that were replaced or kept are predicted as well; that is what they are for.")
def labels_only_at_mask(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    inputs, labels = _masked(ids, mask_id, vocab_size, special_ids, generator, p)
    return inputs, labels.masked_fill(inputs != mask_id, -100)


@mask_tokens.mistake("No chosen token stays as it is. 80 % become [MASK], 10 % any token, and 10 % stay.")
def none_stays(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p, other=0.2)


@mask_tokens.mistake("No chosen token is replaced by another one. 80 % become [MASK], 10 % ANY token of the vocabulary, and 10 % stay.")
def none_exchanged(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p, other=0.0)


@mask_tokens.mistake("10 % of the REMAINING fifth are replaced, which is 2 % of the chosen tokens. Replace 10 % of all chosen tokens, half of those that did not become [MASK].")
def tenth_of_the_rest(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p, other=0.02)


@mask_tokens.mistake("The percentages are exchanged. 80 % of the chosen tokens become [MASK], 10 % any token, and 10 % stay.")
def a_tenth_masked(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p, mask=0.1)


@mask_tokens.mistake("80 % become any token and 10 % [MASK]. It is the other way round.")
def mostly_exchanged(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p, mask=0.1, other=0.8)


@mask_tokens.mistake("1 - p of the tokens are chosen. torch.rand(...) < p is True with probability p.")
def chooses_the_rest(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, 1 - p)


@mask_tokens.mistake("p is not used: 15 % are chosen whatever its value.")
def p_ignored(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, 0.15)


@mask_tokens.mistake("The two results are swapped: inputs first, labels second.")
def inputs_and_labels_swapped(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p)[::-1]


@mask_tokens.mistake("The generator is not used. Pass it to every draw, torch.rand(..., generator=generator); otherwise the same seed gives a different result each time.")
def generator_ignored(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, torch.Generator().manual_seed(_unlike()), p)


def _unlike():
    """Another number at each call, and nothing of torch's own generator is used up."""
    _unlike.number = getattr(_unlike, "number", 0) + 1
    return _unlike.number


@mask_tokens.mistake("The generator is seeded again at every call, so the same places are masked in every epoch. Draw from the one that is given, and do not seed it.")
def always_the_same(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, torch.Generator().manual_seed(3), p)


@mask_tokens.mistake("Every sentence of the batch is masked in the same places. Draw one number for each token: torch.rand of ids.shape.")
def one_row_for_all(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    row = torch.rand(ids.shape[1], generator=generator) < p
    ordinary = ~torch.isin(ids, torch.tensor(special_ids))
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p, chosen=(row & ordinary.all(dim=0)).expand_as(ids))


@mask_tokens.mistake("The choice between 80, 10 and 10 % is drawn once for the whole batch. Draw it for each token.")
def one_fate_for_all(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p, fate=torch.rand((), generator=generator))


@mask_tokens.mistake("The choice between 80, 10 and 10 % is drawn once for a row of places and used for every sentence. Draw it for each token: torch.rand(ids.shape).")
def one_fate_for_a_place(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
    return _masked(ids, mask_id, vocab_size, special_ids, generator, p, fate=torch.rand(ids.shape[1], generator=generator))


for _name, _sentence, _anything in [
    ("one_new_token_for_a_place", "The new tokens are drawn once for a row of places and used for every sentence. Draw one for each token, ids.shape.", lambda ids, vocab_size, g: torch.randint(vocab_size, (1, ids.size(1)), generator=g)),
    ("one_new_token_for_a_sentence", "Each sentence has a single new token in all the places that are replaced. Draw one for each token, ids.shape.", lambda ids, vocab_size, g: torch.randint(vocab_size, (ids.size(0), 1), generator=g)),
    ("one_new_token_for_a_call", "One new token is used for all the places that are replaced. Draw one for each token, ids.shape.",
     lambda ids, vocab_size, g: torch.randint(vocab_size, (1, 1), generator=g)),
    ("new_tokens_from_the_batch", "The new tokens are taken from the batch. ANY token of the vocabulary may come: torch.randint(vocab_size, ids.shape).", lambda ids, vocab_size, g: ids.flatten()[torch.randperm(ids.numel(), generator=g)].view(ids.shape)),
]:
    mask_tokens.mistake(_sentence)(type(_name, (), {"__new__": staticmethod(
        lambda cls, ids, mask_id, vocab_size, special_ids, generator, p=0.15, anything=_anything: _masked(
            ids, mask_id, vocab_size, special_ids, generator, p, anything=anything(ids, vocab_size, generator)))}))


# ---------------------------------------------------------------- causal_lm_loss

def _loss_inputs(generator):
    def draw(B, n, vocab, dtype=torch.float32):
        return {"logits": normal(generator, B, n, vocab, scale=1.5, dtype=dtype),
                "ids": torch.randint(vocab, (B, n), generator=generator)}
    usual, other, one, equal = sizes(generator, 3, low=3)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal), draw(whole(generator, 4, 7), 3, usual[-1])]


causal_lm_loss = Item("causal_lm_loss", 1, _loss_inputs, lm.causal_lm_loss, ("loss, one number",), IN_NEXT,
                      free=("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"), properties=(
    (lambda trial, loss: loss.item() >= 0, "The loss must not be negative: it is a mean of -log p, and p is at most 1."),))


def _surprise(logits, ids):
    """-log p of each token, (B, n)."""
    return -logits.log_softmax(dim=-1).gather(-1, ids[..., None])[..., 0]


@causal_lm_loss.mistake("Nothing is shifted: position i must predict its own token, which it has just read. Its target is token i + 1.")
def not_shifted_at_all(logits, ids):
    return _surprise(logits, ids).mean()


@causal_lm_loss.mistake("The shift is two steps: position i must predict token i + 2. Shift once: logits[:, :-1] against ids[:, 1:].")
def shifted_twice(logits, ids):
    return _surprise(logits[:, :-2], ids[:, 2:]).mean()


@causal_lm_loss.mistake("The shift goes the wrong way: position i must predict token i - 1, which it has seen. Drop the last position of the logits and the first of the ids.")
def shifted_back(logits, ids):
    return _surprise(logits[:, 1:], ids[:, :-1]).mean()


@causal_lm_loss.mistake("ids or logits are rolled, so the last position must predict the FIRST token. It has no next token: leave it out.")
def rolled(logits, ids):
    return _surprise(logits, ids.roll(-1, 1)).mean()


@causal_lm_loss.mistake("The shift runs along the batch. Axis 1 holds the positions: logits[:, :-1] and ids[:, 1:].")
def shifted_along_the_batch(logits, ids):
    return _surprise(logits[:-1], ids[1:]).mean()


@causal_lm_loss.mistake("The first column of both ids and logits is dropped. Token i + 1 must be compared with the logits of position i.")
def both_cut_in_front(logits, ids):
    return _surprise(logits[:, 1:], ids[:, 1:]).mean()


@causal_lm_loss.mistake("Both lose their last position, and nothing is shifted. Token i + 1 must be compared with the logits of position i.")
def both_cut_behind(logits, ids):
    return _surprise(logits[:, :-1], ids[:, :-1]).mean()


@causal_lm_loss.mistake("This is the sum. Take the mean over all B (n - 1) predictions.")
def summed(logits, ids):
    return _surprise(logits[:, :-1], ids[:, 1:]).sum()


@causal_lm_loss.mistake("This sums over the positions and averages over the sentences. Take the mean over all B (n - 1) predictions.")
def summed_over_places(logits, ids):
    return _surprise(logits[:, :-1], ids[:, 1:]).sum(dim=1).mean()


@causal_lm_loss.mistake("The sum is divided by B n. There are only B (n - 1) predictions, since nothing follows the last token.")
def divided_by_n(logits, ids):
    return _surprise(logits[:, :-1], ids[:, 1:]).sum() / ids.numel()


@causal_lm_loss.mistake("The softmax is applied twice: log_softmax expects logits, not probabilities.")
def two_softmaxes(logits, ids):
    return _surprise(logits[:, :-1].softmax(dim=-1), ids[:, 1:]).mean()


@causal_lm_loss.mistake("The softmax is taken over the positions. It belongs over the vocabulary, the last axis.")
def softmax_over_places(logits, ids):
    return -logits[:, :-1].log_softmax(dim=1).gather(-1, ids[:, 1:, None]).mean()


@causal_lm_loss.mistake("The softmax is missing: logits are not log-probabilities yet. Take log_softmax over the vocabulary.")
def softmax_left_out(logits, ids):
    return -logits[:, :-1].gather(-1, ids[:, 1:, None]).mean()


@causal_lm_loss.mistake("The logarithm is missing: this is minus the mean probability.")
def logarithm_left_out(logits, ids):
    return -torch.exp(-_surprise(logits[:, :-1], ids[:, 1:])).mean()


@causal_lm_loss.mistake("The sign is wrong: the loss is the mean of MINUS log p.")
def sign_turned_round(logits, ids):
    return -_surprise(logits[:, :-1], ids[:, 1:]).mean()


@causal_lm_loss.mistake("This is the perplexity, exp of the loss. Return the loss itself.")
def perplexity_returned(logits, ids):
    return _surprise(logits[:, :-1], ids[:, 1:]).mean().exp()


@causal_lm_loss.mistake("The logarithm has base 2. Use the natural one (torch.log, log_softmax).")
def in_bits(logits, ids):
    return _surprise(logits[:, :-1], ids[:, 1:]).mean() / math.log(2)


@causal_lm_loss.mistake("This is one loss for each position, (B, n - 1). Take the mean.")
def one_a_place(logits, ids):
    return _surprise(logits[:, :-1], ids[:, 1:])


@causal_lm_loss.mistake("Only the last prediction of each sentence counts. Every position predicts its next token.")
def only_the_last(logits, ids):
    return _surprise(logits[:, -2], ids[:, -1]).mean()


# ---------------------------------------------------------------- attend_with_cache

def _cache_inputs(generator):
    def draw(B, h, before, d_k, d_v, dtype=torch.float32, kind=tuple):
        new = {name: normal(generator, B, h, 1, d, dtype=dtype) for name, d in
               (("Q_t", d_k), ("K_t", d_k), ("V_t", d_v))}
        old = kind(normal(generator, B, h, before, d, dtype=dtype) for d in (d_k, d_v)) if before else None
        return {**new, "cache": old}
    usual, other, one, equal = sizes(generator, 5)
    B, h, *widths = different(generator, 4)
    return [draw(*usual), draw(B, h, 0, *widths), draw(*other, torch.float64), draw(*equal), draw(1, 1, 1, *one[-2:]),
            draw(*different(generator, 5), kind=list)]


attend_with_cache = Item("attend_with_cache", 2, _cache_inputs, right_cache,
                         ("output (B, h, 1, d_v)", "cache (K, V)"), IN_CACHE, free=SDPA)


def _grown(cache, K_t, V_t, axis=-2):
    if cache is None:
        return K_t, V_t
    return torch.cat([cache[0], K_t], dim=axis), torch.cat([cache[1], V_t], dim=axis)


def _with(Q, K, V, scale=None, dim=-1):
    weights = (Q @ K.transpose(-2, -1) / (scale or math.sqrt(Q.size(-1)))).softmax(dim=dim)
    return weights @ V


@attend_with_cache.mistake("The cache does not grow: the new key and value are used once and dropped. Return them with the old ones.")
def cache_not_grown(Q_t, K_t, V_t, cache=None):
    return right_cache(Q_t, K_t, V_t, cache)[0], cache


@attend_with_cache.mistake("The cache is started but does not grow after that. Each step appends the new key and value to it.")
def cache_only_started(Q_t, K_t, V_t, cache=None):
    output, grown = right_cache(Q_t, K_t, V_t, cache)
    return output, cache or grown


@attend_with_cache.mistake("The cache holds only the new key and value. Append them to the old ones: torch.cat along axis -2.")
def cache_replaced(Q_t, K_t, V_t, cache=None):
    return right_cache(Q_t, K_t, V_t, cache)[0], (K_t, V_t)


@attend_with_cache.mistake("The old cache is changed in place, but another continuation of the same text may still need it. Make new tensors: torch.cat([K, K_t], dim=-2).")
def old_cache_changed(Q_t, K_t, V_t, cache=None):
    K, V = _grown(cache, K_t, V_t)
    if cache is not None:
        cache[0].data, cache[1].data = K.data, V.data
    return right_cache(Q_t, K, V)[0] if cache is None else _with(Q_t, K, V), (K, V)


@attend_with_cache.mistake("Keys and values are appended in different orders: K gets its new row at the end, V at the front, so every value belongs to another key.")
def values_in_front(Q_t, K_t, V_t, cache=None):
    K, V = _grown(cache, K_t, V_t)
    V = V if cache is None else torch.cat([V_t, cache[1]], dim=-2)
    return _with(Q_t, K, V), (K, V)


@attend_with_cache.mistake("Keys and values are appended in different orders: V gets its new row at the end, K at the front, so every value belongs to another key.")
def keys_in_front(Q_t, K_t, V_t, cache=None):
    K, V = _grown(cache, K_t, V_t)
    K = K if cache is None else torch.cat([K_t, cache[0]], dim=-2)
    return _with(Q_t, K, V), (K, V)


@attend_with_cache.mistake("The output is right, but the new row is at the front. The cache keeps the order of the text, the newest token last.")
def both_in_front(Q_t, K_t, V_t, cache=None):
    grown = (K_t, V_t) if cache is None else (torch.cat([K_t, cache[0]], dim=-2), torch.cat([V_t, cache[1]], dim=-2))
    return _with(Q_t, *grown), grown


@attend_with_cache.mistake("The cache is returned as (V, K). The keys come first.")
def cache_swapped(Q_t, K_t, V_t, cache=None):
    output, grown = right_cache(Q_t, K_t, V_t, cache)
    return output, grown[::-1]


@attend_with_cache.mistake("The new token attends only to itself. Use ALL keys and values, the old ones and the new one.")
def only_to_itself(Q_t, K_t, V_t, cache=None):
    return _with(Q_t, K_t, V_t), _grown(cache, K_t, V_t)


@attend_with_cache.mistake("The new token does not attend to itself. Append its own key and value to the cache BEFORE the attention.")
def not_to_itself(Q_t, K_t, V_t, cache=None):
    output = _with(Q_t, K_t, V_t) if cache is None else _with(Q_t, *cache)
    return output, _grown(cache, K_t, V_t)


@attend_with_cache.mistake("The scale is missing, or it is 1 (Q_t has ONE row). Divide the scores by sqrt(d_k), d_k = Q_t.size(-1).")
def cached_without_scale(Q_t, K_t, V_t, cache=None):
    grown = _grown(cache, K_t, V_t)
    return _with(Q_t, *grown, scale=1.0), grown


@attend_with_cache.mistake("The scores are divided by d_k. Divide by its ROOT.")
def cached_scale_not_the_root(Q_t, K_t, V_t, cache=None):
    grown = _grown(cache, K_t, V_t)
    return _with(Q_t, *grown, scale=Q_t.size(-1)), grown


@attend_with_cache.mistake("The scores are divided by sqrt(d_v), the width of V. The scale is sqrt(d_k).")
def cached_scale_by_d_v(Q_t, K_t, V_t, cache=None):
    grown = _grown(cache, K_t, V_t)
    return _with(Q_t, *grown, scale=math.sqrt(V_t.size(-1))), grown


@attend_with_cache.mistake("The scores are divided by the root of the number of tokens. The scale is sqrt(d_k).")
def cached_scale_by_length(Q_t, K_t, V_t, cache=None):
    K, V = _grown(cache, K_t, V_t)
    return _with(Q_t, K, V, scale=math.sqrt(K.size(-2))), (K, V)


@attend_with_cache.mistake("The softmax is taken over the queries, of which there is only one, so all weights are 1. Take it over the keys, dim=-1.")
def cached_softmax_over_queries(Q_t, K_t, V_t, cache=None):
    grown = _grown(cache, K_t, V_t)
    return _with(Q_t, *grown, dim=-2), grown


@attend_with_cache.mistake("A causal mask is applied to the one query as if it were the FIRST token, so it sees only the first key. The newest token needs no mask: everything in the cache came before it.")
def masked_as_the_first(Q_t, K_t, V_t, cache=None):
    K, V = _grown(cache, K_t, V_t)
    first = torch.arange(K.size(-2)) == 0
    return attention(Q_t, K, V, first)[0], (K, V)


@attend_with_cache.mistake("The values are averaged without weights.")
def values_averaged(Q_t, K_t, V_t, cache=None):
    K, V = _grown(cache, K_t, V_t)
    return V.mean(dim=-2, keepdim=True), (K, V)


@attend_with_cache.mistake("Only the output is returned. The next step needs the cache: return output, (K, V).")
def cache_not_returned(Q_t, K_t, V_t, cache=None):
    return right_cache(Q_t, K_t, V_t, cache)[0]


@attend_with_cache.mistake("The cache is returned as two results. It is one: return output, (K, V).")
def cache_unpacked(Q_t, K_t, V_t, cache=None):
    output, (K, V) = right_cache(Q_t, K_t, V_t, cache)
    return output, K, V


@attend_with_cache.mistake("The two results are swapped: the output comes first, the cache second.")
def cache_first(Q_t, K_t, V_t, cache=None):
    return right_cache(Q_t, K_t, V_t, cache)[::-1]


@attend_with_cache.mistake("The second result is the weights. The next step needs the cache, (K, V).")
def weights_for_the_cache(Q_t, K_t, V_t, cache=None):
    return attention(Q_t, *_grown(cache, K_t, V_t))


@attend_with_cache.mistake("The keys are appended along the batch, axis 0. Positions are along axis -2.")
def joined_along_the_batch(Q_t, K_t, V_t, cache=None):
    K, V = _grown(cache, K_t, V_t, axis=0)
    return _with(Q_t, K, V), (K, V)


@attend_with_cache.mistake("The keys are appended along the heads, axis 1. Positions are along axis -2.")
def joined_along_the_heads(Q_t, K_t, V_t, cache=None):
    K, V = _grown(cache, K_t, V_t, axis=1)
    return _with(Q_t, K, V), (K, V)


@attend_with_cache.mistake("The cache is not used: the new token attends only to itself, and only its own key and value are returned.")
def cache_ignored(Q_t, K_t, V_t, cache=None):
    return right_cache(Q_t, K_t, V_t)


@attend_with_cache.mistake("The old cache is changed in place (cache[0] = ..., which a tuple does not allow), but another continuation may still need it. Make new tensors and return (K, V).")
def entries_replaced(Q_t, K_t, V_t, cache=None):
    if cache is None:
        return right_cache(Q_t, K_t, V_t)
    cache[0], cache[1] = _grown(cache, K_t, V_t)
    return _with(Q_t, *cache), cache


@attend_with_cache.mistake("If the cache is a list, its entries are replaced in place, but another continuation of the same text may still need the old ones. Make new tensors and return (K, V).")
def list_changed(Q_t, K_t, V_t, cache=None):
    K, V = _grown(cache, K_t, V_t)
    if isinstance(cache, list):
        cache[:] = K, V
    return _with(Q_t, K, V), (K, V)


@attend_with_cache.mistake("K.T reverses the order of ALL axes, those of batch and heads as well. Exchange only the last two: K.transpose(-2, -1).")
def cached_T_turns_every_axis(Q_t, K_t, V_t, cache=None):
    grown = _grown(cache, K_t, V_t)
    return turned_by_T(Q_t, *grown)[0], grown


# ---------------------------------------------------------------- nucleus

def _nucleus_inputs(generator):
    """Probabilities that differ by a fifth and more, and a p that none of their sums comes near."""
    def draw(*shape, p, dtype=torch.float32):
        *rows, vocab = shape
        ranks = torch.rand(shape, generator=generator).argsort(dim=-1)
        return {"logits": (-0.7 * ranks.to(torch.float64) + normal(generator, *rows, 1, dtype=torch.float64)).to(dtype),
                "p": p}
    def p(low, high):
        return decimal(generator, low, high)
    equal = whole(generator, 4, 6)
    rows, *vocab = different(generator, 4, 6, 11)
    return [draw(rows - 3, vocab[0], p=p(0.8, 0.84)), draw(rows - 4, vocab[1], p=p(0.91, 0.92), dtype=torch.float64),
            draw(equal, equal, p=p(0.58, 0.7)), draw(vocab[2], p=p(0.58, 0.72)), draw(1, vocab[1], p=p(0.15, 0.23)),
            draw(rows - 3, whole(generator, 4, 8), p=1.0)]


nucleus = Item("nucleus", 2, _nucleus_inputs, lm.nucleus, ("probabilities (..., vocab)",), IN_NUCLEUS, properties=(
    (lambda trial, found: torch.allclose(found.sum(dim=-1), torch.ones((), dtype=found.dtype), atol=1e-4),
     "The probabilities must sum to 1: what is left is divided by its sum."),))


def _cut(logits, p, keep, renormalise=True):
    """Keeps where keep(probability, sum of the likelier ones) holds; in the vocabulary's order."""
    probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
    kept = probabilities * keep(probabilities, probabilities.cumsum(dim=-1) - probabilities)
    kept = torch.zeros_like(kept).scatter(-1, order, kept)
    return kept / kept.sum(dim=-1, keepdim=True) if renormalise else kept


def _first(places):
    """The first place of each row is kept whatever happens."""
    return places | (torch.arange(places.size(-1)) == 0)


@nucleus.mistake("The token that crosses p is dropped. The nucleus is the smallest set whose sum REACHES p, so the token that crosses the threshold belongs to it.")
def drops_the_crossing_token(logits, p):
    return _cut(logits, p, lambda q, before: before + q <= p)


@nucleus.mistake("The token that crosses p is dropped unless nothing would be left. The nucleus is the smallest set whose sum REACHES p.")
def drops_it_but_one(logits, p):
    return _cut(logits, p, lambda q, before: _first(before + q <= p))


@nucleus.mistake("One token too many is kept. The set is complete with the token that crosses p.")
def one_token_too_many(logits, p):
    shifted = lambda x: torch.cat([torch.zeros_like(x[..., :1]), x[..., :-1]], dim=-1)
    return _cut(logits, p, lambda q, before: shifted(before) < p)


@nucleus.mistake("The probabilities are not renormalised. After the cut divide them by their sum.")
def not_renormalised(logits, p):
    return _cut(logits, p, lambda q, before: before < p, renormalise=False)


@nucleus.mistake("A second softmax is taken after the cut, of probabilities, which gives weight to the tokens that were cut off. Divide by the sum instead.")
def softmax_after_the_cut(logits, p):
    return not_renormalised(logits, p).softmax(dim=-1)


@nucleus.mistake("Tokens are kept if their own probability is at least p. It is the SUM of probabilities, from the likeliest token on, that has to reach p.")
def single_probabilities_against_p(logits, p):
    return _cut(logits, p, lambda q, before: _first(q >= p))


@nucleus.mistake("The sum starts from the LEAST likely token. Start with the likeliest.")
def from_the_least_likely(logits, p):
    return _cut(logits, p, lambda q, before: 1 - before - q < p)


@nucleus.mistake("The tail is kept and the nucleus is cut off. Keep the likeliest tokens.")
def keeps_the_tail(logits, p):
    return _cut(logits, p, lambda q, before: before >= p)


@nucleus.mistake("p is used as the part to cut off. p is the part that STAYS.")
def cuts_p_off(logits, p):
    return _cut(logits, p, lambda q, before: _first(before < 1 - p))


@nucleus.mistake("The tokens are added up in the order of the vocabulary. Sort them first, the likeliest in front.")
def not_sorted(logits, p):
    probabilities = logits.softmax(dim=-1)
    kept = probabilities * (probabilities.cumsum(dim=-1) - probabilities < p)
    return kept / kept.sum(dim=-1, keepdim=True)


@nucleus.mistake("The result is sorted. Each probability has to return to its token's place in the vocabulary.")
def left_sorted(logits, p):
    return lm.nucleus(logits, p).sort(dim=-1, descending=True).values


@nucleus.mistake("The sorted cut is applied to the unsorted tokens. Whether a token stays depends on its own rank, so bring the cut back into the order of the vocabulary.")
def cut_in_the_wrong_order(logits, p):
    probabilities = logits.softmax(dim=-1)
    ordered = probabilities.sort(dim=-1, descending=True).values
    kept = probabilities * (ordered.cumsum(dim=-1) - ordered < p)
    return kept / kept.sum(dim=-1, keepdim=True)


@nucleus.mistake("Nothing is cut off. Tokens outside the nucleus get exactly 0.")
def nothing_cut(logits, p):
    return logits.softmax(dim=-1)


@nucleus.mistake("Only the likeliest token is kept, which is greedy decoding.")
def only_the_likeliest(logits, p):
    return _cut(logits, p, lambda q, before: _first(before < 0))


@nucleus.mistake("The sorted probabilities are put back by gather(-1, order), which shuffles them once more. scatter(-1, order, probabilities) puts each at its token.")
def put_back_by_gather(logits, p):
    return left_sorted(logits, p).gather(-1, logits.argsort(dim=-1, descending=True))


@nucleus.mistake("These are logits with -inf where they are cut. Take the softmax of them.")
def logits_returned(logits, p):
    return logits.masked_fill(lm.nucleus(logits, p) == 0, -math.inf)


@nucleus.mistake("Logits that are cut off are set to 0, but exp(0) = 1. Set them to -inf, or cut the probabilities.")
def cut_logits_are_zero(logits, p):
    return logits.masked_fill(lm.nucleus(logits, p) == 0, 0.0).softmax(dim=-1)


@nucleus.mistake("A fraction p of the NUMBER of tokens is kept. It is the sum of probabilities that has to reach p.")
def share_of_the_count(logits, p):
    return _cut(logits, p, lambda q, before: torch.arange(q.size(-1)) < max(1, round(p * q.size(-1))))


@nucleus.mistake("The logits are added up instead of the probabilities. Take the softmax first.")
def sums_of_logits(logits, p):
    ordered, order = logits.sort(dim=-1, descending=True)
    kept = logits.softmax(dim=-1).gather(-1, order) * _first(ordered.cumsum(dim=-1) - ordered < p)
    kept = torch.zeros_like(kept).scatter(-1, order, kept)
    return kept / kept.sum(dim=-1, keepdim=True)


@nucleus.mistake("All rows are divided by one sum. Divide each row by its own: sum(dim=-1, keepdim=True).")
def one_sum_for_all_rows(logits, p):
    kept = not_renormalised(logits, p)
    return kept / kept.sum()


@nucleus.mistake("p is not used: 0.9 is fixed in its place.")
def p_fixed(logits, p):
    return lm.nucleus(logits, 0.9)


# ---------------------------------------------------------------- GPT

def _gpt_inputs(generator):
    def draw(vocab, d_model, h, d_ff, N, B, n, dtype=torch.float32):
        state = {"embedding.weight": normal(generator, vocab, d_model, dtype=dtype)}
        for block in range(N):
            state |= encoder_state(generator, d_model, d_ff, dtype, f"blocks.{block}.")
        calls = [torch.randint(vocab, (B, length), generator=generator) for length in (n, n + 2)]
        return {"arguments": [vocab, d_model, h, d_ff, N], "state": state, "reads": [], "whole": True,
                "calls": [("train", [calls[0]]), ("eval", [calls[1]])]}

    def trial(B=None, N=2, **how):
        b, n, h, d_ff = different(generator, 4, high=6)
        return draw(whole(generator, 11, 16), 2 * h, h, d_ff + 5, N, B or b, n + 1, **how)
    return [trial(), draw(4, 4, 2, 4, 3, 4, 4), trial(dtype=torch.float64), trial(B=1, N=3), trial()]


GPT = Item("GPT", 3, _gpt_inputs, lm.GPT, ("logits (B, n, vocab)", "longer_logits (B, n + 2, vocab)", "nothing"), IN_MODEL,
           handed=("EncoderBlock", "causal_mask", "positional_encoding"), free=FREE, probe="build", kind="transfer")


def _embedded(self, ids, scale=1.0, first=0):
    """The embeddings and their positions, (B, n, d_model)."""
    d_model = self.embedding.embedding_dim
    return scale * self.embedding(ids) + positional_encoding(first + ids.size(1), d_model)[first:].to(self.embedding.weight)


def _through(self, x, blocks=None, mask=causal_mask):
    for block in self.blocks if blocks is None else blocks:
        x = block(x, mask(x.size(1)))
    return x


def _scored(self, x):
    return x @ self.embedding.weight.T


def _each_reads_the_embedding(self, ids):
    x = _embedded(self, ids)
    return _scored(self, _through(self, x, self.blocks[-1:]))


def _positions_in_every_block(self, ids):
    x, PE = self.embedding(ids), _embedded(self, ids) - self.embedding(ids)
    for block in self.blocks:
        x = block(x + PE, causal_mask(ids.size(1)))
    return _scored(self, x)


for _name, _sentence, _forward in [
    ("gpt_without_mask", "The blocks get no mask, so each position sees the token that it should predict. Pass causal_mask(n) to every block.",
     lambda self, ids: _scored(self, _through(self, _embedded(self, ids), mask=lambda n: None))),
    ("gpt_mask_transposed", "The mask is transposed, so each position sees the future and not the past. Pass causal_mask(n) as it is.",
     lambda self, ids: _scored(self, _through(self, _embedded(self, ids), mask=lambda n: causal_mask(n).T))),
    ("gpt_mask_in_the_first_block", "Only the first block gets the mask. Information from the future enters through the others: pass it to every block.",
     lambda self, ids: _scored(self, _through(self, _through(self, _embedded(self, ids), self.blocks[:1]), self.blocks[1:], lambda n: None))),
    ("gpt_without_positions", "The positions are missing. Add positional_encoding(n, d_model) to the embeddings.",
     lambda self, ids: _scored(self, _through(self, self.embedding(ids)))),
    ("gpt_positions_from_one", "The first token gets the encoding of position 1. Positions start at 0.",
     lambda self, ids: _scored(self, _through(self, _embedded(self, ids, first=1)))),
    ("gpt_positions_in_every_block", "The positions are added again before every block. Add them once, to the embeddings.", _positions_in_every_block),
    ("gpt_embedding_scaled", "The embeddings are multiplied by sqrt(d_model). This GPT uses them as they are.",
     lambda self, ids: _scored(self, _through(self, _embedded(self, ids, scale=math.sqrt(self.embedding.embedding_dim))))),
    ("gpt_blocks_backwards", "The blocks are applied from the last to the first. The first one reads the embeddings.",
     lambda self, ids: _scored(self, _through(self, _embedded(self, ids), list(self.blocks)[::-1]))),
    ("gpt_each_reads_the_embedding", "Every block reads the embeddings, so only the last one counts. Each block reads what the one before it gave: x = block(x, mask).",
     _each_reads_the_embedding),
    ("gpt_first_block_only", "Only the first block is applied. x goes through all N of them in turn.",
     lambda self, ids: _scored(self, _through(self, _embedded(self, ids), self.blocks[:1]))),
    ("gpt_skip_around_blocks", "x is added to what each block gives. The residual connections are inside the blocks already.",
     lambda self, ids: _scored(self, _through(self, _embedded(self, ids), [lambda x, mask, block=block: x + block(x, mask) for block in self.blocks]))),
    ("gpt_probabilities", "The softmax is already taken. Return the logits, as the losses expect them.",
     lambda self, ids: lm.GPT.forward(self, ids).softmax(dim=-1)),
    ("gpt_log_probabilities", "The log-softmax is already taken. Return the logits themselves.",
     lambda self, ids: lm.GPT.forward(self, ids).log_softmax(dim=-1)),
    ("gpt_last_position_only", "Only the last position has logits. Training needs those of every position: (B, n, vocab).",
     lambda self, ids: lm.GPT.forward(self, ids)[:, -1]),
    ("gpt_states_returned", "These are the last block's outputs. The product with the embedding of each token is missing: x @ embedding.weight.T.",
     lambda self, ids: _through(self, _embedded(self, ids))),
]:
    GPT.mistake(_sentence)(type(_name, (lm.GPT,), {"forward": _forward}))


class _Built(lm.GPT):
    """A GPT with something else in its __init__: `more` comes after the usual parts."""

    def __init__(self, vocab, d_model, h, d_ff, N):
        super().__init__(vocab, d_model, h, d_ff, N)
        self.more(vocab, d_model, h, d_ff, N)


for _name, _sentence, _more in [
    ("gpt_shared_blocks", "All N blocks are one: [block] * N repeats the same module, with the same weights. Make a new EncoderBlock for each.",
     lambda self, vocab, d_model, h, d_ff, N: setattr(self, "blocks", nn.ModuleList([self.blocks[0]] * N))),
    ("gpt_one_head", "The number of heads h is not passed on: every block has one head.",
     lambda self, vocab, d_model, h, d_ff, N: setattr(self, "blocks", nn.ModuleList(transformer.EncoderBlock(d_model, 1, d_ff) for _ in range(N)))),
    ("gpt_d_ff_ignored", "d_ff is not used: the feed-forward parts are 4 * d_model wide. Pass d_ff on to EncoderBlock.",
     lambda self, vocab, d_model, h, d_ff, N: setattr(self, "blocks", nn.ModuleList(transformer.EncoderBlock(d_model, h, 4 * d_model) for _ in range(N)))),
    ("gpt_not_tied", "The output layer has weights of its own. It is tied to the embedding: the logits are x @ embedding.weight.T.",
     lambda self, vocab, d_model, h, d_ff, N: setattr(self, "out", nn.Linear(d_model, vocab, bias=False))),
    ("gpt_output_bias", "The output has a bias. Here the logits are x @ embedding.weight.T and nothing else.",
     lambda self, vocab, d_model, h, d_ff, N: setattr(self, "bias", nn.Parameter(torch.zeros(vocab)))),
    ("gpt_final_norm", "There is a norm after the last block. These blocks are post-norm, so their output is normalised already; this GPT has none.",
     lambda self, vocab, d_model, h, d_ff, N: setattr(self, "norm", nn.LayerNorm(d_model))),
]:
    GPT.mistake(_sentence)(type(_name, (_Built,), {"more": _more}))


@GPT.mistake("The blocks are kept in a plain list, so their weights are not registered and never trained. Use nn.ModuleList.")
class gpt_blocks_in_a_list(lm.GPT):
    def __init__(self, vocab, d_model, h, d_ff, N):
        nn.Module.__init__(self)
        self.embedding = nn.Embedding(vocab, d_model)
        self.blocks = [transformer.EncoderBlock(d_model, h, d_ff) for _ in range(N)]


# ---------------------------------------------------------------- perplexity

def _perplexity_inputs(generator):
    def draw(B, n, vocab, dtype=torch.float32):
        return {"logits": normal(generator, B, n, vocab, dtype=dtype), "ids": torch.randint(vocab, (B, n), generator=generator)}
    usual, other, one, equal = sizes(generator, 3, low=3, high=7)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal), draw(whole(generator, 4, 7), 3, usual[-1])]


perplexity = Item("perplexity", 1, _perplexity_inputs, lm.perplexity, ("perplexity, a float",), IN_NEXT, uses=("causal_lm_loss",),
                  gradients=False,
                  properties=((lambda trial, found: found >= 1, "A perplexity is at least 1: that of a model which is always sure and right."),))

for _name, _sentence, _found in [
    ("mean_of_exponentials", "exp is taken of each token's loss, and then the mean. Take the mean first: one exp of the mean.",
     lambda loss: loss.exp().mean()),
    ("two_to_the_nats", "2 is raised to a loss in nats. log_softmax and cross_entropy use the natural logarithm, so it is exp(loss).",
     lambda loss: 2 ** loss.mean()),
    ("ppl_divided_by_n", "The sum of the losses is divided by all B n tokens. There are only B (n - 1) predictions, since nothing follows the last token.",
     lambda loss: (loss.sum() / (len(loss) * (loss.size(1) + 1))).exp()),
    ("mean_over_sentences", "Each sentence's own perplexity is computed, and then their mean. Take one mean of the loss over all tokens, then exp.",
     lambda loss: loss.mean(dim=1).exp().mean()),
    ("loss_returned", "This is the loss. The perplexity is exp of it.", lambda loss: loss.mean()),
    ("exp_of_the_sum", "exp is taken of the sum of the losses. Take their mean.", lambda loss: loss.sum().exp()),
    ("exp_of_the_sentence_sums", "The losses of each sentence are summed, not averaged, before exp. Take the mean over all B (n - 1) predictions.",
     lambda loss: loss.sum(dim=1).mean().exp()),
    ("one_over_perplexity", "This is exp of MINUS the loss, the typical probability of a token. The perplexity is its reciprocal.",
     lambda loss: (-loss.mean()).exp()),
    ("exp_of_the_bits", "The loss is converted to bits, but then e is raised to it. Use exp with nats, or 2 ** with bits.",
     lambda loss: (loss.mean() / math.log(2)).exp()),
    ("worst_token", "This is the perplexity of the worst token alone. Take the mean of the loss, then exp.", lambda loss: loss.max().exp()),
]:
    perplexity.mistake(_sentence)(type(_name, (), {"__new__": staticmethod(
        lambda cls, logits, ids, found=_found: found(_surprise(logits[:, :-1], ids[:, 1:])).item())}))


@perplexity.mistake("Nothing is shifted: position i is asked for its own token, which it has just read. Its target is token i + 1.")
def ppl_not_shifted(logits, ids):
    return _surprise(logits, ids).mean().exp().item()


@perplexity.mistake("The shift goes the wrong way: position i is asked for token i - 1. Drop the last position of the logits and the first of the ids.")
def ppl_shifted_back(logits, ids):
    return _surprise(logits[:, 1:], ids[:, :-1]).mean().exp().item()


@perplexity.mistake("The number is right, but it is a tensor. Return a Python float: .item().")
def ppl_as_a_tensor(logits, ids):
    return torch.tensor(lm.perplexity(logits, ids), dtype=logits.dtype)


# ---------------------------------------------------------------- sample: judged by shares

SHARES = [(0.6, 0.3, 0.1), (0.6, 0.2, 0.1, 0.1)]  # multiples of 0.1: chance does not reach the next


def _sample_inputs(generator):
    def draw(B, t, n, temperature, shares, dtype=torch.float32):
        """A table whose softmax at that temperature has these probabilities, in another order in each context."""
        contexts = 2 * len(shares) + 1
        order = torch.rand(contexts, len(shares), generator=generator).argsort(dim=-1)
        logits = temperature * torch.tensor(shares, dtype=torch.float64).log()[order] + normal(generator, contexts, 1, dtype=torch.float64)
        return {"table": logits.to(dtype), "prompt": torch.randint(len(shares), (B, t), generator=generator), "n": n,
                "temperature": temperature, "generator": whole(generator, 0, 10 ** 6)}
    t = different(generator, 5, 2, 7)
    equal = whole(generator, 11, 14)
    return [draw(whole(generator, 30, 40), t[0], 6, decimal(generator, 0.4, 0.55), SHARES[0]),
            draw(whole(generator, 40, 50), t[1], 5, decimal(generator, 1.8, 2.2), SHARES[1]),
            draw(1, t[2], whole(generator, 15, 20), decimal(generator, 0.4, 0.5), SHARES[1]), draw(equal, equal, equal, 1.0, SHARES[0]),
            draw(whole(generator, 30, 40), t[3], 6, 0.01, (1 - 2e-40, 1e-40, 1e-40))]


def _sampled(trial, calls):
    """Facts about 25 calls and two more with the generator anew, and the shares of the likeliest tokens."""
    B, t = trial["prompt"].shape
    outputs = [output for output, _ in calls]
    first = outputs[0]
    described = f"{str(first.dtype).removeprefix('torch.')} {tuple(first.shape)}" if isinstance(first, torch.Tensor) else _described(first)
    if isinstance(first, torch.Tensor) and first.shape[:-1] == (B,) and torch.equal(first[:, :t], trial["prompt"]):
        described += ", beginning with the prompt"
    if not all(isinstance(one, torch.Tensor) and one.shape == (B, t + trial["n"]) and one.dtype == torch.int64 for one in outputs):
        return [described] + [None] * (len(SAMPLE_RETURNS) - 1)
    ids, vocab = torch.stack(outputs), trial["table"].size(-1)              # (27, B, t + n)
    facts = [bool((ids[..., :t] == trial["prompt"]).all()), all(torch.equal(trial["prompt"], after["prompt"]) for _, after in calls),
             bool(((ids >= 0) & (ids < vocab)).all())]
    if not all(facts):
        return [described, *facts] + [None] * (len(SAMPLE_RETURNS) - 1 - len(facts))
    ids, again = ids[:-2], torch.equal(ids[:2], ids[-2:])
    sure = trial["temperature"] < 0.1                                       # then nothing is left to chance
    new = ids[..., t:]                                                      # (25, B, n)
    facts += [again, sure or not bool((ids == ids[0]).all()), not sure and B > 1 and bool((new == new[:, :1]).all())]
    context = (ids.cumsum(dim=-1)[..., t - 1:-1]) % len(trial["table"])     # (25, B, n): what each token was drawn from
    rank = trial["table"].argsort(dim=-1, descending=True).argsort(dim=-1)[context].gather(-1, new[..., None])[..., 0]
    shares = [_step(rank == place, 0.1) for place in (0, 1)] + [_step(rank[..., 0] == 0, 0.3)]
    return [described, *facts, *(shares if B > 1 and not facts[-1] else [None] * 3)]    # one row alone is too few draws


SAMPLE_RETURNS = ("what is returned", "'the prompt comes first, as it was'", "'prompt is unchanged afterwards'",
                  "'all tokens are in the vocabulary'", "'the same generator gives the same again'", "'the next call draws anew'",
                  "'all rows of a batch get the same tokens'", "the share of draws that take the likeliest token",
                  "the share of draws that take the second token", "the share of FIRST draws that take the likeliest token")


def _sample(step, prompt, n, temperature, generator):
    ids = prompt
    for _ in range(n):
        probabilities = (step(ids) / temperature).softmax(dim=-1)           # (B, vocab)
        ids = torch.cat([ids, torch.multinomial(probabilities, 1, generator=generator)], dim=1)
    return ids


sample = Item("sample", 2, _sample_inputs, _sample, SAMPLE_RETURNS, IN_WRITING, gradients=False, probe="draws", view=_sampled)


def _cold(answer, trial):
    """How many of B draws take a token whose logit is larger than all others by 1, at temperature 0.01."""
    B, table = len(trial["prompt"]), trial["table"]
    spread = torch.arange(table.size(-1), dtype=table.dtype).expand_as(table)
    ids = answer(lambda ids: spread[ids.sum(dim=-1) % len(spread)], trial["prompt"], 1, 0.01, torch.Generator().manual_seed(trial["generator"]))
    taken = int((ids[:, -1] == table.size(-1) - 1).sum())
    return (f"At temperature 0.01 it does not always take the likeliest token, whose logit is larger than all others by 1: "
            f"{taken} of {B} draws did. All should.")


@sample.plant("The temperature divides the probabilities, after the softmax. multinomial takes weights that need not sum to 1, so it has no effect.", _cold)
def _probabilities_divided(step, prompt, n, temperature, generator):
    return _by(lambda logits, T: logits.softmax(dim=-1) / T)(step, prompt, n, temperature, generator)


def _by(weights, read=lambda ids, prompt: ids, draw=lambda weights, g: torch.multinomial(weights, 1, generator=g)):
    """A sampler by other weights (B, vocab) of logits and temperature, of another context, or drawn in another way."""
    def answer(step, prompt, n, temperature, generator):
        ids = prompt
        for _ in range(n):
            ids = torch.cat([ids, draw(weights(step(read(ids, prompt)), temperature), generator)], dim=1)
        return ids
    return answer


def _soft(logits, T):
    return (logits / T).softmax(dim=-1)


for _name, _sentence, _answer in [
    ("temperature_multiplied", "The logits are multiplied by the temperature (or the probabilities are raised to its power). Divide the logits by it: a low temperature makes the choice sharper.",
     _by(lambda logits, T: (logits * T).softmax(dim=-1))),
    ("always_the_likeliest", "The likeliest token is taken at every temperature, which is greedy decoding. Draw from the probabilities.",
     _by(_soft, draw=lambda weights, g: weights.argmax(dim=-1, keepdim=True))),
    ("softmax_of_probabilities", "The softmax is applied twice: the probabilities are divided by the temperature and go through another softmax. Divide the LOGITS, and take one softmax.",
     _by(lambda logits, T: (logits.softmax(dim=-1) / T).softmax(dim=-1))),
    ("divided_and_softmax_again", "There is a second softmax after the first, of probabilities. One softmax, of logits / temperature.",
     _by(lambda logits, T: _soft(logits, T).softmax(dim=-1))),
    ("temperature_twice", "The temperature is applied twice, which is its square. Divide the logits by it once.", _by(lambda logits, T: _soft(logits, T * T))),
    ("drawn_uniformly", "All tokens are equally likely. Draw with the probabilities softmax(logits / temperature).",
     _by(lambda logits, T: torch.ones_like(logits))),
    ("reads_the_prompt_only", "step is always given the prompt, so the new tokens are never read. Give it ids, which grow.",
     _by(_soft, read=lambda ids, prompt: prompt)),
    ("reads_the_last_token_only", "step is given the last token alone. The model reads the whole text so far, ids.",
     _by(_soft, read=lambda ids, prompt: ids[:, -1:])),
    ("own_generator", "The generator is not used. Pass it to multinomial, generator=generator; otherwise the same seed gives a different text each time.",
     _by(_soft, draw=lambda weights, g: torch.multinomial(weights, 1, generator=torch.Generator().manual_seed(_unlike())))),
    ("seeded_at_each_draw", "The generator is seeded anew at each draw. Draw from the one that is given, and do not seed it.",
     _by(_soft, draw=lambda weights, g: torch.multinomial(weights, 1, generator=torch.Generator().manual_seed(3)))),
    ("one_draw_for_the_batch", "One token is drawn and used for every row. Each row has probabilities and a draw of its own.",
     _by(_soft, draw=lambda weights, g: torch.multinomial(weights[:1], 1, generator=g).expand(len(weights), 1))),
]:
    sample.mistake(_sentence)(type(_name, (), {"__new__": staticmethod(lambda cls, *given, answer=_answer: answer(*given))}))


@sample.mistake("Only the new tokens are returned. The result begins with the prompt: (B, t + n).")
def new_tokens_only(step, prompt, n, temperature, generator):
    return _sample(step, prompt, n, temperature, generator)[:, prompt.size(1):]


@sample.mistake("One token too few is drawn: n more, after the prompt.")
def one_token_short(step, prompt, n, temperature, generator):
    return _sample(step, prompt, n - 1, temperature, generator)


@sample.mistake("n is taken as the length of the whole text. It is the number of NEW tokens.")
def n_as_the_whole_length(step, prompt, n, temperature, generator):
    return _sample(step, prompt, max(0, n - prompt.size(1)), temperature, generator)


ITEMS = [mask_tokens, causal_lm_loss, attend_with_cache, nucleus, GPT, perplexity, sample]

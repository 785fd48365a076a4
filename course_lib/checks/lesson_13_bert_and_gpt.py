"""Exercise 13: words to hide, the loss of the next token, attention that remembers, sampling from a nucleus."""

import math

import torch

from ..models import lm
from ..models.attention import attend_with_cache as right_cache
from ..models.attention import attention
from .draw import decimal, different, sizes, whole
from .lesson_05_query_key_value import turned_by_T
from .spec import Item, normal

IN_MASKING, IN_NEXT, IN_CACHE, IN_NUCLEUS = "Words to hide", "The next token", "A cache", "The nucleus"
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
    (lambda trial, loss: loss.item() >= 0, "the loss must not be negative: it is a mean of -log p, and p is at most 1."),))


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
def perplexity(logits, ids):
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
     "the probabilities must sum to 1: what is left is divided by its sum."),))


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


ITEMS = [mask_tokens, causal_lm_loss, attend_with_cache, nucleus]

"""Exercise 03: sentences as batches, teacher forcing and its loss, greedy decoding, BLEU."""

import math
from collections import Counter

import torch

from course_lib import decoding, metrics
from course_lib.data import batches
from course_lib.models import steps
from course_lib.training import sequence_loss as right_loss

from ..judging.draw import decimal, different, sizes, telling, whole
from ..judging.spec import Item, normal

IN_BATCH, IN_FORCING = "From formula to code", "Teacher forcing"
IN_GREEDY, IN_BLEU = "Greedy decoding", "How good is a translation?"


def _sentence(generator, length, words):
    """`length` of these words, drawn at random."""
    return [words[whole(generator, 0, len(words))] for _ in range(length)]


# ---------------------------------------------------------------- pad_batch

def _pad_inputs(generator):
    def draw(lengths, pad_id):
        words = [word for word in range(1, 20) if word != pad_id]
        return {"sequences": [_sentence(generator, length, words) for length in lengths], "pad_id": pad_id}
    long, *others = sorted(different(generator, 4, 1, 8), reverse=True)
    pads = different(generator, 2, 1, 20)
    return [draw([others[0], long, *others[1:]], 0), draw([*others[1:], long, others[0]], pads[0]),
            draw([whole(generator, 2, 7)], 0), draw([whole(generator, 2, 6)] * whole(generator, 2, 5), 0),
            draw([1, long, long, others[0], 1], pads[1])]


pad_batch = Item("pad_batch", 1, _pad_inputs, batches.pad_batch, ("ids (B, n)", "lengths (B,)"), IN_BATCH,
                 free=("pad_sequence",), gradients=False)


def _padded(sequences, pad_id, left=False, width=None, cut=max):
    """ids with the padding on one side, of some width."""
    n = (width or 0) + cut(map(len, sequences))
    rows = []
    for sequence in sequences:
        room = [pad_id] * (n - len(sequence))
        rows.append((room + sequence if left else sequence + room)[:n])
    return torch.tensor(rows)


def _lengths(sequences):
    return torch.tensor([len(sequence) for sequence in sequences])


@pad_batch.mistake("The padding is on the left. Each sentence begins in column 0, and the padding follows it.")
def pads_on_the_left(sequences, pad_id):
    return _padded(sequences, pad_id, left=True), _lengths(sequences)


@pad_batch.mistake("The sentences are cut to the length of the shortest. n is the length of the LONGEST, and nothing is lost.")
def truncates_to_the_shortest(sequences, pad_id):
    return _padded(sequences, pad_id, cut=min), _lengths(sequences)


@pad_batch.mistake("The sentences and their lengths are cut to the shortest. n is the length of the LONGEST.")
def truncates_lengths_too(sequences, pad_id):
    return _padded(sequences, pad_id, cut=min), torch.full((len(sequences),), min(map(len, sequences)))


@pad_batch.mistake("The lengths include the padding. Each must be the number of real tokens, without padding.")
def lengths_include_padding(sequences, pad_id):
    ids = _padded(sequences, pad_id)
    return ids, torch.full((len(sequences),), ids.size(1))


@pad_batch.mistake("The empty places are filled with 0 whatever pad_id is. Fill them with pad_id.")
def pads_with_zero(sequences, pad_id):
    return _padded(sequences, 0), _lengths(sequences)


@pad_batch.mistake("Only ids is returned. The lengths are needed as well: return ids, lengths.")
def only_ids(sequences, pad_id):
    return _padded(sequences, pad_id)


@pad_batch.mistake("The two results are swapped: ids come first, lengths second.")
def results_in_wrong_order(sequences, pad_id):
    return _lengths(sequences), _padded(sequences, pad_id)


@pad_batch.mistake("The lengths are a list. Return them as a tensor of shape (B,).")
def lengths_as_list(sequences, pad_id):
    return _padded(sequences, pad_id), [len(sequence) for sequence in sequences]


@pad_batch.mistake("ids is a list of lists. Return one tensor of shape (B, n).")
def ids_as_lists(sequences, pad_id):
    return _padded(sequences, pad_id).tolist(), _lengths(sequences)


@pad_batch.mistake("ids holds floats. Token ids are whole numbers: use torch.full(size, pad_id) or dtype=torch.long.")
def ids_as_floats(sequences, pad_id):
    return _padded(sequences, pad_id).float(), _lengths(sequences)


@pad_batch.mistake("Rows and columns are swapped: ids is (B, n), with one sentence per row.")
def time_first(sequences, pad_id):
    return _padded(sequences, pad_id).T, _lengths(sequences)


@pad_batch.mistake("There is one column too many: n is the length of the longest sentence.")
def one_column_too_many(sequences, pad_id):
    return _padded(sequences, pad_id, width=1), _lengths(sequences)


@pad_batch.mistake("The sentences are sorted by length. Row b must hold sentence b.")
def sorted_by_length(sequences, pad_id):
    ordered = sorted(sequences, key=len, reverse=True)
    return _padded(ordered, pad_id), _lengths(ordered)


@pad_batch.mistake("The sequences passed in are lengthened in place. Copy each one before you pad it: the caller still needs them.")
def lengthens_its_inputs(sequences, pad_id):
    lengths, n = _lengths(sequences), max(map(len, sequences))
    for sequence in sequences:
        sequence.extend([pad_id] * (n - len(sequence)))
    return torch.tensor(sequences), lengths


# ---------------------------------------------------------------- teacher_forcing

def _forcing_inputs(generator):
    def draw(lengths, bos_id=1, eos_id=2, pad_id=0):
        words = [word for word in range(20) if word not in (bos_id, eos_id, pad_id)]
        ids, _ = batches.pad_batch([_sentence(generator, length, words) for length in lengths], pad_id)
        return {"ids": ids, "bos_id": bos_id, "eos_id": eos_id, "pad_id": pad_id}
    long, *others = sorted(different(generator, 3, 2, 8), reverse=True)
    bos_id, pad_id = different(generator, 2, 3, 20)
    return [draw([long, *others]), draw([whole(generator, 3, 8)]),
            draw([others[1], long, 1, others[0]], bos_id=bos_id, eos_id=0, pad_id=pad_id),
            draw([whole(generator, 2, 6)] * whole(generator, 2, 5)), draw([1, others[0]])]


teacher_forcing = Item("teacher_forcing", 2, _forcing_inputs, batches.teacher_forcing,
                       ("inputs (B, n + 1)", "targets (B, n + 1)"), IN_FORCING, gradients=False)


def _column(ids, value):
    return ids.new_full((len(ids), 1), value)


def _with_eos(ids, eos_id, pad_id):
    """The targets: ids, and eos_id straight after the last word."""
    targets = torch.cat([ids, _column(ids, pad_id)], dim=1)
    targets[torch.arange(len(ids)), (ids != pad_id).sum(dim=1)] = eos_id
    return targets


@teacher_forcing.mistake("The inputs are not shifted, so the decoder sees the token that it must predict. Inputs begin with <bos>: token i is predicted from the tokens BEFORE it.")
def not_shifted(ids, bos_id, eos_id, pad_id):
    return torch.cat([ids, _column(ids, pad_id)], dim=1), _with_eos(ids, eos_id, pad_id)


@teacher_forcing.mistake("Inputs and targets are the same. The inputs begin with <bos>, one step behind; the targets end with <eos>.")
def the_same_twice(ids, bos_id, eos_id, pad_id):
    return _with_eos(ids, eos_id, pad_id), _with_eos(ids, eos_id, pad_id)


@teacher_forcing.mistake("The shift goes the wrong way, or the results are swapped: the decoder is given token i + 1 and must predict token i. <bos> comes before the INPUTS, <eos> ends the TARGETS.")
def shifted_the_wrong_way(ids, bos_id, eos_id, pad_id):
    return _with_eos(ids, eos_id, pad_id), torch.cat([_column(ids, bos_id), ids], dim=1)


@teacher_forcing.mistake("<eos> comes after the padding. It belongs directly after the last real token of each sentence.")
def eos_after_the_padding(ids, bos_id, eos_id, pad_id):
    return torch.cat([_column(ids, bos_id), ids], dim=1), torch.cat([ids, _column(ids, eos_id)], dim=1)


@teacher_forcing.mistake("<eos> is missing in the targets, so the decoder would never learn to stop.")
def eos_missing(ids, bos_id, eos_id, pad_id):
    return torch.cat([_column(ids, bos_id), ids], dim=1), torch.cat([ids, _column(ids, pad_id)], dim=1)


@teacher_forcing.mistake("<eos> is missing and the last column is cut off. Both results are (B, n + 1), one column wider than ids.")
def cut_without_eos(ids, bos_id, eos_id, pad_id):
    return torch.cat([_column(ids, bos_id), ids], dim=1)[:, :-1], ids.clone()


@teacher_forcing.mistake("The first token is never a target. <bos> goes before ids and does not replace the shift: both results are (B, n + 1).")
def first_word_lost(ids, bos_id, eos_id, pad_id):
    return ids.clone(), _with_eos(ids[:, 1:], eos_id, pad_id)


@teacher_forcing.mistake("ids is shifted against itself, without <bos> and <eos>, so the first token is never a target and the end is never learned. Put <bos> before the inputs and <eos> after the targets, both (B, n + 1).")
def shifted_without_bos_and_eos(ids, bos_id, eos_id, pad_id):
    return ids[:, :-1].clone(), ids[:, 1:].clone()


@teacher_forcing.mistake("Every padded place holds <eos>. Only the first place after the last token does; the rest stay padding.")
def eos_everywhere(ids, bos_id, eos_id, pad_id):
    targets = torch.cat([ids, _column(ids, pad_id)], dim=1)
    return torch.cat([_column(ids, bos_id), ids], dim=1), targets.masked_fill(targets == pad_id, eos_id)


@teacher_forcing.mistake("Shorter sentences have <eos> in their inputs. Nothing follows <eos>, so the decoder is never given it: the inputs are <bos> and then ids as they are.")
def eos_in_inputs(ids, bos_id, eos_id, pad_id):
    whole = torch.cat([_column(ids, bos_id), _with_eos(ids, eos_id, pad_id)], dim=1)
    return whole[:, :-1], whole[:, 1:]


@teacher_forcing.mistake("<eos> overwrites the last token. It belongs AFTER it, in the place that the extra column provides.")
def eos_overwrites_the_last_word(ids, bos_id, eos_id, pad_id):
    targets = torch.cat([ids, _column(ids, pad_id)], dim=1)
    targets[torch.arange(len(ids)), (ids != pad_id).sum(dim=1) - 1] = eos_id
    return torch.cat([_column(ids, bos_id), ids], dim=1), targets


@teacher_forcing.mistake("<bos> and <eos> are swapped.")
def bos_and_eos_swapped(ids, bos_id, eos_id, pad_id):
    return torch.cat([_column(ids, eos_id), ids], dim=1), _with_eos(ids, bos_id, pad_id)


@teacher_forcing.mistake("<bos> is missing: the inputs begin with padding, so the first token is predicted from nothing.")
def padding_for_bos(ids, bos_id, eos_id, pad_id):
    return torch.cat([_column(ids, pad_id), ids], dim=1), _with_eos(ids, eos_id, pad_id)


@teacher_forcing.mistake("The targets contain <bos>. They begin with the first token of the sentence.")
def bos_in_targets(ids, bos_id, eos_id, pad_id):
    inputs = torch.cat([_column(ids, bos_id), ids], dim=1)
    return inputs, _with_eos(inputs, eos_id, pad_id)


@teacher_forcing.mistake("The targets are the inputs, <bos> included. They begin with the first token and have <eos> after the last one.")
def targets_are_the_inputs(ids, bos_id, eos_id, pad_id):
    inputs = torch.cat([_column(ids, bos_id), ids], dim=1)
    return inputs, inputs.clone()


@teacher_forcing.mistake("ids is returned twice. The inputs are <bos> and ids, the targets ids and <eos>, so both are (B, n + 1).")
def ids_twice(ids, bos_id, eos_id, pad_id):
    return ids.clone(), ids.clone()


@teacher_forcing.mistake("pad_id is not used: tokens are counted where ids is not 0. The padding is pad_id, whatever its number is.")
def pad_id_taken_as_0(ids, bos_id, eos_id, pad_id):
    return torch.cat([_column(ids, bos_id), ids], dim=1), _with_eos(ids, eos_id, 0)


# ---------------------------------------------------------------- sequence_loss

def _loss_inputs(generator):
    def draw(lengths, vocab, pad_id, dtype=torch.float32):
        words = [word for word in range(vocab) if word != pad_id]
        targets, _ = batches.pad_batch([_sentence(generator, length, words) for length in lengths], pad_id)
        return {"logits": normal(generator, *targets.shape, vocab, scale=1.5, dtype=dtype), "targets": targets,
                "pad_id": pad_id}
    a, b, c = different(generator, 3, 2, 7)
    vocab, equal = different(generator, 4, 4, 10), whole(generator, 3, 6)
    return [draw([max(a, b) + 1, a, b], vocab[0], 0), draw([1, c], vocab[1], whole(generator, 1, 4), torch.float64),
            draw([whole(generator, 3, 7)], vocab[2], 0), draw([c, c, c - 1, 1], vocab[3], whole(generator, 1, 4)),
            draw([equal] * equal, equal, whole(generator, 1, 3))]


sequence_loss = Item("sequence_loss", 2, _loss_inputs, right_loss, ("loss, one number", ), IN_FORCING,
                     free=("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"),
                     properties=((lambda trial, loss: loss.item() >= 0,
                                  "The loss must not be negative: it is a mean of -log p, and p is at most 1."),))


def _surprise(logits, targets, dim=-1):
    """-log p(right word) at every place, (B, n)."""
    return -logits.log_softmax(dim=dim).gather(-1, targets[..., None])[..., 0]


@sequence_loss.mistake("Padding is counted as if it were real tokens. Leave out the places where targets == pad_id.")
def counts_padding(logits, targets, pad_id):
    return _surprise(logits, targets).mean()


@sequence_loss.mistake("The sum leaves out the padding, but it is divided by all B * n places. Divide by the number of real tokens.")
def divides_by_all_places(logits, targets, pad_id):
    return (_surprise(logits, targets) * (targets != pad_id)).sum() / targets.numel()


@sequence_loss.mistake("This is the mean of each sentence's mean, so a token of a short sentence counts for more. Take one mean over all real tokens of the batch.")
def mean_of_means(logits, targets, pad_id):
    real = targets != pad_id
    return ((_surprise(logits, targets) * real).sum(dim=1) / real.sum(dim=1)).mean()


@sequence_loss.mistake("This is the sum. Divide it by the number of real tokens.")
def the_sum(logits, targets, pad_id):
    return _surprise(logits, targets)[targets != pad_id].sum()


@sequence_loss.mistake("This sums over the tokens of a sentence and averages over the sentences. Divide by the number of real tokens instead.")
def divides_by_sentences(logits, targets, pad_id):
    return _surprise(logits, targets)[targets != pad_id].sum() / len(targets)


@sequence_loss.mistake("The softmax is applied twice: F.cross_entropy and log_softmax expect logits, not probabilities.")
def softmax_twice(logits, targets, pad_id):
    return _surprise(logits.softmax(dim=-1), targets)[targets != pad_id].mean()


@sequence_loss.mistake("The softmax is missing: logits are not log-probabilities yet. Take log_softmax over the vocabulary.")
def no_softmax(logits, targets, pad_id):
    return _surprise(logits, targets)[targets != pad_id].mean() * 0 - logits.gather(
        -1, targets[..., None])[..., 0][targets != pad_id].mean()


@sequence_loss.mistake("The softmax is taken over the batch (dim=0). It belongs over the vocabulary, the last axis.")
def softmax_over_the_batch(logits, targets, pad_id):
    return _surprise(logits, targets, dim=0)[targets != pad_id].mean()


@sequence_loss.mistake("The softmax is taken over the positions. It belongs over the vocabulary, the last axis.")
def softmax_over_positions(logits, targets, pad_id):
    return _surprise(logits, targets, dim=1)[targets != pad_id].mean()


@sequence_loss.mistake("The sign is wrong: the loss is the mean of MINUS log p.")
def sign_turned(logits, targets, pad_id):
    return -_surprise(logits, targets)[targets != pad_id].mean()


@sequence_loss.mistake("The logarithm is missing: this is minus the mean probability.")
def no_logarithm(logits, targets, pad_id):
    return -torch.exp(-_surprise(logits, targets))[targets != pad_id].mean()


@sequence_loss.mistake("The mask is inverted: this uses the padded places. The real tokens are where targets != pad_id.")
def only_padding(logits, targets, pad_id):
    return _surprise(logits, targets)[targets == pad_id].mean()


@sequence_loss.mistake("The places with id 0 are left out. The padding is pad_id, whatever its number is.")
def padding_is_zero(logits, targets, pad_id):
    return _surprise(logits, targets)[targets != 0].mean()


@sequence_loss.mistake("This is one loss for each place, (B, n). Take the mean over the real tokens.")
def not_reduced(logits, targets, pad_id):
    return _surprise(logits, targets) * (targets != pad_id)


@sequence_loss.mistake("This is one loss for each real token. Take their mean.")
def not_averaged(logits, targets, pad_id):
    return _surprise(logits, targets)[targets != pad_id]


@sequence_loss.mistake("This is a Python number, so no gradient can flow. Leave out .item() and return the tensor.")
def python_number(logits, targets, pad_id):
    return right_loss(logits, targets, pad_id).item()


# ---------------------------------------------------------------- greedy_decode

def _greedy_inputs(generator):
    def draw(max_len, end, dtype=torch.float32, zero=None):
        """A model that says <eos> after `end` words, or never if end is None, and token 0 as word `zero`."""
        vocab = whole(generator, 6, 13)
        bos_id, eos_id = different(generator, 2, 1, vocab)
        table = normal(generator, max_len + 3, vocab, vocab, dtype=dtype)
        table[..., [bos_id, eos_id]] -= 20.0                           # neither comes on the way
        if end is not None:
            table[end, :, eos_id] += 40.0
        if zero is not None:
            table[zero, :, 0] += 40.0
        return {"table": table, "bos_id": bos_id, "eos_id": eos_id, "max_len": max_len}
    end, most = whole(generator, 3, 6), whole(generator, 4, 8)
    return [draw(end + whole(generator, 2, 5), end), draw(most, None), draw(whole(generator, 4, 7), 0),
            draw(most, most, torch.float64), draw(end + whole(generator, 2, 6), end, zero=whole(generator, 1, end)),
            draw(1, 1), draw(end + 2, end - 1)]


greedy_decode = Item("greedy_decode", 2, _greedy_inputs, decoding.greedy_decode, ("words, a list of ints",), IN_GREEDY,
                     gradients=False, probe="decode")


def _greedy(step, state, bos_id, eos_id, max_len, carry=True, feed=True, stop=True):
    """The words as decoded, <eos> among them; the mistakes below change one thing of it each."""
    token, words = bos_id, []
    for _ in range(max_len):
        logits, new = step(token if feed else bos_id, state)
        state, token = new if carry else state, int(logits.argmax())
        words.append(token)
        if stop and token == eos_id:
            break
    return words


def _without(words, eos_id):
    return words[:words.index(eos_id)] if eos_id in words else words


@greedy_decode.mistake("The result contains <eos>. Leave it out: it is a signal, not a word.")
def keeps_eos(*inputs):
    return _greedy(*inputs)


@greedy_decode.mistake("The result contains <bos>. Leave it out: it is only the first step's input.")
def keeps_bos(step, state, bos_id, eos_id, max_len):
    return [bos_id, *_without(_greedy(step, state, bos_id, eos_id, max_len), eos_id)]


@greedy_decode.mistake("The result contains <bos> and <eos>. Leave both out.")
def keeps_both(step, state, bos_id, eos_id, max_len):
    return [bos_id, *_greedy(step, state, bos_id, eos_id, max_len)]


@greedy_decode.mistake("The state is not carried forward. Give each step the state that the last one returned.")
def state_not_carried(step, state, bos_id, eos_id, max_len):
    return _without(_greedy(step, state, bos_id, eos_id, max_len, carry=False), eos_id)


@greedy_decode.mistake("Every step is given <bos>. Give it the token that was chosen last.")
def word_not_fed_back(step, state, bos_id, eos_id, max_len):
    return _without(_greedy(step, state, bos_id, eos_id, max_len, feed=False), eos_id)


@greedy_decode.mistake("Decoding does not stop at <eos>: it goes on to max_len.")
def never_stops(*inputs):
    return _greedy(*inputs, stop=False)


@greedy_decode.mistake("Decoding does not stop at <eos>: it leaves it out and goes on to max_len.")
def skips_eos(step, state, bos_id, eos_id, max_len):
    return [word for word in _greedy(step, state, bos_id, eos_id, max_len, stop=False) if word != eos_id]


@greedy_decode.mistake("Decoding never ends if no <eos> comes. Stop after max_len tokens, too.")
def never_stops_without_eos(step, state, bos_id, eos_id, max_len):
    words = []
    logits, state = step(bos_id, state)
    while (token := int(logits.argmax())) != eos_id:
        words.append(token)
        logits, state = step(token, state)
    return words


@greedy_decode.mistake("The loop never ends. Leave it at <eos>, and after max_len tokens.")
def never_ends(step, state, bos_id, eos_id, max_len):
    token = bos_id
    while True:
        logits, state = step(token, state)
        token = int(logits.argmax())


@greedy_decode.mistake("Decoding stops one token late: max_len tokens at most.")
def stops_one_late(step, state, bos_id, eos_id, max_len):
    return _without(_greedy(step, state, bos_id, eos_id, max_len + 1), eos_id)


@greedy_decode.mistake("The last token is lost when max_len ends the sentence. max_len tokens may come, not counting <bos>, and the last one is removed only if it is <eos>.")
def stops_one_early(step, state, bos_id, eos_id, max_len):
    return _without(_greedy(step, state, bos_id, eos_id, max_len - 1), eos_id)


@greedy_decode.mistake("The tokens are tensors. Convert each to an int, with int(...) or .item().")
def words_are_tensors(*inputs):
    return [torch.tensor(word) for word in decoding.greedy_decode(*inputs)]


@greedy_decode.mistake("The result is a tensor. Return a list of ints.")
def result_is_a_tensor(*inputs):
    return torch.tensor(decoding.greedy_decode(*inputs), dtype=torch.long)


@greedy_decode.mistake("Only the last token is returned. Collect all of them in a list.")
def only_the_last_word(*inputs):
    return decoding.greedy_decode(*inputs)[-1:]


@greedy_decode.mistake("This takes the LEAST likely token. Use argmax, not argmin.")
def least_likely(step, state, bos_id, eos_id, max_len):
    def turned(token, state):
        logits, state = step(token, state)
        return -logits, state
    return decoding.greedy_decode(turned, state, bos_id, eos_id, max_len)


@greedy_decode.mistake("bos_id and eos_id are not used: 1 and 2 are fixed in their place.")
def bos_and_eos_fixed(step, state, bos_id, eos_id, max_len):
    return decoding.greedy_decode(step, state, 1, 2, max_len)


@greedy_decode.mistake("Token 0 is never chosen: the argmax starts from token 1. Any token of the vocabulary may come.")
def never_token_0(step, state, bos_id, eos_id, max_len):
    def without_0(token, state):
        logits, state = step(token, state)
        return torch.cat([torch.full_like(logits[:1], -math.inf), logits[1:]]), state
    return decoding.greedy_decode(without_0, state, bos_id, eos_id, max_len)


@greedy_decode.mistake("Decoding stops at token 0, which is a token like any other: `if not token` is True for 0. Compare with eos_id.")
def stops_at_token_0(step, state, bos_id, eos_id, max_len):
    return _without(decoding.greedy_decode(step, state, bos_id, eos_id, max_len), 0)


@greedy_decode.mistake("Token 0 is left out of the result, but it is a token like any other. Leave out only <bos> and <eos>.")
def token_0_left_out(step, state, bos_id, eos_id, max_len):
    return [word for word in decoding.greedy_decode(step, state, bos_id, eos_id, max_len) if word]


# ---------------------------------------------------------------- bleu

def _bleu_inputs(generator):
    def damaged(reference, words):
        """The reference with a word doubled, dropped or exchanged: some runs of four words stay."""
        at, kind = whole(generator, 0, 3), whole(generator, 0, 3)
        changed = {0: [reference[at]] * 2, 1: [], 2: _sentence(generator, 1, words)}[kind]
        return reference[:at] + changed + reference[at + 1:]

    def draw(lengths, max_n, words="abcdefgh", shorter=0):
        """shorter: words missing at the end of every candidate."""
        references = [_sentence(generator, length, words) for length in lengths]
        candidates = [damaged(reference, words) for reference in references]
        candidates = [candidate[:len(candidate) - shorter] for candidate in candidates]
        return {"candidates": candidates, "references": references, "max_n": max_n}

    def different_letters(count):
        return ["abcdefgh"[number] for number in different(generator, count, 0, 8)]

    def trials():
        longer = draw(different(generator, 3, 8, 12), 4)
        longer["candidates"] = [[*sentence, *sentence[:2]] for sentence in longer["candidates"]]
        a, b, c, d = different_letters(4)
        repeated = {"candidates": [[*[a] * whole(generator, 3, 6), b], [a, b, c, a, b, c, a]],
                    "references": [[a, a, b, c, a, d], [a, b, c, a, d, b, c]], "max_n": 2}
        uneven = draw(different(generator, 3, 9, 15), 4)             # one too short, one too long
        short, usual, long = uneven["references"]
        uneven["candidates"] = [short[:whole(generator, 6, 8)], usual + different_letters(2), long[1:] + long[:1]]
        some = different_letters(whole(generator, 3, 6))
        no_match = {"candidates": [some], "references": [[*some[::-1], *different_letters(1)]], "max_n": 2}
        return [draw(different(generator, 4, 9, 14), 4, shorter=2), longer, repeated, uneven,
                draw([whole(generator, 10, 14)], 3, shorter=1), no_match]
    return telling(bleu, trials)


bleu = Item("bleu", 3, _bleu_inputs, metrics.bleu, ("BLEU, 0 to 100",), IN_BLEU,
            free=("sacrebleu", "nltk", "torchmetrics", "torchtext"), gradients=False)


def _runs(tokens, n):
    return Counter(tuple(tokens[i:i + n]) for i in range(len(tokens) - n + 1))


def _clipped(candidate, reference, n):
    return (_runs(candidate, n) & _runs(reference, n)).total(), _runs(candidate, n).total()


def _geometric(precisions):
    return math.exp(sum(map(math.log, precisions)) / len(precisions)) if all(precisions) else 0.0


def _penalty(candidates, references):
    return min(1.0, math.exp(1 - sum(map(len, references)) / sum(map(len, candidates))))


def _score(candidates, references, max_n, count=_clipped, mean=_geometric, brevity=_penalty):
    """BLEU with its counting, its mean or its penalty exchanged."""
    precisions = []
    for n in range(1, max_n + 1):
        counts = [count(c, r, n) for c, r in zip(candidates, references, strict=True)]
        precisions.append(sum(matches for matches, _ in counts) / max(1, sum(total for _, total in counts)))
    return 100 * brevity(candidates, references) * mean(precisions)


@bleu.mistake("The matches are not clipped. An n-gram may match only as often as it occurs in the REFERENCE.")
def no_clipping(candidates, references, max_n=4):
    def count(c, r, n):
        return sum(times for run, times in _runs(c, n).items() if run in _runs(r, n)), _runs(c, n).total()
    return _score(candidates, references, max_n, count=count)


@bleu.mistake("The last n-gram of every sentence is left out. A sentence of L tokens has L - n + 1 n-grams.")
def last_run_left_out(candidates, references, max_n=4):
    def count(c, r, n):
        return _clipped(c[:-1], r[:-1], n)
    return _score(candidates, references, max_n, count=count)


@bleu.mistake("Matches are not clipped, and short candidates are not penalised. An n-gram may match only as often as it occurs in the REFERENCE, and the factor exp(1 - r / c) is missing.")
def no_clipping_and_no_penalty(candidates, references, max_n=4):
    def count(c, r, n):
        return sum(times for run, times in _runs(c, n).items() if run in _runs(r, n)), _runs(c, n).total()
    return _score(candidates, references, max_n, count=count, brevity=lambda c, r: 1.0)


@bleu.mistake("The brevity penalty is missing or always 1. Where the candidates' total length c is below the references' r, both in TOKENS, the penalty is exp(1 - r / c).")
def no_brevity_penalty(candidates, references, max_n=4):
    return _score(candidates, references, max_n, brevity=lambda c, r: 1.0)


@bleu.mistake("This is the mean of every sentence's BLEU. Count matches and totals over the whole corpus first.")
def mean_of_sentences(candidates, references, max_n=4):
    scores = [_score([c], [r], max_n) for c, r in zip(candidates, references, strict=True)]
    return sum(scores) / len(scores)


@bleu.mistake("The precisions are averaged arithmetically. BLEU takes their geometric mean, which is 0 as soon as one of them is 0.")
def arithmetic_mean(candidates, references, max_n=4):
    return _score(candidates, references, max_n, mean=lambda p: sum(p) / len(p))


@bleu.mistake("The brevity penalty is computed sentence by sentence. Compare the total lengths of the corpus once.")
def brevity_by_sentence(candidates, references, max_n=4):
    def brevity(cs, rs):
        return sum(_penalty([c], [r]) for c, r in zip(cs, rs, strict=True)) / len(cs)
    return _score(candidates, references, max_n, brevity=brevity)


@bleu.mistake("The reference length is summed over the short sentences only. Compare the total lengths of the corpus once.")
def shortfalls_only(candidates, references, max_n=4):
    def brevity(cs, rs):
        wanted = sum(max(len(c), len(r)) for c, r in zip(cs, rs, strict=True))
        return math.exp(1 - wanted / sum(map(len, cs)))
    return _score(candidates, references, max_n, brevity=brevity)


@bleu.mistake("Candidates that are too long are rewarded. The penalty is at most 1: min(1, exp(1 - r / c)).")
def rewards_length(candidates, references, max_n=4):
    return _score(candidates, references, max_n,
                  brevity=lambda c, r: math.exp(1 - sum(map(len, r)) / sum(map(len, c))))


@bleu.mistake("The brevity penalty is the wrong way round. It is exp(1 - r / c), where r is the references' length and c the candidates'.")
def brevity_turned(candidates, references, max_n=4):
    return _score(candidates, references, max_n, brevity=lambda c, r: _penalty(r, c))


@bleu.mistake("The brevity penalty is the ratio c / r itself. It should be exp(1 - r / c).")
def plain_ratio(candidates, references, max_n=4):
    return _score(candidates, references, max_n,
                  brevity=lambda c, r: min(1.0, sum(map(len, c)) / sum(map(len, r))))


@bleu.mistake("The matches are divided by the number of n-grams in the reference, which is recall. Precision divides by those of the candidate.")
def recall(candidates, references, max_n=4):
    return _score(candidates, references, max_n, count=lambda c, r, n: (_clipped(c, r, n)[0], _runs(r, n).total()))


@bleu.mistake("Each n-gram is counted once however often it occurs. Count with a Counter, not with a set.")
def runs_as_sets(candidates, references, max_n=4):
    return _score(candidates, references, max_n,
                  count=lambda c, r, n: (len(_runs(c, n).keys() & _runs(r, n).keys()), len(_runs(c, n))))


@bleu.mistake("Only the longest n-grams count. Take the geometric mean over n = 1 ... max_n.")
def only_the_longest_runs(candidates, references, max_n=4):
    return _score(candidates, references, max_n, mean=lambda p: p[-1])


@bleu.mistake("Only single words are counted, n = 1. The n-grams of 2 ... max_n words belong in the mean too.")
def only_words(candidates, references, max_n=4):
    return _score(candidates, references, max_n, mean=lambda p: p[0])


@bleu.mistake("The n-grams end at max_n - 1. range(1, max_n + 1) counts up to max_n.")
def one_order_too_few(candidates, references, max_n=4):
    return _score(candidates, references, max_n, mean=lambda p: _geometric(p[:-1]))


@bleu.mistake("max_n is ignored: the n-grams always go up to 4.")
def always_four(candidates, references, max_n=4):
    return _score(candidates, references, 4)


@bleu.mistake("The precisions are multiplied. Their geometric mean is the max_n-th root of that product.")
def root_left_out(candidates, references, max_n=4):
    return _score(candidates, references, max_n, mean=math.prod)


@bleu.mistake("The result runs from 0 to 1. Multiply it by 100.")
def not_times_100(candidates, references, max_n=4):
    return _score(candidates, references, max_n) / 100


@bleu.mistake("One is added to matches and totals (smoothing). Here BLEU is computed without smoothing.")
def smoothed(candidates, references, max_n=4):
    precisions = []
    for n in range(1, max_n + 1):
        counts = [_clipped(c, r, n) for c, r in zip(candidates, references, strict=True)]
        plus = n > 1
        precisions.append((sum(m for m, _ in counts) + plus) / (sum(t for _, t in counts) + plus))
    return 100 * _penalty(candidates, references) * _geometric(precisions)


@bleu.mistake("Each sentence's precision is computed and then averaged. Add up matches and totals over the corpus first.")
def mean_of_precisions(candidates, references, max_n=4):
    precisions = []
    for n in range(1, max_n + 1):
        counts = [_clipped(c, r, n) for c, r in zip(candidates, references, strict=True)]
        precisions.append(sum(m / max(1, t) for m, t in counts) / len(counts))
    return 100 * _penalty(candidates, references) * _geometric(precisions)


# ---------------------------------------------------------------- seq2seq_logits

def _logits_inputs(generator):
    def cell(vocab, d_h, dtype):
        return {"function": "step", "W": normal(generator, vocab, d_h, scale=0.8, dtype=dtype), "U": normal(generator, d_h, d_h, scale=0.4, dtype=dtype)}

    def draw(B, m, n, d_h, dtype=torch.float32):
        words, vocab = different(generator, 2, 5, 12)
        lengths = torch.randint(1, m, (B,), generator=generator)
        if B > 2:
            lengths[0], lengths[1] = m - 2, m
        return {"source": torch.randint(words, (B, m), generator=generator), "lengths": lengths,
                "target_inputs": torch.randint(vocab, (B, n), generator=generator), "encoder": cell(words, d_h, dtype),
                "decoder": cell(vocab, d_h, dtype), "W_out": normal(generator, d_h, vocab, dtype=dtype)}
    usual, other, one, equal = sizes(generator, 4, low=3)
    return [draw(*usual), draw(*other, torch.float64), draw(*one), draw(*equal)]


seq2seq_logits = Item("seq2seq_logits", 3, _logits_inputs, steps.seq2seq_logits, ("logits (B, n, vocab)",), IN_FORCING,
                      probe="functions", kind="transfer")


def _encoded(source, lengths, encoder, W_out, last=False):
    h, states = W_out.new_zeros(len(source), W_out.size(0)), []
    for x_t in source.unbind(dim=1):
        h = encoder(x_t, h)
        states.append(h)
    return h if last else torch.stack(states, dim=1)[torch.arange(len(source)), lengths - 1]


def _decoded(h, target_inputs, decoder, W_out):
    logits = []
    for y_t in target_inputs.unbind(dim=1):
        h = decoder(y_t, h)
        logits.append(h @ W_out)
    return torch.stack(logits, dim=1)


@seq2seq_logits.mistake("The decoder starts from the state after the padding. It should start from the state after each sentence's last real token.")
def state_after_the_padding(source, lengths, target_inputs, encoder, decoder, W_out):
    return _decoded(_encoded(source, lengths, encoder, W_out, last=True), target_inputs, decoder, W_out)


@seq2seq_logits.mistake("The decoder's state is not carried on: every step starts from the encoder's state. Each step continues from the state of the one before.")
def decoder_not_carried(source, lengths, target_inputs, encoder, decoder, W_out):
    c = _encoded(source, lengths, encoder, W_out)
    return torch.stack([decoder(y_t, c) @ W_out for y_t in target_inputs.unbind(dim=1)], dim=1)


@seq2seq_logits.mistake("The logits are those of the state before each step, so the token just read does not count. Take the step first, then multiply its new state by W_out.")
def logits_before_the_step(source, lengths, target_inputs, encoder, decoder, W_out):
    h, logits = _encoded(source, lengths, encoder, W_out), []
    for y_t in target_inputs.unbind(dim=1):
        logits.append(h @ W_out)
        h = decoder(y_t, h)
    return torch.stack(logits, dim=1)


@seq2seq_logits.mistake("The source is read backwards, from its last real token. Read it in order.")
def source_reversed(source, lengths, target_inputs, encoder, decoder, W_out):
    places = (lengths[:, None] - 1 - torch.arange(source.size(1))).clamp(min=0)
    return _decoded(_encoded(source.gather(1, places), lengths, encoder, W_out), target_inputs, decoder, W_out)


@seq2seq_logits.mistake("The encoder's state is added to the decoder's at every step. It only starts the decoder.")
def context_added_at_every_step(source, lengths, target_inputs, encoder, decoder, W_out):
    c = _encoded(source, lengths, encoder, W_out)
    s, logits = torch.zeros_like(c), []
    for y_t in target_inputs.unbind(dim=1):
        s = decoder(y_t, s + c)
        logits.append(s @ W_out)
    return torch.stack(logits, dim=1)


@seq2seq_logits.mistake("The decoder starts from zeros, so it knows nothing of the source. It should start from the encoder's state after the last real token.")
def decoder_from_zeros(source, lengths, target_inputs, encoder, decoder, W_out):
    return _decoded(W_out.new_zeros(len(source), W_out.size(0)), target_inputs, decoder, W_out)


@seq2seq_logits.mistake("The decoder reads its own most likely tokens. With teacher forcing it reads the right ones, those of target_inputs.")
def reads_its_own_words(source, lengths, target_inputs, encoder, decoder, W_out):
    h, y_t, logits = _encoded(source, lengths, encoder, W_out), target_inputs[:, 0], []
    for _ in range(target_inputs.size(1)):
        h = decoder(y_t, h)
        logits.append(h @ W_out)
        y_t = logits[-1].argmax(dim=-1)
    return torch.stack(logits, dim=1)


@seq2seq_logits.mistake("One token too many of each source sentence is read, a padding token. With t from 0, the real tokens are those with t < length.")
def one_padding_token_read(source, lengths, target_inputs, encoder, decoder, W_out):
    last = (lengths + 1).clamp(max=source.size(1))
    return _decoded(_encoded(source, last, encoder, W_out), target_inputs, decoder, W_out)


@seq2seq_logits.mistake("The state of a sentence becomes zero where its padding begins, so the decoder knows nothing of it. Past the end a state stays as it is.")
def zeros_past_the_source(source, lengths, target_inputs, encoder, decoder, W_out):
    h = _encoded(source, lengths, encoder, W_out) * (lengths == source.size(1))[:, None]
    return _decoded(h, target_inputs, decoder, W_out)


@seq2seq_logits.mistake("One token too few of each source sentence is read. With t from 0, the real tokens are those with t < length.")
def last_source_word_missing(source, lengths, target_inputs, encoder, decoder, W_out):
    h = W_out.new_zeros(len(source), W_out.size(0))
    for t in range(source.size(1)):
        h = torch.where((t < lengths - 1)[:, None], encoder(source[:, t], h), h)
    return _decoded(h, target_inputs, decoder, W_out)


@seq2seq_logits.mistake("The softmax is applied to the logits. Return the logits themselves; the loss takes the softmax.")
def probabilities(*given):
    return steps.seq2seq_logits(*given).softmax(dim=-1)


@seq2seq_logits.mistake("Only the logits of the last step are returned. Return those of all n steps, (B, n, vocab).")
def last_step_only(*given):
    return steps.seq2seq_logits(*given)[:, -1]


# ---------------------------------------------------------------- training_step

def _training_inputs(generator):
    def batch(B, m, n, words, vocab, pad_id):
        bos, eos, *others = [number for number in range(vocab) if number != pad_id]
        rows = []
        for number in range(B):
            length = n if number == 0 else whole(generator, 1, n)
            rows.append([bos, *(others[whole(generator, 0, len(others))] for _ in range(length)), eos] + [pad_id] * (n - length))
        return [torch.randint(words, (B, m), generator=generator), torch.tensor(rows)]

    def draw(B, m, n, pad_id, dtype=torch.float32):
        words, vocab = different(generator, 2, 6, 11)
        return {"batches": [batch(B, m, n, words, vocab, pad_id) for _ in range(2)], "pad_id": pad_id, "rate": decimal(generator, 0.5, 1.0),
                "E": normal(generator, vocab, vocab, dtype=dtype), "S": normal(generator, words, vocab, dtype=dtype)}
    sizes_ = [different(generator, 3, 2, 7) for _ in range(3)]
    return [draw(*sizes_[0], 0), draw(*sizes_[1], 2), draw(*sizes_[2], 0, torch.float64), draw(*[whole(generator, 3, 5)] * 3, whole(generator, 1, 4))]


training_step = Item("training_step", 2, _training_inputs, steps.training_step,
                     ("the loss of the first batch", "the loss of the second batch", "a table of the model after both steps",
                      "another table of the model after both steps"), IN_FORCING, gradients=False, probe="trained")


def _trained(model, optimizer, source, target, pad_id, inputs=slice(None, -1), targets=slice(1, None), before=(), reduction="mean", ignore=True,
             order=("zero", "backward", "step")):
    """training_step with other inputs, targets or another order."""
    logits = model(source, target[:, inputs])
    loss = torch.nn.functional.cross_entropy(logits.transpose(1, 2), target[:, targets], ignore_index=pad_id if ignore else -100, reduction=reduction)
    for part in order:
        {"zero": optimizer.zero_grad, "backward": loss.backward, "step": optimizer.step}[part]()
    return loss.item()


def _copies_its_input(answer, trial):
    from ..judging.probes import TableModel
    source, target = trial["batches"][0]
    model = TableModel(trial["E"], trial["S"])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    with torch.enable_grad():
        losses = [answer(model, optimizer, source, target, trial["pad_id"]) for _ in range(21)]
    return (f"After 20 steps on one batch, with Adam at a rate of 0.1, the loss is {losses[-1]:.2f}, which is too good to be true. Greedy decoding "
            "then gives <bos> again and again.")


@training_step.plant("Targets and inputs are the same, target[:, :-1], so the model learns to copy the word it has just been given.", _copies_its_input)
def _targets_not_shifted(*given):
    return _trained(*given, targets=slice(None, -1))


for _name, _diagnosis, _changes in (
        ("unshifted_at_the_end", "Inputs and targets are both target[:, 1:], so the model learns to copy. The inputs are all tokens but the last.",
         {"inputs": slice(1, None)}),
        ("unshifted_and_whole", "Inputs and targets are both the whole target, so the model learns to copy. Inputs lack the last token, targets the first.",
         {"inputs": slice(None), "targets": slice(None)}),
        ("inputs_not_shortened", "The inputs are one token longer than the targets. The last token needs no prediction after it: inputs are target[:, :-1].",
         {"inputs": slice(None)}),
        ("shifted_backwards", "The shift goes the wrong way: the model learns to predict the previous token. Inputs are target[:, :-1], targets target[:, 1:].",
         {"inputs": slice(1, None), "targets": slice(None, -1)}),
        ("gradients_not_zeroed", "The gradients are not set to zero, so those of earlier batches are added to each step. Call optimizer.zero_grad() before backward().",
         {"order": ("backward", "step")}),
        ("padding_counted", "The padding counts as targets. Leave it out of the loss: ignore_index=pad_id.", {"ignore": False}),
        ("step_before_backward", "The optimizer steps before the gradients are computed, so it uses those of the batch before. First backward(), then step().",
         {"order": ("step", "zero", "backward")}),
        ("nothing_learned", "The parameters never change. Either optimizer.step() is missing, or zero_grad() stands between backward() and step().",
         {"order": ("zero", "backward")}),
        ("loss_summed", "The loss is the sum over all tokens. Take their mean, so that its size does not depend on the batch.", {"reduction": "sum"})):
    def _answer(*given, changes=_changes):
        return _trained(*given, **changes)
    _answer.__name__ = _name
    training_step.mistake(_diagnosis)(_answer)


@training_step.mistake("The loss after the step is returned. Return the one that the step was made with.")
def loss_after_the_step(model, optimizer, source, target, pad_id):
    _trained(model, optimizer, source, target, pad_id)
    return _trained(model, optimizer, source, target, pad_id, order=())


ITEMS = [pad_batch, teacher_forcing, sequence_loss, greedy_decode, bleu, seq2seq_logits, training_step]

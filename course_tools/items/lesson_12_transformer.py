"""Exercise 12: label smoothing, warm-up, beam search, and the whole Transformer; see train_and_translate.py, too."""

import functools
import itertools
import math

import torch
from torch import nn

from course_lib import decoding, training
from course_lib.models import transformer
from course_lib.models.attention import causal_mask
from course_lib.models.positional import positional_encoding

from ..judging.draw import ATTEMPTS, decimal, different, telling, whole
from ..judging.probes import search_with
from ..judging.spec import Item, normal
from .train_and_translate import train, translate

IN_SMOOTHING, IN_WARMUP, IN_BEAM, IN_CODE = "Label smoothing", "Warm-up", "Beam search", "From formula to code"


# ---------------------------------------------------------------- label_smoothing_loss

def _smoothing_inputs(generator):
    def draw(lengths, vocab, epsilon, pad_id, dtype=torch.float32):
        words = torch.tensor([word for word in range(vocab) if word != pad_id])
        targets = words[torch.randint(len(words), (len(lengths), max(lengths)), generator=generator)]
        for row, length in zip(targets, lengths, strict=True):
            row[length:] = pad_id
        return {"logits": normal(generator, *targets.shape, vocab, scale=1.5, dtype=dtype), "targets": targets,
                "epsilon": epsilon, "pad_id": pad_id}
    a, b, c = different(generator, 3, 2, 7)
    vocab, equal = different(generator, 4, 4, 10), whole(generator, 3, 6)
    return [draw([max(a, b) + 1, a, b], vocab[0], decimal(generator, 0.05, 0.2), 0),
            draw([1, c], vocab[1], decimal(generator, 0.1, 0.4), whole(generator, 1, 4), torch.float64),
            draw([whole(generator, 3, 7)], vocab[2], decimal(generator, 0.1, 0.4), 0),
            draw([c, c, c - 1, 1], vocab[3], decimal(generator, 0.3, 0.5), whole(generator, 1, 4)),
            draw([equal - 1, *[equal] * (equal - 1)], equal, 0.0, 1)]


label_smoothing_loss = Item(
    "label_smoothing_loss", 2, _smoothing_inputs, training.label_smoothing_loss, ("loss, one number",), IN_SMOOTHING,
    free=("cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"),
    properties=((lambda trial, loss: loss.item() >= 0,
                 "The loss must not be negative: it is a mean of -log p, and p is at most 1."),))


def _surprise(logits, targets, right, others, log_p=None):
    """-sum of q log p at every place, (B, n): q is `right` for the right word and `others` for each other one."""
    log_p = logits.log_softmax(dim=-1) if log_p is None else log_p
    hit = log_p.gather(-1, targets[..., None])[..., 0]
    return -right * hit - others * (log_p.sum(dim=-1) - hit)


def _smoothed(logits, targets, epsilon, log_p=None):
    share = epsilon / logits.size(-1)
    return _surprise(logits, targets, 1 - epsilon + share, share, log_p)


@label_smoothing_loss.mistake("epsilon is distributed over the OTHER vocab - 1 tokens. Here it is distributed over the whole vocabulary, so the right token gets 1 - epsilon + epsilon / vocab.")
def epsilon_over_the_others(logits, targets, epsilon, pad_id):
    return _surprise(logits, targets, 1 - epsilon, epsilon / (logits.size(-1) - 1))[targets != pad_id].mean()


@label_smoothing_loss.mistake("The right token gets 1 - epsilon alone. It also gets epsilon / vocab; otherwise the target probabilities do not sum to 1.")
def right_word_without_its_share(logits, targets, epsilon, pad_id):
    return _surprise(logits, targets, 1 - epsilon, epsilon / logits.size(-1))[targets != pad_id].mean()


@label_smoothing_loss.mistake("Every token, the right one included, gets epsilon / (vocab - 1), so the target probabilities sum to more than 1. Use epsilon / vocab.")
def share_of_vocab_minus_one(logits, targets, epsilon, pad_id):
    share = epsilon / (logits.size(-1) - 1)
    return _surprise(logits, targets, 1 - epsilon + share, share)[targets != pad_id].mean()


def _without_column(log_p, pad_id):
    """The sum of log p over all words but pad_id."""
    return log_p.sum(dim=-1) - log_p[..., pad_id]


@label_smoothing_loss.mistake("epsilon is distributed over vocab - 2 tokens, without the right one and the padding. Here it is distributed over the whole vocabulary.")
def shared_by_vocab_minus_two(logits, targets, epsilon, pad_id):
    log_p = logits.log_softmax(dim=-1)
    hit = log_p.gather(-1, targets[..., None])[..., 0]
    rest = _without_column(log_p, pad_id) - hit
    return (-(1 - epsilon) * hit - epsilon / (logits.size(-1) - 2) * rest)[targets != pad_id].mean()


@label_smoothing_loss.mistake("The padding token is left out of the smoothing, so epsilon is distributed over vocab - 1 tokens. Here it is distributed over the whole vocabulary, the padding token included.")
def padding_gets_no_share(logits, targets, epsilon, pad_id):
    log_p = logits.log_softmax(dim=-1)
    hit = log_p.gather(-1, targets[..., None])[..., 0]
    spread = _without_column(log_p, pad_id) / (logits.size(-1) - 1)
    return (-(1 - epsilon) * hit - epsilon * spread)[targets != pad_id].mean()


@label_smoothing_loss.mistake("log p is summed over the vocabulary instead of averaged. Each token gets epsilon / vocab, not epsilon.")
def epsilon_to_each_word(logits, targets, epsilon, pad_id):
    return _surprise(logits, targets, 1, epsilon)[targets != pad_id].mean()


@label_smoothing_loss.mistake("The right token keeps its full probability 1 and epsilon is added on top. Give it 1 - epsilon first.")
def epsilon_on_top(logits, targets, epsilon, pad_id):
    share = epsilon / logits.size(-1)
    return _surprise(logits, targets, 1 + share, share)[targets != pad_id].mean()


@label_smoothing_loss.mistake("The uniform part over the vocabulary is missing: this is (1 - epsilon) times the plain loss.")
def shared_part_missing(logits, targets, epsilon, pad_id):
    return _surprise(logits, targets, 1 - epsilon, 0)[targets != pad_id].mean()


@label_smoothing_loss.mistake("epsilon is not used: this is the loss without smoothing.")
def epsilon_ignored(logits, targets, epsilon, pad_id):
    return _surprise(logits, targets, 1, 0)[targets != pad_id].mean()


@label_smoothing_loss.mistake("epsilon is not used: 0.1 is fixed in its place.")
def epsilon_fixed(logits, targets, epsilon, pad_id):
    return training.label_smoothing_loss(logits, targets, 0.1, pad_id)


@label_smoothing_loss.mistake("epsilon and 1 - epsilon are exchanged. The right token gets 1 - epsilon.")
def epsilon_exchanged(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, 1 - epsilon)[targets != pad_id].mean()


@label_smoothing_loss.mistake("The model's probabilities are smoothed. Smooth the targets instead: take -sum of q log p with a smoothed q.")
def model_is_smoothed(logits, targets, epsilon, pad_id):
    p = (1 - epsilon) * logits.softmax(dim=-1) + epsilon / logits.size(-1)
    return -p.log().gather(-1, targets[..., None])[..., 0][targets != pad_id].mean()


@label_smoothing_loss.mistake("This is the KL divergence: the entropy of the target probabilities is subtracted. The loss here is the cross-entropy alone, -sum of q log p.")
def kl_divergence(logits, targets, epsilon, pad_id):
    vocab = logits.size(-1)
    entropy = -sum(q * math.log(q) for q in [1 - epsilon + epsilon / vocab, *[epsilon / vocab] * (vocab - 1)] if q > 0)
    return _smoothed(logits, targets, epsilon)[targets != pad_id].mean() - entropy


@label_smoothing_loss.mistake("Padding is counted as if it were real tokens. Leave out the places where targets == pad_id.")
def counts_the_padding(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon).mean()


@label_smoothing_loss.mistake("The uniform part counts the padding. Leave out those places in both parts.")
def shared_part_counts_padding(logits, targets, epsilon, pad_id):
    log_p = logits.log_softmax(dim=-1)
    return (1 - epsilon) * epsilon_ignored(logits, targets, epsilon, pad_id) - epsilon * log_p.mean()


@label_smoothing_loss.mistake("The sum leaves out the padding, but it is divided by all B * n places. Divide by the number of real tokens.")
def divided_by_all_places(logits, targets, epsilon, pad_id):
    return (_smoothed(logits, targets, epsilon) * (targets != pad_id)).sum() / targets.numel()


@label_smoothing_loss.mistake("This is the mean of each sentence's mean, so a token of a short sentence counts for more. Take one mean over all real tokens of the batch.")
def mean_of_sentence_means(logits, targets, epsilon, pad_id):
    real = targets != pad_id
    return ((_smoothed(logits, targets, epsilon) * real).sum(dim=1) / real.sum(dim=1)).mean()


@label_smoothing_loss.mistake("This is the sum. Divide it by the number of real tokens.")
def sum_of_all(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon)[targets != pad_id].sum()


@label_smoothing_loss.mistake("This sums over the tokens of a sentence and averages over the sentences. Divide by the number of real tokens instead.")
def divided_by_sentences(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon)[targets != pad_id].sum() / len(targets)


@label_smoothing_loss.mistake("log p is averaged over the vocabulary for the right token too. The loss at a position is minus the SUM of q log p over the vocabulary.")
def divided_by_vocab(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon)[targets != pad_id].mean() / logits.size(-1)


@label_smoothing_loss.mistake("The logarithm is missing: this is minus a mean of probabilities.")
def no_log(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon, logits.softmax(dim=-1))[targets != pad_id].mean()


@label_smoothing_loss.mistake("The softmax is applied twice: log_softmax expects logits, not probabilities.")
def two_softmaxes(logits, targets, epsilon, pad_id):
    return _smoothed(logits.softmax(dim=-1), targets, epsilon)[targets != pad_id].mean()


@label_smoothing_loss.mistake("The softmax is missing: logits are not log-probabilities yet. Take log_softmax over the vocabulary.")
def softmax_missing(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon, logits)[targets != pad_id].mean()


@label_smoothing_loss.mistake("The uniform part is the mean of the logits. It is the mean of log p, after log_softmax.")
def shared_part_of_logits(logits, targets, epsilon, pad_id):
    places = _surprise(logits, targets, 1 - epsilon, 0) - epsilon * logits.mean(dim=-1)
    return places[targets != pad_id].mean()


@label_smoothing_loss.mistake("The softmax is taken over the positions. It belongs over the vocabulary, the last axis.")
def softmax_along_positions(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon, logits.log_softmax(dim=1))[targets != pad_id].mean()


@label_smoothing_loss.mistake("The sign is wrong: the loss is the mean of MINUS q log p.")
def sign_turned_round(logits, targets, epsilon, pad_id):
    return -_smoothed(logits, targets, epsilon)[targets != pad_id].mean()


@label_smoothing_loss.mistake("The mask is inverted: this uses the padded places. The real tokens are where targets != pad_id.")
def padding_alone(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon)[targets == pad_id].mean()


@label_smoothing_loss.mistake("The places with id 0 are left out. The padding is pad_id, whatever its number is.")
def padding_taken_as_zero(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon)[targets != 0].mean()


@label_smoothing_loss.mistake("This is one loss for each place, (B, n). Take the mean over the real tokens.")
def one_number_a_place(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon) * (targets != pad_id)


@label_smoothing_loss.mistake("This is one loss for each real token. Take their mean.")
def one_number_a_token(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon)[targets != pad_id]


@label_smoothing_loss.mistake("This is a Python number, so no gradient can flow. Leave out .item() and return the tensor.")
def loss_as_python_number(logits, targets, epsilon, pad_id):
    return _smoothed(logits, targets, epsilon)[targets != pad_id].mean().item()


# ---------------------------------------------------------------- warmup_rate

def _rate_inputs(generator):
    def some(low, high):
        return whole(generator, low, high)

    def draw():
        warmup, d_model, equal = some(7, 15), some(6, 30), some(5, 12)
        sizes = [(1, d_model, warmup), (some(2, 5), some(6, 12), some(6, 9)), (warmup, d_model, warmup),
                 (some(3, 6) * warmup + 1, some(4, 9), warmup), (equal, equal, equal),
                 (some(30, 60), some(12, 25), some(3, 7)), (some(2, 6), some(40, 90), some(70, 150))]
        return [dict(zip(("step", "d_model", "warmup_steps"), size, strict=True)) for size in sizes]
    return telling(warmup_rate, draw)


warmup_rate = Item("warmup_rate", 1, _rate_inputs, training.warmup_rate, ("rate, one number",), IN_WARMUP,
                   gradients=False)


for _name, _sentence, _rate in [
    ("max_for_min", "This takes the larger of the two terms. The formula takes the smaller one, min(...).",
     lambda t, d, w: d ** -0.5 * max(t ** -0.5, t * w ** -1.5)),
    ("no_d_model", "d_model is not used. The factor d_model^-0.5 comes before the min.",
     lambda t, d, w: min(t ** -0.5, t * w ** -1.5)),
    ("times_root_of_d_model", "The factor is d_model^0.5. The exponent is -0.5: a wider model takes smaller steps.",
     lambda t, d, w: d ** 0.5 * min(t ** -0.5, t * w ** -1.5)),
    ("divided_by_d_model", "The rate is divided by d_model. The factor is d_model^-0.5, one over its root.",
     lambda t, d, w: min(t ** -0.5, t * w ** -1.5) / d),
    ("counts_from_zero", "One is added to step, but step already counts from 1.",
     lambda t, d, w: d ** -0.5 * min((t + 1) ** -0.5, (t + 1) * w ** -1.5)),
    ("first_step_is_zero", "One is subtracted from step. Steps count from 1, and the first rate is not 0.",
     lambda t, d, w: d ** -0.5 * min((t - 1 or math.inf) ** -0.5 if t > 1 else 0.0, (t - 1) * w ** -1.5)),
    ("warmup_power_half", "The warm-up rises as step * warmup_steps^-0.5. The exponent is -1.5, so that it meets step^-0.5 at warmup_steps.", lambda t, d, w: d ** -0.5 * min(t ** -0.5, t * w ** -0.5)),
    ("warmup_power_one", "The warm-up rises as step / warmup_steps. The exponent is -1.5, so that it meets step^-0.5 at warmup_steps.", lambda t, d, w: d ** -0.5 * min(t ** -0.5, t / w)),
    ("no_rise", "The warm-up is missing: this is d_model^-0.5 step^-0.5 from the first step on. The second term is step * warmup_steps^-1.5, with a MINUS in the exponent.",
     lambda t, d, w: (d * t) ** -0.5),
    ("no_decay", "The decay is missing, or its exponent has lost the minus: the rate rises for ever. After the warm-up it falls as step^-0.5.", lambda t, d, w: d ** -0.5 * t * w ** -1.5),
    ("stays_at_the_summit", "The rate stays at its peak after warmup_steps. It should fall as step^-0.5.",
     lambda t, d, w: d ** -0.5 * min(w ** -0.5, t * w ** -1.5)),
    ("falls_as_one_over_step", "The rate falls as 1 / step. It should fall as step^-0.5.",
     lambda t, d, w: d ** -0.5 * min(1 / t, t * w ** -1.5)),
    ("step_missing_in_the_line", "step is missing in the second term, step * warmup_steps^-1.5.",
     lambda t, d, w: d ** -0.5 * min(t ** -0.5, w ** -1.5)),
    ("powers_exchanged", "The exponents are exchanged. The terms are step^-0.5 and step * warmup_steps^-1.5.",
     lambda t, d, w: d ** -0.5 * min(t ** -1.5, t * w ** -0.5)),
    ("sum_of_both", "The two terms are added. The formula takes the smaller one.",
     lambda t, d, w: d ** -0.5 * (t ** -0.5 + t * w ** -1.5)),
    ("d_model_in_one_term", "d_model^-0.5 multiplies only the first term. It comes before the min.",
     lambda t, d, w: min((d * t) ** -0.5, t * w ** -1.5)),
    ("d_model_in_the_line", "d_model^-0.5 multiplies only the second term. It comes before the min.",
     lambda t, d, w: min(t ** -0.5, d ** -0.5 * t * w ** -1.5)),
    ("summit_of_one", "The rate is scaled to a peak of 1. The peak of the formula is (d_model warmup_steps)^-0.5.",
     lambda t, d, w: min((w / t) ** 0.5, t / w)),
    ("d_model_and_warmup_exchanged", "d_model and warmup_steps are exchanged.",
     lambda t, d, w: w ** -0.5 * min(t ** -0.5, t * d ** -1.5)),
    ("warmup_taken_as_4000", "warmup_steps is not used: 4000, the paper's number, is fixed in its place.",
     lambda t, d, w: d ** -0.5 * min(t ** -0.5, t * 4000 ** -1.5)),
    ("d_model_taken_as_512", "d_model is not used: 512, the paper's number, is fixed in its place.",
     lambda t, d, w: 512 ** -0.5 * min(t ** -0.5, t * w ** -1.5)),
    ("rate_is_a_tensor", "The result is a tensor. An optimizer's learning rate is a number: make it a float.",
     lambda t, d, w: torch.tensor(training.warmup_rate(t, d, w))),
]:
    warmup_rate.mistake(_sentence)(type(_name, (), {"__new__": staticmethod(
        lambda cls, step, d_model, warmup_steps, rate=_rate: rate(step, d_model, warmup_steps))}))


# ---------------------------------------------------------------- beam_search

def _search_inputs(generator):
    return list(_searches(generator.initial_seed()))


@functools.lru_cache(maxsize=8)
def _searches(seed):
    """Models of several sizes, drawn until every mistake has shown and none is taken for another."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(ATTEMPTS):
        trials, alike = _some_searches(generator)
        if not alike:
            return trials
    raise RuntimeError(f"beam_search: {ATTEMPTS} draws tell not all of its mistakes apart")


def _some_searches(generator):
    """(NUMBER models, the groups of answers that do the same with all of them)."""
    trials, groups = [], [[decoding.beam_search, *(mistake.answer for mistake in beam_search.mistakes.values()),
                           *(functools.partial(_with_another_penalty, penalty) for penalty in OTHER_PENALTIES)]]
    for sizes in itertools.islice(itertools.chain(SEARCHES, itertools.cycle(TELLING)), TRIED):
        trial = _search_input(generator, *sizes)
        if _gap(trial) < 1e-4:                    # rounding must not decide
            continue
        apart = [group for together in groups for group in _by_result(together, trial)]
        if len(trials) < len(SEARCHES) or len(apart) > len(groups) or not groups:
            trials.append(trial)
            groups = [group for group in apart if len(group) > 1]
        if len(trials) == NUMBER:
            break
    return trials, groups


# Wrong without a name: another alpha, parentheses forgotten twice, 1 or 6 for 5, alpha and its complement exchanged.
OTHER_PENALTIES = [*(lambda length, alpha, factor=factor: ((5 + length) / 6) ** (factor * alpha) for factor in (0.5, 2, 3)),
                   lambda length, alpha: 5 + length / 6, lambda length, alpha: (1 + length) ** alpha,
                   lambda length, alpha: 6 + length, lambda length, alpha: (5 + length) ** (1 - alpha)]


def _with_another_penalty(penalty, *inputs):
    """A wrong answer without a name: no mistake must be taken for it."""
    class Other(_Search):
        def penalty(self, length):
            return penalty(length, self.alpha)
    return Other(*inputs).search()


def _by_result(answers, trial):
    """The answers in groups that give the same."""
    groups = {}
    for answer in answers:
        groups.setdefault(str(search_with(answer, trial)), []).append(answer)
    return list(groups.values())


# vocab, beam, max_len, alpha, how much is added to the logits of <eos>, their scale.  A large alpha
# makes short and long about as good, and the choice between them shows most.
SEARCHES = [(6, 3, 7, 0.6, 0.5, 1.2), (5, 2, 4, 0.6, -30.0, 1.2), (6, 1, 6, 0.6, 0.0, 1.2)]
TELLING = [(7, 2, 8, 2.5, 0.5, 0.5), (5, 3, 8, 3.0, -1.0, 1.8), (6, 4, 8, 2.5, 1.0, 1.2), (5, 3, 6, 3.0, 0.5, 0.5),
           (6, 4, 6, 1.0, -1.0, 0.8)]
NUMBER, TRIED = 26, 1000  # of models that are asked about; that are looked at most to find them


def _search_input(generator, vocab, beam, max_len, alpha, eos, scale):
    """A model in which the logits' mean differs from state to state: they can't stand for log p."""
    bos_id, eos_id = different(generator, 2, 0, vocab)
    table = normal(generator, 13, vocab, vocab, scale=scale) + normal(generator, 13, vocab, 1)
    table[..., eos_id] += eos
    table[0, :, eos_id] -= 2                      # not at once
    return {"table": table, "bos_id": bos_id, "eos_id": eos_id, "beam": beam, "max_len": max_len, "alpha": alpha}


beam_search = Item("beam_search", 3, _search_inputs, decoding.beam_search, ("words",), IN_BEAM, gradients=False,
                   probe="search")


class _Search:
    """Beam search in steps; each mistake exchanges some of them."""

    def __init__(self, step, state, bos_id, eos_id, beam, max_len, alpha=0.6):
        self.step, self.bos_id, self.eos_id, self.beam, self.max_len = step, bos_id, eos_id, beam, max_len
        self.alpha, self.length, self.states = alpha, 0, []
        self.live, self.finished = [(0.0, [bos_id], state)], []    # (score, words from <bos>, state)

    def search(self):
        for length in range(1, self.last() + 1):
            self.length = length
            self.advance()
            if self.over():
                break
        return self.words(self.chosen())

    def advance(self):
        kept = self.keep(self.grown())
        self.finished += [found for found in kept if self.ended(found)]
        self.live = self.go_on(kept)

    def last(self):
        return self.max_len

    def over(self):
        return not self.live

    def ended(self, found):
        return found[1][-1] == self.eos_id

    def score(self, logits):
        return logits.log_softmax(dim=-1)

    def join(self, before, value):
        return before + value

    def grown(self):
        """(score, words, state) of every word after every live beginning, the best first."""
        found, before, self.states = [], self.states, []
        for row, (score, words, state) in enumerate(self.live):
            logits, state = self.step(words[-1], self.given(row, state, before))
            self.states.append(state)
            found += [(self.join(score, value), [*words, token], state)
                      for token, value in enumerate(self.score(logits).tolist())]
        return sorted(found, key=lambda one: one[0], reverse=True)

    def given(self, row, state, before):
        return state

    def keep(self, grown):
        return grown[:self.beam]

    def go_on(self, kept):
        return [found for found in kept if not self.ended(found)]

    def penalty(self, length):
        return ((5 + length) / 6) ** self.alpha

    def worth(self, found):
        return found[0] / self.penalty(len(found[1]) - 1)          # <eos> is counted, <bos> is not

    def chosen(self):
        return (max(self.finished, key=self.worth) if self.finished else self.live[0])[1]

    def words(self, found):
        return self.plain(found[1:])

    def plain(self, words):
        return words[:words.index(self.eos_id)] if self.eos_id in words else words


class _Close(_Search):
    """Notes how close two candidates were of which one was taken and the other not."""
    gap = math.inf

    def keep(self, grown):
        if len(grown) > self.beam:
            self.gap = min(self.gap, grown[self.beam - 1][0] - grown[self.beam][0])
        return super().keep(grown)

    def chosen(self):
        first, *rest = sorted(map(self.worth, self.finished or self.live), reverse=True)
        self.gap = min(self.gap, first - rest[0]) if rest else self.gap
        return super().chosen()


def _gap(trial):
    searches = []

    def answer(*given):
        searches.append(_Close(*given))
        return searches[0].search()
    search_with(answer, trial)
    return searches[0].gap


def _search(name, sentence, **steps):
    """Register beam search with some of its steps exchanged."""
    kind = type(name, (_Search,), steps)

    def answer(*inputs):
        return kind(*inputs).search()
    answer.__name__ = name
    beam_search.mistake(sentence)(answer)


def _penalties():
    _search("no_length_penalty", "The length penalty is missing. The best finished hypothesis is the one with the largest log p / ((5 + length) / 6)^alpha.", penalty=lambda self, length: 1)
    _search("divided_by_length_to_alpha", "log p is divided by length^alpha. The penalty is ((5 + length) / 6)^alpha.",
            penalty=lambda self, length: length ** self.alpha)
    _search("divided_by_length", "log p is divided by the length. The penalty is ((5 + length) / 6)^alpha.",
            penalty=lambda self, length: length)
    _search("length_without_eos", "The length leaves out <eos>. Count it, because its log p is in the sum.",
            penalty=lambda self, length: ((4 + length) / 6) ** self.alpha)
    _search("length_with_bos", "The length counts <bos>, which was given and not chosen. Count the generated tokens and <eos>.",
            penalty=lambda self, length: ((6 + length) / 6) ** self.alpha)
    _search("alpha_ignored", "alpha is not the exponent of the whole fraction. The penalty is ((5 + length) / 6)^alpha; a mere factor changes no order.",
            penalty=lambda self, length: (5 + length) / 6)
    _search("only_the_length_by_6", "Only the length is divided by 6. The penalty is ((5 + length) / 6)^alpha, with the 5 in the numerator too.", penalty=lambda self, length: (5 + length / 6) ** self.alpha)
    _search("alpha_always_06", "alpha is 0.6 whatever was given. That is only its default.",
            penalty=lambda self, length: ((5 + length) / 6) ** 0.6)
    _search("times_the_penalty", "log p is multiplied by the penalty. Divide by it: log p is negative, so a larger divisor helps long sentences.", worth=lambda self, found: found[0] * self.penalty(len(found[1]) - 1))
    _search("divided_at_each_step", "log p is divided by the penalty at each step, and the quotient is carried forward. Carry log p itself, and divide once, when a hypothesis is finished.",
            join=lambda self, before, value: (before + value) / self.penalty(self.length),
            worth=lambda self, found: found[0])


def _scores():
    _search("logits_summed", "The logits are summed. Sum log p: logits.log_softmax(dim=-1) first.",
            score=lambda self, logits: logits)
    _search("probabilities_summed", "Probabilities are summed. Sum their logarithms: log_softmax.",
            score=lambda self, logits: logits.softmax(dim=-1))
    _search("probabilities_divided", "The probabilities are multiplied and the product is divided by the penalty. Divide the sum of the LOGARITHMS.",
            worth=lambda self, found: math.exp(found[0]) / self.penalty(len(found[1]) - 1))
    _search("scores_not_added_up", "Only the last token's log p counts. Add up those of all tokens.",
            join=lambda self, before, value: value)
    _search("logs_multiplied", "The log p of the tokens are multiplied. Logarithms are added.",
            join=lambda self, before, value: before * value if before else value)
    _search("the_worst", "The least likely hypotheses are kept, or the worst one is returned. log p is negative, and larger is better.",
            keep=lambda self, grown: grown[::-1][:self.beam])
    _search("worst_of_the_finished", "The worst finished hypothesis is returned. A larger log p / penalty is better.",
            worth=lambda self, found: -_Search.worth(self, found))


def _ends():
    def go_on(self, kept):
        return kept
    _search("finished_go_on", "A finished hypothesis is extended further. Take it out of the active ones.", go_on=go_on)
    _search("eos_is_a_word", "<eos> does not end anything here. A hypothesis that has it is finished: set it aside with its score.",
            go_on=go_on, ended=lambda self, found: False)
    _search("eos_is_dropped", "<eos> does not end anything here; it is only left out of the result. A hypothesis that has it is finished: set it aside with its score.", go_on=go_on, ended=lambda self, found: False,
            plain=lambda self, words: [word for word in words if word != self.eos_id])
    _search("eos_is_passed_over", "<eos> is never chosen. It is a candidate like any other token, and it finishes its hypothesis.",
            keep=lambda self, grown: [one for one in grown if one[1][-1] != self.eos_id][:self.beam])
    _search("others_take_the_place", "When a hypothesis finishes, another one takes its place in the same step, so that `beam` go on. Take the `beam` best of all candidates first, then set the finished ones aside.",
            keep=_until_beam_go_on)
    _search("every_ending_counts", "Every hypothesis that could finish is set aside, however unlikely. Only those among the `beam` best candidates of the step count.", keep=lambda self, grown: _with_all_endings(self, grown, grown[:self.beam]))
    _search("every_ending_and_beam_words", "Every hypothesis that could finish is set aside, and `beam` others go on. Take the `beam` best of all candidates of the step, finished ones included.",
            keep=lambda self, grown: _with_all_endings(self, grown, _words(self, grown)[:self.beam]))
    _search("places_lost_for_ever", "Each finished hypothesis reduces the beam for good. It takes a place only in the step in which it finishes; after that `beam` are kept again.",
            keep=lambda self, grown: grown[:max(0, self.beam - len(self.finished))])
    _search("finished_compete", "Finished hypotheses compete for the `beam` places in later steps too. They take a place only in the step in which they finish.", advance=_advance_with_finished)
    _search("finished_compete_by_worth", "Finished hypotheses compete in later steps too, and log p is divided by the penalty while pruning. They take a place only in the step in which they finish.",
            advance=_advance_by_worth)
    _search("beam_for_each", "`beam` candidates are kept for each hypothesis, so they multiply. Keep the `beam` best of all together.", keep=_beam_of_each)
    _search("beam_ignored", "Only one hypothesis is followed, which is greedy decoding. Keep the `beam` best of each step.",
            keep=lambda self, grown: grown[:1])
    _search("one_too_many", "One hypothesis too many is kept. Keep `beam` of them.", keep=lambda self, grown: grown[:self.beam + 1])
    _search("first_of_each", "After the first step one token is taken for each hypothesis. Keep the `beam` best of all candidates, of which several may extend the same hypothesis.", keep=_first_of_each)


def _words(self, grown):
    return [found for found in grown if found[1][-1] != self.eos_id]


def _with_all_endings(self, grown, kept):
    endings = [found for found in grown if found[1][-1] == self.eos_id]
    return endings + [found for found in kept if found[1][-1] != self.eos_id]


def _until_beam_go_on(self, grown):
    """From the best on, until `beam` of them have not ended."""
    kept = []
    for found in grown:
        kept.append(found)
        if len(_words(self, kept)) == self.beam:
            break
    return kept


def _beam_of_each(self, grown):
    kept = {}
    for found in grown:
        kept.setdefault(tuple(found[1][:-1]), []).append(found)
    return sorted((found for group in kept.values() for found in group[:self.beam]), key=lambda one: one[0],
                  reverse=True)


def _first_of_each(self, grown):
    if len(self.live) == 1:
        return grown[:self.beam]
    return list({tuple(found[1][:-1]): found for found in reversed(grown)}.values())[::-1][:self.beam]


def _advance_with_finished(self):
    self._compete(lambda found: found[0])


def _advance_by_worth(self):
    self._compete(self.worth)


def _compete(self, key):
    kept = sorted([*self.grown(), *self.finished], key=key, reverse=True)[:self.beam]
    self.finished = [found for found in kept if self.ended(found)]
    self.live = [found for found in kept if not self.ended(found)]


_Search._compete = _compete


def _choices():
    _search("live_returned", "The best unfinished hypothesis is returned although some are finished. Return the best finished one.",
            chosen=lambda self: (self.live or [max(self.finished, key=self.worth)])[0][1])
    _search("live_may_win", "At the end the unfinished hypotheses are compared with the finished ones. Return an unfinished one only if none is finished.", chosen=lambda self: max([*self.finished, *self.live], key=self.worth)[1])
    _search("first_finished_returned", "The search stops at the first finished hypothesis. A later one may score higher.",
            over=lambda self: bool(self.finished) or not self.live)
    _search("last_finished_returned", "The LAST finished hypothesis is returned. Return the one with the best log p / penalty.",
            chosen=lambda self: self.finished[-1][1] if self.finished else self.live[0][1])
    _search("stops_when_beam_have_ended", "The search stops when `beam` hypotheses are finished. Go on while one is unfinished, up to max_len.",
            over=lambda self: len(self.finished) >= self.beam or not self.live)
    _search("stops_when_the_best_ends", "The search stops when the best candidate of a step finishes. Go on while one is unfinished, up to max_len, because a longer one may score higher.",
            over=lambda self: not self.live or bool(self.finished) and (
                len(self.finished[-1][1]) == self.length + 1
                and max(one[0] for one in self.finished if len(one[1]) == self.length + 1) >= self.live[0][0]))
    _search("nothing_if_none_ended", "Nothing is returned when no hypothesis is finished within max_len. Return the best unfinished one then.", chosen=lambda self: max(self.finished, key=self.worth)[1] if self.finished
            else [self.bos_id])
    _search("worst_live_returned", "When no hypothesis is finished, the last unfinished one is returned. Return the best.",
            chosen=lambda self: (max(self.finished, key=self.worth) if self.finished else self.live[-1])[1])
    _search("goes_past_max_len", "The search goes on one step too long: max_len steps at most.", last=lambda self: self.max_len + 1)
    _search("one_short_of_max_len", "The search stops one step early: max_len steps, and the one that gives <eos> is one of them.",
            last=lambda self: self.max_len - 1)
    _search("never_ends", "The search goes on until all hypotheses are finished, which may never happen. Stop after max_len steps, too.",
            last=lambda self: 1000)


def _states():
    _search("states_not_reordered", "The states stay in their old order. Each hypothesis that is kept goes on with the state of the one that it extends.",
            go_on=lambda self, kept: [(score, words, self.states[min(row, len(self.states) - 1)]) for row, (score, words, _)
                                      in enumerate(_words(self, kept), start=0)])
    _search("states_stay_by_place", "The states stay in their old order, counted over all kept candidates. Each one that is kept goes on with the state of the hypothesis that it extends.",
            go_on=lambda self, kept: [(score, words, self.states[min(row, len(self.states) - 1)])
                                      for row, (score, words, _) in enumerate(kept) if words[-1] != self.eos_id])
    _search("one_state_for_all", "One state is passed from hypothesis to hypothesis. Each has a state of its own.",
            given=lambda self, row, state, before: (self.states or before or [state])[-1])
    _search("state_of_the_last", "All hypotheses go on with the state that the last call of step returned. Each has a state of its own.",
            go_on=lambda self, kept: [(score, words, self.states[-1]) for score, words, _ in _words(self, kept)])
    _search("state_of_the_best", "All hypotheses go on with the state of the best one. Each has a state of its own.",
            go_on=lambda self, kept: [(score, words, self.states[0]) for score, words, _ in _words(self, kept)])
    _search("first_state_for_ever", "Every step is given the first state. Give it the one that the hypothesis's last step returned.", given=lambda self, row, state, before: 0)


def _results():
    def kept(self, words):
        return words if self.eos_id not in words else words[:words.index(self.eos_id) + 1]
    _search("eos_kept", "The result contains <eos>. Leave it out: it is a signal, not a word.",
            words=lambda self, found: kept(self, found[1:]))
    _search("bos_kept", "The result contains <bos>. Leave it out: it is only the first step's input.",
            words=lambda self, found: [self.bos_id, *self.plain(found[1:])])
    _search("bos_and_eos_kept", "The result contains <bos> and <eos>. Leave both out.", words=lambda self, found: found)
    _search("last_word_cut", "The last token is removed although it is not <eos>. Remove only <eos>.",
            words=lambda self, found: found[1:-1])
    _search("a_tensor", "The result is a tensor. Return a list of ints.",
            words=lambda self, found: torch.tensor(self.plain(found[1:]), dtype=torch.long))
    _search("tensors", "The tokens are tensors. Convert each to an int, with int(...) or .item().",
            words=lambda self, found: [torch.tensor(word) for word in self.plain(found[1:])])
    _search("all_finished_returned", "All finished hypotheses are returned. Return the tokens of the best.",
            chosen=lambda self: [[0, *self.plain(words[1:])] for _, words, _ in self.finished] or self.live[0][1],
            words=lambda self, found: [words[1:] for words in found] if self.finished else found[1:])


for _register in (_penalties, _scores, _ends, _choices, _states, _results):
    _register()


# ---------------------------------------------------------------- Transformer

def _transformer_inputs(generator):
    def draw(sizes, batches, pad_id=0, dtype=torch.float32):
        """batches: (B, m, n) of each call."""
        calls = [("train" if number % 2 else "eval", [*_sentences(generator, sizes, *batch, pad_id), pad_id])
                 for number, batch in enumerate(batches, start=1)]
        return {"arguments": sizes, "state": _weights(generator, sizes, dtype), "calls": calls, "reads": [],
                "whole": True}
    def trial(N, pad_id=0, dtype=torch.float32):
        a, b, c = different(generator, 3, 2, 5)
        source, target, d_ff = different(generator, 3, 7, 12)
        (m, n), (other_m, other_n) = (different(generator, 2, 3, 7) for _ in range(2))
        return draw([source, target, 2 * a * b, 2 * a, d_ff, N], [(1, m, n), (c, other_m, other_n)], pad_id, dtype)
    equal = whole(generator, 3, 5)
    return [trial(1, whole(generator, 3, 7), torch.float64), trial(2),
            draw([8, 8, 4, 2, 4, 1], [(equal, equal, equal), (2, 3, 3)], whole(generator, 3, 7))]


def _sentences(generator, sizes, B, m, n, pad_id):
    """src (B, m), all but the first padded on the right; tgt (B, n + 1), <bos> 1 and words, without padding."""
    def words(vocab, *shape):
        some = torch.tensor([word for word in range(vocab) if word not in (1, pad_id)])
        return some[torch.randint(len(some), shape, generator=generator)]
    src, tgt = words(sizes[0], B, m), words(sizes[1], B, n + 1)
    if pad_id:
        src[:, 0], src[:, 1] = 2, 0               # a word like others, where the padding has another number
    for row in src[B > 1:]:
        row[whole(generator, 2, m):] = pad_id
    tgt[:, 0] = 1
    return src, tgt


def _weights(generator, sizes, dtype):
    """A number for every parameter, by its name."""
    with torch.device("meta"):
        shapes = {name: value.shape for name, value in transformer.Transformer(*sizes).state_dict().items()}
    state = {}
    for name, shape in shapes.items():
        matrix, gain = len(shape) == 2, "norm" in name and name.endswith("weight")
        scale = 0.5 if not matrix or name.split(".")[0] in ("source", "target") else shape[1] ** -0.5
        state[name] = gain + normal(generator, *shape, scale=scale, dtype=dtype)
    return state


Transformer = Item("Transformer", 5, _transformer_inputs, transformer.Transformer,
                   ("logits (B, n, vocab_tgt)", "logits of a second batch (B, n, vocab_tgt)", "nothing"), IN_CODE,
                   free=("Transformer", "TransformerEncoder", "TransformerDecoder", "TransformerEncoderLayer",
                         "TransformerDecoderLayer", "MultiheadAttention", "multi_head_attention_forward"),
                   probe="build")


class _Assembled(transformer.Transformer):
    """forward in steps; each mistake exchanges some of them."""

    def forward(self, src, tgt, pad_id):
        given = self.given(tgt)
        encoder_mask, self_mask, memory_mask = self.masks(src, given.size(1), pad_id)
        memory = self.remember(self.embed(self.source, src), encoder_mask)
        return self.logits(self.decode(self.embed(self.target, given), memory, self_mask, memory_mask))

    def given(self, tgt):
        return tgt[:, :-1]

    def masks(self, src, n, pad_id):
        real = self.real(src, pad_id)
        return real, causal_mask(n), real

    def real(self, src, pad_id):
        return (src != pad_id)[:, None]

    def embed(self, embedding, ids):
        return self.scaled(embedding, ids) + self.places(embedding, ids)

    def scaled(self, embedding, ids):
        return embedding(ids) * math.sqrt(embedding.embedding_dim)

    def places(self, embedding, ids):
        return positional_encoding(ids.size(1), embedding.embedding_dim).to(embedding.weight)

    def remember(self, x, mask):
        for block in self.encoder:
            x = block(x, mask)
        return x

    def decode(self, y, memory, self_mask, memory_mask):
        for block in self.decoder:
            y = block(y, memory, self_mask, memory_mask)
        return y

    def logits(self, y):
        return y @ self.target.weight.T


def _assembled(name, sentence, **steps):
    """Register a Transformer with some of its steps exchanged."""
    Transformer.mistake(sentence)(type(name, (_Assembled,), steps))


def _with_masks(change):
    """masks, with what `change` makes of (real, causal)."""
    return lambda self, src, n, pad_id: change(self.real(src, pad_id), causal_mask(n))


def _masks():
    _assembled("causal_mask_missing", "The decoder's causal mask is missing, so each position sees the tokens that it must predict.",
               masks=_with_masks(lambda real, causal: (real, None, real)))
    _assembled("causal_mask_turned", "The causal mask is inverted: each position sees the tokens that come AFTER it.",
               masks=_with_masks(lambda real, causal: (real, causal.T, real)))
    _assembled("padding_mask_missing", "The padding mask is missing: encoder and decoder attend to the padding of the source.",
               masks=_with_masks(lambda real, causal: (None, causal, None)))
    _assembled("no_padding_mask_in_the_encoder", "The encoder's blocks are not given the padding mask, so they attend to the padding.",
               masks=_with_masks(lambda real, causal: (None, causal, real)))
    _assembled("no_padding_mask_for_the_memory", "The decoder's blocks are not given the padding mask for the memory, so the decoder attends to the padding of the source.", masks=_with_masks(lambda real, causal: (real, causal, None)))
    _assembled("no_masks", "There are no masks. The decoder needs the causal mask, and both encoder and decoder need the padding mask.",
               masks=lambda self, src, n, pad_id: (None, None, None))
    _assembled("padding_mask_turned", "The padding mask is inverted. True = may attend, so it is src != pad_id.",
               real=lambda self, src, pad_id: (src == pad_id)[:, None])
    _assembled("padding_is_number_zero", "Token 0 is taken for the padding. The padding is pad_id, whatever its number is.",
               real=lambda self, src, pad_id: (src != 0)[:, None])
    _assembled("causal_mask_in_the_encoder", "The encoder has a causal mask too. Its tokens may attend to the whole source sentence.",
               masks=lambda self, src, n, pad_id: (self.real(src, pad_id) & causal_mask(src.size(1)), causal_mask(n),
                                                   self.real(src, pad_id)))
    _assembled("causal_mask_in_the_encoder_alone", "The causal mask is in the encoder and not in the decoder. It belongs to the decoder's self-attention.",
               masks=lambda self, src, n, pad_id: (self.real(src, pad_id) & causal_mask(src.size(1)), None,
                                                   self.real(src, pad_id)))
    _assembled("decoder_masks_exchanged", "The two masks of the decoder's blocks are exchanged. It is block(y, memory, causal mask, padding mask).", decode=lambda self, y, memory, own, other: _Assembled.decode(self, y, memory, other, own))


def _embeddings():
    def plain(self, embedding, ids):
        return embedding(ids)

    def only(where, step, other=plain):
        """The step for one of the two embeddings, the other one as it should be."""
        def chosen(self, embedding, ids):
            return (other if embedding is getattr(self, where) else step)(self, embedding, ids)
        return chosen

    def nothing(self, embedding, ids):
        return 0.0
    right = _Assembled.scaled, _Assembled.places
    _assembled("no_root_of_d_model", "The embeddings are not multiplied by sqrt(d_model).", scaled=plain)
    _assembled("no_root_on_the_source", "The SOURCE's embeddings are not multiplied by sqrt(d_model).",
               scaled=only("source", right[0]))
    _assembled("no_root_on_the_target", "The TARGET's embeddings are not multiplied by sqrt(d_model).",
               scaled=only("target", right[0]))
    _assembled("root_after_the_positions", "The sum of embedding and position is multiplied by sqrt(d_model). Multiply the embedding alone, then add the positions.",
               embed=lambda self, embedding, ids: (embedding(ids) + self.places(embedding, ids))
               * math.sqrt(embedding.embedding_dim))
    _assembled("root_of_d_k", "The embeddings are multiplied by sqrt(d_k). The factor is sqrt(d_model).",
               scaled=lambda self, embedding, ids: embedding(ids)
               * math.sqrt(embedding.embedding_dim / self.encoder[0].attention.h))
    _assembled("divided_by_the_root", "The embeddings are divided by sqrt(d_model). Multiply by it.",
               scaled=lambda self, embedding, ids: embedding(ids) / math.sqrt(embedding.embedding_dim))
    _assembled("times_d_model", "The embeddings are multiplied by d_model. The factor is its root, sqrt(d_model).",
               scaled=lambda self, embedding, ids: embedding(ids) * embedding.embedding_dim)
    _assembled("no_positions", "The positions are missing: add_positions(E) for source and target.", places=nothing)
    _assembled("no_positions_on_the_source", "The positions are missing on the SOURCE: add_positions(E) on both sides.",
               places=only("source", right[1], nothing))
    _assembled("no_positions_on_the_target", "The positions are missing on the TARGET: add_positions(E) on both sides.",
               places=only("target", right[1], nothing))
    _assembled("neither_root_nor_positions", "The embeddings are used as they are. Multiply them by sqrt(d_model), then add the positions.", scaled=plain, places=nothing)
    _assembled("embeddings_exchanged", "The embeddings are exchanged: `source` is for src, `target` for tgt and the logits.",
               embed=lambda self, embedding, ids: _Assembled.embed(
                   self, self.target if embedding is self.source else self.source, ids))


def _targets():
    _assembled("not_shifted_at_all", "The decoder is given tgt[:, 1:], the tokens that it must predict. Give it tgt[:, :-1], the ones before them.", given=lambda self, tgt: tgt[:, 1:])
    _assembled("whole_target", "The decoder is given the whole of tgt, so there is one position too many. Its input is tgt[:, :-1].",
               given=lambda self, tgt: tgt)
    _assembled("first_column_dropped", "The first position of the logits is dropped, which is the prediction of the first token. Give the decoder tgt[:, :-1] and return all positions.",
               given=lambda self, tgt: tgt, logits=lambda self, y: _Assembled.logits(self, y[:, 1:]))
    _assembled("last_position_only", "Only the last position's logits are returned. Return all n: (B, n, vocab_tgt).",
               logits=lambda self, y: _Assembled.logits(self, y[:, -1]))
    _assembled("last_position_kept", "Only the last position's logits are returned. Return all n: (B, n, vocab_tgt).".replace(
        "returned", "returned, as a column"), logits=lambda self, y: _Assembled.logits(self, y[:, -1:]))


def _stacks():
    def first_alone(self, y, memory, *masks):
        return self.decoder[0](y, memory, *masks)

    def same_again(self, y, memory, *masks):
        for _ in self.decoder:
            y = self.decoder[0](y, memory, *masks)
        return y

    def not_chained(self, y, memory, *masks):
        return self.decoder[-1](y, memory, *masks)

    def levels(self, x, mask):
        return [x := block(x, mask) for block in self.encoder]

    def level_by_level(self, y, memory, *masks):
        for block, one in zip(self.decoder, memory, strict=True):
            y = block(y, one, *masks)
        return y
    _assembled("encoder_skipped", "The memory is the embedded source. Apply the encoder's blocks to it first.",
               remember=lambda self, x, mask: x)
    _assembled("decoder_skipped", "The decoder's blocks are not used. Apply y = block(y, memory, causal mask, padding mask) for each of them.",
               decode=lambda self, y, *others: y)
    _assembled("level_by_level", "Each decoder block attends to the encoder block of the same level. All of them attend to the LAST one's output.",
               remember=levels, decode=level_by_level)
    _assembled("first_block_only", "Only the first block of encoder and decoder is used. Is the return inside the loop?",
               remember=lambda self, x, mask: self.encoder[0](x, mask), decode=first_alone)
    _assembled("first_decoder_block_only", "Only the decoder's first block is used. Is the return inside the loop?",
               decode=first_alone)
    _assembled("first_encoder_block_only", "Only the encoder's first block is used. Apply all of them.",
               remember=lambda self, x, mask: self.encoder[0](x, mask))
    _assembled("same_block_again", "One block is used N times. There are N of each, with weights of their own: [block] * N repeats the same module, so use a comprehension.",
               remember=lambda self, x, mask: self.encoder[0](x, mask) if len(self.encoder) == 1
               else self.encoder[0](self.encoder[0](x, mask), mask), decode=same_again)
    _assembled("blocks_not_chained", "Every block is given the embedded tokens, and only the last one's output counts. Each block takes the output of the one before it.", remember=lambda self, x, mask: self.encoder[-1](x, mask), decode=not_chained)
    _assembled("encoder_blocks_not_chained", "Every encoder block is given the embedded source, and only the last one's output counts. Each block takes the output of the one before it.", remember=lambda self, x, mask: self.encoder[-1](x, mask))
    _assembled("decoder_blocks_not_chained", "Every decoder block is given the embedded target, and only the last one's output counts. Each block takes the output of the one before it.", decode=not_chained)
    _assembled("y_and_memory_exchanged", "memory and y are exchanged in the decoder's blocks. It is block(y, memory, ...).",
               decode=lambda self, y, memory, *masks: _Assembled.decode(self, memory, y, *masks))


def _outputs():
    _assembled("log_softmax_of_the_logits", "log_softmax is applied to the logits. Return them as they are: the loss does it.",
               logits=lambda self, y: _Assembled.logits(self, y).log_softmax(dim=-1))
    _assembled("softmax_of_the_logits", "A softmax is applied to the logits. Return them as they are: the loss does it.",
               logits=lambda self, y: _Assembled.logits(self, y).softmax(dim=-1))
    _assembled("scored_with_the_source", "The logits are computed with the SOURCE's embedding. Use the target's.",
               logits=lambda self, y: y @ self.source.weight.T)
    _assembled("logits_times_the_root", "The logits are multiplied by sqrt(d_model). Only the input embeddings are.",
               logits=lambda self, y: _Assembled.logits(self, y) * math.sqrt(y.size(-1)))
    _assembled("logits_divided_by_the_root", "The logits are divided by sqrt(d_model). They are y @ target.weight.T, unscaled.",
               logits=lambda self, y: _Assembled.logits(self, y) / math.sqrt(y.size(-1)))
    _assembled("logits_turned", "The logits are (B, vocab_tgt, n). The vocabulary is the last axis: (B, n, vocab_tgt).",
               logits=lambda self, y: _Assembled.logits(self, y).transpose(1, 2))
    _assembled("no_scores", "The decoder's output is returned, (B, n, d_model). Multiply it by the target's embedding to get the logits.",
               logits=lambda self, y: y)
    _assembled("chosen_words", "The most likely tokens are returned. Return the logits, (B, n, vocab_tgt).",
               logits=lambda self, y: _Assembled.logits(self, y).argmax(dim=-1))
    for bias in (False, True):
        def build(self, vocab_src, vocab_tgt, d_model, h, d_ff, N, bias=bias):
            _Assembled.__init__(self, vocab_src, vocab_tgt, d_model, h, d_ff, N)
            self.output = nn.Linear(d_model, vocab_tgt, bias=bias)
        _assembled(f"own_output_layer{'_with_bias' * bias}", "The output layer has its own weights" + " and a bias" * bias
                   + ". Use the target's embedding: y @ self.target.weight.T.", __init__=build,
                   logits=lambda self, y: self.output(y))


def _shared():
    def tie(stack):
        def build(self, vocab_src, vocab_tgt, d_model, h, d_ff, N):
            _Assembled.__init__(self, vocab_src, vocab_tgt, d_model, h, d_ff, N)
            setattr(self, stack, nn.ModuleList([getattr(self, stack)[0]] * N))
        return build
    def with_sizes(change):
        return lambda self, *sizes: _Assembled.__init__(self, *change(*sizes))
    _assembled("one_block_each", "N is not used: there is one block in the encoder and one in the decoder.",
               __init__=with_sizes(lambda *sizes: [*sizes[:5], 1]))
    _assembled("one_head_each", "h is not used: every attention has one head. Pass h on to EncoderBlock and DecoderBlock.",
               __init__=with_sizes(lambda src, tgt, d_model, h, *rest: [src, tgt, d_model, 1, *rest]))
    _assembled("four_d_model_for_d_ff", "d_ff is not used: the blocks are 4 * d_model wide. Pass d_ff on to EncoderBlock and DecoderBlock.",
               __init__=with_sizes(lambda src, tgt, d_model, h, _, N: [src, tgt, d_model, h, 4 * d_model, N]))
    for stack in ("encoder", "decoder"):
        _assembled(f"one_block_in_the_{stack}", f"The {stack} holds one block N times: [block] * N repeats the same module. Make "
                   "a new one for each, with a comprehension.", __init__=tie(stack))


for _register in (_masks, _embeddings, _targets, _stacks, _outputs, _shared):
    _register()


ITEMS = [label_smoothing_loss, warmup_rate, beam_search, Transformer, train, translate]

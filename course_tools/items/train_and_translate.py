"""Two items of exercise 12: a training loop to write, and a translator with a bug to find."""

import functools
import math

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

from course_lib import training

from ..judging.draw import ATTEMPTS, decimal, different, whole
from ..judging.probes import SmallModel, call_and_translate
from ..judging.spec import Item, normal

IN_WARMUP, IN_DECODING = "Warm-up", "Decoding, one token at a time"


# ---------------------------------------------------------------- train

def _loop_inputs(generator):
    """In each trial some gradients are clipped and others are not: the batches alternate in scale."""
    def draw(B, d, d_out, steps, mode, batches_in):
        W, b = normal(generator, d, d_out), normal(generator, d_out)
        g = 1 + normal(generator, d_out, scale=0.3)
        batches = []
        for step in range(steps):
            scale = 2.0 if step % 2 == 0 else 0.25
            x = scale * normal(generator, B + step % 2, d)
            batches.append([x, _forward(x, W, b, g) - scale * (0.6 + normal(generator, len(x), d_out).abs())])
        norms = [_norm(batch, W, b, g) for batch in batches]
        return {"W": W, "b": b, "g": g, "mode": mode, "batches": batches, "batches_in": batches_in,
                "lr": decimal(generator, 0.4, 0.6), "peak": decimal(generator, 0.2, 0.3),
                "max_norm": round(math.sqrt(min(norms) * max(norms)), 2)}
    sizes = [different(generator, 3, 2, 6) for _ in range(3)]
    equal = whole(generator, 3, 5)
    return [draw(*sizes[0], 4, "eval", "a list"), draw(*sizes[1], whole(generator, 5, 8), "train", "a generator"),
            draw(*sizes[2], 3, "eval", "a generator"), draw(equal, equal, equal, equal, "eval", "a list")]


def _forward(x, W, b, g):
    return SmallModel(W, b, g)(x).detach()


@torch.enable_grad()
def _norm(batch, *weights):
    """The norm of the whole gradient of a batch before the first step."""
    model = SmallModel(*weights)
    (model(batch[0]) - batch[1]).pow(2).mean().backward()
    return math.sqrt(sum(float(value.grad.pow(2).sum()) for value in model.parameters()))


train = Item("train", 3, _loop_inputs, training.train,
             ("the list of losses", "the list that says which losses keep their graph",
              "the list of learning rates, both groups at each optimizer.step()", "W after training",
              "b after training", "g after training"), IN_WARMUP, gradients=False, probe="loop", kind="transfer")


class _Loop:
    """`train` in steps; each mistake exchanges some of them."""

    order = ("rate", "loss", "zero", "backward", "clip", "step")
    first, at_the_end = 1, ()

    def __init__(self, model, batches, optimizer, rate, loss, max_norm):
        self.model, self.batches, self.optimizer, self.max_norm = model, batches, optimizer, max_norm
        self.given_rate, self.given_loss, self.losses = rate, loss, []
        self.initial = [group["lr"] for group in optimizer.param_groups]

    def run(self):
        self.prepare()
        for number, batch in enumerate(self.all_batches(), start=self.first):
            self.number, self.batch = number, batch
            for name in self.order:
                getattr(self, name)()
            self.losses.append(self.kept())
        for name in self.at_the_end:
            getattr(self, name)()
        return self.result()

    def prepare(self):
        self.model.train()

    def all_batches(self):
        return self.batches

    def rate(self):
        for group in self.optimizer.param_groups:
            group["lr"] = self.given_rate(self.number)

    def loss(self):
        self.error = self.given_loss(self.model, self.batch)

    def zero(self):
        self.optimizer.zero_grad()

    def backward(self):
        self.error.backward()

    def clip(self):
        clip_grad_norm_(self.model.parameters(), self.max_norm)

    def step(self):
        self.optimizer.step()

    def kept(self):
        return self.error.item()

    def result(self):
        return self.losses


def _loop(name, sentence, **steps):
    """Register a training loop with some of its steps exchanged."""
    kind = type(name, (_Loop,), steps)

    def answer(*given):
        return kind(*given).run()
    answer.__name__ = name
    train.mistake(sentence)(answer)


def _rates():
    def every_group(new):
        def rate(self):
            for number, group in enumerate(self.optimizer.param_groups):
                group["lr"] = new(self, number, group["lr"])
        return rate

    def first_group(self):
        self.optimizer.param_groups[0]["lr"] = self.given_rate(self.number)
    _loop("rate_not_set", "The learning rate is never set, so the optimizer keeps the one it began with. Set group[\"lr\"] = rate(step) before each step.",
          order=("loss", "zero", "backward", "clip", "step"))
    _loop("rate_from_step_0", "The steps are counted from 0. The first batch is step 1, so it is trained with rate(1).", first=0)
    _loop("rate_one_step_ahead", "Each step uses the rate of the step after it. The first batch is step 1, so it is trained with rate(1).", first=2)
    _loop("rate_set_once", "Every step uses rate(1). The rate changes: set it anew, to rate(step), before each step.",
          rate=every_group(lambda self, number, lr: self.given_rate(1)))
    _loop("rate_after_the_step", "The rate is set after optimizer.step(), so each step uses the one of the step before. Set it first.",
          order=("loss", "zero", "backward", "clip", "step", "rate"))
    _loop("rate_of_the_first_group", "Only the first group of parameters gets the rate. An optimizer may have several: go through all of optimizer.param_groups.",
          rate=first_group)
    _loop("rate_multiplied", "The learning rate is multiplied by rate(step) at every step. rate(step) is the learning rate itself: set group[\"lr\"] to it.",
          rate=every_group(lambda self, number, lr: lr * self.given_rate(self.number)))
    _loop("rate_times_the_first", "rate(step) is multiplied by the rate that the optimizer began with, as LambdaLR does. Here rate(step) is the learning rate itself.",
          rate=every_group(lambda self, number, lr: self.initial[number] * self.given_rate(self.number)))


def _gradients():
    _loop("gradients_not_zeroed", "The gradients are not set to zero, so those of earlier batches are added to each step. Call optimizer.zero_grad() for every batch, before backward().",
          order=("rate", "loss", "backward", "clip", "step"))
    _loop("parameters_never_change", "The optimizer steps, but the parameters never change: there are no gradients when it does. Either backward() is missing, or zero_grad() stands between backward() and step().",
          order=("rate", "loss", "zero", "step"))
    _loop("step_missing", "optimizer.step() is never called, so the model learns nothing.", order=("rate", "loss", "zero", "backward", "clip"))
    _loop("step_before_backward", "The optimizer steps before the gradients are computed, so each step uses those of the batch before. First backward(), then step().",
          order=("rate", "loss", "step", "zero", "backward", "clip"))
    _loop("one_step_at_the_end", "The optimizer steps once, after the last batch, with the gradients of all batches added up. Take one step for each batch.",
          order=("rate", "loss", "backward"), at_the_end=("clip", "step"))
    _loop("first_batch_only", "The loop ends after the first batch. Is the return inside the loop?",
          all_batches=lambda self: list(self.batches)[:1])
    _loop("sign_turned", "The parameters move along the gradient, so the loss grows. Call backward() on the loss itself, not on its negative.",
          backward=lambda self: (-self.error).backward())


def _clips():
    def each_tensor(self):
        for parameter in self.model.parameters():
            clip_grad_norm_([parameter], self.max_norm)

    def each_group(self):
        for group in self.optimizer.param_groups:
            clip_grad_norm_(group["params"], self.max_norm)

    def values(self):
        clip_grad_value_(self.model.parameters(), self.max_norm)

    def always(self):
        norm = math.sqrt(sum(float(value.grad.pow(2).sum()) for value in self.model.parameters()))
        for value in self.model.parameters():
            value.grad *= self.max_norm / norm

    def to_one(self):
        clip_grad_norm_(self.model.parameters(), 1.0)
    _loop("steps_unclipped", "optimizer.step() uses gradients that are not clipped. Clip them after backward() and before step(): before, there is nothing to clip, and later is too late.",
          order=("rate", "loss", "zero", "backward", "step"))
    _loop("clips_each_tensor", "Each parameter's gradient is clipped by its own norm, which changes the direction of the step. Take one norm over all gradients together.",
          clip=each_tensor)
    _loop("clips_each_group", "Each group's gradients are clipped by the group's norm. Take one norm over the gradients of all parameters together.", clip=each_group)
    _loop("clips_values", "Each number of the gradient is cut off at max_norm. Scale the whole gradient instead, so that its direction stays: clip_grad_norm_.", clip=values)
    _loop("small_gradients_scaled_up", "The gradients are always scaled to max_norm, so small ones grow. Clipping only shortens those that are longer.", clip=always)
    _loop("max_norm_taken_as_1", "The gradients are clipped to norm 1, whatever max_norm is.", clip=to_one)


def _modes():
    def evaluate(self):
        self.model.eval()

    def nothing(self):
        pass
    _loop("evaluation_mode_left_on", "The model is trained in the mode it comes in, here evaluation mode, in which dropout does nothing. Switch to training mode before the loop.",
          prepare=nothing)
    _loop("evaluation_mode_switched_on", "The model is trained in evaluation mode, in which dropout does nothing. Switch to training mode before the loop.", prepare=evaluate)


def _losses():
    def by_number(self):
        return [self.batches[number] for number in range(len(self.batches))]

    def anew(self):
        with torch.no_grad():
            return self.given_loss(self.model, self.batch).item()

    def added_up(self):
        return self.error.item() + (self.losses[-1] if self.losses else 0.0)
    _loop("losses_keep_their_graph", "The losses in the list are tensors, and each keeps the whole graph of its batch in memory. Keep a plain number of each: loss.item().",
          kept=lambda self: self.error)
    _loop("losses_are_tensors", "The losses in the list are tensors. Return floats: loss.item().", kept=lambda self: self.error.detach())
    _loop("losses_in_one_tensor", "The losses are returned as one tensor. Return a list of floats.", result=lambda self: torch.tensor(self.losses))
    _loop("mean_of_the_losses", "The mean of the losses is returned. Return the list, one loss for each batch.",
          result=lambda self: sum(self.losses) / len(self.losses))
    _loop("sum_of_the_losses", "The sum of the losses is returned. Return the list, one loss for each batch.", result=lambda self: sum(self.losses))
    _loop("last_loss_only", "Only the last loss is returned. Return the list, one loss for each batch.", result=lambda self: self.losses[-1])
    _loop("loss_after_the_step", "The losses are computed again after each step. Keep the loss that the step was made with, which costs nothing more.", kept=anew)
    _loop("losses_added_up", "Each entry is the sum of all losses so far. Append the loss of the batch alone.", kept=added_up)
    _loop("batches_by_number", "The batches are taken by number, with len() or [ ], which works for a list and not for a generator. Go through them with a for loop.", all_batches=by_number)


for _register in (_rates, _gradients, _clips, _modes, _losses):
    _register()


# ---------------------------------------------------------------- translate

def _translation_inputs(generator):
    return _translations(generator.initial_seed())


@functools.lru_cache(maxsize=8)
def _translations(seed):
    """Models, drawn until every mistake has shown."""
    generator = torch.Generator().manual_seed(seed)

    def draw(d, words, vocab, lengths, max_len, mode):
        bos_id, eos_id = different(generator, 2, 0, vocab)
        W = normal(generator, d, vocab)
        W[:, bos_id] = 0
        return {"S": normal(generator, words, d), "E": normal(generator, vocab, d), "W": W, "mode": mode,
                "seed": whole(generator, 0, 10 ** 6),
                "sentences": [torch.randint(words, (length,), generator=generator).tolist() for length in lengths],
                "bos_id": bos_id, "eos_id": eos_id, "max_len": max_len}

    def trials():
        equal = whole(generator, 5, 7)
        return [draw(16, *different(generator, 2, 6, 10), different(generator, 4, 2, 7), whole(generator, 6, 9), "train"),
                draw(12, *different(generator, 2, 6, 10), different(generator, 3, 2, 7), whole(generator, 4, 6), "eval"),
                draw(14, *different(generator, 2, 6, 10), [whole(generator, 2, 6)], whole(generator, 6, 9), "train"),
                draw(equal, equal, equal, [equal] * equal, equal, "train")]
    for _ in range(ATTEMPTS):
        found = trials()
        if _shows_every_mistake(found):
            return found
    raise RuntimeError(f"translate: {ATTEMPTS} draws tell not all of its mistakes apart")


def _shows_every_mistake(trials):
    right = [call_and_translate(translate.reference, trial) for trial in trials]
    lengths = {len(one) == trial["max_len"] for trial, rows in zip(trials, right, strict=True) for one in rows}
    if lengths != {True, False} or not right[0][0]:
        return False
    answers = [translate.planted.answer, *(mistake.answer for mistake in translate.mistakes.values())]
    results = [str([call_and_translate(answer, trial) for trial in trials]) for answer in answers]
    return len({str(right), *results}) == len(results) + 1


def _translate(model, sentences, bos_id, eos_id, max_len):
    model.eval()
    return _greedy(model, sentences, bos_id, eos_id, max_len)


def _greedy(model, sentences, bos_id, eos_id, max_len):
    """Greedy decoding in the mode that the model is in."""
    translations = []
    for sentence in sentences:
        source, tokens = torch.tensor([sentence]), [bos_id]
        for _ in range(max_len):
            with torch.no_grad():
                logits = model(source, torch.tensor([tokens]))               # (1, t, vocab)
            token = int(logits[0, -1].argmax())
            if token == eos_id:
                break
            tokens.append(token)
        translations.append(tokens[1:])
    return translations


translate = Item("translate", 2, _translation_inputs, _translate, ("the list of translations",), IN_DECODING,
                 gradients=False, probe="translated")


def _twice(answer, trial):
    """The first sentence of a trial, given twice: dropout draws until the translations differ."""
    for seed in range(trial["seed"], trial["seed"] + ATTEMPTS):
        first, second = call_and_translate(answer, {**trial, "sentences": trial["sentences"][:1] * 2, "seed": seed})
        if first != second:
            break
    return (f"The same sentence, given twice in one call, gets two translations: {first} and {second}. Greedy decoding with a "
            "trained model gives the same one every time.")


@translate.plant("The model stays in training mode, so dropout goes on while it translates. torch.no_grad() switches off the gradients, not dropout: model.eval() is missing.", _twice)
def _in_training_mode(model, sentences, bos_id, eos_id, max_len):
    return _greedy(model, sentences, bos_id, eos_id, max_len)


class _Translation:
    """`translate` in steps; each mistake exchanges some of them."""

    def __init__(self, model, sentences, bos_id, eos_id, max_len):
        self.model, self.sentences, self.bos_id, self.eos_id, self.max_len = model, sentences, bos_id, eos_id, max_len
        self.tokens = []

    @torch.no_grad()
    def run(self):
        self.model.eval()
        return self.result([self.cut(self.words(sentence)) for sentence in self.chosen()])

    def chosen(self):
        return self.sentences

    def words(self, sentence):
        """All tokens from <bos> on, with the <eos> that ended them."""
        tokens = self.begin()
        for _ in range(self.last()):
            logits = self.model(torch.tensor([self.read(sentence)]), torch.tensor([self.inputs(tokens)]))
            tokens.append(self.pick(logits[0]))
            if self.ends(tokens[-1]):
                break
        return tokens

    def begin(self):
        return [self.bos_id]

    def last(self):
        return self.max_len

    def read(self, sentence):
        return sentence

    def inputs(self, tokens):
        return tokens

    def pick(self, logits):
        return int(logits[-1].argmax())

    def ends(self, token):
        return token == self.eos_id

    def cut(self, tokens):
        return tokens[1:-1] if tokens[-1] == self.eos_id else tokens[1:]

    def result(self, translations):
        return translations


def _translation(name, sentence, **steps):
    """Register a translator with some of its steps exchanged."""
    kind = type(name, (_Translation,), steps)

    def answer(*given):
        return kind(*given).run()
    answer.__name__ = name
    translate.mistake(sentence)(answer)


def _decoding():
    def grows(self):
        """The tokens of earlier sentences stay in front, without <eos>."""
        self.tokens = self.tokens[:-1] if self.tokens[-1:] == [self.eos_id] else self.tokens or [self.bos_id]
        return self.tokens

    def later_in_training_mode(self, sentence):
        tokens = _Translation.words(self, sentence)
        self.model.train()
        return tokens
    _translation("eos_kept_in_translations", "The translations contain <eos>. Leave it out: it is a signal, not a word.",
                 cut=lambda self, tokens: tokens[1:])
    _translation("bos_kept_in_translations", "The translations begin with <bos>. Leave it out: it is only the first input.",
                 cut=lambda self, tokens: [self.bos_id, *_Translation.cut(self, tokens)])
    _translation("eos_does_not_end", "<eos> does not end a translation here. Stop at it.",
                 ends=lambda self, token: False, cut=lambda self, tokens: tokens[1:])
    _translation("one_token_short", "A translation that <eos> does not end has one token too few: max_len tokens, <bos> not counted. Is its last one cut off, or is the loop a step short?", last=lambda self: self.max_len - 1)
    _translation("one_token_too_many", "A translation that <eos> does not end has one token too many: max_len tokens, <bos> not counted.", last=lambda self: self.max_len + 1)
    _translation("translation_never_ends", "Nothing but <eos> ends a translation, and it may never come. Stop after max_len tokens, too.", last=lambda self: 10 ** 6)
    _translation("first_position_read", "Every token is the one predicted after <bos>: the first position of the logits is read, or the model is given <bos> alone. Give it all tokens so far, and read the last position.",
                 pick=lambda self, logits: int(logits[0].argmax()))
    _translation("least_likely_token", "The least likely token is taken. Take the one with the largest logit.", pick=lambda self, logits: int(logits[-1].argmin()))
    _translation("only_the_last_token_given", "The model is given the last token alone. Give it all tokens so far, from <bos> on.",
                 inputs=lambda self, tokens: tokens[-1:])
    _translation("bos_not_given", "<bos> is left out of the model's inputs once there are other tokens. The inputs begin with <bos>.",
                 inputs=lambda self, tokens: tokens[1:] or tokens)
    _translation("begins_with_eos", "The inputs begin with <eos>. They begin with <bos>.", begin=lambda self: [self.eos_id])
    _translation("tokens_kept_between_sentences", "The tokens of one translation are still there when the next begins. Each sentence begins with <bos> alone.",
                 begin=grows)
    _translation("source_reversed_for_translation", "The source is read backwards. Give it to the model as it is.", read=lambda self, sentence: sentence[::-1])
    _translation("first_sentence_only", "Only the first sentence is translated. Is the return inside the loop?", chosen=lambda self: self.sentences[:1])
    _translation("first_source_for_all", "Every translation is that of the first sentence.", read=lambda self, sentence: self.sentences[0])
    _translation("one_flat_list", "All tokens are in one list. Return a list for each sentence.", result=lambda self, found: [token for one in found for token in one])
    _translation("translations_as_tensors", "The translations are tensors. Return lists of ints.", result=lambda self, found: [torch.tensor(one) for one in found])
    _translation("tokens_as_tensors", "The tokens are tensors. Convert each to an int, with int(...) or .item().",
                 result=lambda self, found: [[torch.tensor(token) for token in one] for one in found])
    _translation("training_mode_from_the_second_on", "Only the first sentence is right: after it the model is put into training mode. If you restore its mode, do so after the last sentence.",
                 words=later_in_training_mode)


_decoding()

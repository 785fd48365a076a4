"""Training the learner's Transformer on English to Korean with the learner's own loop, in half a minute."""

import linecache
import sys
import traceback
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from tqdm.auto import tqdm

from course_lib.data.batches import batches
from course_lib.data.english_korean import pairs
from course_lib.data.vocab import PAD
from course_lib.runtime import seed as set_seed
from course_lib.runtime import static

from ..answers.collect import CollectedAnswer, of_this_notebook
from ..items import registry
from .translator import BEAM, ENGLISH, KOREAN, Translator

STEM = "12_transformer"
GOAL = 0.95
SIZES = {"d_model": 64, "h": 4, "d_ff": 256, "N": 2}
WARMUP, SMOOTHING, BATCH, MAX_NORM = 200, 0.1, 32, 1.0
CORPUS, HELD_OUT, LONGEST = 40_000, 300, 12  # sentence pairs; the longest has so many English words
GIVEN = ("_Watched.", "_train.")  # what the training loop calls, apart from the model
SHOWN = ("they are cats", "I am a student")
SAMPLES = ("they are cats", "the teacher reads a book and the students like cats")
SAMPLED = (25, 100, 200, 400, 800, 1600)  # the steps after which SAMPLES are translated: most changes early


class CapstoneError(Exception):
    """What went wrong, and in which part.  In a notebook it is shown without a traceback."""

    def _render_traceback_(self):
        return str(self).splitlines()


@dataclass
class Result:
    """The result of training.  losses: one for each step.  right: the fraction of held-out sentences that are
    translated exactly.  parts: the CollectedAnswer of each item.  ran: the names of the learner's parts that
    the model runs."""

    translator: Translator
    losses: list
    right: float
    parts: list
    ran: set

    def translate(self, sentence, beam=1):
        """The Korean translation of an English sentence, by greedy decoding or, if beam is larger than 1, by
        beam search.  Raises ValueError if the sentence is outside the grammar."""
        return self.translator.write(sentence, beam=beam)

    def compared(self, sentence):
        """The greedy translation, and behind it that of beam search if it is another one."""
        greedy, searched = self.translate(sentence), self.translate(sentence, beam=BEAM)
        return greedy if searched == greedy else f"{greedy} (with a beam of {BEAM}: {searched})"


def train(parts, Transformer, label_smoothing_loss, warmup_rate, beam_search=None, loop=None, steps=1600,
          seed=0):
    """Assemble the model, train it, and translate held-out sentences.  Returns a Result.

    parts: from `gather`.  The others: the answers to exercise 12, `loop` being the one called train.  If one
    of them does not pass its check, the library's is used, and a line says so.  The library's Transformer is
    made of the library's blocks.

    Raises CapstoneError if an error occurs (naming the part in which it occurred), and if the result is below
    GOAL (saying how far it is).
    """
    seed = set_seed(seed)
    collected = dict(parts.collected)
    for name, answer in {"Transformer": Transformer, "label_smoothing_loss": label_smoothing_loss,
                         "warmup_rate": warmup_rate, "beam_search": beam_search, "train": loop}.items():
        part = _part(registry.items(STEM)[name], answer)
        collected[part.name] = part
        print(part.line)
    answers = {name: part.answer for name, part in collected.items()}
    with _pointing(list(collected.values())):
        return _train(answers, list(collected.values()), steps, seed)


def _part(item, answer):
    """The CollectedAnswer for an answer to exercise 12; for None, the library's."""
    if answer is None:
        return CollectedAnswer(item.name, STEM, item.reference, "it was not passed to capstone.train")
    return of_this_notebook(STEM, item, answer)


def _owner(code, parts):
    """The learner's part that this code belongs to, or None."""
    nearby = [part for part in parts if part.mine and part.file == code.co_filename]
    named = [part for part in nearby if part.name == code.co_qualname.split(".")[0]]
    return (named or nearby)[0] if named or len(nearby) == 1 else None


@contextmanager
def _pointing(parts):
    """Turn an error in a learner's part into a CapstoneError that names the exercise.

    The learner's training loop calls functions of this file: what goes wrong in these is not the loop's.
    """
    try:
        yield
    except CapstoneError:
        raise
    except Exception as problem:
        for frame, line in reversed(list(traceback.walk_tb(problem.__traceback__))):
            part = _owner(frame.f_code, parts)
            if frame.f_code.co_filename == __file__ and frame.f_code.co_qualname.startswith(GIVEN):
                break
            if part:
                raise CapstoneError(f"{type(problem).__name__} in your {part.name}: {problem}\n"
                                    f"    Line: {linecache.getline(part.file, line).strip()}\n"
                                    f"    It is in `{part.name}`, exercises/{part.stem}.ipynb.") from None
        raise


def _train(use, parts, steps, seed):
    generator = torch.Generator().manual_seed(1000 + seed)
    held_out = pairs(HELD_OUT, generator, longest=LONGEST, depth=0)
    kept = {pair.english for pair in held_out}
    corpus = [pair for pair in pairs(CORPUS, generator, longest=LONGEST, depth=0)
              if pair.english not in kept]
    torch.manual_seed(seed)
    model = use["Transformer"](len(ENGLISH), len(KOREAN), **SIZES)
    _use_norm(model, use["layer_norm"])
    translator = Translator(model, use["greedy_decode"], use["beam_search"])
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)    # section 5.3
    draw = batches([pair.english for pair in corpus], BATCH, torch.Generator().manual_seed(seed))
    given = (translator.tensors([corpus[row] for row in next(draw)]) for _ in range(steps))
    ran = set()
    with tqdm(total=steps, desc="training", disable=static(), leave=False) as bar, _noting(ran, parts):
        watched = _Watched(use, translator, steps, bar)
        losses = use["train"](model, given, optimizer, watched.rate, watched.loss, MAX_NORM)
        watched.after_a_step()
    model.eval()
    with _noting(ran, parts):
        translator.write(SHOWN[0])
        translator.write(SHOWN[0], beam=BEAM)
    result = Result(translator, losses, translator.right(held_out), parts, ran)
    if result.right < GOAL:
        raise CapstoneError(f"{result.right:.0%} of {len(held_out)} held-out sentences are right to the last "
                            f"word, but the goal is {GOAL:.0%}. Train longer: train(..., steps={2 * steps})")
    print(f"✓ at least {GOAL:.0%} of {len(held_out)} held-out sentences are right to the last word")
    return result


class _Watched:
    """The rate and the loss that the training loop is given; they show how far it is."""

    def __init__(self, use, translator, steps, bar):
        self.use, self.translator, self.steps, self.bar = use, translator, steps, bar
        self.step, self.value = 0, None

    def rate(self, step):
        """Warm-up, then a linear decay to 0, which the paper does not use: it makes up for the few steps."""
        return float(self.use["warmup_rate"](step, SIZES["d_model"], WARMUP) * (1 - step / self.steps))

    def loss(self, model, batch):
        """The smoothed loss of (src, tgt).  The loop calls it once for each step."""
        if self.step:
            self.after_a_step()
        src, tgt = batch
        loss = self.use["label_smoothing_loss"](model(src, tgt, PAD), tgt[:, 1:], SMOOTHING, PAD)
        self.step, self.value = self.step + 1, loss.item()
        return loss

    def after_a_step(self):
        """Show the loss, and at some steps what the model translates now; after the first, note no calls."""
        sys.setprofile(None)
        if (self.step in SAMPLED or self.step == self.steps) and not static():
            self.bar.write(_samples(self.translator, self.step))
        self.bar.set_postfix(loss=f"{self.value:.3f}", refresh=False)
        self.bar.update()


def _samples(translator, step):
    """The translations of SAMPLES so far, one per line, cut short: an untrained model repeats itself."""
    heads = [f"step {step:4d}  ", " " * 11]
    return "\n".join(f"{head}{sentence} → {translator.write(sentence, longest=20)}"
                     for head, sentence in zip(heads, SAMPLES, strict=True))


class _OwnNorm(nn.LayerNorm):
    """A layer norm computed by the learner's function, with the weights of the original module."""

    def forward(self, x):
        return self.function(x, self.weight, self.bias, self.eps)


def _use_norm(model, layer_norm):
    """Make every nn.LayerNorm of the model compute with `layer_norm`."""
    for part in model.modules():
        if type(part) is nn.LayerNorm:
            part.__class__, part.function = _OwnNorm, layer_norm


@contextmanager
def _noting(ran, parts):
    """Add to `ran` the names of the learner's parts whose code runs meanwhile."""
    def note(frame, event, _):
        part = event == "call" and _owner(frame.f_code, parts)
        if part:
            ran.add(part.name)

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)

"""Training the learner's Transformer on English to Korean, in about half a minute."""

import linecache
import sys
import traceback
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn
from tqdm.auto import tqdm

from .. import checks
from ..answers.parts import of_this_notebook
from ..data.batches import batches
from ..data.english_korean import pairs
from ..data.vocab import PAD
from ..runtime import seed as set_seed
from ..runtime import static
from .translator import ENGLISH, KOREAN, Translator

STEM = "12_transformer"
GOAL = 0.95
SIZES = {"d_model": 64, "h": 4, "d_ff": 256, "N": 2}
WARMUP, SMOOTHING, BATCH = 200, 0.1, 32
CORPUS, HELD_OUT, LONGEST = 40_000, 300, 12  # sentence pairs; the longest has so many English words
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
    translated exactly.  parts: the Part of each item.  ran: the names of the learner's parts that the model
    runs."""

    translator: Translator
    losses: list
    right: float
    parts: list
    ran: set

    def translate(self, sentence):
        """The Korean translation of an English sentence.  Raises ValueError if it is outside the grammar."""
        return self.translator.write(sentence)


def train(parts, Transformer, label_smoothing_loss, warmup_rate, steps=1600, seed=0):
    """Assemble the model, train it, and translate held-out sentences.  Returns a Result.

    parts: from `gather`.  Transformer, label_smoothing_loss, warmup_rate: the answers to exercise 12.  If one
    of the latter two does not pass its check, the library's is used, and a line says so.

    Raises CapstoneError if the Transformer itself does not pass, if an error occurs (naming the part in which
    it occurred), and if the result is below GOAL (saying how far it is).
    """
    seed = set_seed(seed)
    found = dict(parts.parts)
    for answer in (Transformer, label_smoothing_loss, warmup_rate):
        part = of_this_notebook(STEM, checks.items(STEM)[answer.__name__], answer)
        if part.name == "Transformer" and not part.mine:
            raise CapstoneError(f"The capstone needs your own Transformer: {part.why}")
        found[part.name] = part
        print(part.line)
    with _pointing(list(found.values())):
        return _train({name: part.answer for name, part in found.items()}, list(found.values()), steps, seed)


def _owner(code, parts):
    """The learner's part that this code belongs to, or None."""
    nearby = [part for part in parts if part.mine and part.file == code.co_filename]
    named = [part for part in nearby if part.name == code.co_qualname.split(".")[0]]
    return (named or nearby)[0] if named or len(nearby) == 1 else None


@contextmanager
def _pointing(parts):
    """Turn an error in a learner's part into a CapstoneError that names the exercise."""
    try:
        yield
    except CapstoneError:
        raise
    except Exception as problem:
        for frame, line in reversed(list(traceback.walk_tb(problem.__traceback__))):
            part = _owner(frame.f_code, parts)
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
    translator = Translator(model, use["greedy_decode"])
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)    # section 5.3
    draw = batches([pair.english for pair in corpus], BATCH, torch.Generator().manual_seed(seed))
    losses, ran = [], set()
    with tqdm(total=steps, desc="training", disable=static(), leave=False) as bar:
        for step in range(1, steps + 1):
            src, tgt = translator.tensors([corpus[row] for row in next(draw)])
            with _noting(ran, parts) if step == 1 else nullcontext():
                # a linear decay to 0, which the paper does not use, makes up for the few steps
                rate = use["warmup_rate"](step, SIZES["d_model"], WARMUP) * (1 - step / steps)
                optimizer.param_groups[0]["lr"] = float(rate)
                loss = use["label_smoothing_loss"](model(src, tgt, PAD), tgt[:, 1:], SMOOTHING, PAD)
                losses.append(_update(model, optimizer, loss))
            if (step in SAMPLED or step == steps) and not static():
                bar.write(_samples(translator, step))
            bar.set_postfix(loss=f"{losses[-1]:.3f}", refresh=False)
            bar.update()
    model.eval()
    with _noting(ran, parts):
        translator.write(SHOWN[0])
    result = Result(translator, losses, translator.right(held_out), parts, ran)
    if result.right < GOAL:
        raise CapstoneError(f"{result.right:.0%} of {len(held_out)} held-out sentences are right to the last "
                            f"word, but the goal is {GOAL:.0%}. Train longer: train(..., steps={2 * steps})")
    print(f"✓ at least {GOAL:.0%} of {len(held_out)} held-out sentences are right to the last word")
    return result


def _samples(translator, step):
    """The translations of SAMPLES so far, one per line, cut short: an untrained model repeats itself."""
    heads = [f"step {step:4d}  ", " " * 11]
    return "\n".join(f"{head}{sentence} → {translator.write(sentence, longest=20)}"
                     for head, sentence in zip(heads, SAMPLES, strict=True))


def _update(model, optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


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

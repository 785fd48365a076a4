"""How fast the Transformer trains and decodes: ours and two others, in alternation, on one thread.

    python -m course_tools.benchmarks.transformer [--rounds 5]

All have the same weights and see the same batch.  Prints tokens a second, each as a multiple of
torch.nn.Transformer's, and which share of the machine's matrix-product peak a training step reaches.
Training is timed once more with torch.set_float32_matmul_precision("medium"): matrix products may then use
faster units of the processor (bfloat16), where there are such; otherwise nothing changes.
"""

import argparse
import functools
import warnings

import torch
import torch.nn.functional as F

from course_lib.data.vocab import BOS, PAD
from course_lib.decoding import greedy_batch
from course_lib.models.transformer import Transformer
from course_lib.runtime import race, seed

from . import transformer_baselines

SIZES = {"vocab_x": 200, "vocab_y": 200, "d_model": 128, "h": 4, "d_ff": 512, "N": 2}
BATCH, LENGTH, DROPOUT = 64, 24, 0.1
EXACT, FAST = "highest", "medium"  # precisions of matrix products, by torch's names
NOBODY = -1  # an <eos> that never comes: all write equally many words


def models(dropout=DROPOUT):
    """{name: model}, all with the weights of ours."""
    ours = Transformer(**SIZES, dropout=dropout)
    return {"torch.nn.Transformer": transformer_baselines.TorchTransformer(ours, dropout),
            "Annotated manner": transformer_baselines.Annotated(ours, dropout), "ours": ours}


def batch(size=BATCH, length=LENGTH):
    """src (size, length), a third of its rows padded; tgt (size, length + 1)."""
    generator = torch.Generator().manual_seed(0)
    src = torch.randint(4, SIZES["vocab_x"], (size, length), generator=generator)
    tgt = torch.randint(4, SIZES["vocab_y"], (size, length + 1), generator=generator)
    if size > 2:
        src[::3, -length // 4:] = PAD
    return src, tgt


def greedy(model, src, length):
    """(B, length) words, the likeliest each time."""
    if isinstance(model, transformer_baselines.Baseline):
        return model.greedy(src, length)
    with torch.inference_mode():
        return torch.tensor(greedy_batch(model.step, model.begin(src), BOS, NOBODY, length, len(src)))


def train_step(model, optimizer, src, tgt):
    """One step as in training, label smoothing and Adam included."""
    logits = model(src, tgt)
    loss = F.cross_entropy(logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def training(rounds):
    """{precision: {name: seconds}} of a training step; "peak": of its matrix products alone, at the
    machine's best.
    """
    src, tgt = batch()
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    works = {"peak": lambda: a @ b}
    for name, model in models().items():
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
        works[name] = functools.partial(train_step, model.train(), optimizer, src, tgt)
    found = race({(precision, name): functools.partial(at, precision, work)
                  for name, work in works.items() for precision in (EXACT, FAST)}, rounds)
    share = products(src.size(0), src.size(1)) / (2 * 1024 ** 3)
    return {precision: {name: found[precision, name] * (share if name == "peak" else 1) for name in works}
            for precision in (EXACT, FAST)}


def largest_difference(model, other):
    """The largest difference of logits: the model's with fast products, the other's in float32."""
    src, tgt = batch()
    with torch.no_grad():
        return (at(FAST, lambda: model.eval()(src, tgt)) - other.eval()(src, tgt)).abs().max().item()


def at(precision, work):
    """What work() returns with matrix products of this precision."""
    torch.set_float32_matmul_precision(precision)
    try:
        return work()
    finally:
        torch.set_float32_matmul_precision(EXACT)


def products(B, n):
    """Floating-point operations of the matrix products in a training step, backward twice the forward."""
    d, f, N = SIZES["d_model"], SIZES["d_ff"], SIZES["N"]
    weights = N * (4 * d * d + 2 * d * f) + N * (8 * d * d + 2 * d * f) + d * SIZES["vocab_y"]
    scores = N * 3 * 2 * n * d                                        # a word against n words, twice, 3 times
    return 3 * 2 * B * n * (weights + scores)


def writing(size, length, rounds):
    """Seconds in which each writes `length` words for `size` sentences."""
    src, _ = batch(size)
    return race({name: functools.partial(greedy, model.eval(), src, length)
                 for name, model in models().items()}, rounds)


def show(title, found, tokens, base=None):
    """A line for each, as a multiple of torch's, there (found) or elsewhere (base)."""
    print(f"\n{title}")
    base = (base or found)["torch.nn.Transformer"]
    for name, seconds in found.items():
        if name != "peak":
            print(f"  {name:22} {tokens / seconds:9.0f} tokens/s   "
                  f"{base / seconds:5.2f} times torch.nn.Transformer")
    if "peak" in found:
        ours, torchs = (found["peak"] / found[name] for name in ("ours", "torch.nn.Transformer"))
        print(f"  matrix products alone, at this machine's peak: {ours:.0%} of our step, {torchs:.0%} of "
              f"torch's;\n  a step of nothing else would be {1 / torchs:.2f} times as fast as torch's")


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    rounds = options.parse_args().rounds
    warnings.filterwarnings("ignore", message=".*nested tensor")    # torch's own, of its own fast path
    seed(0)
    found = training(4 * rounds)
    title = f"Training, {BATCH} sentences of {LENGTH} words"
    show(f"{title}, float32 (goal: 1.7)", found[EXACT], BATCH * LENGTH)
    show(f"{title}, products at {FAST!r} precision, beside torch's in float32\n"
         "(goal where the processor has units for bfloat16: 2.2)", found[FAST], BATCH * LENGTH, found[EXACT])
    same = found[FAST]["torch.nn.Transformer"] / found[FAST]["ours"]
    print(f"  ours against torch's at {FAST!r} precision, too: {same:.2f}")
    each = models()
    difference = largest_difference(each["ours"], each["torch.nn.Transformer"])
    print(f"  ours at {FAST!r} precision and torch's in float32 give logits that differ by {difference:.0e}")
    for size, length, goal in ((64, 64, 9), (1, 64, 3)):
        show(f"Greedy writing, {size} sentence{'s' * (size > 1)} of {length} words (goal: {goal})",
             writing(size, length, rounds), size * length)


if __name__ == "__main__":
    main()

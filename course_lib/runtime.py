"""What every notebook sets first: seed, one thread, the static switch, the device."""

import os
import random
import sys
import time

import numpy as np
import torch


def seed(number):
    """Make every random draw repeat, on one thread.  Returns the seed used.

    number: an int.  COURSE_SEED in the environment is added to it: `make claims` runs each lesson
    under several seeds that way.

    One thread, because small models are faster on one than on two, and because sums over several
    threads round differently from machine to machine.
    """
    number = number + int(os.environ.get("COURSE_SEED", "0"))
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)
    torch.set_num_threads(1)
    return number


def static():
    """True where nobody is there to click: stored outputs and tests (COURSE_STATIC=1)."""
    return os.environ.get("COURSE_STATIC", "") not in ("", "0")


def device():
    """'cuda' where torch finds a GPU, otherwise 'cpu'."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def seconds(work, repeats=5):
    """The shortest of `repeats` runs of `work()`, in seconds: the least disturbed one."""
    return race({"": work}, repeats)[""]


def race(works, repeats=5):
    """`seconds` of several works that take turns, so that what disturbs the machine disturbs all of them.

    works: {name: function without arguments}  ->  {name: seconds}
    """
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def print_timing(text):
    """Print a measured time.  Silent in stored outputs, where it would differ at every run."""
    if not static():
        print(text)


def check_machine():
    """Print whether this machine has what the course needs, a line each, with advice where not."""
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    needs = [("Python 3.11 to 3.14", (3, 11) <= sys.version_info[:2] <= (3, 14),
              "install one of these, then make PYTHON=python3.12 distclean lab"),
             ("PyTorch 2.13", version == (2, 13),
              f"found {torch.__version__}; run make lab, which installs 2.13"),
             ("random numbers repeat", _draw() == _draw(), "restart the kernel (Kernel > Restart)"),
             ("one thread is set", torch.get_num_threads() == 1, "run the set-up cell with seed(0) first")]
    for need, holds, advice in needs:
        print(f"✓ {need}" if holds else f"✗ {need}: {advice}")


def _draw():
    return torch.rand(3, generator=torch.Generator().manual_seed(0)).tolist()

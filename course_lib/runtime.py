"""What every notebook sets up first: seed, one thread, the static switch, the device."""

import os
import random
import sys
import time

import numpy as np
import torch


def seed(number):
    """Make every random draw repeat, on one thread.  Returns the seed used.

    number: an int.  COURSE_SEED in the environment is added to it: `make findings` runs each lesson
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
    """True if nobody is there to click: for stored outputs and tests (COURSE_STATIC=1)."""
    return os.environ.get("COURSE_STATIC", "") not in ("", "0")


def device():
    """'cuda' if torch finds a GPU, otherwise 'cpu'."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def seconds(work, repeats=5):
    """The shortest of `repeats` runs of `work()`, in seconds: the least disturbed one."""
    return race({"": work}, repeats)[""]


def race(works, repeats=5, clock=None):
    """Time several functions in alternation, so that anything that disturbs the machine affects them all.

    works: {name: function without arguments}  ->  {name: seconds}.  clock: time.process_time counts the time
    that the processor spends on this process; the default is the time on the wall.
    """
    clock = clock or time.perf_counter
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            start = clock()
            work()
            best[name] = min(best[name], clock() - start)
    return best


def print_timing(text):
    """Print a measured time.  Prints nothing in stored outputs, where it would differ in every run."""
    if not static():
        print(text)


def check_machine():
    """Print, one line each, whether this machine has what the course needs, with advice if not."""
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

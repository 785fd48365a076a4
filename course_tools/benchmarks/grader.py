"""Grading speed: the same submissions with this grader and with others, in alternation.

    python -m course_tools.benchmarks.grader [--submissions 20] [--rounds 3] [--growth 20 500]

this grader   course grade: forked kernels, in the sandbox
bare forks    the limit: torch imported once, a fork for each notebook, answers run and compared, no more
Jupyter       this grader with a Jupyter kernel for each notebook
nbval         pytest --nbval-lax on the notebooks, with their check cells
nbgrader      nbgrader autograde, if it is installed

Prints the median times, and each as a multiple of this grader's; with --growth also what one submission
costs in a small class and in a large one, and the memory of the largest process.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from ..items import registry
from . import grader_baselines as baselines


def race(graders, folder, rounds):
    """{name: seconds of each round}"""
    seconds = {name: [] for name in graders}
    for number in range(rounds):
        for name, command in graders.items():
            ready = command(folder, folder / f"{name}-{number}")
            begun = time.perf_counter()
            done = subprocess.run(ready, cwd=folder, env=baselines.PATHS, capture_output=True, text=True)
            seconds[name].append(time.perf_counter() - begun)
            last_line = (done.stdout.strip() or done.stderr.strip() or "-").splitlines()[-1][:60]
            print(f"round {number + 1}, {name}: {seconds[name][-1]:.1f} s ({last_line})", flush=True)
    return seconds


def compare(count, rounds, nbgrader):
    """Run the race with so many submissions, and print what came of it."""
    graders = {"this grader": baselines.this_grader, "bare forks": baselines.bare_forks,
               "Jupyter": baselines.jupyter, "nbval": baselines.nbval}
    with tempfile.TemporaryDirectory(prefix="course-bench-") as place:
        folder = Path(place)
        handed_in = baselines.hand_in(folder, count)
        if nbgrader:
            graders["nbgrader"] = baselines.Nbgrader(nbgrader, folder, handed_in)
        else:
            print("nbgrader is not installed: left out")
        found = race(graders, folder, rounds)
    seconds = {name: statistics.median(all_of_it) for name, all_of_it in found.items()}
    ours = seconds["this grader"]
    print(f"\n{count} notebooks, {len(registry.items(baselines.STEM))} items; median of {rounds}\n")
    for name, median in seconds.items():
        print(f"{name:12} {median:7.1f} s   {1000 * median / count:6.0f} ms each   "
              f"{median / ours:5.1f} times this grader")
    print(f"\nthis grader takes {ours / seconds['bare forks']:.1f} times the limit (goal: at most 1.4)"
          + (f", nbgrader {seconds['nbgrader'] / ours:.1f} times this grader (goal: at least 18)"
             if nbgrader else ""))


def growth(counts):
    """Print what a submission costs in classes of these sizes, start aside, and the largest process."""
    begun = None
    for count in sorted({1, *counts}):
        with tempfile.TemporaryDirectory(prefix="course-bench-") as place:
            folder = Path(place)
            baselines.hand_in(folder, count)
            wall, processor, memory = _cost(baselines.this_grader(folder, folder / "out"))
        if begun is None:
            begun = wall, processor
            print(f"{count:4} notebook:  {wall:6.1f} s, the largest process {memory:.0f} MB")
        else:
            each = [1000 * (now - then) / (count - 1) for now, then in zip((wall, processor), begun)]
            print(f"{count:4} notebooks: {wall:6.1f} s, each {each[0]:.0f} ms more ({each[1]:.0f} ms of "
                  f"processor time), the largest process {memory:.0f} MB", flush=True)


def _cost(command):
    """(seconds, seconds of processor time of it and all that it started, MB of the largest of them)"""
    begun = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    usage = os.wait4(process.pid, 0)[2]
    process.returncode = 0
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--submissions", type=int, default=20)
    options.add_argument("--rounds", type=int, default=3, help="0: only --growth")
    options.add_argument("--nbgrader", default=shutil.which("nbgrader", path=baselines.PATHS["PATH"]),
                       metavar="COMMAND")
    options.add_argument("--growth", type=int, nargs="*", default=[], metavar="SUBMISSIONS")
    options = options.parse_args()
    if options.rounds:
        compare(options.submissions, options.rounds, options.nbgrader)
    if options.growth:
        growth(options.growth)


if __name__ == "__main__":
    main()

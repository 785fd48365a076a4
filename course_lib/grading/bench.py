"""How fast it grades: the same submissions with this grader and with others, in alternation.

    python -m course_lib.grading.bench [--submissions 20] [--rounds 3] [--nbgrader COMMAND]

this grader   course grade: forked kernels, in the sandbox
bare forks    the limit: torch imported once, a fork for each notebook, answers run and compared, no more
Jupyter       this grader with a kernel of Jupyter's for each notebook
nbval         pytest --nbval-lax on the notebooks, whose check cells say what they think
nbgrader      nbgrader autograde, if it is installed

Prints the median times, and each as a multiple of this grader's.
"""

import argparse
import copy
import inspect
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .. import checks, exercise

STEM = "01_long_term_dependency"


def notebooks(count):
    """`count` notebooks of exercise 01, each with its student: right, with named mistakes, and broken."""
    solution = exercise.read(exercise.ROOT / "solutions" / f"{STEM}.ipynb")
    wrong = [{name: _as_answer(name, mistake.answer)} for name, item in checks.items(STEM).items()
             for mistake in item.mistakes.values() if _stands_alone(mistake.answer)]
    broken = [{"rnn_step": "def rnn_step(x_t)\n    return x_t"}, {"lstm_step": "raise ValueError('no idea')"},
              {"gru_step": "def gru_step(*a):\n    return undefined"}, {"rnn_forward": ""}]
    for number in range(count):
        mistakes = wrong[7 * number % len(wrong)] | wrong[5 * number % len(wrong)]
        answers = [{}, mistakes, broken[number // 3 % len(broken)]][number % 3]
        made = copy.deepcopy(solution)
        for cell in made.cells:
            cell.source = answers.get(exercise.grade_id(cell), cell.source)
        yield f"student-{number:03}", made


def _stands_alone(answer):
    names = set(inspect.getclosurevars(answer).globals) | set(inspect.signature(answer).parameters)
    return names <= {"torch", *inspect.signature(answer).parameters}


def _as_answer(name, answer):
    source = inspect.getsource(answer)
    return source[source.index("def "):].replace(f"def {answer.__name__}", f"def {name}")


# ---------------------------------------------------------------- the graders

def this_grader(folder, out):
    return [sys.executable, "-m", "course_lib.cli", "grade", folder / "students", "--out", out]


def bare_forks(folder, out):
    return [sys.executable, "-m", "course_lib.grading.bench", "--forks", folder / "students"]


def jupyter(folder, out):
    return [sys.executable, "-m", "course_lib.grading.bench", "--jupyter", folder / "students"]


def nbval(folder, out):
    return [sys.executable, "-m", "pytest", "--nbval-lax", "-qp", "no:cacheprovider", folder / "students"]


class Nbgrader:
    """A course folder with the assignment made and the notebooks handed in; grading it is what is timed."""

    def __init__(self, command, folder, handed_in):
        self.command, self.course = command, folder / "nbgrader"
        subprocess.run([sys.executable, "-m", "course_lib.cli", "export", "nbgrader", self.course],
                       check=True, stdout=subprocess.DEVNULL)
        self.run("generate_assignment", STEM)
        for student, text in handed_in.items():
            place = self.course / "submitted" / student / STEM
            place.mkdir(parents=True)
            (place / f"{STEM}.ipynb").write_text(text, encoding="utf-8")

    def run(self, *arguments):
        subprocess.run([self.command, *arguments], cwd=self.course, check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def __call__(self, folder, out):
        shutil.copytree(self.course, out)
        return [self.command, "autograde", STEM, f"--CourseDirectory.root={out}"]


# ---------------------------------------------------------------- the limit

def grade_by_forks(folder):
    """Grade with nothing between: no kernel, no sandbox, no deadline, nothing written."""
    import torch

    from ..checks.judge import judge
    from .merge import merge
    from .question import question
    torch.set_num_threads(1)
    items = checks.items(STEM)
    asked = {name: question(item, 1) for name, item in items.items()}
    points = 0
    for path in sorted(Path(folder).rglob("*.ipynb")):
        inbox, outbox = os.pipe()
        child = os.fork()
        if not child:
            os.close(inbox)
            with open(outbox, "w") as file:
                json.dump(_observed(merge(path, STEM), asked), file)
            os._exit(0)
        os.close(outbox)
        with open(inbox) as file:
            seen = json.load(file)
        os.waitpid(child, 0)
        points += sum(judge(asked[name].item, asked[name].trials, seen[name], asked[name].observe).passed
                      for name in seen)
    print(points, "items pass")


def _observed(merged, asked):
    from ..checks.observe import observe
    names, seen = {}, {}
    for cell in merged.notebook.cells:
        if not exercise.grade_id(cell, "grade"):
            try:
                exec(cell.source, names)
            except Exception:
                continue
    for name, one in asked.items():
        if name in names:
            seen[name] = [observe(names[name], trial, one.item.probe, one.item.gradients)
                          for trial in one.trials]
    return seen


def grade_in_jupyter(folder):
    from . import submissions
    from .grade import Settings, grade_submission
    for one in submissions.find(folder):
        grade_submission(one, Settings(1, kernel="course_lib.grading.kernel:Kernel"))


# ---------------------------------------------------------------- the race

def race(graders, folder, rounds):
    """{name: seconds of each round}"""
    seconds = {name: [] for name in graders}
    for number in range(rounds):
        for name, command in graders.items():
            ready = command(folder, folder / f"{name}-{number}")
            begun = time.perf_counter()
            done = subprocess.run(ready, cwd=folder, capture_output=True, text=True)
            seconds[name].append(time.perf_counter() - begun)
            told = (done.stdout.strip() or done.stderr.strip() or "-").splitlines()[-1][:60]
            print(f"round {number + 1}, {name}: {seconds[name][-1]:.1f} s ({told})", flush=True)
    return seconds


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--submissions", type=int, default=20)
    asked.add_argument("--rounds", type=int, default=3)
    asked.add_argument("--nbgrader", default="nbgrader", metavar="COMMAND")
    for hidden in ("--forks", "--jupyter"):
        asked.add_argument(hidden, help=argparse.SUPPRESS)
    asked = asked.parse_args()
    if asked.forks or asked.jupyter:
        return grade_by_forks(asked.forks) if asked.forks else grade_in_jupyter(asked.jupyter)
    with tempfile.TemporaryDirectory(prefix="course-bench-") as place:
        folder, handed_in = Path(place), {}
        for student, made in notebooks(asked.submissions):
            path = folder / "students" / student / f"{STEM}.ipynb"
            path.parent.mkdir(parents=True)
            handed_in[student] = exercise.text(made)
            path.write_text(handed_in[student], encoding="utf-8")
        graders = {"this grader": this_grader, "bare forks": bare_forks, "Jupyter": jupyter, "nbval": nbval}
        if shutil.which(asked.nbgrader):
            graders["nbgrader"] = Nbgrader(asked.nbgrader, folder, handed_in)
        else:
            print("nbgrader is not installed: left out")
        seconds = {name: statistics.median(all_of_it)
                   for name, all_of_it in race(graders, folder, asked.rounds).items()}
    print(f"\n{asked.submissions} notebooks, {len(checks.items(STEM))} items; median of {asked.rounds}\n")
    for name, median in seconds.items():
        print(f"{name:12} {median:7.1f} s   {1000 * median / asked.submissions:6.0f} ms each   "
              f"{median / seconds['this grader']:5.1f} times this grader")


if __name__ == "__main__":
    main()

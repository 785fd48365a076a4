"""What `bench` runs: a class of generated submissions, and the graders beside this one."""

import copy
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .. import exercise
from ..items import registry

STEM = "01_long_term_dependency"
BESIDE = os.path.dirname(sys.executable)  # nbgrader calls programs of its environment by their names
PATHS = {**os.environ, "PATH": f"{BESIDE}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def hand_in(folder, count):
    """Write `count` notebooks to FOLDER/students.  Returns {student: text}."""
    handed_in = {}
    for student, made in notebooks(count):
        path = folder / "students" / student / f"{STEM}.ipynb"
        path.parent.mkdir(parents=True)
        handed_in[student] = exercise.text(made)
        path.write_text(handed_in[student], encoding="utf-8")
    return handed_in


def notebooks(count):
    """`count` notebooks of exercise 01, each with its student: right, with named mistakes, and broken."""
    solution = exercise.read(exercise.ROOT / "solutions" / f"{STEM}.ipynb")
    wrong = [{name: _as_answer(name, mistake.answer)} for name, item in registry.items(STEM).items()
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
    return [sys.executable, "-m", "course_tools.cli", "grade", folder / "students", "--out", out]


def bare_forks(folder, out):
    return [sys.executable, "-m", "course_tools.benchmarks.grader_baselines", "forks", folder / "students"]


def jupyter(folder, out):
    return [sys.executable, "-m", "course_tools.benchmarks.grader_baselines", "jupyter", folder / "students"]


def nbval(folder, out):
    return [sys.executable, "-m", "pytest", "--nbval-lax", "-qp", "no:cacheprovider", folder / "students"]


class Nbgrader:
    """A course folder with the assignment made and the notebooks handed in; grading it is what is timed."""

    def __init__(self, command, folder, handed_in):
        self.command, self.course = command, folder / "nbgrader"
        subprocess.run([sys.executable, "-m", "course_tools.cli", "export", "nbgrader", self.course],
                       check=True, stdout=subprocess.DEVNULL)
        self.run("generate_assignment", STEM)
        for student, text in handed_in.items():
            place = self.course / "submitted" / student / STEM
            place.mkdir(parents=True)
            (place / f"{STEM}.ipynb").write_text(text, encoding="utf-8")

    def run(self, *arguments):
        done = subprocess.run([self.command, *arguments], cwd=self.course, env=PATHS, capture_output=True,
                              text=True)
        if done.returncode:
            sys.exit(f"nbgrader {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")

    def __call__(self, folder, out):
        shutil.copytree(self.course, out)
        return [self.command, "autograde", STEM, f"--CourseDirectory.root={out}"]


# ---------------------------------------------------------------- the limit

def grade_by_forks(folder):
    """Grade with nothing between: no kernel, no sandbox, no deadline, nothing written."""
    import torch

    from ..grading.merge import merge
    from ..grading.question import question_for
    from ..judging.judge import judge
    torch.set_num_threads(1)
    items = registry.items(STEM)
    questions = {name: question_for(item, 1) for name, item in items.items()}
    points = 0
    for path in sorted(Path(folder).rglob("*.ipynb")):
        inbox, outbox = os.pipe()
        child = os.fork()
        if not child:
            os.close(inbox)
            with open(outbox, "w") as file:
                json.dump(_observed(merge(path, STEM), questions), file)
            os._exit(0)
        os.close(outbox)
        with open(inbox) as file:
            seen = json.load(file)
        os.waitpid(child, 0)
        points += sum(judge(one.item, one.trials, seen[name], one.viewed).passed
                      for name, one in questions.items() if name in seen)
    print(points, "items pass")


def _observed(merged, questions):
    from ..judging.observe import observe
    names, seen = {}, {}
    for cell in merged.notebook.cells:
        if not exercise.grade_id(cell, "grade"):
            try:
                exec(cell.source, names)
            except Exception:
                continue
    for name, one in questions.items():
        if name in names:
            seen[name] = [observe(names[name], trial, one.item.probe, one.item.gradients)
                          for trial in one.trials]
    return seen


def grade_in_jupyter(folder):
    from ..grading import submissions
    from ..grading.grade import Settings, grade_submission
    for one in submissions.find(folder):
        grade_submission(one, Settings(1, kernel="course_tools.grading.kernels.jupyter:Kernel"))


if __name__ == "__main__":
    {"forks": grade_by_forks, "jupyter": grade_in_jupyter}[sys.argv[1]](sys.argv[2])

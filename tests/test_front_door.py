"""Every sheet through every door that people use: the solution gets full marks, the sheet as it was handed
out gets 0, and nothing fails.  (Dask: test_class.py.)
"""

import functools
import itertools
import json
import os
import subprocess
import sys
import zipfile

import pytest
import yaml
from all_exercises import EXPECTED, POINTS, STUDENTS, as_expected, put
from gradescope_runs import environment, is_results, run_autograder

from course_tools import exercise, exports
from course_tools.exports import release
from course_tools.grading import grade
from course_tools.grading.kernels import fork_client
from course_tools.grading.kernels.jupyter import Kernel
from course_tools.items import registry

pytestmark = pytest.mark.slow
ROOT = exercise.ROOT
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="kernels are forked on Linux only")
students = pytest.mark.parametrize("student", STUDENTS)

CHECK_ALL = """
import contextlib, io, json, sys
from course_tools import cli
from course_tools.items import registry
found = []
for stem in registry.stems():
    sys.argv, printed = ["course", "check", stem[:2], "--json"], io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            cli.main()
        except SystemExit as end:
            found.append([stem, end.code, json.loads(printed.getvalue() or "null")])
print(json.dumps(found))
"""
NBGRADER = """
import json, sys
from nbgrader.apps import AutogradeApp, GenerateAssignmentApp
app = {"autograde": AutogradeApp, "generate_assignment": GenerateAssignmentApp}[sys.argv[1]]
for stem in sys.argv[2:]:
    app.launch_instance([stem])
    app.clear_instance()
"""


def done(command, **how):
    """What a command printed; it must succeed."""
    ended = subprocess.run([*map(str, command)], capture_output=True, text=True, **how)
    assert ended.returncode == 0, f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    return ended.stdout


# ---------------------------------------------------------------- course grade, course check

def test_course_grade_of_a_class(tmp_path):
    for student in STUDENTS:
        put(student, tmp_path / "submissions" / student)
    found = json.loads(done(["course", "grade", "submissions", "--out", "out", "--json"], cwd=tmp_path))
    for student in STUDENTS:
        as_expected([one for one in found["submissions"] if one["student"] == student], student)


@LINUX
def test_course_grade_of_the_solutions_as_an_ordinary_user(tmp_path):
    from sandbox_layers import BY_ROOT, ordinary
    command = ["course", "grade", ROOT / "solutions", "--out", tmp_path / "out", "--json"]
    as_expected(json.loads(done(command, preexec_fn=ordinary if BY_ROOT else None))["submissions"], "right")


def checked(folder, student, variables):
    """`course check NN --json` of all sheets, in one process."""
    put(student, folder / "exercises")
    found = json.loads(done([sys.executable, "-c", CHECK_ALL], env=variables, cwd=folder))
    assert {stem: status for stem, status, _ in found} == dict.fromkeys(POINTS, int(student != "right"))
    as_expected([result for *_, result in found], student)


@pytest.fixture
def copy(tmp_path):
    """(a copy of the course, the environment of a shell that works on it)"""
    for name in ("course_lib", "course_tools", "solutions"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path, {**os.environ, "COURSE_ROOT": str(tmp_path)}


@students
def test_course_check(copy, student):
    checked(copy[0], student, copy[1])


@LINUX
def test_course_check_on_a_terminal(copy):
    put("right", copy[0] / "exercises")
    told = done(["script", "-qec", "course check 11", os.devnull], env=copy[1])
    items = POINTS["11_transformer_blocks"]
    possible = sum(items.values())
    assert told.count("✓") == len(items) and f"{possible} of {possible} points" in told


# ---------------------------------------------------------------- a release, and its workflow

@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """(a release with the workflow, the environment of a shell in it, the workflow's `run:` steps)"""
    folder = tmp_path_factory.mktemp("release") / "students"
    release.release(folder)
    exports.export("github", folder)
    workflow = yaml.safe_load((folder / ".github" / "workflows" / "grade.yml").read_text(encoding="utf-8"))
    steps = [step["run"] for step in workflow["jobs"]["grade"]["steps"] if "run" in step]
    return folder, environment(folder.parent / "environment", folder), steps


@students
def test_course_check_in_a_release(released, student):
    folder, variables, _ = released
    assert not (folder / "solutions").exists()
    python = {**variables, "PATH": os.environ["PATH"]}
    checked(folder, student, {**python, "PYTHONPATH": str(folder)})


@students
def test_the_workflow_of_a_students_repository(released, student, tmp_path):
    folder, variables, steps = released
    put(student, folder / "exercises")
    variables = {**variables, "THRESHOLD": "60", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    ended = [subprocess.run(["bash", "-euo", "pipefail", "-c", step], cwd=folder, env=variables,
                            capture_output=True, text=True) for step in steps]
    assert [one.returncode for one in ended] == [0, 0, student != "right"], [one.stderr for one in ended]
    as_expected(json.loads((folder / "grades" / "results.json").read_text())["submissions"], student)
    most = sum(map(sum, (items.values() for items in POINTS.values())))
    score = f"✅ {most} of {most} points" if student == "right" else f"0 of {len(POINTS)} exercises started"
    assert score in (tmp_path / "summary.md").read_text(encoding="utf-8")


def test_a_sheet_in_a_release_takes_the_learners_answers(released):
    """Run like a script, check cells and all, with the other sheets beside it and then without them."""
    folder, variables, _ = released
    put("right", folder / "exercises")
    stem = "11_transformer_blocks"
    cells = [cell.source for cell in exercise.read(folder / "exercises" / f"{stem}.ipynb").cells
             if cell.cell_type == "code"]
    for place, whose in {"exercises": "yours, from exercise 09", "docs": "the library's, because"}.items():
        python = folder.parent / "environment" / "bin" / "python"
        told = done([python, "-c", "\n".join(cells)], cwd=folder / place, env=variables)
        assert f"MultiHeadAttention: {whose}" in told
        assert all(f"✓ {name}: right on" in told for name in POINTS[stem])


# ---------------------------------------------------------------- Gradescope, nbgrader

@pytest.fixture(scope="module")
def autograder(tmp_path_factory):
    """What is in /autograder once Gradescope has unpacked the zip for all exercises."""
    folder = tmp_path_factory.mktemp("autograder")
    exports.export("gradescope", folder / "all.zip")
    with zipfile.ZipFile(folder / "all.zip") as archive:
        archive.extractall(folder / "source")
    (folder / "source" / "run_autograder").chmod(0o755)
    (folder / "results").mkdir()
    return folder


@students
def test_gradescope(autograder, student):
    put(student, autograder / "submission")
    points, _ = EXPECTED[student]
    found = run_autograder(autograder)
    assert is_results(found) == {f"{stem[:2]} {name}": worth for stem, items in points.items()
                                 for name, worth in items.items()}
    assert student == "right" or {test["output"] for test in found["tests"]} == {"not answered yet."}


def test_nbgrader(tmp_path):
    """Its commands, in one process: all sheets with answers, every third without any, for each starts a
    kernel.  The training of exercise 12, worth no point, is skipped."""
    folder = tmp_path / "nbgrader"
    exports.export("nbgrader", folder)
    how = {"cwd": folder, "env": {**os.environ, "HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path)}}
    done([sys.executable, "-c", NBGRADER, "generate_assignment", *POINTS], **how)
    handed_in = [("right", stem) for stem in POINTS] + [("untouched", stem) for stem in tuple(POINTS)[::3]]
    for student, stem in handed_in:
        sheet = exercise.read(folder / "release" / stem / f"{stem}.ipynb")
        answers, _ = exercise.answers(exercise.read(STUDENTS[student](stem)), POINTS[stem])
        for cell in sheet.cells:
            cell.source = answers.get(exercise.grade_id(cell), cell.source)
        path = folder / "submitted" / student / stem / f"{stem}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(exercise.text(sheet), encoding="utf-8")
    done([sys.executable, "-c", NBGRADER, "autograde", *POINTS], **how)
    from nbgrader.api import Gradebook
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as book:
        found = {(one.student.id, stem): {grade.name.removeprefix("check_"): grade.score
                                          for part in one.notebooks for grade in part.grades}
                 for stem in POINTS for one in book.assignment_submissions(stem)}
    for student, stem in handed_in:
        assert found[student, stem] == EXPECTED[student][0][stem], (student, stem)
        cells = exercise.read(folder / "autograded" / student / stem / f"{stem}.ipynb").cells
        ran_through(student, [cell for cell in cells if cell.cell_type == "code"])


def ran_through(student, cells):
    """All cells ran but for the capstone's, and what check cells say is a verdict."""
    for cell in cells:
        skipped = "put-to-work" in cell.metadata.get("tags", ())
        assert bool(cell.execution_count) != skipped, cell.source
        assert skipped or "capstone." not in cell.source
        if exercise.grade_id(cell, "grade"):
            names = {output.get("name", output.get("evalue", "")) for output in cell.outputs}
            item = registry.find(exercise.grade_id(cell, "grade").removeprefix("check_"))[1]
            symptom = item.planted and item.planted.symptom(item.planted.answer, item.inputs(0)[0])
            assert names == {"stdout"} if student == "right" else (
                (symptom or "not answered yet") in str(names)), names


# ---------------------------------------------------------------- sandboxes and kernels

def graded(kernel=grade.Settings.kernel, stems=tuple(POINTS)):
    """Solutions graded in this process, and what held them."""
    settings = grade.Settings(seed=1, kernel=kernel)
    found = [grade.grade_notebook(STUDENTS["right"](stem), stem, settings) for stem in stems]
    as_expected(found, "right", stems)
    sandbox, = {one["sandbox"] for one in found}
    return sandbox


@LINUX
def test_every_set_of_sandbox_layers():
    """All sheets with all layers and with none, a third of them with each set between."""
    from course_tools.grading.sandbox import policy, selftest
    from course_tools.grading.sandbox.layers import LAYERS
    seen = set()
    for count in range(len(LAYERS) + 1):
        for without in itertools.combinations(LAYERS, count):
            sandbox = str(selftest.best(policy.paths(()), without))
            if sandbox in seen:  # a layer that is left out is one that this machine does not have
                continue
            fork_client.supervisors.start(without=without)
            every = 3 if seen and sandbox != "limits only" else 1
            assert graded(stems=tuple(POINTS)[len(seen) % every::every]) == sandbox
            seen.add(sandbox)
    fork_client.supervisors.start(without=())
    assert "limits only" in seen


class Shared(Kernel):
    """One of Jupyter's kernels; the next sheet goes on in it, without a name that the last one left."""

    def stop(self):
        self.run("%reset -f", 60)


shared = functools.cache(Shared)


def test_the_plain_jupyter_kernel():
    try:
        assert "none" in graded(f"{__name__}:shared")
    finally:
        Kernel.stop(shared())

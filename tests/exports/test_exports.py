"""What students get and what other systems read: made, and used as there."""

import csv
import html
import json
import os
import re
import subprocess
import sys
import zipfile

import pytest
import torch
import yaml
from gradescope_runs import environment, is_results, run_autograder

from course_tools import bootstrap, cli, exercise, exports, grading
from course_tools.exports import github, gradescope, lms, release
from course_tools.grading import classroom
from course_tools.grading.reports import overview
from course_tools.items import registry
from course_tools.judging.draw import sizes
from course_tools.judging.judge import examine
from course_tools.judging.spec import Item, normal

ROOT = exercise.ROOT
STEM = "01_long_term_dependency"
ITEMS = registry.items(STEM)
FULL = sum(item.points for item in ITEMS.values())
GUIDE = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
HOSTS = re.compile(r"https?://|\bpypi\b|pytorch\.org|files\.pythonhosted", re.IGNORECASE)
SOLUTION = exercise.read(ROOT / "solutions" / f"{STEM}.ipynb")
ANSWERS = {exercise.grade_id(cell): cell.source for cell in SOLUTION.cells if exercise.grade_id(cell)}
NO_TANH = "def rnn_step(x_t, h_prev, W_xh, W_hh, b_h):\n    return x_t @ W_xh + h_prev @ W_hh + b_h\n"


def answered(answers, base=None):
    """The text of an exercise with these answers in it."""
    made = exercise.derive(base or SOLUTION)
    for cell in made.cells:
        cell.source = answers.get(exercise.grade_id(cell), cell.source)
    return exercise.text(made)


def hand_in(path, answers):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(answered(answers), encoding="utf-8")


@pytest.fixture
def course(monkeypatch, capsys):
    """course("export", ...) -> (exit status, what it printed, what it said on stderr)."""
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["course", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return (end.value.code, *capsys.readouterr())
    return run


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """(a release, the environment of a shell in it)."""
    folder = tmp_path_factory.mktemp("release") / "students"
    assert "no solutions" in release.release(folder)
    return folder, environment(folder.parent / "environment", folder)


def shell(released, line, **variables):
    folder, variables = released[0], {**released[1], **variables}
    return subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=folder, env=variables,
                          capture_output=True, text=True)


# ---------------------------------------------------------------- release

def test_a_release_holds_what_students_need_and_no_solution(released):
    folder, _ = released
    assert not (folder / "solutions").exists() and not (folder / "tests" / "support").exists()
    for stem in exports.stems():
        for place in ("exercises", exercise.PRISTINE):
            made = (folder / place / f"{stem}.ipynb").read_text(encoding="utf-8")
            assert made == exercise.text(exercise.pristine(stem)) and "BEGIN SOLUTION" not in made
    lessons = {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    beside = {name for name in ("images", "studies", "weights") if (ROOT / "notebooks" / name).exists()}
    assert {path.name for path in (folder / "notebooks").iterdir()} == {*lessons, *beside, "capstone.html"}
    assert not [path for path in folder.rglob("*") if path.name in ("__pycache__", ".ipynb_checkpoints")]


def test_the_links_of_a_releases_pages_lead_somewhere(released):
    pages = [released[0] / "README.md", *(released[0] / "docs").glob("*.md")]
    for path in pages:
        for link in re.findall(r"\]\((?!\w+:)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), f"{path.name}: {link}"


def test_a_releases_readme_is_for_students(released):
    page = (released[0] / "README.md").read_text(encoding="utf-8")
    assert re.findall("^## (.*)", page, re.MULTILINE) == [
        "Start", "Lessons", "How an exercise works", "Hand in", "Take an update"]
    assert all(f"](notebooks/{path.name})" in page for path in (ROOT / "notebooks").glob("*.ipynb"))
    assert bootstrap.PYTHONS in page and "@" not in page
    assert not re.search(r"teach(?!er forcing)|course (grade|release|export)|gradebook|solution", page)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md", "docs/teaching.md", "docs/syllabus.md"):
        assert not (released[0] / name).exists()
    listed = shell(released, "make").stdout
    assert re.findall(r"^  make (\w+)", listed, re.MULTILINE) == [
        "lab", "check", "test", "studies", "clean", "distclean"]
    verbs = set(re.findall("(?<!`)make (?:[A-Z]+=\\S+ )?([a-z]+)", page))
    assert verbs <= {"lab", "test"} and "course update" in page


@pytest.mark.slow
def test_everything_else_works_in_a_release(released):
    folder, _ = released
    done = shell(released, "make -n lab >/dev/null; python3 course_tools/bootstrap.py setup")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr  # nothing to install
    hand_in(folder / "exercises" / f"{STEM}.ipynb", {**ANSWERS, "rnn_step": NO_TANH})
    done = shell(released, "course check 01")
    assert done.returncode == 1 and "The tanh is missing" in done.stdout, done.stderr
    status = json.loads(shell(released, "course status --json").stdout)["exercises"][0]
    assert (status["score"], status["max_score"]) == (FULL - ITEMS["rnn_step"].points, FULL)
    assert "Hint 1 of" in shell(released, "course hint 01 rnn_step").stdout
    assert "in its original state" in shell(released, "course reset 01").stdout
    text = (folder / "exercises" / f"{STEM}.ipynb").read_text(encoding="utf-8")
    assert text == exercise.text(exercise.pristine(STEM))


@pytest.mark.slow
def test_make_test_of_a_release_passes_whatever_the_student_wrote(released):
    hand_in(released[0] / "exercises" / f"{STEM}.ipynb", {"rnn_step": "import os;x = 1;\ndef rnn_step("})
    done = shell(released, "ruff check --output-format concise . || true")
    assert not re.search(r"^(exercises|notebooks|\.pristine|tests)/", done.stdout, re.MULTILINE), done.stdout
    done = shell(released, 'python -m pytest -m "not lessons" -p no:cacheprovider; course reset 01')
    assert "a release: every lesson is executed" in done.stdout and "passed" in done.stdout, done.stdout
    lessons = len(list((ROOT / "notebooks").glob("*.ipynb")))
    done = shell(released, "python -m pytest -m lessons --collect-only -q -p no:cacheprovider")
    assert f"{lessons}/" in done.stdout, done.stdout


def test_a_release_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    full = tmp_path / "full"
    full.mkdir()
    (full / exports.PART).mkdir()  # a release that was killed
    (full / exports.PART / "README.md").write_text("half")
    with exports.new_folder(full) as part:
        (part / "README.md").write_text("whole")
    assert [path.name for path in full.iterdir()] == ["README.md"]
    with pytest.raises(exports.ExportError, match="not empty"), exports.new_folder(full):
        pass
    with pytest.raises(RuntimeError), exports.new_folder(tmp_path / "new" / "er") as part:
        raise RuntimeError
    assert not (tmp_path / "new" / "er").exists() and (full / "README.md").read_text() == "whole"
    with pytest.raises(RuntimeError), exports.new_file(tmp_path / "file") as part:
        part.write_text("half")
        raise RuntimeError
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == []


# ---------------------------------------------------------------- nbgrader

@pytest.mark.slow
def test_nbgrader_explains_a_wrong_answer_and_takes_off_its_points(tmp_path):
    """By its commands as they are typed; test_front_door.py grades all sheets with it."""
    folder = tmp_path / "nbgrader"
    assert f"generate_assignment {STEM}" in exports.export("nbgrader", folder)
    variables = {**os.environ, "HOME": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path / "config")}

    def nbgrader(verb):
        done = subprocess.run([sys.executable, "-m", "nbgrader", verb, STEM], cwd=folder, env=variables,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
    nbgrader("generate_assignment")
    made = exercise.read(folder / "release" / STEM / f"{STEM}.ipynb")
    assert [cell.source for cell in made.cells] == [cell.source for cell in exercise.pristine(STEM).cells]
    path = folder / "submitted" / "ann" / STEM / f"{STEM}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(answered({**ANSWERS, "rnn_step": NO_TANH}, made), encoding="utf-8")
    nbgrader("autograde")
    nbgrader("generate_feedback")
    page = (folder / "feedback" / "ann" / STEM / f"{STEM}.html").read_text(encoding="utf-8")
    assert "tanh is missing" in page
    from nbgrader.api import Gradebook
    with Gradebook(f"sqlite:///{folder}/gradebook.db") as book:
        one, = book.assignment_submissions(STEM)
        points = {grade.name: grade.score for part in one.notebooks for grade in part.grades}
    full = {f"check_{name}": float(item.points) for name, item in ITEMS.items()}
    assert points == {**full, "check_rnn_step": 0.0}
    assert classroom.submissions.find(folder / "submitted")[0].student == "ann"


# ---------------------------------------------------------------- Gradescope

@pytest.fixture(scope="module")
def autograder(tmp_path_factory):
    """What lies in /autograder once Gradescope has unpacked the zip."""
    folder = tmp_path_factory.mktemp("autograder")
    assert f"with {FULL} points" in exports.export("gradescope", folder / "01.zip", "01")
    with zipfile.ZipFile(folder / "01.zip") as archive:
        archive.extractall(folder / "source")
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    for name in gradescope.SCRIPTS:
        assert modes[name] == 0o755
        (folder / "source" / name).chmod(0o755)
        assert not HOSTS.search((folder / "source" / name).read_text(encoding="utf-8"))
    assert not [name for name in modes if "solutions/" in name]
    for name in ("submission", "results"):
        (folder / name).mkdir()
    return folder


@pytest.mark.slow
def test_gradescopes_autograder_grades_a_submission(autograder):
    hand_in(autograder / "submission" / f"{STEM}.ipynb", {**ANSWERS, "rnn_step": NO_TANH})
    results = run_autograder(autograder)
    points = is_results(results)
    assert points == {f"01 {name}": item.points * (name != "rnn_step") for name, item in ITEMS.items()}
    assert results["score"] == FULL - ITEMS["rnn_step"].points
    assert "tanh is missing" in results["tests"][0]["output"]


def test_gradescopes_autograder_tells_that_nothing_was_handed_in(autograder):
    for path in (autograder / "submission").iterdir():
        path.unlink()
    results = run_autograder(autograder)
    assert set(is_results(results).values()) == {0} and results["score"] == 0
    assert {test["output"] for test in results["tests"]} == {gradescope.NOT_THERE}


def test_gradescopes_results_say_which_notebook_counts():
    results = gradescope.results([row("x", path="in/a.ipynb"), row("y", path="in/b.ipynb"),
                                row("z", None, status="unknown_exercise", path="in/shop.ipynb")], [STEM])
    is_results(results)
    assert results["score"] == 3 and "2 notebooks" in results["output"] and "a.ipynb" in results["output"]
    assert "shop.ipynb" in results["output"]


@pytest.mark.parametrize("has, printed", [("python3.14", "python3.14 "), ("python3.11", "python3.11 "),
                                          ("", "apt-get update")])
def test_gradescopes_setup_takes_a_python_that_will_do(autograder, tmp_path, has, printed):
    for name in ("python3.14", "python3.13", "python3.12", "python3.11", "python3", "apt-get"):
        fits = f'[ "$1" != -c ] || exit 0; echo "{name} $*"' if name in (has, "apt-get") else "exit 1"
        (tmp_path / name).write_text(f"#!/bin/sh\n{fits}\n")
        (tmp_path / name).chmod(0o755)
    done = subprocess.run([autograder / "source" / "setup.sh"], capture_output=True, text=True,
                          env={"PATH": f"{tmp_path}:/usr/bin:/bin", "AUTOGRADER": str(autograder)})
    assert done.stdout.startswith(printed) and (done.returncode == 0) == bool(has), done.stderr
    if has:
        assert done.stdout.endswith(f"{autograder}/source/course/course_tools/bootstrap.py setup\n")


# ---------------------------------------------------------------- Canvas and Moodle

def row(student, exercise=STEM, score=3, status="graded", path="in/x.ipynb", message="1 < 2\nsee there"):
    """A submission of results.json, of two items: the first right, the second wrong."""
    items = [{"name": "first", "points": 3, "max_points": 3, "passed": True, "mistake": None,
              "message": "right", "status": "passed", "remark": None},
             {"name": "second", "points": 0, "max_points": 2, "passed": False, "mistake": "no_tanh",
              "message": message, "status": "wrong", "remark": None}]
    return {"student": student, "exercise": exercise, "path": path, "status": status, "score": score,
            "max_score": 5, "items": items if exercise else []}


def summary(rows):
    """results.json of these submissions."""
    return {"seed": 1, "sandbox": "limits only", "caution": None, "submissions": rows}


def table(tmp_path, target, rows, key=None):
    folder, out = tmp_path / "grades", tmp_path / f"{target}{key}{len(list(tmp_path.iterdir()))}.csv"
    folder.mkdir(exist_ok=True)
    (folder / "results.json").write_text(json.dumps(summary(rows)))
    line = exports.export(target, out, key, folder)
    with open(out, encoding="utf-8", newline="") as file:
        return list(csv.reader(file)), line


def test_canvas_reads_its_own_columns(tmp_path):
    rows, line = table(tmp_path, "canvas", [
        row("ann"), row("leeann_LATE_12_3456"), row("leebob_13_3457_-1", score=0),
        row("lost", None, status="unknown_exercise"), row("cy", status="failed"),
        row("dan", status="unreadable", score=0), row("ann", "02_other")])
    assert rows[0] == [*lms.CANVAS, "01 long term dependency", "02 other"]
    assert rows[1] == ["    Points Possible", "", "", "", "", "5", "5"]
    assert rows[2:] == [["ann", "", "", "ann", "", "3", "3"], ["dan", "", "", "dan", "", "0", ""],
                        ["leeann", "12", "", "", "", "3", ""], ["leebob", "13", "", "", "", "0", ""]]
    assert "4 students, 5 notebooks; 2 left out, because they could not be graded" in line


@pytest.mark.parametrize("upload, known", [
    ("leeann_111_456_zzz_222_9", ("leeann", "111")),  # she called her file zzz_222_9_01_long_...
    ("leeann_LATE_111_456_zzz_222_9_-1", ("leeann", "111")),
    ("lee_ann_111_456_my_homework", ("lee_ann", "111")),
    ("leeann_111_456_22", ("leeann", "111")), ("anon_12345_456", None), ("LATE_anon_12345_456_x_222_9", None),
    ("ann_2", None), ("zzz_\u0662_\u0663", None)])
def test_canvas_knows_a_student_by_its_own_prefix_alone(upload, known):
    match = lms.CANVAS_NAME.fullmatch(upload)
    assert known == (match and (match["name"], match["id"]))


def test_a_file_name_puts_no_points_under_the_id_of_another(tmp_path):
    rows, line = table(tmp_path, "canvas", [row("leeann_111_456_zzz_222_9"), row("leebob_222_457", score=0)])
    assert [(one[1], one[5]) for one in rows[2:]] == [("111", "3"), ("222", "0")] and "left out" not in line
    upload = "Ann_11_assignsubmission_file_x_22_assignsubmission_file"
    rows, _ = table(tmp_path, "moodle", [row(upload)], "01")
    assert rows[1][0] == "Participant 11"


def test_an_id_that_two_notebooks_claim_is_left_out_and_told(tmp_path):
    rows, line = table(tmp_path, "canvas", [
        row("leeann_111_456", path="in/a.ipynb"), row("leeann_111_457", path="in/b.ipynb"), row("ann"),
        row("zoe_222_9", path="in/c.ipynb"), row("leebob_222_458", "02_other", path="in/d.ipynb"),
        row("leecy_333_460"), row("leecy_333_471", "02_other", score=1)])
    assert [(one[0], one[1], *one[5:]) for one in rows[2:]] == [
        ("ann", "", "3", ""), ("leecy", "333", "3", "1")]
    assert line.split("\n")[1:] == [
        "canvas ID 111 was left out, because more than one notebook claims it: in/a.ipynb, in/b.ipynb",
        "canvas ID 222 was left out, because more than one notebook claims it: in/c.ipynb, in/d.ipynb"]
    assert "2 students, 3 notebooks" in line


def test_moodle_reads_one_exercise_as_its_worksheet(tmp_path):
    rows, _ = table(tmp_path, "moodle", [row("Ann Lee_12_assignsubmission_file"), row("b@uni.example"),
                                         row("s123")], "01")
    assert rows[0] == ["Identifier", "Full name", "Email address", "ID number", "Grade", "Maximum Grade",
                       "Last modified (grade)", "Feedback comments"]
    assert [cells[:4] for cells in rows[1:]] == [
        ["Participant 12", "Ann Lee", "", ""], ["", "", "b@uni.example", ""], ["", "", "", "s123"]]
    assert rows[1][4:] == ["3", "5", "", "✓ first 3/3<br>✗ second 0/2: 1 &lt; 2<br>see there"]


def test_moodle_reads_several_exercises_as_columns_to_match(tmp_path):
    rows, _ = table(tmp_path, "moodle", [row("ann"), row("bob", "02_other")])
    assert rows[0] == [*lms.MOODLE, "01 long term dependency", "01 long term dependency feedback comments",
                       "02 other", "02 other feedback comments"]
    assert rows[1][4] == "3" and rows[1][6:] == ["", ""]


@pytest.mark.parametrize("target", ["canvas", "moodle"])
def test_no_name_becomes_a_formula_or_a_second_header(tmp_path, target):
    rows, _ = table(tmp_path, target, [row(name, message="=1+1") for name in (
        "=cmd|' /C calc'!A1", "+1", "@x", "-2", "a\nb,c\"d", "Points Possible", "=1@x")])
    assert len(rows) == 7 + 1 + (target == "canvas")
    assert not [value for cells in rows for value in cells if value[:1] in tuple("=+@\t") or value == "-2"]
    assert sum("Points Possible" in cells[0] for cells in rows) == (target == "canvas")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"submissions": [1]}', '{"submissions": [{"student": 1}]}',
                                  json.dumps(summary([{}])),
                                  json.dumps(summary([{**row("x"), "score": "=1"}]))])
def test_results_that_are_damaged_are_one_line_and_2(tmp_path, course, text):
    (tmp_path / "results.json").write_text(text)
    status, printed, error = course("export", "canvas", tmp_path / "x.csv", "--grades", tmp_path)
    assert (status, printed) == (2, "") and re.fullmatch(r"course: .*Grade again.*\n", error)
    assert not (tmp_path / "x.csv").exists()


# ---------------------------------------------------------------- GitHub

@pytest.fixture(scope="module")
def workflow(released):
    """The steps' lines, in order, and the workflow; written into the release once."""
    path = released[0] / ".github" / "workflows" / "grade.yml"
    assert str(path) in exports.export("github", released[0])
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [step["run"] for step in settings["jobs"]["grade"]["steps"] if "run" in step], settings


def test_the_workflow_is_one_that_github_reads(workflow):
    lines, settings = workflow
    on = settings[True]  # YAML 1.1 takes `on` for a truth value
    assert "push" in on and on["workflow_dispatch"]["inputs"]["threshold"]["default"] == "60"
    assert settings["permissions"] == {"contents": "read"}
    assert "|| '60'" in settings["jobs"]["grade"]["env"]["THRESHOLD"] and len(lines) == 3
    for step in settings["jobs"]["grade"]["steps"]:
        assert ("uses" in step) != ("run" in step)
    assert not HOSTS.search((exports.TEMPLATES / "grade.yml").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_the_workflow_grades_a_push_and_fails_below_the_threshold(released, workflow, tmp_path):
    hand_in(released[0] / "exercises" / f"{STEM}.ipynb", {**ANSWERS, "rnn_step": NO_TANH})
    page = tmp_path / "summary.md"
    for line in workflow[0]:
        done = shell(released, line, GITHUB_STEP_SUMMARY=str(page), THRESHOLD="60")
        assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert f"✅ {FULL - 1} of {FULL} points" in text
    assert "| ❌ | `rnn_step` | 0 of 1 | The tanh is missing" in text
    assert shell(released, workflow[0][-1], THRESHOLD="99").returncode == 1
    assert shell(released, workflow[0][-1], THRESHOLD="many").returncode == 2
    shell(released, "rm -r grades; course reset 01")


def test_a_job_summary_shows_text_as_text():
    text, reached = github.summary([row("x", message="<img src=x> | `a` [b](c)\n# d")], 60)
    assert reached and "<img" not in text and "[b](c)" not in text and "\n# d" not in text
    assert text.count("\n| ") == 1 + 2
    empty = {**row("x"), "items": [{**row("x")["items"][1], "status": "missing"}]}
    assert not github.summary([empty], 60)[1] and not github.summary([], 0.1)[1]


# ---------------------------------------------------------------- the class on one page

def test_the_overview_shows_what_to_teach_again_and_no_name():
    graded = {"caution": None, "submissions": [row(f"student {number}") for number in range(3)]
              + [row("<script>", message="<script>alert(1)</script>")] + [row("lost", None)]}
    page = overview.page(graded)
    assert "student 1" not in page and "<script" not in page and html.escape("<script>alert(1)") in page
    assert not re.search(r"""(?:src|href)=|url\(|@import|https?:""", page)
    assert re.search(r"second</code> \(lesson 01\), 3 of 5: 1 &lt; 2\n?<", page)
    part = overview.exercise(graded["submissions"][:3], STEM, 3)
    assert (part["mean"], part["median"], part["graded"]) == (3, 3, 3)
    assert [bar["count"] for bar in part["bars"]] == [0, 0, 0, 0, 0, 0, 3, 0, 0, 0]


def test_grading_writes_the_overview_even_of_nothing(tmp_path):
    (tmp_path / "in" / "ann").mkdir(parents=True)
    (tmp_path / "in" / "ann" / "shopping.ipynb").write_text("{")
    classroom.grade_class(tmp_path / "in", tmp_path / "out")
    page = (tmp_path / "out" / "overview.html").read_text(encoding="utf-8")
    assert "There are no exercise notebooks to show." in page


# ---------------------------------------------------------------- wrong use

@pytest.mark.parametrize("arguments, reason", [
    (["release"], "Missing argument"), (["release", "full"], "not empty"),
    (["release", "full/file"], "a file"),
    (["release", "full/file/x"], "full/file"), (["export", "blackboard", "x"], "Choose one of: nbgrader"),
    (["export", "nbgrader"], "Missing argument"), (["export", "nbgrader", "full"], "not empty"),
    (["export", "nbgrader", "x", "01"], "always gets all exercises"),
    (["export", "github", "x", "1"], "always gets all exercises"),
    (["export", "gradescope", "x.zip", "77"], "no exercise '77'"),
    (["export", "gradescope", "full"], "already exists"),
    (["export", "gradescope", "x.zip", "--grades", "full"], "not to gradescope"),
    (["export", "canvas", "x.csv"], "--grades DIR"),
    (["export", "moodle", "x.csv", "--grades", "no"], "no results.json"),
    (["export", "moodle", "x.csv", "--grades", "full/file"], "no results.json"),
    (["export", "canvas", "full/file", "--grades", "grades"], "already exists"),
    (["export", "canvas", "full/file/x", "--grades", "grades"], "full/file"),
    (["export", "canvas", "x.csv", "--grades", "empty"], "no graded notebook"),
    (["export", "github", "full/file"], "full/file")])
def test_wrong_use_is_one_line_and_2(tmp_path, monkeypatch, course, arguments, reason):
    for name, rows in {"full": None, "grades": [row("ann")], "empty": []}.items():
        (tmp_path / name).mkdir()
        if rows is not None:
            (tmp_path / name / "results.json").write_text(json.dumps(summary(rows)))
    (tmp_path / "full" / "file").write_text("mine")
    monkeypatch.chdir(tmp_path)
    status, printed, error = course(*arguments)
    assert (status, printed) == (2, "") and re.fullmatch(r"course: [^\n]+\n", error)
    assert reason in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "full", "grades"]
    assert (tmp_path / "full" / "file").read_text() == "mine"


@pytest.mark.parametrize("arguments", [["release", "new"], ["export", "nbgrader", "new"],
                                       ["export", "gradescope", "new"]])
def test_a_copy_that_lacks_the_solutions_says_so(tmp_path, monkeypatch, course, arguments):
    monkeypatch.setattr(exercise, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    status, _, error = course(*arguments)
    assert status == 2 and re.fullmatch(r"course: [^\n]+\n", error) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["release", "export"])
def test_the_commands_explain_themselves(course, command):
    status, printed, _ = course(command, "--help")
    assert status == 0 and f"course {command}" in printed.split("Examples:")[1]


# ---------------------------------------------------------------- the guide

@pytest.mark.slow
def test_the_guides_ten_minutes_are_true(tmp_path):
    line = re.search(r"```sh\n(.*?)```", GUIDE, re.DOTALL)[1]
    for name, answers in {"Ann Lee_12_assignsubmission_file": ANSWERS, "bob": {}}.items():
        hand_in(tmp_path / "submissions" / name / f"{STEM}.ipynb", answers)
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", line], capture_output=True, text=True,
                          cwd=tmp_path, env=environment(tmp_path / "environment", ROOT))
    assert done.returncode == 0, done.stderr
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.glob("grades/*")} | {
        str(path.relative_to(tmp_path)) for path in tmp_path.glob("grades/submissions/bob/*.html")}
    for name in ("index.html", "overview.html", "grades.csv", "results.json", "junit.xml",
                 "submissions/bob/01.html"):
        assert f"grades/{name}" in made
        assert name.replace("bob", "STUDENT") in GUIDE
    assert f"Participant 12,Ann Lee,,,{FULL},{FULL}" in (tmp_path / "moodle.csv").read_text(encoding="utf-8")
    assert "bob,,,bob,,0\n" in (tmp_path / "canvas.csv").read_text(encoding="utf-8")


def test_the_guide_says_what_the_results_say_of_a_weak_sandbox():
    guide = (exercise.ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
    assert grading.CAUTION in guide


def test_the_guide_names_every_export_and_what_exists():
    assert set(re.findall(r"^### .*`course export (\w+)", GUIDE, re.MULTILINE)) == set(exports.TARGETS)
    for link in re.findall(r"\]\((?!\w+:)([^)#]+)", GUIDE):
        assert (ROOT / "docs" / link).exists(), link


def test_the_guides_item_is_one():
    """Its right answer passes, and each of its mistakes is named, over five seeds."""
    source = re.search(r"```python\n(.*?)```", GUIDE, re.DOTALL)[1]
    names = {"torch": torch, "Item": Item, "normal": normal, "sizes": sizes}
    exec(source, names)
    item = names["running_mean"]
    assert len(item.mistakes) == 4
    for seed in range(5):
        assert examine(item, item.reference, seed).passed
        for name, mistake in item.mistakes.items():
            verdict = examine(item, mistake.answer, seed)
            assert (verdict.mistake, verdict.message) == (name, mistake.sentence), verdict

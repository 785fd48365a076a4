"""The `course` command as a learner and a teacher meet it: what it prints, and how it ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pseudo_terminal import CTRL_C, Terminal, plain
from rich.cells import cell_len

from course_tools import cli, exercise, terminal
from course_tools.grading.kernels import jupyter
from course_tools.items import registry

STEM = "01_long_term_dependency"
NAMES = list(registry.items(STEM))
FULL = sum(item.points for item in registry.items(STEM).values())
POSSIBLE = sum(item.points for stem in registry.stems() for item in registry.items(stem).values())
PARTIAL = FULL - sum(registry.items(STEM)[name].points for name in ("rnn_step", "gru_step"))
HOME = Path(cli.__file__).parents[1]
NO_TANH = "def rnn_step(x_t, h_prev, W_xh, W_hh, b_h):\n    return x_t @ W_xh + h_prev @ W_hh + b_h\n"
COMMANDS = ("status", "check", "hint", "reset", "grade")


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A copy of the course with nothing handed out yet."""
    (tmp_path / "solutions").mkdir()
    shutil.copy(exercise.ROOT / "solutions" / f"{STEM}.ipynb", tmp_path / "solutions")
    monkeypatch.setattr(exercise, "ROOT", tmp_path)
    monkeypatch.setattr(registry, "stems", lambda: [STEM])
    return tmp_path


@pytest.fixture
def course(monkeypatch, capsys):
    """course("check", "01") -> (exit status, what it printed, what it said on stderr)."""
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["course", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            cli.main()
        return (end.value.code, *capsys.readouterr())
    return run


def mine(root):
    return root / "exercises" / f"{STEM}.ipynb"


def answer(root, sources):
    """Write answers into the learner's notebook; names without a source get the solution's."""
    made = exercise.read(root / "solutions" / f"{STEM}.ipynb")
    for cell in made.cells:
        cell.source = sources.get(exercise.grade_id(cell), cell.source)
    mine(root).parent.mkdir(exist_ok=True)
    save(mine(root), json.dumps(made))


def save(path, text):
    """At once: somebody who watches sees the old file or the new one, and nothing between."""
    half = path.with_suffix(".saving")
    half.write_text(text, encoding="utf-8")
    half.replace(path)


def wrong(printed):
    """The one line of an error."""
    assert re.fullmatch(r"course: [^\n]+\n", printed)
    return printed


def test_a_learners_way(root, course, monkeypatch):
    """Reset, status, check, status again: one kernel for all."""
    status, printed, _ = course("status")
    assert status == 0 and "missing: course reset 01" in printed and "course reset 01" in printed
    assert course("reset", "1")[0] == 0
    status, printed, _ = course("status")
    assert status == 0 and "not started" in printed and f"Next: {NAMES[0]}" in printed
    answer(root, {"rnn_step": NO_TANH})
    status, printed, _ = course("check", "01")
    assert status == 1
    for text in ("✗ rnn_step", "tanh is missing", "See lesson 01", "✓ gru_step",
                 f"{FULL - 1} of {FULL} points", "course hint 01 rnn_step"):
        assert text in printed
    monkeypatch.setattr(jupyter.Kernel, "__init__", None)  # from here on it remembers, and runs nothing
    status, printed, _ = course("status", "--json")
    told = json.loads(printed)
    assert status == 0 and (told["score"], told["max_score"]) == (FULL - 1, FULL)
    assert told["exercises"][0]["done"] == len(NAMES) - 1
    assert told["next"] == {"exercise": STEM, "item": "rnn_step"}


def test_everything_right_ends_with_0(root, course):
    answer(root, {})
    status, printed, _ = course("check", "01", "--json")
    assert status == 0 and all(item["passed"] for item in json.loads(printed)["items"])
    assert "All exercises are done" in course("status")[1]


def test_an_untouched_exercise_ends_with_1_and_runs_nothing(root, course, monkeypatch):
    course("reset", "01")
    monkeypatch.setattr(jupyter.Kernel, "__init__", None)
    status, printed, _ = course("check", STEM)
    assert status == 1 and printed.count("○") == len(NAMES) and f"0 of {FULL} points" in printed


@pytest.mark.parametrize("states, goal", [
    ("untouched untouched untouched", 0), ("begun begun untouched", 1), ("begun untouched done", 0),
    ("untouched done untouched", 2), ("done untouched done", 1), ("done done not_there", 2),
    ("done done done", None)])
def test_status_points_to_what_was_saved_last(root, states, goal):
    rows = [{"exercise": f"{number:02}_x", "status": state} for number, state in enumerate(states.split())]
    mine(root).parent.mkdir()
    for number, row in enumerate(rows):
        path = mine(root).with_name(f"{row['exercise']}.ipynb")
        path.touch()
        os.utime(path, (number, number))
    assert cli._following(rows) == (None if goal is None else rows[goal])


def test_hints_come_one_by_one_and_are_remembered(root, course):
    first = course("hint", "01", "gradient_norms")[1]
    second = course("hint", "01", "gradient_norms")[1]
    assert "Hint 1 of 3" in first and "Hint 2" not in first and "run the command again" in first
    assert "Hint 2 of 3" in second and "Hint 3" not in second
    assert "Hint 3 of 3" in course("hint", "01", "gradient_norms", "--all")[1]
    assert "last hint" in course("hint", "01", "gradient_norms")[1]
    (root / ".course" / "hints.json").write_text("[broken")
    assert "Hint 2" not in course("hint", "01", "gradient_norms")[1]


def test_reset_keeps_what_was_there(root, course):
    mine(root).parent.mkdir()
    for text in ("my work", "my other work"):
        mine(root).write_text(text)
        status, printed, _ = course("reset", "01")
        backup = re.search(r"Your version is kept in (.*)\n", printed)[1]
        assert status == 0 and (root / backup).read_text() == text
        assert "File, Reload Notebook from Disk" in printed
    assert len(list((root / "backups").iterdir())) == 2
    assert mine(root).read_text(encoding="utf-8") == exercise.text(exercise.pristine(STEM))


@pytest.mark.parametrize("arguments, reason", [
    (["check", "77"], "no exercise '77'"), (["check"], "Missing argument"), (["dance"], "No such command"),
    (["check", "01"], "course reset 01"), (["hint", "01", "x"], "rnn_step"), (["status", "--tall"], "--tall"),
    (["reset", "seven"], "no exercise"), (["grade", "nowhere", "--out", "out"], "no such file"),
    (["grade", "."], "--out"), (["grade", "solutions", "--out", "solutions"], "contains other files"),
    (["grade", "solutions", "--out", "solutions/01_long_term_dependency.ipynb/x"], "cannot be written"),
    (["grade", "solutions", "--out", "out", "--workers", "0"], "--workers"),
    (["grade", "solutions", "--out", "out", "--seed", "x"], "--seed"),
    (["grade", "solutions", "--out", "out", "--timeout", "inf"], "--timeout"),
    (["grade", "solutions", "--out", "out", "--dask", "tcp://x:1", "--workers", "2"], "--workers applies"),
    (["grade", "solutions", "--out", "/proc/out"], "cannot be written"),
    (["grade", "empty", "--out", "out"], "no notebook")])
def test_wrong_use_is_one_line_and_2(root, course, monkeypatch, arguments, reason):
    (root / "empty").mkdir()
    monkeypatch.chdir(root)
    status, printed, error = course(*arguments)
    assert status == 2 and printed == "" and reason in wrong(error)
    assert not (root / "out").exists()


@pytest.mark.parametrize("text", ["", "half a notebook {", "{}"])
def test_a_broken_notebook_of_ones_own_is_one_line_and_2(root, course, text):
    mine(root).parent.mkdir()
    mine(root).write_text(text)
    status, _, error = course("check", "01")
    assert status == 2 and "course reset 01" in wrong(error)
    assert course("status")[0] == 0 and mine(root).read_text() == text


def test_grading_ends_with_0_whatever_the_scores(root, course, monkeypatch):
    monkeypatch.chdir(root)
    for student, text in (("ann", exercise.text(exercise.pristine(STEM))), ("bob", "{")):
        path = root / "in" / student / f"{STEM}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(text, encoding="utf-8")
    status, printed, error = course("grade", "in", "--out", "out", "--seed", "7", "--json")
    assert status == 0 and error == "" and [one["status"] for one in json.loads(printed)["submissions"]] == [
        "graded", "unreadable"]
    assert json.loads(printed) == json.loads((root / "out" / "results.json").read_text())
    status, printed, _ = course("grade", "in", "--out", "out")
    assert status == 0 and "0 graded now, 1 unchanged, 1 could not be graded. Seed 7." in printed
    assert {"grades.csv", "results.json", "junit.xml"} <= {path.name for path in (root / "out").iterdir()}


def test_watch_checks_again_at_every_save_until_it_is_stopped(root, course):
    course("reset", "01")
    # tests that a shell started in the background ignore SIGINT, and what they start would do so, too
    watching = subprocess.Popen([sys.executable, "-m", "course_tools.cli", "check", "01", "--watch"],
                                text=True, cwd=HOME, env={**os.environ, "COURSE_ROOT": str(root)},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))

    def until(text):
        line = ""
        while text not in line:
            line = watching.stdout.readline()
            assert line, watching.stderr.read()
    until("Watching")
    whole = mine(root).read_text(encoding="utf-8")
    save(mine(root), whole[:100])  # half saved: it goes on
    until("Watching")
    save(mine(root), whole)
    until(f"0 of {FULL} points")
    until("Watching")
    watching.send_signal(signal.SIGINT)
    assert watching.wait(20) == 0
    assert "incomplete or damaged" in wrong(watching.stderr.read())


def test_watch_sees_the_second_half_of_a_save_within_one_tick_of_the_clock(tmp_path):
    path = tmp_path / "notebook.ipynb"
    path.write_text("{")
    first = cli._stamp(path)
    path.write_text("{}")
    os.utime(path, ns=(path.stat().st_atime_ns, first[0]))
    assert cli._stamp(path) != first and cli._stamp(tmp_path / "no such file") != first


def on_a_terminal(root, *arguments, **options):
    """`course` under a pseudo-terminal, on the copy of the course in root."""
    line = [sys.executable, "-m", "course_tools.cli", *arguments]
    return Terminal(line, root, COURSE_ROOT=str(root), PYTHONPATH=str(HOME), **options)


def test_watch_on_a_terminal_shows_each_save_on_a_clear_screen(root, course):
    course("reset", "01")
    with on_a_terminal(root, "check", "01", "--watch") as watching:
        assert "○ rnn_step" in watching.until("Watching. Save the notebook")
        answer(root, {"rnn_step": NO_TANH})
        told = watching.until("Watching. Save the notebook")
        assert "✗ rnn_step" in told and f"{FULL - 1} of {FULL} points" in told and "Traceback" not in told
        assert watching.printed.count("\x1b[2J") == 2    # cleared before each look
        watching.type(CTRL_C)
        status, told = watching.end()
    assert status == 0 and "Traceback" not in told


ON_A_TERMINAL = [("--help", 0, "Commands"), ("status", 0, f"{PARTIAL} of {POSSIBLE} points"),
                 ("check 01", 1, "✗ rnn_step"),
                 ("hint 01 gradient_norms", 0, "Hint 1 of 3"), ("reset 01", 0, "in its original state"),
                 ("grade in --out out", 0, "1 graded now"), ("check 77", 2, "no exercise '77'"),
                 ("release students", 0, "no solutions"),
                 ("export canvas points.csv --grades out", 0, "points.csv"),
                 *((f"{command} --help", 0, f"course {command}") for command in COMMANDS)]


@pytest.mark.parametrize("columns", [80, 46])
def test_every_command_on_a_terminal(root, columns):
    """In colour, no line wider than the terminal, broken between words, and no traceback."""
    for name in ("course_lib", "course_tools", "docs", "notebooks"):
        (root / name).symlink_to(HOME / name)
    for path in [*filter(Path.is_file, HOME.iterdir()), *(HOME / "solutions").glob("*.ipynb")]:
        shutil.copy(path, root / path.relative_to(HOME).parent)
    answer(root, {"rnn_step": NO_TANH, "gru_step": f"def gru_step():\n    {exercise.STUB}"})
    (root / "in" / "ann").mkdir(parents=True)
    shutil.copy(mine(root), root / "in" / "ann")
    for arguments, wanted, words in ON_A_TERMINAL:
        with on_a_terminal(root, *arguments.split(), columns=columns) as screen:
            status, told = screen.end()
        assert status == wanted and words in " ".join(told.split()), told
        assert "Traceback" not in told and ("\x1b[" in screen.printed or wanted != 1)
        wide = [line for line in told.split("\n") if cell_len(line.split("\r")[-1]) > columns]
        assert not [line for line in wide if len(line.split()) > 1], (arguments, wide)


def test_a_hint_on_a_terminal_is_no_markdown_source(root, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    terminal.markdown("B **before** `x_t`, where $\\tanh(h_t)\\,p_i \\cdot 2^\\top$ is `W * (1 - H ** 2)`.")
    shown = capsys.readouterr().out
    assert "\x1b[1mbefore" in shown
    assert " ".join(plain(shown).split()) == "B before x_t, where tanh(h_t) p_i · 2^T is W * (1 - H ** 2)."


def test_help_and_hints_come_without_torch(root):
    code = ("import sys; sys.argv = ['course', *{0!r}]\nfrom course_tools import cli\ntry:\n    cli.main()\n"
            "except SystemExit as end:\n    assert not end.code\n"
            "assert not {{'torch', 'nbval', 'pytest'}} & set(sys.modules)")
    for arguments in (["--help"], ["hint", "01", "rnn_step"], ["reset", "01"], ["status"]):
        subprocess.run([sys.executable, "-c", code.format(arguments)], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, "COURSE_ROOT": str(root)}, cwd=HOME)


@pytest.mark.parametrize("words, module, shown", [
    ("This process (pid=7) is multi-threaded, use of fork() may lead to deadlocks in the child.",
     "multiprocessing.popen_fork", False),
    ("This process (pid=7) is multi-threaded, use of fork() may lead to deadlocks in the child.",
     "course_tools.grading.kernels.fork_server", False),
    ("something else is deprecated", "multiprocessing.popen_fork", True)])
def test_pythons_warning_of_forks_does_not_reach_a_user(words, module, shown):
    code = ("import warnings, course_tools.grading\n"
            f"warnings.warn_explicit({words!r}, DeprecationWarning, 'a.py', 1, {module!r})")
    done = subprocess.run([sys.executable, "-W", "always", "-c", code], cwd=HOME, text=True, check=True,
                          capture_output=True)
    assert (words in done.stderr) == shown and done.stdout == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(course, command):
    status, printed, _ = course(command, "--help")
    assert status == 0 and "Examples:" in printed and f"course {command}" in printed.split("Examples:")[1]
    assert command in course()[1]


def test_a_console_without_ticks_is_served(root):
    mine(root).parent.mkdir()
    mine(root).write_text(exercise.text(exercise.pristine(STEM)), encoding="utf-8")
    ran = subprocess.run([sys.executable, "-m", "course_tools.cli", "check", "01"], capture_output=True,
                         cwd=HOME,
                         env={**os.environ, "COURSE_ROOT": str(root), "PYTHONIOENCODING": "ascii"})
    assert ran.returncode == 1 and b"rnn_step" in ran.stdout and ran.stderr == b""

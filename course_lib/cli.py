"""The `course` command: progress, checks and hints for the learner, grading for the teacher.

Torch and the grader are imported by the command that needs them: help and hints come at once.
"""

import json
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from . import terminal
from .terminal import say, text

MARKS = {"passed": ("✓", "green"), "missing": ("○", "dim")}  # any other status: a cross
INTERRUPTED = 130  # the exit status after Ctrl-C
STATES = {"not_there": "not there", "untouched": "not begun", "begun": "begun", "done": "done",
          "unreadable": "unreadable", "failed": "not graded"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False,
                  context_settings={"help_option_names": ["-h", "--help"]})
Key = Annotated[str, typer.Argument(help="The exercise: 01, 1, or its whole name.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for a script.")]
Timeout = Annotated[float, typer.Option(min=0.1, max=86400, help="Seconds for a cell, or for all "
                                                            "calls of an answer.")]


def example(*lines):
    """The end of a help page."""
    return "Examples:\n\n" + "\n\n".join(lines)


@app.callback(invoke_without_command=True)
def course(context: typer.Context):
    """From RNNs to the Transformer: your progress, checks and hints, and grading a class."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog=example("course status", "course status --json"))
def status(as_json: AsJson = False, timeout: Timeout = 20.0):
    """How far you are in every exercise, and what comes next.

    Runs only the notebooks that have changed since the last look, and none that was not begun.
    """
    from .grading import own
    rows = own.progress(timeout)
    score, most = (sum(row[key] for row in rows) for key in ("score", "max_score"))
    following = _following(rows)
    if as_json:
        goal = following and {"exercise": following["exercise"], "item": following["next"]}
        return _print_json({"exercises": rows, "score": score, "max_score": most, "next": goal})
    table = terminal.table("exercise", "items", "points", "state")
    for row in rows:
        state = STATES[row["status"]] + (f": {row['message']}" if row["message"] else "")
        table.add_row(row["exercise"], f"{row['done']}/{row['items']}", f"{row['score']}/{row['max_score']}",
                      text(state, "green" if row["status"] == "done" else ""))
    terminal.console().print(table)
    say(f"{score} of {most} points.\n" + (_next(following["exercise"], following["next"]) if following else
                                          "All exercises are done."))


@app.command(epilog=example("course check 01", "course check 01 --watch"))
def check(key: Key,
          watch: Annotated[bool, typer.Option("--watch", help="Check again whenever the notebook is saved, "
                                                              "until Ctrl-C.")] = False,
          as_json: AsJson = False, timeout: Timeout = 20.0):
    """Check your own notebook in exercises/, as it was last saved.

    Only the answer cells count; they run in a kernel of their own, on inputs drawn anew.
    Exit status 1 if an item does not pass yet.
    """
    from .grading import own
    stem = _stem(key)
    if watch:
        return _watch(stem, as_json, timeout)
    result = own.check(stem, timeout)
    _show(result, as_json)
    if any(not item["passed"] for item in result["items"]):
        raise typer.Exit(1)


@app.command(epilog=example("course hint 01 rnn_forward", "course hint 01 rnn_forward --all"))
def hint(key: Key, item: Annotated[str, typer.Argument(help="The name of the function or class.",
                                                       show_default=False)],
         everything: Annotated[bool, typer.Option("--all", help="Show every hint at once.")] = False):
    """The next hint for an item: one more each time you ask."""
    from .grading import own
    steps, total = own.hint(_stem(key), item, everything)
    for number, step in enumerate(steps, 1):
        say(f"Hint {number} of {total}\n", "bold")
        terminal.markdown(step)
        print()
    say("That was the last one." if len(steps) == total else "Ask again for the next one.")


@app.command(epilog=example("course reset 01"))
def reset(key: Key):
    """Bring an exercise back to how it was handed out.  Your notebook is kept in backups/."""
    from . import exercise
    from .grading import own
    stem = _stem(key)
    backup = own.reset(stem)
    say(f"exercises/{stem}.ipynb is as it was handed out.")
    if backup:
        say(f"Yours is kept: {backup.relative_to(exercise.ROOT)}")
        say("If it is open in JupyterLab: File, Reload Notebook from Disk. Saving or overwriting there "
            "instead would bring your version back.")


@app.command(epilog=example("course update", "course update ../course-of-last-term"))
def update(old: Annotated[Path | None, typer.Argument(help="An older copy of the course: take your answers "
                                                      "over from there.", show_default=False)] = None):
    """Bring the newest lessons and exercises by git, and put your answers into them.

    Stop JupyterLab before, and start it with make lab afterwards.  What is replaced is kept in backups/.
    If this copy came as an archive: unpack the new one beside it, and name the old one there.
    """
    from .update import from_folder, from_git
    for line in from_folder(old) if old else from_git():
        say(line)


@app.command(epilog=example("course grade submissions/ --out grades/", "course grade ann.ipynb --out ann/",
                            "course grade submissions/ --out grades/ --dask tcp://10.0.0.5:8786"))
def grade(source: Annotated[Path, typer.Argument(help="A notebook, a folder of notebooks, or a folder with a "
                                                      "folder for each student.", show_default=False)],
          out: Annotated[Path, typer.Option(help="Where the results go; a new, an empty or a former results "
                                                 "folder.", show_default=False)],
          seed: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Draw the same inputs again; "
                                                   "fresh ones without it.", show_default=False)] = None,
          workers: Annotated[int, typer.Option(min=1, help="Notebooks graded at a time.")] = 1,
          dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Grade on a Dask cluster, by the "
                                                   "workers of this scheduler.", show_default=False)] = None,
          as_json: AsJson = False, timeout: Timeout = 20.0):
    """Grade a class: grades.csv, results.json, junit.xml and a feedback page for everyone.

    Only what has changed since the last run is graded again; a run that was stopped goes on.
    """
    from .grading.classroom import grade_class
    if dask is not None and workers > 1:
        raise ValueError("--workers is for this machine; with --dask start as many Dask workers as you want")
    summary, now = grade_class(source, out, seed, timeout, workers, dask)
    if as_json:
        return _print_json(summary)
    table = terminal.table("student", "exercise", "points", "state")
    for one in summary["submissions"]:
        table.add_row(text(one["student"]), one["exercise"] or "", f"{one['score']}/{one['max_score']}",
                      text(one["status"] + (f": {one['message']}" if "message" in one else "")))
    terminal.console().print(table)
    done = sum(one["status"] == "graded" for one in summary["submissions"])
    lost = len(summary["submissions"]) - done
    say(f"{now} graded now, {max(0, done - now)} unchanged, {lost} could not be graded. "
        f"Seed {summary['seed']}. Sandbox: {summary['sandbox']}.\n"
        f"{summary['caution'] + chr(10) if summary['caution'] else ''}"
        f"Results: {out / 'grades.csv'}, and a page for everyone in {out / 'submissions'}")


def _following(rows):
    """The row to go on with: what was begun and saved last, else the first to do after the last one done."""
    from .grading.own import path_of
    todo = [row for row in rows if row["status"] != "done"]
    begun = [row for row in todo if row["status"] not in ("untouched", "not_there")]
    done = [row for row in rows if row["status"] == "done"]
    if not todo or begun:
        return max(begun, key=lambda row: _stamp(path_of(row["exercise"])) or 0, default=None)
    last = max(done, key=lambda row: _stamp(path_of(row["exercise"])) or 0, default={"exercise": ""})
    return next((row for row in todo if row["exercise"] > last["exercise"]), todo[0])


def _show(result, as_json):
    """A checked notebook: each item with its diagnosis, the points, what to do next."""
    if as_json:
        return _print_json(result)
    width = max(len(item["name"]) for item in result["items"])
    for item in result["items"]:
        mark, colour = MARKS.get(item["status"], ("✗", "red"))
        points = f"{item['points']}/{item['max_points']}"
        line = f"{mark} {item['name']:{width}}  {points}  {item['message']}"
        line += f"\n    See {item['see']}." if item["see"] and item["status"] != "missing" else ""
        say(line, colour, hang="    ")
    todo = next((item["name"] for item in result["items"] if not item["passed"]), None)
    after = _next(result["exercise"], todo) if todo else "Everything is right. What comes next: course status"
    say(f"{result['score']} of {result['max_score']} points.\n{after}")


def _watch(stem, as_json, timeout):
    """Check at once, and again whenever the file has another time stamp."""
    from .exercise import NotebookError
    from .grading import GradingError, own
    seen = None
    try:
        while True:
            stamp = _stamp(own.path_of(stem))
            if stamp != seen:
                seen = stamp
                terminal.console().clear()  # in a terminal; a pipe has nothing to clear
                try:
                    _show(own.check(stem, timeout), as_json)
                except (NotebookError, GradingError) as problem:  # half saved: the next save mends it
                    say(f"course: {problem}", error=True)
                if not as_json:
                    say("Watching; save the notebook to check it again, Ctrl-C to stop.")
                    sys.stdout.flush()
            time.sleep(0.3)
    except KeyboardInterrupt:
        return


def _stamp(path):
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _next(stem, item):
    key = stem.split("_")[0]
    if item is None:
        return f"Next: exercises/{stem}.ipynb"
    return f"Next: {item} in exercises/{stem}.ipynb\nA hint: course hint {key} {item}"


def _stem(key):
    from .checks import resolve
    return resolve(key)


def _print_json(content):
    print(json.dumps(content, indent=1))


@app.command(epilog=example("course release students/", "make -C students lab"))
def release(folder: Annotated[Path, typer.Argument(help="A new or an empty folder.", show_default=False)]):
    """What students get: the lessons, the exercises and course_lib, without the solutions."""
    from .exports.release import release
    say(release(folder))


@app.command(epilog=example("course export nbgrader nbgrader/", "course export gradescope 01.zip 01",
                            "course export canvas points.csv --grades grades/",
                            "course export github students/"))
def export(target: Annotated[str, typer.Argument(help="nbgrader, gradescope, canvas, moodle or github.",
                                                 show_default=False)],
           out: Annotated[Path, typer.Argument(help="What to write: a folder (nbgrader, github), a zip "
                                                    "(gradescope), a CSV (canvas, moodle).",
                                               show_default=False)],
           key: Annotated[str | None, typer.Argument(help="One exercise only (gradescope, canvas, moodle).",
                                                     show_default=False)] = None,
           grades: Annotated[Path | None, typer.Option(help="A folder that course grade wrote (canvas, "
                                                            "moodle).", show_default=False)] = None):
    """The course, or its grades, for nbgrader, Gradescope, Canvas, Moodle or GitHub (docs/teaching.md)."""
    from . import exports
    say(exports.export(target, out, key, grades))


def main():
    """Entry point.  Every error is one line and exit status 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a console without ✓ shows ?
    from .grading import GradingError
    try:
        status = app(prog_name="course", standalone_mode=False)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
        sys.exit(status if isinstance(status, int) else 0)
    except BrokenPipeError:  # whoever reads has had enough
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        _fail("stopped; the same command goes on where it was", INTERRUPTED)
    except (GradingError, ValueError) as problem:  # a NotebookError is a ValueError
        _fail(problem)
    except OSError as problem:
        _fail(f"{problem.filename or ''}: {problem.strerror or problem}")
    except Exception as problem:
        if not hasattr(problem, "format_message"):  # not a wrong use of an option, but a bug
            raise
        _fail(problem.format_message())


def _fail(problem, status=2):
    say(f"course: {' '.join(str(problem).split())}", error=True)
    sys.exit(status)


if __name__ == "__main__":
    main()

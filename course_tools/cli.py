"""The `course` command: progress, checks and hints for learners, grading for teachers.

Torch and the grader are imported only by the commands that need them, so help and hints appear at once.
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
STATES = {"not_there": "missing", "untouched": "not started", "begun": "started", "done": "done",
          "unreadable": "unreadable", "failed": "not graded"}

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False,
                  context_settings={"help_option_names": ["-h", "--help"]})
Key = Annotated[str, typer.Argument(help="The exercise: 01, 1, or its full name.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for use in scripts.")]
Timeout = Annotated[float, typer.Option(min=0.1, max=86400, help="Time limit in seconds for one cell, "
                                                            "and for all calls of one answer.")]


def example(*lines):
    """The end of a help page."""
    return "Examples:\n\n" + "\n\n".join(lines)


@app.callback(invoke_without_command=True)
def course(context: typer.Context):
    """From RNNs to the Transformer: see your progress, check answers, get hints, and grade a class."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog=example("course status", "course status --json"))
def status(as_json: AsJson = False, timeout: Timeout = 20.0):
    """Show your progress in every exercise, and what comes next.

    Only notebooks that have changed since the last time are run, and only those you have started.
    """
    from . import learner
    rows = learner.progress(timeout)
    score, possible = (sum(row[key] for row in rows) for key in ("score", "max_score"))
    following = _following(rows)
    if as_json:
        goal = following and {"exercise": following["exercise"], "item": following["next"]}
        return _print_json({"exercises": rows, "score": score, "max_score": possible, "next": goal})
    table = terminal.table("exercise", "items", "points", "state")
    for row in rows:
        state = STATES[row["status"]] + (f": {row['message']}" if row["message"] else "")
        table.add_row(row["exercise"], f"{row['done']}/{row['items']}", f"{row['score']}/{row['max_score']}",
                      text(state, "green" if row["status"] == "done" else ""))
    terminal.console().print(table)
    after = _next(following["exercise"], following["next"]) if following else "All exercises are done."
    say(f"{score} of {possible} points.\n{after}")


@app.command(epilog=example("course check 01", "course check 01 --watch"))
def check(key: Key,
          watch: Annotated[bool, typer.Option("--watch", help="Check again whenever you save the notebook. "
                                                              "Ctrl-C stops.")] = False,
          as_json: AsJson = False, timeout: Timeout = 20.0):
    """Check your notebook in exercises/, as you last saved it.

    Only the answer cells count. They run in a separate kernel, on new random inputs.
    The exit status is 1 if an item does not pass yet.
    """
    from . import learner
    stem = _stem(key)
    if watch:
        return _watch(stem, as_json, timeout)
    result = learner.check(stem, timeout)
    _show(result, as_json)
    if any(not item["passed"] for item in result["items"]):
        raise typer.Exit(1)


@app.command(epilog=example("course hint 01 rnn_forward", "course hint 01 rnn_forward --all"))
def hint(key: Key, item: Annotated[str, typer.Argument(help="The name of the function or class.",
                                                       show_default=False)],
         everything: Annotated[bool, typer.Option("--all", help="Show every hint at once.")] = False):
    """Show the next hint for an item. Every call shows one more."""
    from . import learner
    steps, total = learner.hint(_stem(key), item, everything)
    for number, step in enumerate(steps, 1):
        say(f"Hint {number} of {total}\n", "bold")
        terminal.markdown(step)
        print()
    say("That was the last hint." if len(steps) == total else "For the next hint, run the command again.")


@app.command(epilog=example("course reset 01"))
def reset(key: Key):
    """Restore an exercise to its original state. Your version is kept in backups/."""
    from . import exercise, learner
    stem = _stem(key)
    backup = learner.reset(stem)
    say(f"exercises/{stem}.ipynb is back in its original state.")
    if backup:
        say(f"Your version is kept in {backup.relative_to(exercise.ROOT)}")
        say("If the exercise is open in JupyterLab, choose File, Reload Notebook from Disk. If you save it "
            "there instead, your version replaces the restored one.")


@app.command(epilog=example("course doctor", "course doctor --json"))
def doctor(as_json: AsJson = False):
    """Look whether all that the course needs is there, and say what to do if not.

    Ends with a block that you can paste into a bug report. It contains no names and no paths.
    """
    from . import doctor
    rows = []
    for subject, state, advice in doctor.examine():
        rows.append((subject, state, advice))
        if not as_json:
            say(f"{'✗' if advice else '✓'} {subject}: {state}" + (f"\n    {advice}" if advice else ""),
                "red" if advice else "green", hang="    ")
    if as_json:
        return _print_json([dict(zip(("subject", "state", "advice"), row, strict=True)) for row in rows])
    say(f"\nFor a bug report:\n\n{doctor.report(rows)}")


@app.command(epilog=example("course update", "course update ../course-of-last-term"))
def update(old: Annotated[Path | None, typer.Argument(help="An older copy of the course, from which to "
                                                      "copy your answers.", show_default=False)] = None):
    """Get the newest lessons and exercises with git, and put your answers into them.

    Stop JupyterLab first, and start it again with make lab afterwards.
    Files that are replaced are kept in backups/.

    If you got the course as an archive, unpack the new one beside the old one.
    Then run this command in the new one, with the path of the old one.
    """
    from .update import from_folder, from_git
    for line in from_folder(old) if old else from_git():
        say(line)


@app.command(epilog=example("course grade submissions/ --out grades/", "course grade ann.ipynb --out ann/",
                            "course grade submissions/ --out grades/ --dask tcp://10.0.0.5:8786"))
def grade(source: Annotated[Path, typer.Argument(help="A notebook, a folder of notebooks, or a folder with "
                                                      "one folder for each student.", show_default=False)],
          out: Annotated[Path, typer.Option(help="The folder for the results: new, empty, or with "
                                                 "earlier results.", show_default=False)],
          seed: Annotated[int | None, typer.Option(min=0, max=2**32 - 1, help="Draw the inputs from this "
                                                   "seed, instead of a new one.", show_default=False)] = None,
          workers: Annotated[int | None, typer.Option(min=1, help="How many notebooks to grade at a time; by "
                                                      "default one per processor, at most 4.",
                                                      show_default=False)] = None,
          dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Grade on the Dask cluster whose "
                                                   "scheduler has this address.", show_default=False)] = None,
          as_json: AsJson = False, timeout: Timeout = 20.0):
    """Grade a class, and write grades.csv, results.json, junit.xml and a feedback page for each notebook.

    Only notebooks that have changed since the last run are graded again. A run that was stopped continues.
    """
    from .grading.classroom import grade_class
    if dask is not None and workers is not None:
        raise ValueError("--workers applies to this machine only. With --dask, start as many Dask "
                         "workers as you need")
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
        f"The results are in {out / 'grades.csv'}, and the feedback pages in {out / 'submissions'}.")


def _following(rows):
    """The row to continue with: the started one saved last, else the first open one after the last done."""
    from .learner import path_of
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
    after = (_next(result["exercise"], todo) if todo else
             "Every item passes. To see what comes next: course status")
    say(f"{result['score']} of {result['max_score']} points.\n{after}")


def _watch(stem, as_json, timeout):
    """Check now, and again whenever the time stamp or the size of the file changes."""
    from . import learner
    from .exercise import NotebookError
    from .grading import GradingError
    seen = None
    try:
        while True:
            stamp = _stamp(learner.path_of(stem))
            if stamp != seen:
                seen = stamp
                terminal.console().clear()  # in a terminal; a pipe has nothing to clear
                try:
                    _show(learner.check(stem, timeout), as_json)
                except (NotebookError, GradingError) as problem:  # half saved: the next save repairs it
                    say(f"course: {problem}", error=True)
                if not as_json:
                    say("Watching. Save the notebook to check it again, or press Ctrl-C to stop.")
                    sys.stdout.flush()
            time.sleep(0.3)
    except KeyboardInterrupt:
        return


def _stamp(path):
    """When a file was written, and its size: a save that is seen half done may end in the same clock tick."""
    try:
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    except OSError:
        return None


def _next(stem, item):
    key = stem.split("_")[0]
    if item is None:
        return f"Next: exercises/{stem}.ipynb"
    return f"Next: {item} in exercises/{stem}.ipynb\nFor a hint: course hint {key} {item}"


def _stem(key):
    from .items.registry import resolve
    return resolve(key)


def _print_json(content):
    print(json.dumps(content, indent=1))


@app.command(epilog=example("course release students/", "make -C students lab"))
def release(folder: Annotated[Path, typer.Argument(help="A new or empty folder.", show_default=False)]):
    """Write the folder that students get: lessons, exercises and the two packages, without the solutions."""
    from .exports.release import release
    say(release(folder))


@app.command(epilog=example("course export nbgrader nbgrader/", "course export gradescope 01.zip 01",
                            "course export canvas points.csv --grades grades/",
                            "course export github students/"))
def export(target: Annotated[str, typer.Argument(help="nbgrader, gradescope, canvas, moodle or github.",
                                                 show_default=False)],
           out: Annotated[Path, typer.Argument(help="The output: a folder (nbgrader, github), a zip file "
                                                    "(gradescope) or a CSV file (canvas, moodle).",
                                               show_default=False)],
           key: Annotated[str | None, typer.Argument(help="Only this exercise (gradescope, canvas, moodle).",
                                                     show_default=False)] = None,
           grades: Annotated[Path | None, typer.Option(help="The results of course grade (canvas, "
                                                            "moodle).", show_default=False)] = None):
    """Export the course or its grades to nbgrader, Gradescope, Canvas, Moodle or GitHub.

    docs/teaching.md explains what to do with the result in each of these systems.
    """
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
    except BrokenPipeError:  # the reader has closed the pipe
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt:
        _fail("stopped. Run the same command again to continue", INTERRUPTED)
    except (GradingError, ValueError) as problem:  # a NotebookError is a ValueError
        _fail(problem)
    except OSError as problem:
        _fail(f"{problem.filename or ''}: {problem.strerror or problem}")
    except Exception as problem:
        if not hasattr(problem, "format_message"):  # a bug, not a wrong use of an option
            raise
        _fail(problem.format_message())


def _fail(problem, status=2):
    say(f"course: {' '.join(str(problem).split())}", error=True)
    sys.exit(status)


if __name__ == "__main__":
    main()

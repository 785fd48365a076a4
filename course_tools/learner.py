"""The learner's commands: check an exercise, show progress, give hints, start again.

Results and the number of hints shown are stored in ROOT/.course.  Backups are stored in ROOT/backups, where
learners see them.
"""

import contextlib
import json

from . import exercise, files
from .backups import keep
from .grading import GradingError
from .grading.classroom import known
from .grading.grade import Reading, Settings, fresh_seed
from .grading.merge import points
from .grading.reports.gradebook import Gradebook
from .grading.submissions import Submission
from .grading.workers import grade_all
from .items import registry

ME = "me"  # the name of the student in the learner's results


def path_of(stem):
    """The learner's notebook of an exercise."""
    return exercise.ROOT / "exercises" / f"{stem}.ipynb"


def check(stem, timeout):
    """Grade the learner's notebook on fresh inputs.  Returns the result as `grade_notebook` does.

    Raises NotebookError or GradingError if it cannot be graded.
    """
    submission = Submission(ME, stem, path_of(stem))
    (_, result), = _grade({submission: Reading()}, timeout, _results())
    if result["status"] == "unreadable":
        raise exercise.NotebookError(f"{result['message']} (course reset {submission.key} restores it)")
    if result["status"] != "graded":
        raise GradingError(result["message"])
    return result


def _grade(todo, timeout, book):
    """(submission, result) of each, stored in `book` for the next `progress` if possible."""
    for submission, result in grade_all(todo, Settings(fresh_seed(), timeout)):
        with contextlib.suppress(GradingError):
            if book:
                book.save(submission, result)
        yield submission, result


def progress(timeout):
    """[{"exercise", "status", "score", "max_score", "done", "items", "next", "message"}] of all exercises.

    Grades only what has changed since the last call.  next: the first item that does not pass, or None.
    """
    mine = [Submission(ME, stem, path_of(stem)) for stem in registry.stems()]
    book = _results()
    results, todo = known(book, [one for one in mine if one.path.exists()], None, timeout)
    results.update(_grade(todo, timeout, book))
    return [_row(one.exercise, results.get(one)) for one in mine]


def _row(stem, result):
    if result is None:
        possible = points(stem)
        return {"exercise": stem, "status": "not_there", "score": 0, "max_score": sum(possible.values()),
                "done": 0, "items": len(possible), "next": None,
                "message": f"course reset {stem[:2]} restores it"}
    items, begun = result["items"], any(item["status"] != "missing" for item in result["items"])
    status = result["status"] if result["status"] != "graded" else "begun" if begun else "untouched"
    status = "done" if items and all(item["passed"] for item in items) else status
    return {"exercise": stem, "status": status, "score": result["score"], "max_score": result["max_score"],
            "done": sum(item["passed"] for item in items), "items": len(items),
            "next": next((item["name"] for item in items if not item["passed"]), None),
            "message": result.get("message")}


def hint(stem, item, everything=False):
    """(the hints to show, how many there are): one more at every call, or all.

    Raises GradingError if there is no such item, or if it has no hints.
    """
    notebook = exercise.pristine(stem)
    known = points(stem)
    if item not in known:
        raise GradingError(f"exercise {stem[:2]} has no item {item!r}. Its items are: {', '.join(known)}")
    steps = exercise.hints(notebook, item)
    if not steps:
        raise GradingError(f"there are no hints for {item}")
    memory = exercise.ROOT / ".course" / "hints.json"
    try:
        shown = json.loads(memory.read_text(encoding="utf-8"))
        before = int(shown.get(f"{stem}/{item}", 0))
    except (OSError, ValueError, TypeError, AttributeError):
        shown, before = {}, 0
    count = len(steps) if everything else min(max(before, 0) + 1, len(steps))
    with contextlib.suppress(OSError):  # a hint is worth showing even if its number cannot be stored
        files.write(memory, json.dumps({**shown, f"{stem}/{item}": count}))
    return steps[:count], len(steps)


def reset(stem):
    """Restore the learner's notebook to its original state.

    Returns the path of the backup of the previous version, or None if there was none.
    """
    text, mine, backup = exercise.text(exercise.pristine(stem)), path_of(stem), None
    if mine.exists():
        backup = keep(mine, exercise.ROOT)
    files.write(mine, text)
    return backup


def _results():
    """The learner's results as a Gradebook, or None if they cannot be stored, which costs only time."""
    with contextlib.suppress(GradingError):
        return Gradebook(exercise.ROOT / ".course" / "results")

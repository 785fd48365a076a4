"""A learner's own exercises: check one, see how far all are, take a hint, begin again.

What is remembered lies in ROOT/.course: results, and how many hints were shown.  Backups lie in
ROOT/backups, where a learner sees them.
"""

import contextlib
import json

from .. import checks, exercise
from ..backups import keep
from . import GradingError
from .classroom import known
from .grade import Reading, Settings, fresh_seed
from .gradebook import Gradebook, write
from .merge import points
from .submissions import Submission
from .workers import grade_all

ME = "me"  # the student in one's own results


def path_of(stem):
    """The learner's notebook of an exercise."""
    return exercise.ROOT / "exercises" / f"{stem}.ipynb"


def check(stem, timeout):
    """Grade the learner's own notebook on fresh inputs.  Returns the result as `grade_notebook` does.

    Raises NotebookError or GradingError if it can't be graded.
    """
    submission = Submission(ME, stem, path_of(stem))
    (_, result), = _grade({submission: Reading()}, timeout, _results())
    if result["status"] == "unreadable":
        raise exercise.NotebookError(f"{result['message']} (course reset {submission.key} brings a new one)")
    if result["status"] != "graded":
        raise GradingError(result["message"])
    return result


def _grade(todo, timeout, book):
    """(submission, result) of each, kept in `book` for the next `progress` where that can be."""
    for submission, result in grade_all(todo, Settings(fresh_seed(), timeout)):
        with contextlib.suppress(GradingError):
            if book:
                book.save(submission, result)
        yield submission, result


def progress(timeout):
    """[{"exercise", "status", "score", "max_score", "done", "items", "next", "message"}] of all exercises.

    Grades only what has changed since the last look.  next: the first item that does not pass, or None.
    """
    mine = [Submission(ME, stem, path_of(stem)) for stem in checks.stems()]
    book = _results()
    results, todo = known(book, [one for one in mine if one.path.exists()], None, timeout)
    results.update(_grade(todo, timeout, book))
    return [_row(one.exercise, results.get(one)) for one in mine]


def _row(stem, result):
    if result is None:
        worth = points(stem)
        return {"exercise": stem, "status": "not_there", "score": 0, "max_score": sum(worth.values()),
                "done": 0, "items": len(worth), "next": None, "message": f"course reset {stem[:2]} brings it"}
    items, begun = result["items"], any(item["status"] != "missing" for item in result["items"])
    status = result["status"] if result["status"] != "graded" else "begun" if begun else "untouched"
    status = "done" if items and all(item["passed"] for item in items) else status
    return {"exercise": stem, "status": status, "score": result["score"], "max_score": result["max_score"],
            "done": sum(item["passed"] for item in items), "items": len(items),
            "next": next((item["name"] for item in items if not item["passed"]), None),
            "message": result.get("message")}


def hint(stem, item, everything=False):
    """(the hints to show, how many there are): one more at every call, or all.

    Raises GradingError for a name that is no item, and if the exercise has no hint for it.
    """
    notebook = exercise.pristine(stem)
    known = points(stem)
    if item not in known:
        raise GradingError(f"exercise {stem[:2]} has no item {item!r}; it has: {', '.join(known)}")
    steps = exercise.hints(notebook, item)
    if not steps:
        raise GradingError(f"there is no hint for {item}")
    memory = exercise.ROOT / ".course" / "hints.json"
    try:
        shown = json.loads(memory.read_text(encoding="utf-8"))
        before = int(shown.get(f"{stem}/{item}", 0))
    except (OSError, ValueError, TypeError, AttributeError):
        shown, before = {}, 0
    count = len(steps) if everything else min(max(before, 0) + 1, len(steps))
    with contextlib.suppress(OSError):  # a hint is worth showing even where it can't be remembered
        write(memory, json.dumps({**shown, f"{stem}/{item}": count}))
    return steps[:count], len(steps)


def reset(stem):
    """Bring the learner's notebook back to how it was handed out.

    Returns the path of the backup of what was there, or None if there was nothing.
    """
    text, mine, backup = exercise.text(exercise.pristine(stem)), path_of(stem), None
    if mine.exists():
        backup = keep(mine, exercise.ROOT)
    write(mine, text)
    return backup


def _results():
    """The learner's results as a Gradebook; None where they can't be kept, which costs only time."""
    with contextlib.suppress(GradingError):
        return Gradebook(exercise.ROOT / ".course" / "results")

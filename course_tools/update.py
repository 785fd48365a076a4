"""`course update`: get the newest lessons and exercises, and put the learner's answers into them.

In a git clone the newest version comes from the remote branch.  Otherwise the learner unpacks it beside
the old one, and the answers are copied from there.
"""

import contextlib
import subprocess

from . import exercise, files
from .backups import keep

NOTEBOOKS = ("notebooks/", "exercises/")  # what learners run and fill in


class UpdateError(ValueError):
    """Why there was no update; nothing was changed."""


def from_git():
    """Fast-forward this clone to its remote branch.  Returns the lines to print.

    A notebook that was changed on both sides is kept in backups/ and replaced; the answers in an exercise
    are then put into the new one.  All other changed notebooks stay as they are.
    """
    _check_clone()
    _git("fetch", "--quiet")
    new, old = _git("rev-parse", "@{upstream}"), _git("rev-parse", "HEAD")
    if _git("merge-base", new, old) == new:
        return ["You already have the newest version."]
    if _git("merge-base", new, old) != old:
        raise UpdateError("this clone has commits of its own, so the update has to be merged. Run: git pull")
    replaced = _names("diff", "--name-only", "-z", old, new) & _names("diff", "--name-only", "-z", "HEAD")
    others = sorted(name for name in replaced if not name.startswith(NOTEBOOKS))
    if others:
        raise UpdateError(f"{others[0]} was changed here and in the new version. First set your changes "
                          f"aside: git stash push {' '.join(others)}")
    kept = {name: keep(exercise.ROOT / name, exercise.ROOT)
            for name in sorted(replaced) if (exercise.ROOT / name).exists()}
    handed_out = {name: _git("show", f"HEAD:{name}") for name in kept}
    try:
        if replaced:
            _git("checkout", "--quiet", "HEAD", "--", *sorted(replaced))
        _git("merge", "--quiet", "--ff-only", new)
    except UpdateError:
        for name, copy in kept.items():
            (exercise.ROOT / name).write_bytes(copy.read_bytes())
        raise
    return ["Updated."] + [_tell(name, copy, handed_out[name]) for name, copy in kept.items()]


def _tell(name, copy, handed_out):
    """Put the answers of an exercise into the new one.  Returns the line that says what happened."""
    line = f"{name} was replaced; your version is {copy.relative_to(exercise.ROOT)}."
    path = exercise.ROOT / name
    if name.startswith("exercises/") and path.exists():
        with contextlib.suppress(exercise.NotebookError):
            moved = _fill(path, exercise.read(copy), exercise.nbformat.reads(handed_out, as_version=4))
            line += f" These answers were copied into the new version: {', '.join(moved) or 'none'}."
    return line


def from_folder(folder):
    """Copy the answers from an older copy of the course.  Returns the lines to print."""
    if not (folder / "exercises").is_dir():
        raise UpdateError(f"{folder} is not a copy of the course: it has no folder called exercises")
    if folder.resolve() == exercise.ROOT.resolve():
        raise UpdateError(f"{folder} is this copy itself. Give the path of the older one")
    lines = []
    for path in sorted((exercise.ROOT / "exercises").glob("*.ipynb")):
        old = folder / "exercises" / path.name
        if old.exists():
            moved = _fill(path, exercise.read(old), exercise.pristine(path.stem, folder))
            lines += [f"exercises/{path.name}: {', '.join(moved)}"] if moved else []
    return lines or [f"Nothing to copy: {folder / 'exercises'} has no answer that is missing here."]


def _fill(path, old, before):
    """Put the answers of the notebook `old` into the exercise at `path`; returns their names.

    before: the exercise that `old` was handed out as.  An answer cell that was changed in the new exercise is
    never replaced.
    """
    notebook, pristine = exercise.read(path), exercise.pristine(path.stem)
    names = [exercise.grade_id(cell) for cell in notebook.cells if exercise.grade_id(cell)]
    answered, handed_out, clean = (exercise.answers(one, names)[0] for one in (old, before, pristine))
    moved = []
    for cell in notebook.cells:
        name = exercise.grade_id(cell)
        if name in answered and answered[name] != handed_out.get(name) and cell.source == clean.get(name):
            cell.source = answered[name]
            moved.append(name)
    if moved:
        files.write(path, exercise.text(notebook))
    return moved


def _check_clone():
    """Raise UpdateError unless the course is a git clone that tracks a remote branch."""
    with contextlib.suppress(OSError, UpdateError):
        top = _git("rev-parse", "--show-toplevel")
        if exercise.ROOT.samefile(top) and _git("rev-parse", "@{upstream}"):
            return
    raise UpdateError("this copy of the course is not a git clone. Unpack the newer version into its own "
                      f"folder, and run there: course update {exercise.ROOT}")


def _names(*arguments):
    """The file names that git lists with -z."""
    return {name for name in _git(*arguments).split("\0") if name}


def _git(*arguments):
    """What git prints.  Raises UpdateError with its message if it fails."""
    done = subprocess.run(["git", *arguments], cwd=exercise.ROOT, capture_output=True, text=True,
                          encoding="utf-8", stdin=subprocess.DEVNULL)
    if done.returncode:
        raise UpdateError(f"git {arguments[0]}: {done.stderr.strip() or 'failed'}")
    return done.stdout.strip("\n")

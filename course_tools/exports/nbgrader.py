"""`course export nbgrader DIR`: a course folder for nbgrader, with the solutions as its source.

nbgrader runs the whole notebook that a student hands in, as the user who grades.  Our grader takes only the
answers, and compares outside their process.  The check cells are the same.
"""

from collections.abc import Sequence
from pathlib import Path

from .. import exercise
from . import ExportError, new_folder, rendered, stems


def write(out: Path, target: str, only: Sequence[str] | None, grades: str | Path | None) -> str:
    """Write DIR/source/NN_name/NN_name.ipynb and DIR/nbgrader_config.py into a new or empty folder."""
    lacking = [stem for stem in stems() if not (exercise.ROOT / "solutions" / f"{stem}.ipynb").exists()]
    if lacking:
        raise ExportError("nbgrader makes its assignments from the solutions, but this copy of the course "
                          f"has none for {', '.join(lacking)}")
    with new_folder(out) as folder:
        config = rendered("nbgrader_config.py")
        (folder / "nbgrader_config.py").write_text(config, encoding="utf-8")
        for stem in stems():
            notebook = exercise.read(exercise.ROOT / "solutions" / f"{stem}.ipynb")
            source = folder / "source" / stem / f"{stem}.ipynb"
            source.parent.mkdir(parents=True)
            source.write_text(exercise.text(notebook), encoding="utf-8", newline="\n")
    return (f"{out}: {len(stems())} assignments. In that folder: nbgrader generate_assignment {stems()[0]}, "
            "then nbgrader autograde and generate_feedback")

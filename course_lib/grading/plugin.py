"""The cells of a merged notebook as pytest items, on nbval's collector: what nbval does for a lesson
(compare outputs with the reference's), done for an answer, live and outside its kernel.
"""

import contextlib
import io
import os
import tempfile
from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

from .. import exercise
from . import GradingError
from .merge import item_of

SWITCHES = ["--noconftest", "--assert=plain", "--capture=no", "-q", "-p", "nbval.plugin",
            *(f"-pno:{name}" for name in ("cacheprovider", "faulthandler", "logging", "unraisableexception",
                                          "threadexception"))]
QUIET = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}


class NotPassed(Exception):
    """An item that does not pass: a result, not a failure of the grader."""


class SetUpCell(IPyNbCell):
    """A cell of the pristine notebook that answers rest on."""

    def runtest(self):
        self.parent.sitting.set_up(self.cell.source)


class AnswerCell(IPyNbCell):
    """An answer cell with the submission's source; whatever it does is told by its check."""

    def runtest(self):
        self.parent.sitting.answer(item_of(self.cell), self.cell.source)


class CheckCell(IPyNbCell):
    """A check cell: it is not run, the answer is observed in the kernel and judged here."""

    def runtest(self):
        verdict = self.parent.sitting.examine(item_of(self.cell))
        if not verdict.passed:
            raise NotPassed(verdict.message)


class SubmissionFile(IPyNbFile):
    """A merged notebook; its cells run in the kernel of `sitting`."""

    sitting = None

    def setup(self):
        """The sitting starts its kernel when the first cell needs one."""

    def teardown(self):
        self.sitting.close()

    def collect(self):
        """nbval's cells, each as what it is to the grader."""
        for cell in super().collect():
            kind, name = SetUpCell, f"set-up {cell.cell_num}"
            if exercise.grade_id(cell.cell):
                kind, name = AnswerCell, f"answer {item_of(cell.cell)}"
            elif exercise.grade_id(cell.cell, "grade"):
                kind, name = CheckCell, item_of(cell.cell)
            yield kind.from_parent(self, name=name, cell_num=cell.cell_num, cell=cell.cell,
                                   options=cell.options)


class Plugin:
    """Collects notebooks as SubmissionFile, and keeps the grader's own failures apart from results."""

    def __init__(self, sitting):
        self.sitting, self.trouble = sitting, None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collect_file(self, file_path, parent):
        if file_path.suffix == ".ipynb":
            collector = SubmissionFile.from_parent(parent, path=file_path)
            collector.sitting = self.sitting
            return collector

    def pytest_exception_interact(self, call):
        problem = call.excinfo.value
        if not isinstance(problem, NotPassed) and self.trouble is None:
            known = isinstance(problem, GradingError)
            self.trouble = str(problem) if known else f"{type(problem).__name__}: {str(problem)[:300]}"


def run(notebook, sitting):
    """Run a merged notebook through pytest; `sitting` holds the verdicts then.  Raises GradingError."""
    plugin = Plugin(sitting)
    with tempfile.TemporaryDirectory(prefix="course-merged-") as folder:
        path, settings = Path(folder, "submission.ipynb"), Path(folder, "pytest.ini")
        path.write_text(exercise.text(notebook), encoding="utf-8")
        settings.write_text("[pytest]\n", encoding="utf-8")  # no other settings reach in
        with _environment(QUIET), contextlib.redirect_stdout(io.StringIO()) as printed:
            status = pytest.main([str(path), "-c", str(settings), "--rootdir", folder, *SWITCHES],
                                 plugins=[plugin])
    if status == pytest.ExitCode.INTERRUPTED and plugin.trouble is None:
        raise KeyboardInterrupt
    if plugin.trouble or status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise GradingError(plugin.trouble or " ".join(printed.getvalue().split())[-300:])


@contextlib.contextmanager
def _environment(changes):
    """os.environ with `changes`, put back afterwards."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)

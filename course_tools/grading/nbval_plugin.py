"""The cells of a merged notebook as pytest items, based on nbval's collector: what nbval does for a lesson
(compare outputs with the stored ones), done for an answer, live and outside its kernel.
"""

import collections
import contextlib
import functools
import os

import pytest
from nbval.plugin import IPyNbCell, IPyNbFile

from .. import exercise
from . import GradingError
from .merge import item_of

SWITCHES = ["--noconftest", "--assert=plain", "--capture=no", "-c", os.devnull, "--rootdir", os.sep,
            "-p", "nbval.plugin", *(f"-pno:{name}" for name in (
                "cacheprovider", "debugging", "doctest", "faulthandler", "junitxml", "logging", "pastebin",
                "recwarn", "setuponly", "setupplan", "stepwise", "subtests", "threadexception", "tmpdir",
                "unittest", "unraisableexception", "warnings"))]
QUIET = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": "", "PYTEST_PLUGINS": ""}


class NotPassed(Exception):
    """An item that does not pass: a result, not a failure of the grader."""


class SetUpCell(IPyNbCell):
    """A cell of the original notebook on which answers depend."""

    def runtest(self):
        self.parent.grading.set_up(self.cell.source)


class AnswerCell(IPyNbCell):
    """An answer cell with the submission's source; its check reports what it does."""

    def runtest(self):
        self.parent.grading.answer(item_of(self.cell), self.cell.source)


class CheckCell(IPyNbCell):
    """A check cell.  It is not run: the answer is observed in the kernel and judged here."""

    def runtest(self):
        verdict = self.parent.grading.examine(item_of(self.cell))
        if not verdict.passed:
            raise NotPassed(verdict.message)


class SubmissionFile(IPyNbFile):
    """A merged notebook; its cells run in the kernel of `grading`."""

    def begin(self, notebook, grading):
        self.nb, self.grading = notebook, grading
        return self

    def setup(self):
        """The grading session starts its kernel when the first cell needs one."""

    def teardown(self):
        self.grading.close()

    def collect(self):
        """nbval's cells, each as the kind of item that the grader needs."""
        for number, cell in enumerate(self.nb.cells):
            kind, name = SetUpCell, f"set-up {number}"
            if exercise.grade_id(cell):
                kind, name = AnswerCell, f"answer {item_of(cell)}"
            elif exercise.grade_id(cell, "grade"):
                kind, name = CheckCell, item_of(cell)
            yield kind.from_parent(self, name=name, cell_num=number, cell=cell,
                                   options=collections.defaultdict(bool))


class Failures:
    """Separates the grader's own failures from results."""

    def __init__(self):
        self.trouble = None

    def pytest_exception_interact(self, call):
        problem = call.excinfo.value
        if not isinstance(problem, NotPassed) and self.trouble is None:
            known = isinstance(problem, GradingError)
            self.trouble = str(problem) if known else f"{type(problem).__name__}: {str(problem)[:300]}"


@functools.cache
def _session():
    """One session of pytest for all notebooks of this process; it keeps nothing of them."""
    with _environment(QUIET), open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        config = pytest.Config.fromdictargs({}, SWITCHES)
        config._do_configure()
        session = pytest.Session.from_config(config)
        config.hook.pytest_sessionstart(session=session)
    config.pluginmanager.unregister(name="terminalreporter")
    return session


def run(notebook, grading):
    """Run the cells of a merged notebook as items of pytest; the GradingSession holds the verdicts then.

    Raises GradingError.
    """
    session, failures = _session(), Failures()
    file = SubmissionFile.from_parent(session, path=session.path / "submission.ipynb")
    cells = list(file.begin(notebook, grading).collect())
    session.config.pluginmanager.register(failures)
    try:
        with _environment({}):  # pytest notes there which item is running
            for cell, following in zip(cells, [*cells[1:], None]):
                cell.ihook.pytest_runtest_protocol(item=cell, nextitem=following)
    except BaseException:  # Ctrl-C: what pytest would have torn down later
        grading.close()
        _session.cache_clear()
        raise
    finally:
        session.config.pluginmanager.unregister(failures)
    if failures.trouble:
        raise GradingError(failures.trouble)


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

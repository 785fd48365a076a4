"""For every test, and for `pytest --nbval notebooks/` typed by hand: stored outputs were made like this."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

NO_FIXTURES = SimpleNamespace(name2fixturedefs={})  # of a notebook's cell
ROOT = Path(__file__).parent


def first(variable, folder):
    """Put a folder in front of those that a variable lists, for the kernels that tests start."""
    os.environ[variable] = os.pathsep.join([str(folder), *filter(None, [os.environ.get(variable)])])


os.environ.setdefault("COURSE_STATIC", "1")    # widgets show their default picture, no timings
os.environ.setdefault("OMP_NUM_THREADS", "1")
first("PYTHONPATH", ROOT)                      # this copy of the course,
first("PATH", Path(sys.executable).parent)     # and this environment's `course`


def pytest_configure(config):
    """nbval compares everything but the values that findings measured (course_lib/findings.py)."""
    if getattr(config.option, "nbval_sanitize_with", "") is None:
        config.option.nbval_sanitize_with = str(ROOT / "course_lib" / "nbval_sanitize.cfg")


@pytest.hookimpl(tryfirst=True)                # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items):
    """With several pytest workers, the tests that share an expensive fixture go to the same one."""
    for item in items:
        found = getattr(item, "_fixtureinfo", NO_FIXTURES).name2fixturedefs.values()
        if any(fixture.scope in ("module", "session") and fixture.baseid for *_, fixture in found):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))

"""For every test, and for `pytest --nbval notebooks/` typed by hand: stored outputs were made like this."""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).parent


def first(variable, folder):
    """Put a folder in front of those that a variable lists, for the kernels that tests start."""
    os.environ[variable] = os.pathsep.join([str(folder), *filter(None, [os.environ.get(variable)])])


os.environ.setdefault("COURSE_STATIC", "1")    # widgets show their default picture, no timings
os.environ.setdefault("OMP_NUM_THREADS", "1")
first("PYTHONPATH", ROOT)                      # this copy of course_lib,
first("PATH", Path(sys.executable).parent)     # and this environment's `course`


def pytest_configure(config):
    """nbval compares everything but the measured numbers of claims (course_lib/claims.py)."""
    if getattr(config.option, "nbval_sanitize_with", "") is None:
        config.option.nbval_sanitize_with = str(ROOT / "course_lib" / "nbval_sanitize.cfg")

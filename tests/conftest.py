"""Fixtures of the tests in a browser: a page in a headless Chromium, and JupyterLab on a copy of the course.

No test depends on another: each has a page of its own, and finds the course as it is committed, with no
kernel running.  So they may run in any order, and on several pytest-xdist workers.
"""

import os
import shutil

import jupyterlab_page as lab
import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--disable-default-apps"]


def missing():
    """What these tests lack on this machine, in a line, or None."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the Python package playwright is not installed"
    return None if CHROMIUM else "there is no chromium on this machine (Debian: apt install chromium)"


@pytest.fixture(scope="module")
def browser_context():
    """A headless Chromium that calls nobody.  Pages of one module share its cache."""
    reason = missing()
    if reason and os.environ.get("COURSE_REQUIRE_BROWSER") == "1":
        pytest.fail(f"COURSE_REQUIRE_BROWSER=1, but {reason}")
    if reason:
        pytest.skip(f"browser tests: {reason}")
    from playwright.sync_api import sync_playwright
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser.new_context(viewport={"width": 1280, "height": 900})
        browser.close()


@pytest.fixture
def page(browser_context):
    page = browser_context.new_page()
    page.set_default_timeout(30_000)
    yield page
    page.close()


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory):
    """A copy of the course with JupyterLab on it, one for all tests of this process."""
    course = lab.Course(tmp_path_factory.mktemp("browser") / "course")
    yield course
    course.stop()


@pytest.fixture
def course(page, jupyterlab):
    """The copy as it is committed, before every test."""
    yield jupyterlab
    page.goto("about:blank")    # so that nothing is saved any more
    jupyterlab.reset()

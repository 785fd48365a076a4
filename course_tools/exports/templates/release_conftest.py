"""Settings of the release's tests."""


def pytest_report_header():
    """Say what these tests cover, and what they do not."""
    return ("a release: every lesson is executed and compared, and the exercises and commands are tried out. "
            "The tests of solutions, checks, models and the grader are in the teacher's copy of the course.")

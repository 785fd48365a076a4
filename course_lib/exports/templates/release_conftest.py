"""Settings of the release's tests."""


def pytest_report_header():
    """What these tests are, and what they are not."""
    return ("a release: every lesson is executed and compared, exercises and commands are tried; "
            "the tests of solutions, checks, models and the grader are in the teacher's copy of the course")

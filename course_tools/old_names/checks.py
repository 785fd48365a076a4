"""course_lib.checks, for notebooks from before version 0.2."""

from course_tools.judging import CheckFailed, check

__all__ = ["CheckFailed", "check"]

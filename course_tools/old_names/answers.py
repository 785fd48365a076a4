"""course_lib.answers, for notebooks from before version 0.2."""

from course_tools.answers import earlier_answers

__all__ = ["earlier_answers"]

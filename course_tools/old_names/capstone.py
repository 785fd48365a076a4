"""course_lib.capstone, for notebooks from before version 0.2."""

from course_tools.capstone import gather, page, train

__all__ = ["gather", "page", "train"]

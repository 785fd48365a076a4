"""Modules under the names that they had in course_lib before version 0.2, where it still finds them."""

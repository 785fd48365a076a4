"""Modules under the names that they had in course_lib before version 0.2; course_lib/__init__.py looks here."""

"""The author's tools: execute and store notebooks, make the exercises, build the site.

Run as ``python -m course_lib.authoring VERB [KEY ...]``; the Makefile does.
"""

"""The author's tools: ``python -m course_tools.authoring VERB [KEY ...]``, as the Makefile calls them.

execute.py runs lessons and solutions, stored.py keeps outputs that did not change, claims.py measures what
the lessons claim, handout.py makes the exercises, shown.py refreshes library code in lessons, diagrams/
draws, and site.py makes pages to read.  Begin with __main__.py.
"""

"""The author's tools: ``python -m course_tools.authoring VERB [KEY ...]``, as the Makefile calls them.

execute.py runs lessons and solutions, stored.py keeps outputs that did not change, findings.py measures
with five seeds what the lessons assert, studies.py makes tables of what takes longer, handout.py makes the
exercises, shown.py refreshes library code in lessons, diagrams/ draws, and book/ makes the site.  Begin
with __main__.py.
"""

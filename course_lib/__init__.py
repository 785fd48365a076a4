"""The library of the course *From RNNs to the Transformer*.

Lessons import a small part of it: runtime, shapes, claims, plots, widgets, training, decoding and metrics,
with the packages data and models.  Everything else is a tool: checks judges answers, grading
grades a class, exports serves other systems, authoring makes notebooks and pages, benchmarks measures, and
cli is the `course` command.  Nothing is loaded before it is imported.  Begin with models/rnn.py, or with
the map in CONTRIBUTING.md.
"""

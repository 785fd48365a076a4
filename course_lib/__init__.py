"""The library of the course *From RNNs to the Transformer*: what the notebooks import.

data and models are packages; runtime, shapes, training, decoding, metrics, findings, studies, plots and
widgets are modules.  Nothing is loaded before it is imported.  Begin with models/rnn.py, or with the map in
CONTRIBUTING.md.
"""

from pathlib import Path

# Notebooks from before version 0.2 import course_lib.checks and its like, which are in course_tools now.
__path__.append(str(Path(__file__).parents[1] / "course_tools" / "old_names"))

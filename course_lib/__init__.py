"""The helper package of the course *From RNNs to the Transformer*.

Import the submodule you need (``from course_lib.models import rnn``): nothing is loaded before.
"""

"""The learner's own answers, for later cells and exercises to work with; the library's where one fails.

A set-up cell takes what earlier exercises had the learner build, in one line:

    MultiHeadAttention, causal_mask = earlier_answers("MultiHeadAttention", "causal_mask")

A grader hands the references over instead, so that no grade depends on another exercise.  This file is
all that a submission can read of it, and holds no answer; parts.py looks for them and tries them.
"""

handed_over = {}  # {name: reference}, where an exercise is being graded


def earlier_answers(*names, folder=".", here=None):
    """The functions or classes that exercises had the learner build: one for one name, otherwise a tuple.

    names: of graded items.  folder: where the exercise notebooks are, by default beside this one.
    here: globals() of this notebook, to take the answers to its own items from its cells.
    Each answer that passes its check is the learner's, each other one the library's; prints which.
    """
    found = handed_over
    if not found.keys() >= set(names):
        from .parts import gather
        found = gather(names, folder, here)
    return found[names[0]] if len(names) == 1 else tuple(found[name] for name in names)


def hand_over(source, names):
    """Run `source`, and make `earlier_answers` return these names of it: what a grader does first of all."""
    namespace = {"__name__": __name__}
    exec(source, namespace)
    handed_over.update({name: namespace[name] for name in names})

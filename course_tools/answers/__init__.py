"""The learner's own answers, for use in later cells and exercises; the library's where one does not pass.

A set-up cell takes what earlier exercises had the learner build, in one line:

    MultiHeadAttention, causal_mask = earlier_answers("MultiHeadAttention", "causal_mask")

A grader provides the references instead, so that no grade depends on another exercise.  This file is all
that a submission can read of the package, and it contains no answer; collect.py finds and checks them.
"""

handed_over = {}  # {name: reference}, while an exercise is being graded


def earlier_answers(*names, folder=".", here=None):
    """The functions or classes that the learner built in exercises: one for one name, otherwise a tuple.

    names: the names of graded items.  folder: the folder of the exercise notebooks, by default this one.
    here: globals() of this notebook, to take the answers to its own items from its cells.
    An answer that passes its check is the learner's own; any other is the library's.  Prints which.
    """
    answers = handed_over
    if not answers.keys() >= set(names):
        from .collect import gather
        answers = gather(names, folder, here)
    return answers[names[0]] if len(names) == 1 else tuple(answers[name] for name in names)


def hand_over(source, names):
    """Run `source`, and make `earlier_answers` return these names from it.  A grader does this first."""
    namespace = {"__name__": __name__}
    exec(source, namespace)
    handed_over.update({name: namespace[name] for name in names})

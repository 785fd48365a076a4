"""Answers to the exercises that the checks have no name for, a module for each exercise.

RIGHT and WRONG: {"item": [answer, ...]}, filled by the modules as they are imported.
"""

RIGHT, WRONG = {}, {}


def right(item):
    """Decorator: an answer to the item of that name, right in a style of its own."""
    return lambda answer: RIGHT.setdefault(item, []).append(answer) or answer


def wrong(item):
    """Decorator: an answer that is wrong in a way that no named mistake is."""
    return lambda answer: WRONG.setdefault(item, []).append(answer) or answer

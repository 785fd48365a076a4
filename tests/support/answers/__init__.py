"""Answers to the exercises that the checks have no name for, a module for each exercise.

RIGHT, REMARKED and WRONG: {"item": [answer, ...]}, filled by the modules as they are imported.
"""

RIGHT, REMARKED, WRONG = {}, {}, {}


def right(item):
    """Decorator: an answer to the item of that name, right in a style of its own."""
    return lambda answer: RIGHT.setdefault(item, []).append(answer) or answer


def remarked(item):
    """Decorator: an answer that is right for float32 inputs, and not for float64 ones."""
    return lambda answer: REMARKED.setdefault(item, []).append(answer) or answer


def wrong(item):
    """Decorator: an answer that is wrong in a way that no named mistake is."""
    return lambda answer: WRONG.setdefault(item, []).append(answer) or answer

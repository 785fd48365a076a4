"""A claim of a lesson: a measured number, shown beside what is claimed of it, and asserted.

    claim("RNNsearch, exact match", right, above=0.6, seeds=(0.88, 0.93))

prints      RNNsearch, exact match                        0.91   claimed: above 0.6   five seeds: 0.88 to 0.93

Only lessons of the second edition use it.  It goes away with them: what is new is a finding
(course_lib/findings.py).
"""

import re

from .findings import FindingFailed, number

WIDTH = 44  # columns for what is measured, so that numbers of neighbouring lines stand below each other
LINE = re.compile(r"^(?P<what>\S.*?) {2,}(?P<number>\S+) {3}claimed: (?P<bound>.*?)"
                  r"(?: {3}five seeds: (?P<low>\S+) to (?P<high>\S+))?$", re.MULTILINE)


class ClaimFailed(FindingFailed):
    """A measured number is not what the lesson claims."""


def claim(what, value, above=None, below=None, seeds=None, digits=2):
    """Assert above < value < below, and print the number, the claim, and the range over five seeds.

    what: the quantity in words.  value: a number, or a tensor with one element.  above, below: the bounds
    that are claimed, at least one.  seeds: (lowest, highest) value seen under five seeds; `make claims`
    refreshes it.  digits: after the decimal point; very large and very small numbers are printed as 1.2e-07.
    Raises ClaimFailed if the claim does not hold, and ValueError if no bound is given.
    """
    bound = _bound(above, below)
    value = float(value)
    holds = (above is None or value > above) and (below is None or value < below)
    if not holds:                                    # a nan fails too
        raise ClaimFailed(f"The claim does not hold: {what} is {number(value, digits)}, claimed: {bound}.")
    print(f"{what:<{WIDTH}}  {number(value, digits)}   claimed: {bound}" + _range(seeds, digits))


def _bound(above, below):
    if above is None and below is None:
        raise ValueError("a claim needs a bound: above=..., below=..., or both")
    if below is None:
        return f"above {above:g}"
    return f"below {below:g}" if above is None else f"between {above:g} and {below:g}"


def _range(seeds, digits):
    return "   five seeds: " + " to ".join(number(float(end), digits) for end in seeds) if seeds else ""


def found(text):
    """The claims that a cell printed: [(what, number)] of its output."""
    return [(line["what"], float(line["number"])) for line in LINE.finditer(text)]

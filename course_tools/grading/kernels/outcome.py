"""What kernels of both kinds report: the outcome of a cell, or how the kernel was lost."""

import time
from dataclasses import dataclass, field

from .. import GradingError


class KernelLost(Exception):
    """The kernel hung ('timeout') or ended ('error') and is replaced.  The message is for the learner."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Interrupted(GradingError):
    """The kernel was ended from outside, through no fault of the submission: replace it and continue."""

    status = "interrupted"


class Budget:
    """The seconds that all cells of a notebook may take together."""

    def __init__(self, seconds):
        self.seconds, self.end = seconds, time.monotonic() + seconds

    def share(self, timeout):
        """How many of `timeout` seconds are left for the next cell.  Raises KernelLost if none are."""
        left = self.end - time.monotonic()
        if left <= 0:
            raise KernelLost("timeout", f"Not finished. All cells of a notebook together may take "
                                        f"{self.seconds:g} s, and this time is used up.")
        return min(timeout, left)

    def explain(self, lost):
        """The error to raise for a lost kernel: if no time is left at all, that is the reason."""
        try:
            self.share(0)
        except KernelLost as over:
            return over if lost.status == "timeout" else lost
        return lost


@dataclass
class Outcome:
    """What a cell did.  error: None or (type, message).  displays: the data of each display, by MIME type."""

    error: tuple | None = None
    displays: list = field(default_factory=list)

"""A kernel that is forked from a warm process: what grades where the system is Linux.

What a submission answers is a claim: it has a limit, a deadline and a key, and `wire` reads it.
"""

import json
import secrets
import signal

from . import frames, tidy, wire
from .kernel import Interrupted, KernelLost, Outcome
from .lanes import lanes

TOLD = {"memory": "used more than 2 GB of memory and was stopped.",
        "processes": "started too many processes and was stopped.",
        "descriptors": "opened too many files, pipes or sockets and was stopped.",
        "disk": "wrote too much to disk and was stopped.",
        f"signal {int(signal.SIGXCPU)}": "used too much processor time and was stopped."}
EXITED = "ended the Python process it ran in (exit, os._exit, or a crash)."
LONGEST_ERROR = 20_000  # characters


class ForkedKernel:
    """A submission's own process: an IPython shell in a sandbox.  Raises Unavailable.

    sandbox: which of its layers are in force, in words.
    """

    def __init__(self):
        self.lane = lanes.take()
        self.sandbox = self.lane.sandbox

    def run(self, source, timeout):
        """Run a cell for at most `timeout` seconds.  Returns its Outcome, or raises KernelLost."""
        try:
            error = json.loads(self._ask(timeout, "run", source)[:LONGEST_ERROR])
            return Outcome(None if error is None else (tidy(error[0], 80), tidy(error[1], 500)))
        except (ValueError, RecursionError, LookupError, TypeError):
            raise KernelLost("error", EXITED) from None

    def observe(self, item, trials, timeout):
        """What the answer bound to the item's name does with each trial: observations, or None if there is
        no such name.  Raises KernelLost, or wire.Malformed if what came back makes no sense."""
        text = self._ask(timeout, "observe", item.name, trials.json, item.probe, item.gradients)
        if text.startswith('"'):
            raise wire.Malformed(tidy(text.strip('"'), 100))
        return wire.observations(text, len(trials))

    def _ask(self, timeout, *request):
        """The answer to a request, as text.  Raises KernelLost."""
        key = secrets.token_hex(8).encode()
        try:
            self.lane.line.settimeout(timeout)
            frames.send(self.lane.line, json.dumps([key.decode(), timeout, *request]).encode())
            answer = frames.receive(self.lane.line, timeout)
        except TimeoutError:
            raise KernelLost("timeout", f"still running after {timeout:g} s and was stopped: "
                                        "is there a loop that never ends?") from None
        except OSError:
            raise self._lost() from None
        if not answer.startswith(key):
            raise KernelLost("error", EXITED)
        return answer[len(key):].decode("ascii", "replace")

    def _lost(self):
        """The error to raise when the line is dead: what the lane tells, if it still lives."""
        self.lane.hang_up()
        try:
            told = self.lane.ending()
        except OSError:
            return Interrupted("the warm process was ended")
        return KernelLost("error", TOLD.get(told, EXITED))

    def stop(self):
        """End the process with all that it started."""
        self.lane.hang_up()
        lanes.give_back(self.lane)

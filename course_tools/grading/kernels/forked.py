"""A kernel forked from the fork server, used for grading on Linux.

The reply of a submission is not trusted: it has a limit, a deadline and a key, and `replies` reads it.
"""

import json
import secrets
import signal

from .. import tidy
from . import protocol, replies
from .fork_client import supervisors
from .outcome import Interrupted, KernelLost, Outcome

ENDINGS = {"memory": "The answer used more than 2 GB of memory and was stopped.",
           "processes": "The answer started too many processes and was stopped.",
           "descriptors": "The answer opened too many files, pipes or sockets and was stopped.",
           "disk": "The answer wrote too much to disk and was stopped.",
           f"signal {int(signal.SIGXCPU)}": "The answer used too much processor time and was stopped."}
EXITED = "The answer ended the Python process it ran in (exit, os._exit, or a crash)."
LONGEST_ERROR = 20_000  # characters


class ForkedKernel:
    """A submission's own process: an IPython shell in a sandbox.  Raises Unavailable.

    sandbox: which of its layers are in force, in words.
    """

    def __init__(self):
        self.supervisor = supervisors.acquire()
        self.sandbox = self.supervisor.sandbox

    def run(self, source, timeout):
        """Run a cell for at most `timeout` seconds.  Returns its Outcome, or raises KernelLost."""
        try:
            error = json.loads(self._ask(timeout, "run", source)[:LONGEST_ERROR])
            return Outcome(None if error is None else (tidy(error[0], 80), tidy(error[1], 500)))
        except (ValueError, RecursionError, LookupError, TypeError):
            raise KernelLost("error", EXITED) from None

    def observe(self, item, trials, timeout):
        """What the answer bound to the item's name does with each trial: observations, or None if there is
        no such name.  Raises KernelLost, or replies.Malformed if what came back makes no sense."""
        text = self._ask(timeout, "observe", item.name, trials.json, item.probe, item.gradients)
        if text.startswith('"'):
            raise replies.Malformed(tidy(text.strip('"'), 100))
        return replies.observations(text, len(trials))

    def _ask(self, timeout, *request):
        """The answer to a request, as text.  Raises KernelLost."""
        key = secrets.token_hex(8).encode()
        try:
            self.supervisor.connection.settimeout(timeout)
            protocol.send(self.supervisor.connection, json.dumps([key.decode(), timeout, *request]).encode())
            answer = protocol.receive(self.supervisor.connection, timeout)
        except TimeoutError:
            raise KernelLost("timeout", f"The answer was still running after {timeout:g} s and was stopped. "
                                        "Is there a loop that never ends?") from None
        except OSError:
            raise self._lost() from None
        if not answer.startswith(key):
            raise KernelLost("error", EXITED)
        return answer[len(key):].decode("ascii", "replace")

    def _lost(self):
        """The error to raise when the connection is lost: what the supervisor reports, if it still lives."""
        self.supervisor.disconnect()
        try:
            ending = self.supervisor.ending()
        except OSError:
            return Interrupted("the fork server was ended")
        return KernelLost("error", ENDINGS.get(ending, EXITED))

    def stop(self):
        """End the process with all that it started."""
        self.supervisor.disconnect()
        supervisors.release(self.supervisor)

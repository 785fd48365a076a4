"""A separate Jupyter kernel for each submission, based on nbval's: it computes, but never decides a verdict.

The grader needs `run`, `observe`, `stop` and `sandbox` from a kernel; another class with these can take its
place.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from queue import Empty

from nbval.kernel import CURRENT_ENV_KERNEL_NAME, RunningKernel, start_new_kernel

from ...judging.libraries import LIBRARIES
from .. import GradingError, limits, tidy
from ..sandbox.policy import environment
from . import replies
from .outcome import KernelLost, Outcome

POLL_SECONDS = 0.2  # between two looks at whether the kernel still lives


class Kernel(RunningKernel):
    """A started kernel in an empty scratch folder, with an environment that tells it nothing."""

    sandbox = "none: a process of its own, time limits"

    def __init__(self, startup_timeout=60):
        self.scratch = tempfile.mkdtemp(prefix="course-grading-")
        try:
            with limits.memory_not_inherited():
                self.km, self.kc = start_new_kernel(
                    startup_timeout, CURRENT_ENV_KERNEL_NAME, cwd=self.scratch,
                    env=environment(self.scratch), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    extra_arguments=["--HistoryManager.enabled=False"])
            self._ensure_iopub_up()
            self.run(f"__import__('sys').modules.update(dict.fromkeys({LIBRARIES!r}))", startup_timeout)
        except BaseException as problem:
            self.stop()
            if isinstance(problem, (RuntimeError, OSError, Empty)):
                raise GradingError(f"no kernel could be started ({problem})") from None
            raise

    def run(self, source, timeout):
        """Run a cell for at most `timeout` seconds.  Returns its Outcome, or raises KernelLost."""
        message_id = self.execute_cell_input(source, allow_stdin=False)
        deadline, outcome = time.monotonic() + timeout, Outcome()
        while True:
            parent, kind, content = self._next_message(deadline, timeout)
            if parent != message_id:
                continue
            if kind == "status" and content.get("execution_state") == "idle":
                return outcome
            if kind == "error":
                outcome.error = tidy(content.get("ename"), 80), tidy(content.get("evalue"), 500)
            if kind == "display_data" and isinstance(content.get("data"), dict):
                outcome.displays.append(content["data"])

    def observe(self, item, trials, timeout):
        """What the answer bound to the item's name does with each trial: observations, or None if there is
        no such name.  Raises KernelLost, or replies.Malformed if what came back makes no sense."""
        arguments = (item.name, trials.json, item.probe, item.gradients)
        publish = "__import__('course_tools.grading.kernels.observer', fromlist=['']).publish"
        outcome = self.run(f"{publish}{arguments!r}", timeout)
        sent = [data[replies.MIME] for data in outcome.displays if replies.MIME in data]
        if outcome.error or len(sent) != 1:
            raise replies.Malformed(": ".join(outcome.error or ("it did not come back as one result",)))
        return replies.observations(sent[0], len(trials))

    def _next_message(self, deadline, timeout):
        """(what it answers, kind, content) of the next message, three None if there was none just now.
        Raises KernelLost."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise KernelLost("timeout", f"The answer was still running after {timeout:g} s and was stopped. "
                                        "Is there a loop that never ends?")
        try:
            message = self.get_message("iopub", timeout=min(POLL_SECONDS, left))
            return message["parent_header"].get("msg_id"), message["msg_type"], dict(message["content"])
        except Empty:
            if self.is_alive():
                return None, None, None
        except Exception:  # a message that can't even be read: its sender is no kernel any more
            pass
        raise KernelLost("error", "The answer ended the Python process it ran in (exit, os._exit, or a "
                                  "crash).")

    def stop(self):
        """End the kernel with all that it started in its process group, and remove its scratch folder."""
        manager = getattr(self, "km", None)
        if manager is not None:
            group = getattr(manager.provisioner, "pgid", None)
            with contextlib.suppress(OSError, AttributeError):
                if group and group != os.getpgid(0):
                    os.killpg(group, signal.SIGKILL)
            super().stop()
        shutil.rmtree(self.scratch, ignore_errors=True)

"""Kernels: where the cells of one submission run, and how the grader talks to them.

On Linux a kernel is a process forked from the fork server (fork_server.py), which has imported torch once.
fork_client.py is the grader's side of it, and forked.py the kernel made from it; shell.py (IPython) and
observer.py (calls the answer) run in the forked process.  Elsewhere jupyter.py uses a Jupyter kernel.
protocol.py frames the messages, replies.py reads them as hostile data, and outcome.py holds what any kernel
reports.  Begin with `make_kernel`.
"""

import os
import sys

# Elsewhere fork_client is not even imported: its system calls are Linux's.
FORKED = sys.platform == "linux" and hasattr(os, "pidfd_open")


def prepare(**settings):
    """Start the fork server if this machine can have one: it imports torch while the grader does.

    settings: of `fork_client.ForkServer`.
    """
    if FORKED:
        from . import fork_client
        fork_client.prepare(**settings)


def make_kernel():
    """A kernel for one submission: forked if possible, otherwise a Jupyter kernel."""
    if FORKED:
        from . import fork_client
        from .forked import ForkedKernel
        try:
            return ForkedKernel()
        except fork_client.Unavailable:
            pass
    from .jupyter import Kernel
    return Kernel()

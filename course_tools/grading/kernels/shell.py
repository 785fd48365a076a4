"""The IPython shell that a submission's cells run in: one process, forked from the
fork server.

It takes requests from a connection and answers each with its key.  The submission can change everything
here, so no answer from here is trusted.
"""

import contextlib
import json
import math
import os
import resource
import sys
import tempfile
import time

import torch
from IPython.core.compilerop import CachingCompiler
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from course_lib import runtime

from ... import judging
from ...judging.libraries import LIBRARIES
from ...judging.observe import encode
from . import observer, protocol

LONGEST = protocol.LONGEST - 100  # characters of an answer


class Compiler(CachingCompiler):
    def get_code_name(self, raw_code, transformed_code, number):
        return f"cell-{number}.py"


class Silent(DisplayPublisher):
    def publish(self, data, *args, **kwargs):
        """Nobody looks."""


class Shell(InteractiveShell):
    """IPython without a terminal, history or tracebacks: an error is reported by its type and text."""

    compiler_class = Compiler
    system = InteractiveShell.system_raw  # what `!command` does: there is no terminal

    def enable_gui(self, gui=None):
        """There is none."""

    def ask_exit(self):
        """`exit` in a notebook would end the kernel; an answer after it still counts."""

    def showtraceback(self, *args, **kwargs):
        """Nobody looks."""

    showsyntaxerror = showtraceback


def make():
    """The shell, once for all submissions: none has run when it is made."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.display_pub_class = Silent
    with tempfile.TemporaryDirectory(prefix="course-ipython-") as folder:
        shell = Shell.instance(config=config, ipython_dir=folder)
        shell.run_cell("%who\n'x'.upper()")
        shell.reset()
        shell.displayhook.flush()  # `_` is there, and empty
    runtime.seed(0)
    sys.modules.update(dict.fromkeys(LIBRARIES))  # no import finds them, where they can be read, too
    judging.check = lambda answer: None  # the verdict is reached elsewhere
    return shell


def warm_up(shell):
    """Do once what every submission does: a new process takes its own copy of what it writes to, and that
    takes longer than the work itself."""
    shell.run_cell("def answer(x):\n    return torch.tanh(x @ x + x)")
    trials = json.dumps([encode({"x": torch.ones(2, 2)})])
    observer.observed({"answer": lambda x: torch.tanh(x @ x + x)}, "answer", trials, "call", True)
    shell.user_ns.pop("answer", None)


def serve(shell, connection):
    """Answer requests until the other end closes the connection: [key, seconds, "run", source] or
    [key, seconds, "observe", ...]."""
    process = os.getpid()
    while True:
        key, seconds, kind, *arguments = json.loads(protocol.receive(connection))
        limit_processor(seconds)
        try:
            text = run(shell, *arguments) if kind == "run" else observer.observed(shell.user_ns, *arguments)
        except BaseException as problem:  # an answer raised what nobody should: then only that can be told
            text = json.dumps(type(problem).__name__[:80])
        if os.getpid() != process:  # a copy that the cell forked: it has come to its end
            os._exit(0)
        if len(text) > LONGEST:
            text = json.dumps("more than can be compared")
        protocol.send(connection, (key + text).encode())


def limit_processor(seconds):
    """So much processor time for one request, whatever the number of threads; copies inherit the limit."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = math.ceil(time.process_time() + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (min(soft, hard) if hard > 0 else soft, hard))


def run(shell, source):
    """Run a cell.  Returns JSON: null, or the error's type and text."""
    result = shell.run_cell(source)
    shell.execution_count += 1
    problem = result.error_before_exec or result.error_in_exec
    if problem is None:
        return "null"
    text = ""
    with contextlib.suppress(Exception):
        text = str(problem)
    return json.dumps([type(problem).__name__[:80], text[:500]])


def discard_output():
    """Provide no input, and discard what is printed."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__

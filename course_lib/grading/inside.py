"""The half of the grader that runs in a submission's kernel: it calls the answer and sends what it saw.

It knows no right result and decides nothing.
"""

import contextlib
import json
import os

from ..checks.observe import decode, observe
from .wire import MIME


@contextlib.contextmanager
def _silence():
    """What an answer prints is no part of its result, and a flood of it would only fill the wire."""
    with open(os.devnull, "w") as nowhere:
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield


def observed(namespace, name, trials, probe, gradients):
    """Call the answer of that name in `namespace` with each of `trials`, and write down what happened.

    trials: JSON of a list of encoded inputs.  Returns JSON of a list of what `observe` gives, or of
    None if there is no such name.
    """
    if name not in namespace:
        return "null"
    with _silence():
        return json.dumps([observe(namespace[name], decode(trial), probe, gradients)
                           for trial in json.loads(trials)])


def publish(name, trials, probe, gradients):
    """The observations as one display of type MIME, for a kernel that nbval talks to."""
    from IPython import get_ipython
    from IPython.display import publish_display_data
    publish_display_data({MIME: observed(get_ipython().user_ns, name, trials, probe, gradients)})

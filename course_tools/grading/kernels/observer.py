"""The half of the grader that runs in a submission's kernel: it calls the answer and sends what it saw.

It knows no right result and decides nothing.
"""

import contextlib
import json
import os

from ...judging.observe import decode, observe
from .replies import MIME


@contextlib.contextmanager
def _silence():
    """Discard what an answer prints: it is not part of its result, and could fill the connection."""
    with open(os.devnull, "w") as nowhere:
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            yield


def observed(namespace, name, trials, probe, gradients):
    """Call the answer of that name in `namespace` with each of `trials`, and record what happened.

    trials: JSON of a list of encoded inputs.  Returns JSON of a list of what `observe` gives, or of
    None if there is no such name.
    """
    if name not in namespace:
        return "null"
    with _silence():
        return json.dumps([observe(namespace[name], decode(trial), probe, gradients)
                           for trial in json.loads(trials)])


def publish(name, trials, probe, gradients):
    """Publish the observations as one display of type MIME, for a Jupyter kernel."""
    from IPython import get_ipython
    from IPython.display import publish_display_data
    publish_display_data({MIME: observed(get_ipython().user_ns, name, trials, probe, gradients)})

"""The grader: a submission's answers run in a kernel of their own, and are judged outside it.

classroom.py grades a class: submissions.py finds the notebooks, workers.py has several read and graded at a
time (pool.py, limits.py), cluster.py on many machines.  grade.py grades one notebook: merge.py puts its
answers into the pristine exercise, nbval_plugin.py makes pytest items of the cells, and session.py leads
them through a kernel (kernels/, in the sandbox of sandbox/) to their verdicts, with the inputs of
question.py and the right answers of references.py.  reports/ writes what comes out; learner.py is `course
check`, `hint`, `reset` and `status`.  Begin with grade.py.
"""

import re
import warnings

# Python 3.12 and later warn of a fork where there are threads.  Those of the grader only wait meanwhile, and
# hold no lock: torch's, tqdm's, and those that watch over processes.
warnings.filterwarnings("ignore", r"This process \(pid=\d+\) is multi-threaded, use of fork",
                        DeprecationWarning, r"multiprocessing\.popen_fork|course_tools\.grading")

KEEPS_FILES = {"namespaces", "Landlock"}  # the layers of the sandbox that keep files out of reach
CAUTION = ("Where neither namespaces nor Landlock are active, an answer can read every file that the "
           "grader's user can read, including the right answers. This sandbox protects against accidents, "
           "not against malice.")


def caution(sandbox):
    """CAUTION for a sandbox, given as its layers in words, that needs it; None if it keeps files out of
    reach, or if nothing was run (None)."""
    return None if sandbox is None or KEEPS_FILES & set(sandbox.split(", ")) else CAUTION


class GradingError(Exception):
    """Grading can't go on, and why, in one line."""


def tidy(text, longest=1500):
    """Text from outside, fit for a page or a terminal: no control characters, no half characters, an end."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", str(text)[:4 * longest])
    text = re.sub(r"[^\n\t\x20-\x7e\xa0-\U0010ffff]|[\u202a-\u202e\u2066-\u2069]", "", text)
    text = text.encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= longest else text[:longest - 3] + "..."

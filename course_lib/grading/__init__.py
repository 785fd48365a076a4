"""The grader: a submission's answers run in a kernel of their own, and are judged outside it.

submissions  what there is to grade          merge       the notebook that is graded
kernel       runs cells, and only computes   wire        what a kernel said, as hostile data
inside       the part that runs in it        sitting     one notebook's way through its kernel
plugin       cells as pytest items, on nbval grade       one notebook, or a class
question     what is the same for everybody  gradebook   the folder of results
report       CSV, JSON, JUnit and the pages  pages       feedback, and the teacher's index
words        what it says beyond the checks  overview    the class on one page
evidence     what a page shows of a wrong answer
references   right answers, to run in a kernel
workers      reading and grading, bounded    pool, limits: the processes for it, and what these may use
cluster      on many machines
traces       what a cell may leave behind    bench, rivals: how fast it is

Where the system is Linux, kernels are forked from a process that has imported torch once:

forked       such a kernel                   lanes       the grader's side of the warm process
warm         the warm process                watch       over what a submission uses, and its end
shell        IPython in a submission's own   frames      messages between it and the grader
sandbox      the walls around it             layers      which of them hold on this machine
namespaces, seccomp, linux: what they are    reach       what may be read, and nothing else
    made of                                  usage       memory, descriptors, room on disk
cgroups      the same, counted by the kernel
"""

import re
import warnings

# Python 3.12 and later warn of a fork where there are threads.  Those of the grader only wait meanwhile, and
# hold no lock: torch's, tqdm's, and those that watch over processes.
warnings.filterwarnings("ignore", r"This process \(pid=\d+\) is multi-threaded, use of fork",
                        DeprecationWarning, r"multiprocessing\.popen_fork|course_lib\.grading")

KEEPS_FILES = {"namespaces", "Landlock"}  # the layers of the sandbox that keep files out of reach
CAUTION = ("Where neither namespaces nor Landlock hold, an answer can read every file that the grader's user "
           "can read, the right answers among them: this sandbox protects from accidents, not from malice.")


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

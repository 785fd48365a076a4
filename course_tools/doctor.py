"""`course doctor`: is everything that the course needs where it belongs, and if not, what to do about it.

Each check returns (what was looked at, how it is, what to do about it); the last is empty if all is well.
What is shown holds no names and no paths of home, so that it can be pasted into a bug report.
"""

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from . import bootstrap, exercise, installed

SET_UP = "run make lab (on Windows: lab.cmd), which installs what is missing"
NEEDED = 1 << 30    # bytes of free disk space


def examine():
    """Yield (subject, state, advice) of each check; advice is "" where nothing has to be done."""
    for check in (python, packages, pytorch, kernel, hangul, disk, protection, answers):
        try:
            yield check()
        except Exception as problem:    # what is broken must not keep the other lines away
            yield check.__doc__.partition(":")[0], f"{type(problem).__name__}: {problem}", SET_UP


def python():
    """Python: the version that runs this."""
    version = platform.python_version()
    good = bootstrap.OLDEST <= sys.version_info[:2] <= bootstrap.NEWEST
    return "Python", version, "" if good else f"the course needs {bootstrap.PYTHONS}: install one of these"


def packages():
    """Packages: compared with constraints.txt, where the course came with it."""
    if not (installed.ROOT / "constraints.txt").exists():
        return "Packages", "installed without constraints.txt, so not compared", ""
    differing = installed.differences()
    state = "as in constraints.txt" if not differing else "; ".join(differing[:3])
    if len(differing) > 3:
        state += f" and {len(differing) - 3} more"
    return "Packages", state, SET_UP if differing else ""


def pytorch():
    """PyTorch: whether it computes, and on how many threads."""
    import torch
    right = torch.equal(torch.ones(2, 3) @ torch.ones(3, 2), torch.full((2, 2), 3.0))
    state = f"{torch.__version__}, {torch.get_num_threads()} threads (lessons use one)"
    return "PyTorch", state, "" if right else SET_UP


def kernel():
    """Kernel: the Python that JupyterLab starts for a notebook."""
    from jupyter_client.kernelspec import KernelSpecManager
    program = KernelSpecManager().get_kernel_spec("python3").argv[0]    # "python" is the one that starts it
    same = not os.path.isabs(program) or os.path.dirname(program) == os.path.dirname(sys.executable)
    return "Kernel", "this Python" if same else "another Python than the course's", "" if same else (
        "start JupyterLab with make lab (on Windows: lab.cmd), or choose the kernel of .venv in your editor")


def hangul():
    """Hangul: the font that plots use."""
    import matplotlib.font_manager

    from course_lib import plots
    name = matplotlib.font_manager.FontProperties(fname=str(plots.FONT)).get_name()
    return "Hangul in plots", f"the course's own font ({name})", ""


def disk():
    """Disk: free space here and for temporary files."""
    free = min(shutil.disk_usage(folder).free for folder in (exercise.ROOT, tempfile.gettempdir()))
    return "Free disk space", f"{free / 1e9:.1f} GB", "" if free > NEEDED else "free at least 1 GB"


def protection():
    """Protection: what the grader would run answers in."""
    from .grading import caution
    from .grading.kernels import make_kernel
    made = make_kernel()
    sandbox = made.sandbox
    made.stop()
    return "Protection while grading", sandbox, (
        "enough for your own answers; grade a class on Linux, or in WSL" if caution(sandbox) else "")


def answers():
    """Exercises: yours, and the copies of what was replaced."""
    folder = exercise.ROOT / "exercises"
    if not folder.is_dir():
        return "Exercises", "there is no folder exercises here", "run this command in the course's folder"
    notebooks = sorted(folder.glob("[0-9][0-9]_*.ipynb"))
    unreadable = [path.name for path in notebooks if _unreadable(path)]
    backups = len(list((exercise.ROOT / "backups").glob("*.ipynb")))
    state = f"{len(notebooks)} notebooks, {backups} copies in backups/"
    if unreadable:
        return "Exercises", f"{state}; unreadable: {', '.join(unreadable)}", (
            f"course reset {unreadable[0][:2]} restores it and keeps your file in backups/")
    if not os.access(folder, os.W_OK):
        return "Exercises", f"{state}; not writable", "copy the course to a folder of your own"
    return "Exercises", state, ""


def _unreadable(path):
    try:
        exercise.read(path, whole=False)
    except exercise.NotebookError:
        return True
    return False


def report(rows):
    """The block for a bug report: the machine in a line, then every check in a line."""
    machine = f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} processors"
    lines = [machine, *(f"{subject}: {state}" for subject, state, _ in rows)]
    return "\n".join(_without_names(line) for line in lines)


def _without_names(line):
    """Without the paths of the course and of home."""
    for path, shown in ((exercise.ROOT, "COURSE"), (Path.home(), "~")):
        line = line.replace(str(path), shown)
    return line

"""What a submission may read: Python, its packages, the system's libraries, and of the course what its
notebooks are given.  Whatever is not named here does not exist for it.
"""

import os
import sys
from pathlib import Path

COURSE = Path(__file__).parents[1]
NOTEBOOKS = ("__init__.py", "runtime.py", "shapes.py", "plots.py", "widgets.py", "data",
             "answers/__init__.py", "checks/__init__.py", "checks/observe.py", "checks/spec.py",
             "grading/__init__.py", "grading/inside.py", "grading/wire.py")
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/nix/store", *(f"/etc/{name}" for name in (
    "alternatives", "fonts", "group", "ld.so.cache", "localtime", "mime.types", "nsswitch.conf", "passwd")))
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
NUMBERS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/filesystems")

KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TZ")  # of the grader's environment


def environment(scratch):
    """What a kernel is told: where Python and the course are, and that nobody watches."""
    return {**{name: os.environ[name] for name in KEPT if name in os.environ},
            "HOME": scratch, "TMPDIR": scratch, "IPYTHONDIR": os.path.join(scratch, ".ipython"),
            "MPLCONFIGDIR": scratch, "MPLBACKEND": "agg", "PYTHONPATH": str(COURSE.parent),
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8", "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1", "COURSE_STATIC": "1"}


def readable(private):
    """(files and folders to read with all beneath them, folders of which only some of it is readable).

    private: paths that must stay out of reach even where they lie in a folder of the system.
    """
    root = COURSE.parent
    closed = [root] if (root / "pyproject.toml").exists() else [COURSE, *map(root.joinpath, (
        "solutions", "exercises", "notebooks"))]
    closed = _also_resolved([*closed, *map(Path, private)])
    never = {Path("/"), Path.home(), *closed}
    python = [Path(path) for path in (sys.prefix, sys.base_prefix)]
    python += [path for path in map(Path, sys.path)
               if path.is_dir() and not any(shut in (path, *path.parents) for shut in closed)]
    whole, parts = set(), {(COURSE / name).parent for name in NOTEBOOKS}
    for path in _also_resolved(map(Path, (*SYSTEM, *python, *(COURSE / name for name in NOTEBOOKS)))):
        if path.exists() and path not in never:
            _around(path, closed, whole, parts)
    return sorted(map(str, whole)), sorted(map(str, parts))


def _around(path, closed, whole, parts):
    """Add `path`, or all in it but the closed folders beneath it."""
    if not any(path in shut.parents for shut in closed):
        whole.add(path)
        return
    parts.add(path)
    for inner in path.iterdir():
        if inner not in closed:
            _around(inner, closed, whole, parts)


def _also_resolved(paths):
    return list(dict.fromkeys(each for path in paths for each in (path, path.resolve())))

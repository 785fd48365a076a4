"""What a submission may read: Python, its packages, the system's libraries, and the parts of the course that
notebooks need.  Anything not named here does not exist for it.
"""

import os
import site
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from ...judging.libraries import LIBRARIES

ROOT = Path(__file__).parents[3]
PACKAGES = (ROOT / "course_lib", ROOT / "course_tools")
HELPERS = ("__init__.py", "runtime.py", "shapes.py", "plots.py", "widgets.py", "data")
TOOLS = ("__init__.py", "answers/__init__.py", "items/__init__.py", "items/registry.py",
         "judging/__init__.py", "judging/observe.py", "judging/probes.py", "judging/spec.py",
         "grading/__init__.py", "grading/kernels/__init__.py", "grading/kernels/observer.py",
         "grading/kernels/replies.py")
NOTEBOOKS = (*(PACKAGES[0] / name for name in HELPERS), *(PACKAGES[1] / name for name in TOOLS))
SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/nix/store", *(f"/etc/{name}" for name in (
    "alternatives", "fonts", "group", "ld.so.cache", "localtime", "mime.types", "nsswitch.conf", "passwd")))
PROGRAMS = ("/usr", "/bin", "/sbin", "/nix/store", "/run/current-system")
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SYSTEM_FACTS = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/filesystems")

KEPT = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TZ")  # of the grader's environment
HOMES = ("HOME", "TMPDIR", "USERPROFILE", "APPDATA", "TEMP", "TMP")  # the last four are Windows's


def environment(scratch: str) -> dict[str, str]:
    """The environment variables of a kernel: where Python and the course are, and that output is static."""
    return {**{name: os.environ[name] for name in KEPT if name in os.environ},
            **dict.fromkeys(HOMES, scratch), "IPYTHONDIR": os.path.join(scratch, ".ipython"),
            "MPLCONFIGDIR": scratch, "MPLBACKEND": "agg", "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8", "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1", "COURSE_STATIC": "1"}


def without_user_folders() -> dict[str, str]:
    """Changes to `environment` for a process whose own can be read by submissions: a PATH of the system's
    folders, and no home but for packages that are installed there."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    system = [folder for folder in folders if any(Path(folder).is_relative_to(place) for place in PROGRAMS)]
    there = site.ENABLE_USER_SITE and os.path.isdir(site.getusersitepackages())
    packages = {"PYTHONUSERBASE": site.getuserbase()} if there else {}
    return {"PATH": os.pathsep.join(system) or os.defpath, **packages}


class Paths(NamedTuple):
    """Paths for the layers of the sandbox.

    shown: files and folders to mount.  hidden: what is taken out of these.  For Landlock, which can take
    nothing out, readable: what may be read with all beneath it.  listed: folders that may be listed.
    """

    shown: list[str]
    hidden: list[str]
    readable: list[str]
    listed: list[str]


def paths(private: Iterable[str | Path]) -> Paths:
    """The Paths of a submission.  private: paths out of reach wherever they lie."""
    private, hidden = list(private), hidden_packages()
    return Paths(readable_paths(private)[0], hidden, *readable_paths([*private, *hidden]))


def hidden_packages() -> list[str]:
    """Installed packages that hold answers, wherever Python or a submission may look for them."""
    prefixes = {Path(path) for path in (sys.prefix, sys.base_prefix, "/usr", "/usr/local")}
    folders = {Path(path) for path in sys.path}.union(
        *(prefix.glob("lib*/python3*/*-packages") for prefix in prefixes))
    hidden = [folder / file for folder in folders for name in LIBRARIES for file in (name, f"{name}.py")
              if (folder / file).exists()]
    hidden += [prefix / "pkgs" for prefix in prefixes if (prefix / "conda-meta").exists()]  # conda's cache
    return sorted({str(path.resolve()) for path in hidden})


def readable_paths(private: Iterable[str | Path]) -> tuple[list[str], list[str]]:
    """(files and folders to read with all beneath them, folders of which only some of it is readable).

    private: paths that must stay out of reach even where they lie in a folder of the system.
    """
    closed = [ROOT] if (ROOT / "pyproject.toml").exists() else [*PACKAGES, *map(ROOT.joinpath, (
        "solutions", "exercises", "notebooks"))]
    closed = _also_resolved([*closed, *map(Path, private)])
    never = {Path("/"), Path.home(), *closed}
    python = [Path(path) for path in (sys.prefix, sys.base_prefix)]
    python += [path for path in map(Path, sys.path)
               if path.is_dir() and not any(folder in (path, *path.parents) for folder in closed)]
    whole, parts = set[Path](), {path.parent for path in NOTEBOOKS}
    for path in _also_resolved([*map(Path, SYSTEM), *python, *NOTEBOOKS]):
        if path.exists() and path not in never:
            _around(path, set(closed), {above for folder in closed for above in folder.parents}, whole, parts)
    return sorted(map(str, whole)), sorted(map(str, parts))


def _around(path: Path, closed: set[Path], above: set[Path], whole: set[Path], parts: set[Path]) -> None:
    """Add `path`, or all in it but the closed folders beneath it.  above: the folders that these lie in."""
    if path not in above or path.is_symlink():  # what a link leads to is closed under its own name
        whole.add(path)
        return
    parts.add(path)
    for inner in path.iterdir():
        if inner not in closed:
            _around(inner, closed, above, whole, parts)


def _also_resolved(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(each for path in paths for each in (path, path.resolve())))

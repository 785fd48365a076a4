"""Set up the course's own environment (.venv), start JupyterLab in it, and run commands in it.

    python3 course_tools/bootstrap.py setup [--extra test | cluster | site]
    python3 course_tools/bootstrap.py lab [--port N] [--no-browser]
    python3 course_tools/bootstrap.py run [--extra test | site] -- COMMAND ...

On Windows: py course_tools\\bootstrap.py lab, or a double click on lab.cmd.

This file uses only the standard library and the syntax of Python 3.6: it runs before anything is
installed, and a Python that is too old has to get far enough to say so. pip's own settings
(PIP_INDEX_URL, PIP_EXTRA_INDEX_URL, pip.conf) are respected: on Linux, pip's default build of torch
brings several GB of GPU libraries, and an index that offers the CPU build avoids them.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
WINDOWS = os.name == "nt"
AGAIN = ("py -3.12 course_tools\\bootstrap.py lab" if WINDOWS else "make PYTHON=python3.12 lab")
COMPILE = "import compileall, re, sysconfig; compileall.compile_dir(" \
          "sysconfig.get_path('purelib'), quiet=2, workers=0, rx=re.compile('[\\\\/]tests?[\\\\/]'))"
NETWORK = ("pip could not reach its package index. Connect to the network, which only the set-up needs,\n"
           "and run the same command again.")
CAUSES = [    # what a failed step printed, and what it means to a learner; the first match is shown
    (r"No space left on device|Disk quota exceeded",
     "The disk is full. The set-up needs about 2 GB (8 GB if torch comes with its GPU libraries), here and\n"
     "in the folder for temporary files. Free some space, and run the same command again."),
    (r"No module named '?(venv|ensurepip)",
     "{python} cannot create virtual environments, because its venv module is missing.\n"
     "On Debian and Ubuntu, install it with apt install python3-venv. Then run the same command again."),
    (r"connection broken|connection error|Max retries exceeded|NewConnectionError|ReadTimeoutError"
     r"|ProxyError|name resolution|satisfies the requirement setuptools\S* \(from versions: none\)", NETWORK),
    (r"Permission denied|Read-only file system|Operation not permitted",
     "You may not write to this folder ({root}) or to one of pip's folders.\n"
     "Copy the course to a folder of your own, and run the same command there."),
    (r"No matching distribution found for torch",
     "There is no build of torch for this machine and Python {version}. The course needs a 64-bit system.\n"
     "Another version of Python may help: " + AGAIN),
]


def requires_python():
    """What pyproject.toml says, ">=3.11,<3.15": every package of constraints.txt has wheels for these.

    Where the course was installed without its folder, the installed package says it.
    """
    try:
        project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        from importlib import metadata
        return metadata.metadata("course-lib")["Requires-Python"]
    return re.search(r'^requires-python *= *"(.*)"', project, re.MULTILINE).group(1)


def python_range(requires):
    """The oldest and the newest Python, as pairs of numbers: ((3, 11), (3, 14)) for ">=3.11,<3.15"."""
    oldest, beyond = (re.search(sign + r" *3\.(\d+)", requires).group(1) for sign in (">=", "<(?!=)"))
    return (3, int(oldest)), (3, int(beyond) - 1)


OLDEST, NEWEST = python_range(requires_python())
PYTHONS = "Python %d.%d to %d.%d" % (OLDEST + NEWEST)


class Trouble(Exception):
    """A problem that the learner can solve; the message says how."""


def explain(printed):
    """The cause of a failed step in a learner's words, or None."""
    for pattern, message in CAUSES:
        if re.search(pattern, printed, re.IGNORECASE):
            return message.format(root=ROOT, python=sys.executable, version="%d.%d" % sys.version_info[:2])
    return None


def check_python(version=sys.version_info):
    """Raise Trouble if this Python is older or newer than those that the course's packages support."""
    if not OLDEST <= tuple(version[:2]) <= NEWEST:
        raise Trouble("This is Python %d.%d, but the course needs %s.\n"
                      "Choose another one: %s" % (tuple(version[:2]) + (PYTHONS, AGAIN)))


def interpreter(prefix):
    """The python of a virtual environment, or of a conda environment, which keeps it elsewhere on Windows."""
    name = "python.exe" if WINDOWS else "python"
    conda = Path(prefix, name)
    return conda if WINDOWS and conda.exists() else Path(prefix, "Scripts" if WINDOWS else "bin", name)


def probe(python, extras):
    """0: this interpreter has all that the course needs; 4: pip can fix it; anything else: it is broken."""
    command = [str(python), "-I", "-m", "course_tools.installed", "--root", str(ROOT)]
    command += ["--extra=" + extra for extra in sorted(extras)]
    try:
        return subprocess.call(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except OSError:
        return None


def active_environment(extras):
    """The python of the active conda or virtual environment if it has all the course needs, or None."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if prefix and Path(prefix).resolve() != VENV.resolve():
            python = interpreter(prefix)
            if probe(python, extras) == 0:
                return python
    return None


def digest():
    """A hash of the files that say what is installed."""
    texts = [(ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256(b"\0".join(texts)).hexdigest()


def read_stamp():
    """What the last complete set-up recorded in .venv; None if there is none, or if the folder has moved."""
    try:
        stamp = json.loads((VENV / "course-stamp.json").read_text(encoding="utf-8"))
        return stamp if stamp["root"] == str(ROOT) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def call(command, log):
    """Run one step, log its output, and return its exit status. On a terminal a clock shows the progress."""
    started = time.time()
    with open(str(log), "ab") as output:
        process = subprocess.Popen(command, cwd=str(ROOT), stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT)
    try:
        while process.poll() is None:
            time.sleep(0.2)
            if sys.stdout.isatty():
                print("\r%4d s " % (time.time() - started), end="", flush=True)
    finally:
        if process.poll() is None:    # Ctrl-C: leave nothing behind that still writes
            process.terminate()
            process.wait()
        if sys.stdout.isatty():
            print("\r        \r", end="")
    return process.returncode


def steps(fresh, extras):
    """The commands that make .venv (fresh) and install the course and its packages there.

    A fresh .venv is compiled in the last step, without the tests of packages, because pip would use one core
    for it and a third of its time.
    """
    python = str(interpreter(VENV))
    base = getattr(sys, "_base_executable", sys.executable)    # not .venv's own python, which may be deleted
    target = "." + ("[%s]" % ",".join(sorted(extras)) if extras else "")
    pip = [python, "-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--progress-bar=off",
           "-c", "constraints.txt", "-e", target]
    if not fresh:
        return [pip]
    make = [[base, "-m", "venv", "--without-pip", str(VENV)], [python, "-m", "ensurepip", "--default-pip"]]
    return make + [pip + ["--no-compile"], [python, "-c", COMPILE]]


def clear():
    """Replace .venv by an empty folder."""
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(str(VENV))
    VENV.mkdir()


def install(fresh, extras):
    """Run the steps. The stamp is removed meanwhile, so that an interrupted set-up is recognised."""
    stamp, log = VENV / "course-stamp.json", VENV / "setup.log"
    before = None if fresh else stamp.read_text(encoding="utf-8")
    clear() if fresh else stamp.unlink()
    log.write_bytes(b"")
    for step in steps(fresh, extras):
        if call(step, log) != 0 and COMPILE not in step:    # Python compiles what it imports anyway
            last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-60:]
            cause = explain("\n".join(last))
            if before and cause == NETWORK:    # pip downloads first: nothing was changed yet
                stamp.write_text(before, encoding="utf-8")
            raise Trouble((cause or "\n  ".join(["The set-up failed. The end of its log:"] + last[-8:]))
                          + "\nThe full log is in %s" % log)
    note = {"root": str(ROOT), "digest": digest(), "extras": sorted(extras)}
    stamp.write_text(json.dumps(note), encoding="utf-8")


def setup(extras):
    """The python of an environment that has everything, which is created or updated if necessary."""
    python = active_environment(extras)
    if python:
        return python
    python, stamp = interpreter(VENV), read_stamp()
    state = probe(python, extras) if stamp else None    # no stamp: begin again
    if state == 0 and stamp["digest"] == digest() and extras <= set(stamp["extras"]):
        return python
    check_python()
    started = time.time()
    fresh = state not in (0, 4)
    print("Installing the course's packages into .venv. This takes a few minutes, only this once." if fresh
          else "Updating .venv.", flush=True)
    install(fresh, extras | set(stamp["extras"] if stamp else ()))
    print("The set-up took %d s." % (time.time() - started), flush=True)
    return python


def launch(python, command):
    """`become` the command, with the environment's programs first on PATH."""
    folders = [str(python.parent)]
    if WINDOWS and python.parent.name != "Scripts":    # conda's programs are not beside its python
        folders.append(str(python.parent / "Scripts"))
    env = dict(os.environ, PATH=os.pathsep.join(folders + [os.environ.get("PATH", os.defpath)]))
    if VENV in python.parents:
        env["VIRTUAL_ENV"] = str(VENV)
    return become(command, env)


def become(command, env):
    """Become the command, which is looked for on the PATH of `env`: Ctrl-C goes straight to it.

    Windows cannot replace a process, and looks for programs on its own PATH: there, the exit status returns.
    """
    sys.stdout.flush()
    if not WINDOWS:
        return os.execvpe(command[0], command, env)
    command = [shutil.which(command[0], path=env["PATH"]) or command[0]] + command[1:]
    process = subprocess.Popen(command, env=env)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:    # the command has got Ctrl-C as well, and decides what it means
            pass


def arguments(argv):
    """The parsed arguments."""
    parser = argparse.ArgumentParser(prog="bootstrap.py", description=__doc__.split("\n")[0])
    verbs = parser.add_subparsers(dest="verb", metavar="setup | lab | run")
    verbs.required = True    # as an argument of add_subparsers only since Python 3.7
    for verb in ("setup", "lab", "run"):
        verbs.add_parser(verb).add_argument("--extra", action="append", default=[],
                                            choices=["test", "cluster", "site"])
    verbs.choices["lab"].add_argument("--port", type=int)
    verbs.choices["lab"].add_argument("--no-browser", action="store_true")
    return parser.parse_args(argv)


def main(argv):
    """The exit status: 2, with a message, if something prevents the set-up."""
    for stream in (sys.stdout, sys.stderr):    # a path in Hangul, on a console that lacks it
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    cut = argv.index("--") if "--" in argv else len(argv)
    args, command = arguments(argv[:cut]), argv[cut + 1:]
    extras = set(args.extra)
    try:
        python = setup(extras)
        if args.verb == "lab":
            port = [] if args.port is None else ["--port=%d" % args.port]
            quiet = ["--no-browser"] if args.no_browser else []
            return launch(python, [str(python), "-m", "course_tools.lab"] + port + quiet)
        if args.verb == "run":
            return launch(python, command or ["python"])
    except Trouble as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(explain(str(error)) or error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped. Run the same command again to continue.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

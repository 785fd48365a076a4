"""Open the course in JupyterLab: python -m course_lib.lab [--port N] (make lab)."""

import argparse
import errno
import os
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST_PORT = 8888
START = "notebooks/00_start_here.ipynb"


def free(port):
    """Can a server listen on this port of this machine?"""
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            with socket.socket(family) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind((address, port))
        except OverflowError:    # no port has this number
            return False
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False    # anything else: the machine lacks this family of addresses
    return True


def choose_port(asked=None):
    """The port asked for, or the first free one from 8888 on.  ValueError if there is none."""
    if asked is not None:
        if asked > 0 and free(asked):
            return asked
        raise ValueError(f"Port {asked} is taken or not allowed. Choose another one: make lab PORT=8900")
    for port in range(FIRST_PORT, FIRST_PORT + 100):
        if free(port):
            return port
    raise ValueError(f"No port from {FIRST_PORT} on is free. Choose one: make lab PORT=9500")


def command(port):
    """JupyterLab's command line.  root_dir: it would take notebooks/ and hide exercises/."""
    line = [sys.executable, "-m", "jupyterlab", START, f"--port={port}", f"--ServerApp.root_dir={ROOT}"]
    return line + (["--allow-root"] if os.geteuid() == 0 else [])


def environment():
    """The variables JupyterLab starts with: it reads course_lib/jupyter too, where nbgrader's menus are off.

    nbgrader is there for the tests of `course export`; a learner has no use for its menus.
    """
    own = str(ROOT / "course_lib" / "jupyter")
    others = os.environ.get("JUPYTER_CONFIG_PATH")
    return os.environ | {"JUPYTER_CONFIG_PATH": os.pathsep.join([own, others] if others else [own])}


def main(argv=None):
    """Become JupyterLab, so that Ctrl-C goes straight to it; exit status 2 where no port is free."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.lab", description=__doc__.split(":")[0])
    parser.add_argument("--port", type=int)
    asked = parser.parse_args(argv).port
    try:
        port = choose_port(asked)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if asked is None and port != FIRST_PORT:
        print(f"Port {FIRST_PORT} is taken (another JupyterLab?): this one is on port {port}.", flush=True)
    os.chdir(ROOT)
    os.execve(sys.executable, command(port), environment())


if __name__ == "__main__":
    sys.exit(main())

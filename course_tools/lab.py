"""Open the course in JupyterLab: python -m course_tools.lab [--port N] [--no-browser] (make lab).

course_tools/jupyter/ holds the settings of JupyterLab.  This module is also a server extension, which prints
the address of the course once the server has started.
"""

import argparse
import errno
import os
import secrets
import socket
import sys
from pathlib import Path

from . import bootstrap

ROOT = Path(__file__).resolve().parent.parent
FIRST_PORT = 8888
START = "lab/tree/notebooks/00_start_here.ipynb"
READY = """
The course: {address}
To stop:    press Ctrl-C twice in this terminal.
Progress:   run "course status" in JupyterLab's terminal (File, New, Terminal)."""


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


def choose_port(wanted=None):
    """The wanted port, or the first free one from 8888 on.  Raises ValueError if there is none."""
    if wanted is not None:
        if wanted > 0 and free(wanted):
            return wanted
        raise ValueError(f"Port {wanted} is in use or not allowed. Choose another one: make lab PORT=8900")
    for port in range(FIRST_PORT, FIRST_PORT + 100):
        if free(port):
            return port
    raise ValueError(f"No port from {FIRST_PORT} to {FIRST_PORT + 99} is free. Choose another one: "
                     "make lab PORT=9500")


def command(port, browser=True):
    """JupyterLab's command line.

    shell_command: without it, terminals are login shells if the server's output is not a terminal, and a
    login shell resets PATH, so that the environment's programs are not found.  Only errors are logged, so
    that the lines printed by `ready` stay in sight.
    """
    line = [sys.executable, "-m", "jupyterlab", f"--port={port}", f"--ServerApp.root_dir={ROOT}",
            f"--LabApp.default_url=/{START}", "--log-level=ERROR", "--LabApp.log_level=ERROR"]
    if not bootstrap.WINDOWS:    # there, JupyterLab's own choice (PowerShell) is right
        shell = os.environ.get("SHELL") or "sh"
        line.append(f"--ServerApp.terminado_settings={ {'shell_command': [shell]} }")
        line += ["--allow-root"] if os.geteuid() == 0 else []
    return line + ([] if browser else ["--no-browser"])


def environment():
    """The environment variables of JupyterLab: it reads the settings in course_tools/jupyter first.

    If a token is set, Jupyter does not print its own lines about addresses.
    """
    ours = str(ROOT / "course_tools" / "jupyter")
    others = os.environ.get("JUPYTER_CONFIG_PATH")
    return {"JUPYTER_TOKEN": secrets.token_hex(24), **os.environ,
            "JUPYTER_CONFIG_PATH": os.pathsep.join([ours, others] if others else [ours])}


def _jupyter_server_extension_points():
    return [{"module": "course_tools.lab"}]


def _load_jupyter_server_extension(server):
    """Print the address of the course once the server answers."""
    server.io_loop.add_callback(ready, server)


def ready(server):
    """Print the last lines of the start: the address, how to stop, and how to see one's progress."""
    address = f"{server.connection_url}{START}?token={server.identity_provider.token}"
    print(READY.format(address=address), flush=True)


def main(argv=None):
    """Become JupyterLab, so that Ctrl-C goes straight to it.  The exit status is 2 if no port is free."""
    parser = argparse.ArgumentParser(prog="python -m course_tools.lab", description=__doc__.split(":")[0])
    parser.add_argument("--port", type=int)
    parser.add_argument("--no-browser", action="store_true")
    options = parser.parse_args(argv)
    try:
        port = choose_port(options.port)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if options.port is None and port != FIRST_PORT:
        print(f"Port {FIRST_PORT} is in use, perhaps by another JupyterLab. This one uses port {port}.",
              flush=True)
    os.chdir(ROOT)
    return bootstrap.become(command(port, not options.no_browser), environment())


if __name__ == "__main__":
    sys.exit(main())

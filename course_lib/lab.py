"""Open the course in JupyterLab: python -m course_lib.lab [--port N] [--no-browser] (make lab).

course_lib/jupyter/ holds JupyterLab's settings for it; this module is a server extension too, which
says at the end of the start where the course is.
"""

import argparse
import errno
import os
import secrets
import socket
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIRST_PORT = 8888
START = "lab/tree/notebooks/00_start_here.ipynb"
READY = """
The course: {address}
To stop:    press Ctrl-C here, twice.
Progress:   type course status in JupyterLab's terminal (File, New, Terminal)."""


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


def command(port, browser=True):
    """JupyterLab's command line.

    shell_command: without one the terminals are login shells where the server's output is no terminal, and
    a login shell sets PATH anew, without the environment's programs.  Only errors are logged, so that
    what `ready` prints stays in sight.
    """
    shell = os.environ.get("SHELL") or "sh"
    line = [sys.executable, "-m", "jupyterlab", f"--port={port}", f"--ServerApp.root_dir={ROOT}",
            f"--LabApp.default_url=/{START}", "--log-level=ERROR", "--LabApp.log_level=ERROR",
            f"--ServerApp.terminado_settings={ {'shell_command': [shell]} }"]
    return line + ([] if browser else ["--no-browser"]) + (["--allow-root"] if os.geteuid() == 0 else [])


def environment():
    """The variables JupyterLab starts with: it reads the settings in course_lib/jupyter before others.

    With a token that was set, Jupyter leaves out its own lines about addresses.
    """
    own = str(ROOT / "course_lib" / "jupyter")
    others = os.environ.get("JUPYTER_CONFIG_PATH")
    return {"JUPYTER_TOKEN": secrets.token_hex(24), **os.environ,
            "JUPYTER_CONFIG_PATH": os.pathsep.join([own, others] if others else [own])}


def _jupyter_server_extension_points():
    return [{"module": "course_lib.lab"}]


def _load_jupyter_server_extension(server):
    """Print where the course is, once the server answers."""
    server.io_loop.add_callback(ready, server)


def ready(server):
    """The last lines of a start: where the course is, how to stop it, where one's progress is."""
    address = f"{server.connection_url}{START}?token={server.identity_provider.token}"
    print(READY.format(address=address), flush=True)


def main(argv=None):
    """Become JupyterLab, so that Ctrl-C goes straight to it; exit status 2 where no port is free."""
    parser = argparse.ArgumentParser(prog="python -m course_lib.lab", description=__doc__.split(":")[0])
    parser.add_argument("--port", type=int)
    parser.add_argument("--no-browser", action="store_true")
    asked = parser.parse_args(argv)
    try:
        port = choose_port(asked.port)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    if asked.port is None and port != FIRST_PORT:
        print(f"Port {FIRST_PORT} is taken (another JupyterLab?): this one is on port {port}.", flush=True)
    os.chdir(ROOT)
    os.execve(sys.executable, command(port, not asked.no_browser), environment())


if __name__ == "__main__":
    sys.exit(main())

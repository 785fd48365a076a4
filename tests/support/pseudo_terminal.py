"""A program as a person starts it: under a pseudo-terminal, with keys typed and the screen read."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]")
# Ctrl-C becomes a signal, also where these tests were started in the background (`pytest &`).
CONTROLLING = """import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp(sys.argv[1], sys.argv[1:])"""
CTRL_C = "\x03"


def plain(printed):
    """What was printed, without colours and with plain line ends."""
    return ESCAPES.sub("", printed).replace("\r\n", "\n")


class Terminal:
    """One program on a terminal of its own; `printed` is all that came so far, as it came."""

    def __init__(self, line, folder, columns=80, rows=24, **environment):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith(("COURSE_", "PYTEST_")) and key not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", CONTROLLING, *map(str, line)], stdin=theirs, stdout=theirs, stderr=theirs,
            cwd=folder, start_new_session=True, env={**kept, "TERM": "xterm-256color", **environment})
        os.close(theirs)
        self.screen, self.printed = ours, ""

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.process.kill()
        self.process.wait()
        os.close(self.screen)

    def type(self, keys):
        os.write(self.screen, keys.encode())

    def until(self, words, seconds=90):
        """Read until these words have come; returns what came, plain."""
        begin = len(self.printed)
        self._read(lambda: words in plain(self.printed[begin:]), seconds, f"no {words!r}")
        return plain(self.printed[begin:])

    def end(self, seconds=90):
        """Read to the end; returns (exit status, all that was printed, plain)."""
        self._read(lambda: False, seconds, "no end", at_end=True)
        return self.process.wait(seconds), plain(self.printed)

    def _read(self, enough, seconds, complaint, at_end=False):
        patience, pending = time.monotonic() + seconds, b""
        while not enough():
            ready = select.select([self.screen], [], [], 0.2)[0]
            try:
                piece = os.read(self.screen, 65536) if ready else None
            except OSError:    # Linux says so when nobody holds the other side any more
                piece = b""
            if piece == b"":
                assert at_end, f"{complaint} before the end:\n{plain(self.printed)}"
                return
            pending += piece or b""
            try:
                self.printed, pending = self.printed + pending.decode(), b""
            except UnicodeDecodeError:
                pass    # half a character: the rest comes with the next piece
            assert time.monotonic() < patience, f"{complaint} after {seconds} s:\n{plain(self.printed)}"

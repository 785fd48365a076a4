"""Messages on the line between the grader and a submission's process: a length, then that many bytes."""

import struct
import time

HEAD = struct.Struct(">I")
LONGEST = 16_000_000  # bytes
PIECE = 1 << 20


def send(line, data):
    """Send one message.  Raises OSError; TimeoutError after the line's timeout."""
    line.sendall(HEAD.pack(len(data)) + data)


def receive(line, seconds=None):
    """The next message.  Raises OSError: TimeoutError after so many seconds, however slowly it trickles in,
    and ConnectionError if the line is closed or the message is longer than any may be."""
    end = None if seconds is None else time.monotonic() + seconds
    size, = HEAD.unpack(_exactly(line, HEAD.size, end))
    if size > LONGEST:
        raise ConnectionError("longer than any message may be")
    return _exactly(line, size, end)


def _exactly(line, count, end):
    data = bytearray()
    while len(data) < count:
        if end is not None:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            line.settimeout(left)
        part = line.recv(min(count - len(data), PIECE))
        if not part:
            raise ConnectionError("closed")
        data += part
    return bytes(data)

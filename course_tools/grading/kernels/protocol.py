"""Messages between the grader and a submission's process: a length, then that many bytes."""

import struct
import time

HEAD = struct.Struct(">I")
LONGEST = 16_000_000  # bytes
PIECE = 1 << 20


def send(connection, data):
    """Send one message.  Raises OSError; TimeoutError after the connection's timeout."""
    connection.sendall(HEAD.pack(len(data)) + data)


def receive(connection, seconds=None):
    """The next message.  Raises OSError: TimeoutError after so many seconds, however slowly it trickles in,
    and ConnectionError if the connection is closed or the message is longer than any may be."""
    end = None if seconds is None else time.monotonic() + seconds
    size, = HEAD.unpack(_exactly(connection, HEAD.size, end))
    if size > LONGEST:
        raise ConnectionError("longer than any message may be")
    return _exactly(connection, size, end)


def _exactly(connection, count, end):
    data = bytearray()
    while len(data) < count:
        if end is not None:
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
        part = connection.recv(min(count - len(data), PIECE))
        if not part:
            raise ConnectionError("closed")
        data += part
    return bytes(data)

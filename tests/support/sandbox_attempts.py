"""Run beside a test: tries to get out of a sandbox, and tells what happened as JSON on standard output.

    python sandbox_attempts.py WORLD WITHOUT [filter]

WORLD: JSON about the outside (see `test_sandbox.world`).  WITHOUT: layers to leave out, or "all layers".
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

from course_tools.grading.sandbox import policy, selftest, syscalls

libc = ctypes.CDLL(None, use_errno=True)


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def write(path):
    """Only opened: nothing is changed where it gets through."""
    os.close(os.open(path, os.O_WRONLY | os.O_APPEND))


def create(path, text="x"):
    with open(path, "x") as file:
        file.write(text)


def connect(kind, address):
    with socket.socket(kind, socket.SOCK_STREAM) as line:
        line.settimeout(2)
        line.connect(address)


def other_memory(pid):
    """Read a word of another process without a file."""
    class Part(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
    with open(f"/proc/{pid}/maps") as file:
        start = int(file.readline().split("-")[0], 16)
    buffer = ctypes.create_string_buffer(8)
    mine, theirs = Part(ctypes.addressof(buffer), 8), Part(start, 8)
    checked(libc.process_vm_readv(pid, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0))


def trace(pid):
    checked(libc.ptrace(0x4206, pid, None, None))  # PTRACE_SEIZE


def attempts(world):
    """{name: a function that raises OSError unless it gets through}"""
    victim = world["victim"]
    tries = {f"read {name}": lambda path=path: read(path) for name, path in world["secrets"].items()}
    tries |= {f"write {name}": lambda path=path: write(path) for name, path in world["secrets"].items()}
    tries |= {
        "read environ of another": lambda: read(f"/proc/{victim}/environ"),
        "read memory of another": lambda: read(f"/proc/{victim}/maps"),
        "read files of another": lambda: os.readlink(f"/proc/{victim}/fd/1"),
        "read memory by system call": lambda: other_memory(victim),
        "trace another": lambda: trace(victim),
        "change mode": lambda: os.chmod(world["secrets"]["submission"], 0o666),
        "change times": lambda: os.utime(world["secrets"]["submission"]),
        "make a file outside": lambda: create(world["new"]),
        "remove a file outside": lambda: os.unlink(world["removable"]),
        "connect by TCP": lambda: connect(socket.AF_INET, ("127.0.0.1", world["port"])),
        "connect by path": lambda: connect(socket.AF_UNIX, world["path"]),
        "connect by abstract name": lambda: connect(socket.AF_UNIX, "\0" + world["abstract"]),
        "send a datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(
            b"x", ("127.0.0.1", world["port"])),
        "lower the limits of another": lambda: checked(
            libc.prlimit(victim, 4, (ctypes.c_long * 2)(0, 0), None)),
        "make shared memory that stays": lambda: checked(libc.shmget(0x77, 4096, 0o1600)),
        "make memory that no limit counts": lambda: os.close(os.memfd_create("x")),
        "make a user namespace": lambda: syscalls.unshare(syscalls.NEWUSER),
        "stop another": lambda: os.kill(victim, signal.SIGSTOP),
        "end another": lambda: os.kill(victim, signal.SIGKILL),
    }
    return tries


def needs():
    """{name: a function that raises an exception unless what an answer may need is there}"""
    def thread():
        worker = threading.Thread(target=int)
        worker.start()
        worker.join()

    def temporary():
        with tempfile.TemporaryDirectory() as folder:
            create(os.path.join(folder, "x"))
    return {"scratch": lambda: create("mine"), "temporary": temporary, "thread": thread,
            "standard library": lambda: __import__("sqlite3").connect("base").execute("create table x (y)"),
            "packages": lambda: __import__("tqdm.auto"), "randomness": lambda: os.urandom(8),
            "sub-process": lambda: subprocess.run(["/bin/sh", "-c", "echo x > y"], check=True),
            "nowhere": lambda: write("/dev/null"), "own memory": lambda: bytearray(100 << 20),
            "course": lambda: __import__("course_lib.shapes"), "socket pair": socket.socketpair,
            "python": lambda: subprocess.run([sys.executable, "-c", "import json"], check=True)}


def results(tries):
    """{name: None if it got through, else the name of the error}"""
    found = {}
    for name, attempt in tries.items():
        try:
            attempt()
            found[name] = None
        except Exception as problem:
            found[name] = type(problem).__name__
    return found


def main(world, without, refused=""):
    if refused:
        syscalls.prctl(syscalls.NO_NEW_PRIVS, 1)
        syscalls.set_filter(bytes.fromhex(refused))
    if without == "all layers":
        told = {"sandbox": None, "attempts": results(attempts(world))}
        return print(json.dumps(told))
    syscalls.hide_memory()  # as the fork server does
    sandbox = selftest.best(policy.paths(world["private"]), [name for name in without.split(",") if name])
    outbox = os.dup(1)
    sandbox.begin()
    child = os.fork()
    if not child:
        sandbox.confine()
        told = {"sandbox": str(sandbox), "attempts": results(attempts(world)), "needs": results(needs()),
                "folder": os.getcwd(), "user": os.getuid()}
        os.write(outbox, json.dumps(told).encode())
        os._exit(0)
    os.waitpid(child, 0)
    sandbox.end()
    os._exit(0)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), *sys.argv[2:])

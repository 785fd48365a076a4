"""Kernels forked from the fork server: whatever a submission does costs it no more than its own item, and
leaves nothing behind.
"""

import functools
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("kernels are forked on Linux only", allow_module_level=True)

from first_exercise import (
    CLASS,
    FULL,
    ITEMS,
    NO_TANH,
    POINTS,
    SOLUTION,
    STEM,
    alive,
    earned,
    hand_in,
    messages,
    notebook,
    wait_for,
)
from sandbox_layers import BY_ROOT, expected, ordinary

from course_tools import exercise
from course_tools.grading import classroom, grade
from course_tools.grading.kernels import fork_client, make_kernel, replies
from course_tools.grading.kernels.forked import ForkedKernel
from course_tools.grading.kernels.jupyter import Kernel
from course_tools.grading.kernels.outcome import Interrupted, KernelLost, Outcome
from course_tools.grading.question import Trials, question_for
from course_tools.grading.session import GradingSession
from course_tools.judging.judge import judge
from course_tools.judging.observe import encode

pytestmark = pytest.mark.slow
ANSWER = SimpleNamespace(name="answer", probe="call", gradients=False)
TRIALS = Trials([{"x": 1}])
SCRATCH = Path(tempfile.gettempdir())
LEFT_OUT = ["", "namespaces", "namespaces,Landlock"]  # layers left out


@pytest.fixture(scope="module", autouse=True)
def secret():
    """In the grader's environment before the fork server starts."""
    fork_client.supervisors.end()
    os.environ["SECRET_TOKEN"] = "hush"
    yield
    del os.environ["SECRET_TOKEN"]


@pytest.fixture(autouse=True)
def all_layers(request):
    """Every layer, unless a test asks for less."""
    if "layers" not in request.fixturenames:
        fork_client.supervisors.start(without=())


@pytest.fixture(params=LEFT_OUT, ids=lambda without: f"without {without or 'nothing'}", scope="module")
def layers(request):
    fork_client.supervisors.start(without=[name for name in request.param.split(",") if name])
    return request.param


@pytest.fixture
def kernel():
    made = ForkedKernel()
    yield made
    made.stop()


def run(kernel, source, timeout=20):
    """Run a cell; its error as text, or None."""
    error = kernel.run(source, timeout).error
    return None if error is None else ": ".join(error)


def lost(kernel, source, timeout=20):
    with pytest.raises(KernelLost) as caught:
        kernel.run(source, timeout)
    return caught.value


# ---------------------------------------------------------------- a shell like a notebook's

CELLS = {
    "await": "import asyncio\nawait asyncio.sleep(0)",
    "async def": "async def f():\n    return 1\nassert await f() == 1",
    "magic": "%time x = 1\n%matplotlib agg",
    "cell magic": "%%capture out\nprint(1)",
    "shell": "!echo hello > there\nassert open('there').read()",
    "display": "from IPython.display import display, HTML\ndisplay(1, HTML('x'))",
    "shell object": "get_ipython().run_line_magic('who', '')\nprint(get_ipython().user_ns['__name__'])",
    "last value": "torch = 3\ntorch",
    "print": "print('x' * 1000)",
    "exit": "exit",
    "progress bar": "from tqdm.auto import tqdm\nfor _ in tqdm(range(3)): pass",
    "figure": "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('figure.png')\nplt.show()",
    "pickle": "import pickle\nclass A: pass\nassert type(pickle.loads(pickle.dumps(A()))) is A",
    "check": "from course_tools.judging import check\ncheck(print)",
    "source": "import inspect\ndef f():\n    return 41\nassert '41' in inspect.getsource(f)",
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_runs_as_in_a_notebook(name, kernel):
    assert run(kernel, CELLS[name]) is None


def test_errors_come_with_their_type_and_text(kernel):
    assert run(kernel, "x = = 1") == "SyntaxError: invalid syntax (cell-1.py, line 1)"
    assert run(kernel, "def f():\nreturn").startswith("IndentationError: ")
    assert run(kernel, "raise KeyError('k')") == "KeyError: 'k'"
    assert run(kernel, "import sys\nsys.exit(3)") == "SystemExit: 3"
    assert run(kernel, "raise KeyboardInterrupt").startswith("KeyboardInterrupt")
    assert run(kernel, "input()").startswith("EOFError")
    assert run(kernel, "class E(Exception):\n    def __str__(self):\n        raise E\nraise E") == "E: "


def test_nothing_goes_from_one_kernel_to_the_next():
    for _ in range(4):  # each supervisor twice
        kernel = ForkedKernel()
        assert run(kernel, "assert 'mine' not in dir() and not __import__('os').listdir('.')") is None
        assert run(kernel, "assert In == [''] and Out == {} and _ == __ == ''") is None
        assert run(kernel, "import torch\nmine = torch.tanh = 1\nopen('left', 'w').write('x')") is None
        kernel.stop()


def test_the_process_knows_no_answer_and_no_secret(kernel):
    machine = ("course_tools.grading.kernels", "course_tools.grading.sandbox")
    loaded = ("[m for m in __import__('sys').modules "
              f"if m.startswith('course_') and not m.startswith({machine})]")    # 500 characters come back
    names = set(run(kernel, f"raise Exception(' '.join({loaded}))").split()[1:])
    assert names <= {
        "course_lib", "course_lib.runtime", "course_tools", "course_tools.items",
        "course_tools.items.registry", "course_tools.judging", "course_tools.judging.observe",
        "course_tools.judging.probes", "course_tools.judging.libraries", "course_tools.grading",
        "course_tools.grading.limits"}
    assert os.environ["SECRET_TOKEN"] == "hush"
    assert run(kernel, "import os\ntold = str(os.environ) + open('/proc/self/environ').read()\n"
                       "assert 'COURSE_STATIC' in told and 'hush' not in told") is None


SEARCH = """
import gc, os, sys
needle, modules = "".join(("of", "-mine")), filter(None, sys.modules.values())
seen = [*gc.get_objects(), *map(dict, map(vars, modules))]
frame = sys._getframe()
while frame:
    seen.append(dict(frame.f_locals))
    frame = frame.f_back
texts = [part for one in seen for part in gc.get_referents(one) if isinstance(part, (str, bytes))]
texts += [str(os.environ), *(open(f"/proc/self/{name}").read() for name in ("environ", "cmdline"))]
found = [text for text in map(str, texts) if needle in text and text != needle]
assert len(texts) > 1000 and not found, found[:3]
"""


def test_the_process_knows_no_path_of_the_grader(monkeypatch):
    """Where submissions lie, the grader's PATH and home: not in its objects, frames or environment."""
    fresh = fork_client.SupervisorPool()
    monkeypatch.setenv("PATH", f"/opt/of-mine/bin{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", "/home/of-mine")
    monkeypatch.setattr("course_tools.grading.kernels.forked.supervisors", fresh)
    fresh.start(private=["/home/of-mine/submissions"])
    for _ in range(2 * fork_client.SUPERVISORS):
        kernel = ForkedKernel()
        assert run(kernel, SEARCH) is None
        kernel.stop()
    fresh.end()


# ---------------------------------------------------------------- what costs a submission its kernel

LOOPS = {
    "in Python": "while True: pass",
    "in C": "import re\nre.match('(a|a)*b', 'a' * 60)",
    "in torch": "import torch\nwhile True: torch.ones(3000, 3000) @ torch.ones(3000, 3000)",
    "asleep, deaf to signals": "import time, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\n"
                               "time.sleep(1000)",
    "twice": "import os\nos.fork() or os.setsid()\nwhile True: pass",
    "stopped": "import os\nos.kill(os.getpid(), 19)",
}


def test_a_loop_that_never_ends_is_stopped(layers):
    for source in LOOPS.values():
        kernel, begun = ForkedKernel(), time.monotonic()
        assert lost(kernel, source, 0.3).status == "timeout", source
        kernel.stop()
        assert time.monotonic() - begun < 5


ENDINGS = {
    "import os\nos._exit(0)": "ended the Python process", "import ctypes\nctypes.string_at(0)": "ended",
    "import os\nos.abort()": "ended", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)": "ended",
    "import os\nos.closerange(3, 100)": "ended",
    "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass": "ended",
}


@pytest.mark.parametrize("source", ENDINGS)
def test_an_end_of_the_process_is_told(source, kernel):
    gone = lost(kernel, source)
    assert gone.status == "error" and ENDINGS[source] in str(gone)


BLOCKS = """
import os, time
for _ in range(3):
    if not os.fork():
        x = b"x" * (900 << 20)
        break
time.sleep(60)
"""
FORKS = """
import os, time
try:
    while True: os.fork()
except OSError:
    time.sleep(60)
"""
THREADS = """
import threading, time
count = 0
try:
    while count < 5000:
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except (RuntimeError, MemoryError):
    raise Exception(count)
"""
FILES = """
import time
for number in range(100):
    with open(str(number), "wb", 0) as file:
        file.write(b"x" * 10**7)
time.sleep(5)
"""
DELETED = """
import os, time
files = []
for number in range(100):
    files.append(open("x", "wb", 0))
    files[-1].write(b"x" * 10**7)
    os.unlink("x")
time.sleep(5)
"""
FLOOD = """
import os, sys
for _ in range(300):
    print("x" * 10**6)
    sys.stderr.write("x" * 10**5)
    os.write(1, b"x" * 10**5)
    os.write(2, b"x" * 10**5)
"""


def test_memory_is_limited(layers, kernel):
    assert run(kernel, "x = bytearray(10**10)").startswith("MemoryError")
    assert "memory" in run(kernel, "import torch\nx = torch.ones(10**10)")


EXECUTED = """
import subprocess, sys, time
for _ in range(12):  # far less each than a process is born with
    subprocess.Popen([sys.executable, "-Sc", "x = b'x' * (230 << 20)\\nimport time\\ntime.sleep(60)"])
time.sleep(60)
"""
HEADLESS = """
import ctypes, os, threading, time
def hold():
    x = b"x" * (900 << 20)
    time.sleep(60)
for _ in range(3):
    if not os.fork():
        threading.Thread(target=hold).start()
        ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
time.sleep(60)
"""
SHARED = """
import os, time
x = b"x" * (700 << 20)
children = []
for _ in range(4):
    child = os.fork()
    if not child:
        time.sleep(1)
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""
SOCKETS = """
import os, socket, time
for _ in range(6):
    if not os.fork():
        break
pairs = []
try:
    while True:
        pairs.append(socket.socketpair())
        for one in pairs[-1]:
            one.setblocking(False)
            try:
                while True: one.send(bytes(50_000))
            except BlockingIOError:
                pass
except OSError:
    time.sleep(60)
"""


@pytest.mark.parametrize("source", [BLOCKS, EXECUTED, HEADLESS], ids=["forked", "executed", "headless"])
def test_memory_is_limited_in_all_processes_together(source, layers, kernel):
    assert "2 GB of memory" in str(lost(kernel, source, 30))


def test_memory_that_processes_share_counts_once(layers, kernel):
    assert run(kernel, SHARED) is None


def test_buffers_that_no_process_has_in_its_memory_are_limited(layers, kernel):
    assert "too many files, pipes or sockets" in str(lost(kernel, SOCKETS, 30))


HIDDEN = {  # memory that stays when nothing of it is mapped
    "shared by nobody": "import mmap\nmmap.mmap(-1, 4096)",
    "huge pages": "import mmap\nmmap.mmap(-1, 2 << 20, flags=0x40022)",
    "large socket buffers": "import socket\nsocket.socketpair()[0].setsockopt(1, socket.SO_SNDBUF, 1 << 20)",
    "large pipes": "import fcntl, os\nfcntl.fcntl(os.pipe()[1], 1031, 1 << 20)",
    "pages given to a pipe": "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
                             "byte = ctypes.create_string_buffer(1)\n"
                             "part = (ctypes.c_size_t * 2)(ctypes.addressof(byte), 1)\n"
                             "if libc.vmsplice(os.pipe()[1], part, 1, 0) < 0:\n"
                             "    raise PermissionError(ctypes.get_errno())",
    "memory without a name": "import os\nos.memfd_create('x')",
    "memory of System V": "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
                          "if libc.shmget(0, 4096, 0o1600) < 0:\n"
                          "    raise PermissionError(ctypes.get_errno())",
    "a process that can't be looked into": "from course_tools.grading.sandbox import syscalls\n"
                                           "syscalls.hide_memory()",
}


@pytest.mark.parametrize("name", HIDDEN)
def test_memory_that_no_process_is_seen_to_have_is_refused(name, kernel):
    assert run(kernel, HIDDEN[name]).startswith("PermissionError")


def test_processes_are_limited(layers, kernel):
    before = len(psutil.pids())
    with pytest.raises(KernelLost):
        kernel.run(FORKS, 1)
    assert len(psutil.pids()) < before + 200
    kernel.stop()
    wait_for(lambda: len(psutil.pids()) < before + 40, 10)


def test_processor_time_is_limited_whatever_the_number_of_threads(kernel):
    source = "import hashlib, threading\ndef work():\n    while True: hashlib.sha256(bytes(10**7))\n" \
             "for _ in range(3): threading.Thread(target=work).start()\nwork()"
    lower = "import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 600))\n"
    assert "processor time" in str(lost(kernel, lower + source, 30))


def test_threads_are_limited(layers, kernel):
    assert int(run(kernel, THREADS).split()[-1]) < 600


@pytest.mark.parametrize("source", [FILES, DELETED], ids=["files", "deleted"])
def test_disk_is_limited(source, layers, kernel):
    assert run(kernel, "open('big', 'wb').write(b'x' * 10**8)").startswith("OSError")
    try:
        assert "No space left" in run(kernel, source)  # in a file system of its own
    except KernelLost as stopped:
        assert "disk" in str(stopped)


def test_a_flood_of_output_goes_nowhere(layers, kernel):
    before = memory()
    assert run(kernel, FLOOD) is None
    assert memory() < before + 20e6


def memory():
    return psutil.Process().memory_info().rss


SLEEPERS = """
import subprocess
for _ in range(3):
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
"""
DAEMON = """
import os, signal, time
if not os.fork():
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in set(range(1, 32)) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(1000)
"""
DEEP = """
import os
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
os.mkdir("closed", 0)
"""


def name_of(process):
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return None


def test_nothing_outlives_a_submission(layers):
    """Not a process that left its group and session, not a folder nested beyond all measure."""
    kernel = ForkedKernel()
    for source in (SLEEPERS, DAEMON, DEEP):
        assert run(kernel, source) is None
    family = psutil.Process(fork_client.supervisors.server.process.pid).children(recursive=True)
    sleepers = [one for one in family if name_of(one) == "sleep"]
    assert len(sleepers) == 3
    folders = [path for path in SCRATCH.glob("course-scratch-*") if (path / "work/d").exists()]
    assert bool(folders) == ("namespaces" not in kernel.sandbox)
    kernel.stop()
    wait_for(lambda: not any(map(alive, sleepers)), 10)
    wait_for(lambda: not any(alive(one) and one.ppid() == 1 for one in family), 10)
    wait_for(lambda: not any((path / "work/d").exists() for path in folders), 10)


# ---------------------------------------------------------------- what it says is hostile

LINE = """
import gc, os, socket, struct, threading, time
def line():
    for number in range(3, 64):
        try:
            if os.readlink(f"/proc/self/fd/{number}").startswith("socket:"): return number
        except OSError:
            pass
    return next(number for number in range(3, 64) if ok(number))
def ok(number):
    try:
        os.fstat(number)
        return True
    except OSError:
        return False
def frame(data): return struct.pack(">I", len(data)) + data
"""
FORGERIES = {
    "junk": "os.write(line(), b'x' * 100)", "nothing": "os.write(line(), frame(b''))",
    "an early answer": "os.write(line(), frame(b'0' * 16 + b'null'))",
    "a length beyond all": "os.write(line(), struct.pack('>I', 2**32 - 1) + b'x' * 1000)",
    "half a message": "os.write(line(), struct.pack('>I', 1000) + b'x')\ntime.sleep(60)",
    "a trickle": "os.write(line(), struct.pack('>I', 10**6))\n"
                 "while True: os.write(line(), b'x'); time.sleep(0.01)",
    "a flood": "while True: os.write(line(), b'x' * 10**6)",
    "brackets": "os.write(line(), frame(b'0' * 16 + b'[' * 10**6))",
    "the end": "socket.socket(fileno=line()).shutdown(socket.SHUT_RDWR)",
    "descriptors": "socket.socket(fileno=line()).sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, "
                   "struct.pack('i', 0))])",
    "a thief": "def steal():\n    while True: os.read(line(), 100)\n"
               "threading.Thread(target=steal, daemon=True).start()\ntime.sleep(60)",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_message_costs_the_kernel_and_nothing_else(name):
    before, kernel = memory(), ForkedKernel()
    assert run(kernel, LINE) is None
    begun = time.monotonic()
    gone = lost(kernel, FORGERIES[name], 1)
    assert gone.status in ("timeout", "error") and time.monotonic() - begun < 4
    kernel.stop()
    following = ForkedKernel()
    assert run(following, "1") is None
    following.stop()
    assert memory() < before + 60e6


def test_observations_that_are_forged_are_malformed(kernel):
    source = "import json\nfrom course_tools.grading.kernels import observer, shell\n" \
             "observer.observed = lambda *a: TEXT\nshell.observer = observer"
    for text in ("'{}'", "'['", "'[1]'", "'[' + '[],' * 10**6 + '[]]'", "'9' * 10**6", "'{\"a\":' * 10**5"):
        assert run(kernel, source.replace("TEXT", text)) is None
        before = memory()
        with pytest.raises(replies.Malformed):
            kernel.observe(ANSWER, TRIALS, 10)
        assert memory() < before + 100e6
    for text in ("'x' * 10**8", "1 / 0", "open('nothing')", "exec('raise KeyboardInterrupt')"):
        assert run(kernel, f"observer.observed = lambda *a: {text}") is None
        with pytest.raises(replies.Malformed):
            kernel.observe(ANSWER, TRIALS, 10)


def test_observations_are_those_of_the_answer(kernel):
    assert kernel.observe(ANSWER, TRIALS, 10) is None
    run(kernel, "def answer(x):\n    print('loud')\n    return x + 1")
    seen, = kernel.observe(ANSWER, TRIALS, 10)
    assert (seen["output"], seen["error"]) == (encode(2), None)


# ---------------------------------------------------------------- the fork server

@pytest.mark.parametrize("all_of_it", [False, True], ids=["itself", "all of it"])
def test_what_is_ended_from_outside_begins_anew(all_of_it, tmp_path):
    """The fork server is killed amid a submission; its student notices nothing."""
    slow = "import time\ntime.sleep(1.5)\n" + exercise_source("rnn_step")
    path = hand_in(tmp_path, "ann", notebook({"rnn_step": slow}))
    ForkedKernel().stop()
    first = psutil.Process(fork_client.supervisors.server.process.pid)
    family = [first, *first.children(recursive=True) * all_of_it]
    threading.Timer(1, lambda: [one.kill() for one in family if alive(one)]).start()
    result = grade.grade_notebook(path, STEM, grade.Settings(1))
    assert earned(result) == POINTS and not alive(first)
    for _ in range(3):
        ForkedKernel().stop()


@pytest.mark.parametrize("ended, goes_on", [(1, True), (4, True), (5, False)])
def test_kernels_that_are_ended_from_outside_one_after_the_other(ended, goes_on):
    """Whatever ends one supervisor ends the other as well, perhaps a moment later."""
    made = []

    def kernel():
        made.append(SimpleNamespace(sandbox="none", run=run, stop=lambda: None))
        return made[-1]

    def run(source, timeout):
        if len(made) <= ended:
            raise Interrupted("the fork server was ended")
        return Outcome()

    session = GradingSession({}, {}, {}, 0, kernel, 1)
    if goes_on:
        session.set_up("x = 1")
        assert len(made) == ended + 1
    else:
        with pytest.raises(Interrupted):
            session.set_up("x = 1")


def exercise_source(name):
    return next(cell.source for cell in SOLUTION.cells if exercise.grade_id(cell) == name)


def test_an_ordinary_user_grades_in_a_sandbox_too(tmp_path):
    path = hand_in(tmp_path, "ann", notebook({"rnn_step": NO_TANH}))
    source = "import sys\nfrom course_tools.grading import grade\n" \
             "result = grade.grade_notebook(sys.argv[1], sys.argv[2], grade.Settings(1))\n" \
             "print(result['score'], result['sandbox'])"
    done = subprocess.run([sys.executable, "-c", source, path, STEM], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(exercise.ROOT)},
                          preexec_fn=ordinary if BY_ROOT else None)
    assert done.stdout == f"{FULL - 1} {expected(as_ordinary=True)}\n", done.stderr


PROGRAM = """import sys
import time
import psutil
from course_tools.grading.kernels import fork_client, make_kernel
fork_client.supervisors.start(without=sys.argv[1].split(","))
kernel = make_kernel()
server = psutil.Process(fork_client.supervisors.server.process.pid)
end = time.monotonic() + 30  # one of two may just be coming
while len(server.children()) != 2 and time.monotonic() < end: time.sleep(0.1)
trusted = [psutil.Process().pid, server.pid, *(supervisor.pid for supervisor in server.children())]
assert len(trusted) == 4
told = kernel.run(f"trusted = {trusted}\\n" + sys.argv[2], 10).error[1]
print(kernel.sandbox, told)
"""
LOOK = """
import os
opened = []
for pid in trusted:
    for name, look in (("mem", open), ("environ", open), ("fd/0", os.readlink)):
        try:
            look(f"/proc/{pid}/{name}")
            opened.append(name)
        except OSError:
            pass
raise Exception(opened)
"""


@pytest.mark.parametrize("without", ["namespaces,Landlock", "namespaces,Landlock,seccomp"])
def test_an_answer_can_not_look_into_the_graders_processes(without):
    """Not even where nothing but limits holds it, and the user is the grader's."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, without, LOOK], capture_output=True, text=True,
                          cwd=exercise.ROOT, preexec_fn=ordinary if BY_ROOT else None)
    assert done.stdout == f"{expected(without.split(','), True)} []\n", done.stderr


def test_where_nothing_can_be_forked_jupyter_grades(tmp_path, monkeypatch):
    monkeypatch.setattr(fork_client, "supervisors", fork_client.SupervisorPool())
    monkeypatch.setattr("course_tools.grading.kernels.forked.supervisors", fork_client.supervisors)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr("course_tools.grading.kernels.jupyter.Kernel", lambda: "Jupyter's")
    assert make_kernel() == make_kernel() == "Jupyter's" and fork_client.supervisors.worked is False


def test_a_sandbox_that_was_there_is_not_given_up(monkeypatch):
    fresh = fork_client.SupervisorPool()
    fresh.acquire()
    fresh.end()
    monkeypatch.setattr(fork_client, "ForkServer", functools.partial(dead, fork_client.ForkServer))
    with pytest.raises(fork_client.GradingError):
        fresh.acquire()


def dead(make, *arguments, **settings):
    server = make(*arguments, **settings)
    server.process.kill()
    return server


# ---------------------------------------------------------------- verdicts

@pytest.mark.parametrize("layers", ["namespaces,Landlock"], indirect=True)
def test_both_kinds_of_kernel_reach_the_same_verdicts(layers):
    """For the reference and every named mistake of lesson 01, without the layers that hide them."""
    kernels = [ForkedKernel(), Kernel()]
    for kernel in kernels:
        assert run(kernel, f"from course_tools.items.registry import items\nITEMS = items({STEM!r})") is None
    for item in ITEMS.values():
        asked = question_for(item, 7)
        for name in ("reference", *item.mistakes):
            answer = "reference" if name == "reference" else f"mistakes[{name!r}].answer"
            told = []
            for kernel in kernels:
                assert run(kernel, f"{item.name} = ITEMS[{item.name!r}].{answer}") is None
                told.append(judge(item, asked.trials, kernel.observe(item, asked.trials, 20), asked.observe))
            assert told[0] == told[1] and (told[0].passed or told[0].mistake) == (name == "reference" or name)
    for kernel in kernels:
        kernel.stop()


@pytest.mark.parametrize("student", ["clumsy", "three"])
def test_both_kinds_of_kernel_say_the_same_of_cells_that_fail(student, tmp_path):
    path = hand_in(tmp_path, student, CLASS[student]())
    forked = grade.grade_notebook(path, STEM, grade.Settings(7))
    jupyter = grade.grade_notebook(path, STEM, grade.Settings(
        7, kernel="course_tools.grading.kernels.jupyter:Kernel"))
    assert forked["items"] == jupyter["items"]
    assert "limits" in forked["sandbox"] and "none" in jupyter["sandbox"]


HOSTILE = {  # each in place of rnn_step: what it is called then
    "while True: pass": "timeout",
    "import os\nos._exit(0)": "error",
    "import ctypes\nctypes.string_at(0)": "error",
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass": None,
    "def rnn_step(*a):\n    import os\n    os.kill(os.getppid(), 9)\n    os._exit(0)": "error",
    "def rnn_step(*a):\n    return bytearray(10**10)": "error",
    "def rnn_step(*a):\n    import re\n    return re.match('(a|a)*b', 'a' * 60)": "timeout",
}


@pytest.mark.parametrize("source", HOSTILE)
def test_harm_costs_one_item(source, tmp_path):
    path = hand_in(tmp_path, "ann", notebook({"rnn_step": source}))
    result = grade.grade_notebook(path, STEM, grade.Settings(1, timeout=1.5))
    assert earned(result) == {**POINTS, "rnn_step": 0}
    assert HOSTILE[source] in (None, result["items"][0]["status"])


def test_the_grader_does_not_grow(tmp_path):
    path = hand_in(tmp_path, "ann", notebook({"rnn_step": NO_TANH}))
    for _ in range(5):
        grade.grade_notebook(path, STEM, grade.Settings(1))
    before, descriptors = memory(), psutil.Process().num_fds()
    for _ in range(25):
        assert grade.grade_notebook(path, STEM, grade.Settings(1))["score"] == FULL - 1
    assert memory() < before + 8e6 and psutil.Process().num_fds() <= descriptors + 2


CROWD = """
import os, time
for _ in range(50):
    if not os.fork():
        os.setsid()
        end = time.time() + 30
        while time.time() < end: pass
        os._exit(0)
def rnn_step(*given):
    time.sleep(60)
"""
HARD_WORK = """
import time
end = time.process_time() + 0.5
while time.process_time() < end: pass
"""


def test_a_busy_neighbour_costs_nobody_the_time_that_an_answer_has(tmp_path):
    """Fifty busy processes of one answer leave a neighbour too little of the processor; alone it passes."""
    hand_in(tmp_path / "in", "crowd", notebook({"rnn_step": CROWD}))
    hand_in(tmp_path / "in", "honest", notebook({"rnn_step": HARD_WORK + exercise_source("rnn_step")}))
    for now in (2, 0):
        results, graded = classroom.grade_class(tmp_path / "in", tmp_path / "out", timeout=3, workers=2)
        crowd, honest = results["submissions"]
        assert graded == now and honest["score"] == FULL, messages(honest)
        assert crowd["items"][0]["status"] == "timeout" and crowd["score"] == FULL - POINTS["rnn_step"]


def test_workers_share_the_warm_process(tmp_path):
    for student in ("ann", "bob", "cara"):
        hand_in(tmp_path / "in", student, notebook())
    private = tmp_path / "in", tmp_path / "out"
    fork_client.prepare(private=private)
    server = fork_client.supervisors.server.process.pid
    results, now = classroom.grade_class(tmp_path / "in", tmp_path / "out", seed=1, workers=2)
    assert now == 3 and [one["score"] for one in results["submissions"]] == [FULL] * 3
    assert results["sandbox"] == ForkedKernel().sandbox
    assert fork_client.supervisors.server.process.pid == server
    assert fork_client.supervisors.settings["private"] == private

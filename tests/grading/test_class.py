"""A whole class: several at a time, on a cluster, killed and started again, and hundreds of them."""

import json
import logging
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("kernels are forked on Linux only", allow_module_level=True)

from all_exercises import STUDENTS, as_expected, put

from course_tools import exercise
from course_tools.benchmarks import grader_baselines
from course_tools.grading import GradingError, classroom, cluster

pytestmark = pytest.mark.slow
MANY = 250
FILES = ("grades.csv", "results.json", "junit.xml", "index.html", "overview.html")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The environment of a copy of the course that nobody works at: a change is a reason to grade again."""
    folder = tmp_path_factory.mktemp("course")
    for name in ("course_lib", "course_tools", "solutions"):
        shutil.copytree(exercise.ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return {**os.environ, "PYTHONPATH": str(folder)}


def written(out):
    """What the files about a class say."""
    pages = sorted((out / "submissions").rglob("*.html"))
    return {str(path.relative_to(out)): path.read_bytes() for path in [*map(out.joinpath, FILES), *pages]}


@pytest.fixture(scope="module")
def small(tmp_path_factory, place):
    """(the folder of a class of nine, what grading it with seed 7 writes)"""
    folder = tmp_path_factory.mktemp("class")
    grader_baselines.hand_in(folder, 9)
    graded(folder, folder / "out", place)
    return folder, written(folder / "out")


def command(folder, out, *more):
    return [sys.executable, "-m", "course_tools.cli", "grade", str(folder / "students"), "--out", str(out),
            "--seed", "7", *more]


def graded(folder, out, place, *more):
    """Grade with seed 7; what it says on stderr."""
    done = subprocess.run(command(folder, out, *more), env=place, cwd=out.parent, text=True,
                          capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_two_at_a_time_come_to_the_same(small, place, tmp_path):
    assert graded(small[0], tmp_path, place, "--workers", "2") == ""  # no progress bar where no terminal is
    assert written(tmp_path) == small[1]


def test_killed_again_and_again_it_comes_to_the_same(small, place, tmp_path):
    chance, runs, pieces = random.Random(1), 0, 0
    while pieces < 9 and runs < 30:
        run = subprocess.Popen(command(small[0], tmp_path), env=place, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while time.monotonic() < end and run.poll() is None and pieces == count(tmp_path):
            time.sleep(0.02)  # the start takes its time; from the first new result on, at any moment
        time.sleep(chance.uniform(0, 0.3))
        run.kill()
        run.wait()
        assert count(tmp_path) >= pieces and (run.returncode == -9 or count(tmp_path) == 9)
        runs, pieces = runs + 1, count(tmp_path)
    graded(small[0], tmp_path, place)
    assert runs > 1
    assert written(tmp_path) == small[1] and not list(tmp_path.rglob("*.part"))


def count(out):
    return len(list(out.glob("submissions/*/*.json")))


def test_on_a_terminal_a_progress_bar_counts_and_tells_the_time_left(small, place, tmp_path):
    line = f"stty rows 40 cols 100; {' '.join(command(small[0], tmp_path))}"
    done = subprocess.run(["script", "-qec", line, os.devnull], env=place, capture_output=True, text=True)
    assert re.search(r"grading: +\d+%\|.*\| [1-8]/9 \[\d\d:\d\d<\d\d:\d\d", done.stdout), done.stdout


def test_the_benchmark_tells_what_one_more_costs(place):
    done = subprocess.run([sys.executable, "-m", "course_tools.benchmarks.grader", "--rounds", "0",
                           "--growth", "3"], env=place, capture_output=True, text=True)
    assert re.search(r" 3 notebooks: .* each -?\d+ ms more .* largest process \d+ MB", done.stdout), done


# ---------------------------------------------------------------- on a cluster

@pytest.fixture(scope="module")
def dask(tmp_path_factory, place):
    """(the address of a scheduler, its two workers)"""
    pytest.importorskip("distributed")
    note = tmp_path_factory.mktemp("dask") / "scheduler.json"
    common = {"env": place, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": note.parent}
    program = [sys.executable, "-m", "dask"]
    begun = [subprocess.Popen([*program, "scheduler", "--host", "127.0.0.1", "--port", "0",
                               "--no-dashboard", "--scheduler-file", str(note)], **common)]
    try:
        wait_for(note.exists)
        for nanny in ("--no-nanny", "--nanny"):
            begun.append(subprocess.Popen([*program, "worker", "--scheduler-file", str(note), "--nthreads",
                                           "1", nanny, "--no-dashboard"], **common))
        import distributed
        with distributed.Client(scheduler_file=str(note), set_as_default=False) as client:
            client.wait_for_workers(2, timeout=60)
            yield client.scheduler.address, begun[1:]
    finally:
        for process in begun:
            process.kill()
            process.wait()


def wait_for(holds, seconds=60):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def test_a_cluster_comes_to_the_same_even_if_a_worker_is_killed(small, dask, place, tmp_path):
    address, workers = dask

    def kill():
        wait_for(lambda: count(tmp_path) >= 2)
        family.extend(psutil.Process(workers[0].pid).children(recursive=True))
        workers[0].kill()
    family, killer = [], threading.Thread(target=kill)
    killer.start()
    assert graded(small[0], tmp_path, place, "--dask", address) == ""
    killer.join()
    assert written(tmp_path) == small[1] and family
    wait_for(lambda: not any(one.is_running() and one.status() != "zombie" for one in family), 20)


def test_a_cluster_grades_every_sheet(dask, place, tmp_path):
    for student in STUDENTS:
        put(student, tmp_path / "students" / student)
    graded(tmp_path, tmp_path / "out", place, "--dask", dask[0])
    submissions = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))["submissions"]
    for student in STUDENTS:
        as_expected([one for one in submissions if one["student"] == student], student)


def test_a_cluster_that_is_not_there_is_told_in_a_line(small, tmp_path, monkeypatch):
    """And leaves no client behind: one that is collected later can block the next one for ever."""
    monkeypatch.setattr(cluster, "ANSWER", 1)
    loops = lambda: [thread.name for thread in threading.enumerate()].count("IO loop")
    before = loops()
    for address in ("tcp://127.0.0.1:9", "nowhere", "x://y"):
        with pytest.raises(GradingError, match="no Dask scheduler answers at this address") as caught:
            classroom.grade_class(small[0] / "students", tmp_path, dask=address)
        assert "\n" not in str(caught.value)
    assert loops() == before
    assert not logging.getLogger("distributed.client").isEnabledFor(logging.WARNING)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(GradingError, match="needs Dask"):
        classroom.grade_class(small[0] / "students", tmp_path, dask="tcp://127.0.0.1:9")


def test_a_worker_with_another_course_grades_nothing(small):
    with pytest.raises(GradingError, match="a different version"):
        cluster.remote(None, b"", None, "another", None)


# ---------------------------------------------------------------- hundreds

@pytest.mark.thorough
def test_many_take_no_more_memory_than_fifty(place, tmp_path):
    grader_baselines.hand_in(tmp_path, MANY)
    begun, peaks = time.monotonic(), []
    run = subprocess.Popen(command(tmp_path, tmp_path / "out", "--workers", "2"), env=place,
                           stdout=subprocess.DEVNULL)
    while run.poll() is None:
        peaks.append((count(tmp_path / "out"), resident(run.pid)))
        time.sleep(0.5)
    assert run.returncode == 0
    early, most = max(size for number, size in peaks if number < 50), max(size for _, size in peaks)
    print(f"{MANY} in {time.monotonic() - begun:.0f} s, at most {most / 1e6:.0f} MB")
    assert most < 1.25 * early
    scores = Path(tmp_path, "out", "grades.csv").read_text().count(",passed,")
    assert scores > MANY * 3


def resident(pid):
    """Bytes that belong to these processes alone or in part: the grader and all that it started."""
    total = 0
    for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
        try:
            total += process.memory_full_info().pss
        except (psutil.Error, OSError):
            continue
    return total

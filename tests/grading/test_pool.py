"""Worker processes: a job that hangs, dies or eats memory costs itself, and no other job notices."""

import functools
import itertools
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

if sys.platform != "linux":
    pytest.skip("the limits of a worker are those of Linux", allow_module_level=True)

from course_tools.grading import limits, pool

HARM = {"asleep": "took more than 2 s", "deaf": "took more than 2 s",
        "hungry": "needed more than 0.3 GB of memory",
        "ends": "ended the process (exit status 3)", "killed": "ended the process (signal 9)",
        "raises": "raised KeyError: 'x'"}


def work(job):
    if job == "asleep":
        time.sleep(60)
    if job == "deaf":
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        time.sleep(60)
    if job == "in C":
        sum(itertools.repeat(1))
    if job == "hungry":
        return bytearray(10**9)[0]
    if job == "ends":
        os._exit(3)
    if job == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if job == "raises":
        raise KeyError("x")
    return job, os.getpid()


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(limits, "PROCESSOR", 0.2)
    monkeypatch.setattr(limits, "MEMORY", 300 << 20)
    monkeypatch.setattr(pool, "END_SECONDS", 0.2)


def descendants():
    return {process.pid for process in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize("workers", [1, 2])
def test_harm_costs_its_own_job(workers, small):
    before = descendants()
    jobs = [name for harm in HARM for name in (harm, f"good beside {harm}")]
    results = dict(pool.each(work, jobs, 2, workers))
    assert {job: result.reason for job, result in results.items() if job in HARM} == HARM
    assert len(results) == len(jobs) and all(results[job][0] == job for job in set(jobs) - set(HARM))
    assert descendants() <= before


def test_a_call_that_never_returns_to_python_is_ended(small):
    (_, lost), = pool.each(work, ["in C"], 60)
    assert lost.reason == "took more than 0.2 s of processor time"


def test_a_job_that_ends_its_worker_is_tried_once_more_after_all_others(small, tmp_path):
    def once(job):
        if job == "unlucky" and not (tmp_path / "tried").exists():
            (tmp_path / "tried").touch()
            os._exit(1)
        return "done"
    assert [job for job, result in pool.each(once, ["unlucky", "a", "b"], 10) if result == "done"] == [
        "a", "b", "unlucky"]


def test_what_ran_out_of_time_beside_others_is_done_again_alone(tmp_path):
    """Two at a time: each notes when it ran, and only what is done alone at the end counts."""
    def noted(job):
        begun = time.monotonic()
        time.sleep(0.2)
        with open(tmp_path / "log", "a") as log:
            log.write(f"{job} {begun} {time.monotonic()}\n")
        return "late" if len((tmp_path / "log").read_text().splitlines()) <= 4 else "in time"
    results = dict(pool.each(noted, "abcd", 10, 2, again=lambda result: result == "late"))
    assert results == dict.fromkeys("abcd", "in time")
    times = [line.split()[1:] for line in (tmp_path / "log").read_text().splitlines()[4:]]
    assert len(times) == 4 and all(float(one[1]) <= float(two[0]) for one, two in itertools.pairwise(times))
    alone = list(pool.each(lambda job: "late", "ab", 10, 1, again=lambda result: True))
    assert alone == [("a", "late"), ("b", "late")]


def test_one_worker_does_many_jobs_and_its_limits_hold_for_each(small):
    def busy(job):
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
        return os.getpid()
    assert len(set(dict(pool.each(busy, range(5), 10)).values())) == 1  # half a second in all


def test_what_a_worker_starts_has_no_limit_of_the_workers(small):
    def unlimited(job):
        with limits.memory_not_inherited():
            return os.popen("ulimit -v").read().strip()
    assert dict(pool.each(unlimited, ["x"], 10)) == {"x": "unlimited"}
    limited = dict(pool.each(lambda job: os.popen("ulimit -v").read().strip(), ["x"], 10))
    assert int(limited["x"]) * 1024 < psutil.Process().memory_info().vms + limits.MEMORY + 10**9


def test_workers_end_with_the_process_that_began_them(tmp_path):
    def begin():
        for _ in pool.each(functools.partial(sleep, tmp_path), "ab", 60, 2):
            pass
    grader = multiprocessing.get_context("fork").Process(target=begin)
    grader.start()
    wait_for(lambda: len(list(tmp_path.iterdir())) == 2)
    grader.kill()
    grader.join()
    wait_for(lambda: not any(psutil.pid_exists(int(path.name)) for path in tmp_path.iterdir()))


def sleep(folder, job):
    Path(folder, str(os.getpid())).touch()
    time.sleep(50)


def wait_for(holds, seconds=15):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.05)


def test_a_worker_that_is_spawned_does_the_same(monkeypatch):
    monkeypatch.setattr(pool, "CONTEXT", multiprocessing.get_context("spawn"))
    results = dict(pool.each(str.upper, "ab", 60))
    assert results == {"a": "A", "b": "B"}

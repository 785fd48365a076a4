"""`course doctor`: a line for each thing that the course needs, what to do about it, and a block to paste."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_tools import doctor, exercise, installed


def lines(*arguments):
    done = subprocess.run([sys.executable, "-m", "course_tools.cli", "doctor", *arguments], text=True,
                          capture_output=True, encoding="utf-8", cwd=exercise.ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_on_this_machine_all_is_well_and_the_report_names_nobody():
    rows = json.loads(lines("--json"))
    advised = {row["subject"] for row in rows if row["advice"]}
    assert len(rows) == 8 and advised <= {"Protection while grading"}
    report = lines().partition("For a bug report:")[2]
    assert all(f"{row['subject']}: " in report for row in rows)
    assert str(Path.home()) not in report and str(exercise.ROOT) not in report


def test_packages_that_differ_are_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(installed, "differences", lambda: [f"p{n}: missing, but ..." for n in range(5)])
    subject, state, advice = doctor.packages()
    assert state.startswith("p0: missing") and state.endswith("and 2 more") and "make lab" in advice


def test_an_old_python_and_a_full_disk_are_told(monkeypatch):
    monkeypatch.setattr(doctor.bootstrap, "OLDEST", (3, 99))
    assert "3.14" in doctor.python()[2]
    monkeypatch.setattr(doctor, "NEEDED", 1 << 60)
    assert "1 GB" in doctor.disk()[2]


def test_another_kernel_is_told(monkeypatch):
    from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", lambda *_: KernelSpec(argv=["/opt/bin/python"]))
    assert "make lab" in doctor.kernel()[2]
    monkeypatch.setattr(KernelSpecManager, "get_kernel_spec", lambda *_: KernelSpec(argv=[sys.executable]))
    assert doctor.kernel()[2] == ""


def test_a_broken_exercise_is_named_with_the_command_that_restores_it(tmp_path, monkeypatch):
    monkeypatch.setattr(exercise, "ROOT", tmp_path)
    assert "no folder exercises" in doctor.answers()[1]
    (tmp_path / "exercises").mkdir()
    (tmp_path / "exercises" / "05_query_key_value.ipynb").write_text("{")
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups" / "05.ipynb").touch()
    subject, state, advice = doctor.answers()
    assert "1 notebooks, 1 copies" in state and "05_query_key_value.ipynb" in state
    assert advice.startswith("course reset 05")


def test_a_check_that_fails_is_a_line_too(monkeypatch):
    def disk():
        """Disk: broken."""
        raise OSError("no such device")
    monkeypatch.setattr(doctor, "disk", disk)
    monkeypatch.setattr(doctor, "protection", lambda: ("Protection", "none", ""))
    assert ("Disk", "OSError: no such device", doctor.SET_UP) in list(doctor.examine())


def test_the_report_hides_paths(monkeypatch):
    text = doctor.report([("Exercises", f"in {exercise.ROOT}{os.sep}exercises and {Path.home()}", "")])
    assert text.endswith(f"Exercises: in COURSE{os.sep}exercises and ~")

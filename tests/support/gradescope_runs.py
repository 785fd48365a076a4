"""An environment with the course installed, and runs of Gradescope's autograder."""

import json
import os
import subprocess
import sys
import venv


def environment(folder, root):
    """What a shell has where the course at `root` is installed; the environment is made in `folder`."""
    venv.create(folder, with_pip=False, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "course.pth").write_text("\n".join([str(root), *filter(os.path.isdir, sys.path[1:])]))
    command = folder / "bin" / "course"
    command.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m course_tools.cli "$@"\n')
    command.chmod(0o755)
    kept = {key: value for key, value in os.environ.items()
            if not key.startswith(("COURSE_", "PYTEST_", "GITHUB_")) and key != "PYTHONPATH"}
    return {**kept, "VIRTUAL_ENV": str(folder), "PATH": f"{folder}/bin{os.pathsep}{os.environ['PATH']}"}


def is_results(found):
    """Gradescope's format: its names, and nothing else."""
    assert set(found) <= {"score", "execution_time", "output", "output_format", "test_output_format",
                          "test_name_format", "visibility", "stdout_visibility", "extra_data", "tests",
                          "leaderboard"}
    assert isinstance(found["score"], (int, float)) and isinstance(found["output"], str)
    assert found["visibility"] == "visible" and found["stdout_visibility"] == "hidden"
    for test in found["tests"]:
        assert set(test) <= {"score", "max_score", "status", "name", "name_format", "number", "output",
                             "output_format", "tags", "visibility", "extra_data"}
        assert 0 <= test["score"] <= test["max_score"] and test["status"] in ("passed", "failed")
        assert test["name"] and isinstance(test["output"], str) and test["visibility"] == "visible"
    return {test["name"]: test["score"] for test in found["tests"]}


def run_autograder(autograder):
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run([autograder / "source" / "run_autograder"], capture_output=True, text=True, cwd="/",
                          env={**variables, "AUTOGRADER": str(autograder), "COURSE_PYTHON": sys.executable})
    assert done.returncode == 0, done.stderr
    return json.loads((autograder / "results" / "results.json").read_text(encoding="utf-8"))

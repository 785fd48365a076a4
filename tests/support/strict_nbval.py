"""nbval as `make test` runs it, strictly, on a lesson of one cell with an output that is stored by hand."""

import os
import subprocess
import sys

import nbformat

from course_tools import exercise


def compare(source, output, folder):
    """The ended pytest process: its returncode is 0 if the cell's output equals the stored one."""
    cell = nbformat.v4.new_code_cell(source, execution_count=1, outputs=[output])
    notebook = folder / "lesson.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata={
        "kernelspec": {"name": "python3", "display_name": "Python 3"}}), notebook)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    line = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider",
            "-p", "conftest", "-c", str(exercise.ROOT / "pyproject.toml"), str(notebook)]
    return subprocess.run(line, cwd=exercise.ROOT, env=environment, capture_output=True, timeout=120)

"""Check that the release works on this machine: lessons, exercises, commands.  Your answers are not read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_tools import exercise, learner
from course_tools.items import registry

ROOT = Path(__file__).parents[1]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
HANDED_OUT = sorted((ROOT / exercise.PRISTINE).glob("*.ipynb"))


def test_everything_is_there():
    assert exercise.ROOT == ROOT and not (ROOT / "solutions").exists()
    assert len(LESSONS) > len(HANDED_OUT) > 0


@pytest.mark.lessons
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_gives_the_outputs_that_are_stored(path):
    kept = {key: value for key, value in os.environ.items() if key not in ("COURSE_STATIC", "COURSE_SEED")}
    done = subprocess.run([sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env",
                           "--nbval-cell-timeout=600", "-p", "no:cacheprovider", str(path)],
                          cwd=ROOT, env=kept, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.parametrize("path", HANDED_OUT, ids=lambda path: path.stem)
def test_an_exercise_can_be_begun(path, tmp_path, monkeypatch):
    monkeypatch.setattr(exercise, "ROOT", tmp_path)
    carried = tmp_path / exercise.PRISTINE / path.name
    carried.parent.mkdir()
    carried.write_bytes(path.read_bytes())
    assert path.stem in registry.stems() and learner.reset(path.stem) is None
    result = learner.check(path.stem, timeout=20)
    assert result["score"] == 0 and {item["status"] for item in result["items"]} == {"missing"}
    assert all(learner.hint(path.stem, item["name"])[0] for item in result["items"])

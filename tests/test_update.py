"""`course update` in real clones: lessons were run, answers written, and the new version changed both."""

import shutil
import subprocess

import pytest

from course_tools import exercise, update
from course_tools.update import UpdateError, from_folder, from_git

STEM = "01_long_term_dependency"
SHEET, LESSON = f"exercises/{STEM}.ipynb", f"notebooks/{STEM}.ipynb"
ANSWER = "def rnn_step(x_t, h_prev, W_xh, W_hh, b_h):\n    return 'mine'\n"


def git(folder, *arguments):
    line = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(line, cwd=folder, check=True, capture_output=True, text=True).stdout


def edit(path, old, new):
    """Replace words in the cells of a notebook."""
    notebook = exercise.read(path)
    assert any(old in cell.source for cell in notebook.cells)
    for cell in notebook.cells:
        cell.source = cell.source.replace(old, new)
    path.write_text(exercise.text(notebook), encoding="utf-8")


def answer(path, name="rnn_step", source=ANSWER):
    notebook = exercise.read(path)
    for cell in notebook.cells:
        cell.source = source if exercise.grade_id(cell) == name else cell.source
    path.write_text(exercise.text(notebook), encoding="utf-8")


def answers(path):
    return exercise.answers(exercise.read(path), ["rnn_step", "rnn_forward"])[0]


@pytest.fixture
def upstream(tmp_path):
    """A course with one lesson and its exercise, in git."""
    folder = tmp_path / "upstream"
    for name in ("solutions", "notebooks"):
        (folder / name).mkdir(parents=True)
        shutil.copy(exercise.ROOT / name / f"{STEM}.ipynb", folder / name)
    shutil.copy(exercise.ROOT / ".gitignore", folder)
    (folder / "README.md").write_text("The course.\n")
    hand_out(folder)
    git(folder, "init", "-q")
    commit(folder)
    return folder


def hand_out(folder):
    (folder / "exercises").mkdir(exist_ok=True)
    made = exercise.text(exercise.pristine(STEM, folder))
    (folder / SHEET).write_text(made, encoding="utf-8")


def commit(folder):
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "A version")


@pytest.fixture
def clone(tmp_path, upstream, monkeypatch):
    """The learner's clone: the lesson was run, and one answer written."""
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(upstream), str(folder))
    monkeypatch.setattr(exercise, "ROOT", folder)
    lesson = exercise.read(folder / LESSON)
    for cell in lesson.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], 99
    (folder / LESSON).write_text(exercise.text(lesson), encoding="utf-8")
    answer(folder / SHEET)
    return folder


def new_version(upstream):
    """Lesson and exercise are reworded, and the stub of another item too."""
    edit(upstream / LESSON, "# 01", "# Reworded 01")
    edit(upstream / "solutions" / f"{STEM}.ipynb", "# Exercise 01", "# Reworded exercise 01")
    edit(upstream / "solutions" / f"{STEM}.ipynb", "def rnn_forward(", "def rnn_forward(  # reworded\n    ")
    hand_out(upstream)
    commit(upstream)


def test_the_answers_are_in_the_new_exercise_and_the_old_files_in_backups(clone, upstream):
    before = {name: (clone / name).read_bytes() for name in (SHEET, LESSON)}
    new_version(upstream)
    told = from_git()
    assert (clone / LESSON).read_bytes() == (upstream / LESSON).read_bytes()
    assert "Reworded exercise 01" in (clone / SHEET).read_text()
    now = answers(clone / SHEET)
    assert now["rnn_step"] == ANSWER and "reworded" in now["rnn_forward"]
    assert {path.read_bytes() for path in (clone / "backups").iterdir()} == set(before.values())
    assert told[0] == "Updated." and any("into the new version: rnn_step" in line for line in told)
    assert git(clone, "status", "--porcelain").split() == ["M", SHEET]
    assert from_git() == ["You already have the newest version."]


def test_what_the_new_version_did_not_touch_stays_as_it_is(clone, upstream):
    before = {name: (clone / name).read_bytes() for name in (SHEET, LESSON)}
    (upstream / "README.md").write_text("The course, once more.\n")
    commit(upstream)
    assert from_git() == ["Updated."] and (clone / "README.md").read_text() == "The course, once more.\n"
    assert {name: (clone / name).read_bytes() for name in before} == before
    assert not (clone / "backups").exists()


def test_a_broken_exercise_is_kept_and_replaced(clone, upstream):
    (clone / SHEET).write_text("{ half")
    new_version(upstream)
    assert from_git()[0] == "Updated." and (clone / SHEET).read_bytes() == (upstream / SHEET).read_bytes()
    assert "{ half" in [path.read_text() for path in (clone / "backups").iterdir()]


def changed_code(clone):
    (clone / "README.md").write_text("Mine.\n")


def own_commits(clone):
    commit(clone)


def new_file_in_the_way(clone):
    (clone / "more.txt").write_text("mine")


@pytest.mark.parametrize("obstacle, reason", [
    (changed_code, "README.md was changed here"), (own_commits, "commits of its own"),
    (new_file_in_the_way, "git merge: .*more.txt")])
def test_an_obstacle_is_told_and_nothing_is_changed(clone, upstream, obstacle, reason):
    obstacle(clone)
    new_version(upstream)
    (upstream / "README.md").write_text("Theirs.\n")
    (upstream / "more.txt").write_text("theirs")
    commit(upstream)
    before = {name: (clone / name).read_bytes() for name in (SHEET, LESSON, "README.md")}
    with pytest.raises(UpdateError, match=f"(?s){reason}"):
        from_git()
    assert {name: (clone / name).read_bytes() for name in before} == before


def test_a_copy_that_is_no_clone_is_told_how(clone, monkeypatch):
    (clone / ".git").rename(clone / "gone")
    with pytest.raises(UpdateError, match="Unpack the newer version .* course update"):
        from_git()
    git(clone.parent, "init", "-q")    # a clone of something else around it
    with pytest.raises(UpdateError, match="not a git clone"):
        from_git()


def test_answers_are_taken_over_from_an_older_copy(clone, upstream, monkeypatch):
    new_version(upstream)
    monkeypatch.setattr(exercise, "ROOT", upstream)    # the newer copy, unpacked beside the older one
    answer(upstream / SHEET, "gru_step", "def gru_step():\n    'begun here'\n")
    answer(clone / SHEET, "gru_step", "def gru_step():\n    'of old'\n")
    assert from_folder(clone) == [f"{SHEET}: rnn_step"]
    assert answers(upstream / SHEET)["rnn_step"] == ANSWER and "begun here" in (upstream / SHEET).read_text()
    assert "Nothing to copy" in from_folder(clone)[0]
    for wrong in (clone / "notebooks", upstream):
        with pytest.raises(UpdateError, match=str(wrong)):
            update.from_folder(wrong)

"""Two students who hand in every exercise: the solutions, and the exercises as they were handed out."""

from course_tools import exercise
from course_tools.items import registry

ROOT = exercise.ROOT
STUDENTS = {"right": lambda stem: ROOT / "solutions" / f"{stem}.ipynb",
            "untouched": lambda stem: ROOT / "exercises" / f"{stem}.ipynb"}
POINTS = {stem: {name: item.points for name, item in registry.items(stem).items()}
          for stem in registry.stems()}
NONE = {stem: dict.fromkeys(items, 0) for stem, items in POINTS.items()}
EXPECTED = {"right": (POINTS, {"passed"}), "untouched": (NONE, {"missing"})}


def put(student, folder):
    """All sheets of a student, as NN_name.ipynb in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem in POINTS:
        (folder / f"{stem}.ipynb").write_bytes(STUDENTS[student](stem).read_bytes())


def as_expected(results, student, stems=tuple(POINTS)):
    """Compare results of the grader, one for each sheet."""
    points, statuses = EXPECTED[student]
    assert [one.get("message") for one in results] == [None] * len(stems)
    assert {one["exercise"]: {item["name"]: item["points"] for item in one["items"]}
            for one in results} == {stem: points[stem] for stem in stems}
    assert {(one["status"], item["status"]) for one in results for item in one["items"]} == {
        ("graded", status) for status in statuses}

"""How long a lesson is: words, code cells, questions, findings, and the minutes that it takes.

This is the only place that counts.  `python -m course_tools.authoring budget` prints it, and
tests/support/lint_budget.py compares it with the limits.
"""

import ast
import re
from dataclasses import dataclass

from ..exercise import read
from . import stored

CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
TIME = re.compile(r"\*\*Time\*\*: (\d+) minutes")


@dataclass(frozen=True)
class Budget:
    """What was counted in a lesson.  code: without quizzes.  open: code cells whose input is not folded."""

    words: int
    code: int
    open: int
    quizzes: int
    findings: int
    identities: int

    @property
    def minutes(self):
        """A minute for 100 words, 1.5 for an open code cell and two for a quiz, rounded to 5."""
        return 5 * round((self.words / 100 + 1.5 * self.open + 2 * self.quizzes) / 5)


def words(text):
    """The words of a Markdown text as `wc -w` counts them; those in a code block do not count."""
    return len(CODE.sub("", text).split())


def calls(cell, *names):
    """The calls of these functions in a code cell, in order, as syntax trees."""
    if cell.cell_type != "code" or not any(f"{name}(" in cell.source for name in names):
        return []
    tree = ast.parse(re.sub(r"^[!%].*$", "", cell.source, flags=re.MULTILINE))
    found = [node for node in ast.walk(tree)
             if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names]
    return sorted(found, key=lambda call: (call.lineno, call.col_offset))


def of(notebook):
    """The Budget of a lesson.  A finding in a loop counts as often as its table is shown."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    quizzes = [cell for cell in code if calls(cell, "quiz")]
    code = [cell for cell in code if cell not in quizzes]
    shown = [output.get("data", {}).get("text/html", "") for cell in code
             for output in cell.get("outputs", [])]
    return Budget(
        words=sum(words(cell.source) for cell in notebook.cells if cell.cell_type == "markdown"),
        code=len(code),
        open=sum(not cell.metadata.get("jupyter", {}).get("source_hidden") for cell in code),
        quizzes=sum(len(calls(cell, "quiz")) for cell in quizzes),
        findings=max(sum(len(calls(cell, "finding")) for cell in code),
                     sum('<table class="course-finding">' in page for page in shown)),
        identities=max(sum(len(calls(cell, "identity")) for cell in code),
                       sum("<strong>equal, to " in page for page in shown)))


def title_minutes(notebook):
    """The minutes that the title cell promises, or None."""
    found = TIME.search(notebook.cells[0].source) if notebook.cells else None
    return int(found[1]) if found else None


def budget(keys):
    """Print what was counted in each lesson, and the minutes for its title."""
    print("lesson  words  code  open  quizzes  findings  identities  minutes  title")
    for path in stored.find_all(["notebooks"], keys):
        notebook = read(path)
        found = of(notebook)
        print(f"{path.stem[:2]:6} {found.words:6} {found.code:5} {found.open:5} {found.quizzes:8} "
              f"{found.findings:9} {found.identities:11} {found.minutes:8} {title_minutes(notebook) or 0:6}")

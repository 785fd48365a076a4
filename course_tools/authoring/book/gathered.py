"""What the book's own pages list from all notebooks: lessons, findings, terms, items of the exercises."""

import re
from collections import Counter
from types import SimpleNamespace

from course_lib import claims

from .. import stored
from .sources import CELL, title

ROW = re.compile(r"^\|(.+)\|\s*$", re.MULTILINE)
COLUMN = re.compile(r"(?<!\\)\|")
LINK = re.compile(r"\[([^]]*)\]\((notebooks|exercises)/(\w+)\.ipynb\)")
FROM_NOTEBOOK = re.compile(r"\]\((?:\.\./(exercises/))?(?=\w+\.ipynb)")    # a link as a lesson has it
CHECKED = re.compile(r"^\| often said \| verdict \| evidence \|$", re.MULTILINE)
CAPTION = re.compile(r"(?<=<caption>).*?(?=</caption>)", re.DOTALL)
FACTS = re.compile(r"^([●○]+ · .+)$", re.MULTILINE)
ITEM = re.compile(r"^## +(.+)$", re.MULTILINE)


def table(text):
    """The rows of the first Markdown table, each a list of cells, without the line below the head."""
    rows = [[part.strip() for part in COLUMN.split(row)] for row in ROW.findall(text)]
    return rows[:1] + rows[2:]


def readme():
    """README.md: its title, its introduction, what stands before the lessons, and the table of lessons."""
    path = stored.ROOT / "README.md"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    first, *parts = re.split(r"^## ", text, flags=re.MULTILINE)
    head, _, introduction = first.strip().partition("\n")
    index = next((i for i, part in enumerate(parts) if "](notebooks/" in part and ROW.search(part)), None)
    lessons = parts[index] if index is not None else ""
    return SimpleNamespace(title=head.lstrip("# "), introduction=introduction.strip(),
                           heading=lessons.partition("\n")[0], rows=table(lessons)[1:],
                           before=[f"## {part}" for part in parts[:index or 0]])


def lessons(everything):
    """The lessons in the README's order, then those that it does not list: stem, title, and its row."""
    rows = {}
    for row in readme().rows:
        found = LINK.search(row[0])
        if found:
            rows[found[3]] = row
    there = {path.stem: notebook for path, notebook in everything.items() if path.parent.name == "notebooks"}
    sheets = {path.stem for path in everything if path.parent.name == "exercises"}
    order = [stem for stem in rows if stem in there] + [stem for stem in there if stem not in rows]
    return [SimpleNamespace(stem=stem, title=title(there[stem]), notebook=there[stem], sheet=stem in sheets,
                            row=rows.get(stem)) for stem in order]


def checked(lesson):
    """The tables of what is often said: rows of (what is said, verdict, evidence with its links)."""
    tables = [table(cell.source) for cell in lesson.notebook.cells if CHECKED.search(cell.source)]
    rows = sum((rows[1:] for rows in tables), tables[0][:1] if tables else [])
    rows = [[FROM_NOTEBOOK.sub(lambda found: f"]({found[1] or 'notebooks/'}", part) for part in row]
            for row in rows]
    return [[*row[:-1], evidence(row[-1], lesson)] for row in rows]


def evidence(text, lesson):
    """The text with its links to cells of the lesson as HTML, for a page outside the lesson."""
    return CELL.sub(lambda found: reference(lesson, found[2], found[1]), text)


def reference(lesson, cell, text):
    """A link to a cell of a lesson, as HTML."""
    return f'<a href="notebooks/{lesson.stem}.html#{cell}">{text}</a>'


def found(lesson):
    """The tables of a lesson's findings as HTML, each under its sentence, which leads to its cell."""
    pages = [(cell.id, output.get("data", {}).get("text/html", ""))
             for cell in lesson.notebook.cells for output in cell.get("outputs", [])]
    return [CAPTION.sub(lambda sentence, cell=cell: reference(lesson, cell, sentence[0]), page)
            for cell, page in pages if page.startswith('<table class="course-finding">')]


def measured(lesson):
    """Every number that a `claim` printed: (cell, what, number, claimed, lowest, highest)."""
    return [(cell.id, *found.group("what", "number", "bound", "low", "high"))
            for cell in lesson.notebook.cells for output in cell.get("outputs", [])
            for found in claims.LINE.finditer(output.get("text", ""))]


def terms(everything):
    """The glossary: (term, translation, lesson), in the order of the alphabet; and the head of its table.

    The table of lesson 00 has these three columns, several times beside each other.
    """
    cells = [cell for one in lessons(everything) for cell in one.notebook.cells if cell.id == "glossary"]
    head, *rows = table(cells[0].source) if cells else [[]]
    found = {tuple(row[at:at + 3]) for row in rows for at in range(0, len(row) - 2, 3)}
    return head[:3], sorted(found - {("", "", "")}, key=lambda term: term[0].lower())


def items(notebook):
    """The items of a sheet: (cell, heading, facts), facts being difficulty, kind, minutes and points."""
    found = []
    for cell in notebook.cells:
        facts, heading = FACTS.search(cell.source), ITEM.search(cell.source)
        if cell.cell_type == "markdown" and facts and heading:
            found.append((cell.id, heading[1], facts[1].split(" · ")))
    return found


def kinds(sheets):
    """How many items of each kind the sheets have."""
    return Counter(facts[1] for _, rows in sheets for *_, facts in rows if len(facts) > 2)

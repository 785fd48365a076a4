"""The pages that the book has beside the notebooks: the first one, and what is gathered from all lessons."""

import shutil

from .. import stored
from . import gathered, sources
from .words import PAGES, pages

DOCS = ["syllabus", "teaching"]    # of docs/, for teachers


def write(source, everything):
    """Write these pages beside the notebooks' sources.  everything: {path: notebook}."""
    lessons = gathered.lessons(everything)
    by_stem = {path.stem: book for path, book in everything.items() if path.parent.name == "exercises"}
    sheets = [(stem, by_stem[stem]) for stem in [*(one.stem for one in lessons if one.sheet), *by_stem]]
    sheets = {stem: (sources.title(book), gathered.items(book)) for stem, book in sheets}
    docs = [name for name in DOCS if (stored.ROOT / "docs" / f"{name}.md").exists()]
    values = {"readme": gathered.readme(), "lessons": lessons, "sheets": sheets, "docs": docs,
              "terms": gathered.terms(everything), "kinds": gathered.kinds(sheets.values()),
              "checked": gathered.checked, "found": gathered.found, "measured": gathered.measured,
              "reference": gathered.reference, "numbers": {one.stem.split("_")[0]: one for one in lessons}}
    for template in sorted(PAGES.glob("*.md.j2")):
        text = pages().get_template(template.name).render(values)
        sources.write(source / template.name.removesuffix(".j2"), text)
    for name in docs:
        text = (stored.ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
        sources.write(source / "docs" / f"{name}.md", sources.sections(text))
    for name in ("images", "studies"):    # what lessons show, and what they link to
        folder = stored.ROOT / "notebooks" / name
        if folder.exists():
            shutil.copytree(folder, source / "notebooks" / name, dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns("__pycache__"))

"""The book: the lessons and the handed-out sheets as a site, which needs neither Jupyter nor a network.

    sources.py      a notebook as the source of a page
    gathered.py     what pages list from all notebooks: findings, terms, items, lessons
    listings.py     those pages, from the templates in pages/
    settings.py     Sphinx's settings: theme, formulas, what is fetched from where
    extension.py    what Sphinx does not offer: anchors from cell ids, a search that finds Korean words

Sphinx is imported only when a book is built, since learners do not have it.
"""

import io
import re
import shutil

from .. import frames, stored
from . import listings, sources

FOLDERS = ["notebooks", "exercises"]
NO_PAGE = "*.map", "*-macros.html", ".buildinfo*", "_sources"    # what Sphinx and its theme leave there
MISSING = "Sphinx is missing. Install what the site needs: pip install -c constraints.txt -e .[site]"


def site(keys):
    """Build the book in site/; with keys, build only the pages of these lessons anew."""
    paths = stored.find_all(FOLDERS, keys)
    work, out = stored.ROOT / "build" / "site", stored.ROOT / "site"
    source = work / "source"
    whole = not keys or not (out / "index.html").exists() or not source.exists()
    if whole:
        for folder in (work, out):
            shutil.rmtree(folder, ignore_errors=True)
        paths = stored.find_all(FOLDERS)
    everything = {path: sources.shown(path) for path in stored.find_all(FOLDERS)}
    for path in paths:
        sources.write(source / path.parent.name / path.name, sources.page(path, everything[path]))
    listings.write(source, everything)
    complaints = _build(work, whole)
    shutil.copytree(work / "html", out, dirs_exist_ok=True, ignore=shutil.ignore_patterns(*NO_PAGE))
    for path in (stored.ROOT / FOLDERS[0]).glob("*.html"):        # the capstone's page
        shutil.copyfile(path, out / FOLDERS[0] / path.name)
    for path in paths:
        stored.write(everything[path], out / path.parent.name / path.name)    # to download
    still = _frames(paths, everything, out)
    if complaints:
        raise stored.Fault(f"The book was built in {out}, but something in it is wrong:\n{complaints}")
    print(f"{len(paths)} notebooks: open {out / 'index.html'}")
    if still:
        print(f"no frames of this code (python -m course_tools.authoring frames): {', '.join(still)}")


def _frames(paths, everything, out):
    """Copy the frames of widgets to their pages.  Returns the widgets that have none, by lesson and cell."""
    still = []
    for path in paths:
        for cell_id, shown in frames.stored_for(path, everything[path]).items():
            picture = frames.place(path, cell_id)
            if shown:
                target = out / picture.relative_to(stored.ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(picture, target)
            else:
                still.append(f"{path.stem[:2]} {cell_id}")
    return still


def _build(work, whole):
    """Run Sphinx in the folder `work`.  Returns its warnings, links that lead nowhere among them."""
    try:
        from sphinx.application import Sphinx
        from sphinx.util.docutils import docutils_namespace, patch_docutils

        from . import settings
    except ImportError as problem:
        raise stored.Fault(f"{MISSING} ({problem})") from None
    warnings = io.StringIO()
    with patch_docutils(), docutils_namespace():
        book = Sphinx(work / "source", None, work / "html", work / "doctrees", "html", settings.settings(),
                      status=None, warning=warnings, freshenv=whole)
        book.build()
    return re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue()).replace(f"{work}/source/", "").strip()

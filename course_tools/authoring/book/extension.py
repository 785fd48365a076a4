"""What the book needs and Sphinx does not offer."""

import re
import shutil
from importlib import metadata
from pathlib import Path

from docutils import nodes
from sphinx.search import languages
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform

CELL = re.compile(r'^<div class="course-cell" id="([^"]+)"></div>\s*$')
MATHJAX = ("tex-chtml.js", "output/chtml/fonts/")    # of the package's files, those that pages ask for
HANGUL = "\uac00-\ud7a3"
WORDS = re.compile(rf"[{HANGUL}]+|[^\W{HANGUL}]+")


class Anchors(SphinxTransform):
    """Sections and code cells get the ids of their cells; pictures are loaded when they come into sight."""

    default_priority = 400

    def apply(self):
        waiting = cell = None
        count = 0
        for node in list(self.document.findall()):
            found = CELL.match(node.astext()) if isinstance(node, nodes.raw) else None
            if found:
                waiting, cell, count = node, found[1], 0
            elif isinstance(node, nodes.section) and cell:
                count += 1
                node["ids"] = [cell if waiting else f"{cell}-{count}"]
                if waiting:
                    waiting.parent.remove(waiting)
            elif isinstance(node, nodes.container) and "cell_metadata" in node:
                cell = node["cell_metadata"].get("course_id")
                node["ids"] = [cell] if cell else []
            elif isinstance(node, nodes.image):
                node["loading"] = "lazy"
            if not found and not isinstance(node, nodes.Text):
                waiting = None


class Search(SearchEnglish):
    """English words by their stems, and Korean words by pairs of syllables, so that 벡터 finds 벡터를."""

    js_splitter_code = f"""
var splitQuery = (query) =>
  (query.match(/[{HANGUL}]+|(?:(?![{HANGUL}])[\\p{{Letter}}\\p{{Number}}_])+/gu) || []).flatMap((word) =>
    /[{HANGUL}]{{2}}/.test(word) ? [...word].slice(1).map((syllable, i) => word[i] + syllable) : [word]);
"""

    def split(self, input):
        return [part for word in WORDS.findall(input) for part in pairs(word)]


def pairs(word):
    """A Korean word as its pairs of neighbouring syllables; any other word as it is."""
    if len(word) < 3 or not re.match(f"[{HANGUL}]", word):
        return [word]
    return [word[i:i + 2] for i in range(len(word) - 1)]


def formulas(app, problem):
    """Copy MathJax, as an installed package brings it, into the site: only the files that pages ask for."""
    if problem:
        return
    for file in metadata.files("sphinx-mathjax-offline"):
        _, found, name = file.as_posix().partition("/static/mathjax/")
        if found and name.startswith(MATHJAX):
            target = Path(app.outdir) / "_static" / "mathjax" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), target)


def setup(app):
    languages["en"] = languages["ko"] = Search
    app.add_transform(Anchors)
    app.connect("build-finished", formulas)
    return {"parallel_read_safe": True}

"""Convert the notebooks to web pages in site/, which need neither Jupyter nor a network.

Lessons are shown as they were committed, exercises as they are handed out: what somebody ran or wrote in
the working copy is not published.
"""

import html
import re
import shutil
import subprocess

import nbformat
from jinja2 import pass_context
from nbconvert import HTMLExporter
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath, markdown2html_mistune

from ..exercise import pristine, read
from ..markdown import formula
from . import stored

FOLDERS = ["notebooks", "exercises"]
LINK = re.compile(r"""((?:\]\(|href=["'])(?![a-z]+:)[^)"'#\s]*?)\.ipynb(?=[#)"'])""")
TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)

# nbconvert's page without external scripts; cells that are folded in JupyterLab are folded here too.
PAGE = """{% extends 'lab/index.html.j2' %}
{% block html_head_js_requirejs %}{% endblock %}
{% block html_head_js_mermaidjs %}{% endblock %}
{% block html_head_js_mathjax %}{% endblock %}
{% block input_group %}
{% if cell.metadata.get("jupyter", {}).get("source_hidden") %}
<details style="margin: .5em 0 .5em 5em; font: 14px system-ui, sans-serif">
<summary>Show the code</summary>{{ super() }}</details>
{% else %}{{ super() }}{% endif %}
{% endblock %}
{% block body_header %}{{ super() }}
<p style="margin: 1em 2em"><a href="../index.html">All lessons</a></p>
{% endblock %}
"""
INDEX = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }}
table {{ border-collapse: collapse; display: block; overflow-x: auto }}
th, td {{ text-align: left; vertical-align: top; padding: .4em .8em; border-bottom: 1px solid #ccc }}
a {{ color: #0060a0 }}
</style></head><body><h1>{title}</h1>
{body}
</body></html>
"""


def site(keys):
    """Convert the lessons and the exercises; with keys only those."""
    out = stored.ROOT / "site"
    if not keys:
        shutil.rmtree(out, ignore_errors=True)
    paths = [path for folder in FOLDERS for path in stored.find(folder, keys)]
    for path in paths or stored.find_all(FOLDERS, keys):
        notebook = pristine(path.stem) if path.parent.name == "exercises" else committed(path)
        page = out / path.parent.name / f"{path.stem}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(to_html(notebook), encoding="utf-8")
    for page in (stored.ROOT / FOLDERS[0]).glob("*.html"):    # the page of the capstone
        shutil.copy(page, out / FOLDERS[0])
    images = stored.ROOT / FOLDERS[0] / "images"
    if images.exists():
        shutil.copytree(images, out / FOLDERS[0] / "images", dirs_exist_ok=True)
    (out / "index.html").write_text(index(), encoding="utf-8")
    print(f"{len(paths)} pages: open {out / 'index.html'}")


def committed(path):
    """The notebook from the last git commit, or the file itself if there is none; without live widgets."""
    try:
        shown = subprocess.run(["git", "-C", path.parent, "show", f"HEAD:./{path.name}"], capture_output=True)
        known = shown.returncode == 0
    except OSError:  # no git
        known = False
    notebook = nbformat.reads(shown.stdout.decode("utf-8"), 4) if known else read(path)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if stored.LIVE in output.get("data", {}):  # beside it may be a picture, and its repr
                del output.data[stored.LIVE]
                output.data.pop("text/plain", None)
    return stored.normalise(notebook)


class Renderer(IPythonRenderer):
    """nbconvert's Markdown, with formulas that need no script."""

    def block_math(self, body):
        return formula(body, "block")

    def inline_math(self, body):
        return formula(body)


class Exporter(HTMLExporter):
    """nbconvert's page of a notebook with this Renderer."""

    @pass_context
    def markdown2html(self, context, source):
        return MarkdownWithMath(renderer=Renderer(escape=False)).render(source)


def to_html(notebook):
    """A notebook as one page; links to other notebooks lead to their pages."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = LINK.sub(r"\1.html", cell.source)
    exporter = Exporter(raw_template=PAGE)
    return exporter.from_notebook_node(notebook, {"metadata": {"name": title(notebook)}})[0]


def title(notebook):
    """The first heading of a notebook."""
    texts = (TITLE.search(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    return next((found[1] for found in texts if found), "Untitled")


def index():
    """The page that lists the lessons: the table from README.md, or their titles if there is no table."""
    readme = stored.ROOT / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    tables = re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE)
    lessons = next((table for table in tables if "notebooks/" in table), None) or "\n".join(
        f"- [{title(read(path))}](notebooks/{path.name})" for path in stored.find("notebooks"))
    heading = TITLE.search(text)
    return INDEX.format(title=html.escape(heading[1] if heading else "From RNNs to the Transformer"),
                        body=markdown2html_mistune(LINK.sub(r"\1.html", lessons)))

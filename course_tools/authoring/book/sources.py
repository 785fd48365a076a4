"""A notebook as the source of a page: as it was committed or handed out, with an anchor at every cell."""

import html
import re
import subprocess

import nbformat

from ... import files
from ...exercise import pristine, read
from .. import frames, stored
from .words import _, pages

SECTION = re.compile(r"\[([^][]+)\]\(([^()#\s:]*/)?(\w+)\.ipynb#([^)\s]+)\)")
CELL = re.compile(r"\[([^][]+)\]\(#cell-id=([\w-]+)\)")    # JupyterLab's link to a cell
HTML = re.compile(r"\[([^][]+)\]\((?![a-z]+:)([^()\s]+\.html)\)")    # not a notebook: the capstone's page
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
SENTENCE = re.compile(r"(.+?[.!?])(?:\s|$)", re.DOTALL)
MARKUP = re.compile(r"[*`]|\[|\]\([^)]*\)|<[^>]*>")
README = re.compile(r"(\]\((?:\.\./)*)README\.md(?:#[\w-]+)?\)")
TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
QUIZ = "course-quiz"    # of course_lib.widgets


def shown(path):
    """The notebook to publish: a sheet as it is handed out, a lesson as it was committed."""
    return stored.normalise(pristine(path.stem)) if path.parent.name == "exercises" else committed(path)


def committed(path):
    """The notebook from the last git commit, or the file itself if there is none; without live widgets."""
    try:
        found = subprocess.run(["git", "-C", path.parent, "show", f"HEAD:./{path.name}"], capture_output=True)
        known = found.returncode == 0
    except OSError:  # no git
        known = False
    notebook = nbformat.reads(found.stdout.decode("utf-8"), 4) if known else read(path)
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if stored.LIVE in output.get("data", {}):  # beside it may be a picture, and its repr
                del output.data[stored.LIVE]
                output.data.pop("text/plain", None)
    return stored.normalise(notebook)


def page(path, notebook):
    """What Sphinx reads: a copy of the notebook with anchors, folded inputs, and links to its files.

    Widgets get the controls with which they move, and a page that a text links to is shown below it.
    """
    made = nbformat.from_dict(notebook)
    moving = frames.stored_for(path, notebook)
    for cell, after in zip(made.cells, [*made.cells[1:], None]):
        if cell.cell_type == "markdown":
            text = sections(cell.source) + embedded(path, cell.source)
            cell.source = f'<div class="course-cell" id="{cell.id}"></div>\n\n{text}'
        else:
            _code(cell, after)
            if moving.get(cell.id):
                pictures = frames.place(path, cell.id).relative_to(path.parent).as_posix()
                form = pages().get_template("frames.html.j2").render(
                    cell=cell.id, shown=moving[cell.id], pictures=pictures)
                cell.outputs.insert(0, nbformat.v4.new_output("display_data", {"text/html": form}))
    first = next((cell for cell in made.cells if cell.cell_type == "markdown"), None)
    if first:
        first.source = HEADING.sub(lambda found: f"{found[0]}\n\n{_files(path)}\n", first.source, count=1)
    return nbformat.writes(made)


def _code(cell, after):
    """Its id, whether its input is folded or left out, and the description of its picture."""
    tags = set(cell.metadata.get("tags", []))
    if any(QUIZ in str(output.get("data", {}).get("text/html")) for output in cell.outputs):
        tags.add("remove-input")    # the source tells the answer
    elif cell.metadata.get("jupyter", {}).get("source_hidden") or cell.id == "set-up":
        tags.add("hide-input")
    described = after.source if after and after.cell_type == "markdown" else ""
    cell.metadata.update({"tags": sorted(tags), "course_id": cell.id,
                          "mystnb": {"image": {"alt": sentence(described)}}})


def sentence(text):
    """The first sentence of a Markdown text, without markup; '' if it begins with something else."""
    found = SENTENCE.match(text.strip())
    return " ".join(MARKUP.sub("", found[1]).split()) if found and text[0] not in "#<|!" else ""


def _files(path):
    """Links to the files of a lesson or a sheet, as a line of HTML."""
    other = "exercises" if path.parent.name == "notebooks" else "notebooks"
    links = [f'<a href="{path.name}" download>{_("Download this notebook")}</a>']
    if (stored.ROOT / other / path.name).exists():
        words = _("Exercise") if other == "exercises" else _("Lesson")
        links.append(f'<a href="../{other}/{path.stem}.html">{words}</a>')
        if other == "exercises":
            links.append(f'<a href="../{other}/{path.name}" download>{_("Download the exercise")}</a>')
    return f'<p class="course-files">{" ".join(links)}</p>'


def sections(source):
    """The links of a text to sections of notebooks, by Jupyter's names, as links to pages and cell ids.

    Links to the README lead to the first page, and links to other HTML pages stay as they are.
    """
    def link(found):
        text, folder, stem, name = found.groups(default="")
        return f'<a href="{folder}{stem}.html#{anchor(stem, name)}">{text}</a>'
    linked = CELL.sub(r'<a href="#\2">\1</a>', HTML.sub(r'<a href="\2">\1</a>', SECTION.sub(link, source)))
    return README.sub(r"\1index.md)", linked)


def embedded(path, source):
    """The HTML pages beside a notebook that a text links to, each in a frame of its own."""
    files = [path.parent / name for _text, name in HTML.findall(source)]
    titles = {file.name: TITLE.search(file.read_text(encoding="utf-8")) for file in files if file.exists()}
    template = pages().get_template("embedded.html.j2")
    return "".join("\n\n" + template.render(file=name, title=found[1] if found else name)
                   for name, found in titles.items())


def anchor(stem, name):
    """The id of the cell with a heading that Jupyter calls `name`; the name if there is none."""
    path = stored.ROOT / "notebooks" / f"{stem}.ipynb"
    cells = committed(path).cells if path.exists() else []
    named = {found.replace(" ", "-"): cell.id for cell in cells if cell.cell_type == "markdown"
             for found in HEADING.findall(cell.source)}
    return named.get(html.unescape(name), name)


def title(notebook):
    """The first heading of a notebook."""
    found = (HEADING.search(cell.source) for cell in notebook.cells if cell.cell_type == "markdown")
    return next((one[1] for one in found if one), "")


def write(path, text):
    """Write a source if it changed, so that Sphinx reads only what is new."""
    files.update(path, text)

"""The rules of a stored notebook: each takes a notebook and its path, and yields what is wrong in lines."""

import ast
import re
from pathlib import Path
from urllib.parse import unquote

import nbformat

from course_tools import exercise
from course_tools.authoring import shown, stored
from course_tools.authoring.book import gathered
from course_tools.items import registry

ROOT = Path(__file__).parents[2]
MIDDLE = ["The idea", "By hand", "From formula to code", "Look inside", "Put it to work", "Where it breaks"]
SECTIONS = ["The problem", *MIDDLE, "Claims, checked", "Since then", "Summary", "Exercises", "References"]
FIRST_SECTIONS = ["The trouble", *MIDDLE, "What the sources say", "Summary", "Exercises", "References"]
MORE_MAY_FOLLOW = {"From formula to code", "Look inside"}
MOST_BETWEEN = 4  # cells from a question to its folded reason, as custom.css has it
HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)
MOST_WORDS = 220  # a clear paragraph or two; a cell holds one idea
PLACES = re.compile(r"\b(section|eq|equation|figure|algorithm|chapter|table|appendix|page)s?\b", re.I)
RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}.*)?")
DETAILS = re.compile(r"<details>.*?</details>", re.DOTALL)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"""(?:\]\(|(?:href|src)=["'])([^)"'\s]+)""")


def texts(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "markdown"]


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def python(cell):
    """The syntax tree of a code cell, without lines for IPython."""
    return ast.parse(re.sub(r"^[!%].*$", "", cell.source, flags=re.MULTILINE))


def mark(cell):
    return cell.metadata.get("course") or {}


def headings(notebook, level=r"#{1,6}"):
    """The texts of the headings, in order; nothing inside code counts."""
    sources = [re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL) for cell in texts(notebook)]
    return re.findall(rf"^{level} +(.+?)[ \t]*$", "\n\n".join(sources), re.MULTILINE)


def is_lesson(path):
    return path.parent.name == "notebooks" and not path.stem.startswith("00")


def rewritten(notebook):
    """Whether a lesson has the second edition's form; the others keep the first edition's rules."""
    return not re.search(r"^## The trouble|^\*\*Claim\.\*\*", "\n".join(
        cell.source for cell in texts(notebook)), re.MULTILINE)


# ---------------------------------------------------------------- every notebook

def is_stored_as_the_tool_stores(notebook, path):
    """kernelspec, no widget state, no timestamps, no empty tags, indent 1."""
    normal = stored.normalise(nbformat.from_dict(notebook))
    if nbformat.writes(normal).rstrip("\n") + "\n" != path.read_text(encoding="utf-8"):
        yield f"stored in another form: run python -m course_tools.authoring notebooks {path.stem[:2]}"


def cell_ids_are_names(notebook, path):
    ids = [cell.get("id", "") for cell in notebook.cells]
    for number, name in enumerate(ids):
        if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or RANDOM_ID.fullmatch(name):
            yield f"cell {number} has the id {name!r}: give it a name like predict-scale"
        elif ids.index(name) != number:
            yield f"two cells are named {name!r}"


def cells_are_small(notebook, path):
    for cell in code(notebook):
        lines = len(cell.source.splitlines())
        if lines > 25 and "shows" not in mark(cell):
            yield f"code cell {cell.id}: {lines} lines, at most 25"
    for cell in texts(notebook):
        plain = re.sub(r"\$\$.*?\$\$|!\[.*?\]\(.*?\)", "", DETAILS.sub("", cell.source), flags=re.DOTALL)
        words = len(re.sub(r"^\|.*$", "", plain, flags=re.MULTILINE).split())
        if words > MOST_WORDS:
            yield f"text cell {cell.id}: {words} words, at most {MOST_WORDS}"


def no_fillers(notebook, path):
    for cell in texts(notebook):
        for word in re.findall(r"\b(?:simply|just|obviously)\b", CODE.sub("", cell.source), re.IGNORECASE):
            yield f"text cell {cell.id}: {word!r} says nothing"


def no_trailing_semicolon(notebook, path):
    """nbval sees the value that a semicolon hides in Jupyter."""
    for cell in code(notebook):
        if cell.source.rstrip().endswith(";"):
            yield f"code cell {cell.id} ends in a semicolon: bind the value to a name instead"


def links_resolve(notebook, path):
    for cell in texts(notebook):
        for link in LINK.findall(CODE.sub("", cell.source)):
            target, _, anchor = unquote(link).partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            file = path.parent / target
            if not file.exists():
                yield f"text cell {cell.id}: there is no {target}"
            elif anchor.startswith("cell-id="):    # JupyterLab's link to a cell
                if target or anchor[8:] not in {other.id for other in notebook.cells}:
                    yield f"text cell {cell.id}: this notebook has no cell {anchor[8:]!r}"
            elif anchor and anchor not in anchors(file if target else notebook):
                yield f"text cell {cell.id}: {target or 'this notebook'} has no heading #{anchor}"


def anchors(file):
    """What links to its headings are called: by JupyterLab, and in Markdown files by GitHub."""
    if not isinstance(file, Path) or file.suffix == ".ipynb":
        notebook = exercise.read(file) if isinstance(file, Path) else file
        return {heading.replace("`", "").replace(" ", "-") for heading in headings(notebook)}
    found = re.findall(r"^#{1,6} +(.+?)\s*$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def library_source_is_word_for_word(notebook, path):
    for cell, _ in shown.differing(notebook):
        yield f"cell {cell.id} does not show the library's source: run make notebooks"


# ---------------------------------------------------------------- executed notebooks

def outputs_are_stored_in_order(notebook, path):
    counts = [cell.execution_count for cell in code(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"not executed top to bottom ({counts[:5]} ...): run make notebooks"
    yield from stored.faults(notebook)


def outputs_come_from_their_code(notebook, path):
    for cell in stored.edited(notebook):
        yield f"cell {cell} carries the output of other code: run make notebooks"


def outputs_hold_nothing_that_changes(notebook, path):
    """No time, rate or address."""
    timing = re.compile(r"\b\d+(\.\d+)? ?(ms|µs|us|s|sec|seconds)\b|\bit/s\b|\b0x[0-9a-f]{6,}|\d\d:\d\d:\d\d")
    for cell in code(notebook):
        if "nbval-ignore-output" in cell.metadata.get("tags", []):
            continue
        for output in cell.outputs:
            text = output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
            for found in timing.finditer(text):
                yield f"cell {cell.id} stores {found[0]!r}: that differs at every run"


def pictures_are_described(notebook, path):
    for number, cell in enumerate(notebook.cells):
        if any("image/png" in output.get("data", {}) for output in cell.get("outputs", [])):
            following = notebook.cells[number + 1] if number + 1 < len(notebook.cells) else None
            if following is None or following.cell_type != "markdown" or following.source.startswith("#"):
                yield f"the picture of cell {cell.id} needs a text cell under it that says what to see"


# ---------------------------------------------------------------- lessons

def title_says_claim_needs_and_minutes(notebook, path):
    first = notebook.cells[0]
    if first.cell_type != "markdown" or not re.match(rf"# {path.stem[:2]} · \S.*\n", first.source):
        yield f"the first cell must begin with '# {path.stem[:2]} · Title'"
    if rewritten(notebook):
        if not re.search(r"^\*\*You need\*\* \S.*\*\*Time\*\*: \d+ minutes", first.source, re.MULTILINE):
            yield "the title cell lacks its last line: **You need** ... **Time**: 60 minutes ..."
        return
    for word in ("Claim", "Needs", "Minutes"):
        if not re.search(rf"^\*\*{word}\.\*\* \S", first.source, re.MULTILINE):
            yield f"the title cell lacks a line **{word}.** ..."


def sections_come_in_order(notebook, path):
    if not is_lesson(path):
        return
    found, position = headings(notebook, "##"), -1
    for section in SECTIONS if rewritten(notebook) else FIRST_SECTIONS:
        places = [number for number, heading in enumerate(found) if heading == section
                  or (section in MORE_MAY_FOLLOW and heading.startswith(section))]
        if not places:
            yield f"there is no section '## {section}'"
        elif places[0] < position:
            yield f"the section '{section}' comes too early"
        else:
            position = places[0]


def predictions_are_run_and_explained(notebook, path):
    """Question, at most four cells that run what was predicted, folded reason.

    course_tools/jupyter/custom/custom.css finds the answer by this form, to keep it out of sight until a
    choice was made; it stops at the first folded text and at a heading.
    """
    cells = notebook.cells
    quizzes = [number for number, cell in enumerate(cells) if is_quiz(cell)]
    if is_lesson(path) and len(quizzes) < 2:
        yield f"{len(quizzes)} questions to predict, at least two"
    for number in quizzes:
        name, below = cells[number].id, cells[number + 1:number + MOST_BETWEEN + 2]
        folded = [place for place, cell in enumerate(below) if "<details>" in cell.source]
        if not folded:
            yield f"no folded why among the {MOST_BETWEEN + 1} cells after {name}"
        between = below[:folded[0]] if folded else below[:MOST_BETWEEN]
        if not any(cell.cell_type == "code" and not is_quiz(cell) for cell in between):
            yield f"no cell between {name} and the first folded text below it runs what was predicted"
        for cell in between:
            if is_quiz(cell) or (cell.cell_type == "markdown" and HEADING.search(cell.source)):
                yield f"{cell.id}, a question or a heading, stands between {name} and its folded why"


def is_quiz(cell):
    return cell.cell_type == "code" and bool(re.search(r"^quiz\(", cell.source, re.MULTILINE))


def choices_are_plain_text(notebook, path):
    """A button shows tags as they are written."""
    for cell in code(notebook):
        tree = ast.parse(cell.source) if cell.source.startswith("quiz(") else ast.Module([])
        for choice in [part for call in ast.walk(tree) if isinstance(call, ast.Call) for part in call.args]:
            text = getattr(choice.elts[0], "value", "") if isinstance(choice, ast.Tuple) else ""
            if re.search(r"</?[a-z]|[$]", str(text)):
                yield f"{cell.id}: the choice {text!r} is a button, which shows no HTML and no formula"


def evidence_is_a_click_away(notebook, path):
    """In the tables of what is often said the id of a cell is a link to it."""
    ids = {cell.id for cell in notebook.cells}
    for cell in texts(notebook):
        if gathered.CHECKED.search(cell.source):
            evidence = [row[-1] for row in gathered.table(cell.source)]
            for name in re.findall(r"(?<!\[)`([\w-]+)`", " ".join(evidence)):
                if name in ids:
                    yield f"text cell {cell.id}: link the evidence, [`{name}`](#cell-id={name})"


def summary_and_references_are_whole(notebook, path):
    if not is_lesson(path):
        return
    items = {section: re.findall(r"^(?:\d+\.|[-*]) +(.+)$", section_text(notebook, section), re.MULTILINE)
             for section in ("Summary", "References")}
    if len(items["Summary"]) != 6:
        yield f"the summary has {len(items['Summary'])} lines, expected six"
    if not items["References"]:
        yield "no references"
    for reference in items["References"]:
        if not PLACES.search(reference):
            yield f"no section or equation number: {reference}"
        if not re.search(r"\]\(https://\S+\)", reference):
            yield f"no link (arXiv, DOI): {reference}"


def ends_with_what_comes_next(notebook, path):
    """The last cell links the exercise, and the next lesson if there is one."""
    following = sorted(other.name for other in path.parent.glob("[0-9]*.ipynb") if other.name > path.name)
    wanted = [f"(../exercises/{path.name})", *(f"({name})" for name in following[:1])]
    for link in wanted if is_lesson(path) else ():
        if link not in notebook.cells[-1].source:
            yield f"the last cell does not link {link[1:-1]}"


def section_text(notebook, section):
    """The text between one second-level heading and the next."""
    text = "\n\n".join(cell.source for cell in texts(notebook))
    return (re.split(rf"^## {section}.*$", text, maxsplit=1, flags=re.MULTILINE) + [""])[1].split("\n## ")[0]


def set_up_is_one_cell(notebook, path):
    found = [cell for cell in code(notebook) if cell.id == "set-up"]
    if len(found) != 1 or code(notebook)[0] is not found[0]:
        yield "the first code cell, and no other, is named set-up"


def checks_point_to_headings(notebook, path):
    if path.stem in registry.stems():
        for item in registry.items(path.stem).values():
            if item.where not in headings(notebook):
                yield f"the check of {item.name} points to {item.where!r}, which is no heading here"


TERMS = {  # what the course does not say, and what it says instead
    r"memory attention": "cross-attention", r"\bbend(s|ing)?\b": "nonlinearity, activation",
    r"\bdeaf\b": "saturated", r"\bsummit\b": "peak", r"\brivals?\b": "baseline",
    r"\bslips?\b": "mistake, bug",
    r"\bblind to\b": "invariant to", r"\bdoes not notice\b": "is invariant to", r"\bfeels?\b": "depends on",
    r"\bin honest use\b": "at inference", r"\bmanners?\b": "convention", r"\bthe own\b": "its own",
    r"\bshares? of (the )?attention\b": "attention weight", r"\bslopes?\b": "derivative",
    r"\bthe words before\b": "the previous tokens", r"\bbeginnings\b": "partial hypotheses",
    r"\brightly\b": "correctly"}


def the_fields_terms_are_used(notebook, path):
    """The table of terms, in lessons of the second edition: text, and the strings of code."""
    if not rewritten(notebook):
        return
    for cell in notebook.cells:
        words = CODE.sub("", cell.source) if cell.cell_type == "markdown" else " ".join(
            node.value for node in ast.walk(python(cell))
            if isinstance(node, ast.Constant) and isinstance(node.value, str))
        for term, better in TERMS.items():
            for found in re.finditer(term, words, re.IGNORECASE):
                yield f"{cell.id}: {found[0]!r}; say {better}"


DRAWS = re.compile(r"\b(plots\.\w+|picture|lines|heatmap|links)\(|axes\.")


def collapsed(cell):
    """Whether its input is folded in JupyterLab, and on the site."""
    return (bool(cell.metadata.get("jupyter", {}).get("source_hidden")),
            "hide-input" in cell.metadata.get("tags", []))


def drawing_is_collapsed_and_measuring_is_not(notebook, path):
    """Cells whose only purpose is a picture are folded; models, data and claims stay open."""
    if not rewritten(notebook):
        return
    for cell in code(notebook):
        hidden, tagged = collapsed(cell)
        shows = any("image/png" in output.get("data", {}) for output in cell.outputs)
        works = re.search(r"^(def |class )|\b(claim|finding|identity|fit)\(", cell.source, re.MULTILINE)
        if hidden != tagged:
            yield f"{cell.id}: source_hidden and the tag hide-input go together"
        if shows and DRAWS.search(cell.source) and not works and not hidden:
            yield f"{cell.id} only draws: fold its input (jupyter.source_hidden, tag hide-input)"
        if hidden and re.search(r"\b(claim|finding|identity)\(", cell.source):
            yield f"{cell.id} measures: leave it open"
        if not hidden and re.search(r"^\s*assert\b", cell.source, re.MULTILINE):
            yield f"{cell.id}: an assert in the reading path; use claim(...), or finding(...)"


def graded_code_is_written_first(notebook, path):
    """What an exercise asks for is shown folded, under a line that says: write it yourself first."""
    if not rewritten(notebook) or path.stem not in registry.stems():
        return
    graded = registry.items(path.stem).keys()
    for before, cell in zip(notebook.cells, notebook.cells[1:]):
        if cell.cell_type != "code":
            continue
        names = {node.name for node in python(cell).body
                 if isinstance(node, (ast.FunctionDef, ast.ClassDef))} & graded
        if names and not all(collapsed(cell)):
            yield f"{cell.id} shows {', '.join(names)}, which the exercise asks for: fold its input"
        if names and not (before.cell_type == "markdown" and "Write it yourself first" in before.source):
            yield f"above {cell.id} a line is missing: **Write it yourself first**: exercise NN, item ..."


EVERY = [is_stored_as_the_tool_stores, cell_ids_are_names, cells_are_small, no_fillers, no_trailing_semicolon,
         links_resolve, library_source_is_word_for_word]
EXECUTED = [outputs_are_stored_in_order, outputs_come_from_their_code, outputs_hold_nothing_that_changes,
            set_up_is_one_cell]
LESSON = [the_fields_terms_are_used, drawing_is_collapsed_and_measuring_is_not, pictures_are_described,
          title_says_claim_needs_and_minutes, choices_are_plain_text, evidence_is_a_click_away,
          summary_and_references_are_whole, ends_with_what_comes_next, checks_point_to_headings]
# And not of a lesson that lint_budget lists as third edition:
SECOND = [graded_code_is_written_first, sections_come_in_order, predictions_are_run_and_explained]

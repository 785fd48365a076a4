"""The rules of a lesson of the third edition: its budget, its findings, and the words and symbols it uses.

A lesson is listed in THIRD when it was rewritten; the set goes when all are listed.
"""

import ast
import re
import tomllib
from collections import Counter
from itertools import pairwise

from lint_rules import (
    CODE,
    FIRST_SECTIONS,
    ROOT,
    SECTIONS,
    code,
    collapsed,
    headings,
    is_lesson,
    mark,
    section_text,
    texts,
)

from course_tools.authoring import budget, findings
from course_tools.authoring.book import gathered
from course_tools.items import registry

THIRD = set()    # "00", "01" ...
WORDS = {"00": 2500, "09": 2500, "12": 4000}
MOST = {"words": 3500, "code": 30, "quizzes": 3, "findings": 8, "identities": 5}
MOST_ROWS, MOST_SURE = 4, 80    # rows of "Often said", words of a box "How sure are we?"

HEDGES = re.compile(r"not (been )?measured|(have|has) not (been )?(found out|separated|tested|tried)|"
                    r"in a separate (trial|run|experiment)|not (shown|tested|measured) here|"
                    r"(cannot|can't|could not) (tell|say)\b|(do|does) not know why|remains open|"
                    r"is not clear why|we did not (try|test|measure|check)", re.IGNORECASE)
BOX = re.compile(r"<details><summary>([^<]*)</summary>(.*?)</details>", re.DOTALL)
BUILDS = re.compile(r"^\[Exercise (\d\d)\.(\d+)\]\(\.\./exercises/(\w+)\.ipynb\) builds this\.$")
ABOUT_BUILDING = re.compile(r"^.*(?:builds? this\b|Write it yourself first).*$", re.MULTILINE)

SYMBOLS = [    # (what is found, in which lessons it may stand, what to write)
    (r"\bW_c\b|W_\{c\}", {"04"}, "W_c is Luong's matrix of [c; s] in lesson 04; a start vector has W_init"),
    (r"sigma\(b\)|σ\(b\)|sigmoid\(b\)", set(), "the gate of the gated linear unit is g, and b a bias"),
    (r"\bn_t\b", set(), "n is a length; the candidate of the GRU is \\tilde h"),
    (r"\|V\||\bV = len\(", set(), "V are the values; the size of a vocabulary is vocab"),
    (r"(?<![\d.])-1e9\b", set(), "minus infinity is -math.inf"),
    (r"(?<!nn\.)\bH heads\b", set(), "the number of heads is h")]


# ---------------------------------------------------------------- budget

def lesson_keeps_its_budget(notebook, path):
    found, most = budget.of(notebook), {**MOST, "words": WORDS.get(path.stem[:2], MOST["words"])}
    for what, limit in most.items():
        if getattr(found, what) > limit:
            yield f"{getattr(found, what)} {what}, at most {limit}"
    if budget.title_minutes(notebook) != found.minutes:
        yield (f"the title says {budget.title_minutes(notebook)} minutes; {found.words} words, {found.open} "
               f"open code cells and {found.quizzes} quizzes take {found.minutes}")


def parts_come_in_order(notebook, path):
    """What a lesson does not need is left out; what there is has its name and its place.

    "From formula to code" and "Look inside" may take turns, each with a colon and what it is about.
    """
    if not is_lesson(path):
        return
    found = headings(notebook, "##")
    order = {name.replace("Claims, checked", "Often said"): place for place, name in enumerate(SECTIONS)}
    order["Look inside"] = order["From formula to code"]
    named = [heading.partition(":")[0] for heading in found]
    places = [order[name] for name in named if name in order]
    if places != sorted(places):
        yield f"the sections come in another order than {', '.join(order)}"
    for name in ("The problem", "Summary", "Exercises", "References"):
        if name not in found:
            yield f"there is no section '## {name}'"
    for heading in set(found) & {"Claims, checked", *FIRST_SECTIONS} - set(order):
        yield f"'## {heading}' is a name of an earlier edition; the table of beliefs is '## Often said'"


# ---------------------------------------------------------------- findings

def findings_are_comparisons_with_tight_bounds(notebook, path):
    """The sentence is written out, each value has its range, and the bound has little slack.

    Slack is what lies between the bound and the worst case of the five-seed ranges.  It may be as large as
    what the seeds differ by, or as the bound itself: "more by 0.5" where the seeds give 0.95 to 1.00 at most.
    """
    for cell in code(notebook):
        if budget.calls(cell, "claim"):
            yield f"{cell.id}: claim(...) is of the second edition; say it as a finding(...)"
        if re.search(r"^\s*assert\b", cell.source, re.MULTILINE) and not any(collapsed(cell)):
            yield f"{cell.id}: an assert in the reading path; use finding(...) or identity(...)"
        tables = findings.tables(cell)
        for call in budget.calls(cell, "finding"):
            yield from (f"{cell.id}: {problem}" for problem in _problems(call, tables))


def _problems(call, tables):
    if not (call.args and isinstance(call.args[0], ast.Constant) and isinstance(call.args[0].value, str)):
        yield "the sentence of a finding is written out in its cell"
        return
    sentence, values = call.args[0].value, call.args[1] if len(call.args) > 1 else None
    if isinstance(values, ast.Dict) and None not in values.keys and len(values.keys) < 2:
        yield f"no comparison, but one value: {sentence!r}"
    rows = [row.group("value", "low", "high") for row in tables.get(sentence, [])]
    if not rows:
        yield f"the table is not stored: {sentence!r}; run make notebooks"
    elif any(low is None and not value.lstrip("-").isdigit() for value, low, _ in rows):
        yield f"a value has no range: {sentence!r}; run make findings"
    elif all(low is not None for _, low, _ in rows):
        bound = {keyword.arg: keyword.value for keyword in call.keywords
                 if keyword.arg in ("more_by", "times", "within")}
        for kind, node in bound.items():
            ranges = [(float(low), float(high)) for _, low, high in rows]
            tightest = loose(kind, ast.literal_eval(node), ranges)
            if tightest is not None:
                yield f"{kind}={ast.unparse(node)} is loose: {sentence!r}; the ranges allow {tightest:.3g}"


def loose(kind, bound, ranges):
    """What the bound could be, if it has more slack than the seeds' spread and than itself; else None.

    ranges: (lowest, highest) over the seeds of each value, in the order of the finding.
    """
    if kind == "within":
        widest = max(high for _, high in ranges) - min(low for low, _ in ranges)
        size = max(abs(end) for span in ranges for end in span)
        return widest if bound > 2 * widest + 0.02 * size else None
    cases = []
    for (low, high), (next_low, next_high) in pairwise(ranges):
        if kind == "more_by":
            worst, best = low - next_high, high - next_low
            cases.append((worst, worst - bound, max(best - worst, bound)))
        elif next_low > 0 and low > 0:
            worst, best = low / next_high, high / next_low
            cases.append((worst, worst / bound, max(best / worst, 2)))
    worst, slack, allowed = min(cases, default=(0, 0, 0))
    return worst if slack > allowed else None


def boxes_are_short(notebook, path):
    """Folded boxes "How sure are we?": that name exactly, at most 80 words, at most one for a finding."""
    boxes = [(cell, summary, text) for cell in texts(notebook) for summary, text in BOX.findall(cell.source)]
    sure = [(cell, text) for cell, summary, text in boxes if summary == "How sure are we?"]
    for cell, summary, _ in boxes:
        if re.search(r"\bsure\b", summary, re.IGNORECASE) and summary != "How sure are we?":
            yield f"{cell.id}: the box {summary!r} is called 'How sure are we?' everywhere"
    for cell, text in sure:
        if budget.words(text) > MOST_SURE:
            yield f"{cell.id}: 'How sure are we?' has {budget.words(text)} words, at most {MOST_SURE}"
    if len(sure) > budget.of(notebook).findings:
        yield f"{len(sure)} boxes 'How sure are we?' for {budget.of(notebook).findings} findings"


def nothing_is_hedged(notebook, path):
    for cell in notebook.cells:
        calls = budget.calls(cell, "finding", "identity")
        plain = CODE.sub("", cell.source) if cell.cell_type == "markdown" else "\n".join(
            ast.unparse(call.args[0]) for call in calls if call.args)
        for found in HEDGES.finditer(plain):
            yield f"{cell.id}: {found[0]!r}; decide it offline and tell the result, or leave the question out"


# ---------------------------------------------------------------- forms

def often_said_is_short(notebook, path):
    rows = [row for cell in texts(notebook) if gathered.CHECKED.search(cell.source)
            for row in gathered.table(cell.source)[1:]]
    if len(rows) > MOST_ROWS:
        yield f"'Often said' has {len(rows)} rows, at most {MOST_ROWS}"
    if rows and not gathered.CHECKED.search(section_text(notebook, "Often said")):
        yield "the table of beliefs stands in the section 'Often said'"


def exercises_are_named_in_one_form(notebook, path):
    """'[Exercise 01.3](../exercises/01_long_term_dependency.ipynb) builds this.', a line of its own."""
    for cell in texts(notebook):
        for line in ABOUT_BUILDING.findall(CODE.sub("", cell.source)):
            found = BUILDS.match(line)
            if not found:
                yield (f"{cell.id}: {line!r}; write on a line of its own: "
                       "[Exercise NN.M](../exercises/NN_name.ipynb) builds this.")
            elif found[3] not in registry.stems() or found[1] != found[3][:2] or not (
                    0 < int(found[2]) <= len(registry.items(found[3]))):
                yield f"{cell.id}: there is no item {found[1]}.{found[2]} in {found[3]}"


def graded_code_is_imported(notebook, path):
    """What an exercise asks for is shown folded, as the library has it, and not defined in the lesson."""
    if path.stem not in registry.stems():
        return
    graded = registry.items(path.stem).keys()
    for cell in code(notebook):
        names = set(re.findall(r"^(?:def|class) (\w+)", cell.source, re.MULTILINE)) & graded
        if names or "shows" in mark(cell):
            yield (f"{cell.id} defines {', '.join(names) or 'library code'}: show it in a text cell "
                   "(course.shows), folded, and import it")


def questions_are_followed_by_an_experiment(notebook, path):
    """After a quiz something is run before the next heading or the next quiz."""
    for number, cell in enumerate(notebook.cells):
        if budget.calls(cell, "quiz"):
            for other in notebook.cells[number + 1:]:
                if other.cell_type == "code" and not budget.calls(other, "quiz"):
                    break
                if other.cell_type == "code" or re.search(r"^#+ ", other.source, re.MULTILINE):
                    yield f"no cell below {cell.id} runs what was predicted"
                    break
            else:
                yield f"no cell below {cell.id} runs what was predicted"


def one_symbol_has_one_meaning(notebook, path):
    """In text, code and pictures of the lesson."""
    key = path.stem[:2]
    places = [(cell.id, cell.source) for cell in notebook.cells]
    places += [(picture.name, picture.read_text(encoding="utf-8")) for picture in _pictures(notebook)]
    for where, text in places:
        for pattern, allowed, better in SYMBOLS:
            found = re.search(pattern, text)
            if found and key not in allowed:
                yield f"{where}: {found[0]!r}; {better}"


def _pictures(notebook):
    names = re.findall(r"\]\(images/([\w.-]+\.svg)\)", "".join(cell.source for cell in texts(notebook)))
    return [path for name in sorted(set(names)) if (path := ROOT / "notebooks" / "images" / name).exists()]


# ---------------------------------------------------------------- the whole course

def quizzes():
    """{id: question} of all quizzes that are package data."""
    found = {}
    for file in sorted((ROOT / "course_lib" / "quizzes").glob("*.toml")):
        found |= tomllib.loads(file.read_text(encoding="utf-8"))
    return found


def uneven(places):
    """The place of the right answers, counted from 1, if one place has it too often or too seldom; else None.

    A third in each place, give or take a sixth of all and one question.
    """
    counted, most = Counter(places), len(places)
    off = [place for place in (1, 2, 3) if abs(3 * counted[place] - most) > most / 2 + 3]
    return f"{len(places)} right answers, by place {dict(sorted(counted.items()))}" if off else None


RULES = [lesson_keeps_its_budget, parts_come_in_order, findings_are_comparisons_with_tight_bounds,
         boxes_are_short, nothing_is_hedged, often_said_is_short, exercises_are_named_in_one_form,
         graded_code_is_imported, questions_are_followed_by_an_experiment, one_symbol_has_one_meaning]

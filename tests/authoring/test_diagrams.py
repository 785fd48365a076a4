"""Diagrams: drawn by the scripts of course_tools.authoring.diagrams, used, described, readable and whole."""

import re
from xml.etree import ElementTree

import pytest
from lint_rules import ROOT, texts

from course_tools import exercise
from course_tools.authoring import diagrams
from course_tools.authoring.diagrams import kit

IMAGES = sorted((ROOT / diagrams.FOLDER).glob("*.svg"))
INCLUDED = re.compile(r"!\[([^\]]*)\]\(images/([^)]+)\)", re.DOTALL)
SVG = "{http://www.w3.org/2000/svg}"
SMALLEST = 11  # pixels of text at full width
WIDEST = 860   # pixels: at 700 the smallest text is still 9


def test_the_files_are_what_the_scripts_draw():
    drawn = {f"{name}.svg": draw() for name, draw in diagrams.drawings().items()}
    stored = {path.name: path.read_text(encoding="utf-8") for path in IMAGES}
    assert drawn.keys() == stored.keys(), "run make diagrams, and delete what no script draws"
    assert [name for name in drawn if drawn[name] != stored[name]] == [], "run make diagrams"


def test_every_diagram_is_used_and_described():
    used = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in texts(exercise.read(path)):
            for words, name in INCLUDED.findall(cell.source):
                used.setdefault(name, []).append(words)
    assert set(used) == {path.name for path in IMAGES}
    short = [name for name, all_words in used.items() for words in all_words if len(words.split()) < 12]
    assert short == [], "an alternative text tells what the picture tells: full sentences"


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_a_diagram_is_text_on_a_light_card(path):
    root = ElementTree.parse(path).getroot()
    width = float(root.get("viewBox").split()[2])
    sizes = [float(element.get("font-size")) for element in root.iter(f"{SVG}text")]
    assert root.get("font-family") == kit.FONT and width <= WIDEST and min(sizes) >= SMALLEST
    assert root.find(f"{SVG}title").text and root.find(f"{SVG}desc").text
    assert root.find(f"{SVG}rect").get("fill") == kit.CARD
    assert not list(root.iter(f"{SVG}image")) and "<script" not in path.read_text(encoding="utf-8")


# ---------------------------------------------------------------- in a browser

PAGE = """<html><body style="margin: 0"><div style="width: {width}px">{svg}</div></body></html>"""
MEASURE = """() => {
    const svg = document.querySelector("svg"), card = svg.getBoundingClientRect(), found = [];
    const name = element => `${element.tagName} '${element.textContent.slice(0, 40)}'`;
    const shapes = [...svg.querySelectorAll("text, rect, circle, path")].filter(e => !e.closest("defs"));
    for (const shape of shapes) {
        const box = shape.getBoundingClientRect(), slack = 0.5;
        if (box.left < card.left - slack || box.right > card.right + slack || box.top < card.top - slack
            || box.bottom > card.bottom + slack) found.push(`${name(shape)} is cut off by the card`);
    }
    const words = [...svg.querySelectorAll("text")].map(e => [name(e), e.getBoundingClientRect()]);
    words.forEach(([one, a], i) => words.slice(i + 1).forEach(([other, b]) => {
        const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        const over = wide > 2 && high > 0.35 * Math.min(a.height, b.height);
        if (over) found.push(`${one} is drawn over ${other}`);
    }));
    return found;
}"""


def faults(page, svg, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.set_content(PAGE.format(width=width, svg=svg.replace("<svg ", '<svg style="max-width: 100%" ', 1)))
    return page.evaluate(MEASURE)


@pytest.mark.browser
@pytest.mark.parametrize("width", [700, 360])
@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_nothing_is_cut_off_or_drawn_over(path, width, page):
    assert faults(page, path.read_text(encoding="utf-8"), width) == []


@pytest.mark.browser
@pytest.mark.parametrize("part, words", [
    (kit.token(100, 60, "cats"), None), (kit.token(190, 60, "cats"), "cut off"),
    (kit.text(100, 60, "a long sentence that needs more room than there is"), "cut off"),
    (kit.text(100, 60, "one") + kit.text(104, 62, "two"), "drawn over"),
    (kit.matrix(40, 40, [[0, 1]], kit.BLUE, name="Q", shape="(1, 2)"), None)])
def test_the_measure_finds_what_is_wrong(part, words, page):
    found = faults(page, kit.page(200, 120, part, title="t", description="d"), 360)
    assert bool(found) == bool(words) and all(words in fault for fault in found)

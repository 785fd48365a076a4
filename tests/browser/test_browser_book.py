"""The book in a browser, on a computer and on a phone, by day and by night, with the network cut off."""

import functools
import html
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

import jupyterlab_page as lab
import pytest
from page_checks import FAINT, WIDER

from course_tools import exercise
from course_tools.authoring.book.gathered import LINK

pytestmark = [pytest.mark.browser, pytest.mark.slow]
ROOT = exercise.ROOT
LESSON = "notebooks/04_attention_alignment.html"
LOOKED_AT = ["index.html", LESSON, "exercises/04_attention_alignment.html", "findings.html", "glossary.html"]
FORMULAS = """() => [...document.querySelectorAll('.math')].map(e => {
  const drawn = e.querySelector('mjx-container');
  return [Boolean(drawn) && !e.querySelector('mjx-merror'), e.textContent.slice(0, 60)] })"""
LEFT = """() => { const copy = document.querySelector('article, main').cloneNode(true);
  copy.querySelectorAll('pre, code, .math').forEach(one => one.remove());
  return copy.textContent.split('\\n').filter(line => /\\$\\S|\\\\[a-z(]|\\[\\d+m/.test(line)) }"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the book of a copy of the course, built without a network where that can be cut off."""
    folder = tmp_path_factory.mktemp("book")
    for name in ("notebooks", "solutions", "exercises", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns(".*"))
    shutil.copy(ROOT / "README.md", folder)
    cut = ["unshare", "-rn"] if shutil.which("unshare") else []
    if cut and subprocess.run([*cut, "true"], capture_output=True).returncode:
        cut = []    # this machine does not allow it
    env = {**os.environ, "COURSE_ROOT": str(folder), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*cut, sys.executable, "-m", "course_tools.authoring", "site"], env=env, cwd=folder,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def address(built):
    """Where the book is served on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=built))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture
def book(page, address):
    """A page; what it asked for from elsewhere or in vain is an error, and so is an error of its scripts."""
    wrong = []
    here = (address, "data:", "file:")
    page.on("request", lambda one: one.url.startswith(here) or wrong.append(one.url))
    page.on("requestfailed", lambda one: wrong.append(f"failed: {one.url}"))
    page.on("response", lambda one: one.status < 400 or wrong.append(f"{one.status}: {one.url}"))
    page.on("pageerror", lambda problem: wrong.append(str(problem)))
    yield page
    page.emulate_media(color_scheme="light")
    assert wrong == []


def opened(page, address):
    """Open a page and wait until its formulas are drawn and their fonts have come."""
    page.goto(address)
    page.evaluate("async () => { if (window.MathJax) { while (!window.MathJax.startup?.promise) "
                  "await new Promise(done => setTimeout(done, 20)); await window.MathJax.startup.promise } "
                  "document.body.getBoundingClientRect(); await document.fonts.ready }")


# ---------------------------------------------------------------- every page

def test_every_page_draws_its_formulas_and_fits_on_a_phone(book, built, address):
    book.set_viewport_size({"width": 360, "height": 740})
    formulas = quizzes = 0
    pages = sorted(built.rglob("*.html"))
    for path in pages:
        opened(book, address + path.relative_to(built).as_posix())
        drawn = book.evaluate(FORMULAS)
        assert [text for fine, text in drawn if not fine] == [], path.name
        assert book.evaluate(LEFT) == [], path.name
        assert book.evaluate("document.documentElement.lang") == "en", path.name
        assert book.evaluate(WIDER) <= 0, path.name
        quizzes += book.locator(".course-quiz").count() > 0
        formulas += len(drawn)
    assert len(pages) >= 31 and formulas > 300 and quizzes == 14


def test_pages_are_light(built):
    sizes = {path.name: path.stat().st_size for path in built.rglob("*.html")
             if path.name != "capstone.html"}    # it holds a whole model, see test_capstone_page.py
    assert {name: size for name, size in sizes.items() if size > 400_000} == {}


def test_every_link_leads_somewhere_and_nothing_is_fetched_from_elsewhere(built):
    texts = {path: path.read_text(encoding="utf-8") for path in built.rglob("*.html")}
    ids = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    outside = re.compile(r'<(?:script|img|iframe|link)\b[^>]*(?:src|href)="(?:https?:)?//')
    lost = set()
    for path, text in texts.items():
        assert not outside.search(text), path.name
        for link in re.findall(r'<a\b[^>]*?href="([^"]+)"', text):
            file, _, anchor = unquote(html.unescape(link)).partition("#")
            if re.match(r"[a-z]+:", file):
                continue
            target = (path.parent / file).resolve() if file else path
            if not target.exists() or anchor and target in ids and anchor not in ids[target]:
                lost.add((path.name, link))
    assert lost == set()


# ---------------------------------------------------------------- how it looks

@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_pages_have_enough_contrast_by_day_and_by_night(book, address, width, scheme):
    book.set_viewport_size({"width": width, "height": 900})
    book.emulate_media(color_scheme=scheme)
    for name in LOOKED_AT:
        opened(book, address + name)
        book.add_style_tag(content="* { transition: none !important }")    # colours do not fade in
        book.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert book.evaluate(FAINT) == [], name
        assert book.evaluate(WIDER) <= 0, name
        paper = book.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", paper)[:3])) < 200) == (scheme == "dark"), name
    opened(book, address + LESSON)
    lab.screenshot(book, f"book-{width}-{scheme}")
    for picture in book.locator("article img").all()[:6]:
        shade = picture.evaluate("one => getComputedStyle(one).backgroundColor")
        assert scheme == "light" or shade == "rgb(255, 255, 255)"
        assert picture.get_attribute("alt")


# ---------------------------------------------------------------- reading it

def test_an_answer_opens_and_shows_what_stands_below_the_question(book, address):
    opened(book, address + LESSON)
    question = book.locator("#predict-figure")
    below = book.locator("#run-figure .cell_output")
    seen = "one => one.checkVisibility({contentVisibilityAuto: true}) && one.getAttribute('hidden') === null"
    assert not below.evaluate(seen) and book.locator("#run-figure .cell_input").is_visible()
    assert book.locator("#run-figure .course-wait").is_visible()
    choice = question.locator("details").last
    choice.locator("summary").focus()
    book.keyboard.press("Enter")
    assert choice.locator("p").is_visible() and "Yes" in choice.locator("p").inner_text()
    below.locator("img").first.wait_for()    # its file is loaded when it comes into view
    assert below.evaluate(seen) and below.locator("img").first.is_visible()
    assert not book.locator("#run-figure .course-wait").is_visible()
    choice.locator("summary").click()
    assert not below.evaluate(seen)


# ---------------------------------------------------------------- what moves

def picture(book, cell):
    """What the picture of a widget looks like, as PNG."""
    book.locator(f"#{cell}").scroll_into_view_if_needed()    # the still picture is loaded then
    there = book.locator(f"#{cell} .cell_output canvas, #{cell} .cell_output img")
    there.wait_for()
    return there.screenshot()


def press(book, key, cell, argument):
    """Press a key on a control of a widget, and wait until the picture that is drawn ahead is there."""
    book.locator(f"#{cell}-{argument}").focus()
    book.keyboard.press(key)
    book.wait_for_function(
        "([cell, text]) => document.querySelector(`#${cell} canvas`)?.ariaLabel.includes(text)",
        arg=[cell, f"{argument} {shown(book, cell, argument)}"])


def shown(book, cell, argument):
    """The value of a control, as the reader sees it."""
    control = book.locator(f"#{cell}-{argument}")
    if control.evaluate("one => one.matches('select')"):
        return control.evaluate("one => one.value")
    text = control.locator("xpath=following-sibling::span").inner_text()
    assert text == control.get_attribute("aria-valuetext")
    return text


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_a_slider_moves_through_pictures_that_were_drawn_ahead(book, address, width, scheme):
    asked, cell = [], "draw-stack"
    book.on("request", lambda one: "/frames/" in one.url and asked.append(one.url))
    book.set_viewport_size({"width": width, "height": 900})
    book.emulate_media(color_scheme=scheme)
    opened(book, address + "notebooks/02_convolutional_sequences.html")
    assert asked == [] and shown(book, cell, "layers") == "3"
    seen = [picture(book, cell)]
    place = book.locator(f"#{cell} .cell_output img").bounding_box()
    press(book, "ArrowRight", cell, "layers")
    assert shown(book, cell, "layers") == "4" and len(asked) == 1
    seen.append(picture(book, cell))
    press(book, "ArrowDown", cell, "dilation")    # a menu; the slider stays where it is
    assert (shown(book, cell, "layers"), shown(book, cell, "dilation")) == ("4", "stays 1")
    seen.append(picture(book, cell))
    assert len(set(seen)) == 3 and len(asked) == 1
    press(book, "ArrowUp", cell, "dilation")
    assert picture(book, cell) == seen[1]
    press(book, "ArrowLeft", cell, "layers")
    canvas = book.locator(f"#{cell} canvas")
    assert canvas.bounding_box() == place and "layers 3" in canvas.get_attribute("aria-label")
    assert book.evaluate(WIDER) <= 0 and book.evaluate(FAINT) == []
    lab.screenshot(book, f"book-slider-{width}-{scheme}")


def test_of_many_sliders_one_moves_at_a_time_and_sentences_stand_in_a_menu(book, address):
    opened(book, address + "notebooks/05_query_key_value.html")
    cell = "explore-tokens"
    press(book, "ArrowRight", cell, "token_2")
    first = shown(book, cell, "token_2")
    press(book, "ArrowRight", cell, "token_3")
    assert first != "0" and [shown(book, cell, f"token_{j}") for j in (1, 2)] == ["1", "0"]
    assert "one control moves" in book.locator(f"#{cell} form").inner_text().lower()
    opened(book, address + LESSON)
    cell, before = "explore-alignment", picture(book, "explore-alignment")
    sentences = book.locator(f"#{cell}-sentence option").all_inner_texts()
    assert {"I am a student", "they are cats"} < set(sentences)
    press(book, "End", cell, "sentence")
    assert shown(book, cell, "sentence") == sentences[-1] and picture(book, cell) != before


@pytest.mark.parametrize("width", [360, 1280])
def test_the_capstones_page_translates_inside_the_book(book, address, width):
    asked = []
    book.on("request", lambda one: "capstone" in one.url and asked.append(one.url))
    book.set_viewport_size({"width": width, "height": 900})
    opened(book, address + "notebooks/12_transformer.html")
    assert asked == []    # it is loaded when it comes into sight
    frame = book.locator(".course-embedded iframe")
    frame.scroll_into_view_if_needed()
    assert frame.get_attribute("title") == "The course's Transformer"
    inside = frame.content_frame
    inside.locator("#english").fill("they are cats")
    inside.locator("form .go").click()
    expect = "() => document.querySelector('#sentence')?.textContent.includes('고양이')"
    book.frames[-1].wait_for_function(expect)
    assert book.evaluate(WIDER) <= 0
    book.locator(".course-embedded a").click()
    book.wait_for_url("**/notebooks/capstone.html")


# ---------------------------------------------------------------- finding something

def test_excerpts_of_a_search_can_be_read(book, address):
    opened(book, f"{address}search.html?q=softmax")
    book.wait_for_function("document.querySelector('.search-summary')?.textContent.match(/\\d/)")
    count = book.locator("#search-results li").count()
    book.wait_for_function("count => document.querySelectorAll('#search-results .context').length === count",
                           arg=count)
    excerpts = book.locator("#search-results .context").all_inner_texts()
    assert count > 10 and sum("softmax" in one.lower() for one in excerpts) > 10
    assert [one for one in excerpts if re.search(r"\$|\\[a-zA-Z(\[]", one)] == []
    assert any(re.search("p_i = ", one) for one in excerpts), "a formula as text"


@pytest.mark.parametrize("words, name", [    # 정규 is a part of the words 층 정규화 and 배치 정규화
    ("벡터", "glossary.html"), ("정규", "glossary.html"), ("정렬", "04_attention_alignment.html"),
    ("Bahdanau", "04_attention_alignment.html")])
def test_the_search_finds_english_and_korean_words(book, address, words, name):
    opened(book, f"{address}search.html?q={words}")
    book.wait_for_function("document.querySelector('.search-summary')?.textContent.match(/\\d/)")
    links = book.locator("#search-results li a").evaluate_all("all => all.map(one => one.href)")
    assert any(name in link for link in links), links


def test_pages_follow_each_other_in_the_readmes_order(book, built, address):
    order = [found[3] for found in LINK.finditer((ROOT / "README.md").read_text(encoding="utf-8"))
             if found[2] == "notebooks"]
    opened(book, address + f"notebooks/{order[0]}.html")
    listed = book.locator("nav.bd-links a").evaluate_all("all => all.map(one => one.pathname)")
    listed = [name.split("/")[-1][:-5] for name in listed if name.startswith("/notebooks/")]
    assert listed == order
    for stem, following in zip(order, order[1:]):
        text = (built / "notebooks" / f"{stem}.html").read_text(encoding="utf-8")
        assert re.search(rf'<a class="right-next"\s+href="{following}.html"', text), stem
    book.locator("a.right-next").click()
    book.wait_for_url(f"**/{order[1]}.html", wait_until="commit")
    book.locator("a.left-prev").click()
    book.wait_for_url(f"**/{order[0]}.html", wait_until="commit")


def test_folded_code_opens_and_files_can_be_downloaded(book, built, address):
    opened(book, address + LESSON)
    folded = book.locator("#set-up details")
    assert not folded.locator("pre").is_visible()
    folded.locator("summary").click()
    assert folded.locator("pre").is_visible()
    assert book.locator("article .highlight pre").count() == book.locator("article button.copybtn").count()
    files = book.locator(".course-files a[download]").evaluate_all("all => all.map(one => one.pathname)")
    assert len(files) == 2
    for file in files:
        assert exercise.read(built / file.lstrip("/")).cells


def test_the_theme_is_switched_with_the_keyboard_and_the_book_reads_from_a_folder(book, built):
    opened(book, (built / LESSON).as_uri())
    assert all(fine for fine, _ in book.evaluate(FORMULAS))
    before = picture(book, "explore-alignment")
    press(book, "End", "explore-alignment", "sentence")
    assert picture(book, "explore-alignment") != before
    for theme in ("dark", "light"):
        book.locator(".theme-switch-button:visible").first.focus()
        book.keyboard.press("Enter")
        book.locator(f".theme-change-button[data-mode={theme}]:visible").first.focus()
        book.keyboard.press("Enter")
        assert book.evaluate("document.documentElement.dataset.theme") == theme
    book.evaluate("localStorage.clear()")

"""The capstone's page runs the model in a browser, and what it computes there is what PyTorch computes."""

import math
import random
import re
from functools import partial

import pytest
import torch
from torch import nn

from course_lib.data.english_korean import pairs, text, tokenise, translate
from course_lib.data.vocab import BOS, EOS, PAD
from course_lib.decoding import beam_search, greedy_decode
from course_tools import exercise
from course_tools.authoring import capstone_page, stored
from course_tools.capstone import browser, gather, report, trainer
from course_tools.capstone.translator import ENGLISH, KOREAN, Translator
from course_tools.items import registry

PAGE = exercise.ROOT / "notebooks" / "capstone.html"
LARGEST = 3_000_000    # bytes
Transformer = registry.find("Transformer")[1].reference
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
LOGITS = """sentences => sentences.map(({ src, tgt }) => {
  let state = model.begin(model.encode(src).memory);
  return tgt.map(token => {
    const step = model.step(token, state);
    state = step.state;
    return [...step.logits];
  });
})"""


@pytest.fixture
def shipped(page):
    """The page of the course in a browser, at rest; what it asks for elsewhere is an error."""
    yield from opened(page, PAGE)


def opened(page, path):
    problems = []
    page.on("request", lambda one: one.url.startswith(("file:", "data:")) or problems.append(one.url))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda one: one.type == "error" and problems.append(one.text))
    page.emulate_media(reduced_motion="reduce")    # all tokens appear at once
    page.goto(path.as_uri())
    yield page
    assert problems == []


def fifty(seed=1):
    return pairs(50, torch.Generator().manual_seed(seed), longest=20)


def farthest(page, model, some):
    """The largest difference between the browser's logits and those of `model`, over these pairs."""
    rows = [{"src": ENGLISH.encode(pair.english), "tgt": KOREAN.encode(pair.korean, bos=True)}
            for pair in some]
    there = page.evaluate(LOGITS, rows)
    with torch.no_grad():
        here = [model(torch.tensor([row["src"]]), torch.tensor([[*row["tgt"], EOS]]), PAD)[0] for row in rows]
    assert len(there) == len(some)
    return max((torch.tensor(one) - other).abs().max().item() for one, other in zip(there, here, strict=True))


# ---------------------------------------------------------------- the arithmetic

@pytest.mark.browser
def test_logits_in_the_browser_are_those_of_pytorch(shipped):
    model, _ = browser.unpacked(PAGE.read_text(encoding="utf-8"))
    assert farthest(shipped, model, fifty()) < 1e-4
    with torch.no_grad():    # this comparison can fail: a shift that is small for a weight is found
        model.decoder[1].cross_attention.W_V.weight[3, 5] += 0.05
    assert farthest(shipped, model, fifty()[:5]) > 1e-4


@pytest.mark.browser
def test_a_model_of_other_sizes_runs_as_well(page, tmp_path):
    torch.manual_seed(0)
    model = Transformer(len(ENGLISH), len(KOREAN), d_model=24, h=3, d_ff=40, N=3).eval()
    for part in model.modules():    # as no norm is after training
        if isinstance(part, nn.LayerNorm):
            nn.init.normal_(part.weight), nn.init.normal_(part.bias)
    result = trainer.Result(Translator(model, greedy_decode), [3.0, 2.0] * 20, 0.5, [], set())
    path = tmp_path / "mine.html"
    path.write_text(report.draw(result), encoding="utf-8")
    for one in opened(page, path):
        assert farthest(one, model, fifty(2)) < 1e-4


@pytest.mark.browser
def test_both_ways_of_decoding_are_those_of_the_library(shipped):
    model, data = browser.unpacked(PAGE.read_text(encoding="utf-8"))
    sources = [ENGLISH.encode(pair.english) for pair in fifty(3)[:25]]
    run = "sources => sources.map(ids => [greedy(model, ids, 30), beam(model, ids, 30)[0].tokens])"
    for ids, both in zip(sources, shipped.evaluate(run, sources), strict=True):
        src = torch.tensor([ids])

        def step(token, state):
            logits, state = model.step(torch.tensor([token]), state)
            return logits[0], state
        with torch.no_grad():
            begin = step, model.begin(src), BOS, EOS
            wanted = greedy_decode(*begin, 30), beam_search(*begin, 4, 30)
        assert tuple(KOREAN.decode(tokens) for tokens in both) == tuple(map(KOREAN.decode, wanted))


@pytest.mark.browser
def test_words_and_text_are_those_of_the_course(shipped):
    some, draw = fifty(4), random.Random(0)
    odd = [draw.choices(KOREAN.tokens[4:], k=8) for _ in range(300)]    # what a model may say while it learns
    spoken = shipped.evaluate("all => all.map(one => language.words(one).map(word => word.text).join(' '))",
                              [list(pair.korean) for pair in some] + odd)
    assert spoken == [text(pair.korean) for pair in some] + list(map(text, odd))
    english = ["They are cats.", "I don't know MINSU!", "  the   students, (all) of them ", "", "can't l'été"]
    assert shipped.evaluate("all => all.map(one => language.tokenise(one))", english) == [
        list(tokenise(one)) for one in english]


@pytest.mark.parametrize("word, near", [("drogon", "dog"), ("studint", "student"), ("cta", "cat"),
                                        ("minsoo", "Minsu"), ("libary", "library"), ("x", None)])
@pytest.mark.browser
def test_an_unknown_word_has_a_near_one(shipped, word, near):
    found = shipped.evaluate("word => language.nearest(word)", word)
    assert 1 <= len(found) <= 3 and set(found) <= set(ENGLISH.tokens[4:])
    assert near is None or found[0] == near


# ---------------------------------------------------------------- by mouse, keys and finger

@pytest.mark.browser
def test_a_sentence_is_translated_and_an_unknown_word_replaced(shipped):
    shipped.fill("#english", "they are kats")
    shipped.keyboard.press("Enter")
    assert "“kats” is not one of the course's words" in shipped.inner_text("#hint")
    shipped.locator("#hint button").first.click()
    assert shipped.input_value("#english") == "they are cats" and shipped.inner_text("#hint") == ""
    assert shipped.inner_text("#sentence") == text(translate("they are cats").korean)
    assert shipped.locator(".korean button").count() == len(translate("they are cats").korean) + 1


@pytest.mark.browser
def test_tokens_appear_one_by_one_unless_motion_is_not_wanted(page):
    page.emulate_media(reduced_motion="no-preference")
    page.goto(PAGE.as_uri())
    first = page.locator(".korean button").count()
    page.wait_for_function("document.querySelectorAll('.korean button').length === shown.steps.length")
    assert first < page.locator(".korean button").count()


@pytest.mark.browser
def test_a_token_shows_its_candidates_and_every_head(shipped):
    shipped.fill("#english", "they are cats")
    shipped.keyboard.press("Enter")
    shipped.locator(".korean button").nth(2).click()
    assert shipped.locator("#candidates li").count() == 5
    assert "고양이" in shipped.inner_text("#candidates li.most")
    for kind, keys in (("cross", ["they", "are", "cats"]), ("self", ["<bos>", "그들", "은"]),
                       ("encoder", ["they", "are", "cats"])):
        shipped.click(f"#kinds [value={kind}]")
        cards = shipped.locator(".card")
        assert cards.count() == 8 and cards.first.locator(".key").all_inner_texts() == keys
        weights = cards.evaluate_all("""cards => cards.map(card => [...card.querySelectorAll('.bar')].map(
            bar => Number(bar.style.getPropertyValue('--p'))))""")
        assert all(abs(sum(row) - 1) < 1e-5 for row in weights)
    assert shipped.locator("#candidates").is_hidden()    # of an English word
    shipped.locator(".card").first.click()
    assert shipped.locator(".card[aria-pressed=true]").count() == 1
    drawn = shipped.locator("#stage path").evaluate_all("all => all.map(e => e.classList[0])")
    assert set(drawn) == {"head-0"}


@pytest.mark.browser
def test_the_weights_shown_are_the_models(shipped):
    model, _ = browser.unpacked(PAGE.read_text(encoding="utf-8"))
    pair = translate("the teacher reads a book")
    src = torch.tensor([ENGLISH.encode(pair.english)])
    tgt = torch.tensor([KOREAN.encode(pair.korean, bos=True, eos=True)])
    with torch.no_grad():
        _, (encoder, own, cross) = model.look(src, tgt, PAD)
    found = shipped.evaluate("([src, tgt]) => trace(model, src, tgt)", [src[0].tolist(), tgt[0, 1:].tolist()])

    def same(there, here):
        return torch.allclose(torch.tensor(there, dtype=torch.float32), here, atol=1e-5)
    for layer in range(2):
        for i, step in enumerate(found["steps"]):
            assert same(step["cross"][layer], cross[layer][0, :, i])
            assert same(step["self"][layer], own[layer][0, :, i, :i + 1])
        for word in range(len(pair.english)):
            assert same(found["encoder"][layer][word], encoder[layer][0, :, word])


@pytest.mark.browser
def test_everything_can_be_done_with_keys(shipped):
    shipped.locator("#english").focus()
    seen = []
    for _ in range(40):
        shipped.keyboard.press("Tab")
        seen.append(shipped.evaluate("""() => { const e = document.activeElement;
            return e.closest('.korean') ? 'korean' : e.closest('.english') ? 'english' :
                   e.closest('.card') ? 'card' : e.closest('#kinds') ? 'kinds' : e.id || e.className }"""))
        if seen[-1] == "korean":
            break
    assert seen.count("english") == 1 and seen[-1] == "korean" and "go" in seen and "greedy" in seen
    chosen = "[...document.querySelectorAll('.korean button')].findIndex(e => e.ariaPressed === 'true')"
    before = shipped.evaluate(chosen)
    shipped.keyboard.press("ArrowLeft")
    assert shipped.evaluate(chosen) == before - 1
    assert shipped.evaluate("document.activeElement.ariaPressed") == "true"


@pytest.mark.browser
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_cut_off(shipped, width):
    shipped.set_viewport_size({"width": width, "height": 800})
    for row in ("korean", "english"):
        shipped.locator(f".{row} button").last.click()
        assert shipped.evaluate(WIDER) <= 0
        cut = shipped.evaluate("""() => [...document.querySelectorAll('.token, #sentence span, button')]
            .filter(e => e.checkVisibility() && (e.scrollWidth > e.clientWidth + 1
                       || e.getBoundingClientRect().right > innerWidth)).map(e => e.textContent)""")
        assert cut == []
    assert shipped.evaluate("document.fonts.check('20px \"Course Hangul\"', '고양이')")


@pytest.mark.browser
def test_a_beam_of_four_shows_its_hypotheses(shipped):
    shipped.check("#beam")
    ended = shipped.locator("#hypotheses li")
    assert 1 < ended.count() <= 4
    shipped.locator("#hypotheses summary").click()
    assert ended.first.inner_text().startswith(shipped.inner_text("#sentence"))


# ---------------------------------------------------------------- the file

FONT = re.compile(r"font/woff;base64,[^)]*")    # its bytes depend on the versions of zlib and fontTools


def test_the_page_of_the_course_is_drawn_from_the_weights_that_it_holds():
    html = PAGE.read_text(encoding="utf-8")
    drawn = report.draw(report.stored(html), mine=False)
    assert FONT.sub("", drawn) == FONT.sub("", html), "run python -m course_tools.authoring capstone"
    assert len(html.encode()) < LARGEST and not re.search(r'(src|href)="(?!data:|#)', html)
    assert report.stored(html).right >= trainer.GOAL and "who built" not in html.lower()


def test_the_page_is_drawn_again_where_it_lies(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    (tmp_path / "notebooks").mkdir()
    there = tmp_path / "notebooks" / "capstone.html"
    html = PAGE.read_text(encoding="utf-8")
    there.write_text(html.replace("token by token", "all at once"), encoding="utf-8")
    capstone_page.capstone([])
    assert FONT.sub("", there.read_text(encoding="utf-8")) == FONT.sub("", html)
    assert "1." in capsys.readouterr().out


def test_without_a_page_the_librarys_model_is_trained(tmp_path, monkeypatch, capsys):
    for name, value in {"CORPUS": 200, "HELD_OUT": 4, "LONGEST": 5, "GOAL": 0.0,
                        "SIZES": {"d_model": 8, "h": 2, "d_ff": 16, "N": 1}}.items():
        monkeypatch.setattr(trainer, name, value)
    monkeypatch.setattr(capstone_page, "train", partial(trainer.train, steps=3))
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    (tmp_path / "notebooks").mkdir()
    capstone_page.capstone([])
    found = report.stored((tmp_path / "notebooks" / "capstone.html").read_text(encoding="utf-8"))
    assert len(found.losses) == 3 and found.translator.model.source.embedding_dim == 8


def test_a_model_of_the_solutions_parts_gets_a_live_page(capsys):
    parts = gather(exercise.ROOT / "solutions")
    sheet = exercise.read(exercise.ROOT / "solutions" / "12_transformer.ipynb")
    names = {"math": math, "nn": nn, "torch": torch, **parts}
    exec(exercise.answers(sheet, ["Transformer"])[0]["Transformer"], names)
    torch.manual_seed(0)
    model = names["Transformer"](len(ENGLISH), len(KOREAN), **trainer.SIZES)
    trainer._use_norm(model, parts["layer_norm"])
    translator = Translator(model.eval(), parts["greedy_decode"])
    _, difference = browser.twin(translator, trainer.SAMPLES)
    assert difference < 1e-5
    html = report.draw(trainer.Result(translator, [2.0, 1.0], 0.5, list(parts.collected.values()), set()))
    assert 'id="weights"' in html and html.count('class="own"') == len(parts)


def test_a_model_that_computes_otherwise_gets_no_live_page():
    class Halved(Transformer):
        def embed(self, *given, **also):
            return super().embed(*given, **also) / 2
    torch.manual_seed(0)
    sizes = {"d_model": 16, "h": 2, "d_ff": 32, "N": 1}
    right, other = (Translator(kind(len(ENGLISH), len(KOREAN), **sizes).eval(), greedy_decode)
                    for kind in (Transformer, Halved))
    assert browser.twin(right, trainer.SAMPLES)[1] < 1e-6
    assert browser.twin(other, trainer.SAMPLES) is None
    html = report.draw(trainer.Result(other, [1.0], 0.5, [], set()))
    assert "does not run in the page" in html and "<script" not in html


def test_glosses_name_every_meaning():
    data = browser.unpacked(PAGE.read_text(encoding="utf-8"))[1]
    meant = dict(zip(data["korean"], data["gloss"]))
    assert meant["고양이"] == "cat" and meant["내"] == "my / I" and meant["은"] == "TOPIC"
    assert set(meant["개"].split(" / ")) == {"dog", "CL"}

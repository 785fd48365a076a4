"""The page of thirty pairs is what the grammar gives, and its pictures draw every link."""

from course_lib import plots
from course_lib.data.english_korean import translate
from course_tools.authoring import pairs_page

DOCS = pairs_page.Path(__file__).parents[2] / "docs"


def test_the_page_is_what_the_grammar_gives():
    some = pairs_page.thirty()
    assert len(set(some)) == 30
    there = (DOCS / "english_korean.md").read_text(encoding="utf-8")
    assert there == pairs_page.page(some), "run python -m course_tools.authoring.pairs_page docs"
    pictures = sorted(DOCS.glob("english_korean_*.png"))
    assert len(pictures) == 6 and all(f"({path.name})" in there for path in pictures)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)


def test_pictures_hold_every_pair():
    some = pairs_page.thirty()[:10]
    figures = list(pairs_page.pictures(some))
    assert [len(figure.axes) for figure in figures] == [5, 5]
    for figure, five in zip(figures, (some[:5], some[5:]), strict=True):
        for axes, pair in zip(figure.axes, five, strict=True):
            written = [text.get_text() for text in axes.texts]
            assert all(token in written for token in (*pair.english, *pair.korean))
            assert len(axes.lines) == len(pair.possible)


def test_sure_links_are_solid_and_possible_ones_dotted():
    pair = translate("I am a student")
    draw = lambda: plots.links(pair.english, pair.korean, pair.sure, pair.possible, title="One is possible")
    figure = draw()
    looks = [line.get_linestyle() for line in figure.axes[0].lines]
    assert looks.count("-") == len(pair.sure) == 3 and looks.count(":") == 1
    assert figure._repr_png_() == draw()._repr_png_()

"""A finding asserts a comparison and shows its values; stored outputs are compared but for the values."""

import math
from unittest import mock

import nbformat
import pytest
import strict_nbval
import torch

from course_lib.findings import FindingFailed, finding, identity
from course_tools.authoring.findings import ROW
from course_tools.authoring.stored import sanitized

SENTENCE = "Without the near letter the RNN names the far one; with it, it does not."
VALUES = {"without the near letter": torch.tensor(0.987), "with it": 0.01}
SEEDS = {"without the near letter": (0.97, 1), "with it": (0, 0.02)}
TEXT = f"""{SENTENCE}
  without the near letter   this run 0.99   five seeds: 0.97 to 1.00
  with it                   this run 0.01   five seeds: 0.00 to 0.02"""
HTML = f"""<table class="course-finding">
<caption>{SENTENCE}</caption>
<tr><th scope="col"></th><th scope="col">this run</th><th scope="col">five seeds</th></tr>
<tr><th scope="row">without the near letter</th><td class="measured">0.99</td><td>0.97 to 1.00</td></tr>
<tr><th scope="row">with it</th><td class="measured">0.01</td><td>0.00 to 0.02</td></tr>
</table>"""


def shown(call, *arguments, **options):
    """What a call displays: (text, HTML)."""
    with mock.patch("course_lib.findings.display") as display:
        call(*arguments, **options)
    (table,) = display.call_args.args
    return repr(table), table._repr_html_()


def test_a_finding_shows_sentence_values_and_ranges_and_no_bound():
    assert shown(finding, SENTENCE, VALUES, more_by=0.5, seeds=SEEDS) == (TEXT, HTML)


def test_a_row_of_a_study_brings_its_own_range():
    spread = mock.MagicMock(median=0.5, low=0.25, high=0.75, seeds=3)
    spread.__float__.return_value = 0.5
    text, page = shown(finding, "a > b", {"a": spread, "b": torch.tensor(0.1)}, seeds={"b": (0.0, 0.2)})
    assert text.splitlines()[1:] == ["  a   median 0.50   three seeds: 0.25 to 0.75",
                                     "  b   this run 0.10   five seeds: 0.00 to 0.20"]
    assert "<td>0.50</td><td>0.25 to 0.75</td>" in page and '<td class="measured">0.10</td>' in page


@pytest.mark.parametrize("value, digits, text", [
    (3, 2, "3"), (torch.tensor(3), 2, "3"), (3.0, 2, "3.00"), (1.25e-7, 2, "1.2e-07"), (-2.5, 1, "-2.5"),
    (123456.0, 2, "1.2e+05"), (123456, 2, "123456")])
def test_numbers_of_every_size_are_shown(value, digits, text):
    shows = shown(finding, "x", {"a <b>": value, "b": -5}, digits=digits)
    row = ROW.match(shows[0].splitlines()[1])
    assert row.group("name", "kind", "value") == ("a <b>", "value", text) and "a &lt;b&gt;" in shows[1]


@pytest.mark.parametrize("values, bound", [
    ((2, 1), {}), ((3, 2, 1), {"more_by": 1}), ((8, 4, 2), {"times": 2}), ((1, 0), {"times": 9}),
    ((1, 1.05, 0.96), {"within": 0.1}), ((5, 2), {"more_by": 3})])
def test_what_holds_passes(values, bound):
    assert shown(finding, "so", dict(zip("abc", values)), **bound)


@pytest.mark.parametrize("values, bound, expected", [
    ((1, 1), {}, "a is 1, b is 1; expected the first to be larger"), ((1, 2), {}, "the first to be larger"),
    ((3, 2, 1.5), {"more_by": 1}, "b is 2, c is 1.50; expected a difference of at least 1"),
    ((8, 4, 3), {"times": 2}, "a factor of 2"), ((0, 0), {"times": 2}, "a factor of 2"),
    ((-1, -2), {"times": 2}, "a factor of 2"), ((1, 1.05, 0.94), {"within": 0.1}, "at most 0.1"),
    ((math.nan, 1), {}, "larger"), ((1, math.nan), {"within": 1}, "at most 1"),
    ((math.nan, 1), {"more_by": 1}, "at least 1"), ((1, math.nan), {"times": 2}, "a factor")])
def test_what_does_not_hold_fails_in_one_line(values, bound, expected):
    with pytest.raises(FindingFailed, match="^The finding does not hold: It is so. ") as failed:
        finding("It is so.", dict(zip("abc", values)), **bound)
    assert expected in str(failed.value) and failed.value._render_traceback_() == [str(failed.value)]
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("values, options, match", [
    ({"a": 1}, {}, "at least two values"), ({"a": 2, "b": 1}, {"more_by": 1, "times": 2}, "give one of"),
    ({"a": 2, "b": 1}, {"within": 0}, "above 0"), ({"a": 2, "b": 1}, {"seeds": {"c": (0, 1)}}, "are called")])
def test_what_is_no_comparison_is_an_error(values, options, match):
    with pytest.raises(ValueError, match=match):
        finding("x", values, **options)


def test_an_identity_says_equal_and_to_how_much():
    text, page = shown(identity, "Rows sum to 1", torch.full((3,), 1 + 1e-7), 1)
    assert text == "Rows sum to 1: equal, to 1e-6" and page.count("<strong>equal, to 1e-6</strong>") == 1
    assert shown(identity, "x", [torch.zeros(2), torch.ones(2)], torch.tensor([[0, 0], [1, 1]]), to=1e-12)
    assert shown(identity, "with minus infinity", torch.tensor([-math.inf]), torch.tensor([-math.inf]))


@pytest.mark.parametrize("left, right, match", [
    (1.0, 1.1, "differ by up to 1.0e-01"), (math.nan, math.nan, "not equal"),
    (torch.zeros(2), torch.zeros(3), r"the shapes differ, \(2,\) and \(3,\)"),
    (torch.zeros(2, 1), torch.zeros(2), "the shapes differ")])
def test_an_identity_that_does_not_hold_fails(left, right, match):
    with pytest.raises(FindingFailed, match=match):
        identity("x", left, right)


@pytest.mark.parametrize("shows", [TEXT, HTML], ids=["text", "html"])
def test_only_the_values_of_this_run_are_left_out(shows):
    for other in ("1.2e-07", "-3.00", "7", "inf"):
        assert sanitized(shows) == sanitized(shows.replace("0.99", other)), other
        assert sanitized(shows) == sanitized(shows.replace("0.01", other)), other
    for old, new in (("0.97", "0.96"), ("1.00", "0.99"), ("with it", "with that"), ("RNN", "LSTM"),
                     ("five seeds", "four seeds"), ("0.99", "0.99 or 0.98"), ("0.99", "good")):
        assert sanitized(shows.replace(old, new)) != sanitized(shows), old
    assert sanitized(shows.replace("this run", "median").replace(' class="measured"', "")).count("0.99") == 1


@pytest.mark.slow
@pytest.mark.parametrize("old, new, passes", [
    ("", "", True), ("0.99", "0.74", True), ("0.97", "0.90", False), ("with it<", "with<", False),
    ("  with it ", "  with   ", False)])
def test_strict_nbval_leaves_out_these_values_and_nothing_else(old, new, passes, tmp_path):
    source = ("from course_lib.findings import finding\nfinding(" + repr(SENTENCE) +
              f", {{'without the near letter': 0.987, 'with it': 0.01}}, more_by=0.5, seeds={SEEDS})")
    data = {"text/plain": TEXT.replace(old, new), "text/html": HTML.replace(old, new)}
    done = strict_nbval.compare(source, nbformat.v4.new_output("display_data", data=data), tmp_path)
    assert (done.returncode == 0) == passes, done.stdout.decode()

"""A claim asserts and shows its number; a strict comparison of stored outputs leaves out that number only."""

import math

import nbformat
import pytest
import strict_nbval
import torch

from course_lib.claims import ClaimFailed, claim, found
from course_tools.authoring.stored import sanitized

LINE = "RNNsearch, exact match                        0.91   claimed: above 0.6   five seeds: 0.88 to 0.93\n"


def test_a_claim_shows_the_number_the_bound_and_the_range(capsys):
    claim("RNNsearch, exact match", torch.tensor(0.912), above=0.6, seeds=(0.88, 0.93))
    assert capsys.readouterr().out == LINE


def test_a_range_has_the_digits_of_its_number(capsys):
    claim("x", 7, above=3, seeds=(6.4, 10), digits=1)
    assert capsys.readouterr().out.endswith("7.0   claimed: above 3   five seeds: 6.4 to 10.0\n")


@pytest.mark.parametrize("value, bounds, digits, shown", [
    (0.25, {"below": 1}, 2, "0.25   claimed: below 1"), (0, {"below": 1}, 2, "0.00   claimed: below 1"),
    (3.14159, {"above": 3, "below": 4}, 1, "3.1   claimed: between 3 and 4"),
    (1.25e-7, {"below": 1e-5}, 2, "1.2e-07   claimed: below 1e-05"),
    (-2, {"below": 0}, 0, "-2   claimed: below 0"),
    (123456, {"above": 1e4}, 0, "1.2e+05   claimed: above 10000")])
def test_numbers_of_every_size_are_shown(value, bounds, digits, shown, capsys):
    claim("x", value, digits=digits, **bounds)
    printed = capsys.readouterr().out
    assert printed.split(maxsplit=1)[1].strip() == shown
    (what, number), = found(printed)
    assert what == "x" and math.isclose(number, value, rel_tol=0.05, abs_tol=0.005)


@pytest.mark.parametrize("value, bounds", [
    (0.5, {"above": 0.6}), (0.6, {"above": 0.6}), (0.7, {"below": 0.6}), (9, {"above": 1, "below": 2}),
    (math.nan, {"above": 0.6}), (math.nan, {"below": 0.6})])
def test_a_claim_that_does_not_hold_fails_in_one_line(value, bounds):
    with pytest.raises(ClaimFailed, match="^The claim does not hold: accuracy is .*, claimed: ") as failed:
        claim("accuracy", value, **bounds)
    assert failed.value._render_traceback_() == [str(failed.value)]


def test_a_claim_without_a_bound_is_an_error():
    with pytest.raises(ValueError, match="needs a bound"):
        claim("accuracy", 0.5)


def test_only_the_measured_number_is_left_out():
    assert sanitized(LINE) == sanitized(LINE.replace("0.91", "1.2e-07"))
    assert sanitized(LINE) == sanitized(LINE.replace("0.91", "-3"))
    for old, new in (("0.6", "0.7"), ("0.88", "0.87"), ("0.93", "0.94"), ("RNNsearch", "RNNenc"),
                     ("claimed", "said"), ("0.91   ", "0.91 and 0.92   ")):
        assert sanitized(LINE.replace(old, new)) != sanitized(LINE), old
    assert sanitized("loss 0.91\n") == "loss 0.91\n" and sanitized("a  0.91\n") == "a  0.91\n"


@pytest.mark.slow
@pytest.mark.parametrize("stored, passes", [
    (LINE, True), (LINE.replace("0.91", "0.74"), True), (LINE.replace("0.6", "0.5"), False),
    (LINE.replace("0.93", "0.99"), False), (LINE + "0.91\n", False)], ids=range(5))
def test_strict_nbval_leaves_out_that_number_and_nothing_else(stored, passes, tmp_path):
    source = ("from course_lib.claims import claim\n"
              "claim('RNNsearch, exact match', 0.91, above=0.6, seeds=(0.88, 0.93))")
    output = nbformat.v4.new_output("stream", name="stdout", text=stored)
    done = strict_nbval.compare(source, output, tmp_path)
    assert (done.returncode == 0) == passes, done.stdout.decode()

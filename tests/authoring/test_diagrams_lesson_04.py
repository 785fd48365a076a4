"""The numbers in lesson 04's diagrams are those that the formulas give."""

import pytest
import torch

from course_lib.data.english_korean import translate
from course_lib.metrics import alignment_error_rate
from course_lib.models.attention import additive_score, attend, dot_score
from course_tools.authoring.diagrams import lesson_04 as drawn

TWO_DIGITS = {"rtol": 0, "atol": 0.0051}
H = torch.tensor([drawn.STATES])                                   # (1, 3, 2)


def test_bahdanaus_step():
    s_2, identity = torch.tensor([drawn.OLD]), torch.eye(2)
    e = additive_score(s_2, H, identity, identity, torch.tensor([-1.0, 2.0]))
    context, weights = attend(e, H)
    s_3 = torch.tanh(0.5 * s_2 + torch.tensor([drawn.BEFORE]) + context)
    W_o = torch.zeros(4, 4)
    W_o[2, 0] = W_o[3, 2] = 4
    W_o[0, 1] = W_o[1, 3] = 2
    p = (torch.cat([s_3, context], dim=-1) @ W_o).softmax(dim=-1)
    for found, shown in [(e, drawn.SCORES), (weights, drawn.WEIGHTS), (context, drawn.CONTEXT),
                         (s_3, drawn.NEW), (p, [chance for _, _, chance in drawn.PREDICTED])]:
        torch.testing.assert_close(found[0], torch.tensor(shown), **TWO_DIGITS)


def test_luongs_weights():
    _, weights = attend(dot_score(torch.tensor([[0.0, 2.0]]), H), H)
    torch.testing.assert_close(weights[0], torch.tensor(drawn.LUONG_WEIGHTS), **TWO_DIGITS)


def test_the_links():
    pair = translate("they are cats")
    assert [word for word, _ in drawn.KOREAN] == list(pair.korean) and drawn.WORDS == list(pair.english)
    assert set(drawn.SURE) == pair.sure and set(drawn.SURE + drawn.POSSIBLE) == pair.possible
    rate = alignment_error_rate({*drawn.SURE, *drawn.WRONG}, pair.sure, pair.possible)
    assert rate == pytest.approx(0.14, abs=0.005) and "= 0.14" in drawn.links()

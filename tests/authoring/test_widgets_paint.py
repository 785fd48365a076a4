"""A table of cells to click: the drawing follows every click; with the static switch on it stands still."""

import ipywidgets
import pytest
import torch

from course_lib import plots, widgets

WORDS = ["a", "b"]
CELLS = torch.tensor([[True, False], [True, True]])


@pytest.fixture
def seen():
    """What `draw` was called with: (table as lists, layers)."""
    return []


@pytest.fixture
def draw(seen):
    def draw(cells, layers=1):
        seen.append((cells.tolist(), layers))
        if not cells.any():
            raise ValueError("<nobody> may attend")
        return plots.heatmap(cells.float(), "cells")
    return draw


def buttons(box):
    return [part for part in box.children[0].children if isinstance(part, ipywidgets.ToggleButton)]


def test_with_the_static_switch_on_the_default_picture_is_drawn(draw, seen, monkeypatch):
    monkeypatch.setenv("COURSE_STATIC", "1")
    assert isinstance(widgets.paint(draw, CELLS, WORDS, WORDS, layers=[1, 2]), plots.Picture)
    assert seen == [(CELLS.tolist(), 1)]


@pytest.fixture
def live(draw, monkeypatch):
    monkeypatch.setenv("COURSE_STATIC", "0")
    return widgets.paint(draw, CELLS, WORDS, WORDS, layers=[1, 2])


def test_a_click_turns_a_cell_and_draws_anew(live, seen):
    before = live.children[-2].value
    cell = buttons(live)[1]
    assert (cell.value, cell.icon) == (False, "")
    cell.value = True
    assert seen[-1] == ([[True, True], [True, True]], 1) and cell.icon == "check"
    assert live.children[-2].value != before
    assert CELLS.tolist() == [[True, False], [True, True]], "the table that was given stays"


def test_the_other_controls_draw_anew_too(live, seen):
    live.children[1].value = 2
    assert seen[-1] == (CELLS.tolist(), 2)


def test_an_error_is_shown_and_the_cells_stay_alive(live, seen):
    for cell in buttons(live):
        cell.value = False
    assert "&lt;nobody&gt; may attend" in live.children[-1].value
    buttons(live)[0].value = True
    assert live.children[-1].value == "" and seen[-1] == ([[True, False], [False, False]], 1)


def test_words_stand_beside_the_cells(live):
    labels = [part.value for part in live.children[0].children if isinstance(part, ipywidgets.Label)]
    assert labels == ["", "a", "b", "a", "b"]

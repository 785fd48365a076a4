"""The capstone takes what passes, says what it lends and why, and points to the part that breaks."""


import math

import pytest
import torch
from torch import nn

from course_lib.data.english_korean import pairs, text, translate
from course_lib.data.vocab import BOS, EOS, PAD
from course_lib.decoding import beam_search, greedy_batch, greedy_decode
from course_lib.models.transformer import Transformer
from course_lib.training import label_smoothing_loss, warmup_rate
from course_lib.training import train as loop
from course_tools import capstone, exercise
from course_tools.answers.collect import CollectedAnswer
from course_tools.capstone import report, trainer
from course_tools.capstone.components import EXERCISES
from course_tools.capstone.translator import Translator
from course_tools.items import registry

NAMES = [name for names in EXERCISES.values() for name in names]
OWN = (Transformer, label_smoothing_loss, warmup_rate, beam_search, loop)
SOLUTIONS = exercise.ROOT / "solutions"


@pytest.fixture
def hand_in(tmp_path):
    """hand_in(stem, item=source, ...): the solution of an exercise with these answers, in tmp_path."""
    def write(stem, **answers):
        notebook = exercise.read(SOLUTIONS / f"{stem}.ipynb")
        for cell in notebook.cells:
            cell.source = answers.get(exercise.grade_id(cell), cell.source)
        (tmp_path / f"{stem}.ipynb").write_text(exercise.text(notebook), encoding="utf-8")
    return write


# ---------------------------------------------------------------- gather

def test_all_solutions_together_are_all_ones_own(capsys):
    parts = capstone.gather(SOLUTIONS)
    assert list(parts) == NAMES and all(part.mine for part in parts.collected.values())
    assert capsys.readouterr().out.count("✓") == len(NAMES)


def test_later_parts_run_on_the_learners_earlier_ones(tmp_path, hand_in):
    hand_in("09_multi_head_attention")
    hand_in("11_transformer_blocks")
    parts = capstone.gather(tmp_path)
    heads = parts["MultiHeadAttention"]
    seen = heads.forward.__globals__
    assert seen["split_heads"] is parts["split_heads"] is not registry.find("split_heads")[1].reference
    assert seen["merge_heads"] is parts["merge_heads"]
    assert type(parts["EncoderBlock"](8, 2, 16).attention) is heads
    assert not parts.collected["attention"].mine and seen["attention"] is parts["attention"]


def test_where_there_is_nothing_the_library_stands_in(tmp_path, capsys):
    parts = capstone.gather(tmp_path)
    assert list(parts) == NAMES and not any(part.mine for part in parts.collected.values())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(NAMES) and all(line.startswith("· ") for line in lines)
    assert "there is no 03_seq2seq.ipynb beside this notebook" in lines[0]


@pytest.mark.parametrize("source, why", [
    (f"def split_heads(X, h):\n    {exercise.STUB}", "exercise 09 has no answer for it yet"),
    ("def split_heads(X, h):\n    return X.view(len(X), h, X.size(1), -1)", "(course check 09)"),
    ("def split_heads(X, h)\n    return X", "yours raises SyntaxError"),
    ("def split_heads(X, h):\n    return nowhere", "name 'nowhere' is not defined"),
    ("raise SystemExit('<b>')", "yours raises SystemExit: <b>"),
    ("from course_lib.models.attention import split_heads", "yours does not count"),
    ("def other(X, h):\n    return X", "the cell does not define split_heads"),
])
def test_an_answer_that_does_not_pass_costs_nothing_else(tmp_path, hand_in, source, why):
    hand_in("09_multi_head_attention", split_heads=source)
    found = capstone.gather(tmp_path).collected
    assert why in found["split_heads"].why and "\n" not in found["split_heads"].line
    assert found["merge_heads"].mine and found["MultiHeadAttention"].mine
    assert found["split_heads"].answer is registry.find("split_heads")[1].reference


def test_a_broken_notebook_costs_its_own_parts(tmp_path, hand_in):
    hand_in("09_multi_head_attention")
    (tmp_path / "08_self_attention_and_masks.ipynb").write_text("{", encoding="utf-8")
    found = capstone.gather(tmp_path).collected
    assert "incomplete or damaged" in found["causal_mask"].why and found["split_heads"].mine


# ---------------------------------------------------------------- train

@pytest.fixture
def small(monkeypatch):
    """Few and short sentences, a small model, no goal: what matters here is not how well it does."""
    for name, value in {"CORPUS": 200, "HELD_OUT": 4, "LONGEST": 5, "GOAL": 0.0,
                        "SIZES": {"d_model": 8, "h": 2, "d_ff": 16, "N": 1}}.items():
        monkeypatch.setattr(trainer, name, value)


def train(parts, own=OWN, steps=3):
    return capstone.train(parts, *own, steps=steps)


def test_what_ran_in_the_model_is_told_apart(small, tmp_path, hand_in):
    for stem in ("05_query_key_value", "06_batch_vs_layer_norm", "09_multi_head_attention"):
        hand_in(stem)
    result = train(capstone.gather(tmp_path))
    assert {"layer_norm", *(part.name for part in result.parts if part.stem[:2] == "12")} <= result.ran
    assert "greedy_decode" not in result.ran, "that one is the library's"


def test_it_learns(small, tmp_path):
    losses = train(capstone.gather(tmp_path), steps=150).losses
    assert len(losses) == 150 and sum(losses[-20:]) < 0.8 * sum(losses[:20])


@pytest.mark.slow
def test_the_samples_change_while_it_learns(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COURSE_STATIC", "0")
    for name, value in {"CORPUS": 8000, "HELD_OUT": 4, "GOAL": 0.0}.items():
        monkeypatch.setattr(trainer, name, value)
    train(capstone.gather(tmp_path), steps=300)
    told = [line.strip() for line in capsys.readouterr().out.splitlines() if " → " in line]
    assert len(told) == 8 and [line.split()[1] for line in told[::2]] == ["25", "100", "200", "300"]
    for sample in (told[::2], told[1::2]):
        assert len({line.split(" → ")[1] for line in sample}) >= 3, told
    assert max(map(len, told)) < 150    # an untrained model repeats itself without end


def test_everything_of_ones_own_runs(small):
    ran = train(capstone.gather(SOLUTIONS)).ran
    # the Transformer of the library, used here, is made of the library's blocks
    assert ran == {"greedy_decode", "layer_norm", "Transformer", "label_smoothing_loss", "warmup_rate",
                   "beam_search", "train"}


def test_it_is_trained_by_ones_own_loop_and_decoded_by_ones_own_search(small, capsys):
    """The learner's loop, not the library's, decides what is learned; with neither, lines say so."""
    seen = []

    def watched(model, batches, optimizer, rate, loss, max_norm):
        def kept(model, batch):
            seen.append((model.training, optimizer.param_groups[0]["lr"]))
            return loss(model, batch)
        return loop(model, batches, optimizer, rate, kept, max_norm)
    parts = capstone.gather(SOLUTIONS)
    mine = train(parts, (*OWN[:4], watched), steps=3)
    assert len(mine.losses) == 3 and all(training for training, _ in seen[-3:])
    rates = [warmup_rate(step, 8, trainer.WARMUP) * (1 - step / 3) for step in (1, 2, 3)]
    assert [rate for _, rate in seen[-3:]] == rates
    told = capsys.readouterr().out
    assert "✓ train: yours" in told and "✓ beam_search: yours" in told
    librarys = train(parts, OWN[:3], steps=3)
    told = capsys.readouterr().out
    assert "· train: the library's, because it was not passed to capstone.train" in told
    assert "· beam_search: the library's" in told and librarys.losses == mine.losses
    assert not librarys.ran & {"train", "beam_search"}


def test_a_loop_that_does_not_pass_is_replaced(small, tmp_path, capsys):
    def forgets(model, batches, optimizer, rate, loss, max_norm):
        return []
    result = train(capstone.gather(tmp_path), (*OWN[:4], forgets))
    assert len(result.losses) == 3 and "train" not in result.ran
    assert "· train: the library's, because yours does not pass yet" in capsys.readouterr().out


def test_a_loop_that_reads_all_batches_first_changes_nothing(small, tmp_path):
    def eager(model, batches, *others):
        return loop(model, list(batches), *others)
    parts = capstone.gather(tmp_path)
    result = train(parts, (*OWN[:4], eager))
    assert result.losses == train(parts).losses and {"Transformer", "train"} <= result.ran


def test_with_the_solutions_the_heads_call_attention(small):
    """Exercise 05 calls it the heart of every Transformer: the capstone's page must not say otherwise."""
    parts = capstone.gather(SOLUTIONS)
    source = exercise.answers(exercise.read(SOLUTIONS / "12_transformer.ipynb"), ["Transformer"])[0]
    names = {"math": math, "nn": nn, "torch": torch, **parts}
    exec(compile(source["Transformer"], "a cell", "exec"), names)
    ran = train(parts, (names["Transformer"], *OWN[1:])).ran
    assert {"attention", "MultiHeadAttention", "EncoderBlock", "layer_norm"} <= ran
    assert set(parts) - ran == {"padding_mask"}    # the solution writes the mask out


def test_an_error_points_to_the_part_it_arose_in(small, tmp_path, hand_in):
    wide = exercise.answers(exercise.read(SOLUTIONS / "06_batch_vs_layer_norm.ipynb"), ["layer_norm"])[0]
    breaks = "    if x.size(-1) == 8 and x.size(0) == 32:\n        raise ValueError('too wide')\n"
    source = wide["layer_norm"].replace("    mean", f"{breaks}    mean", 1)
    assert "too wide" in source
    hand_in("06_batch_vs_layer_norm", layer_norm=source)
    parts = capstone.gather(tmp_path)
    assert parts.collected["layer_norm"].mine
    with pytest.raises(trainer.CapstoneError) as raised:
        train(parts)
    lines = raised.value._render_traceback_()
    assert lines[0] == "ValueError in your layer_norm: too wide"
    assert lines[1].strip() == "Line: raise ValueError('too wide')"
    assert "exercises/06_batch_vs_layer_norm.ipynb" in lines[2]


def test_an_error_of_nobodys_part_is_shown_as_it_is(small, tmp_path, monkeypatch):
    def broken(*given):
        yield 1 / 0
    monkeypatch.setattr(trainer, "batches", broken)
    with pytest.raises(ZeroDivisionError):    # below the learner's training loop, and not in it
        train(capstone.gather(tmp_path))


def test_an_answer_of_this_notebook_that_does_not_pass_is_replaced(small, tmp_path, capsys):
    def warmup_rate(step, d_model, warmup_steps):
        return 0.0
    result = train(capstone.gather(tmp_path), (*OWN[:2], warmup_rate, *OWN[3:]))
    found = {part.name: part for part in result.parts}
    assert not found["warmup_rate"].mine and found["Transformer"].mine
    assert "· warmup_rate: the library's, because yours does not pass yet" in capsys.readouterr().out


def test_without_a_transformer_of_ones_own_the_librarys_is_trained(small, tmp_path, capsys):
    def unanswered(*sizes):
        raise NotImplementedError
    unanswered.__name__ = "Transformer"
    result = train(capstone.gather(tmp_path), (unanswered, *OWN[1:]))
    assert "· Transformer: the library's, because it is not answered yet" in capsys.readouterr().out
    assert "Transformer" not in result.ran and {"label_smoothing_loss", "train"} <= result.ran
    assert result.losses == train(capstone.gather(tmp_path)).losses


def test_below_the_goal_it_says_how_far_it_came(small, tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "GOAL", 0.95)
    with pytest.raises(trainer.CapstoneError, match=r"0% of 4 held-out .* the goal is 95%.* steps=6"):
        train(capstone.gather(tmp_path))


def test_the_same_seed_gives_the_same_model(small, tmp_path):
    parts = capstone.gather(tmp_path)
    assert train(parts).losses == train(parts).losses


def test_ones_own_norm_does_what_the_norm_did():
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6)), torch.randn(3, 4)
    nn.init.normal_(model[1].weight)
    before = model(x)
    trainer._use_norm(model, registry.find("layer_norm")[1].reference)
    assert torch.allclose(model(x), before, atol=1e-6) and type(model[1]) is not nn.LayerNorm


# ---------------------------------------------------------------- translator and page

@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    from course_tools.capstone.translator import ENGLISH, KOREAN
    return Transformer(len(ENGLISH), len(KOREAN), d_model=16, h=2, d_ff=32, N=2).eval()


def test_without_a_cache_the_same_words_come_out(model):
    translator = Translator(model, greedy_decode)
    some = pairs(5, torch.Generator().manual_seed(1), longest=8)
    src, tgt = translator.tensors(some)
    assert tgt[:, 0].eq(BOS).all() and (tgt == EOS).any(dim=1).all()
    fast = greedy_batch(model.step, model.begin(src), BOS, EOS, 12, len(some))
    slow = greedy_batch(translator.step, (src, src[:, :0]), BOS, EOS, 12, len(some))
    assert fast == slow and all(fast)


def test_a_sentence_outside_the_grammar_is_an_error_with_words(model):
    with pytest.raises(ValueError, match="not in the vocabulary"):
        Translator(model, greedy_decode).write("the drogon sleeps")


def test_the_right_translation_counts(model, monkeypatch):
    """A model that knows one pair by heart: its forward gives that pair's words whatever comes."""
    pair = translate("they are cats")
    translator = Translator(model, greedy_decode)
    _, tgt = translator.tensors([pair])

    def forward(src, given, pad_id):
        wanted = tgt[0, 1:].tolist() + [EOS] * given.size(1)
        rows = torch.tensor(wanted[:given.size(1) - 1])
        return nn.functional.one_hot(rows, model.target.num_embeddings).float().expand(len(src), -1, -1)

    monkeypatch.setattr(translator, "model", forward)
    assert translator.write("they are cats") == text(pair.korean)
    assert translator.right([pair, translate("I am a student")]) == 0.5


def test_the_page_tells_whose_is_what(model, tmp_path, capsys, monkeypatch):
    shown = []
    monkeypatch.setattr(report, "display", shown.append)
    parts = [CollectedAnswer("attention", "05_query_key_value", None),
             CollectedAnswer("split_heads", "09_x", None),
             CollectedAnswer("add_positions", "10_x", None, "yours raises <b>")]
    result = trainer.Result(Translator(model, greedy_decode), [3.0, 2.0] * 20, 0.97, parts, {"split_heads"})
    picture = capstone.page(result, tmp_path / "mine.html", sentences=["they are cats", "a drogon <i>"])
    html = (tmp_path / "mine.html").read_text(encoding="utf-8")
    assert "97.0%" in html and "2 of its 3 parts" in html and 'id="weights"' in html
    assert html.count("<td>used</td>") == 1 and "parts do not use it" in html and "&lt;b&gt;" in html
    assert "<i>" not in html and "not in the vocabulary" in html
    assert picture._repr_png_().startswith(b"\x89PNG") and "mine.html" in capsys.readouterr().out
    curve, = shown    # the loss, above the maps that the cell ends with
    assert "loss" in curve.axes[0].get_ylabel() and curve is not picture


def test_the_page_shows_what_beam_search_finds_where_that_differs(model):
    def searched(step, state, bos_id, eos_id, beam, max_len):
        assert (bos_id, eos_id, beam) == (BOS, EOS, 4)
        return beam_search(step, state, bos_id, eos_id, beam, max_len)
    result = trainer.Result(Translator(model, greedy_decode, searched), [1.0], 1.0, [], set())
    found = {beam: result.translate("they are cats", beam=beam) for beam in (1, 4)}
    assert found[1] != found[4] and result.compared("they are cats") == (
        f"{found[1]} (with a beam of 4: {found[4]})")
    result.translator.beam_search = lambda *given: greedy_decode(*given[:4], given[5])
    assert result.compared("they are cats") == found[1]


def test_the_maps_are_of_every_head_and_of_the_last_block(model):
    english, korean, weights = Translator(model, greedy_decode).maps("they are cats")
    assert weights.shape == (2, len(korean), len(english)) and korean[-1] == "<eos>"
    src, tgt = Translator(model, greedy_decode).tensors([translate("they are cats")])
    with torch.no_grad():
        _, (_, _, memory) = model.look(src, tgt, PAD)
    assert torch.allclose(weights, memory[-1][0])


def test_a_model_without_cross_attentions_has_a_page_without_maps(model, tmp_path):
    class Plain(nn.Module):
        def forward(self, src, tgt, pad_id):
            return torch.zeros(len(src), tgt.size(1) - 1, 9)
    result = trainer.Result(Translator(Plain(), greedy_decode), [1.0], 1.0, [], set())
    capstone.page(result, tmp_path / "mine.html", sentences=[])
    assert (tmp_path / "mine.html").read_text(encoding="utf-8").count("data:image/png") == 1



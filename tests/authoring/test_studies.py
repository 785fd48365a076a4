"""Studies: scripts run and made their tables, lessons read them, and many networks train as one would."""

import csv
import os

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from course_lib import studies as library
from course_lib.data.toy import delayed_recall
from course_lib.findings import finding
from course_lib.models import rnn
from course_tools.authoring import __main__, stored, studies
from course_tools.authoring.many import Many

SCRIPTS = sorted(studies.folder().glob("[0-9]*.py"))
TABLE = """# digest of 01_x.py: 0123
model,lag,rate,seed,value
RNN,5,0.01,0,0.5
RNN,5,0.01,1,0.7
RNN,5,0.01,2,0.6
RNN,5,0.1,0,0.9
RNN,5,0.1,1,0.8
RNN,5,0.1,2,0.1
LSTM,5,0.01,0,1.0
LSTM,5,0.01,1,1.0
LSTM,5,0.01,2,0.9
"""
SCRIPT = """def run(budget):
    for seed in range(3):
        yield {"rate": 0.1, "seed": seed, "value": budget / 3}
"""


# ---------------------------------------------------------------- the course's studies

@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_table_is_what_its_script_made(path):
    assert not studies.changed(path), f"{path.name} has changed since: make studies KEY={path.stem}"


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs_with_a_small_budget_and_makes_the_columns_of_its_table(path):
    rows = list(studies.script(path).run(studies.SMALL))
    made = list(csv.DictReader(studies.table(path, rows).splitlines()[1:]))
    there = library.study(path.stem)
    assert [*made[0]] == [*there.rows[0]] and {"seed", "value"} <= {*made[0]}
    for column in ("model", "seed", "rate"):
        if column in made[0]:
            assert {row[column] for row in made} <= {*map(str, there.values(column))}


def test_every_table_has_its_script_and_every_weight_a_script_that_names_it():
    assert {path.stem for path in studies.folder().glob("*.csv")} == {path.stem for path in SCRIPTS} != set()
    sources = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    shipped = sorted((studies.folder().parent / "weights").glob("*"))
    assert [path.name for path in shipped if f'"{path.stem}"' not in sources or path.suffix != ".pt"] == []
    assert sum(path.stat().st_size for path in shipped) <= studies.MOST_WEIGHTS
    for path in shipped:
        state = torch.load(path, weights_only=True)
        assert all(not part.is_floating_point() or part.dtype == torch.float16 for part in state.values())


# ---------------------------------------------------------------- what lessons read

@pytest.fixture
def runs(tmp_path, monkeypatch):
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "01_x.csv").write_text(TABLE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return library.study("01_x")


def test_a_study_gives_median_and_range_at_the_best_rate(runs):
    assert len(runs.rows) == 9
    assert runs.rows[0] == {"model": "RNN", "lag": 5, "rate": 0.01, "seed": 0, "value": 0.5}
    assert runs.values("rate") == [0.01, 0.1]
    best = runs.best("model", "lag")
    assert best == {("RNN", 5): library.Spread(0.8, 0.1, 0.9, 3, 0.1),
                    ("LSTM", 5): library.Spread(1.0, 0.9, 1, 3, 0.01)}
    assert runs.best("model", lowest=True)["RNN"] == library.Spread(0.6, 0.5, 0.7, 3, 0.01)
    rnn = runs.where(model="RNN")
    assert rnn.best() == best["RNN", 5] and rnn.spread("rate")[0.01] == library.Spread(0.6, 0.5, 0.7, 3)
    assert rnn.where(rate=0.1).spread().high == 0.9


def test_a_study_says_how_to_run_it_again(runs):
    assert repr(runs) == ("9 runs of notebooks/studies/01_x.py. To run them again: make studies KEY=01_x")


def test_a_finding_takes_the_range_from_the_study(runs, capsys):
    best = runs.best("model")
    finding("The LSTM recalls more.", {name: best[name] for name in ("LSTM", "RNN")}, more_by=0.2)
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  LSTM   median 1.00   three seeds: 0.90 to 1.00",
        "  RNN    median 0.80   three seeds: 0.10 to 0.90"]


@pytest.mark.parametrize("ask, match", [
    (lambda runs: runs.spread("model"), r"6 runs with 3 seeds: choose among them with where"),
    (lambda runs: runs.where(model="GRU"), r"has no runs with .*GRU.*; it has .*'RNN', 'LSTM'"),
    (lambda runs: runs.best("layer"), r"has no column 'layer'; it has \['model', 'lag'"),
    (lambda runs: runs.best("model", value="bleu"), "has no column 'bleu'")])
def test_what_a_study_does_not_know_is_said(runs, ask, match):
    with pytest.raises(ValueError, match=match):
        ask(runs)


def test_a_study_that_is_missing_is_an_error_with_the_names_there_are(runs):
    with pytest.raises(FileNotFoundError, match="no 02_y.csv in notebooks/studies/, only .*01_x"):
        library.study("02_y")


# ---------------------------------------------------------------- what authors run

@pytest.fixture
def course(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    studies.folder().mkdir(parents=True)
    (studies.folder() / "01_x.py").write_text(SCRIPT, encoding="utf-8")
    return studies.folder()


def test_the_verb_writes_the_table_with_the_digest_of_the_script(course, capsys):
    assert studies.changed(course / "01_x.py") and __main__.main(["studies"]) == 0
    assert not studies.changed(course / "01_x.py")
    digest, head, *rows = (course / "01_x.csv").read_text(encoding="utf-8").splitlines()
    assert digest.startswith("# digest of 01_x.py: ") and head == "rate,seed,value"
    assert rows == ["0.1,0,0.333333", "0.1,1,0.333333", "0.1,2,0.333333"]
    assert library.study("01_x").spread().seeds == 3
    before = (course / "01_x.py").stat()
    (course / "01_x.py").write_text(SCRIPT.replace("/ 3", "/ 2"), encoding="utf-8")
    os.utime(course / "01_x.py", ns=(before.st_atime_ns, before.st_mtime_ns))    # of the same size, too
    assert studies.changed(course / "01_x.py") and __main__.main(["studies", "1"]) == 0
    assert library.study("01_x").spread().median == 0.5
    assert "3 rows" in capsys.readouterr().out


def test_the_verb_refuses_unknown_names_and_uneven_rows(course, capsys):
    assert __main__.main(["studies", "02_y"]) == 1 and "Choose one of: 01_x" in capsys.readouterr().err
    (course / "01_x.py").write_text(SCRIPT + "    yield {'value': 1}\n", encoding="utf-8")
    assert __main__.main(["studies"]) == 1 and "the same columns" in capsys.readouterr().err
    assert not (course / "01_x.csv").exists()


def test_weights_are_stored_as_float16_and_loaded_as_float32(course):
    model = nn.Linear(3, 2)
    studies.save("01_linear", model.state_dict())
    loaded = library.weights("01_linear")
    assert {tensor.dtype for tensor in loaded.values()} == {torch.float32}
    assert torch.load(course.parent / "weights" / "01_linear.pt")["bias"].dtype == torch.float16
    torch.testing.assert_close(loaded, dict(model.state_dict()), rtol=1e-3, atol=1e-3)
    with pytest.raises(stored.Fault, match="more than 2,000,000"):
        studies.save("01_large", {"W": torch.zeros(1100, 1000)})
    assert [path.name for path in (course.parent / "weights").iterdir()] == ["01_linear.pt"]


# ---------------------------------------------------------------- many networks at once

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.out = rnn.GRU(11, 6), nn.Linear(6, 10)

    def forward(self, X):
        return self.out(self.layer(X)[0][:, -1])


def batch(generator):
    X, y = delayed_recall(generator, 4, 3)
    return X.double(), y


def loss(model, X, y):
    return cross_entropy(model(X), y)


@pytest.mark.parametrize("max_norm", [None, 0.3])
def test_a_batch_of_networks_trains_to_the_same_numbers_as_one_by_one(max_norm):
    make, steps, rate = lambda: Reader().double(), 12, lambda step: 1 - step / 12
    many = Many(make, rates=(1e-2, 3e-2, 1e-1), seeds=(0, 1))
    losses = torch.cat([many.train(batch, loss, part, rate, max_norm) for part in (5, 7)])
    X, y = batch(torch.Generator().manual_seed(9))
    tested = many.evaluate(loss, X, y)
    assert losses.shape == (steps, 3, 2) and tested.shape == (3, 2)
    for place, seed in ((r, s) for r in range(3) for s in range(2)):
        torch.manual_seed(seed)
        alone, generator = make(), torch.Generator().manual_seed(1000 + seed)
        optimizer = torch.optim.Adam(alone.parameters(), lr=many.rates[place])
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = many.rates[place] * rate(step)
            error = loss(alone, *batch(generator))
            optimizer.zero_grad()
            error.backward()
            if max_norm:
                nn.utils.clip_grad_norm_(alone.parameters(), max_norm)
            optimizer.step()
            torch.testing.assert_close(losses[step, place, seed], error.detach(), rtol=1e-9, atol=1e-9)
        trained, test = many.state(many.rates[place], seed), loss(alone, X, y).detach()
        torch.testing.assert_close(trained, dict(alone.state_dict()), rtol=1e-8, atol=1e-8)
        torch.testing.assert_close(tested[place, seed], test, rtol=1e-8, atol=1e-8)

"""Studies: experiments that take longer than a lesson's minute, run once, with their tables stored.

A study is a script notebooks/studies/NN_name.py and its table NN_name.csv, with a row for each run.

    runs = study("01_recall").where(near="random", steps=1200)
    best = runs.best("model", "lag")           # each at its best rate
    best["RNN", 20].median, best["RNN", 20].low, best["RNN", 20].high, best["RNN", 20].rate

What takes long to train is shipped: model.load_state_dict(weights("NN_name")).
"""

import csv
import statistics
from dataclasses import dataclass, replace
from pathlib import Path

import torch


@dataclass(frozen=True)
class Spread:
    """The median of a value over the seeds, and its range.  In a finding it stands for its median.

    rate: the learning rate of these runs, None if they were not chosen by it.
    """

    median: float
    low: float
    high: float
    seeds: int
    rate: float | None = None

    def __float__(self):
        return float(self.median)


class Study:
    """The table of a study.  rows: a list of dicts, one for each run, {column: number or text}."""

    def __init__(self, name, rows):
        self.name, self.rows = name, rows

    def __repr__(self):
        return (f"{len(self.rows):,} runs of notebooks/studies/{self.name}.py. "
                f"To run them again: make studies KEY={self.name}")

    def where(self, **wanted):
        """The runs with these values: ``where(near="random", steps=1200)``.  Raises ValueError for none."""
        kept = [row for row in self.rows if all(self._column(row, name) == value
                                                for name, value in wanted.items())]
        if not kept:
            there = {name: self.values(name) for name in wanted}
            raise ValueError(f"the study {self.name} has no runs with {wanted}; it has {there}")
        return Study(self.name, kept)

    def values(self, column):
        """The different values of a column, in the order of the table."""
        return list(dict.fromkeys(self._column(row, column) for row in self.rows))

    def spread(self, *columns, value="value"):
        """{key: Spread over the seeds} for each combination of the columns.

        The key is a tuple of the columns' values, or one value for one column; without columns the result is
        one Spread.  Raises ValueError if a seed has several runs there: choose among them with `where`.
        """
        groups = {}
        for row in self.rows:
            groups.setdefault(tuple(self._column(row, name) for name in columns), []).append(row)
        return _by_key({key: self._spread(rows, value) for key, rows in groups.items()})

    def best(self, *columns, value="value", lowest=False):
        """As `spread`, each at the rate with the highest median (lowest=True: the lowest, for losses).

        Of rates that are equally good it is the smallest.
        """
        best, groups = {}, self.spread(*columns, "rate", value=value)
        for key, found in sorted(groups.items(), key=lambda item: item[0][-1] if columns else item[0]):
            *key, rate = key if columns else [key]
            best.setdefault(tuple(key), []).append(replace(found, rate=rate))
        choose = min if lowest else max
        return _by_key({key: choose(of, key=float) for key, of in best.items()})

    def _column(self, row, name):
        if name not in row:
            raise ValueError(f"the study {self.name} has no column {name!r}; it has {[*row]}")
        return row[name]

    def _spread(self, rows, value):
        seeds = [self._column(row, "seed") for row in rows]
        if len(set(seeds)) < len(seeds):
            differ = [name for name in rows[0] if len(Study(self.name, rows).values(name)) > 1]
            raise ValueError(f"{len(rows)} runs with {len(set(seeds))} seeds: choose among them with "
                             f"where(...), or name a column. They differ in {differ}")
        values = [self._column(row, value) for row in rows]
        return Spread(statistics.median(values), min(values), max(values), len(values))


def study(name):
    """The table notebooks/studies/NAME.csv as a Study.  Raises FileNotFoundError with the names there are."""
    with open(_file("studies", name, ".csv"), encoding="utf-8", newline="") as file:
        lines = [line for line in file if not line.startswith("#")]
    head, *rows = csv.reader(lines)
    columns = [_column(texts) for texts in zip(*rows)]
    return Study(name, [dict(zip(head, row)) for row in zip(*columns)])


def weights(name):
    """The trained weights notebooks/weights/NAME.pt, a state dict in float32.  They are stored as float16."""
    stored = torch.load(_file("weights", name, ".pt"), weights_only=True, map_location="cpu")
    return {key: tensor.float() if tensor.is_floating_point() else tensor for key, tensor in stored.items()}


def _by_key(spreads):
    """A key of one value stands for itself, and without columns there is one Spread."""
    if () in spreads:
        return spreads[()]
    return {key[0] if len(key) == 1 else key: found for key, found in spreads.items()}


def _file(kind, name, ending):
    """Beside the lesson, beside the exercises, or in this copy of the course."""
    folders = [Path.cwd() / kind, *(folder / "notebooks" / kind for folder in (
        Path.cwd(), Path.cwd().parent, Path(__file__).parents[1]))]
    for folder in folders:
        if (folder / f"{name}{ending}").exists():
            return folder / f"{name}{ending}"
    there = ", ".join(sorted({path.stem for folder in folders for path in folder.glob(f"*{ending}")}))
    raise FileNotFoundError(f"there is no {name}{ending} in notebooks/{kind}/, only {there}")


def _column(texts):
    """Integers if all of them are, else numbers if all of them are, else the texts."""
    for kind in (int, float):
        try:
            return [kind(text) for text in texts]
        except ValueError:
            pass
    return texts

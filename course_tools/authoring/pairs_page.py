"""Thirty random pairs with their alignments, for a reader to judge.

    python -m course_tools.authoring.pairs_page docs

Writes english_korean.md and one picture for every five pairs.
"""

import sys
from pathlib import Path

import torch

from course_lib import plots
from course_lib.data.english_korean import pairs, text

HEAD = """# Thirty pairs to judge

Drawn at random from the grammar that the lessons translate with (`course_lib/data/english_korean.py`), made
by `python -m course_tools.authoring.pairs_page docs`. If you read Korean, ask of each pair:

- Is it a sentence that a Korean would write, in the plain style (해라체)?
- Does it say what the English says: who, to whom, when, how many?
- Are the particles and the endings those that the word before them wants?
- Do the lines join the right words? Solid: they translate each other. Dotted: they only belong together,
  a particle and its noun, the tense and the verb. The articles *a*, *an*, *the* have no partner in Korean.

What a sentence says need not be likely; doctors may cry in the kitchen. If you find a fault, the rules
stand in `course_lib/data/grammar/`, and `tests/data/test_english_korean.py` holds sentences translated
by hand: add yours.
"""


def thirty():
    """The pairs of the page, always the same: 3 to 16 English words."""
    return pairs(30, torch.Generator().manual_seed(0), longest=16)


def page(some, picture="english_korean_{}.png", row=5):
    """The Markdown text: the sentences numbered, and after every `row` of them their picture."""
    lines = [HEAD]
    for number, pair in enumerate(some, start=1):
        lines += [f"{number}. {' '.join(pair.english)}  ", f"   **{text(pair.korean)}**", ""]
        if number % row == 0:
            first = number - row + 1
            lines += [f"![The alignments of pairs {first} to {number}]({picture.format(number // row)})", ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def pictures(some, row=5):
    """A picture for every `row` pairs: each sentence over its tokens, joined by lines."""
    for start in range(0, len(some), row):
        figure, axes = plots.picture(rows=row, width=9.5, height=1.25 * row)
        longest = 0.0
        for place, (number, pair) in zip(axes, enumerate(some[start:start + row], start + 1)):
            plots.links(pair.english, pair.korean, pair.sure, pair.possible, axes=place)
            place.text(-4, 1, f"{number}.", ha="right", va="center", color="grey")
            longest = max(longest, place.get_xlim()[1])
        for place in axes:
            place.set_xlim(-7, longest)              # one scale for all five
        yield figure


def main(folder):
    """Write the page and its pictures into a folder."""
    some = thirty()
    Path(folder, "english_korean.md").write_text(page(some), encoding="utf-8")
    for number, figure in enumerate(pictures(some), start=1):
        Path(folder, f"english_korean_{number}.png").write_bytes(figure._repr_png_())


if __name__ == "__main__":
    main(sys.argv[1])

"""Toy tasks, each made from a seed and small enough to read."""

import math

import torch
import torch.nn.functional as F

STYLES = ("falling", "rising", "lively", "trembling")  # of a sentence's melody, `contours`
FRAMES = 6  # pitches that make one syllable


def delayed_recall(generator, batch, lag, symbols=10):
    """Say the first letter of a random sequence after `lag` more letters have passed.

    Returns X (batch, lag + 2, symbols + 1), one-hot: lag + 1 letters and a question mark; and
    y (batch,), the number of the first letter.  `show_recall` writes a row as text.

    >>> X, y = delayed_recall(torch.Generator().manual_seed(0), batch=1, lag=4)
    >>> show_recall(X[0]), y.item()
    ('e j d a d ?', 4)
    """
    ids = torch.randint(symbols, (batch, lag + 2), generator=generator)
    ids[:, -1] = symbols                                      # the question mark
    return F.one_hot(ids, symbols + 1).float(), ids[:, 0]


def show_recall(X):
    """A row of `delayed_recall`, X (n, symbols + 1), as text."""
    mark = X.size(-1) - 1
    return " ".join("?" if i == mark else chr(ord("a") + i) for i in X.argmax(dim=-1).tolist())


def contours(generator, batch, syllables=8):
    """Sentences as melodies: what is said (the accents) and how (a style and its strength).

    Returns accents (batch, syllables), each 0, 1 or 2; style (batch,), a place in STYLES; strength
    (batch,), 0.5 to 1.2; and their `melody`, (batch, 6 * syllables).

    >>> accents, style, strength, pitch = contours(torch.Generator().manual_seed(0), batch=1, syllables=2)
    >>> accents.tolist(), STYLES[style[0]], tuple(pitch.shape)
    ([[2, 0]], 'rising', (1, 12))
    """
    accents = torch.randint(3, (batch, syllables), generator=generator)
    style = torch.randint(len(STYLES), (batch,), generator=generator)
    strength = 0.5 + 0.7 * torch.rand(batch, generator=generator)
    return accents, style, strength, melody(accents, style, strength)


def melody(accents, style=None, strength=None):
    """The pitch of a sentence, frame by frame, in semitones above a speaker's rest.

    Each accent lifts its syllable by that many semitones.  On top of it the style, times its strength:
    falling by 7 semitones, rising by 9 at the end, lively (3 up, and wider accents), trembling by 1.5.
    accents (B, n)  style, strength (B,), or None for the accents alone  ->  (B, 6 n)
    """
    frame = torch.arange(FRAMES)
    hump = torch.sin(math.pi * (frame + 0.5) / FRAMES)                             # (6,)
    said = (accents[..., None] * hump).flatten(1)                                  # (B, 6 n)
    if style is None:
        return said
    time = torch.linspace(0, 1, said.size(1)).expand_as(said)                      # (B, 6 n)
    tremble = torch.sin(4 * math.pi * frame / FRAMES + 0.3).repeat(accents.size(1)).expand_as(said)
    shapes = torch.stack([-7 * time, 9 * time ** 2, 3 + 1.5 * said, 1.5 * tremble])    # (4, B, 6 n)
    return said + strength[:, None] * shapes[style, torch.arange(len(style))]


def tone(pitch, rate=8000, frame=0.04, rest=160.0):
    """A voice without words that sings a melody: pitch (T,) in semitones above `rest` hertz.

    frame: seconds each pitch lasts.  rate: samples a second.  Returns (samples,), between -1 and 1.
    """
    samples = round(len(pitch) * frame * rate)
    smooth = F.interpolate(pitch.double()[None, None], samples, mode="linear", align_corners=True)[0, 0]
    phase = 2 * math.pi * torch.cumsum(rest * 2 ** (smooth / 12), dim=0) / rate    # (samples,)
    voice = torch.sin(phase) + torch.sin(2 * phase) / 2 + torch.sin(3 * phase) / 4
    fade = torch.linspace(0, 40, samples, dtype=torch.float64).clamp(max=1)        # no click at the ends
    return (voice / 1.75 * fade * fade.flip(0)).float()


# The digits 0 to 9 on 7 x 5 squares; # is ink.
GLYPHS = """
.###. ..#.. .###. ##### ...#. ##### ..##. ##### .###. .###.
#...# .##.. #...# ...#. ..##. #.... .#... ....# #...# #...#
#..## ..#.. ....# ..#.. .#.#. ####. #.... ...#. #...# #...#
#.#.# ..#.. ...#. ...#. #..#. ....# ####. ..#.. .###. .####
##..# ..#.. ..#.. ....# ##### ....# #...# .#... #...# ....#
#...# ..#.. .#... #...# ...#. #...# #...# .#... #...# ...#.
.###. .###. ##### .###. ...#. .###. .###. .#... .###. .##..
"""


def glyphs(generator, batch, noise=0.3):
    """Name the digit in a picture of 8 x 8 squares: it stands in one of four places, under noise.

    Returns X (batch, 64), rows of a picture one after the other, ink 1 and paper 0 plus
    noise * N(0, 1); and y (batch,), the digit.  `show_glyph` writes a picture as text.

    >>> X, y = glyphs(torch.Generator().manual_seed(0), batch=1)
    >>> y.item()
    4
    >>> print(show_glyph(X[0]))
    ········
    ·····#··
    ····##··
    ···#·#·#
    ··#··#··
    ··#####·
    ·····#··
    #··#·#··
    """
    shapes = [row.split() for row in GLYPHS.split("\n") if row]
    ink = torch.tensor([[[square == "#" for square in row[digit]] for row in shapes] for digit in range(10)])
    y = torch.randint(10, (batch,), generator=generator)
    down, right = torch.randint(2, (2, batch), generator=generator)
    X = noise * torch.randn(batch, 8, 8, generator=generator)
    rows = down[:, None] + torch.arange(7)                              # (batch, 7)
    columns = 1 + right[:, None] + torch.arange(5)                      # (batch, 5)
    X[torch.arange(batch)[:, None, None], rows[:, :, None], columns[:, None, :]] += ink[y].float()
    return X.flatten(1), y


def show_glyph(X):
    """A picture of `glyphs`, X (64,), as text: # where a square is nearer to ink than to paper."""
    return "\n".join("".join("#" if square > 0.5 else "·" for square in row) for row in X.view(8, 8))

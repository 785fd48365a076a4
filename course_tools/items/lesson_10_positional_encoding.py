"""Exercise 10: sines and cosines of positions, the rotation between them, the sum with a batch; rotary positions and ALiBi."""

import math

import torch

from course_lib.models import positional

from ..judging.draw import different, whole
from ..judging.spec import Item, normal

IN_CODE, IN_ROTATION, IN_BATCH, IN_LIMITS = "From formula to code", "k steps are one rotation", "The wrong axis", "Where it breaks"


def _frequencies(d_model, base=10000.0):
    """base^(-2i / d_model), i = 0 .. d_model / 2 - 1, in float64."""
    i = torch.arange(d_model // 2, dtype=torch.float64)
    return base ** (-2 * i / d_model)


def _table(positions, frequencies, first=torch.sin, second=torch.cos):
    """The mistakes below exchange one part each; (n, d_model)."""
    angles = positions.to(torch.float64)[:, None] * frequencies
    return torch.stack([first(angles), second(angles)], -1).flatten(1).float()


# ---------------------------------------------------------------- positional_encoding

def _table_inputs(generator):
    few, equal, many = (2 * half for half in different(generator, 3, 2, 7))
    sizes = [(whole(generator, 5, 12), few), (1, many), (equal, equal), (whole(generator, 20, 60), 2 * few),
             (whole(generator, 4, 12), 2)]
    return [{"n": n, "d_model": d_model} for n, d_model in sizes]


positional_encoding = Item("positional_encoding", 2, _table_inputs, positional.positional_encoding,
                           ("PE (n, d_model)",), IN_CODE, gradients=False)


@positional_encoding.mistake("All sines are in the left half and all cosines in the right half. Here they alternate: sine in columns 0, 2, 4, ..., cosine in columns 1, 3, 5, ...")
def halves_for_interleaved(n, d_model):
    angles = torch.arange(n)[:, None] * _frequencies(d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


@positional_encoding.mistake("Sine and cosine are exchanged. The sine is in columns 0, 2, 4, ..., so row 0 is 0, 1, 0, 1, ...")
def sin_and_cos_swapped(n, d_model):
    return _table(torch.arange(n), _frequencies(d_model), torch.cos, torch.sin)


@positional_encoding.mistake("The exponent is i / d_model. It should be 2i / d_model, where i = 0, 1, 2, ... counts the pairs.")
def exponent_i_for_2i(n, d_model):
    return _table(torch.arange(n), 10000.0 ** (-torch.arange(d_model // 2, dtype=torch.float64) / d_model))


@positional_encoding.mistake("The exponent is 4i / d_model. With i = 0, 1, 2, ... counting the pairs, columns 2i and 2i + 1 have the exponent 2i / d_model.")
def exponent_4i_for_2i(n, d_model):
    return _table(torch.arange(n), 10000.0 ** (-4 * torch.arange(d_model // 2, dtype=torch.float64) / d_model))


@positional_encoding.mistake("Each column has its own frequency. Columns 2i and 2i + 1 are sine and cosine of the SAME angle; otherwise a shift is not a rotation.")
def own_frequency_for_each_column(n, d_model):
    column = torch.arange(d_model)
    angles = torch.arange(n)[:, None] * 10000.0 ** (-column.double() / d_model)
    return torch.where(column % 2 == 0, angles.sin(), angles.cos()).float()


@positional_encoding.mistake("The positions start at 1. The first token is at position 0, whose row is 0, 1, 0, 1, ...")
def starts_at_one(n, d_model):
    return _table(torch.arange(1, n + 1), _frequencies(d_model))


@positional_encoding.mistake("The positions run backwards. Row 0 belongs to the first token.")
def runs_backwards(n, d_model):
    return _table(torch.arange(n), _frequencies(d_model)).flip(0)


@positional_encoding.mistake("The base is 1000. The formula has 10000.")
def base_1000(n, d_model):
    return _table(torch.arange(n), _frequencies(d_model, 1000.0))


@positional_encoding.mistake("The base is 100000. The formula has 10000.")
def base_100000(n, d_model):
    return _table(torch.arange(n), _frequencies(d_model, 100000.0))


@positional_encoding.mistake("The position is multiplied by 10000^(2i / d_model). It is divided by it, so that later pairs rotate more slowly.")
def multiplied_for_divided(n, d_model):
    return _table(torch.arange(n), 1 / _frequencies(d_model))


@positional_encoding.mistake("The angles are computed in float16, which has only three digits. Use float32 or float64.")
def angles_in_float16(n, d_model):
    angles = torch.arange(n)[:, None].half() * _frequencies(d_model).half()
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


@positional_encoding.mistake("There are only sines. The odd columns hold the cosine of the same angle.")
def sines_only(n, d_model):
    return _table(torch.arange(n), _frequencies(d_model), torch.sin, torch.sin)


@positional_encoding.mistake("Every pair has the same frequency. Pair i divides the position by 10000^(2i / d_model).")
def one_frequency(n, d_model):
    return _table(torch.arange(n), torch.ones(d_model // 2, dtype=torch.float64))


@positional_encoding.mistake("The fastest pair comes last. Pair 0 divides by 10000^0 = 1 and is the fastest.")
def frequencies_reversed(n, d_model):
    return _table(torch.arange(n), _frequencies(d_model).flip(0))


@positional_encoding.mistake("The table is transposed. Rows are positions, columns are features: (n, d_model).")
def transposed(n, d_model):
    return _table(torch.arange(n), _frequencies(d_model)).T


@positional_encoding.mistake("These are the angles themselves, without sine and cosine.")
def bare_angles(n, d_model):
    return _table(torch.arange(n), _frequencies(d_model), torch.clone, torch.clone)


# ---------------------------------------------------------------- shift_matrix

def _shift_inputs(generator):
    a, b, c = different(generator, 3, 2, 30)
    wide, middle, narrow = (2 * half for half in different(generator, 3, 2, 6))
    return [{"k": k, "d_model": d_model} for k, d_model in
            [(a, wide), (-b, middle), (c, narrow), (whole(generator, 1, 10), 2), (0, narrow), (-a, narrow)]]


shift_matrix = Item("shift_matrix", 3, _shift_inputs, positional.shift_matrix, ("M (d_model, d_model)",), IN_ROTATION,
                    uses=("positional_encoding",), gradients=False)


def _blocks(angles, a=torch.cos, b=torch.sin, c=lambda x: -x.sin(), d=torch.cos):
    """[[a, b], [c, d]] of each angle on the diagonal: the right matrix, unless a part is exchanged."""
    blocks = [torch.stack([a(w), b(w), c(w), d(w)]).view(2, 2) for w in angles]
    return torch.block_diag(*blocks).float()


@shift_matrix.mistake("The rotation goes the wrong way: this matrix leads from pos + k back to pos. The block of a pair is [[cos, sin], [-sin, cos]].")
def wrong_way(k, d_model):
    return _blocks(-k * _frequencies(d_model))


@shift_matrix.mistake("Every pair is rotated by k times the first frequency. Pair i has its own, 1 / 10000^(2i / d_model).")
def first_frequency_for_all(k, d_model):
    return _blocks(k * torch.ones(d_model // 2, dtype=torch.float64))


@shift_matrix.mistake("Only the first pair is rotated. Each pair has its own block on the diagonal.")
def first_pair_only(k, d_model):
    frequencies = _frequencies(d_model)
    frequencies[1:] = 0
    return _blocks(k * frequencies)


@shift_matrix.mistake("The matrix is made for a table with all sines on the left and all cosines on the right. Here the sine and cosine of a pair are neighbours, so each block is 2 x 2 on the diagonal.")
def halves_for_pairs(k, d_model):
    c, s = [f(k * _frequencies(d_model)).diag() for f in (torch.cos, torch.sin)]
    return torch.cat([torch.cat([c, s], 1), torch.cat([-s, c], 1)], 0).float()


@shift_matrix.mistake("k is not used: this is the matrix for one step.")
def always_one_step(k, d_model):
    return _blocks(_frequencies(d_model))


@shift_matrix.mistake("The sign of k is lost: k = -2 leads two positions back.")
def sign_of_k_lost(k, d_model):
    return _blocks(abs(k) * _frequencies(d_model))


@shift_matrix.mistake("The angle is k times 10000^(2i / d_model), or k divided by the frequency. It should be k / 10000^(2i / d_model).")
def divided_by_the_frequency(k, d_model):
    return _blocks(k / _frequencies(d_model))


@shift_matrix.mistake("The exponent is i / d_model. Pair i rotates by k / 10000^(2i / d_model).")
def shift_exponent_i(k, d_model):
    return _blocks(k * 10000.0 ** (-torch.arange(d_model // 2, dtype=torch.float64) / d_model))


@shift_matrix.mistake("The minus sign is missing: the lower left entry of a block is -sin.")
def minus_missing(k, d_model):
    return _blocks(k * _frequencies(d_model), c=torch.sin)


@shift_matrix.mistake("Sine and cosine are exchanged. At k = 0 nothing rotates, so the matrix must be the identity, with cos(0) = 1 on the diagonal.")
def shift_sin_and_cos_swapped(k, d_model):
    return _blocks(k * _frequencies(d_model), torch.sin, torch.cos, lambda x: -x.cos(), torch.sin)


@shift_matrix.mistake("This shifts the entries of a vector by k places. The matrix should turn PE[pos] into PE[pos + k].")
def moves_columns(k, d_model):
    return torch.eye(d_model).roll(k, dims=0)


@shift_matrix.mistake("The blocks are on the other diagonal, from upper right to lower left.")
def other_diagonal(k, d_model):
    return _blocks(k * _frequencies(d_model)).flip(1)


# ---------------------------------------------------------------- add_positions

def _sum_inputs(generator):
    def draw(B, n, d_model, dtype=torch.float32):
        return {"E": normal(generator, B, n, d_model, dtype=dtype)}
    def trial(B=None, half=None, dtype=torch.float32):
        b, n, k = different(generator, 3, 2, 7)
        return draw(B or b, n + 2, 2 * (half or k), dtype)
    return [trial(), trial(dtype=torch.float64), trial(B=1), draw(*[2 * whole(generator, 2, 4)] * 3), trial(half=1)]


add_positions = Item("add_positions", 2, _sum_inputs, positional.add_positions, ("E_plus_PE (B, n, d_model)",), IN_BATCH,
                     uses=("positional_encoding",))


def _rows(E, first=0):
    """PE of E's positions in E's dtype: (n, d_model)."""
    return positional.positional_encoding(first + E.size(1), E.size(2))[first:].to(E)


@add_positions.mistake("The encoding is added along the batch: every token of sentence b gets the encoding of position b. Axis 1 holds the positions: positional_encoding(E.size(1), E.size(2)).")
def along_the_batch(E):
    return E + positional.positional_encoding(E.size(0), E.size(2)).to(E)[:, None]


@add_positions.mistake("The embeddings are multiplied by sqrt(d_model). That is a separate step, not part of this function.")
def embeddings_scaled(E):
    return E * math.sqrt(E.size(2)) + _rows(E)


@add_positions.mistake("The encoding is divided by sqrt(d_model). Add it as it is.")
def encoding_divided(E):
    return E + _rows(E) / math.sqrt(E.size(2))


@add_positions.mistake("The encoding is multiplied by sqrt(d_model). Add it as it is.")
def encoding_scaled(E):
    return E + _rows(E) * math.sqrt(E.size(2))


@add_positions.mistake("The sum is written into E itself (+= or add_), but the caller still needs E. E + PE makes a new tensor.")
def in_place(E):
    return E.add_(_rows(E))


@add_positions.mistake("The first token gets the encoding of position 1. Positions start at 0.")
def first_word_at_one(E):
    return E + _rows(E, first=1)


@add_positions.mistake("The embeddings are missing: the result is E + PE, not PE.")
def encoding_alone(E):
    return _rows(E).expand_as(E).clone()


@add_positions.mistake("Nothing is added: the embeddings are returned unchanged.")
def nothing_added(E):
    return E.clone()


@add_positions.mistake("The encoding is subtracted. It should be added.")
def subtracted(E):
    return E - _rows(E)


@add_positions.mistake("The embeddings are multiplied by the encoding. It should be added.")
def multiplied(E):
    return E * _rows(E)


@add_positions.mistake("Every token gets the encoding of the last position. Token j gets that of position j.")
def last_position_for_all(E):
    return E + _rows(E)[-1]


@add_positions.mistake("The positions are counted through the whole batch as if it were one long text. Each sentence starts at 0 again.")
def counts_on_from_sentence_to_sentence(E):
    return E + positional.positional_encoding(E.size(0) * E.size(1), E.size(2)).to(E).view_as(E)


@add_positions.mistake("The encoding is concatenated to the embedding. Add it, so that the width stays d_model.")
def concatenated(E):
    return torch.cat([E, _rows(E).expand_as(E)], dim=-1)


@add_positions.mistake("Positions and features are exchanged: the table was made with n and d_model in the wrong order and then transposed.")
def positions_along_the_features(E):
    padded = positional.positional_encoding(E.size(2), E.size(1) + E.size(1) % 2)[:, :E.size(1)]
    return E + padded.to(E).T


# ---------------------------------------------------------------- rotary

def _rotary_inputs(generator):
    def draw(*shape, base=None, dtype=torch.float32):
        positions = whole(generator, 2, 6) + torch.randperm(30, generator=generator)[:shape[-2]].sort().values
        trial = {"x": normal(generator, *shape, dtype=dtype), "positions": positions}
        return trial if base is None else {**trial, "base": base}

    def trial(*batch, **how):
        n, half = different(generator, 2, 3, 7)
        return draw(*batch, n, 2 * half, **how)
    equal = 2 * whole(generator, 2, 4)
    return [trial(2), trial(3, dtype=torch.float64), trial(2, 3, base=whole(generator, 50, 200)), trial(1),
            draw(equal, equal, equal), trial(base=whole(generator, 300, 900)), draw(2, whole(generator, 3, 6), 2)]


rotary = Item("rotary", 3, _rotary_inputs, positional.rotary, ("rotated, the shape of x",), IN_ROTATION, kind="transfer",
              properties=((lambda trial, rotated: torch.allclose(rotated.norm(dim=-1), trial["x"].norm(dim=-1), atol=1e-4),
                           "A rotation keeps the norm of every row, but some of your rows have another norm than before. Compare the two formulas, "
                           "and make sure that both use the old entries."),))


def _speeds(x, base, factor=2):
    """base^(-factor i / d_k), i = 0 .. d_k / 2 - 1, in float64."""
    i = torch.arange(x.size(-1) // 2, dtype=torch.float64)
    return base ** (-factor * i / x.size(-1))


def _turned(x, angles, split=lambda x: (x[..., 0::2], x[..., 1::2]), join=lambda a, b: torch.stack([a, b], -1).flatten(-2),
            first=lambda a, b, cos, sin: a * cos - b * sin, second=lambda a, b, cos, sin: a * sin + b * cos):
    """Every pair of x turned by its angle (n, d_k / 2), unless a part is exchanged."""
    cos, sin = angles.cos().to(x), angles.sin().to(x)
    a, b = split(x)
    return join(first(a, b, cos, sin), second(a, b, cos, sin))


def _by_angles(name, sentence, angles, **parts):
    """Register a rotation by angles(x, positions, base), or with other parts of `_turned`."""
    def answer(x, positions, base=10000):
        return _turned(x, angles(x, positions.double()[:, None], base), **parts)
    answer.__name__ = name
    rotary.mistake(sentence)(answer)


def _other_rotations():
    usual = lambda x, positions, base: positions * _speeds(x, base)
    halves = {"split": lambda x: x.chunk(2, dim=-1), "join": lambda a, b: torch.cat([a, b], -1)}
    _by_angles("rotary_halves", "Column i is paired with column i + d_k/2. That is the other convention in use (GPT-NeoX, and Llama as converted for Hugging Face). Here neighbours form a pair: columns 2i and 2i + 1.", usual, **halves)
    _by_angles("joined_as_halves", "The pairs are turned correctly but put back in another order: all first entries on the left, all second ones on the right. They belong in columns 2i and 2i + 1, where they came from.", usual, join=halves["join"])
    _by_angles("split_as_halves", "The halves of x are turned against each other, and the results are interleaved. Take columns 2i and 2i + 1 of x as a pair.", usual, split=halves["split"])
    _by_angles("turned_backwards", "The rotation goes the wrong way, by minus the angle. The pair (a, b) becomes (a cos - b sin, a sin + b cos).", lambda *given: -usual(*given))
    _by_angles("positions_ignored", "positions is not used: row j is turned by j. Its position is positions[j], which need not be j.",
               lambda x, positions, base: torch.arange(len(positions))[:, None] * _speeds(x, base))
    _by_angles("rotary_from_one", "Every position is one too large. Position p is turned by p / base^(2i / d_k), so position 0 is not turned.",
               lambda x, positions, base: usual(x, positions + 1, base))
    _by_angles("one_frequency_for_all_pairs", "Every pair is turned by the same angle. Pair i has the angle position / base^(2i / d_k).",
               lambda x, positions, base: positions * _speeds(x, 1.0))
    _by_angles("rotary_exponent_i", "The exponent is i / d_k. It should be 2i / d_k, where i = 0, 1, 2, ... counts the pairs.",
               lambda x, positions, base: positions * _speeds(x, base, factor=1))
    _by_angles("rotary_exponent_4i", "The exponent is 4i / d_k. With i = 0, 1, 2, ... counting the pairs, it should be 2i / d_k.",
               lambda x, positions, base: positions * _speeds(x, base, factor=4))
    _by_angles("angle_multiplied", "The position is multiplied by base^(2i / d_k). Divide by it, so that later pairs turn more slowly.",
               lambda x, positions, base: positions / _speeds(x, base))
    _by_angles("base_ignored", "base is not used: 10000 is fixed in its place.", lambda x, positions, base: usual(x, positions, 10000))
    _by_angles("sign_missing", "The minus sign is missing: the first entry is a cos - b sin. With a plus in both places it is no rotation.", usual,
               first=lambda a, b, cos, sin: a * cos + b * sin)
    _by_angles("cos_and_sin_exchanged", "Sine and cosine are exchanged. At position 0 the angle is 0, so x must come back as it was.", usual,
               first=lambda a, b, cos, sin: a * sin - b * cos, second=lambda a, b, cos, sin: a * cos + b * sin)
    _by_angles("overwritten_too_early", "The second entry is computed from the NEW first entry. Keep the old a until both entries are computed.", usual,
               second=lambda a, b, cos, sin: (a * cos - b * sin) * sin + b * cos)
    _by_angles("positions_added", "The sines and cosines are added to x. Rotary positions turn x; nothing is added.", usual,
               first=lambda a, b, cos, sin: a + sin, second=lambda a, b, cos, sin: b + cos)


_other_rotations()


@rotary.mistake("x is changed in place, but the caller still needs it. Write the result into a new tensor.")
def rotated_in_place(x, positions, base=10000):
    return x.copy_(positional.rotary(x.clone(), positions, base))


# ---------------------------------------------------------------- alibi_bias

def _alibi_inputs(generator):
    n, h, more, other = different(generator, 4, 3, 8)
    equal = whole(generator, 3, 6)
    return [{"n": n, "h": h} for n, h in [(n, h), (equal, equal), (1, more), (other, 1), (n + 10, 8), (h, 2)]]


alibi_bias = Item("alibi_bias", 2, _alibi_inputs, positional.alibi_bias, ("bias (h, n, n)",), IN_LIMITS, gradients=False,
                  kind="transfer")


def _alibi(n, h, slope=lambda i, h: 2 ** (-8 * i / h), first=1, line=lambda back: -back, ahead=-math.inf):
    """The bias with other slopes, another line, or something else ahead (None: the line itself)."""
    slopes = slope(torch.arange(first, first + h, dtype=torch.float64), h).expand(h)
    back = torch.arange(n)[:, None] - torch.arange(n)                    # i - j
    bias = slopes[:, None, None] * line(back)
    return (bias if ahead is None else bias.masked_fill(back < 0, ahead)).float()


for _name, _sentence, _parts in [
    ("slopes_from_zero", "The slopes start at i = 0, so the first head's is 1. The heads are numbered from 1: slope_i = 2^(-8 i / h), the first 2^(-8 / h).", {"first": 0}),
    ("sign_of_the_bias", "The sign is wrong: the bias grows with the distance. It is minus the slope times the distance, so that far keys get less weight.", {"line": lambda back: back}),
    ("first_slope_for_all", "Every head has the first slope. Head i has its own, 2^(-8 i / h).", {"slope": lambda i, h: 2 ** (-8 * i[:1] / h)}),
    ("last_slope_for_all", "Every head has the slope 2^(-8), the last one. Head i has its own, 2^(-8 i / h).", {"slope": lambda i, h: 2 ** (-8 * i[-1:] / h)}),
    ("line_continues", "The future is allowed, and the line continues there with positive numbers, so later keys are even preferred. Keys ahead get -inf.", {"ahead": None}),
    ("distance_without_direction", "The absolute distance is used, so keys ahead are treated like keys behind. Keys ahead get -inf.", {"line": lambda back: -back.abs(), "ahead": None}),
    ("zero_ahead", "Keys ahead get the bias 0, which is no mask at all. They get -inf.", {"ahead": 0.0}),
    ("large_number_ahead", "Keys ahead get -1e9, a large number. Use -math.inf, which gives a weight of exactly 0 whatever the scores are.", {"ahead": -1e9}),
    ("distance_from_one", "The distance of a token to itself is counted as 1. It is 0: the diagonal of the bias is 0.", {"line": lambda back: -back - 1}),
    ("slopes_reversed", "The slopes are in reverse order. Head 1 has the steepest, 2^(-8 / h), and head h the flattest, 2^(-8).", {"slope": lambda i, h: 2 ** (-8 * i.flip(0) / h)}),
    ("slopes_grow", "The exponent has no minus sign, so the slopes grow from head to head. slope_i = 2^(-8 i / h).", {"slope": lambda i, h: 2 ** (8 * i / h)}),
    ("eight_left_out", "The factor 8 is missing in the exponent. slope_i = 2^(-8 i / h), which is 2^(-8) for the last head whatever h is.", {"slope": lambda i, h: 2 ** (-i / h)}),
    ("h_left_out", "The exponent is -i, which is right for 8 heads only. slope_i = 2^(-8 i / h).", {"slope": lambda i, h: 2.0 ** -i}),
    ("base_e", "The slopes are powers of e. slope_i = 2^(-8 i / h).", {"slope": lambda i, h: torch.exp(-8 * i / h)}),
    ("slopes_linear", "The slopes are evenly spaced, i / h. They are a geometric sequence: slope_i = 2^(-8 i / h).", {"slope": lambda i, h: i / h}),
    ("no_slopes", "The slopes are missing: every head gets minus the distance. Multiply by slope_i = 2^(-8 i / h).", {"slope": lambda i, h: i[:1] ** 0}),
]:
    alibi_bias.mistake(_sentence)(type(_name, (), {"__new__": staticmethod(lambda cls, n, h, parts=_parts: _alibi(n, h, **parts))}))


@alibi_bias.mistake("-inf is multiplied by a mask of 0 and 1, and -inf times 0 is nan. Choose where -inf stands: masked_fill or torch.where.")
def infinity_times_zero(n, h):
    back = torch.arange(n)[:, None] - torch.arange(n)
    return _alibi(n, h, ahead=None) + -math.inf * (back < 0)


@alibi_bias.mistake("Queries and keys are exchanged: the past is hidden. Row i is the query, column j the key, and keys with j > i are ahead.")
def past_hidden(n, h):
    return positional.alibi_bias(n, h).transpose(-2, -1)


@alibi_bias.mistake("The heads are the last axis. They come first, (h, n, n), so that the bias is broadcast over the batch.")
def heads_last(n, h):
    return positional.alibi_bias(n, h).permute(1, 2, 0)


# ---------------------------------------------------------------- embed

def _embed_inputs(generator):
    def draw(B, n, d_model, vocab, dtype=torch.float32):
        return {"ids": torch.randint(vocab, (B, n), generator=generator), "E": normal(generator, vocab, d_model, dtype=dtype)}

    def trial(B=None, dtype=torch.float32):
        b, n, half = different(generator, 3, 2, 7)
        return draw(B or b, n + 1, 2 * half, whole(generator, 15, 25), dtype)
    return [trial(), trial(dtype=torch.float64), trial(B=1), draw(*[2 * whole(generator, 2, 4)] * 4), trial()]


def _embed(ids, E):
    return E[ids] + _rows(E[ids])


embed = Item("embed", 2, _embed_inputs, _embed, ("embeddings (B, n, d_model)",), IN_BATCH, uses=("positional_encoding",))


def _same_sentence_twice(answer, trial):
    first, second = answer(trial["ids"][:1].expand(2, -1), trial["E"])
    return (f"The same sentence twice in one batch gets two embeddings, which differ by up to {(first - second).abs().max():.2f}. "
            "They should be equal.")


@embed.plant("The encoding is added along the batch axis: positional_encoding(B, d_model)[:, None]. Its author looked at the shapes only, and they fit.", _same_sentence_twice)
def _along_the_batch(ids, E):
    return E[ids] + positional.positional_encoding(ids.size(0), E.size(1)).to(E)[:, None]


def _scaled(ids, E):
    return math.sqrt(E.size(1)) * E[ids]


@embed.mistake("The embeddings are multiplied by sqrt(d_model). Here they are added as they are.")
def looked_up_and_scaled(ids, E):
    return _scaled(ids, E) + _rows(E[ids])


@embed.mistake("The encoding is gone altogether. Add that of positions 0 to n - 1.")
def no_positions(ids, E):
    return E[ids]


@embed.mistake("The encoding belongs to the token's NUMBER, ids, so a word gets the same one wherever it stands. It should belong to the token's position in the sentence.")
def encoding_of_the_token(ids, E):
    return E[ids] + positional.positional_encoding(len(E), E.size(1)).to(E)[ids]


@embed.mistake("The positions are counted through the whole batch as if it were one long text. Each sentence starts at 0 again.")
def positions_run_on(ids, E):
    return E[ids] + positional.positional_encoding(ids.numel(), E.size(1)).to(E).view_as(E[ids])


@embed.mistake("Two encodings are added, one along the sentence and one along the batch. Remove the second one.")
def both_axes(ids, E):
    return _along_the_batch(ids, E) + _rows(E[ids])


@embed.mistake("Every token gets the encoding of position 0. Token j gets that of position j.")
def first_position_for_all(ids, E):
    return E[ids] + _rows(E[ids])[0]


@embed.mistake("The first token gets the encoding of position 1. Positions start at 0.")
def embed_from_one(ids, E):
    return E[ids] + _rows(E[ids], first=1)


@embed.mistake("Every token gets the encoding of position n. Token j gets that of position j.")
def length_as_position(ids, E):
    return E[ids] + _rows(E[ids], first=ids.size(1))[0]


@embed.mistake("The first n rows of E, which are word embeddings, are added. Add the first n rows of the positional encoding.")
def rows_of_the_embedding(ids, E):
    return E[ids] + E[:ids.size(1)]


@embed.mistake("The encoding is averaged over the positions before it is added, so all tokens get the same one. Token j gets row j.")
def mean_of_the_encoding(ids, E):
    return E[ids] + _rows(E[ids]).mean(dim=0)


ITEMS = [positional_encoding, shift_matrix, add_positions, rotary, alibi_bias, embed]

"""Exercise 10: the table of sines and cosines, the rotation between its rows, and the sum with a batch."""

import math

import torch

from ..models import positional
from .draw import different, whole
from .spec import Item, normal

IN_CODE, IN_ROTATION, IN_BATCH = "From formula to code", "k steps are one rotation", "The wrong axis"


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


ITEMS = [positional_encoding, shift_matrix, add_positions]

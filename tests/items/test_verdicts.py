"""What is said of an answer that no named mistake explains: a fact that holds, and no guessed cause."""

import math
import re

import numpy as np
import pytest
import torch
from torch import nn

from course_lib.decoding import beam_search
from course_lib.models import convolution, decoder_only, lm, residual
from course_lib.models.attention import MultiHeadAttention, attention, causal_mask, self_attention
from course_lib.models.positional import positional_encoding
from course_lib.models.transformer import EncoderBlock, FeedForward, Transformer, parameter_count
from course_tools.items import registry
from course_tools.judging.judge import examine
from course_tools.judging.probes import build_with


def say(name, answer):
    return examine(registry.find(name)[1], answer)


def test_torchs_not_implemented_is_an_error_and_no_empty_cell():
    verdict = say("attend", lambda e, H, mask=None: torch.softmax(e > 0, -1))
    assert verdict.status == "error" and "not implemented for 'Bool'" in verdict.message

    def empty(e, H, mask=None):
        raise NotImplementedError("your answer comes here")
    assert say("attend", empty).status == "missing"

    verdict = say("deep_stack", lambda make_block, n: nn.ModuleList(make_block() for _ in range(n)))
    assert verdict.status == "error" and "nn.Sequential" in verdict.message


@pytest.mark.parametrize("name, answer", [
    ("parameter_count", lambda *sizes: float(parameter_count(*sizes))),
    ("path_length", lambda *given, **more: float(convolution.path_length(*given, **more))),
    ("path_counts", lambda n: list(map(float, residual.path_counts(n))))])
def test_a_float_is_no_whole_number(name, answer):
    verdict = say(name, answer)
    assert verdict.status == "wrong" and ".0" in verdict.message and "but should" in verdict.message


def test_numpys_numbers_count_as_pythons():
    assert say("path_counts", lambda n: list(np.array(residual.path_counts(n)))).passed


def test_nothing_is_said_of_inputs_where_they_have_another_dtype():
    doubled = say("positional_encoding", lambda n, d_model: positional_encoding(n, d_model).double())
    assert "should have torch.float32." in doubled.message
    losing = say("attention", lambda Q, K, V, mask=None: [part.double() for part in attention(Q, K, V, mask)])
    assert "should have torch.float32, the dtype of the inputs." in losing.message


class NoWeights(MultiHeadAttention):
    def forward(self, q, k, v, mask=None):
        return super().forward(q, k, v, mask)[0], None


class WeightsInAList(MultiHeadAttention):
    def forward(self, q, k, v, mask=None):
        output, weights = super().forward(q, k, v, mask)
        return output, [*weights.unbind(1)]


class Silent(FeedForward):
    def forward(self, x):
        super().forward(x)


def test_a_part_of_another_kind_is_told_and_ends_no_check():
    assert "is None. Is a return statement missing?" in say("MultiHeadAttention", NoWeights).message
    assert "is a list, but should be a tensor" in say("MultiHeadAttention", WeightsInAList).message
    assert "is None. Is a return statement missing?" in say("FeedForward", Silent).message
    arrays = say("clip_gradient", lambda grads, max_norm: [grad.numpy() for grad in grads])
    assert "is a numpy array, but should be a tensor" in arrays.message and "object at" not in arrays.message


@pytest.mark.parametrize("change", [str, lambda count: None, lambda count: [count], torch.tensor, range])
def test_counts_of_any_kind_are_told_and_end_no_check(change):
    verdict = say("path_counts", lambda n: [change(count) for count in residual.path_counts(n)])
    assert verdict.status == "wrong" and verdict.mistake is None and "should" in verdict.message


def test_a_decoder_that_never_ends_and_one_that_gives_more():
    def endless(step, state, bos_id, eos_id, beam, max_len, alpha=0.6):
        while True:
            step(bos_id, state)
    assert "never ends" in say("beam_search", endless).message
    scored = say("beam_search", lambda *inputs: (beam_search(*inputs), 0.0))
    assert "You returned 2 results, but only one was expected: words" in scored.message


def test_what_is_done_to_a_list_of_functions_is_seen():
    def emptied(x, blocks):
        states = residual.residual_forward(x, blocks)
        blocks.clear()
        return states
    assert "blocks was changed in place" in say("residual_forward", emptied).message


def test_an_argument_of_forward_is_not_called_by_an_inner_name():
    class InPlace(EncoderBlock):
        def forward(self, x, mask=None):
            result = super().forward(x, mask)
            with torch.no_grad():
                x.add_(1)
            return result
    assert "an argument of forward was changed in place" in say("EncoderBlock", InPlace).message


def test_numbers_that_look_equal_get_more_digits():
    class Close(EncoderBlock):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            self.norm_1.eps = self.norm_2.eps = 1e-4
    said = say("EncoderBlock", Close).message
    got, expected = re.search(r" is (\S+), but should be (\S+)\. ", said).groups()
    assert got != expected


def test_a_float_has_no_more_digits_than_it_takes():
    message = say("alignment_error_rate", lambda predicted, sure, possible: 1 / 3).message
    assert re.search(r" is 0\.3333, but should be (0\.\d{1,6}|1|0)\.", message), message
    message = say("receptive_field", lambda kernel_size, dilations: 3.0).message
    assert re.search(r"is 3\.0, but should be \d+\.\n", message), message


def test_the_line_that_is_shown_is_the_learners():
    def with_a_wrong_mask(X, W_Q, W_K, W_V, mask=None):
        return self_attention(X, W_Q, W_K, W_V, torch.ones(7, 7, dtype=torch.bool))
    message = say("self_attention", with_a_wrong_mask).message
    assert "Line: return self_attention(X" in message


def test_a_list_that_hides_its_modules_is_told():
    class Hidden(Transformer):
        def __init__(self, *sizes):
            super().__init__(*sizes)
            blocks = list(self.encoder)
            del self.encoder
            self.encoder = blocks
    message = say("Transformer", Hidden).message
    assert "self.encoder is a plain list" in message and "more. The module has" in message


def test_parts_with_other_names_are_told_in_short():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x * self.weight
    with pytest.raises(AttributeError, match="no parameter or buffer is named gain. The module has: weight$"):
        build_with(Other, {"arguments": [], "state": {"gain": torch.ones(2)}, "calls": [], "reads": []})


@pytest.mark.parametrize("penalty, name", [
    (lambda n, alpha: (5 + n / 6) ** alpha, "only_the_length_by_6"),
    (lambda n, alpha: (5 + n) / 6 ** alpha, "alpha_ignored"),
    (lambda n, alpha: (5 + n) / 6 * alpha, "alpha_ignored"),
    (lambda n, alpha: (1 + n) ** alpha, None), (lambda n, alpha: ((5 + n) / 6) ** (1 - alpha), None),
    (lambda n, alpha: (6 + n) / 6, None), (lambda n, alpha: 5 + n / 6, None)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_length_penalty_is_taken_for_no_other(penalty, name, seed):
    def search(step, state, bos_id, eos_id, beam, max_len, alpha=0.6):
        live, ended = [(0.0, [bos_id], state)], []
        for _ in range(max_len):
            grown = []
            for score, words, before in live:
                logits, after = step(words[-1], before)
                grown += [(score + value, [*words, token], after)
                          for token, value in enumerate(logits.log_softmax(dim=-1).tolist())]
            kept = sorted(grown, key=lambda one: one[0], reverse=True)[:beam]
            ended += [one for one in kept if one[1][-1] == eos_id]
            live = [one for one in kept if one[1][-1] != eos_id]
            if not live:
                break
        found = max(ended, key=lambda one: one[0] / penalty(len(one[1]) - 1, alpha)) if ended else live[0]
        return [word for word in found[1][1:] if word != eos_id]
    verdict = examine(registry.find("beam_search")[1], search, seed)
    assert not verdict.passed and verdict.mistake == name


@pytest.mark.parametrize("clips", [lambda norm, most: norm ** 2 > most, lambda norm, most: norm > 1],
                         ids=["the square is compared", "1 is the limit"])
def test_clipping_that_compares_something_else_is_refused(clips):
    def clip(grads, max_norm):
        norm = math.sqrt(sum(float(grad.pow(2).sum()) for grad in grads))
        return [grad * max_norm / norm if clips(norm, max_norm) else grad.clone() for grad in grads]
    assert not say("clip_gradient", clip).passed


@pytest.mark.parametrize("way", [
    {"convolution": lambda n, k: n // (k - 1)}, {"convolution": lambda n, k: round(n / (k - 1))},
    {"convolution": lambda n, k: int((n - 1) / (k - 1) + 0.5)},
    {"dilated": lambda n, k: math.ceil(math.log10(n) / math.log10(k))},
    {"dilated": lambda n, k: math.ceil(math.log2(n) / math.log2(k))},
    {"dilated": lambda n, k: math.ceil(math.log(n, k) - 0.01)}])
def test_a_path_that_is_right_by_luck_is_refused(way):
    def path(n, layer, kernel_size=3):
        return way[layer](n, kernel_size) if layer in way else convolution.path_length(n, layer, kernel_size)
    assert not say("path_length", path).passed


def test_minus_twenty_is_not_minus_infinity():
    def attend(e, H, mask=None):
        e = e if mask is None else e.masked_fill(~mask, -20.0)
        weights = e.softmax(dim=-1)
        return (weights[:, None] @ H)[:, 0], weights
    assert not say("attend", attend).passed


def test_a_generator_of_ones_own_is_named_and_a_wrong_label_told():
    def own(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
        return lm.mask_tokens(ids, mask_id, vocab_size, special_ids, torch.Generator().manual_seed(0), p)
    assert say("mask_tokens", own).mistake == "always_the_same"

    def minus_one(ids, mask_id, vocab_size, special_ids, generator, p=0.15):
        inputs, labels = lm.mask_tokens(ids, mask_id, vocab_size, special_ids, generator, p)
        return inputs, labels.masked_fill(labels == -100, -1)
    words = "The only label besides tokens and -100 is -1, but should be 'none'."
    assert words in say("mask_tokens", minus_one).message


def if_a_tensor(e, H, mask=None):
    weights = (e.masked_fill(~mask, -math.inf) if mask else e).softmax(dim=-1)
    return (weights[:, None] @ H)[:, 0], weights


def without_keepdim(x, gamma, beta, eps=1e-5):
    return (x - x.mean(-1)) / (x.var(-1, correction=0) + eps).sqrt() * gamma + beta


def another_dtype(jacobians):
    product = torch.eye(len(jacobians[0]), dtype=torch.float64)
    for J in jacobians:
        product = (torch.eye(len(J)) + J) @ product
    return product


class WithTheWeights(decoder_only.DecoderOnlyBlock):
    def forward(self, x):
        normed = self.norm_1(x)
        x = x + self.attention(normed, normed, normed, causal_mask(x.size(1)))
        return x + self.feed_forward(self.norm_2(x))


class NotTransposed(lm.GPT):
    def forward(self, ids):
        return self.embedding(ids) @ self.embedding.weight


class WithAHead(lm.GPT):
    def __init__(self, vocab, d_model, h, d_ff, N):
        super().__init__(vocab, d_model, h, d_ff, N)
        self.head = nn.Linear(d_model, vocab, bias=False)


@pytest.mark.parametrize("name, answer, hint", [
    ("attend", if_a_tensor, "`if mask is not None`"), ("layer_norm", without_keepdim, "keepdim=True"),
    ("DecoderOnlyBlock", WithTheWeights, "a tuple of both"), ("GPT", NotTransposed, "a transpose missing"),
    ("GPT", WithAHead, "lists all parts"),
    ("rms_norm", lambda x, gamma, eps=1e-6: x / spread, "run that cell first"),  # noqa: F821
    ("residual_gradient", another_dtype, "dtype=x.dtype")])
def test_errors_that_everybody_meets_come_with_a_hint(name, answer, hint):
    verdict = say(name, answer)
    assert verdict.status == "error" and verdict.mistake is None and hint in verdict.message


def put_back(logits, p):
    shares, order = logits.softmax(-1).sort(-1, descending=True)
    shares = shares.masked_fill(shares.cumsum(-1) - shares >= p, 0.0)
    return torch.gather(shares / shares.sum(-1, keepdim=True), -1, order)


def zero_times(Q, K, V, mask=None):
    scores = Q @ K.transpose(-2, -1) / math.sqrt(Q.size(-1))
    weights = (scores if mask is None else scores + (~mask) * -math.inf).softmax(-1)
    return weights @ V, weights


class InAList(nn.Module):
    def __init__(self, make_block, n):
        super().__init__()
        self.layers = [make_block() for _ in range(n)]

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class WithBiases(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1, self.W_3 = nn.Linear(d_model, d_ff), nn.Linear(d_model, d_ff)
        self.W_2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.W_2(nn.functional.silu(self.W_1(x)) * self.W_3(x))


@pytest.mark.parametrize("name, answer, mistake", [
    ("deep_stack", InAList, "kept_in_a_list"), ("SwiGLU", WithBiases, "swiglu_biases"),
    ("padding_mask", lambda lengths, m: (torch.arange(m) < lengths)[:, None], "lengths_without_an_axis"),
    ("split_heads", lambda X, h: X.mT.reshape(len(X), h, X.size(1), -1), "transposed_before_the_cut"),
    ("nucleus", put_back, "put_back_by_gather"),
    ("attention", zero_times, "zero_times_infinity")])
def test_what_learners_really_write_has_its_name(name, answer, mistake):
    assert say(name, answer).mistake == mistake

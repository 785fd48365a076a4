"""Exercise 11: feed-forward, encoder block, decoder block, and how many numbers they hold."""

import torch
import torch.nn.functional as F
from torch import nn

from ..models import transformer
from ..models.attention import causal_mask, padding_mask
from .draw import different, sizes, telling, whole
from .spec import Item, normal

IN_CODE, IN_DECODER, IN_COUNT = "From formula to code", "The decoder block", "Where the parameters are"
FREE = ("TransformerEncoderLayer", "TransformerDecoderLayer", "TransformerEncoder", "TransformerDecoder",
        "Transformer", "MultiheadAttention", "multi_head_attention_forward", "transformer_encoder_layer_fwd")


def _linear(generator, name, d_out, d_in, dtype, bias=True):
    weight = {f"{name}.weight": normal(generator, d_out, d_in, scale=d_in ** -0.5, dtype=dtype)}
    return weight | ({f"{name}.bias": normal(generator, d_out, scale=0.5, dtype=dtype)} if bias else {})


def _feed_forward(generator, d_model, d_ff, dtype, prefix=""):
    return (_linear(generator, f"{prefix}W_1", d_ff, d_model, dtype)
            | _linear(generator, f"{prefix}W_2", d_model, d_ff, dtype))


def _attention(generator, name, d_model, dtype):
    parts = [_linear(generator, f"{name}.{W}", d_model, d_model, dtype, bias=False)
             for W in ("W_Q", "W_K", "W_V", "W_O")]
    return {key: value for part in parts for key, value in part.items()}


def _norm(generator, name, d_model, dtype, scale=1.0):
    return {f"{name}.weight": scale * (1 + normal(generator, d_model, scale=0.5, dtype=dtype)),
            f"{name}.bias": scale * normal(generator, d_model, scale=0.5, dtype=dtype)}


def _trial(arguments, state, calls):
    """Each call in both modes, in turn: nothing here may depend on the mode."""
    modes = ["train", "eval"] * len(calls)
    return {"arguments": arguments, "state": state, "calls": list(zip(modes, calls, strict=False)), "reads": []}


# ---------------------------------------------------------------- FeedForward

def _feed_forward_inputs(generator):
    def draw(d_model, d_ff, *shape, dtype=torch.float32):
        calls = [[normal(generator, *shape, d_model, dtype=dtype)], [normal(generator, 3, d_model, dtype=dtype)]]
        return _trial([d_model, d_ff], _feed_forward(generator, d_model, d_ff, dtype), calls)
    usual, other, one, equal = sizes(generator, 3)
    d_ff = different(generator, 3)
    def trial(shape, d_ff, dtype=torch.float32):
        *batch, d_model = shape
        return draw(d_model, d_ff, *batch, dtype=dtype)
    return [trial(usual, d_ff[0] + usual[-1]), trial(other, d_ff[1], torch.float64), trial(one, d_ff[2]), trial(equal, equal[0])]


FeedForward = Item("FeedForward", 1, _feed_forward_inputs, transformer.FeedForward,
                   ("output (..., d_model)", "output_2 (3, d_model)", "nothing"), IN_CODE, free=FREE, probe="build")


def _bent(item, sentence, forward, name):
    """Register a FeedForward with another forward(self, x)."""
    item.mistake(sentence)(type(name, (transformer.FeedForward,), {"forward": forward}))


for _name, _sentence, _forward in [
    ("relu_last", "the ReLU comes last; it stands between the two layers: W_2(relu(W_1(x))).",
     lambda self, x: self.W_2(self.W_1(x)).relu()),
    ("relu_twice", "there is a second ReLU at the end; the output of W_2 stays as it is.",
     lambda self, x: self.W_2(self.W_1(x).relu()).relu()),
    ("relu_first", "the ReLU acts on x; it acts on what W_1 makes of x: W_2(relu(W_1(x))).",
     lambda self, x: self.W_2(self.W_1(x.relu()))),
    ("no_relu", "the ReLU is missing: without it the two layers are one linear map.",
     lambda self, x: self.W_2(self.W_1(x))),
    ("gelu", "this is a GELU (BERT and GPT use it); the formula here has ReLU, max(0, ...).",
     lambda self, x: self.W_2(F.gelu(self.W_1(x)))),
    ("gelu_by_tanh", "this is a GELU in its tanh form; the formula here has ReLU, max(0, ...).",
     lambda self, x: self.W_2(F.gelu(self.W_1(x), approximate="tanh"))),
    ("sigmoid_for_relu", "a sigmoid stands where the formula has ReLU, max(0, ...).",
     lambda self, x: self.W_2(self.W_1(x).sigmoid())),
    ("tanh_for_relu", "a tanh stands where the formula has ReLU, max(0, ...).",
     lambda self, x: self.W_2(self.W_1(x).tanh())),
    ("residual_inside", "x is added already here; the sum and the norm belong to the block around it.",
     lambda self, x: x + self.W_2(self.W_1(x).relu())),
    ("norm_inside", "the result is normalised already here; the sum and the norm belong to the block around it.",
     lambda self, x: F.layer_norm(self.W_2(self.W_1(x).relu()), x.shape[-1:])),
    ("biases_unused", "the biases are not added: max(0, x W_1 + b_1) W_2 + b_2.",
     lambda self, x: F.linear(F.linear(x, self.W_1.weight).relu(), self.W_2.weight)),
    ("first_layer_only", "W_2 is not used: after the ReLU it leads back from d_ff to d_model.",
     lambda self, x: self.W_1(x).relu()),
]:
    _bent(FeedForward, _sentence, _forward, _name)


@FeedForward.mistake("W_1 and W_2 are exchanged: W_1 leads from d_model to d_ff and comes first, W_2 leads back.")
class layers_exchanged(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1, self.W_2 = nn.Linear(d_ff, d_model), nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.W_1(self.W_2(x).relu())


D_FF = "d_ff is not used: the feed-forward is 4 * d_model wide, which is only a common choice. Hand d_ff on to {}."


def _four_times(block):
    """The block with 4 * d_model for its last size, d_ff."""
    def build(self, d_model, *others):
        block.__init__(self, d_model, *others[:-1], 4 * d_model)
    return {"__init__": build}


FeedForward.mistake(D_FF.format("W_1 and W_2"))(
    type("d_ff_ignored", (transformer.FeedForward,), _four_times(transformer.FeedForward)))


# ---------------------------------------------------------------- EncoderBlock

def _encoder_inputs(generator):
    def draw(d_model, h, d_ff, B, n, dtype=torch.float32, scale=1.0):
        """scale: of x and of norm_1's output; where they are small, eps counts."""
        x = [0.5 * scale + scale * normal(generator, B, n, d_model, dtype=dtype) for _ in range(3)]
        lengths = torch.tensor([n, *torch.randint(1, n, (B - 1,), generator=generator).tolist()])
        state = (_attention(generator, "attention", d_model, dtype)
                 | _feed_forward(generator, d_model, d_ff, dtype, "feed_forward.")
                 | _norm(generator, "norm_1", d_model, dtype, scale) | _norm(generator, "norm_2", d_model, dtype))
        if scale < 1:
            state = {name: value * (scale if "feed_forward" in name else 1) for name, value in state.items()}
        return _trial([d_model, h, d_ff], state,
                      [[x[0]], [x[1], causal_mask(n)], [x[2], padding_mask(lengths, n)]])
    def trial(B=None, **how):
        b, n, h, d_ff = different(generator, 4, high=6)
        return draw(h * whole(generator, 2, 4), h, d_ff + 5, B or b, n + 1, **how)
    return [trial(), draw(4, 2, 4, 4, 4), trial(dtype=torch.float64), trial(B=1), trial(scale=0.005)]


OUTPUTS = ("output (B, n, d_model)", "output_with_causal_mask (B, n, d_model)", "output_with_padding_mask (B, n, d_model)",
           "nothing")
EncoderBlock = Item("EncoderBlock", 3, _encoder_inputs, transformer.EncoderBlock, OUTPUTS, IN_CODE,
                    uses=("FeedForward",), handed=("MultiHeadAttention", "causal_mask"), free=FREE, probe="build")


def _encoder(name, sentence):
    """Decorator: forward(self, x, mask), with attend(x) given as self.seen(x, mask), becomes a named mistake."""
    def register(forward):
        def standard(self, x, mask=None):
            return forward(self, x, mask, lambda q: self.attention(q, q, q, mask)[0])
        EncoderBlock.mistake(sentence)(type(name, (transformer.EncoderBlock,), {"forward": standard}))
    return register


def _encoders():
    """The block's two lines, x = norm_1(x + attend(x)) and norm_2(x + ff(x)), each time with one part exchanged."""
    @_encoder("pre_norm", "the norm stands before the parts, x + f(norm(x)), which is pre-norm; here it is "
                          "norm(x + f(x)), post-norm.")
    def _(self, x, mask, attend):
        x = x + attend(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))

    @_encoder("one_norm_for_both", "one norm serves both sums; norm_1 and norm_2 are two modules, each with "
                                   "parameters of its own.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + attend(x))
        return self.norm_1(x + self.feed_forward(x))

    @_encoder("norms_exchanged", "norm_1 and norm_2 are exchanged: norm_1 follows the attention.")
    def _(self, x, mask, attend):
        x = self.norm_2(x + attend(x))
        return self.norm_1(x + self.feed_forward(x))

    @_encoder("no_residual", "the residuals are missing: norm(x + f(x)), not norm(f(x)).")
    def _(self, x, mask, attend):
        x = self.norm_1(attend(x))
        return self.norm_2(self.feed_forward(x))

    @_encoder("no_residual_around_attention", "the residual around the attention is missing: norm_1(x + attention).")
    def _(self, x, mask, attend):
        x = self.norm_1(attend(x))
        return self.norm_2(x + self.feed_forward(x))

    @_encoder("no_residual_around_feed_forward", "the residual around the feed-forward is missing: "
                                                 "norm_2(x + feed_forward(x)).")
    def _(self, x, mask, attend):
        return self.norm_2(self.feed_forward(self.norm_1(x + attend(x))))

    @_encoder("norm_before_the_sum", "the norm is taken before the sum, x + norm(f(x)); here it is taken of the sum, "
                                     "norm(x + f(x)).")
    def _(self, x, mask, attend):
        x = x + self.norm_1(attend(x))
        return x + self.norm_2(self.feed_forward(x))

    @_encoder("no_norms", "the norms are missing: each sum is normalised.")
    def _(self, x, mask, attend):
        x = x + attend(x)
        return x + self.feed_forward(x)

    @_encoder("no_norm_after_attention", "norm_1 is missing: the sum after the attention is normalised as well.")
    def _(self, x, mask, attend):
        x = x + attend(x)
        return self.norm_2(x + self.feed_forward(x))

    @_encoder("no_norm_after_feed_forward", "norm_2 is missing: the sum after the feed-forward is normalised as well.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + attend(x))
        return x + self.feed_forward(x)

    @_encoder("second_skip_from_the_input", "the second residual starts at the block's input; it starts at what norm_1 gave.")
    def _(self, x, mask, attend):
        return self.norm_2(x + self.feed_forward(self.norm_1(x + attend(x))))

    @_encoder("feed_forward_of_the_input", "the feed-forward reads the block's input; it reads what norm_1 gave.")
    def _(self, x, mask, attend):
        return self.norm_2(self.norm_1(x + attend(x)) + self.feed_forward(x))

    @_encoder("encoder_mask_inverted", "the mask is inverted: True means MAY attend, and the attention takes it as it is.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + self.attention(x, x, x, _inverted(mask))[0])
        return self.norm_2(x + self.feed_forward(x))

    @_encoder("feed_forward_first", "the feed-forward comes first; the order is attention, then feed-forward.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + self.feed_forward(x))
        return self.norm_2(x + attend(x))

    @_encoder("no_feed_forward", "the feed-forward is missing: after the attention comes norm_2(x + feed_forward(x)).")
    def _(self, x, mask, attend):
        return self.norm_2(self.norm_1(x + attend(x)))

    @_encoder("no_attention", "the attention is missing: first comes norm_1(x + attention).")
    def _(self, x, mask, attend):
        return self.norm_2(self.norm_1(x) + self.feed_forward(self.norm_1(x)))

    @_encoder("mask_ignored", "the mask is not handed to the attention.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + self.attention(x, x, x)[0])
        return self.norm_2(x + self.feed_forward(x))

    @_encoder("returns_weights_too", "the block returns the weights as well; it returns the tensor alone, so that blocks "
                                     "can be stacked.")
    def _(self, x, mask, attend):
        return self.look(x, mask)

    @_encoder("norm_without_gain_and_shift", "the norm has no gain and shift of its own: use the block's norm_1 and norm_2.")
    def _(self, x, mask, attend):
        x = F.layer_norm(x + attend(x), x.shape[-1:])
        return F.layer_norm(x + self.feed_forward(x), x.shape[-1:])


_encoders()


def _with_eps(block, eps):
    """The block with another eps in its norms."""
    class Other(block):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            for name, part in self.named_children():
                if name.startswith("norm"):
                    part.eps = eps
    return Other


EncoderBlock.mistake("the eps of the norms is 1e-6; nn.LayerNorm's own is 1e-5: leave it as it is.")(
    type("eps_1e_6", (_with_eps(transformer.EncoderBlock, 1e-6),), {}))
EncoderBlock.mistake("the eps of the norms is 1e-3; nn.LayerNorm's own is 1e-5: leave it as it is.")(
    type("eps_1e_3", (_with_eps(transformer.EncoderBlock, 1e-3),), {}))


EncoderBlock.mistake(D_FF.format("FeedForward"))(
    type("encoder_d_ff_ignored", (transformer.EncoderBlock,), _four_times(transformer.EncoderBlock)))


@EncoderBlock.mistake("the number of heads h is not handed on: the attention has one head.")
class one_head(transformer.EncoderBlock):
    def __init__(self, d_model, h, d_ff):
        super().__init__(d_model, 1, d_ff)


# ---------------------------------------------------------------- DecoderBlock

def _decoder_inputs(generator):
    def draw(d_model, h, d_ff, B, n, m, dtype=torch.float32):
        y = [normal(generator, B, n, d_model, dtype=dtype) for _ in range(3)]
        memory = [normal(generator, B, m, d_model, dtype=dtype) for _ in range(3)]
        lengths = torch.tensor([m, *torch.randint(1, m, (B - 1,), generator=generator).tolist()])
        state = (_attention(generator, "self_attention", d_model, dtype)
                 | _attention(generator, "memory_attention", d_model, dtype)
                 | _feed_forward(generator, d_model, d_ff, dtype, "feed_forward."))
        for norm in ("norm_1", "norm_2", "norm_3"):
            state |= _norm(generator, norm, d_model, dtype)
        padding = padding_mask(lengths, m)
        if B == 1:                                   # let the padding hide something here too
            padding[..., -1] = False
        return _trial([d_model, h, d_ff], state,
                      [[y[0], memory[0]], [y[1], memory[1], causal_mask(n)],
                       [y[2], memory[2], causal_mask(n), padding]])
    def trial(B=None, **how):
        b, n, m, d_ff = different(generator, 4, high=6)
        h = whole(generator, 2, 4)
        return draw(h * whole(generator, 2, 4), h, d_ff + 5, B or b, n, m, **how)
    return [trial(), draw(4, 2, 4, 4, 4, 4), trial(dtype=torch.float64), trial(B=1)]


DecoderBlock = Item("DecoderBlock", 3, _decoder_inputs, transformer.DecoderBlock,
                    ("output (B, n, d_model)", "output_with_self_mask (B, n, d_model)",
                     "output_with_both_masks (B, n, d_model)", "nothing"),
                    IN_DECODER, uses=("FeedForward",), handed=("MultiHeadAttention", "causal_mask"), free=FREE, probe="build")


def _decoder(name, sentence):
    """Decorator: forward(self, y, memory, own, other), own(y) and other(y) being the two attentions."""
    def register(forward):
        def standard(self, y, memory, self_mask=None, memory_mask=None):
            self.masks = self_mask, memory_mask
            return forward(self, y, memory, lambda y: self.self_attention(y, y, y, self_mask)[0],
                           lambda y: self.memory_attention(y, memory, memory, memory_mask)[0])
        DecoderBlock.mistake(sentence)(type(name, (transformer.DecoderBlock,), {"forward": standard}))
    return register


def _three(self, y, own, other, norms=None):
    """The right three lines, with the two attentions and the norms as given."""
    for norm, part in zip(norms or (self.norm_1, self.norm_2, self.norm_3), (own, other, self.feed_forward), strict=True):
        y = norm(y + part(y))
    return y


def _inverted(mask):
    return None if mask is None else ~mask


def _masks(name, sentence, masks):
    """A block whose two attentions are given masks(self_mask, memory_mask)."""
    class Masked(transformer.DecoderBlock):
        def forward(self, y, memory, self_mask=None, memory_mask=None):
            return super().forward(y, memory, *masks(self_mask, memory_mask))
    Masked.__name__ = name
    DecoderBlock.mistake(sentence)(Masked)


def _other_masks():
    _masks("masks_swapped", "the masks are swapped: self_mask belongs to the self-attention, memory_mask to the memory "
           "attention.", lambda own, other: (other, own))
    _masks("self_attention_unmasked", "self_mask is not handed to the self-attention: each word sees those that come "
           "after it.", lambda own, other: (None, other))
    _masks("memory_mask_ignored", "memory_mask is not handed to the memory attention: it looks at padding.",
           lambda own, other: (own, None))
    _masks("both_masks_ignored", "neither mask is handed on to an attention.", lambda own, other: (None, None))
    _masks("self_mask_for_both", "self_mask is handed to both attentions; memory_mask belongs to the memory attention.",
           lambda own, other: (own, own))
    _masks("memory_mask_for_both", "memory_mask is handed to both attentions; self_mask belongs to the self-attention.",
           lambda own, other: (other, other))
    _masks("decoder_masks_inverted", "both masks are inverted: True means MAY attend, and the attentions take them as they "
           "are.", lambda own, other: (_inverted(own), _inverted(other)))
    _masks("self_mask_inverted_in_decoder", "self_mask is inverted: True means MAY attend, and the self-attention takes it "
           "as it is.", lambda own, other: (_inverted(own), other))
    _masks("memory_mask_inverted", "memory_mask is inverted: True means MAY attend, and the memory attention takes it as it "
           "is.", lambda own, other: (own, _inverted(other)))


def _decoders():
    """The block's three lines, each time with one part exchanged."""
    @_decoder("query_from_memory", "the query comes from the memory and keys and values from y; it is the other way round: "
                                   "memory_attention(y, memory, memory).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.memory_attention(memory, y, y, self.masks[1])[0])

    @_decoder("keys_and_values_from_y", "keys and values of the memory attention come from y, so the memory is never read: "
                                        "memory_attention(y, memory, memory).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.memory_attention(y, y, y, self.masks[1])[0])

    @_decoder("query_from_memory_unmasked", "the query comes from the memory and keys and values from y, and memory_mask is not handed "
                                            "on: memory_attention(y, memory, memory, memory_mask).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.memory_attention(memory, y, y)[0])

    @_decoder("keys_and_values_from_y_unmasked", "keys and values of the memory attention come from y, and memory_mask is not handed "
                                                 "on: memory_attention(y, memory, memory, memory_mask).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.memory_attention(y, y, y)[0])

    @_decoder("keys_and_values_from_y_with_self_mask", "the second attention reads y again, with self_mask, so the memory is never "
                                                       "read: memory_attention(y, memory, memory, memory_mask).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.memory_attention(y, y, y, self.masks[0])[0])

    @_decoder("values_from_y", "the values of the memory attention come from y; keys AND values are the memory.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.memory_attention(y, memory, y, self.masks[1])[0])

    @_decoder("keys_from_y", "the keys of the memory attention come from y; keys AND values are the memory.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.memory_attention(y, y, memory, self.masks[1])[0])

    @_decoder("memory_alone", "query, key and value of the memory attention are the memory; the query is y.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.memory_attention(memory, memory, memory, self.masks[1])[0])

    @_decoder("memory_left_out", "the memory attention is missing: the decoder never reads the source sentence.")
    def _(self, y, memory, own, other):
        y = self.norm_1(y + own(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("self_attention_left_out", "the self-attention is missing: the words written so far never meet.")
    def _(self, y, memory, own, other):
        y = self.norm_2(y + other(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("memory_first", "the memory attention comes first; the order is self-attention, memory attention, "
                              "feed-forward.")
    def _(self, y, memory, own, other):
        y = self.norm_1(y + other(y))
        y = self.norm_2(y + own(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("parts_exchanged", "self_attention and memory_attention are exchanged: the one named self_attention reads y "
                                 "alone.")
    def _(self, y, memory, own, other):
        return _three(self, y, lambda y: self.memory_attention(y, y, y, self.masks[0])[0],
                      lambda y: self.self_attention(y, memory, memory, self.masks[1])[0])

    @_decoder("decoder_pre_norm", "the norm stands before the parts, y + f(norm(y)), which is pre-norm; here it is "
                                  "norm(y + f(y)), post-norm.")
    def _(self, y, memory, own, other):
        y = y + own(self.norm_1(y))
        y = y + other(self.norm_2(y))
        return y + self.feed_forward(self.norm_3(y))

    @_decoder("decoder_no_residual", "the residuals are missing: norm(y + f(y)), not norm(f(y)).")
    def _(self, y, memory, own, other):
        y = self.norm_2(other(self.norm_1(own(y))))
        return self.norm_3(self.feed_forward(y))

    @_decoder("no_residual_around_memory", "the residual around the memory attention is missing: norm_2(y + attention).")
    def _(self, y, memory, own, other):
        y = self.norm_2(other(self.norm_1(y + own(y))))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("no_residual_around_self_attention", "the residual around the self-attention is missing: norm_1(y + attention).")
    def _(self, y, memory, own, other):
        y = self.norm_1(own(y))
        y = self.norm_2(y + other(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("decoder_no_residual_around_feed_forward", "the residual around the feed-forward is missing: "
                                                         "norm_3(y + feed_forward(y)).")
    def _(self, y, memory, own, other):
        y = self.norm_1(y + own(y))
        return self.norm_3(self.feed_forward(self.norm_2(y + other(y))))

    @_decoder("norm_2_and_norm_3_exchanged", "norm_2 and norm_3 are exchanged: norm_2 follows the memory attention.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, (self.norm_1, self.norm_3, self.norm_2))

    @_decoder("norm_2_twice", "norm_2 is used twice; the last sum has norm_3.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, (self.norm_1, self.norm_2, self.norm_2))

    @_decoder("no_norm_3", "norm_3 is missing: the last sum is normalised as well.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, (self.norm_1, self.norm_2, nn.Identity()))

    @_decoder("decoder_no_norms", "the norms are missing: each sum is normalised.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, [nn.Identity()] * 3)

    @_decoder("residual_from_the_memory", "the residual around the memory attention is the memory; it is y: norm_2(y + attention).")
    def _(self, y, memory, own, other):
        y = self.norm_1(y + own(y))
        y = self.norm_2(memory + other(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("query_before_the_self_attention", "the memory is asked with the block's input; the query is what norm_1 gave.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda _: other(y))

    @_decoder("decoder_one_norm", "norm_1 is used three times; each sum has a norm of its own.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, [self.norm_1] * 3)

    @_decoder("decoder_norm_before_the_sum", "the norm is taken before the sum, y + norm(f(y)); here it is taken of the "
                                             "sum, norm(y + f(y)).")
    def _(self, y, memory, own, other):
        for norm, part in ((self.norm_1, own), (self.norm_2, other), (self.norm_3, self.feed_forward)):
            y = y + norm(part(y))
        return y

    @_decoder("decoder_no_feed_forward", "the feed-forward is missing: last comes norm_3(y + feed_forward(y)).")
    def _(self, y, memory, own, other):
        return self.norm_3(self.norm_2((y := self.norm_1(y + own(y))) + other(y)))

    @_decoder("decoder_returns_weights_too", "the block returns the weights as well; it returns the tensor alone, so that "
                                             "blocks can be stacked.")
    def _(self, y, memory, own, other):
        return self.look(y, memory, *self.masks)


_other_masks()
_decoders()


@DecoderBlock.mistake("one attention serves as both: self_attention and memory_attention have weights of their own.")
class attentions_tied(transformer.DecoderBlock):
    def __init__(self, d_model, h, d_ff):
        super().__init__(d_model, h, d_ff)
        self.memory_attention = self.self_attention


DecoderBlock.mistake(D_FF.format("FeedForward"))(
    type("decoder_d_ff_ignored", (transformer.DecoderBlock,), _four_times(transformer.DecoderBlock)))


@DecoderBlock.mistake("the number of heads h is not handed on: both attentions have one head.")
class decoder_one_head(transformer.DecoderBlock):
    def __init__(self, d_model, h, d_ff):
        super().__init__(d_model, 1, d_ff)


# ---------------------------------------------------------------- parameter_count

def _count_inputs(generator):
    def some(low, high):
        return whole(generator, low, high)

    def draw():
        equal, d_model = some(4, 12), 64 * some(2, 9)
        sizes = [(some(3, 12), some(5, 20), 2, some(5, 30)), (some(3, 12), some(5, 20), some(3, 6), some(5, 30)),
                 (equal, equal, 1, some(5, 30)), (some(5, 40), some(5, 120), some(2, 7), some(30, 90)),
                 (d_model, 4 * d_model, some(4, 7), 1000 * some(8, 38))]
        return [dict(zip(("d_model", "d_ff", "N", "vocab"), size, strict=True)) for size in sizes]
    return telling(parameter_count, draw)


parameter_count = Item("parameter_count", 2, _count_inputs, transformer.parameter_count, ("count",), IN_COUNT,
                       gradients=False)


def _count(d_model, d_ff, N, vocab, matrices=4, extra=0, ff_bias=True, norm=2, encoder_norms=2, decoder_norms=3,
           decoder_attentions=2, embeddings=1, encoder=1, decoder=1, first_bias=True, second_bias=True):
    attention = matrices * d_model ** 2 + extra
    ff = 2 * d_model * d_ff + ff_bias * (first_bias * d_ff + second_bias * d_model)
    blocks = (encoder * (attention + ff + encoder_norms * norm * d_model)
              + decoder * (decoder_attentions * attention + ff + decoder_norms * norm * d_model))
    return N * blocks + embeddings * vocab * d_model


for _name, _sentence, _changes in [
    ("norms_forgotten", "the norms are forgotten: each has a gain and a shift, 2 d_model numbers; there are 2 in an encoder "
                        "block and 3 in a decoder block.", {"norm": 0}),
    ("shifts_forgotten", "each norm has two vectors, a gain and a shift: 2 d_model numbers, not d_model.", {"norm": 1}),
    ("biases_forgotten", "the biases of the feed-forward are forgotten: d_ff + d_model in each block.", {"ff_bias": False}),
    ("first_bias_forgotten", "the bias of W_1 is forgotten: d_ff numbers in each block.", {"first_bias": False}),
    ("W_2_bias_or_third_norm_forgotten", "2 d_model numbers are missing for each of the N layers: the bias of W_2 (d_model "
     "in every block), or the third norm of the decoder block (2 d_model).", {"second_bias": False}),
    ("norms_and_biases_forgotten", "norms and biases are forgotten: only the matrices are counted.",
     {"norm": 0, "ff_bias": False}),
    ("W_O_forgotten", "W_O is forgotten: an attention has four matrices, W_Q, W_K, W_V and W_O.", {"matrices": 3}),
    ("embedding_twice", "the embedding is counted twice; input and output share one, vocab * d_model.", {"embeddings": 2}),
    ("embedding_three_times", "the embedding is counted three times; source, target and output share one.",
     {"embeddings": 3}),
    ("embedding_forgotten", "the embedding is forgotten: vocab * d_model, once.", {"embeddings": 0}),
    ("one_attention_per_decoder_block", "a decoder block has two attentions, over itself and over the memory.",
     {"decoder_attentions": 1}),
    ("decoder_as_encoder", "the decoder block is counted as an encoder block; it has a second attention and a third norm.",
     {"decoder_attentions": 1, "decoder_norms": 2}),
    ("encoder_only", "the decoder blocks are forgotten: N encoder blocks and N decoder blocks.", {"decoder": 0}),
    ("decoder_only", "the encoder blocks are forgotten: N encoder blocks and N decoder blocks.", {"encoder": 0}),
]:
    parameter_count.mistake(_sentence)(type(_name, (), {"__new__": staticmethod(
        lambda cls, d_model, d_ff, N, vocab, changes=_changes: _count(d_model, d_ff, N, vocab, **changes))}))


@parameter_count.mistake("the projections of the attention have no bias here: W_Q, W_K, W_V and W_O are d_model x d_model.")
def projections_with_bias(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, N, vocab, extra=4 * d_model)


@parameter_count.mistake("the output layer has a bias of its own here; it shares the embedding's numbers and adds none.")
def output_bias(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, N, vocab) + vocab


@parameter_count.mistake("N is not used: there are N encoder blocks and N decoder blocks.")
def one_block_each(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, 1, vocab)


@parameter_count.mistake("N is not used: 6 stands in its place, the paper's number.")
def six_blocks_each(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, 6, vocab)


@parameter_count.mistake("only one matrix of the feed-forward is counted; it has two, W_1 and W_2.")
def one_feed_forward_matrix(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, N, vocab) - 2 * N * d_model * d_ff


@parameter_count.mistake("d_ff is not used: 4 * d_model stands in its place.")
def d_ff_taken_as_4_d_model(d_model, d_ff, N, vocab):
    return _count(d_model, 4 * d_model, N, vocab)


@parameter_count.mistake("only the matrices of the attentions are counted: feed-forward, norms and embedding are learned too.")
def attention_only(d_model, d_ff, N, vocab):
    return 12 * N * d_model ** 2


ITEMS = [FeedForward, EncoderBlock, DecoderBlock, parameter_count]

"""Exercise 11: feed-forward, encoder and decoder block, how many numbers they hold; SwiGLU and the decoder-only block."""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.models import decoder_only, transformer
from course_lib.models.attention import causal_mask, padding_mask

from ..judging.draw import different, sizes, telling, whole
from ..judging.spec import Item, normal

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


def encoder_state(generator, d_model, d_ff, dtype, prefix="", scale=1.0):
    """The parameters of a block of one attention, by name; scale: of norm_1's."""
    return (_attention(generator, f"{prefix}attention", d_model, dtype)
            | _feed_forward(generator, d_model, d_ff, dtype, f"{prefix}feed_forward.")
            | _norm(generator, f"{prefix}norm_1", d_model, dtype, scale) | _norm(generator, f"{prefix}norm_2", d_model, dtype))


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
    ("relu_last", "The ReLU comes last. It belongs between the two layers: W_2(relu(W_1(x))).",
     lambda self, x: self.W_2(self.W_1(x)).relu()),
    ("relu_twice", "There is a second ReLU at the end. The output of W_2 stays as it is.",
     lambda self, x: self.W_2(self.W_1(x).relu()).relu()),
    ("relu_first", "The ReLU is applied to x. Apply it to the output of W_1: W_2(relu(W_1(x))).",
     lambda self, x: self.W_2(self.W_1(x.relu()))),
    ("no_relu", "The ReLU is missing: without it the two layers are one linear map.",
     lambda self, x: self.W_2(self.W_1(x))),
    ("gelu", "This is a GELU (as in BERT and GPT). The formula here has a ReLU, max(0, ...).",
     lambda self, x: self.W_2(F.gelu(self.W_1(x)))),
    ("gelu_by_tanh", "This is a GELU in its tanh form. The formula here has a ReLU, max(0, ...).",
     lambda self, x: self.W_2(F.gelu(self.W_1(x), approximate="tanh"))),
    ("sigmoid_for_relu", "A sigmoid is used where the formula has a ReLU, max(0, ...).",
     lambda self, x: self.W_2(self.W_1(x).sigmoid())),
    ("tanh_for_relu", "A tanh is used where the formula has a ReLU, max(0, ...).",
     lambda self, x: self.W_2(self.W_1(x).tanh())),
    ("residual_inside", "x is already added here. The residual sum and the norm belong to the block around it.",
     lambda self, x: x + self.W_2(self.W_1(x).relu())),
    ("norm_inside", "The result is already normalised here. The residual sum and the norm belong to the block around it.",
     lambda self, x: F.layer_norm(self.W_2(self.W_1(x).relu()), x.shape[-1:])),
    ("biases_unused", "The biases are not added: max(0, x W_1 + b_1) W_2 + b_2.",
     lambda self, x: F.linear(F.linear(x, self.W_1.weight).relu(), self.W_2.weight)),
    ("first_layer_only", "W_2 is not used. After the ReLU it maps d_ff back to d_model.",
     lambda self, x: self.W_1(x).relu()),
]:
    _bent(FeedForward, _sentence, _forward, _name)


@FeedForward.mistake("W_1 and W_2 are exchanged. W_1 comes first and maps d_model to d_ff; W_2 maps back.")
class layers_exchanged(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1, self.W_2 = nn.Linear(d_ff, d_model), nn.Linear(d_model, d_ff)

    def forward(self, x):
        return self.W_1(self.W_2(x).relu())


D_FF = "d_ff is not used: the feed-forward part is 4 * d_model wide, which is only a common choice. Pass d_ff on to {}."


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
        state = encoder_state(generator, d_model, d_ff, dtype, scale=scale)
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
    @_encoder("pre_norm", "The norm comes before each part, x + f(norm(x)), which is pre-norm. Here it is post-norm: norm(x + f(x)).")
    def _(self, x, mask, attend):
        x = x + attend(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))

    @_encoder("one_norm_for_both", "One norm is used for both sums. norm_1 and norm_2 are two modules, each with its own parameters.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + attend(x))
        return self.norm_1(x + self.feed_forward(x))

    @_encoder("norms_exchanged", "norm_1 and norm_2 are exchanged: norm_1 follows the attention.")
    def _(self, x, mask, attend):
        x = self.norm_2(x + attend(x))
        return self.norm_1(x + self.feed_forward(x))

    @_encoder("no_residual", "The residual connections are missing. It is norm(x + f(x)), not norm(f(x)).")
    def _(self, x, mask, attend):
        x = self.norm_1(attend(x))
        return self.norm_2(self.feed_forward(x))

    @_encoder("no_residual_around_attention", "The residual connection around the attention is missing: norm_1(x + attention).")
    def _(self, x, mask, attend):
        x = self.norm_1(attend(x))
        return self.norm_2(x + self.feed_forward(x))

    @_encoder("no_residual_around_feed_forward", "The residual connection around the feed-forward part is missing: norm_2(x + feed_forward(x)).")
    def _(self, x, mask, attend):
        return self.norm_2(self.feed_forward(self.norm_1(x + attend(x))))

    @_encoder("norm_before_the_sum", "The norm is taken before the sum, x + norm(f(x)). Here it is taken of the sum: norm(x + f(x)).")
    def _(self, x, mask, attend):
        x = x + self.norm_1(attend(x))
        return x + self.norm_2(self.feed_forward(x))

    @_encoder("no_norms", "The norms are missing. Each sum is normalised.")
    def _(self, x, mask, attend):
        x = x + attend(x)
        return x + self.feed_forward(x)

    @_encoder("no_norm_after_attention", "norm_1 is missing. The sum after the attention is normalised as well.")
    def _(self, x, mask, attend):
        x = x + attend(x)
        return self.norm_2(x + self.feed_forward(x))

    @_encoder("no_norm_after_feed_forward", "norm_2 is missing. The sum after the feed-forward part is normalised as well.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + attend(x))
        return x + self.feed_forward(x)

    @_encoder("second_skip_from_the_input", "The second residual connection starts at the block's input. It starts at the output of norm_1.")
    def _(self, x, mask, attend):
        return self.norm_2(x + self.feed_forward(self.norm_1(x + attend(x))))

    @_encoder("feed_forward_of_the_input", "The feed-forward part is applied to the block's input. Apply it to the output of norm_1.")
    def _(self, x, mask, attend):
        return self.norm_2(self.norm_1(x + attend(x)) + self.feed_forward(x))

    @_encoder("encoder_mask_inverted", "The mask is inverted. True means MAY attend, and the attention takes it as it is.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + self.attention(x, x, x, _inverted(mask))[0])
        return self.norm_2(x + self.feed_forward(x))

    @_encoder("feed_forward_first", "The feed-forward part comes first. The order is attention, then feed-forward.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + self.feed_forward(x))
        return self.norm_2(x + attend(x))

    @_encoder("no_feed_forward", "The feed-forward part is missing. After the attention comes norm_2(x + feed_forward(x)).")
    def _(self, x, mask, attend):
        return self.norm_2(self.norm_1(x + attend(x)))

    @_encoder("no_attention", "The attention is missing. First comes norm_1(x + attention).")
    def _(self, x, mask, attend):
        return self.norm_2(self.norm_1(x) + self.feed_forward(self.norm_1(x)))

    @_encoder("mask_ignored", "The mask is not passed to the attention.")
    def _(self, x, mask, attend):
        x = self.norm_1(x + self.attention(x, x, x)[0])
        return self.norm_2(x + self.feed_forward(x))

    @_encoder("returns_weights_too", "The block returns the weights as well. Return the tensor alone, so that blocks can be stacked.")
    def _(self, x, mask, attend):
        return self.look(x, mask)

    @_encoder("norm_without_gain_and_shift", "The norm has no gamma and beta of its own. Use the block's norm_1 and norm_2.")
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


EncoderBlock.mistake("The eps of the norms is 1e-6. Leave it at the default of nn.LayerNorm, 1e-5.")(
    type("eps_1e_6", (_with_eps(transformer.EncoderBlock, 1e-6),), {}))
EncoderBlock.mistake("The eps of the norms is 1e-3. Leave it at the default of nn.LayerNorm, 1e-5.")(
    type("eps_1e_3", (_with_eps(transformer.EncoderBlock, 1e-3),), {}))


EncoderBlock.mistake(D_FF.format("FeedForward"))(
    type("encoder_d_ff_ignored", (transformer.EncoderBlock,), _four_times(transformer.EncoderBlock)))


@EncoderBlock.mistake("The number of heads h is not passed on: the attention has one head.")
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
                 | _attention(generator, "cross_attention", d_model, dtype)
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
                           lambda y: self.cross_attention(y, memory, memory, memory_mask)[0])
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
    _masks("masks_swapped", "The masks are swapped. self_mask belongs to the self-attention, memory_mask to the cross-attention.", lambda own, other: (other, own))
    _masks("self_attention_unmasked", "self_mask is not passed to the self-attention, so each position sees the tokens that come after it.", lambda own, other: (None, other))
    _masks("memory_mask_ignored", "memory_mask is not passed to the cross-attention, so it attends to padding.",
           lambda own, other: (own, None))
    _masks("both_masks_ignored", "Neither mask is passed to an attention.", lambda own, other: (None, None))
    _masks("self_mask_for_both", "self_mask is passed to both attentions. memory_mask belongs to the cross-attention.",
           lambda own, other: (own, own))
    _masks("memory_mask_for_both", "memory_mask is passed to both attentions. self_mask belongs to the self-attention.",
           lambda own, other: (other, other))
    _masks("decoder_masks_inverted", "Both masks are inverted. True means MAY attend, and the attentions take them as they are.", lambda own, other: (_inverted(own), _inverted(other)))
    _masks("self_mask_inverted_in_decoder", "self_mask is inverted. True means MAY attend, and the self-attention takes it as it is.", lambda own, other: (_inverted(own), other))
    _masks("memory_mask_inverted", "memory_mask is inverted. True means MAY attend, and the cross-attention takes it as it is.", lambda own, other: (own, _inverted(other)))


def _decoders():
    """The block's three lines, each time with one part exchanged."""
    @_decoder("query_from_memory", "The query comes from the memory, and keys and values from y. It is the other way round: cross_attention(y, memory, memory).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.cross_attention(memory, y, y, self.masks[1])[0])

    @_decoder("keys_and_values_from_y", "Keys and values of the cross-attention come from y, so the memory is never read. It is cross_attention(y, memory, memory).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.cross_attention(y, y, y, self.masks[1])[0])

    @_decoder("query_from_memory_unmasked", "The query comes from the memory, and keys and values from y; memory_mask is not passed on. It is cross_attention(y, memory, memory, memory_mask).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.cross_attention(memory, y, y)[0])

    @_decoder("keys_and_values_from_y_unmasked", "Keys and values of the cross-attention come from y, and memory_mask is not passed on. It is cross_attention(y, memory, memory, memory_mask).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.cross_attention(y, y, y)[0])

    @_decoder("keys_and_values_from_y_with_self_mask", "The second attention reads y again, with self_mask, so the memory is never read. It is cross_attention(y, memory, memory, memory_mask).")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.cross_attention(y, y, y, self.masks[0])[0])

    @_decoder("values_from_y", "The values of the cross-attention come from y. Keys AND values come from the memory.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.cross_attention(y, memory, y, self.masks[1])[0])

    @_decoder("keys_from_y", "The keys of the cross-attention come from y. Keys AND values come from the memory.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.cross_attention(y, y, memory, self.masks[1])[0])

    @_decoder("memory_alone", "Query, key and value of the cross-attention are all the memory. The query is y.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda y: self.cross_attention(memory, memory, memory, self.masks[1])[0])

    @_decoder("memory_left_out", "The cross-attention is missing, so the decoder never reads the source sentence.")
    def _(self, y, memory, own, other):
        y = self.norm_1(y + own(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("self_attention_left_out", "The self-attention is missing, so the tokens generated so far never interact.")
    def _(self, y, memory, own, other):
        y = self.norm_2(y + other(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("memory_first", "The cross-attention comes first. The order is self-attention, cross-attention, feed-forward.")
    def _(self, y, memory, own, other):
        y = self.norm_1(y + other(y))
        y = self.norm_2(y + own(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("parts_exchanged", "self_attention and cross_attention are exchanged. The one named self_attention reads y alone.")
    def _(self, y, memory, own, other):
        return _three(self, y, lambda y: self.cross_attention(y, y, y, self.masks[0])[0],
                      lambda y: self.self_attention(y, memory, memory, self.masks[1])[0])

    @_decoder("decoder_pre_norm", "The norm comes before each part, y + f(norm(y)), which is pre-norm. Here it is post-norm: norm(y + f(y)).")
    def _(self, y, memory, own, other):
        y = y + own(self.norm_1(y))
        y = y + other(self.norm_2(y))
        return y + self.feed_forward(self.norm_3(y))

    @_decoder("decoder_no_residual", "The residual connections are missing. It is norm(y + f(y)), not norm(f(y)).")
    def _(self, y, memory, own, other):
        y = self.norm_2(other(self.norm_1(own(y))))
        return self.norm_3(self.feed_forward(y))

    @_decoder("no_residual_around_memory", "The residual connection around the cross-attention is missing: norm_2(y + attention).")
    def _(self, y, memory, own, other):
        y = self.norm_2(other(self.norm_1(y + own(y))))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("no_residual_around_self_attention", "The residual connection around the self-attention is missing: norm_1(y + attention).")
    def _(self, y, memory, own, other):
        y = self.norm_1(own(y))
        y = self.norm_2(y + other(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("decoder_no_residual_around_feed_forward", "The residual connection around the feed-forward part is missing: norm_3(y + feed_forward(y)).")
    def _(self, y, memory, own, other):
        y = self.norm_1(y + own(y))
        return self.norm_3(self.feed_forward(self.norm_2(y + other(y))))

    @_decoder("norm_2_and_norm_3_exchanged", "norm_2 and norm_3 are exchanged: norm_2 follows the cross-attention.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, (self.norm_1, self.norm_3, self.norm_2))

    @_decoder("norm_2_twice", "norm_2 is used twice. The last sum is normalised by norm_3.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, (self.norm_1, self.norm_2, self.norm_2))

    @_decoder("no_norm_3", "norm_3 is missing. The last sum is normalised as well.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, (self.norm_1, self.norm_2, nn.Identity()))

    @_decoder("decoder_no_norms", "The norms are missing. Each sum is normalised.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, [nn.Identity()] * 3)

    @_decoder("residual_from_the_memory", "The residual connection around the cross-attention adds the memory. It adds y: norm_2(y + attention).")
    def _(self, y, memory, own, other):
        y = self.norm_1(y + own(y))
        y = self.norm_2(memory + other(y))
        return self.norm_3(y + self.feed_forward(y))

    @_decoder("query_before_the_self_attention", "The cross-attention takes the block's input as its query. The query is the output of norm_1.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, lambda _: other(y))

    @_decoder("decoder_one_norm", "norm_1 is used three times. Each sum has a norm of its own.")
    def _(self, y, memory, own, other):
        return _three(self, y, own, other, [self.norm_1] * 3)

    @_decoder("decoder_norm_before_the_sum", "The norm is taken before the sum, y + norm(f(y)). Here it is taken of the sum: norm(y + f(y)).")
    def _(self, y, memory, own, other):
        for norm, part in ((self.norm_1, own), (self.norm_2, other), (self.norm_3, self.feed_forward)):
            y = y + norm(part(y))
        return y

    @_decoder("decoder_no_feed_forward", "The feed-forward part is missing. Last comes norm_3(y + feed_forward(y)).")
    def _(self, y, memory, own, other):
        return self.norm_3(self.norm_2((y := self.norm_1(y + own(y))) + other(y)))

    @_decoder("decoder_returns_weights_too", "The block returns the weights as well. Return the tensor alone, so that blocks can be stacked.")
    def _(self, y, memory, own, other):
        return self.look(y, memory, *self.masks)


_other_masks()
_decoders()


@DecoderBlock.mistake("One attention is used as both. self_attention and cross_attention have weights of their own.")
class attentions_tied(transformer.DecoderBlock):
    def __init__(self, d_model, h, d_ff):
        super().__init__(d_model, h, d_ff)
        self.cross_attention = self.self_attention


DecoderBlock.mistake(D_FF.format("FeedForward"))(
    type("decoder_d_ff_ignored", (transformer.DecoderBlock,), _four_times(transformer.DecoderBlock)))


@DecoderBlock.mistake("The number of heads h is not passed on: both attentions have one head.")
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
    ("norms_forgotten", "The norms are missing. Each has gamma and beta, 2 d_model parameters; there are 2 norms in an encoder block and 3 in a decoder block.", {"norm": 0}),
    ("shifts_forgotten", "Each norm has two vectors, gamma and beta: 2 d_model parameters, not d_model.", {"norm": 1}),
    ("biases_forgotten", "The biases of the feed-forward part are missing: d_ff + d_model in each block.", {"ff_bias": False}),
    ("first_bias_forgotten", "The bias of W_1 is missing: d_ff parameters in each block.", {"first_bias": False}),
    ("W_2_bias_or_third_norm_forgotten", "2 d_model parameters are missing for each of the N layers: either the bias of W_2 (d_model in every block), or the third norm of the decoder block (2 d_model).", {"second_bias": False}),
    ("norms_and_biases_forgotten", "Norms and biases are missing: only the matrices are counted.",
     {"norm": 0, "ff_bias": False}),
    ("W_O_forgotten", "W_O is missing. An attention has four matrices: W_Q, W_K, W_V and W_O.", {"matrices": 3}),
    ("embedding_twice", "The embedding is counted twice. Input and output share one, vocab * d_model.", {"embeddings": 2}),
    ("embedding_three_times", "The embedding is counted three times. Source, target and output share one.",
     {"embeddings": 3}),
    ("embedding_forgotten", "The embedding is missing: vocab * d_model, once.", {"embeddings": 0}),
    ("one_attention_per_decoder_block", "Only one attention is counted in a decoder block. It has two: self-attention and cross-attention.",
     {"decoder_attentions": 1}),
    ("decoder_as_encoder", "The decoder block is counted as an encoder block. It has a second attention and a third norm.",
     {"decoder_attentions": 1, "decoder_norms": 2}),
    ("encoder_only", "The decoder blocks are missing: there are N encoder blocks and N decoder blocks.", {"decoder": 0}),
    ("decoder_only", "The encoder blocks are missing: there are N encoder blocks and N decoder blocks.", {"encoder": 0}),
]:
    parameter_count.mistake(_sentence)(type(_name, (), {"__new__": staticmethod(
        lambda cls, d_model, d_ff, N, vocab, changes=_changes: _count(d_model, d_ff, N, vocab, **changes))}))


@parameter_count.mistake("The projections are counted with a bias. Here they have none: W_Q, W_K, W_V and W_O are d_model x d_model.")
def projections_with_bias(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, N, vocab, extra=4 * d_model)


@parameter_count.mistake("The output layer is counted with a bias. It shares the embedding's weights and adds no parameters.")
def output_bias(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, N, vocab) + vocab


@parameter_count.mistake("N is not used: there are N encoder blocks and N decoder blocks.")
def one_block_each(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, 1, vocab)


@parameter_count.mistake("N is not used: 6, the paper's number, is fixed in its place.")
def six_blocks_each(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, 6, vocab)


@parameter_count.mistake("Only one matrix of the feed-forward part is counted. It has two, W_1 and W_2.")
def one_feed_forward_matrix(d_model, d_ff, N, vocab):
    return _count(d_model, d_ff, N, vocab) - 2 * N * d_model * d_ff


@parameter_count.mistake("d_ff is not used: 4 * d_model is used in its place.")
def d_ff_taken_as_4_d_model(d_model, d_ff, N, vocab):
    return _count(d_model, 4 * d_model, N, vocab)


@parameter_count.mistake("Only the matrices of the attentions are counted. The feed-forward parts, norms and embedding have parameters too.")
def attention_only(d_model, d_ff, N, vocab):
    return 12 * N * d_model ** 2


# ---------------------------------------------------------------- SwiGLU

def _swiglu_inputs(generator):
    def draw(d_model, d_ff, *shape, dtype=torch.float32):
        state = (_linear(generator, "W_1", d_ff, d_model, dtype, bias=False) | _linear(generator, "W_2", d_model, d_ff, dtype, bias=False)
                 | _linear(generator, "W_3", d_ff, d_model, dtype, bias=False))
        calls = [[normal(generator, *shape, d_model, scale=1.5, dtype=dtype)], [normal(generator, 3, d_model, scale=1.5, dtype=dtype)]]
        return {**_trial([d_model, d_ff], state, calls), "whole": True}
    usual, other, one, equal = sizes(generator, 3)
    d_ff = different(generator, 3)
    def trial(shape, d_ff, dtype=torch.float32):
        *batch, d_model = shape
        return draw(d_model, d_ff, *batch, dtype=dtype)
    return [trial(usual, d_ff[0] + usual[-1]), trial(other, d_ff[1], torch.float64), trial(one, d_ff[2]), trial(equal, equal[0])]


SwiGLU = Item("SwiGLU", 1, _swiglu_inputs, decoder_only.SwiGLU, ("output (..., d_model)", "output_2 (3, d_model)", "nothing"),
              IN_CODE, free=FREE, probe="build", kind="transfer")

for _name, _sentence, _forward in [
    ("sigmoid_for_silu", "The gate is a sigmoid, which is the GLU of lesson 02. Here it is silu(z) = z * sigmoid(z).",
     lambda self, x: self.W_2(self.W_1(x).sigmoid() * self.W_3(x))),
    ("gate_and_value_exchanged", "The silu is applied to W_3 x. It belongs to W_1 x; W_3 x stays linear.",
     lambda self, x: self.W_2(self.W_1(x) * F.silu(self.W_3(x)))),
    ("sum_for_product", "Gate and value are added. They are multiplied, entry by entry.",
     lambda self, x: self.W_2(F.silu(self.W_1(x)) + self.W_3(x))),
    ("relu_for_silu", "The gate is a ReLU (that is called ReGLU). Here it is silu(z) = z * sigmoid(z).",
     lambda self, x: self.W_2(self.W_1(x).relu() * self.W_3(x))),
    ("gelu_for_silu", "The gate is a GELU (that is called GEGLU). Here it is silu(z) = z * sigmoid(z).",
     lambda self, x: self.W_2(F.gelu(self.W_1(x)) * self.W_3(x))),
    ("no_gate_function", "The silu is missing: W_1 x and W_3 x are multiplied as they are.",
     lambda self, x: self.W_2(self.W_1(x) * self.W_3(x))),
    ("silu_on_both", "The silu is applied to both W_1 x and W_3 x. W_3 x stays linear.",
     lambda self, x: self.W_2(F.silu(self.W_1(x)) * F.silu(self.W_3(x)))),
    ("silu_of_the_product", "The silu is applied to the product. Apply it to W_1 x, then multiply by W_3 x.",
     lambda self, x: self.W_2(F.silu(self.W_1(x) * self.W_3(x)))),
    ("silu_of_the_input", "The silu is applied to x. Apply it to W_1 x.",
     lambda self, x: self.W_2(self.W_1(F.silu(x)) * self.W_3(x))),
    ("silu_last", "There is another silu at the end. The output of W_2 stays as it is.",
     lambda self, x: F.silu(self.W_2(F.silu(self.W_1(x)) * self.W_3(x)))),
    ("W_3_unused", "W_3 is not used. W_3 x is multiplied by the gate, silu(W_1 x).",
     lambda self, x: self.W_2(F.silu(self.W_1(x)))),
    ("swiglu_residual_inside", "x is already added here. The residual sum belongs to the block around it.",
     lambda self, x: x + self.W_2(F.silu(self.W_1(x)) * self.W_3(x))),
]:
    SwiGLU.mistake(_sentence)(type(_name, (decoder_only.SwiGLU,), {"forward": _forward}))


@SwiGLU.mistake("The layers have biases. All three are nn.Linear(..., bias=False).")
class swiglu_biases(decoder_only.SwiGLU):
    def __init__(self, d_model, d_ff):
        nn.Module.__init__(self)
        self.W_1, self.W_2, self.W_3 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), nn.Linear(d_model, d_ff)


@SwiGLU.mistake("W_2 and W_3 are exchanged. W_1 and W_3 both read x, from d_model to d_ff; W_2 leads back.")
class swiglu_ways_exchanged(decoder_only.SwiGLU):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        self.W_2, self.W_3 = self.W_3, self.W_2

    def forward(self, x):
        return self.W_3(F.silu(self.W_1(x)) * self.W_2(x))


SwiGLU.mistake("d_ff is not used: the inner layers are 4 * d_model wide. Pass d_ff on to W_1, W_2 and W_3.")(
    type("swiglu_d_ff_ignored", (decoder_only.SwiGLU,), _four_times(decoder_only.SwiGLU)))


# ---------------------------------------------------------------- DecoderOnlyBlock

def _decoder_only_inputs(generator):
    def draw(d_model, h, d_ff, B, n, dtype=torch.float32, scale=1.0):
        """scale: of x; where it is small, eps counts."""
        x = [0.5 * scale + scale * normal(generator, B, length, d_model, dtype=dtype) for length in (n, n + 2)]
        state = encoder_state(generator, d_model, d_ff, dtype)
        return _trial([d_model, h, d_ff], state, [[one] for one in x])
    def trial(B=None, **how):
        b, n, h, d_ff = different(generator, 4, high=6)
        return draw(h * whole(generator, 2, 4), h, d_ff + 5, B or b, n + 1, **how)
    return [trial(), draw(4, 2, 4, 4, 4), trial(dtype=torch.float64), trial(B=1), trial(scale=0.005)]


DecoderOnlyBlock = Item("DecoderOnlyBlock", 3, _decoder_only_inputs, decoder_only.DecoderOnlyBlock,
                        ("output (B, n, d_model)", "longer_output (B, n + 2, d_model)", "nothing"), IN_DECODER,
                        uses=("FeedForward",), handed=("MultiHeadAttention", "causal_mask"), free=FREE, probe="build", kind="transfer")


def _causal(name, sentence):
    """Decorator: forward(self, x, attend) becomes a named mistake; attend(q) is the causal self-attention of q."""
    def register(forward):
        def standard(self, x):
            return forward(self, x, lambda q: self.attention(q, q, q, causal_mask(q.size(1)))[0])
        DecoderOnlyBlock.mistake(sentence)(type(name, (decoder_only.DecoderOnlyBlock,), {"forward": standard}))
    return register


def _causal_blocks():
    """The block's two lines, x = x + attend(norm_1(x)) and x + ff(norm_2(x)), each time with one part exchanged."""
    @_causal("post_norm_block", "The norm comes after each sum, norm(x + f(x)), which is post-norm. Here it is pre-norm: x + f(norm(x)).")
    def _(self, x, attend):
        x = self.norm_1(x + attend(x))
        return self.norm_2(x + self.feed_forward(x))

    @_causal("no_causal_mask", "There is no mask, so each position sees the tokens that come after it. The block makes its own: causal_mask(n).")
    def _(self, x, attend):
        normed = self.norm_1(x)
        x = x + self.attention(normed, normed, normed)[0]
        return x + self.feed_forward(self.norm_2(x))

    @_causal("same_norm_twice", "One norm is used for both parts. norm_1 and norm_2 are two modules, each with its own parameters.")
    def _(self, x, attend):
        x = x + attend(self.norm_1(x))
        return x + self.feed_forward(self.norm_1(x))

    @_causal("norm_on_the_skip", "The normalised x goes along the skip as well. Only the part sees norm(x); what it is added to is x itself.")
    def _(self, x, attend):
        x = self.norm_1(x)
        x = self.norm_2(x + attend(x))
        return x + self.feed_forward(x)

    @_causal("norm_of_the_parts", "The norm is taken of each part's result, x + norm(f(x)). Here it is taken of its input: x + f(norm(x)).")
    def _(self, x, attend):
        x = x + self.norm_1(attend(x))
        return x + self.norm_2(self.feed_forward(x))

    @_causal("norm_of_the_feed_forward", "norm_2 is applied to the feed-forward part's result. It belongs in front: x + feed_forward(norm_2(x)).")
    def _(self, x, attend):
        x = x + attend(self.norm_1(x))
        return x + self.norm_2(self.feed_forward(x))

    @_causal("query_normed_only", "Only the queries come from norm_1(x); keys and values come from x. All three come from norm_1(x).")
    def _(self, x, attend):
        x = x + self.attention(self.norm_1(x), x, x, causal_mask(x.size(1)))[0]
        return x + self.feed_forward(self.norm_2(x))

    @_causal("block_norms_exchanged", "norm_1 and norm_2 are exchanged: norm_1 comes before the attention.")
    def _(self, x, attend):
        x = x + attend(self.norm_2(x))
        return x + self.feed_forward(self.norm_1(x))

    @_causal("no_skips", "The residual connections are missing. It is x + f(norm(x)), not f(norm(x)).")
    def _(self, x, attend):
        return self.feed_forward(self.norm_2(attend(self.norm_1(x))))

    @_causal("no_skip_around_attention", "The residual connection around the attention is missing: x + attention of norm_1(x).")
    def _(self, x, attend):
        x = attend(self.norm_1(x))
        return x + self.feed_forward(self.norm_2(x))

    @_causal("no_skip_around_feed_forward", "The residual connection around the feed-forward part is missing: x + feed_forward(norm_2(x)).")
    def _(self, x, attend):
        return self.feed_forward(self.norm_2(x + attend(self.norm_1(x))))

    @_causal("no_norm_in_the_block", "The norms are missing. Each part sees norm(x).")
    def _(self, x, attend):
        x = x + attend(x)
        return x + self.feed_forward(x)

    @_causal("no_norm_before_attention", "norm_1 is missing. The attention sees norm_1(x).")
    def _(self, x, attend):
        x = x + attend(x)
        return x + self.feed_forward(self.norm_2(x))

    @_causal("no_norm_before_feed_forward", "norm_2 is missing. The feed-forward part sees norm_2(x).")
    def _(self, x, attend):
        x = x + attend(self.norm_1(x))
        return x + self.feed_forward(x)

    @_causal("parts_side_by_side", "Both parts read the block's input, side by side. Here the feed-forward part reads what the attention's sum gave.")
    def _(self, x, attend):
        return x + attend(self.norm_1(x)) + self.feed_forward(self.norm_2(x))

    @_causal("skip_from_the_input", "The second residual connection starts at the block's input. It starts at the sum after the attention.")
    def _(self, x, attend):
        return x + self.feed_forward(self.norm_2(x + attend(self.norm_1(x))))

    @_causal("normed_twice", "norm_1 is applied before the attention, and once more to the sum. A pre-norm block normalises only what its parts read.")
    def _(self, x, attend):
        x = self.norm_1(x + attend(self.norm_1(x)))
        return x + self.feed_forward(self.norm_2(x))

    @_causal("mask_turned_round", "The mask is transposed or inverted, so each position sees itself and the FUTURE. causal_mask(n) is True where a query may attend: pass it on as it is.")
    def _(self, x, attend):
        normed = self.norm_1(x)
        x = x + self.attention(normed, normed, normed, causal_mask(x.size(1)).T)[0]
        return x + self.feed_forward(self.norm_2(x))

    @_causal("mask_of_the_batch", "The mask is made for x.size(0) positions, the number of sentences. The positions are axis 1: causal_mask(x.size(1)).")
    def _(self, x, attend):
        normed = self.norm_1(x)
        x = x + self.attention(normed, normed, normed, causal_mask(x.size(0)))[0]
        return x + self.feed_forward(self.norm_2(x))

    @_causal("block_returns_weights", "The block returns the weights as well. Return the tensor alone, so that blocks can be stacked.")
    def _(self, x, attend):
        normed = self.norm_1(x)
        a, weights = self.attention(normed, normed, normed, causal_mask(x.size(1)))
        x = x + a
        return x + self.feed_forward(self.norm_2(x)), weights


_causal_blocks()
DecoderOnlyBlock.mistake("The eps of the norms is 1e-6. Leave it at the default of nn.LayerNorm, 1e-5.")(
    type("block_eps_1e_6", (_with_eps(decoder_only.DecoderOnlyBlock, 1e-6),), {}))
DecoderOnlyBlock.mistake(D_FF.format("FeedForward"))(
    type("block_d_ff_ignored", (decoder_only.DecoderOnlyBlock,), _four_times(decoder_only.DecoderOnlyBlock)))


@DecoderOnlyBlock.mistake("The number of heads h is not passed on: the attention has one head.")
class block_with_one_head(decoder_only.DecoderOnlyBlock):
    def __init__(self, d_model, h, d_ff):
        super().__init__(d_model, 1, d_ff)


# ---------------------------------------------------------------- decoder_layers

def _layers_inputs(generator):
    def draw(d_model, B, n, m, masked, dtype=torch.float32):
        def numbers(*shape, scale=1.0):
            return normal(generator, *shape, scale=scale, dtype=dtype)
        parts = {f"{name}_attention": {"function": "attention", "W": numbers(d_model, d_model, scale=0.7), "U": numbers(d_model, d_model)}
                 for name in ("self", "cross")}
        parts["feed_forward"] = {"function": "layer", "W": numbers(d_model, d_model), "b": numbers(d_model)}
        for norm in ("norm_1", "norm_2", "norm_3"):
            parts[norm] = {"function": "norm", "gamma": 1 + numbers(d_model, scale=0.5), "beta": numbers(d_model, scale=0.5)}
        lengths = torch.tensor([m - 1, *torch.randint(1, m, (B - 1,), generator=generator).tolist()])
        masks = {"self_mask": causal_mask(n), "memory_mask": padding_mask(lengths, m)} if masked else {}
        return {"block": {"parts": parts}, "y": numbers(B, n, d_model), "memory": numbers(B, m, d_model), **masks}

    def trial(B=None, masked=True, **how):
        d_model, b, n, m = different(generator, 4, low=3)
        return draw(d_model, B or b, n, m, masked, **how)
    return [trial(), trial(masked=False), trial(dtype=torch.float64), draw(*[whole(generator, 3, 6)] * 4, True), trial(B=1)]


def _layers(block, y, memory, self_mask=None, memory_mask=None):
    y = block.norm_1(y + block.self_attention(y, y, y, self_mask)[0])
    y = block.norm_2(y + block.cross_attention(y, memory, memory, memory_mask)[0])
    return block.norm_3(y + block.feed_forward(y))


decoder_layers = Item("decoder_layers", 2, _layers_inputs, _layers, ("output (B, n, d_model)",), IN_DECODER, free=FREE, probe="functions")


def _gradient_of_norm_3(answer, trial):
    block = transformer.DecoderBlock(trial["y"].size(-1), 1, 4)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        answer(block, trial["y"], trial["memory"]).pow(2).sum().backward()
    numbers = sum(weight.numel() for weight in block.norm_3.parameters() if weight.grad is not None)
    return f"norm_3 never gets a gradient: after backward(), {numbers} of the {2 * trial['y'].size(-1)} entries of its gain and shift have one."


@decoder_layers.plant("The last sub-layer uses norm_2 a second time, so norm_3 is never used. In a new block all norms are equal, so its author saw no difference.", _gradient_of_norm_3)
def _norm_2_again(block, y, memory, self_mask=None, memory_mask=None):
    y = block.norm_1(y + block.self_attention(y, y, y, self_mask)[0])
    y = block.norm_2(y + block.cross_attention(y, memory, memory, memory_mask)[0])
    return block.norm_2(y + block.feed_forward(y))


def _layer(name, sentence):
    """Decorator: layers(block, y, own, other), own(y) and other(y) being the two attentions, becomes a named mistake."""
    def register(layers):
        def answer(block, y, memory, self_mask=None, memory_mask=None):
            return layers(block, y, lambda y: block.self_attention(y, y, y, self_mask)[0],
                          lambda y: block.cross_attention(y, memory, memory, memory_mask)[0])
        answer.__name__ = name
        decoder_layers.mistake(sentence)(answer)
    return register


def _layers_with(name, sentence, norms):
    """The right sums with other norms, by their numbers."""
    @_layer(name, sentence)
    def _(block, y, own, other):
        return _three(block, y, own, other, norms=[getattr(block, f"norm_{number}") for number in norms])


def _other_layers():
    _layers_with("norm_3_twice", "norm_3 is used after the cross-attention as well. Each sub-layer has a norm of its own: norm_1, norm_2 and norm_3, in this order.", (1, 3, 3))
    _layers_with("norm_2_last", "norm_2 and norm_3 are exchanged: norm_2 belongs to the cross-attention, norm_3 to the feed-forward part.", (1, 3, 2))
    _layers_with("norm_1_last", "The feed-forward part is followed by norm_1. Its own norm is norm_3.", (1, 2, 1))
    _layers_with("norm_3_everywhere", "norm_3 is used for all three sub-layers. Each has a norm of its own: norm_1, norm_2 and norm_3, in this order.", (3, 3, 3))
    _layers_with("norms_backwards", "The norms are used in reverse order. norm_1 belongs to the self-attention, norm_3 to the feed-forward part.", (3, 2, 1))

    @_layer("norm_3_on_top", "norm_3 is applied on top of another norm. The last sub-layer is norm_3(y + feed_forward(y)), with one norm.")
    def _(block, y, own, other):
        y = block.norm_2(block.norm_1(y + own(y)) + other(block.norm_1(y + own(y))))
        return block.norm_3(block.norm_2(y + block.feed_forward(y)))

    @_layer("last_norm_before_the_sum", "norm_3 is taken of the feed-forward part alone, before the sum. It is norm_3(y + feed_forward(y)).")
    def _(block, y, own, other):
        y = block.norm_1(y + own(y))
        y = block.norm_2(y + other(y))
        return y + block.norm_3(block.feed_forward(y))

    @_layer("last_part_pre_norm", "norm_3 comes before the feed-forward part, which is pre-norm. It comes after the sum: norm_3(y + feed_forward(y)).")
    def _(block, y, own, other):
        y = block.norm_1(y + own(y))
        y = block.norm_2(y + other(y))
        return y + block.feed_forward(block.norm_3(y))

    @_layer("last_skip_missing", "The residual connection around the feed-forward part is missing: norm_3(y + feed_forward(y)).")
    def _(block, y, own, other):
        y = block.norm_1(y + own(y))
        return block.norm_3(block.feed_forward(block.norm_2(y + other(y))))

    @_layer("no_last_norm", "The last norm is missing. The sum after the feed-forward part is normalised by norm_3.")
    def _(block, y, own, other):
        y = block.norm_1(y + own(y))
        y = block.norm_2(y + other(y))
        return y + block.feed_forward(y)

    @_layer("layers_pre_norm", "The norm comes before each part, y + f(norm(y)), which is pre-norm. Here it is post-norm: norm(y + f(y)).")
    def _(block, y, own, other):
        y = y + own(block.norm_1(y))
        y = y + other(block.norm_2(y))
        return y + block.feed_forward(block.norm_3(y))


_other_layers()


@decoder_layers.mistake("The two masks are exchanged. self_mask belongs to the self-attention, memory_mask to the cross-attention.")
def layers_masks_swapped(block, y, memory, self_mask=None, memory_mask=None):
    return _layers(block, y, memory, memory_mask, self_mask)


@decoder_layers.mistake("The masks are not passed on to the attentions any more.")
def layers_without_masks(block, y, memory, self_mask=None, memory_mask=None):
    return _layers(block, y, memory)


@decoder_layers.mistake("The cross-attention reads y instead of the memory. Its keys and values come from the memory: cross_attention(y, memory, memory, memory_mask).")
def layers_without_memory(block, y, memory, self_mask=None, memory_mask=None):
    return _layers(block, y, y, self_mask, self_mask)


@decoder_layers.mistake("The block itself is called. Apply its six parts one by one: a block that is handed in by the check has nothing else.")
def calls_the_block(block, y, memory, self_mask=None, memory_mask=None):
    return block(y, memory, self_mask, memory_mask)


ITEMS = [FeedForward, EncoderBlock, DecoderBlock, parameter_count, SwiGLU, DecoderOnlyBlock, decoder_layers]

"""Decoding token by token without computing the previous tokens again.  Lessons 12 and 13"""

from .attention import attend_with_cache, attention


def cached_step(block, y_t, past, memory, memory_mask=None):
    """What a DecoderBlock gives for the newest token, given the keys and values of the previous tokens.

    block: a transformer.DecoderBlock, in eval mode  y_t (B, d_model)  past: None at first, then what the
    previous step returned  memory: K, V (B, h, m, d_k) of the encoder's output  memory_mask (B, 1, 1, m)
    ->  (B, d_model), the next past: K, V (B, h, t, d_k)
    """
    part = block.self_attention
    Q_t, K_t, V_t = (_heads(W(y_t), part.h) for W in (part.W_Q, part.W_K, part.W_V))
    a, past = attend_with_cache(Q_t, K_t, V_t, past)              # (B, h, 1, d_k)
    y_t = block.norm_1(y_t + part.W_O(a.flatten(1)))
    part = block.cross_attention
    a, _ = attention(_heads(part.W_Q(y_t), part.h), *memory, memory_mask)
    y_t = block.norm_2(y_t + part.W_O(a.flatten(1)))
    return block.norm_3(y_t + block.feed_forward(y_t)), past


def _heads(X, h):
    """The heads of one token: (B, d_model)  ->  (B, h, 1, d_k)"""
    return X.view(len(X), h, 1, -1)

"""course_lib/models/lstm_attention.py: one step at a time is all at once, and padding changes nothing."""

import torch

from course_lib.models.attention import attend
from course_lib.models.lstm_attention import LSTMAttention


def made():
    torch.manual_seed(0)
    model = LSTMAttention(11, 13, d_emb=8, d_h=12)
    src = torch.tensor([[4, 5, 6, 7], [8, 9, 0, 0]])
    return model, src, torch.randint(1, 13, (2, 6))


def test_step_by_step_equals_all_at_once():
    model, src, tgt = made()
    state, found = model.begin(src), []
    for tokens in tgt[:, :-1].unbind(dim=1):
        logits, state = model.step(tokens, state)
        found.append(logits)
    torch.testing.assert_close(torch.stack(found, dim=1), model(src, tgt))


def test_padding_changes_nothing():
    model, src, tgt = made()
    torch.testing.assert_close(model(src, tgt)[1:], model(src[1:, :2], tgt[1:]))


def test_it_is_luongs_general_score_over_the_encoders_states():
    model, src, tgt = made()
    s, _, H, mask = model.begin(src)
    S, _ = model.decoder(model.target(tgt[:, :-1]), s)
    scores = S[:, 2] @ model.W.weight                             # s W, with (B, d_h)
    context, _ = attend((scores[:, None] * H).sum(dim=-1), H, mask[:, 0])
    expected = model.out(torch.cat([S[:, 2], context], dim=-1))
    torch.testing.assert_close(model(src, tgt)[:, 2], expected)

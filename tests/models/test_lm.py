"""One class is a BERT and a GPT; what it hides, keeps and draws obeys the papers; sub-words lose nothing."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.data.text import prose, subwords
from course_lib.models.attention import attend_with_cache, attention, causal_mask
from course_lib.models.lm import (
    GPT,
    LanguageModel,
    causal_lm_loss,
    generate,
    mask_tokens,
    next_logits,
    nucleus,
    perplexity,
)
from course_lib.models.positional import positional_encoding
from course_tools.benchmarks.transformer_baselines import copy_block


def model(causal, N=2, **sizes):
    torch.manual_seed(0)
    return LanguageModel(50, 16, 4, 24, N, causal, **sizes).eval()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("causal", [True, False])
def test_equals_torchs_encoder(causal):
    ours = model(causal)
    layer = nn.TransformerEncoderLayer(16, 4, 24, dropout=0.0, batch_first=True)
    theirs = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    with torch.no_grad():
        for block, other in zip(ours.blocks, theirs.layers, strict=True):
            copy_block(other, block)
            block.attention.distance.copy_(ours.blocks[0].attention.distance)    # torch: one mask for all
        ids = torch.randint(50, (3, 7), generator=generator())
        mask = ours.blocks[0].attention.bias(7, 7).repeat(3, 1, 1)               # (B h, 7, 7)
        if causal:
            mask = mask.masked_fill(~causal_mask(7), -math.inf)
        states = theirs.train()(ours.embed(ids), mask=mask)       # in eval it takes no mask per head
        torch.testing.assert_close(ours.states(ids), states, rtol=0, atol=1e-5)
        logits = states @ ours.embedding.weight.T + ours.bias
        torch.testing.assert_close(ours(ids), logits, rtol=0, atol=1e-4)


@pytest.mark.parametrize("causal", [True, False])
def test_who_sees_whom(causal):
    ids = torch.randint(50, (1, 9), generator=generator())
    other = ids.clone()
    other[0, 5] = (ids[0, 5] + 1) % 50
    with torch.no_grad():
        moved = (model(causal)(ids) - model(causal)(other)).abs().amax(dim=-1)[0] > 1e-6
    assert moved.tolist() == [not causal or place >= 5 for place in range(9)]


def test_both_have_the_same_numbers():
    bert, gpt = model(False), model(True)
    bert.load_state_dict(gpt.state_dict())
    block = sum(weight.numel() for weight in gpt.blocks[0].parameters())
    assert block == 4 * 16 * 16 + 4 * 127 + (2 * 16 * 24 + 24 + 16) + 4 * 16


@pytest.mark.parametrize("B, n", [(3, 9), (1, 80)])
def test_step_by_step_gives_the_same_logits(B, n):
    gpt, ids, caches = model(True), torch.randint(50, (B, n), generator=generator()), None
    with torch.no_grad():
        whole = gpt(ids)
        for t in range(n):
            logits, caches = next_logits(gpt, ids[:, t], caches)
            torch.testing.assert_close(logits, whole[:, t], rtol=0, atol=1e-5)
    assert [tuple(part.shape) for part in caches[0]] == [(B, 4, n, 4)] * 2


@pytest.mark.parametrize("begun", [1, 6])
def test_the_cache_changes_no_text(begun):
    gpt, start = model(True), torch.randint(50, (4, begun), generator=generator())
    texts = [generate(gpt, start, 20, generator(3), 0.8, 0.9, cached=cached) for cached in (True, False)]
    assert texts[0].shape == (4, begun + 20) and torch.equal(*texts)
    assert torch.equal(texts[0][:, :begun], start)


def test_a_low_temperature_is_greedy():
    gpt, start = model(True), torch.tensor([[7]])
    text = generate(gpt, start, 6, generator(), temperature=1e-4)
    with torch.no_grad():
        assert torch.equal(gpt(text)[0, :-1].argmax(dim=-1), text[0, 1:])


def test_cached_attention_leaves_the_old_cache_alone():
    Q, K, V = (torch.randn(2, 3, 5, d, generator=generator(d)) for d in (4, 4, 6))
    full, cache = attention(Q, K, V, causal_mask(5))[0], None
    for t in range(5):
        before = None if cache is None else [part.clone() for part in cache]
        output, grown = attend_with_cache(Q[:, :, t:t + 1], K[:, :, t:t + 1], V[:, :, t:t + 1], cache)
        torch.testing.assert_close(output, full[:, :, t:t + 1], rtol=0, atol=1e-6)
        assert cache is None or all(map(torch.equal, cache, before))
        cache = grown
    assert torch.equal(cache[0], K) and torch.equal(cache[1], V)


@pytest.mark.parametrize("p", [0.15, 0.4])
def test_mask_tokens(p):
    ids = torch.randint(2, 1000, (100, 500), generator=generator())
    ids[:, 7] = 0
    before = ids.clone()
    inputs, labels = mask_tokens(ids, 1, 1000, [0, 1], generator(), p)
    chosen = labels != -100
    assert torch.equal(ids, before) and not chosen[:, 7].any()
    assert torch.equal(labels[chosen], ids[chosen]) and torch.equal(inputs[~chosen], ids[~chosen])
    ordinary = 100 * 499
    assert chosen.sum() == pytest.approx(p * ordinary, rel=0.05)
    shares = [(inputs[chosen] == 1).float().mean(), (inputs[chosen] == ids[chosen]).float().mean()]
    assert [share.item() for share in shares] == pytest.approx([0.8, 0.1], abs=0.02)
    again, _ = mask_tokens(ids, 1, 1000, [0, 1], generator(), p)
    assert torch.equal(inputs, again)


def test_causal_lm_loss_is_torchs():
    logits, ids = torch.randn(3, 6, 9, generator=generator()), torch.randint(9, (3, 6), generator=generator())
    theirs = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    torch.testing.assert_close(causal_lm_loss(logits, ids), theirs)


def test_nucleus_by_hand():
    logits = torch.tensor([[0.15, 0.5, 0.1, 0.25], [0.97, 0.01, 0.01, 0.01]]).log()
    want = torch.tensor([[0, 2 / 3, 0, 1 / 3], [1.0, 0, 0, 0]])
    torch.testing.assert_close(nucleus(logits, 0.7), want)
    torch.testing.assert_close(nucleus(logits, 1.0), logits.exp())


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9, 0.99])
def test_the_nucleus_is_the_smallest_set_that_reaches_p(p):
    q = (2 * torch.randn(20, 40, generator=generator())).softmax(dim=-1)
    kept = nucleus(q.log(), p) > 0
    for row, inside in zip(q, kept, strict=True):
        assert row[inside].sum() >= p - 1e-6                      # it reaches p,
        assert row[inside].sum() - row[inside].min() < p + 1e-6   # and no longer without its least one,
        assert inside.all() or row[inside].min() >= row[~inside].max()    # and holds the likeliest


def test_prose_is_prose():
    texts = prose()
    assert texts == prose() and len(set(texts)) == len(texts)
    assert 800 < len(texts) < 3000 and 28_000 < sum(len(text.split()) for text in texts) < 60_000
    everything = "".join(texts)
    assert sum(letter.isalpha() or letter == " " for letter in everything) > 0.9 * len(everything)
    assert all("\n" not in text and "  " not in text for text in texts)


def test_subwords_are_learned_in_order_and_put_together_again():
    texts = prose()[:200]
    vocab, again = subwords(texts, 600), subwords(texts, 600)
    assert vocab.get_vocab() == again.get_vocab() and vocab.get_vocab_size() == 600
    assert [vocab.id_to_token(number) for number in range(3)] == ["<end>", "[MASK]", "[UNK]"]
    assert all(vocab.decode(vocab.encode(text).ids) == text for text in texts)
    assert vocab.encode("the [MASK] of").ids.count(1) == 1
    assert set(vocab.encode("한국").ids) <= {2, vocab.token_to_id("▁")}
    assert len(subwords(texts, 900).encode(texts[0]).ids) < len(vocab.encode(texts[0]).ids)


def test_a_model_learns_a_text_by_heart():
    """Twelve tokens in a ring: the GPT gets the next one, the BERT the hidden one."""
    g = generator()
    ring = (torch.randint(12, (64, 1), generator=g) + torch.arange(8)) % 12 + 3
    for causal in (True, False):
        learner = model(causal, N=1)
        optimizer = torch.optim.Adam(learner.parameters(), lr=1e-2)
        for _ in range(150):
            if causal:
                loss = causal_lm_loss(learner(ring), ring)
            else:
                inputs, labels = mask_tokens(ring, 1, 15, [0, 1, 2], g, 0.3)
                loss = F.cross_entropy(learner(inputs).flatten(0, 1), labels.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        assert loss < (0.6 if causal else 0.9) < math.log(12) / 2


@pytest.mark.parametrize("N", [1, 3])
def test_the_gpt_equals_torchs_causal_encoder(N):
    torch.manual_seed(0)
    ours = GPT(50, 16, 4, 24, N)
    layer = nn.TransformerEncoderLayer(16, 4, 24, dropout=0.0, batch_first=True)
    theirs = nn.TransformerEncoder(layer, N, enable_nested_tensor=False)
    for block, other in zip(ours.blocks, theirs.layers, strict=True):
        with torch.no_grad():
            for weight in block.parameters():
                weight.add_(0.2 * torch.randn_like(weight))
        copy_block(other, block)
    ids = torch.randint(50, (3, 7), generator=generator())
    embedded = F.embedding(ids, ours.embedding.weight) + positional_encoding(7, 16)
    states = theirs(embedded, mask=~causal_mask(7))
    torch.testing.assert_close(ours(ids), F.linear(states, ours.embedding.weight), rtol=0, atol=1e-4)
    assert {name.split(".")[0] for name, _ in ours.named_parameters()} == {"embedding", "blocks"}


def test_perplexity_is_that_of_torchs_cross_entropy():
    logits, ids = torch.randn(3, 6, 9, generator=generator()), torch.randint(9, (3, 6), generator=generator())
    want = math.exp(F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()))
    assert isinstance(perplexity(logits, ids), float) and perplexity(logits, ids) == pytest.approx(want)
    assert perplexity(torch.zeros(1, 5, 9), ids[:1, :5]) == pytest.approx(9)    # 9 equally likely tokens

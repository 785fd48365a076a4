"""What a browser needs to run the model of the capstone: its weights, the words of both languages, a font."""

import base64
import functools
import io
import json
import math
import re

import numpy as np
import torch
from fontTools import subset

from course_lib.data import english_korean
from course_lib.data.grammar.gloss import NUMBERS, meaning
from course_lib.data.grammar.korean import COPULAS, JOINED, text
from course_lib.data.vocab import PAD
from course_lib.plots import FONT

from ..items import registry
from .translator import ENGLISH, KOREAN, LONGEST

CLOSE = 1e-4     # how far logits may differ
EXAMPLES = 24


def twin(translator, sentences):
    """(the library's Transformer with the weights of the translator's model, the largest difference of their
    logits on `sentences`).  None if the model does not have the library's parameters, or computes otherwise.
    """
    model = translator.model
    weights = {name: value.detach().float().cpu() for name, value in model.state_dict().items()}
    try:
        same = _library(weights, model.encoder[0].attention.h)
        src, tgt = translator.tensors([english_korean.translate(sentence) for sentence in sentences])
        with torch.no_grad():
            difference = (model(src, tgt, PAD).cpu() - same(src.cpu(), tgt.cpu(), PAD)).abs().max().item()
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError):
        return None
    return (same, difference) if difference <= CLOSE else None


def _library(weights, h):
    """The library's Transformer with these weights, as they are in a state_dict.  Others are left out."""
    (vocab_x, d_model), vocab_y = weights["source.weight"].shape, len(weights["target.weight"])
    d_ff = len(weights["encoder.0.feed_forward.W_1.weight"])
    N = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("decoder."))
    model = registry.find("Transformer")[1].reference(vocab_x, vocab_y, d_model, h, d_ff, N)
    model.load_state_dict({name: weights[name] for name in model.state_dict()})
    return model.eval()


def packed(model):
    """(the weights as base64 of little-endian float32, [[name, shape], ...] in their order)"""
    weights = model.state_dict()
    numbers = torch.cat([value.flatten() for value in weights.values()]).numpy().astype("<f4")
    return (base64.b64encode(numbers.tobytes()).decode("ascii"),
            [[name, list(value.shape)] for name, value in weights.items()])


def unpacked(html):
    """(the model, the data) of a page."""
    found = dict(re.findall(r'<script type="[^"]*" id="(\w+)">(.*?)</script>', html, re.DOTALL))
    data = json.loads(found["data"])
    numbers = torch.from_numpy(np.frombuffer(base64.b64decode(found["weights"]), "<f4").astype(np.float32))
    shapes = [shape for _, shape in data["layout"]]
    parts = numbers.split([math.prod(shape) for shape in shapes])
    weights = {name: part.view(shape) for (name, shape), part in zip(data["layout"], parts, strict=True)}
    return _library(weights, data["h"]), data


def data(model, layout):
    """What the page's scripts read besides the weights, as plain data."""
    stems = [token for token in KOREAN.tokens if token.endswith("-")]
    endings = [token for token in KOREAN.tokens if token.startswith("-")]
    some = english_korean.pairs(EXAMPLES, torch.Generator().manual_seed(12), shortest=4, longest=11, depth=0)
    return {
        "d_model": model.source.embedding_dim, "h": model.encoder[0].attention.h, "N": len(model.encoder),
        "layout": layout, "longest": LONGEST, "english": ENGLISH.tokens, "korean": KOREAN.tokens,
        "gloss": [_gloss(token) for token in KOREAN.tokens], "endings": endings,
        "joins": {stem: [text([stem, ending]) for ending in endings] for stem in stems},
        "copulas": {token: [text([word, token])[1:] for word in "책나"] for token in sorted(COPULAS)},
        "joined": sorted(JOINED - COPULAS),
        "examples": [[" ".join(pair.english), list(pair.korean)] for pair in some],
    }


def _gloss(token):
    """The English of a Korean token, in each of its meanings: 'dog / CL'."""
    around = [(before, after) for before in ("", *NUMBERS) for after in ("", "가", "가-", "함께")]
    found = dict.fromkeys(meaning(before, token, after) for before, after in around)
    return " / ".join(filter(None, found)).replace(".", " ") or "ending"


@functools.cache
def font():
    """The course's Hangul font, reduced to what the page can show, as base64 of WOFF."""
    texts = [text([stem, ending]) for stem in KOREAN.tokens for ending in KOREAN.tokens
             if stem.endswith("-") and ending.startswith("-")]
    options = subset.Options(flavor="woff", layout_features=[])
    whole, found = subset.load_font(FONT, options), io.BytesIO()
    reduced = subset.Subsetter(options)
    reduced.populate(text="".join([*texts, *KOREAN.tokens, "였"]))
    reduced.subset(whole)
    subset.save_font(whole, found, options)
    return base64.b64encode(found.getvalue()).decode("ascii")

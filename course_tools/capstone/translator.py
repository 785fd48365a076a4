"""Use a learner's Transformer for translation: sentences to tensors and back.  Only forward is needed."""

import torch

from course_lib.data.batches import pad_batch
from course_lib.data.english_korean import ENGLISH, KOREAN, text, translate
from course_lib.data.vocab import BOS, EOS, PAD, Vocab
from course_lib.decoding import beam_search, greedy_batch
from course_lib.metrics import exact_match
from course_lib.runtime import device

ENGLISH, KOREAN = Vocab(ENGLISH), Vocab(KOREAN)
BEAM = 4
LONGEST = 90  # Korean tokens; a sentence of 40 English words has about 60


class Translator:
    """A model with forward(src, tgt, pad_id), and the learner's greedy_decode and beam_search."""

    def __init__(self, model, greedy_decode, beam_search=beam_search):
        self.model, self.greedy_decode, self.beam_search = model.to(device()), greedy_decode, beam_search

    def tensors(self, some):
        """src (B, m), tgt (B, n + 2) with <bos> and <eos>, of a list of pairs."""
        src, _ = pad_batch([ENGLISH.encode(pair.english) for pair in some], PAD)
        tgt, _ = pad_batch([KOREAN.encode(pair.korean, bos=True, eos=True) for pair in some], PAD)
        return src.to(device()), tgt.to(device())

    @torch.no_grad()
    def step(self, tokens, state):
        """tokens (B,), state (src, the words before (B, t))  ->  logits (B, vocab), the next state

        All words are computed again in each step, without a cache: only forward is known about the model.
        """
        src, before = state
        written = torch.cat([before, tokens[:, None].to(src)], dim=1)             # (B, t + 1)
        unknown = torch.full_like(written[:, :1], EOS)            # forward reads all but the last
        logits = self.model(src, torch.cat([written, unknown], dim=1), PAD)
        return logits[:, -1].cpu(), (src, written)

    def write(self, sentence, longest=LONGEST, beam=1):
        """The Korean translation of an English sentence, with at most `longest` tokens: by greedy_decode, or
        by beam_search if beam is larger than 1.

        Raises ValueError if the sentence is outside the grammar.
        """
        src, _ = self.tensors([translate(sentence)])

        def step(token, state):
            logits, state = self.step(torch.tensor([token]), state)
            return logits[0], state

        begin = step, (src, src[:, :0]), BOS, EOS
        tokens = self.beam_search(*begin, beam, longest) if beam > 1 else self.greedy_decode(*begin, longest)
        return text(KOREAN.decode(tokens))

    def right(self, some):
        """The fraction of pairs that are translated exactly."""
        src, _ = self.tensors(some)
        rows = greedy_batch(self.step, (src, src[:, :0]), BOS, EOS, LONGEST, len(some))
        return exact_match([KOREAN.decode(row) for row in rows], [pair.korean for pair in some])

    @torch.no_grad()
    def maps(self, sentence):
        """(English tokens, Korean tokens and <eos>, weights (h, n, m) of the last cross-attention).

        None if the decoder blocks have no cross_attention that returns its weights.
        """
        pair, seen = translate(sentence), []
        hooks = [part.register_forward_hook(lambda part, given, output: seen.append(output))
                 for name, part in self.model.named_modules() if name.endswith("cross_attention")]
        try:
            self.model(*self.tensors([pair]), PAD)
        finally:
            for hook in hooks:
                hook.remove()
        if not seen:
            return None
        return pair.english, (*pair.korean, "<eos>"), seen[-1][1][0].cpu()

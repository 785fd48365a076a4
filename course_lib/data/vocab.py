"""Words and their numbers."""

PAD, BOS, EOS, UNK = 0, 1, 2, 3
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocab:
    """Numbers for tokens: 0 <pad>, 1 <bos>, 2 <eos>, 3 <unk>, then the tokens in the order given.

    >>> vocab = Vocab(["나", "는", "학생"])
    >>> len(vocab), vocab.encode(["나", "는", "의사"], bos=True, eos=True)
    (7, [1, 4, 5, 3, 2])
    >>> vocab.decode([1, 4, 5, 6, 2, 0, 0])
    ['나', '는', '학생']
    """

    def __init__(self, tokens):
        self.tokens = [*SPECIALS, *tokens]
        self.ids = {token: number for number, token in enumerate(self.tokens)}
        if len(self.ids) != len(self.tokens):
            twice = next(token for n, token in enumerate(self.tokens) if self.ids[token] != n)
            raise ValueError(f"token '{twice}' comes twice in the vocabulary")

    def __len__(self):
        return len(self.tokens)

    def encode(self, tokens, bos=False, eos=False):
        """A list of numbers; unknown tokens become <unk>."""
        return [BOS] * bos + [self.ids.get(token, UNK) for token in tokens] + [EOS] * eos

    def decode(self, ids):
        """The tokens up to the first <eos>, without <pad> and <bos>.  ids: ints, or a 1-d tensor."""
        tokens = []
        for number in map(int, ids):
            if number == EOS:
                break
            if number not in (PAD, BOS):
                tokens.append(self.tokens[number])
        return tokens

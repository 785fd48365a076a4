"""Text: sentence pairs of your own from a file, English prose that Python brings along, and sub-words."""

import os
import re
import unicodedata
from pathlib import Path

END, MASK, UNKNOWN = "<end>", "[MASK]", "[UNK]"    # numbers 0, 1 and 2 of a sub-word vocabulary


def read_pairs(path):
    """The (english, korean) pairs of a tab-separated file, one pair a line, all of them in order.

    The format of the public exports of Tatoeba: English, tab, Korean, and perhaps another tab and an
    attribution, which is not returned.  UTF-8, with or without a byte order mark; lines end in LF or CRLF.
    Hangul typed as single letters (NFD, as some file systems write it) is put together (NFC).

    Raises ValueError that names file and line for whatever does not fit; no line is passed over.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp(), "mine.tsv")
    >>> _ = path.write_text("Hello.\\t안녕.\\nI run.\\t나는 달린다.\\tby me\\n", encoding="utf-8")
    >>> read_pairs(path)
    [('Hello.', '안녕.'), ('I run.', '나는 달린다.')]
    """
    data = Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf")
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()                       # the end of the last line
    if not lines:
        raise ValueError(f"{path} is empty: expected lines of English, tab, Korean")
    return [_pair(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)]


def _pair(line, where):
    try:
        line = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from None
    line = line.removesuffix("\r")
    if "\0" in line:
        raise ValueError(f"{where}: a NUL character, as in UTF-16; save the file as UTF-8")
    if "\r" in line:
        raise ValueError(f"{where}: a carriage return (CR) inside; lines end in LF or CRLF")
    columns = [unicodedata.normalize("NFC", column).strip() for column in line.split("\t")]
    if len(columns) == 1:
        what = "empty line" if not columns[0] else "no tab"
        raise ValueError(f"{where}: {what}; expected English, tab, Korean")
    if len(columns) > 3:
        raise ValueError(f"{where}: {len(columns)} columns; expected English, Korean, perhaps an attribution")
    for name, column in zip(("English", "Korean"), columns):
        if not column:
            raise ValueError(f"{where}: the {name} side is empty")
    return columns[0], columns[1]


def prose():
    """Paragraphs of English from Python's own help texts (pydoc_data.topics), each once, in a fixed order.

    Code, tables, grammar and headings are left out: a paragraph begins with a capital, ends in '.' or ':',
    has eight words or more and is letters and spaces for 85 %.  About 1,000 paragraphs, some 35,000 words;
    which ones depends on the version of Python.
    """
    from pydoc_data.topics import topics
    plain = str.maketrans("‘’“”–—", "''\"\"--")
    found = {}
    for name in sorted(topics):
        for block in re.split(r"\n\s*\n", topics[name]):
            text = re.sub(r"^[*-] ", "", " ".join(block.split())).translate(plain)
            letters = sum(letter.isalpha() or letter == " " for letter in text)
            if re.match("[A-Z]", text) and text[-1] in ".:" and len(text.split()) >= 8 \
                    and letters > 0.85 * len(text):
                found[text] = None                                # a dict keeps the order, and each once
    return list(found)


def subwords(texts, size):
    """A sub-word vocabulary of `size` tokens, learned from texts: a tokenizers.Tokenizer.

    Byte-pair encoding (Sennrich et al. 2016) within words and runs of other signs; the first token of a word
    carries the space before it, as \u2581.  Number 0 is <end>, 1 [MASK], 2 [UNK]; [MASK] typed is one token.

    >>> vocab = subwords(["low low low lower lower newest newest newest"], 24)
    >>> vocab.encode("lower [MASK]").ids == [vocab.token_to_id("\u2581lower"), 1]
    True
    """
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")      # no warning when a notebook forks
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    vocab = Tokenizer(models.BPE(unk_token=UNKNOWN))
    letters_or_not = Regex("\u2581?[A-Za-z]+|\u2581?[^\u2581A-Za-z]+|\u2581")
    vocab.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(split=False),
                                                   pre_tokenizers.Split(letters_or_not, "isolated")])
    vocab.decoder = decoders.Metaspace()
    special = [END, AddedToken(MASK, lstrip=True), UNKNOWN]
    vocab.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, special_tokens=special,
                                                         show_progress=False))
    return vocab

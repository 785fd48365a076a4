"""Sentence pairs of your own, from a file."""

import unicodedata
from pathlib import Path


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

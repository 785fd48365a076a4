"""Vocabularies, and files of sentence pairs with everything that can be wrong with them."""

import doctest
import unicodedata

import pytest
import torch

from course_lib.data import text, vocab
from course_lib.data.text import read_pairs
from course_lib.data.vocab import Vocab


@pytest.fixture
def written(tmp_path):
    def write(data):
        path = tmp_path / "pairs.tsv"
        path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
        return path
    return write


def test_reads_all_lines_in_order(written):
    path = written("Hi.\t안녕.\nHi.\t안녕.\nRun!\t뛰어!\tCC-BY 2.0 (France): tatoeba.org #1 & #2\n")
    assert read_pairs(path) == [("Hi.", "안녕."), ("Hi.", "안녕."), ("Run!", "뛰어!")]
    assert read_pairs(str(path)) == read_pairs(path)


@pytest.mark.parametrize("data", [
    "Hi.\t안녕.\nRun!\t뛰어!",                          # no line end at the end
    "Hi.\t안녕.\r\nRun!\t뛰어!\r\n",                    # CRLF
    "\ufeffHi.\t안녕.\nRun!\t뛰어!\n",                  # byte order mark
    " Hi. \t 안녕.\nRun!\t뛰어! \t\n",                  # spaces around, an empty attribution
    unicodedata.normalize("NFD", "Hi.\t안녕.\nRun!\t뛰어!\n"),
])
def test_the_same_pairs_in_other_clothes(written, data):
    assert read_pairs(written(data)) == [("Hi.", "안녕."), ("Run!", "뛰어!")]


def test_other_line_separators_stay_in_the_line(written):
    assert read_pairs(written("a\u2028b\t가\u0085나\n")) == [("a\u2028b", "가\u0085나")]


@pytest.mark.parametrize("line, message", [
    ("Run!    뛰어!", "line 2: no tab; expected English, tab, Korean"),
    ("", "line 2: empty line"),
    ("\t뛰어!", "line 2: the English side is empty"),
    ("Run!\t ", "line 2: the Korean side is empty"),
    ("Run!\t뛰어!\tCC-BY\tmore", "line 2: 4 columns"),
    ("Run!\t뛰\0어!", "line 2: a NUL character"),
    ("Run!\t뛰어!\rGo!\t가!", r"line 2: a carriage return"),
    ("Run!\t뛰어!".encode("cp949"), "line 2: byte 6 is not UTF-8"),
])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_bad_lines_are_named(written, line, message, end):
    line = line if isinstance(line, bytes) else line.encode("utf-8")
    path = written(b"Hi.\t" + "안녕.".encode() + end + line + end + b"a\tb" + end)
    with pytest.raises(ValueError, match=f"pairs.tsv, {message}"):
        read_pairs(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp949"])
def test_other_encodings_are_refused(written, encoding):
    with pytest.raises(ValueError, match="line 1: .*save the file as UTF-8"):
        read_pairs(written("Hi.\t안녕.\n".encode(encoding)))


def test_empty_and_missing_files(written, tmp_path):
    with pytest.raises(ValueError, match="pairs.tsv is empty"):
        read_pairs(written(""))
    with pytest.raises(FileNotFoundError):
        read_pairs(tmp_path / "none.tsv")


def test_vocab_goes_there_and_back():
    words = Vocab(["they", "are", "cats"])
    assert len(words) == 7 and words.encode(["they", "are", "dogs"]) == [4, 5, 3]
    ids = words.encode(["they", "are", "cats"], bos=True, eos=True)
    assert ids == [1, 4, 5, 6, 2]
    assert words.decode(torch.tensor([*ids, 0, 4])) == ["they", "are", "cats"]
    assert words.decode([3]) == ["<unk>"]


def test_vocab_refuses_a_word_twice():
    with pytest.raises(ValueError, match="'cats' comes twice"):
        Vocab(["cats", "dogs", "cats"])
    with pytest.raises(ValueError, match="'<pad>' comes twice"):
        Vocab(["<pad>"])


@pytest.mark.parametrize("module", [text, vocab])
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0

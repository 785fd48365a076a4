"""Output of the `course` command: lines, tables and Markdown, for terminals and for pipes."""

import re
import sys
import textwrap
from functools import partial

PIPE_WIDTH = 200  # columns where there is no terminal to ask
SYMBOLS = {"partial": "∂", "epsilon": "ε", "cdot": "·", "ldots": "...", "top": "T"}
MATH = re.compile(r"\$([^$]+)\$")


def console(error=False):
    """rich's console for standard output, or for standard error."""
    from rich.console import Console
    from rich.theme import Theme
    options = {"highlight": False, "stderr": error, "theme": Theme({"markdown.code": "cyan"})}
    terminal = Console(**options)
    return terminal if terminal.is_terminal else Console(width=PIPE_WIDTH, **options)


def say(words, style="", error=False, hang=""):
    """Print a line: wrapped between words in a terminal, unwrapped in a pipe.  Long paths are never broken.

    hang: the indentation of the second and later lines of a wrapped line.
    """
    out = console(error)
    if out.is_terminal:
        wrap = partial(textwrap.wrap, width=out.width, subsequent_indent=hang, break_long_words=False,
                       break_on_hyphens=False)
        words = "\n".join("\n".join(wrap(line)) for line in words.split("\n"))
    out.print(text(words, style), soft_wrap=True)


def markdown(source):
    """Print Markdown, indented.  In a terminal, emphasis and code are styled, and formulas are plain text."""
    from rich.markdown import Markdown
    from rich.padding import Padding
    out = console()
    if not out.is_terminal:
        return print(textwrap.indent(source, "  "))
    out.print(Padding(Markdown(MATH.sub(lambda math: f"`{formula(math[1])}`", source)), (0, 2)))


def formula(latex):
    """A short LaTeX formula in plain characters: p_i\\,\\cdot p_j -> p_i · p_j."""
    plain = re.sub(r"\\text\{(\w+)\}", r"\1", latex).replace(r"\,", " ")
    return re.sub(r"\\([a-z]+)", lambda name: SYMBOLS.get(name[1], name[1]), plain)


def table(*columns):
    """An empty table: with a ruled header in a terminal, plain in a pipe; numbers are right-aligned."""
    from rich import box
    from rich.table import Table
    made = Table(box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False)
    for column in columns:
        made.add_column(column, justify="right" if column in ("items", "points") else "left")
    return made


def text(words, style=""):
    """Text that is shown as it is: brackets in it are not markup."""
    from rich.text import Text
    return Text(words, style=style)

"""Convert the Markdown of exercises to HTML, with formulas as MathML: no script, no network."""

import html

import mistune
from latex2mathml.converter import convert

BLOCK = r"^ {0,3}\$\$(?P<block_formula>[\s\S]+?)\$\$[ \t]*$"
INLINE = r"\$\$(?P<wide_formula>[^$]+)\$\$|\$(?P<inline_formula>[^$\s](?:[^$]*[^$\s])?)\$"


def formula(latex, display="inline"):
    """A LaTeX formula as MathML, or as code if it cannot be converted.  display: 'inline' or 'block'."""
    try:
        return convert(latex.strip(), display=display).replace(r"\_", "_")
    except Exception:  # the converter raises whatever the formula led to
        return f"<code>{html.escape(latex)}</code>"


def render(text):
    """Markdown with tables and formulas as HTML.  text: trusted, HTML in it stays."""
    return _markdown(text)


def _formulas(markdown):
    """A plugin for mistune: $...$ within a line, $$...$$ as a block or within one."""
    def block(parser, match, state):
        state.append_token({"type": "formula", "raw": match["block_formula"], "attrs": {"display": "block"}})
        return match.end() + 1

    def inline(parser, match, state):
        wide, plain = match["wide_formula"], match["inline_formula"]
        state.append_token({"type": "formula", "raw": wide or plain,
                            "attrs": {"display": "block" if wide else "inline"}})
        return match.end()
    markdown.block.register("formula", BLOCK, block, before="list")
    markdown.inline.register("formula", INLINE, inline, before="link")
    markdown.renderer.register("formula", lambda renderer, raw, display: formula(raw, display))


_markdown = mistune.create_markdown(escape=False, plugins=["table", _formulas])

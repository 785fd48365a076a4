"""Jinja as every part of the course sets it up."""

from pathlib import Path

import jinja2


def environment(folder: Path, escape: bool = True) -> jinja2.Environment:
    """Jinja for the templates in `folder`.  A name that a template is not given is an error, not empty text.

    escape: whether values are escaped as HTML unless the template says otherwise; False for scripts, settings
    and Markdown.
    """
    return jinja2.Environment(loader=jinja2.FileSystemLoader(folder), autoescape=escape, trim_blocks=True,
                              lstrip_blocks=True, undefined=jinja2.StrictUndefined)

"""The words of the book's own templates and links in the language of the edition.

An edition in another language is locale/LANGUAGE.po here, chosen by COURSE_LANGUAGE; the English words are
the keys.
"""

import os
from pathlib import Path

from ... import templates

LANGUAGE = os.environ.get("COURSE_LANGUAGE", "en")
LOCALE = Path(__file__).parent / "locale"
PAGES = Path(__file__).parent / "pages"


def _read(language):
    path = LOCALE / f"{language}.po"
    if not path.exists():
        return {}
    from babel.messages.pofile import read_po
    with path.open(encoding="utf-8") as file:
        return {message.id: message.string for message in read_po(file) if message.id and message.string}


WORDS = _read(LANGUAGE)


def _(text):
    """The text in the language of this edition."""
    return WORDS.get(text, text)


def pages():
    """Jinja with the language of this edition, for the templates in pages/."""
    made = templates.environment(PAGES, escape=False)
    made.add_extension("jinja2.ext.i18n")
    made.install_gettext_callables(_, lambda one, many, n: _(one if n == 1 else many), newstyle=True)
    return made

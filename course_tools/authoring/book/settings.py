"""Sphinx's settings for the book.  Nothing here asks for anything outside the site."""

from pathlib import Path

from .gathered import readme
from .words import LANGUAGE, _

HERE = Path(__file__).parent
MATHJAX = {"options": {"enableMenu": False, "enableAssistiveMml": True},    # the menu loads further files
           "chtml": {"displayAlign": "left", "scale": 1}}


def settings():
    """The values of Sphinx's conf.py."""
    title = readme().title or _("The course")
    return {
        "extensions": ["myst_nb", "sphinx_copybutton", "sphinx.ext.mathjax", f"{__package__}.extension"],
        "project": title, "author": "", "language": LANGUAGE, "root_doc": "index",
        "source_suffix": {".ipynb": "myst-nb", ".md": "myst-nb"},
        "nb_execution_mode": "off", "nb_merge_streams": True, "nb_render_markdown_format": "myst",
        "nb_code_prompt_show": _("Show the code"), "nb_code_prompt_hide": _("Hide the code"),
        "myst_enable_extensions": ["dollarmath", "html_image"], "myst_dmath_double_inline": True,
        "myst_dmath_allow_labels": False,
        "mathjax_path": "mathjax/tex-chtml.js", "mathjax3_config": MATHJAX,
        "html_theme": "sphinx_book_theme", "html_title": title, "html_copy_source": False,
        "html_use_index": False, "html_show_sourcelink": False, "html_show_sphinx": False,
        "html_show_copyright": False,
        "html_static_path": [str(HERE / "static")], "templates_path": [str(HERE / "templates")],
        "html_css_files": ["book.css"], "html_js_files": ["book.js"],
        "html_favicon": str(HERE / "static" / "icon.svg"),
        "html_context": {"default_mode": "auto", "editions": [], "words": {"answer_first": _(
            "Choose an answer above to see what comes out.")}},
        "html_theme_options": {
            "use_download_button": False, "use_fullscreen_button": False, "home_page_in_toc": True,
            "show_navbar_depth": 1, "navbar_persistent": [], "navbar_start": [], "navbar_center": [],
            "navbar_end": [], "show_toc_level": 1, "toc_title": _("On this page"),
            "article_header_end": ["languages", "article-header-buttons"],
            "logo": {"text": title}, "pygments_light_style": "a11y-high-contrast-light",
            "pygments_dark_style": "a11y-high-contrast-dark"},
    }

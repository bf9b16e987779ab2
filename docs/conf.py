"""The site: `make docs` builds it into site/, warnings being errors; its pages load nothing from the network."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from cli_reference import commands

import dualt

project = "dualt"
author = "The dualt authors"
release = version = dualt.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]

html_theme = "furo"
html_title = f"dualt {version}"
html_static_path = ["style.css", "pictures"]
html_css_files = ["style.css"]
html_show_sphinx = html_show_copyright = False
html_copy_source = False
copybutton_exclude = ".linenos, .gp, .go"

myst_enable_extensions = ["attrs_inline", "deflist"]
myst_heading_anchors = 3
highlight_language = "text"
# Smart quotes would turn the two hyphens of an option into a dash.
smartquotes = False

# Docstrings use single backticks for names, as Markdown does.
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
# As a section of its own: fields of Sphinx take "a, b : type" for a type and a name.
napoleon_custom_sections = [("Attributes", "params_style")]
napoleon_use_rtype = False
napoleon_preprocess_types = False


def _complete(_app: Any, name: str, source: list[str]) -> None:
    """Add to a page what is made elsewhere: the reference of the commands; that tables of runs stand in no menu."""
    if name == "reference/cli":
        source[0] = source[0].replace("<!-- commands -->", commands())
    if name.startswith("reproduction/"):
        source[0] = f"---\norphan: true\n---\n{source[0]}"


def setup(app: Any) -> None:
    """Tell Sphinx what is made when it reads."""
    app.connect("source-read", _complete)

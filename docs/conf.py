"""How the manual is built: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "src")]

import calibrant  # noqa: E402

project = "Calibrant"
author = "The Calibrant developers"
copyright = author
version = release = calibrant.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "attributes",  # from here on in docs/extensions
    "dark_figures",
    "mathml",
    "names",
    "navigation",
    "outputs",
    "outside_links",
    "public_names",
    "samples",
]
exclude_patterns = ["build", "**/*.ipynb"]

# Markdown: formulas between dollars, links to headings.
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
smartquotes = False  # curly quotes and long dashes break code and options in text
autosummary_generate = False  # the extension public_names writes the pages
suppress_warnings = [
    "myst.header",  # pages that scripts write may begin at any level
    "ref.python",  # a word in backticks that is the name of attributes of two classes
]

# Docstrings: one backtick is a name of ours where it is one, and code where it is not.
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {
    # By scikit-learn in every class, or said once for all by the page of `calibrant.base`.
    "exclude-members": (
        "set_fit_request, set_predict_request, set_predict_proba_request, "
        "set_predict_log_proba_request, set_score_request, set_partial_fit_request, "
        "get_metadata_routing, "
        "check_exceptions, citation, counts_rows, fitted_values, remedies"
    ),
}
autoclass_content = "class"
add_module_names = False
strip_signature_backslash = True  # fitted attributes keep their underscore
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 88

# Furo: light, dark and what the system says; nothing is loaded from elsewhere.
html_theme = "furo"
pygments_dark_style = "github-dark"  # the default underlines every name of a module
html_title = f"Calibrant {release}"
html_static_path = ["static"]
html_css_files = ["calibrant.css"]
html_js_files = ["copy.js"]
html_search_scorer = str(HERE / "extensions" / "scorer.js")
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # is fetched, which browsers refuse for pages of the file system
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}

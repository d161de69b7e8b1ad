"""Settings of the documentation: ``make docs`` builds it into ``build/docs``."""

import gbmrank

project = "gbmrank"
author = "the gbmrank authors"
version = release = gbmrank.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_use_param = False
exclude_patterns = ["generate.py"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = "gbmrank"
html_show_sphinx = False
suppress_warnings = [
    "myst.xref_missing",  # links to files of the repository
    "ref.python",  # n_rows of a shape is no reference to the property of that name
]
html_show_copyright = False

"""How the site is built: ``make docs``. Nothing is fetched, at build or at view."""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS / "_ext"))
# Without an installed comtl take the checkout beside us.
sys.path[:0] = [str(DOCS.parent / "src"), str(DOCS.parent / "reproduction" / "src")]

import comtl  # noqa: E402

project = "comtl"
author = "The comtl developers"
copyright = author
version = release = comtl.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "repository_pages",
]
templates_path = ["_templates"]
exclude_patterns = ["_ext", "_templates", "**/GALLERY_HEADER.rst"]
nitpicky = False
suppress_warnings = [
    # The configuration of the gallery holds a pattern and functions, which Sphinx cannot store.
    "config.cache",
]

# Pages -----------------------------------------------------------------------------------------

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
math_number_all = False

# Reference -------------------------------------------------------------------------------------

autosummary_generate = True
autosummary_imported_members = False
autodoc_default_options = {"members": False}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Gallery ---------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": re.escape("plot_"),
    "ignore_pattern": r"demo\.py$",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    # That page would fetch a script from elsewhere.
    "write_computation_times": False,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
    "capture_repr": ("_repr_html_", "__repr__"),
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "plot_gallery": True,
    "abort_on_example_error": False,
    "backreferences_dir": "api/backreferences",
    "doc_module": ("comtl",),
    "within_subsection_order": "gallery_order.Order",
    "thumbnail_size": (400, 280),
}

# Look ------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = f"comtl {release}"
html_static_path = ["_static"]
html_css_files = ["comtl.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_start": ["navbar-logo"],
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "logo": {"text": "comtl"},
}
html_sidebars = {"index": []}
html_math_renderer = "mathml"

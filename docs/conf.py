"""Configuration of the documentation site; `make docs` builds it."""

from __future__ import annotations

import importlib.metadata
import logging
import sys
import tomllib
import warnings
from pathlib import Path

import numpydoc.xref

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = PROJECT.get("urls", {}).get("Source", "https://github.com/marginwise/marginwise")

project = "marginwise"
author = "The marginwise developers"
copyright = author  # noqa: A001
release = version = importlib.metadata.version("marginwise")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "accessible",
    "docstrings",
    "mathml",
    "repository_links",
]
exclude_patterns = ["**.ipynb", "auto_examples/**.py", "auto_examples/**.json"]
templates_path = ["_templates"]
default_role = "literal"
highlight_language = "none"
pygments_style = "a11y-high-contrast-light"
nitpicky = True
# The list of results is empty until results are stored.
logging.getLogger("sphinx.sphinx.directives.other").addFilter(
    lambda record: "toctree glob pattern" not in str(record.msg)
)
smartquotes = False
toc_object_entries_show_parents = "hide"
repository_url = SOURCE

# -- Markdown --------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

# -- API reference ---------------------------------------------------------------------------------

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
numpydoc.xref.DEFAULT_LINKS.clear()  # int, str and the like need no link
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # link only the names below
numpydoc_xref_aliases = {
    "ndarray": "numpy.ndarray",
    "RandomState": "numpy.random.RandomState",
    "Generator": "numpy.random.Generator",
    "Bunch": "sklearn.utils.Bunch",
    "Pipeline": "sklearn.pipeline.Pipeline",
    "Path": "pathlib.Path",
    "OnlineSVC": "marginwise.OnlineSVC",
    "CompressedSVC": "marginwise.CompressedSVC",
    "ActiveLearner": "marginwise.active.ActiveLearner",
    "LabelErrors": "marginwise.inspect.LabelErrors",
    "Receipt": "marginwise.removal.Receipt",
}

# Inventories of the names used here are committed, so builds need no network and produce the same
# links everywhere. `make linkcheck` checks that the links work.
intersphinx_mapping = {
    name: (url, str(HERE / "inventories" / f"{name}.inv"))
    for name, url in {
        "python": "https://docs.python.org/3/",
        "numpy": "https://numpy.org/doc/stable/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "sklearn": "https://scikit-learn.org/stable/",
        "joblib": "https://joblib.readthedocs.io/en/stable/",
        "matplotlib": "https://matplotlib.org/stable/",
    }.items()
}

# -- gallery ---------------------------------------------------------------------------------------

warnings.filterwarnings("ignore", message=".*is non-interactive", category=UserWarning)
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"\.py$",
    "reset_argv": "gallery.arguments",
    "within_subsection_order": "gallery.order",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "min_reported_time": 1000,
    "write_computation_times": False,
    "thumbnail_size": (500, 320),
    "matplotlib_animations": False,
    "backreferences_dir": None,
    "doc_module": ("marginwise",),
    "reference_url": {"marginwise": None},
    "copyfile_regex": r"^$",
    "notebook_extensions": set(),
}

# -- pages -----------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "marginwise"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {
    page: []
    for page in ("index", "getting_started", "contributing/index", "changelog", "results/*")
}
html_theme_options = {
    "logo": {"text": "marginwise", "alt_text": ""},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher", "navbar-icon-links"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 7,
    "icon_links": [{"name": "Source code", "url": SOURCE, "icon": "fa-brands fa-github"}],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_nav_level": 1,
    "navigation_depth": 2,
    "show_toc_level": 1,
    "footer_start": ["copyright"],
    "footer_center": [],
    "footer_end": [],
    "back_to_top_button": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# -- links to other sites --------------------------------------------------------------------------

linkcheck_anchors = True
linkcheck_timeout = 20
linkcheck_retries = 2
linkcheck_ignore = [r"http://(localhost|127\.0\.0\.1)"]

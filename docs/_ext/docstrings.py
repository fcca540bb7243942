"""Corrections of docstrings before and after numpydoc, and of references to them."""

from __future__ import annotations

import inspect
import re
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.inspect import stringify_signature
from sphinx.util.nodes import make_refnode

BEFORE_NUMPYDOC, AFTER_NUMPYDOC = 100, 900
# References in scikit-learn's docstrings to its own pages, which have no target here.
FOREIGN = re.compile(r":(?:ref|term):`([^`<]+?)(?: <[^`]*>)?`")
PROPERTY = re.compile(r"^(\s*):obj:`(\w+) <[^`]*>`(?= :|$)")
NAME_IN_TYPE = re.compile(r"(?<![\w`])([a-z]\w*)_(?=[,)])")
ELSEWHERE = {"marginwise.ActiveLearner": "marginwise.active.ActiveLearner"}  # importable from both
CITED = re.compile(r"\[([a-z]+\d{4})\]_")


def plain_citations(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Convert citations of papers that the docstring does not list to plain text."""
    listed = set(re.findall(r"^\s*\.\. \[(\w+)\]", "\n".join(lines), re.MULTILINE))
    for k, line in enumerate(lines):
        lines[k] = CITED.sub(lambda m: m[0] if m[1] in listed else f"[{m[1]}]", line)


def repair(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Replace references that have no target."""
    foreign = str(getattr(thing, "__module__", "")).startswith("sklearn")
    for k, line in enumerate(lines):
        fixed = PROPERTY.sub(r"\1**\2**", line)
        if foreign:
            fixed = FOREIGN.sub(r"\1", fixed)
        if re.match(r"\s*(\*\*\w+\*\*|\w+) : ", fixed):
            fixed = NAME_IN_TYPE.sub(r"\1\\_", fixed)
        lines[k] = fixed


def class_signature(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, signature: Any, returns: Any
) -> tuple[str, None] | None:
    """Return the signature of a class as Python reports it, not that of its `__new__`."""
    if what != "class":
        return None
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    return stringify_signature(found, show_annotation=False, show_return_annotation=False), None


def short_name(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Resolve names such as `ExactSVC.forget` in docstrings of any module."""
    if node.get("refdomain") != "py":
        return None
    target = ELSEWHERE.get(node["reftarget"], f"marginwise.{node['reftarget']}")
    domain = env.domains["py"]
    if target not in domain.objects:
        return None
    entry = domain.objects[target]
    return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, content, target)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the corrections."""
    app.connect("autodoc-process-docstring", plain_citations, priority=BEFORE_NUMPYDOC)
    app.connect("autodoc-process-signature", class_signature)
    app.connect("missing-reference", short_name)
    app.connect("autodoc-process-docstring", repair, priority=AFTER_NUMPYDOC)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

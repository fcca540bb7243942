"""Corrections of pages for screen readers."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx


def repair(app: Sphinx, name: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Remove a meaningless role: docutils marks citations as a list without items."""
    if "body" in context:
        context["body"] = context["body"].replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the correction."""
    app.connect("html-page-context", repair)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

"""Render formulas as MathML, which browsers display without external scripts."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

# \tfrac12 is 1/2 in TeX; docutils reads the number 12.
SHORT_FRACTION = re.compile(r"\\([dt]?frac)\s*(\w)\s*(\w)")
# Browsers stretch these to the height of the formula; TeX does so only after \left and \right.
FENCE = re.compile(r"<mo(?: class=\"math(?:open|close)\")?>([{}‖|⟨⟩])</mo>")


def mathml(tex: str, *, as_block: bool = False) -> str:
    """Return a formula in TeX as MathML."""
    formula = tex2mathml(SHORT_FRACTION.sub(r"\\\1{\2}{\3}", tex), as_block=as_block)
    return FENCE.sub(r'<mo stretchy="false">\1</mo>', formula)


def inline(writer: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def display(writer: Any, node: nodes.math_block) -> None:
    """Write a displayed formula, which scrolls if it is too wide."""
    formula = mathml(node.astext(), as_block=True)
    writer.body.append(f'<div class="math-display" tabindex="0">{formula}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

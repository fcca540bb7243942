"""Resolve links from pages to files of the repository, to the site or to the source code.

Pages link to files by relative paths, so that the links work in an editor and on GitHub too.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)([^)\s#]+)(#[^)\s]*)?(?=\))")
FENCE = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)\s*?$)", re.MULTILINE | re.DOTALL)
# Files outside of docs/ that are pages of the site.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing/index.md",
    "CHANGELOG.md": "changelog.md",
}


def target_of(path: Path, root: Path, url: str) -> str:
    """Return where a link to a file leads: a page, relative to docs/, or an address."""
    relative = path.relative_to(root).as_posix()
    if relative in PAGES:
        return PAGES[relative]
    if relative.startswith("docs/"):
        return relative.removeprefix("docs/")
    if path.suffix == ".py" and relative.startswith("examples/"):
        return f"auto_examples/{path.stem}.rst"
    return f"{url}/{'tree' if path.is_dir() else 'blob'}/main/{relative}"


def translated(text: str, docname: str, source: Path, url: str, base: Path) -> str:
    """Return Markdown whose links lead to pages of the site or to addresses."""

    def replace(found: re.Match[str]) -> str:
        path = Path(os.path.normpath(base / found[1]))
        if not path.exists() or (path.is_relative_to(source) and base != source.parent):
            return found[0]
        target = target_of(path, source.parent, url)
        if not target.startswith("http"):
            target = os.path.relpath(target, os.path.dirname(docname) or ".")
        return target + (found[2] or "")

    parts = FENCE.split(text)
    return "".join(part if k % 2 else LINK.sub(replace, part) for k, part in enumerate(parts))


def on_read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Translate the links of a page when it is read."""
    if not str(app.env.doc2path(docname)).endswith(".md"):
        return
    folder = Path(app.srcdir)
    base = (folder / docname).parent
    source[0] = translated(source[0], docname, folder, app.config.repository_url, base)


class RepositoryFile(SphinxDirective):
    """Include a Markdown file of the repository, without its title."""

    required_arguments = 1

    def run(self) -> list[Any]:
        """Return the nodes of the file."""
        source = Path(self.env.srcdir)
        path = source.parent / self.arguments[0]
        self.env.note_dependency(str(path))
        text = path.read_text(encoding="utf-8").partition("\n")[2]
        text = translated(text, self.env.docname, source, self.config.repository_url, source.parent)
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the translation and the directive."""
    app.add_config_value("repository_url", "", "env")
    app.connect("source-read", on_read)
    app.add_directive("repository-file", RepositoryFile)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

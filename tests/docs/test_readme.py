"""The README's links to the site lead to pages whose source exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_pages import anchors

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SITE = "https://marginwise.github.io/marginwise/"
LINKS = sorted(set(re.findall(rf"{re.escape(SITE)}([\w/]+)\.html(?:#([\w-]+))?", README)))
GENERATED = {"auto_examples/index"}


def test_the_site_is_linked() -> None:
    assert len(LINKS) > 10
    assert SITE in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(("page", "anchor"), LINKS)
def test_links_to_the_site_have_a_source(page: str, anchor: str) -> None:
    if page in GENERATED:
        return
    source = ROOT / "docs" / f"{page}.md"
    assert source.is_file()
    assert not anchor or anchor in anchors(source)


def test_all_is_said_before_the_first_heading() -> None:
    """One screen: a picture, five lines of code and one table; the sections follow."""
    opening = README.partition("\n## ")[0]
    assert opening.count("![") == 1
    assert opening.count("```python") == 1
    assert opening.count("| --- |") == 1
    assert len(opening.splitlines()) < 40

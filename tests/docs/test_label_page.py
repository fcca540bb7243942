"""The guide to labelling describes the page."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.browser.test_files import PAGE, UPLOT

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guide" / "label.md").read_text(encoding="utf-8")


def test_every_key_of_the_help_is_described() -> None:
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    keys = re.findall(r"<kbd>(.*?)</kbd>", text.partition('id="help"')[2])
    assert len(keys) > 12
    table = GUIDE.partition("\n## Keys\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"[^\s`+,]+", "".join(re.findall(r"`[^`]+`", table)).replace("`", " ")))
    assert {key.replace("Esc", "Escape") for key in keys} <= named


def test_the_vendored_library_is_named_with_its_version_and_licence() -> None:
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for page in (GUIDE, contributing):
        assert UPLOT in page
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "src/marginwise/label/page/uPlot-LICENSE.txt" in project["license-files"]


def test_every_picture_is_made_by_the_script() -> None:
    script = (ROOT / "tests" / "browser" / "screenshots.py").read_text(encoding="utf-8")
    shown = set(re.findall(r"images/(\w+\.png)", GUIDE))
    assert len(shown) == 4
    assert shown == set(re.findall(r'out / "(\w+\.png)"', script))

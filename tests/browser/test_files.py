"""The files of the page: vendored code is what was published, and nothing is inline or remote."""

from __future__ import annotations

import hashlib
import re
from importlib import resources
from pathlib import Path

import pytest

PAGE = Path(str(resources.files("marginwise.label"))) / "page"  # as it was installed
UPLOT = "1.6.32"
# SHA-256 of the files of the package uplot of npm, version 1.6.32.
VENDORED = {
    "uPlot.esm.js": "5dd9b3281aa64b461b42d9945f6adb2649d346502b12281a9ae0d46599a80eba",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uPlot-LICENSE.txt": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}
OWN = sorted(
    path
    for path in PAGE.iterdir()
    if path.suffix in (".js", ".html", ".css") and path.name not in VENDORED
)
SCRIPTS = [path for path in OWN if path.suffix == ".js"]

each_file = pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
each_script = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)


@pytest.mark.parametrize("name", VENDORED)
def test_vendored_files_are_as_published(name: str) -> None:
    assert hashlib.sha256((PAGE / name).read_bytes()).hexdigest() == VENDORED[name]


def test_the_version_of_uplot_is_the_one_that_is_stated() -> None:
    assert f"(v{UPLOT})" in (PAGE / "uPlot.esm.js").read_text(encoding="utf-8")[:500]


@each_file
def test_nothing_is_fetched_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert not re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text)


def test_the_document_has_no_inline_script_or_style() -> None:
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", text)
    assert all(" src=" in tag for tag in re.findall(r"<script[^>]*>", text))


@each_script
def test_scripts_never_parse_html(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    parsers = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"
    assert not re.search(parsers, text)


@each_script
def test_elements_that_scripts_name_exist(path: Path) -> None:
    ids = set(re.findall(r'\bid="([\w-]+)"', (PAGE / "index.html").read_text(encoding="utf-8")))
    named = set(re.findall(r'\$\("([\w-]+)"\)', path.read_text(encoding="utf-8")))
    assert named <= ids


def test_every_file_that_the_page_loads_is_there() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in OWN)
    loaded = re.findall(r'"(?:/page|\.)/([\w.-]+)"', text)
    assert len(loaded) > 8
    assert not [name for name in loaded if not (PAGE / name).is_file()]


@each_file
def test_files_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400

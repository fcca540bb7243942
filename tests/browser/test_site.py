"""Every page of the documentation in a browser: wide and narrow, light and dark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from tests.browser.conftest import missing
from tests.browser.site_support import SITE, pages, served

SIZES = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 800}}
# Pages of classes and functions are alike: axe-core sees them in both schemes, in one size each.
GENERATED = "api/generated/"
TWO = (("desktop", "light"), ("phone", "dark"))
# What is wrong with a page apart from what axe-core finds.
FAULTS = """() => {
  const found = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const wide = [...document.querySelectorAll("main *")].filter(
      (e) => e.getBoundingClientRect().right > root.clientWidth + 1);
    found.push(`scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}: `
      + wide.slice(0, 2).map((e) => e.outerHTML.slice(0, 150)).join(" | "));
  }
  for (const image of document.images) {
    if (!image.complete || image.naturalWidth === 0) found.push(`broken image: ${image.src}`);
    if (!image.hasAttribute("alt")) found.push(`image without a text: ${image.src}`);
  }
  for (const formula of document.querySelectorAll(".math-display")) {
    if (root.clientWidth > 1200 && formula.scrollWidth > formula.clientWidth + 1)
      found.push(`formula wider than the text: ${formula.innerText.replace(/\\s+/g, " ")}`);
  }
  return found;
}"""
# Without `preload`, axe-core does not fetch style sheets again, from wrong addresses.
AXE = """() => axe.run(document, {resultTypes: ["violations"], preload: false})
  .then((result) => result.violations
  .filter((rule) => ["serious", "critical"].includes(rule.impact))
  .flatMap((rule) => rule.nodes.map((node) => `${rule.id}: ${node.html.slice(0, 200)}`)))"""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    if not (SITE / "index.html").is_file():
        if os.environ.get("MARGINWISE_REQUIRE_SITE") == "1":
            pytest.fail("MARGINWISE_REQUIRE_SITE is set, but the documentation is not built")
        pytest.skip("the documentation is not built: run `make docs`")
    with served() as address:
        yield address


def axe_script() -> str:
    try:
        import axe_playwright_python
    except ImportError:
        missing("axe-playwright-python is not installed")
    (script,) = Path(axe_playwright_python.__file__).parent.glob("axe*.min.js")
    return script.read_text(encoding="utf-8")


def _failure(request: Any) -> list[str]:
    """Describe a request that failed, unless leaving the page before it aborted it."""
    aborted = request.failure == "net::ERR_ABORTED"
    return [] if aborted else [f"not loaded: {request.url} ({request.failure})"]


THEMED = "scheme => document.documentElement.dataset.theme === scheme"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_every_page(browser: Any, site: str, size: str, scheme: str) -> None:
    axe = axe_script()
    context = browser.new_context(
        viewport=SIZES[size], color_scheme=scheme, reduced_motion="reduce"
    )
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on("requestfailed", lambda request: problems.extend(_failure(request)))
    found = {}
    for name in pages():
        page.goto(f"{site}/{name}", wait_until="load")
        page.wait_for_function(THEMED, arg=scheme)  # a script sets it, perhaps after the load
        problems += page.evaluate(FAULTS)
        if not name.startswith(GENERATED) or (size, scheme) in TWO:
            page.evaluate(axe)
            problems += page.evaluate(AXE)
        if problems:
            found[name] = [*problems]
        problems.clear()
    context.close()
    assert not found


def test_search_finds_a_class(browser: Any, site: str) -> None:
    page = browser.new_page()
    page.goto(f"{site}/search.html?q=ExactRampSVC")
    page.wait_for_selector("#search-results li a")
    links = page.locator("#search-results li a").evaluate_all("all => all.map((a) => a.href)")
    assert any(link.partition("#")[0].endswith("marginwise.ExactRampSVC.html") for link in links)
    page.close()


def test_pages_load_nothing_from_elsewhere(browser: Any, site: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for name in ("index.html", "algorithms/gap.html", "auto_examples/index.html"):
        page.goto(f"{site}/{name}", wait_until="load")
    page.close()
    assert [url for url in asked if not url.startswith((site, "data:"))] == []


class Anchors(HTMLParser):
    """The ids of a page, and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids |= {found[name] or "" for name in ("id", "name") if name in found}
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))


def test_links_within_the_site_lead_somewhere(site: str) -> None:
    read: dict[Path, Anchors] = {}
    for name in pages():
        read[(SITE / name).resolve()] = parser = Anchors()
        parser.feed((SITE / name).read_text(encoding="utf-8"))
    dead = []
    for path, parser in read.items():
        for link in parser.links:
            target, _, anchor = link.partition("#")
            if ":" in target or link == "#":
                continue
            other = (path.parent / unquote(target)).resolve() if target else path
            exists = other in read or other.is_file()
            if not exists or (anchor and other in read and unquote(anchor) not in read[other].ids):
                dead.append(f"{path.name}: {link}")
    assert not dead

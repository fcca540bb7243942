"""A browser for all tests of the page; without one they are skipped, or fail where CI needs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.serving import Labelling, messages, write_csv

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
WAIT = 10_000  # milliseconds until a test gives up


def missing(reason: str) -> None:
    """Skip, or fail if the browser tests must run."""
    if os.environ.get("MARGINWISE_REQUIRE_BROWSER") == "1":
        pytest.fail(f"MARGINWISE_REQUIRE_BROWSER is set, but {reason}")
    pytest.skip(reason)


# Of the package, not of the session: while Playwright runs, its thread has an event loop, in which
# tests of other folders could not start theirs.
@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        missing(f"{error.name} is not installed")
    paths = [os.environ.get("MARGINWISE_CHROMIUM"), *map(shutil.which, NAMES)]
    path = next((path for path in paths if path), None)
    if path is None:
        missing("no Chromium was found; install it, or name it in MARGINWISE_CHROMIUM")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a page; whatever it logs as an error fails the test."""
    contexts, problems = [], []

    def opened(server: Labelling | None, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        context.set_default_timeout(WAIT)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: note(message, problems))
        page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error('CSP', e.blockedURI))"
        )
        if server is not None:
            page.goto(server.url)
            page.wait_for_selector("#labels button")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not problems


def note(message: Any, problems: list[str]) -> None:
    """Note errors of the console, except that a server which a test stopped did not answer."""
    away = ("ERR_CONNECTION", "ERR_FAILED", "ERR_EMPTY_RESPONSE", "ERR_SOCKET", "403 (Forbidden)")
    if message.type in ("error", "warning") and not any(word in message.text for word in away):
        problems.append(message.text)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Labelling]]:
    """Return a function that starts a server of messages, or of other items."""
    started: list[Labelling] = []

    def labelling(items: Path | None = None, **options: Any) -> Labelling:
        if items is None:
            rows = [{"text": text} for text, _ in messages(options.pop("count", 40))]
            items = write_csv(tmp_path / "messages.csv", rows)
            options.setdefault("columns", {"text": ("text",)})
        options = {"labels": ["ham", "spam"], "store": tmp_path / "labels.db", **options}
        started.append(Labelling(items, **options).start())
        return started[-1]

    yield labelling
    for server in started:
        server.stop()

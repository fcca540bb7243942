"""The page is for everyone: screen readers, keyboards, phones, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from marginwise.active import MaxLabels
from tests.browser.conftest import missing
from tests.browser.serving import Labelling
from tests.browser.test_labelling import item, past, press, said, shown

Serve = Callable[..., Labelling]
Open = Callable[..., Any]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def violations(page: Any) -> list[str]:
    """Return what axe-core objects to, from moderate violations on."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-playwright-python is not installed")
    page.wait_for_timeout(250)  # colours change with a transition
    found = Axe().run(page).response["violations"]
    return [
        f"{rule['id']}: {node['html']}"
        for rule in found
        if rule["impact"] != "minor"
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["desktop", "phone"])
def test_axe_finds_no_violation(serve: Serve, open_page: Open, scheme: str, size: str) -> None:
    server = serve(count=9, stop_rule=MaxLabels(4), settings={"holdout": 0.2})
    options = PHONE if size == "phone" else {}
    page = open_page(server, color_scheme=scheme, **options)
    found = violations(page) if size == "desktop" else []
    for key in ("1", "2", "f", "1", "2"):
        press(page, key)
    page.keyboard.press("g")
    page.keyboard.press("n")
    page.wait_for_selector("#verdict.reached")
    found += violations(page)
    page.keyboard.press("Escape")
    past(page)
    page.keyboard.press("?")
    found += violations(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    for _ in range(5):
        press(page, "1")
    page.wait_for_selector("#end:not([hidden])")
    found += violations(page)
    assert found == []


def test_axe_finds_no_violation_with_many_labels(serve: Serve, open_page: Open) -> None:
    server = serve(labels=[f"label {k}" for k in range(14)])
    page = open_page(server)
    page.route("**/api/answer", lambda route: route.abort())
    page.keyboard.press("1")
    page.wait_for_selector("#away:not([hidden])")
    assert violations(page) == []


def test_one_live_region_reads_results_and_items(serve: Serve, open_page: Open) -> None:
    page = open_page(serve())
    assert page.locator("[aria-live]").count() == 1
    press(page, "2")
    said(page, f"“spam”. {shown(page)}")
    press(page, "f")
    said(page, "Flagged.")
    press(page, "u", "u")
    said(page, f"Undone: “spam”. {shown(page)}")


def test_single_keys_can_be_turned_off(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    page.keyboard.press("?")
    page.uncheck("#single")
    page.keyboard.press("Escape")
    press(page, "1", "f", "Space")
    assert server.events() == []
    page.reload()
    page.wait_for_selector("#labels button")
    press(page, "1")
    assert server.events() == []
    page.locator("#labels button").first.focus()
    press(page, "Enter")
    assert len(server.events()) == 1


def test_a_closed_dialog_gives_up_the_focus_at_once(serve: Serve, open_page: Open) -> None:
    """Keys that are pressed before the next frame must not reach the checkbox of the dialog."""
    page = open_page(serve())
    page.keyboard.press("?")
    page.focus("#single")
    closed = """() => {
        document.getElementById("help").close();
        return document.activeElement.tagName;
    }"""
    assert page.evaluate(closed) == "BODY"
    reopened = """() => {
        document.getElementById("skip").focus();
        document.getElementById("help").showModal();
        document.getElementById("single").focus();
        document.getElementById("help").close();
        return document.activeElement.id;
    }"""
    assert page.evaluate(reopened) == "skip"


def test_the_skip_link_leads_to_the_labels(serve: Serve, open_page: Open) -> None:
    page = open_page(serve())
    page.keyboard.press("Tab")
    assert page.locator(".jump").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.label") == "ham"


def test_the_theme_is_remembered(serve: Serve, open_page: Open) -> None:
    page = open_page(serve(), color_scheme="light")
    theme = "document.documentElement.dataset.theme"
    assert page.evaluate(theme) == "light"
    page.click("#theme")
    assert page.evaluate(theme) == "dark"
    page.reload()
    assert page.evaluate(theme) == "dark"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in ground[4:-1].split(",")) < 60


@pytest.mark.parametrize("text", ["short", "a word " * 400, "unbroken" * 100])
def test_a_phone_shows_everything_without_scrolling_sideways(
    serve: Serve, open_page: Open, text: str
) -> None:
    server = serve(count=5)
    page = open_page(server, **PHONE)
    page.evaluate("text => document.querySelector('.text').textContent = text", text)
    page.evaluate("document.getElementById('name').textContent = 'name-of-a-file-'.repeat(9)")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    for button in page.locator("#dock button").all():
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= 844  # in sight, however long the text is


def test_a_phone_labels_by_touch(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server, **PHONE)
    first = item(page)
    page.tap("#labels button >> nth=1")
    press(page)
    assert server.labels_by_item() == {first: "spam"}
    page.tap("#undo")
    press(page)
    assert item(page) == first

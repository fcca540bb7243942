"""The panel: counts, curves, the verdict, review mode, agreement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marginwise.active import MaxLabels
from tests.browser.serving import Labelling, truth, until
from tests.browser.test_labelling import press, shown

Serve = Callable[..., Labelling]
Open = Callable[..., Any]


def answer(page: Any, times: int) -> None:
    """Answer some questions correctly."""
    for _ in range(times):
        press(page, "1" if truth(shown(page)) == "ham" else "2")


def test_the_verdict_is_shown_with_its_reason(serve: Serve, open_page: Open) -> None:
    page = open_page(serve(stop_rule=MaxLabels(3)))
    assert page.locator("#verdict-title").inner_text() == "Keep labelling"
    answer(page, 3)
    page.wait_for_selector("#verdict.reached")
    assert page.locator("#verdict-title").inner_text() == "You can stop"
    assert "3" in page.locator("#verdict-reason").inner_text()
    answer(page, 2)
    page.set_viewport_size({"width": 390, "height": 844})
    page.click("#stop-close")
    assert page.locator("#stop").is_hidden()
    answer(page, 1)  # the advice can be ignored
    assert page.locator("#tally").inner_text() == "6 of 40"


def test_curves_have_summaries(serve: Serve, open_page: Open) -> None:
    page = open_page(serve(settings={"holdout": 0.3}))
    answer(page, 14)
    page.wait_for_selector("#learning-chart canvas")
    page.wait_for_selector("#support-chart canvas")
    until(page, "() => document.querySelector('#support-text').textContent.includes('after')")
    assert "support vector" in page.locator("#support-text").inner_text()
    until(page, "() => document.querySelector('#learning-text').textContent.includes('Held-out')")
    assert page.locator("#learning-key-held").is_visible()
    assert "margin" in page.locator("#margin-text").inner_text()
    for name in ("learning", "support"):
        assert page.locator(f"#{name}-chart").get_attribute("role") == "img"
    page.click("#theme")  # draws them again in other colours
    page.wait_for_selector("#learning-chart canvas")


def test_review_mode_estimates_what_is_unseen(serve: Serve, open_page: Open) -> None:
    server = serve(count=60, labels=["spam", "ham"], settings={"goal": "find"})
    page = open_page(server)
    for _ in range(24):
        press(page, "2" if truth(shown(page)) == "ham" else "1")
    page.wait_for_selector("#review-chart canvas")
    facts = page.locator("#review-facts dt").all_inner_texts()
    assert facts[:2] == ["Found", "Seen"]
    found = int(page.locator("#review-facts dd").first.inner_text())
    assert found == list(server.labels_by_item().values()).count("spam")
    assert "found among" in page.locator("#review-text").inner_text()
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == 390

"""The server is away, comes back, restarts; several annotators; what leaves by export."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from marginwise.cli import main
from tests.browser.serving import Labelling, until
from tests.browser.test_labelling import item, press, sent, shown
from tests.support import runner

Serve = Callable[..., Labelling]
Open = Callable[..., Any]


def test_reload_shows_the_same_question(serve: Serve, open_page: Open) -> None:
    page = open_page(serve())
    press(page, "1", "2")
    question = item(page)
    page.reload()
    page.wait_for_selector("#labels button")
    assert item(page) == question
    assert page.locator("#tally").inner_text() == "2 of 40"


def test_the_page_continues_after_a_restart(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    press(page, "1", "2", "1")
    question = item(page)
    server.stop()
    server.start()
    press(page, "2")
    assert page.locator("#tally").inner_text() == "4 of 40"
    assert server.labels_by_item()[question] == "spam"
    expected = item(page)
    page.reload()
    page.wait_for_selector("#labels button")
    assert item(page) == expected


def test_answers_are_kept_while_the_server_is_away(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    press(page, "1")
    server.stop()
    items = []
    for _ in range(6):
        if page.locator("#item").is_visible():
            items.append(item(page))
        page.keyboard.press("2")
    assert len(items) == 3  # no more than were prefetched
    page.wait_for_selector("#away:not([hidden])")
    assert "3 answers are kept" in page.locator("#away-text").inner_text()
    assert "Waiting for the server" in page.locator("#waiting").inner_text()
    server.start()
    sent(page)
    assert page.locator("#away").is_hidden()
    assert shown(page)
    stored = server.labels_by_item()
    assert {key for key in stored if stored[key] == "spam"} == set(items)
    assert len(server.events()) == 4


def test_an_answer_whose_reply_was_lost_is_stored_once(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    keys = []

    def lose(route: Any) -> None:
        keys.append(route.request.post_data_json["key"])
        if len(keys) > 1:
            route.continue_()
            return
        route.fetch()
        route.abort()

    page.route("**/api/answer", lose)
    press(page, "1")
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert [event.key for event in server.events()] == keys[:1]
    assert page.locator("#tally").inner_text() == "1 of 40"


def test_a_reload_sends_what_was_kept(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    first = item(page)
    page.route("**/api/answer", lambda route: route.abort())
    page.keyboard.press("2")
    page.wait_for_selector("#away:not([hidden])")
    page.unroute("**/api/answer")
    page.once("dialog", lambda dialog: dialog.accept())
    page.goto(server.url)
    page.wait_for_selector("#labels button")
    sent(page)
    assert server.labels_by_item() == {first: "spam"}
    assert item(page) != first


def test_a_new_address_is_asked_for_when_the_token_has_changed(
    serve: Serve, open_page: Open
) -> None:
    server = serve()
    page = open_page(server)
    server.stop()
    server.token = "another"
    server.start()
    page.keyboard.press("1")
    page.wait_for_selector("#away:not([hidden])")
    assert "new address" in page.locator("#away-text").inner_text()
    page.context.new_page().goto(server.url)  # which has the cookie set
    sent(page)
    assert page.locator("#away").is_hidden()
    assert len(server.events()) == 1


def test_a_refused_answer_is_reported(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    first = item(page)
    refusal = {"ok": False, "error": "no such label."}
    page.route("**/api/answer", lambda route: route.fulfill(status=200, json=refusal))
    page.keyboard.press("1")
    page.wait_for_selector("#error:not([hidden])")
    assert "no such label" in page.locator("#error-text").inner_text()
    until(page, "first => document.querySelector('#item').dataset.item === first", first)
    page.click("#error-close")
    assert page.locator("#error").is_hidden()


def test_two_annotators_share_a_store(serve: Serve, open_page: Open) -> None:
    settings = {"overlap": 0.4}
    anna = serve(settings=settings)
    ben = serve(anna.items, columns=anna.columns, annotator="ben", settings=settings)
    pages = [open_page(server) for server in (anna, ben)]
    for _ in range(10):
        for page in pages:
            press(page, "1" if "no. 1" in shown(page) else "2")
    by_name: dict[str, set[str]] = {"anna": set(), "ben": set()}
    for event in anna.events("label"):
        by_name[event.annotator].add(event.item)
    assert [len(items) for items in by_name.values()] == [10, 10]
    assert 0 < len(by_name["anna"] & by_name["ben"]) < 10
    pages[0].reload()
    pages[0].wait_for_selector("#agreement:not([hidden])")
    assert "kappa" in pages[0].locator("#agreement-text").inner_text()


def test_labels_leave_by_export(serve: Serve, open_page: Open, tmp_path: Path) -> None:
    server = serve()
    page = open_page(server)
    for key in ("1", "2", "Space", "2"):
        press(page, key)
    server.stop()
    out = tmp_path / "labels.csv"
    done = runner().invoke(main, ["labels", "export", str(server.store), str(out)])
    assert done.exit_code == 0, done.output
    with out.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["label"] for row in rows if row["label"]) == ["ham", "spam", "spam"]

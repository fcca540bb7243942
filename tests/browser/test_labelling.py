"""One person labels: answers, undo, history, flags, notes, the guess, and the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.browser.serving import Labelling, truth, until, write_csv

Serve = Callable[..., Labelling]
Open = Callable[..., Any]


def shown(page: Any) -> str:
    return str(page.locator("#item-body").inner_text())


def item(page: Any) -> str:
    """Return the id of the item on screen."""
    return str(page.locator("#item").get_attribute("data-item"))


def sent(page: Any) -> None:
    """Wait until the server has acknowledged everything."""
    until(
        page,
        "() => Object.entries(sessionStorage).every("
        "([name, value]) => !name.includes('outbox') || value === '[]')",
    )


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
    sent(page)


def said(page: Any, text: str) -> None:
    """Wait until screen readers were told something."""
    until(page, "text => document.getElementById('live').textContent.includes(text)", text)


def past(page: Any, key: str = "ArrowLeft") -> str:
    """Go one step through the history; return the item."""
    before = item(page)
    page.keyboard.press(key)
    until(page, "before => document.querySelector('#item').dataset.item !== before", before)
    return item(page)


# -- answers -------------------------------------------------------------------------------------


def test_keys_label_and_advance(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    given = {}
    for _ in range(8):
        text, label = shown(page), truth(shown(page))
        given[item(page)] = label
        press(page, "1" if label == "ham" else "2")
        assert shown(page) != text
    assert server.labels_by_item() == given
    events = server.events("label")
    assert {event.annotator for event in events} == {"anna"}
    assert all(0 <= event.duration < 60 for event in events)
    assert page.locator("#tally").inner_text() == "8 of 40"
    ham = list(given.values()).count("ham")
    assert page.locator("#classes").inner_text().split() == ["ham", f"{ham}", "spam", f"{8 - ham}"]


def test_the_next_item_does_not_wait_for_the_server(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    gate = threading.Event()
    answer = server.session.answer
    server.session.answer = lambda *given: gate.wait() and answer(*given)  # type: ignore[method-assign]
    texts = [shown(page)]
    for _ in range(2):
        page.keyboard.press("1")
        texts.append(shown(page))
    assert len(set(texts)) == 3
    assert server.events() == []
    gate.set()
    sent(page)
    assert len(server.events("label")) == 2


def test_buttons_label_and_give_the_space_bar_back(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    page.click("#labels button >> nth=1")
    press(page, "Space")  # skips, although a button was clicked last
    assert [event.kind for event in server.events()] == ["label", "skip"]
    page.locator("#labels button").first.focus()
    press(page, "Space")  # presses the button that has the focus
    assert [event.label for event in server.events()] == ["spam", None, "ham"]


def test_html_is_shown_as_text(serve: Serve, open_page: Open, tmp_path: Path) -> None:
    nasty = "<img src=x onerror='document.title=1'><b>bold</b>\n\n  two spaces & <script>1</script>"
    rows = [{"text": nasty}, {"text": "plain"}, {"text": "<i>other</i>"}]
    items = write_csv(tmp_path / "nasty.csv", rows)
    page = open_page(serve(items, columns={"text": ("text",)}, labels=["<b>a</b>", "b"]))
    seen = set()
    for _ in rows:
        seen.add(page.locator("#item-body .text").text_content())
        press(page, "2")
    assert seen == {row["text"] for row in rows}
    assert page.locator("#item-body b, #item-body img, .label b").count() == 0
    assert page.locator("#labels button").first.inner_text().split() == ["1", "<b>a</b>"]


MODIFIED = ["Control+1", "Alt+1", "Meta+1", "Shift+F", "Control+u", "Shift+Space"]


def test_keys_with_modifiers_do_nothing(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    text = shown(page)
    for key in MODIFIED:
        page.keyboard.press(key)
    press(page, "3")  # there is no third label
    assert shown(page) == text
    assert server.events() == []


def test_a_key_that_is_held_labels_once(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    for _ in range(4):
        page.keyboard.down("1")  # the second and later ones repeat
    page.keyboard.up("1")
    sent(page)
    assert len(server.events()) == 1


# -- undo ----------------------------------------------------------------------------------------


def test_undo_any_number_of_steps(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    items = []
    for key in ("1", "2", "Space", "1"):
        items.append(item(page))
        press(page, key)
    for key, expected in zip(("u", "Backspace", "Control+z", "U"), items[::-1], strict=True):
        page.keyboard.press("Control+z" if key == "Control+z" else key)
        assert item(page) == expected  # at once
    sent(page)
    assert server.labels_by_item() == {}
    assert page.locator("#undo").is_disabled()
    press(page, "u")
    said(page, "nothing to undo")


def test_undo_after_a_reload(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    first = item(page)
    press(page, "1", "2")
    page.reload()
    page.wait_for_selector("#labels button")
    press(page, "u", "u")
    said(page, "Undone: “ham”")
    assert item(page) == first
    assert server.labels_by_item() == {}


def test_undo_of_an_answer_that_was_not_sent_yet(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    first = item(page)
    page.keyboard.press("1")
    page.keyboard.press("u")
    press(page, "2")
    assert server.labels_by_item() == {first: "spam"}


# -- history -------------------------------------------------------------------------------------


def test_change_an_earlier_answer(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    items = []
    for key in ("1", "2", "1"):
        items.append(item(page))
        press(page, key)
    question = item(page)
    assert [past(page) for _ in range(2)] == items[:0:-1]
    assert "“spam”" in page.locator("#past-text").inner_text()
    press(page, "1")
    said(page, "Changed to “ham”.")
    assert item(page) == items[1]  # it stays on screen
    assert server.labels_by_item()[items[1]] == "ham"
    press(page, "1")
    assert len(server.events()) == 4  # the same answer again is none
    press(page, "u")
    assert server.labels_by_item()[items[1]] == "spam"
    assert item(page) == items[1]
    assert past(page) == items[0]
    page.keyboard.press("ArrowLeft")
    said(page, "first answer")
    page.keyboard.press("Escape")
    assert item(page) == question
    assert not page.locator("#past").is_visible()


def test_arrows_return_to_the_question(serve: Serve, open_page: Open) -> None:
    page = open_page(serve())
    page.keyboard.press("ArrowLeft")
    said(page, "no earlier answers")
    press(page, "1", "2")
    question = item(page)
    for _ in range(2):
        past(page)
    past(page, "ArrowRight")
    page.keyboard.press("ArrowRight")
    assert item(page) == question


# -- flags, notes, text fields -------------------------------------------------------------------


def test_flag_and_undo_it(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    flagged = item(page)
    press(page, "f")
    assert page.locator("#flag").get_attribute("aria-pressed") == "true"
    page.reload()
    page.wait_for_selector("#marks .flagged")
    press(page, "f", "f", "u")
    assert page.locator("#marks .flagged").count() == 0
    assert [(event.item, event.text) for event in server.events("flag")] == [
        (flagged, "on"), (flagged, "off"), (flagged, "on"),
    ]  # fmt: skip


def test_notes_and_keys_in_text_fields(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    noted = item(page)
    page.keyboard.press("n")
    page.keyboard.type("12 u f g n? ")
    page.keyboard.press("Backspace")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    sent(page)
    assert [(event.kind, event.item, event.text) for event in server.events()] == [
        ("note", noted, "12 u f g n?")
    ]
    assert page.locator("#note-shown").inner_text() == "12 u f g n?"
    page.keyboard.press("n")
    page.keyboard.type("not kept")
    page.keyboard.press("Escape")
    assert page.locator("#note-form").is_hidden()
    press(page, "u")
    assert page.locator("#note-shown").is_hidden()
    assert server.labels_by_item() == {}


def test_a_note_that_is_open_is_saved_with_the_answer(serve: Serve, open_page: Open) -> None:
    server = serve()
    page = open_page(server)
    page.keyboard.press("n")
    page.keyboard.type("typed")
    page.click("#labels button >> nth=0")
    sent(page)
    first, second = server.events()
    assert (first.kind, first.text, second.kind) == ("note", "typed", "label")
    assert first.item == second.item


# -- the guess, the end -------------------------------------------------------------


def test_the_guess_is_hidden_until_asked_for(serve: Serve, open_page: Open) -> None:
    page = open_page(serve())
    assert page.locator("#guess").is_hidden()
    page.keyboard.press("g")
    page.wait_for_selector("#guess:not([hidden])")
    assert "no guess yet" in page.locator("#guess").inner_text()
    for _ in range(6):
        press(page, "1" if truth(shown(page)) == "ham" else "2")
    assert page.locator("#guess").is_hidden()
    page.keyboard.press("g")
    until(page, "() => document.querySelector('#guess-text').textContent.includes('guess: ')")
    page.check("#always")
    page.locator("#always").blur()
    press(page, "1")
    page.wait_for_selector("#guess:not([hidden])")
    page.keyboard.press("g")
    assert page.locator("#guess").is_hidden()


def test_everything_is_labelled(serve: Serve, open_page: Open) -> None:
    server = serve(count=6)
    page = open_page(server)
    for _ in range(6):
        press(page, "1" if truth(shown(page)) == "ham" else "2")
    page.wait_for_selector("#end:not([hidden])")
    assert page.locator("#end-title").inner_text() == "Everything is labelled"
    press(page, "1", "2", "Space", "f", "n", "g")
    assert len(server.events()) == 6
    press(page, "u")
    assert page.locator("#end").is_hidden()
    assert len(server.labels_by_item()) == 5


# -- other items and labels ----------------------------------------------------------------------


def test_many_labels_can_be_filtered(serve: Serve, open_page: Open) -> None:
    labels = [f"topic {word}" for word in "abcdefghijklmn"]
    server = serve(labels=labels)
    page = open_page(server)
    keys = page.locator("#labels kbd").all_inner_texts()
    assert keys == ["1", "2", "3", "4", "5", "6", "7", "8", "9", "0"]
    press(page, "0")
    page.keyboard.press("/")
    page.keyboard.type("C n")
    assert page.locator("#labels button:visible").count() == 1
    page.keyboard.press("Enter")
    sent(page)
    assert [event.label for event in server.events()] == ["topic j", "topic n"]
    assert page.locator("#filter").input_value() == ""
    page.keyboard.press("Escape")
    press(page, "1")
    assert server.events()[-1].label == "topic a"


def test_titles_stand_apart(serve: Serve, open_page: Open, tmp_path: Path) -> None:
    rows = [{"Title": f"On {k}", "abstract": f"We study {k}.\nMore."} for k in range(6)]
    rows.append({"Title": "", "abstract": "Untitled."})
    items = write_csv(tmp_path / "studies.csv", rows)
    page = open_page(serve(items, columns={"text": ("Title", "abstract")}))
    seen = set()
    for _ in rows:
        title = page.locator("#item-title").inner_text()
        seen.add((title, page.locator(".text").text_content()))
        press(page, "1")
    expected = {(row["Title"] or "Which label fits?", row["abstract"]) for row in rows}
    assert seen == expected


def test_rows_of_a_table_are_shown_as_fields(serve: Serve, open_page: Open, tmp_path: Path) -> None:
    rows = [{"age": 20 + k, "city": "Bonn" if k % 2 else ""} for k in range(12)]
    page = open_page(serve(write_csv(tmp_path / "people.csv", rows), labels=["yes", "no"]))
    assert page.locator("#item-body th").all_inner_texts() == ["age", "city"]
    age, city = page.locator("#item-body td").all_inner_texts()
    assert 20 <= int(age) < 32
    assert city in ("Bonn", "—")


def test_images_are_fitted_and_enlarged(serve: Serve, open_page: Open, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="images need Pillow")
    folder = tmp_path / "pictures"
    folder.mkdir()
    for k in range(4):
        image.new("RGB", (900, 700), (30 * k, 120, 200 - 20 * k)).save(folder / f"{k}.png")
    page = open_page(serve(folder, labels=["cat", "dog"]))
    until(page, "() => document.querySelector('.picture img').naturalWidth > 0")
    box = page.locator(".picture img").bounding_box()
    assert box["width"] <= 800
    assert box["height"] <= 800
    page.click(".picture")
    assert page.locator("#zoom img").is_visible()
    press(page, "1")  # keys rest while a dialog is open
    page.keyboard.press("Escape")
    assert page.locator("#tally").inner_text() == "0 of 4"

"""Logs and receipts with right hashes and wrong content: whoever can write them can compute these.

A forged line may be found or not, but it never causes any other error than the documented one.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from marginwise import ExactSVC, save
from marginwise.removal import Receipt, RemovalLog, RemovalLogError, remove, remove_from_file
from marginwise.removal.chain import FIRST, _own_hash

X = [[-2.0], [-1.0], [1.0], [2.0], [3.0]]
Y = [0, 0, 1, 1, 1]
GROUPS = ["ann", "bob", "cem", "ann", "dee"]


def forged(folder: Path, changes: dict[int, dict[str, Any]]) -> RemovalLog:
    """Return a log of two lines, some values of which were changed, with the hashes of the new."""
    path = folder / "model.mwz"
    save(ExactSVC(gamma=1.0).fit(X, Y, groups=GROUPS), path)
    remove_from_file(path, groups=["ann"])
    log = Path(f"{path}.removals.jsonl")
    previous, lines = FIRST, []
    for number, line in enumerate(log.read_bytes().splitlines(), start=1):
        content = {**json.loads(line), **changes.get(number, {}), "previous": previous}
        content["sha256"] = _own_hash(content)
        lines.append(json.dumps(content).encode())
        previous = hashlib.sha256(lines[-1]).hexdigest()
    log.write_bytes(b"\n".join(lines) + b"\n")
    return RemovalLog(log)


def test_the_forger_can_write_a_log(tmp_path: Path) -> None:
    log = forged(tmp_path, {1: {"time": "2001-01-01T00:00:00+00:00"}})
    assert [entry.event for entry in log.entries()] == ["begun", "done"]


@pytest.mark.parametrize(
    ("line", "change"),
    [
        (1, {"line": True}),
        (1, {"line": 1.0}),
        (1, {"time": None}),
        (1, {"model": ["model.mwz"]}),
        (1, {"closes": 1}),
        (1, {"receipt": None}),
        (1, {"event": ["begun"]}),
        (2, {"closes": []}),
        (2, {"closes": {}}),
        (2, {"closes": None}),
        (2, {"closes": True}),
        (2, {"event": "over"}),
    ],
)
def test_lines_without_the_parts_of_their_event_are_altered(
    line: int, change: dict[str, Any], tmp_path: Path
) -> None:
    log = forged(tmp_path, {line: change})
    for use in (log.check, log.unfinished, lambda: list(log), log.repair):
        with pytest.raises(RemovalLogError, match=f"line {line} was altered"):
            use()


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", "1" + 400 * "0"])
def test_receipts_have_finite_numbers(value: str) -> None:
    receipt = remove(ExactSVC(gamma=1.0).fit(X, Y), ids=[4])
    text = receipt.to_json().replace(f'"violation": {receipt.violation!r}', f'"violation": {value}')
    assert value in text
    with pytest.raises(ValueError, match="receipt"):
        Receipt.from_json(text)


def test_deeply_nested_text_is_not_a_receipt() -> None:
    with pytest.raises(ValueError, match="not a receipt"):
        Receipt.from_json(200_000 * "[")


def test_an_empty_salt_is_refused_before_rows_are_removed() -> None:
    model = ExactSVC(gamma=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="salt is empty"):
        remove(model, ids=[4], salt="")
    assert model.ids_.tolist() == [0, 1, 2, 3, 4]

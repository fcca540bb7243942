"""The log of removals: altered lines are found, torn lines are repaired, and no kill loses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginwise import ExactSVC, load, save
from marginwise.removal import (
    Receipt,
    RemovalLog,
    RemovalLogError,
    RemovalWarning,
    files,
    model_digest,
    remove,
    remove_from_file,
    verify_receipt,
)
from marginwise.removal.chain import _own_hash
from tests.support import rings

X, Y = rings(40, 0, noise=0.1)
GROUPS = [f"customer-{k % 8}" for k in range(40)]
LINES = 4


def model() -> Any:
    return ExactSVC().fit(X, Y, groups=GROUPS)


def receipts() -> list[Receipt]:
    one = model()
    return [remove(one, groups=[f"customer-{k}"], salt="s") for k in range(LINES)]


RECEIPTS = receipts()


@pytest.fixture
def log(tmp_path: Path) -> RemovalLog:
    made = RemovalLog(tmp_path / "log.jsonl")
    for receipt in RECEIPTS:
        made.append(receipt)
    return made


def rewritten(log: RemovalLog, folder: Path, content: bytes) -> RemovalLog:
    path = folder / "altered.jsonl"
    path.write_bytes(content)
    return RemovalLog(path)


# -- the chain -------------------------------------------------------------------------------------


def test_the_log_has_the_receipts_in_order(log: RemovalLog) -> None:
    log.check()
    assert list(log) == RECEIPTS
    assert [entry.line for entry in log.entries()] == [1, 2, 3, 4]
    assert log.unfinished() == []
    assert repr(log) == f"RemovalLog({log.path!r})"
    assert list(RemovalLog(log.path + ".none")) == []
    assert RemovalLog(log.path + ".none").head == "0" * 64
    assert not os.path.exists(log.path + ".none"), "reading creates nothing"


@pytest.mark.slow
@settings(max_examples=150)
@given(data=st.data())
def test_any_altered_byte_is_found(data: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = RemovalLog(folder / "log.jsonl")
    for receipt in RECEIPTS:
        log.append(receipt)
    content = bytearray(Path(log.path).read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != content[at]))
    line = 1 + content[:at].count(b"\n")
    newline = content[at] == 10
    content[at] = byte
    with pytest.raises(RemovalLogError) as caught:
        rewritten(log, folder, bytes(content)).check()
    if not newline and byte != 10:
        assert f"line {line} was altered" in str(caught.value)


def forged(line: bytes, **changes: Any) -> bytes:
    """A line with other content and the hash that goes with it."""
    content = {**json.loads(line), **changes}
    content["sha256"] = _own_hash(content)
    return json.dumps(content).encode()


@pytest.mark.parametrize("at", range(LINES - 1))
def test_a_line_with_a_new_hash_is_found_by_the_next(
    at: int, log: RemovalLog, tmp_path: Path
) -> None:
    lines = Path(log.path).read_bytes().splitlines()
    receipt = json.loads(replace(RECEIPTS[at], rows_removed=1).to_json())
    lines[at] = forged(lines[at], receipt=receipt)
    with pytest.raises(RemovalLogError, match=rf"line {at + 1} was altered"):
        rewritten(log, tmp_path, b"\n".join(lines) + b"\n").check()


@pytest.mark.parametrize("at", range(LINES))
def test_a_link_that_was_changed_is_found(at: int, log: RemovalLog, tmp_path: Path) -> None:
    lines = Path(log.path).read_bytes().splitlines()
    lines[at] = forged(lines[at], previous="f" * 64)
    named = at + 1 if at < LINES - 1 else at  # the last link may be wrong at either end
    with pytest.raises(RemovalLogError, match=rf"line {named} was altered"):
        rewritten(log, tmp_path, b"\n".join(lines) + b"\n").check()


def test_lines_that_are_missing(log: RemovalLog, tmp_path: Path) -> None:
    lines = Path(log.path).read_bytes().splitlines(keepends=True)
    for at in range(LINES - 1):
        shorter = rewritten(log, tmp_path, b"".join(lines[:at] + lines[at + 1 :]))
        with pytest.raises(RemovalLogError, match=rf"line {at + 1} was altered: .*numbered"):
            shorter.check()
    cut = rewritten(log, tmp_path, b"".join(lines[:-1]))
    cut.check()  # which a chain alone cannot notice
    with pytest.raises(RemovalLogError, match="lines were removed from its end"):
        cut.check(head=log.head)
    log.check(head=cut.head)  # one that was longer later is fine
    with pytest.raises(RemovalLogError, match="line 1 was altered"):
        rewritten(log, tmp_path, b"\n" + b"".join(lines)).check()


def test_nothing_is_appended_to_an_altered_log(log: RemovalLog, tmp_path: Path) -> None:
    content = Path(log.path).read_bytes().replace(b'"rows_removed": 5', b'"rows_removed": 6', 1)
    altered = rewritten(log, tmp_path, content)
    for act in (lambda: altered.append(RECEIPTS[0]), altered.repair, altered.unfinished):
        with pytest.raises(RemovalLogError, match="line 1 was altered"):
            act()
    assert Path(altered.path).read_bytes() == content


def test_torn_lines_are_reported_and_repaired_on_request(log: RemovalLog, tmp_path: Path) -> None:
    content = Path(log.path).read_bytes()
    start = content[:-1].rindex(b"\n") + 1
    for end in [*range(start + 1, len(content), 97), len(content) - 1]:
        torn = rewritten(log, tmp_path, content[:end])
        for act in (torn.check, torn.entries, lambda t=torn: t.append(RECEIPTS[0])):
            with pytest.raises(RemovalLogError, match=r"line 4 is torn: \d+ bytes .* Call repair"):
                act()
        assert Path(torn.path).read_bytes() == content[:end], "nothing is repaired unasked"
        assert torn.repair() == end - start
        assert list(torn) == RECEIPTS[:3]
        assert torn.repair() == 0
        torn.append(RECEIPTS[3])
        torn.check()


def test_a_write_that_fails_leaves_no_part_of_a_line(
    log: RemovalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, write = Path(log.path).read_bytes(), os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) < 500:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[: len(data) - 400])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        log.append(RECEIPTS[0])
    assert Path(log.path).read_bytes() == content


WRITER = """
import sys
from marginwise.removal import Receipt, RemovalLog
receipt = Receipt.from_json(open(sys.argv[1]).read())
log = RemovalLog(sys.argv[2])
for _ in range(15):
    log.append(receipt)
"""


@pytest.mark.slow
def test_writers_wait_for_each_other(tmp_path: Path) -> None:
    (tmp_path / "receipt.json").write_text(RECEIPTS[0].to_json())
    log = RemovalLog(tmp_path / "log.jsonl")
    command = [sys.executable, "-c", WRITER, str(tmp_path / "receipt.json"), log.path]
    for process in [subprocess.Popen(command) for _ in range(3)]:
        assert process.wait() == 0
    log.check()
    assert len(log.entries()) == 45


# -- files -----------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from marginwise.removal import files

def reached(step):
    if step == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

files._reached = reached
files.remove_from_file(sys.argv[1], groups=["customer-3"])
"""
# The step after which the process is killed, and whether the removal then has taken place.
STEPS = {"removed": False, "begun": False, "replaced": True, "done": True}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("step", STEPS)
def test_a_kill_leaves_the_old_model_or_the_new_one_with_its_receipt(
    step: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.mwz"
    save(model(), path)
    before = model_digest(path)
    done = subprocess.run([sys.executable, "-c", KILLED, str(path), step], check=False)
    assert done.returncode == -9
    log = RemovalLog(f"{path}.removals.jsonl")
    after, entries = load(path), log.entries()
    assert ("customer-3" not in after.groups_.tolist()) == STEPS[step]
    assert (model_digest(path) != before) == STEPS[step]
    if STEPS[step]:
        assert verify_receipt(entries[0].receipt, path), "no new model without its receipt"
    assert ("done" in [entry.event for entry in entries]) == (step == "done")
    assert [entry.line for entry in log.unfinished()] == (
        [1] if step in ("begun", "replaced") else []
    )
    again = ["customer-4"] if STEPS[step] else ["customer-3", "customer-4"]
    if step in ("removed", "done"):
        remove_from_file(path, groups=again)
    else:
        words = "took place" if STEPS[step] else "did not take place, and the rows are still stored"
        with pytest.warns(RemovalWarning, match=f"line 1 of the log .* interrupted: it {words}"):
            remove_from_file(path, groups=again)
    log.check()
    assert log.unfinished() == []
    assert sum(receipt.rows_removed for receipt in log) == 10
    assert verify_receipt(list(log)[-1], path)
    assert set(load(path).groups_) == set(GROUPS) - {"customer-3", "customer-4"}
    assert sorted(os.listdir(tmp_path)) == ["m.mwz", "m.mwz.removals.jsonl"]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("replaced", [False, True])
def test_a_removal_that_fails_is_closed_at_once(
    error: BaseException, replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.mwz"
    save(model(), path)

    def failing(*given: Any) -> None:
        if replaced:
            save(*given)
        raise error

    monkeypatch.setattr(files, "save", failing)
    with pytest.raises(type(error)):
        remove_from_file(path, groups=["customer-3"])
    log = RemovalLog(f"{path}.removals.jsonl")
    assert [entry.event for entry in log.entries()] == [
        "begun",
        "done" if replaced else "abandoned",
    ]
    assert len(list(log)) == replaced
    assert ("customer-3" in load(path).groups_) != replaced


def test_a_model_that_was_replaced_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = tmp_path / "m.mwz", RemovalLog(tmp_path / "log.jsonl")
    save(model(), path)
    with log.writing() as writer:
        writer.write("begun", receipt=RECEIPTS[2], model="m.mwz")
        writer.write("begun", receipt=RECEIPTS[3], model="other.mwz")
    with pytest.warns(RemovalWarning, match="replaced by another model, which may store the rows"):
        remove_from_file(path, ids=np.arange(3), log=log)
    assert [entry.line for entry in log.unfinished()] == [2], "that of another file"
    assert [receipt.rows_removed for receipt in log] == [3]


def test_a_file_that_changes_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.mwz"
    save(model(), path)
    newer = model().partial_fit(X[:3], Y[:3])
    monkeypatch.setattr(files, "_reached", lambda step: step == "removed" and save(newer, path))
    with pytest.raises(OSError, match="replaced by another process while rows were removed"):
        remove_from_file(path, groups=["customer-3"])
    assert model_digest(path) == model_digest(newer)
    assert RemovalLog(f"{path}.removals.jsonl").entries() == []


@pytest.mark.parametrize("words", [["2", " 5 "], np.array(["2", "5"])])
def test_text_becomes_what_the_model_stores(words: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.mwz"
    for groups, gone in (
        (np.arange(40) % 8, {2, 5}),
        ([str(k % 8) for k in range(40)], {"2", "5"}),
    ):
        save(ExactSVC(gamma=1.0).fit(X, Y, groups=groups), path)
        given = [str(word).strip() for word in words] if gone == {"2", "5"} else words
        receipt = remove_from_file(path, groups=given, as_text=True)
        assert receipt.rows_removed == 10
        assert not gone & set(load(path).groups_)
    assert remove_from_file(path, ids=["3"], as_text=True).rows_removed == 1
    assert 3 not in load(path).ids_

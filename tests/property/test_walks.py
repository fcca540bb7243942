"""The way a call takes through the package: few files, and few switches between them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import marginwise
from marginwise import OnlineSVC, save
from tests.support import Rows, blobs

PACKAGE = str(Path(marginwise.__file__).parent)


def walk(call: Callable[[], Any]) -> tuple[int, int]:
    """Switches between files of the package during a call, and how many files there were."""
    call()  # what is done once per process is no part of it
    files: list[str] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        seen = frame if event == "call" else frame.f_back if event == "return" else None
        if seen is not None and seen.f_code.co_filename.startswith(PACKAGE):
            files.append(seen.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return sum(a != b for a, b in itertools.pairwise(files)), len(set(files))


X, Y = blobs(400, 0, 2)
FITTED = OnlineSVC(gamma=1.0, random_state=0).fit(X, Y)


def chosen(rows: int) -> Callable[[], Any]:
    return lambda: OnlineSVC(gamma=1.0, selection="active", random_state=0).fit(X[:rows], Y[:rows])


@pytest.mark.parametrize(
    ("call", "most", "files"),
    [
        (lambda: OnlineSVC(gamma=1.0, random_state=0).fit(X, Y), 35, 7),
        (chosen(400), 35, 7),
        (lambda: FITTED.__class__(gamma=1.0).partial_fit(X, Y, classes=[0, 1]), 40, 8),
        (lambda: FITTED.predict(X), 20, 5),
    ],
    ids=["fit", "fit with selection", "partial_fit", "predict"],
)
def test_a_call_stays_on_a_short_way(call: Callable[[], Any], most: int, files: int) -> None:
    switches, visited = walk(call)
    assert 0 < switches <= most
    assert visited <= files


def test_more_rows_to_choose_from_make_no_longer_way() -> None:
    assert walk(chosen(100)) == walk(chosen(400))


def test_saving_checks_in_one_place(tmp_path: Path) -> None:
    switches, _ = walk(lambda: save(FITTED, tmp_path / "model.mwz"))
    assert switches <= 60


def test_chunks_of_a_source_cost_few_switches_each() -> None:
    def learn(rows: int, stages: list[int]) -> int:
        source = Rows(X[:rows], Y[:rows])
        source.stages = stages  # type: ignore[attr-defined]
        return walk(lambda: OnlineSVC(gamma=1.0, random_state=0).learn_from(source))[0]

    ends = np.arange(100, 401, 100).tolist()
    assert learn(400, ends) - learn(400, [200, 400]) <= 2 * 30

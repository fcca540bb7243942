"""The short form of `make stress`: a few cases of every attack, with fixed seeds."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from tests.stress.harness import Options, run_attack, table

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and RLIMIT_AS")

SHORT: dict[str, Sequence[int]] = {
    "threads": (0, 3, 5, 7, 11, 14, 16, 18, 19),
    "interrupts": range(66),
    "mutations": range(270),
    "hostile": (0, 4, 8, 13, 21, 24, 38, 42),
}


@pytest.mark.parametrize("name", SHORT)
def test_invariants_hold_under_attack(name: str) -> None:
    options = Options(thread_seconds=0.2)
    report = run_attack(name, options, SHORT[name])
    assert report.cases == len(SHORT[name])
    assert not report.violations, "\n" + table([report], options)

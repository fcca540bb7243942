"""The page on speed: what it says of instruction sets is what was measured."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_instruction_sets_differ_as_the_page_says() -> None:
    path = ROOT / "benchmarks" / "results" / "instruction_sets.json"
    stored = json.loads(path.read_text(encoding="utf-8"))["paths"]
    text = (ROOT / "docs" / "guide" / "speed.md").read_text(encoding="utf-8")
    assert set(stored) == {"baseline", "avx2", "avx512"}
    for name in ("avx2", "avx512"):
        found = stored[name]
        assert f"{found['models']} converged models" in text
        assert f"by {found['median']:.1e} in the median and by {found['largest']:.1e}" in text

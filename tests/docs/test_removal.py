"""The page on removals describes what receipts and logs contain."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import numpy as np

from marginwise import ExactSVC
from marginwise.removal import Receipt, remove
from marginwise.removal.chain import EVENTS

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "removal.md").read_text(encoding="utf-8")


def table(heading: str) -> set[str]:
    """The names in the first column of a table."""
    rows = PAGE.partition(f"| {heading} | meaning |\n|---|---|\n")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE))


def test_every_field_of_a_receipt_is_explained() -> None:
    assert table("field") == {field.name for field in fields(Receipt)}


def test_every_event_of_a_log_is_explained() -> None:
    assert table("event") == set(EVENTS)


def test_everything_that_depends_on_rows_is_explained() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)) + 1e5, np.arange(30) % 2
    K = X @ X.T
    models = [
        ExactSVC(class_weight="balanced", window=20, record=True, calibration="sigmoid").fit(X, y),
        ExactSVC(kernel="precomputed", C=1e-9).fit(K, y),
    ]
    found = {name for model in models for name in remove(model, ids=model.ids_[:1]).dependents}
    assert found == table("key") - {"steps"}  # of pipelines
    assert "steps" in table("key")


def test_the_parts_of_a_comparison_are_explained() -> None:
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), [0, 0, 1, 1]
    comparison = remove(ExactSVC(gamma=1.0).fit(X, y), ids=[0], compare=True).comparison
    assert comparison is not None
    assert [name for name in comparison if f"`{name}`" not in PAGE] == []

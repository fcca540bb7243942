"""`suspects_` against decision values, one row at a time.

A row that is stored has the value of the current model; one that is not, that of the model which
last visited it, or which dropped it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from marginwise import ExactRampSVC, GapSVC
from tests.support import binary_values, blobs, core_state, is_open, rings, signs_of

NEAR = 1e-5  # decision values are of kernel values in single precision

MODELS = {
    "ramp": GapSVC(loss="ramp", ramp=-0.5, gamma=1.0, C=5.0, clean_every=20, max_idle=4),
    "filter": GapSVC(loss="filter", ramp=-0.5, gamma=1.0, C=5.0, clean_every=20, max_idle=4),
    "full": GapSVC(loss="ramp", gamma=1.0, C=5.0, clean_every=None),
    "exact ramp": ExactRampSVC(gamma=1.0, C=5.0),
    "exact ramp, few idle": ExactRampSVC(gamma=1.0, C=5.0, max_idle=10),
}


def stored(model: Any) -> list[set[int]]:
    """Ids of the examples that each problem holds."""
    state = core_state(model)
    return [set(state["ids"][held].tolist()) for held in is_open(state)]


def assert_suspects(model: Any, expected: dict[int, float], labels: Any, why: str) -> None:
    """Those expected, the least first; near the ramp, rounding decides."""
    ramp = getattr(model, "ramp", -1.0)
    found = model.suspects_
    assert np.all(np.diff(found["value"]) >= 0), why
    assert np.all(found["value"] < ramp), why
    assert np.array_equal(found["label"], labels[found["id"]]), why
    values = dict(zip(found["id"].tolist(), found["value"].tolist(), strict=True))
    assert len(values) == len(found), f"{why}: an id comes twice"
    for row in values.keys() | expected.keys():
        assert values.get(row, ramp) == pytest.approx(expected.get(row, ramp), abs=NEAR), why


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_replay(name: str, classes: int, seed: int) -> None:
    X, y = blobs(150, seed, classes)
    y = np.where(np.random.default_rng(seed).random(150) < 0.2, (y + 1) % classes, y)
    model = clone(MODELS[name]).partial_fit(X[:1], y[:1], classes=range(classes))
    signs, ramp = signs_of(y, classes), getattr(model, "ramp", -1.0)
    last: list[dict[int, float]] = [{} for _ in signs[0]]  # of rows that are not stored
    suspected = 0
    for k in [*range(1, 150), *range(60)]:
        before = stored(model)
        model.partial_fit(X[k : k + 1], y[k : k + 1], ids=[k])
        # A row that is skipped changes nothing, so that this is the model that met it, too.
        now = signs * binary_values(model, X)
        held = stored(model)
        for c, notes in enumerate(last):
            notes.update({row: now[row, c] for row in (before[c] | {k}) - held[c]})
        least = {
            row: min(now[row, c] if row in held[c] else last[c][row] for c in range(len(last)))
            for row in set().union(*last, *held)
        }
        expected = {row: value for row, value in least.items() if value < ramp}
        assert_suspects(model, expected, y, f"after row {k}")
        suspected += len(expected)
    assert suspected > 500
    model._engine.native.check(1e-4)


def test_filter_keeps_the_value_at_the_visit(seed: int) -> None:
    """Without CLEAN, rows that are not stored are those that were skipped."""
    X, y = rings(200, seed, noise=0.2)
    model = GapSVC(loss="filter", gamma=1.0, C=5.0, clean_every=None)
    model.partial_fit(X[:1], y[:1], classes=[0, 1])
    signs = np.where(y, 1.0, -1.0)
    met = np.zeros(200)
    for k in [*range(1, 200), *range(0, 200, 3)]:  # some of them twice
        met[k] = signs[k] * model.decision_function(X[k : k + 1])[0]
        model.partial_fit(X[k : k + 1], y[k : k + 1], ids=[k])
    values = np.where(np.isin(np.arange(200), model.ids_), signs * model.decision_function(X), met)
    expected = {row: float(values[row]) for row in np.flatnonzero(values < model.ramp)}
    assert len(expected) > 10
    assert not set(expected) <= set(model.ids_.tolist()), "none was skipped"
    assert_suspects(model, expected, y, "after all")

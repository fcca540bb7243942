"""Suspect labels: found where labels were flipped, and part of the model wherever it is kept."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from marginwise import ExactRampSVC, GapSVC, load, save
from marginwise._engine.suspects import SUSPECTS
from tests.support import core_state, rings

MODELS: dict[str, Any] = {
    "ramp": GapSVC(loss="ramp", gamma=0.5, clean_every=40, max_idle=5, random_state=0),
    "filter": GapSVC(loss="filter", gamma=0.5, clean_every=40, max_idle=5, random_state=0),
    "budget": GapSVC(loss="ramp", ramp=-0.5, gamma=0.5, budget=40, random_state=0),
    "exact ramp": ExactRampSVC(gamma=0.5, random_state=0),
    "few idle": ExactRampSVC(gamma=0.5, max_idle=5, random_state=0),
}
NAMES = np.array(["ant", "bee", "cow"])


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return clone(MODELS[request.param])


def flipped(seed: int, classes: int = 2, n: int = 600) -> tuple[Any, Any, Any]:
    """Clouds far apart, with a tenth of the labels flipped; and which."""
    rng = np.random.default_rng(seed)
    y, wrong = rng.integers(classes, size=n), rng.random(n) < 0.1
    angle = 2 * np.pi * y / classes
    X = 3 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.5 * rng.normal(size=(n, 2))
    return X, NAMES[np.where(wrong, (y + 1) % classes, y)], wrong


@pytest.mark.parametrize("classes", [2, 3])
def test_flipped_labels_are_found(model: Any, classes: int, seed: int) -> None:
    X, y, wrong = flipped(seed, classes)
    found = model.fit(X, y).suspects_
    assert found.dtype.names == ("id", "label", "value")
    assert wrong[found["id"]].sum() >= 0.8 * wrong.sum()
    assert wrong[found["id"]].mean() >= 0.8
    assert np.array_equal(found["label"], y[found["id"]])
    model._engine.native.check(1e-4)


def test_corrected_labels_are_not_suspected(model: Any, seed: int) -> None:
    X, y, wrong = flipped(seed)
    rows = model.fit(X, y).suspects_["id"]
    rows = rows[wrong[rows]]
    right = np.where(y == "ant", "bee", "ant")
    kept = model.ids_  # with the labels that they were learned with
    model.partial_fit(X[rows], right[rows], ids=rows)
    assert not np.isin(np.setdiff1d(rows, kept), model.suspects_["id"]).any()


def test_epochs_judge_again(seed: int) -> None:
    """The first rows meet a model that knows little."""
    X, y, wrong = flipped(seed)
    one, two = (clone(MODELS["filter"]).set_params(epochs=n).fit(X, y) for n in (1, 2))
    early = np.setdiff1d(two.suspects_["id"], one.suspects_["id"])
    assert wrong[early].all()
    both, at, then = np.intersect1d(one.suspects_["id"], two.suspects_["id"], return_indices=True)
    assert len(both) > 30
    assert np.mean(one.suspects_["value"][at] == two.suspects_["value"][then]) < 0.1


def test_those_that_a_budget_drops_stay(seed: int) -> None:
    """Before the first CLEAN, no others are dropped."""
    X, y = rings(250, seed, noise=0.2)
    model = GapSVC(loss="ramp", ramp=0.0, gamma=1.0, C=5.0, budget=15, random_state=0).fit(X, y)
    assert model.stats_["projected"] > 10
    assert core_state(model)["suspects"].sum() > 0
    model._engine.native.check(1e-4 * (1 + np.abs(model.dual_coef_).sum()))


def test_they_are_rolled_back(model: Any, seed: int) -> None:
    X, y, _ = flipped(seed)

    def kernel(A: Any, B: Any) -> Any:
        calls[0] += 1
        if calls[0] == calls[1]:
            raise RuntimeError("no more")
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    calls = [0, -1]
    model.set_params(kernel=kernel).partial_fit(X[:300], y[:300], classes=NAMES[:2])
    before = model.suspects_
    calls[:] = 0, 4
    with pytest.raises(RuntimeError, match="no more"):
        model.partial_fit(X[300:], y[300:])
    assert len(before) > 0
    assert np.array_equal(model.suspects_, before)


def test_double_precision_keeps_them(model: Any, seed: int) -> None:
    """A row that single precision cannot place ends it."""
    X, y, _ = flipped(seed)
    model.partial_fit(X, y, classes=NAMES[:2])
    before, notes = model.suspects_, core_state(model)["suspect_values"]
    assert model.stats_["precision"] == "single"
    model._engine.to_double()
    assert np.array_equal(core_state(model)["suspect_values"], notes)
    assert set(model.suspects_["id"].tolist()) == set(before["id"].tolist())


# -- states ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_earlier_states_have_none(name: str, tmp_path: Path, monkeypatch: Any) -> None:
    X, y = rings(200, 0, noise=0.2)
    model = clone(MODELS[name]).fit(X, y)
    honest = model._engine.state()
    early = {part: value for part, value in honest.items() if part not in SUSPECTS}
    with monkeypatch.context() as patch:
        patch.setattr(model._engine, "state", lambda: early)
        save(model, tmp_path / "m.mwz")
    again = load(tmp_path / "m.mwz")
    assert np.isin(again.suspects_["id"], again.ids_).all(), "those that are stored are known"
    again.partial_fit(X, y)


FORGED: dict[str, tuple[str, Callable[[dict[str, Any]], Any]]] = {
    "negative": ("suspects must be a list of counts", lambda m: m["suspects"].fill(-1)),
    "many": ("suspect_ids must be an array", lambda m: m["suspects"].fill(2**40)),
    "counts": ("suspects must be", lambda m: m.update(suspects=m["suspects"] * 1.0)),
    "short": ("suspect_ids must be", lambda m: m.update(suspect_ids=m["suspect_ids"][1:])),
    "twice": ("suspect_ids must ascend", lambda m: m["suspect_ids"].fill(10**6)),
    "stored": ("not name examples that are stored", lambda m: _store(m)),
    "label": ("suspect_labels must be", lambda m: m["suspect_labels"].fill(2)),
    "no label": ("suspect_labels must be", lambda m: m["suspect_labels"].fill(-1)),
    "above": ("finite and below the ramp", lambda m: m["suspect_values"].fill(-1.0)),
    "infinite": ("finite and below the ramp", lambda m: m["suspect_values"].fill(-np.inf)),
    "no number": ("finite and below the ramp", lambda m: m["suspect_values"].fill(np.nan)),
    "hinge": ("finite and below the ramp", lambda m: m["plan"]["settings"].update(loss=0)),
    "lacking": ("suspect_ids must be", lambda m: m.pop("suspect_ids")),
}


def _store(machine: dict[str, Any]) -> None:
    machine["suspect_ids"][0] = machine["ids"][machine["rank"][0] >= 0].min()
    machine["suspect_ids"].sort()


@pytest.mark.parametrize("name", FORGED)
def test_forged_notes_are_refused(name: str) -> None:
    X, y = rings(200, 0, noise=0.2)
    model = clone(MODELS["filter"]).fit(X, y)
    state = model.__getstate__()
    assert len(state["_machine"]["suspect_ids"]) > 5
    forged = copy.deepcopy(state)
    words, forge = FORGED[name]
    forge(forged["_machine"])
    with pytest.raises(ValueError, match=words):
        GapSVC.__new__(GapSVC).__setstate__(forged)
    GapSVC.__new__(GapSVC).__setstate__(state)

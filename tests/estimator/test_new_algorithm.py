"""An algorithm is added in three places; here a toy takes the place of one of the core's."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import marginwise
from marginwise import ModelFileError, load, save
from marginwise._algorithm import ALGORITHMS, Algorithm
from marginwise._checks import boolean, count, positive, real
from marginwise._estimator.classifier import KernelClassifier
from tests.support import blobs

# 1. Its own file: a record of the algorithm, and the estimator. The toy runs the core's LASVM with
# one step per row, so that there is nothing to add to the binding, which would be the third place.
TOY = Algorithm(
    name="lasvm",
    settings={
        "tol": positive(),
        "reprocess": count(0, 5),
        "reprocess_each": boolean(),
        "delta_max": real(),
    },
    counts=1,
    biased=True,
)

# A record makes itself known by its name. Here the name is that of another, which gets it back.
ALGORITHMS["lasvm"] = marginwise.OnlineSVC._algorithm


class ToySVC(KernelClassifier):
    """LASVM with one REPROCESS per row, and nothing else."""

    _algorithm = TOY

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        epochs: int = 1,
        cache_size: float = 50,
        class_weight: Any = None,
        shuffle: bool = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.epochs = epochs
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _settings(self) -> dict[str, Any]:
        return {"tol": 1e-3, "reprocess": 1, "reprocess_each": False, "delta_max": -1.0}


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    """2. The catalogue."""
    monkeypatch.setattr(marginwise, "ToySVC", ToySVC, raising=False)
    monkeypatch.setattr(marginwise, "__all__", [*marginwise.__all__, "ToySVC"])
    monkeypatch.setitem(ALGORITHMS, "lasvm", TOY)


def test_it_learns_predicts_and_is_cloned() -> None:
    X, y = blobs(300, 0)
    with pytest.raises(NotFittedError):
        ToySVC().predict(X)
    model = clone(ToySVC(gamma=0.5, random_state=0)).fit(X, y)
    assert model.score(X, y) > 0.9
    one = ToySVC(gamma=0.5).partial_fit(X[:200], y[:200], classes=np.unique(y))
    one.learn_many(X[200:], y[200:])
    other = ToySVC(gamma=0.5).partial_fit(X, y, classes=np.unique(y))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def test_it_has_files(tmp_path: Path) -> None:
    X, y = blobs(120, 1)
    model = ToySVC(gamma=0.5, random_state=0).fit(X, y)
    save(model, tmp_path / "toy.mwz")
    again = load(tmp_path / "toy.mwz")
    assert type(again) is ToySVC
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


def test_its_files_are_checked_by_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = blobs(120, 1)
    model = ToySVC(gamma=0.5, random_state=0).fit(X, y)
    settings = {**model._settings(), "reprocess": 6}
    monkeypatch.setattr(
        model._engine,
        "plan",
        dataclasses.replace(model._engine.plan, settings=settings),
    )
    with pytest.raises(ValueError, match="reprocess must be an integer from 0 to 5"):
        save(model, tmp_path / "toy.mwz")


def test_what_the_catalogue_does_not_name_has_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = blobs(60, 2)
    save(ToySVC(gamma=0.5).fit(X, y), tmp_path / "toy.mwz")
    monkeypatch.setattr(marginwise, "__all__", [n for n in marginwise.__all__ if n != "ToySVC"])
    with pytest.raises(ModelFileError, match="ToySVC"):
        load(tmp_path / "toy.mwz")

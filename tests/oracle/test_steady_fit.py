"""One pass ends near the solution of `SVC` whatever the order of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from marginwise import OnlineSVC
from marginwise._training.loop import (
    LookAhead,
    Trainer,
    class_weights,
    missed_by_row,
    worth_a_look,
)
from tests.support import Rows, cycle, missed_loss

N = 10_000
X, Y = make_moons(2 * N, noise=0.2, random_state=0)
PARAMS: dict[str, Any] = {"C": 10, "gamma": 2.0}
LIMIT = SVC(**PARAMS).fit(X[:N], Y[:N]).score(X[N:], Y[N:]) - 0.006


# Seeds 3, 9 and 12 once ended up to 6 points below `SVC`: rows had been passed over by an early
# model, which later rows changed, and were not judged again.
@pytest.mark.parametrize("seed", range(16))
def test_one_pass_is_as_accurate_for_every_order(seed: int) -> None:
    model = OnlineSVC(**PARAMS, random_state=seed).fit(X[:N], Y[:N])
    assert model.score(X[N:], Y[N:]) >= LIMIT


@pytest.mark.parametrize("seed", [3, 9, 12])
def test_so_is_a_pass_over_blocks(seed: int) -> None:
    source = Rows(X[:N], Y[:N])
    source.block = 1024  # type: ignore[attr-defined]
    model = OnlineSVC(**PARAMS, random_state=seed).learn_from(source)
    assert model.score(X[N:], Y[N:]) >= LIMIT


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_so_are_several_classes(seed: int, multiclass: Any) -> None:
    X3, y3 = np.vstack([X, X + np.array([0, 2.5])]), np.concatenate([Y, Y + 2])
    train, test = np.r_[:N, 2 * N : 3 * N], np.r_[N : 2 * N, 3 * N : 4 * N]
    model = OnlineSVC(**PARAMS, multiclass=multiclass, random_state=seed).fit(X3[train], y3[train])
    exact = OnlineSVC(**PARAMS, multiclass=multiclass, epochs="converge").fit(X3[train], y3[train])
    assert model.score(X3[test], y3[test]) >= exact.score(X3[test], y3[test]) - 0.006


# The number of rows that violate once decided whether to look at them again: rare positives were
# outvoted, and up to 0.022 of the loss per row of a class was left outside the support vectors.
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rare", [0.02, 0.1])
@pytest.mark.parametrize("n", [4097, 5000, 10_000, 20_000])
def test_rows_outside_the_model_miss_little_loss(n: int, rare: float, seed: int) -> None:
    X, y = cycle(n, rare, seed)
    model = OnlineSVC(C=32, gamma=2.0, random_state=seed).fit(X, y)
    assert max(missed_loss(model, X, y)) < 0.0075


# The loss was once compared with that of all rows, of which few are skipped here: 2 points.
@pytest.mark.slow
@pytest.mark.parametrize("seed", [4, 7])
def test_few_skipped_rows_among_noisy_ones_are_not_forgotten(seed: int) -> None:
    rng = np.random.RandomState(1)
    X2 = np.random.RandomState(0).normal(size=(7000, 2))
    truth = (X2[:, 0] * X2[:, 1] > 0).astype(int)
    y = np.where(rng.rand(7000) < 0.45, rng.randint(0, 2, 7000), truth)[:5000]
    params: dict[str, Any] = {"C": 50, "gamma": 0.03}
    exact = SVC(**params).fit(X2[:5000], y)
    model = OnlineSVC(**params, random_state=seed).fit(X2[:5000], y)
    assert model.score(X2[5000:], truth[5000:]) > exact.score(X2[5000:], truth[5000:]) - 0.015


def count_calls(owner: type, name: str, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with each call of a method."""
    method, calls = getattr(owner, name), []

    def counted(*args: Any) -> Any:
        calls.append(len(calls))
        return method(*args)

    monkeypatch.setattr(owner, name, counted)
    return calls


def test_a_problem_that_cannot_be_solved_is_not_solved_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each look would take up to a sixteenth of the maximum number of steps, without a solution."""
    X, y = cycle(4100, 0.02, 0)
    finishes = count_calls(Trainer, "_finish", monkeypatch)
    with pytest.warns(ConvergenceWarning, match="stopped at a violation"):
        OnlineSVC(C=1e9, gamma=0.02, tol=1e-9, random_state=0).fit(X, y)
    assert len(finishes) == 1


def test_looks_end_with_the_first_that_stores_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that violate by less than `tol` may miss much loss, but do not become members."""
    rng = np.random.RandomState(29)
    X = rng.normal(size=(8000, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    looks = count_calls(LookAhead, "promising", monkeypatch)
    OnlineSVC(C=0.3, gamma=2.5, tol=1.0, finish_at_end=False, random_state=0).fit(X, y)
    assert 2 <= len(looks) < 15


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_noisy_classes_are_as_accurate_as_a_converged_model(seed: int) -> None:
    rng = np.random.RandomState(seed)
    X, y = rng.standard_normal((30_000, 6)), np.arange(30_000) % 4
    X[:, :4] += 1.5 * np.eye(4)[y]
    train, test = slice(None, 12_000), slice(12_000, None)
    fitted = OnlineSVC(C=10, gamma=0.2, random_state=seed).fit(X[train], y[train])
    exact = OnlineSVC(C=10, gamma=0.2, epochs="converge").fit(X[train], y[train])
    assert fitted.score(X[test], y[test]) > exact.score(X[test], y[test]) - 0.002


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_the_missed_loss_is_that_of_problems_that_do_not_hold_a_row(multiclass: Any) -> None:
    rows = np.arange(2000)
    X3, y3 = X[rows] + np.array([0, 2.5]) * (rows % 2)[:, None], Y[rows] + 2 * (rows % 2)
    model = OnlineSVC(**PARAMS, multiclass=multiclass).fit(X3[:1000], y3[:1000])
    engine = model._engine
    batch = model._new_rows(X3, y3.astype(np.int32), np.full(2000, 10.0), rows)
    signs = engine.signs(y3.astype(np.int32))
    expected = np.where(signs == 0, 0, np.maximum(0, 1 - signs * engine.decision(X3)))
    ids, _, alpha = engine.coefficients
    expected[ids] *= (alpha == 0).T
    missed = engine.native.missed_loss(batch, rows)  # members without weight lose less than tol
    np.testing.assert_allclose(missed, expected, atol=model.tol)
    assert expected[:1000].max() < 0.01 < 0.5 < expected[1000:].max()


def test_the_loss_of_a_row_and_the_weights_of_classes() -> None:
    signs = np.array([[1.0, -1, 0, 1], [0, 0, 0, -1]])
    loss = np.array([[0.3, 0.04, 0, 0.1], [0, 0, 0, 0.5]])  # losses below 0.05 do not count
    np.testing.assert_allclose(missed_by_row(loss, signs), [0.4 / np.sqrt(3), 0.5])
    weights = class_weights(np.array([60, 30, 9, 1]))
    np.testing.assert_allclose(weights, [1, 1, 100 / 36, 5])


@pytest.mark.parametrize(
    ("rows", "members", "loss"),
    [(65_536, 32_768, 0.008), (65_536, 8192, 0.004), (16_384, 8192, 0.004), (16_384, 16, 0.0012)],
)
def test_looks_find_smaller_losses_where_they_take_little_time(
    rows: int, members: int, loss: float
) -> None:
    assert worth_a_look(rows, members) == pytest.approx(loss)

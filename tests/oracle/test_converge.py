"""epochs="converge" is SVC's solution, and one pass with noisy labels is not behind it."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from marginwise import OnlineSVC
from tests.support import Rows, binary_values, blobs, rings


def dual_of(svc: SVC, X: np.ndarray) -> float:
    alpha = np.ravel(svc.dual_coef_)
    f = svc.decision_function(X[svc.support_]) - svc.intercept_
    return float(np.abs(alpha).sum() - alpha @ f / 2)


def flipped(y: np.ndarray, share: float, seed: int) -> np.ndarray:
    return np.where(np.random.default_rng(seed).random(len(y)) < share, 1 - y, y)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 6000])  # solved as a whole, or by windows
@pytest.mark.parametrize("share", [0.0, 0.15])
def test_the_dual_objective_is_that_of_svc(n: int, share: float, seed: int) -> None:
    X, y = rings(n, seed, noise=0.3)
    y = flipped(y, share, seed)
    svc = SVC(C=5.0, gamma=0.5, cache_size=1000).fit(X, y)
    model = OnlineSVC(C=5.0, gamma=0.5, epochs="converge", random_state=seed).fit(X, y)
    assert model.dual_objective() == pytest.approx(dual_of(svc, X), rel=1e-4)
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    free = np.setdiff1d(np.arange(n), model.support_)
    assert (margins[free] > 1 - 2e-3).all(), "a row that is not stored violates"
    difference = np.abs(model.decision_function(X) - svc.decision_function(X))
    assert difference.max() < 0.05


@pytest.mark.parametrize("C", [0.1, 5.0, 100.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_few_rows_are_solved_in_any_case(C: float, form: type, seed: int) -> None:
    """One pass over a small set is SVC's solution, in any order and with any number of epochs."""
    X, y = rings(700, seed, noise=0.3)
    y = flipped(y, 0.1, seed)
    svc = SVC(C=C, gamma=0.5).fit(X, y)
    model = OnlineSVC(C=C, gamma=0.5, random_state=seed).fit(form(X), y)
    assert model.dual_objective() == pytest.approx(dual_of(svc, X), rel=1e-4)
    for more in ({"epochs": 3}, {"random_state": seed + 1}, {"epochs": "converge"}):
        other = OnlineSVC(**{"C": C, "gamma": 0.5, "random_state": seed, **more}).fit(form(X), y)
        np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_, f"{more}")


@pytest.mark.slow
@pytest.mark.parametrize("n", [3000, 9000])  # solved as a whole, or by windows
def test_pairs_converge_to_those_of_svc(n: int, seed: int) -> None:
    X, y = blobs(n, seed, 3)
    svc = SVC(C=2.0, gamma=0.5, decision_function_shape="ovo", cache_size=1000).fit(X, y)
    model = OnlineSVC(C=2.0, gamma=0.5, epochs="converge", random_state=seed).fit(X, y)
    values, expected = binary_values(model, X), svc.decision_function(X)
    np.testing.assert_allclose(np.abs(values), np.abs(expected), atol=0.05)


def test_several_classes_converge_to_one_vs_rest(seed: int) -> None:
    X, y = blobs(1500, seed, 4)
    peer = OneVsRestClassifier(SVC(C=3.0, gamma=0.3)).fit(X, y)
    params = {"C": 3.0, "gamma": 0.3, "epochs": "converge", "random_state": seed}
    model = OnlineSVC(multiclass="ovr", **params).fit(X, y)
    expected = np.column_stack([one.decision_function(X) for one in peer.estimators_])
    np.testing.assert_allclose(model.decision_function(X), expected, atol=0.05)


@pytest.mark.slow
def test_one_pass_over_noisy_labels_is_not_behind_svc(seed: int) -> None:
    X, y = rings(8000, seed, noise=0.2)
    X_test, y_test = rings(4000, seed + 1, noise=0.2)
    noisy = flipped(y, 0.15, seed)
    svc = SVC(C=10.0, gamma=2.0, cache_size=1000).fit(X, noisy)
    model = OnlineSVC(C=10.0, gamma=2.0, random_state=seed).fit(X, noisy)
    assert model.score(X_test, y_test) >= svc.score(X_test, y_test) - 0.005
    assert model.dual_objective() >= 0.99 * dual_of(svc, X)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("epochs", [1, "converge"])
def test_the_model_does_not_depend_on_threads_cache_or_layout(
    epochs: object, multiclass: str, seed: int
) -> None:
    X, y = blobs(1200, seed, 3)
    X[np.abs(X) < 0.3] = 0.0
    params = {"C": 2.0, "gamma": 0.2, "epochs": epochs, "random_state": seed}
    params["multiclass"] = multiclass
    expected = binary_values(OnlineSVC(**params).fit(X, y), X)
    for change in ({"n_jobs": 2}, {"cache_size": 1}):
        found = binary_values(OnlineSVC(**params, **change).fit(X, y), X)
        np.testing.assert_array_equal(found, expected, err_msg=str(change))
    found = binary_values(OnlineSVC(**params).fit(sp.csr_array(X), y), X)
    np.testing.assert_allclose(found, expected, atol=5e-2)


def test_what_converge_does_not_go_with() -> None:
    X, y = blobs(60, 0, 2)
    with pytest.raises(ValueError, match="selection='random'"):
        OnlineSVC(epochs="converge", selection="active").fit(X, y)
    with pytest.raises(ValueError, match="is not supported by learn_from"):
        OnlineSVC(epochs="converge").learn_from(Rows(X, y))
    with pytest.raises(ValueError, match="epochs"):
        OnlineSVC(epochs="converged").fit(X, y)

"""What a second attack found: each of these was silently wrong, crashed or did not end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from marginwise import ExactOneClassSVM, ExactSVC, OnlineSVC, load, save
from tests.support import blobs

RANDOM = np.random.RandomState(0)
X = RANDOM.standard_normal((120, 3))
Y = (X[:, 0] + 0.3 * RANDOM.standard_normal(120) > 0).astype(int)
MORE = RANDOM.standard_normal((80, 3)) * 5


def apart(one: Any, other: Any, rows: Any = X) -> float:
    return float(np.abs(one.decision_function(rows) - other.decision_function(rows)).max())


# -- forgetting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["partial_fit", "learn_many", "learn_one"])
def test_forgetting_all_rows_leaves_no_trace(how: str, tmp_path: Path) -> None:
    far = X + 123456.0
    model = ExactSVC().fit(far, Y)
    save(model.forget(model.ids_), tmp_path / "m.mwz")
    model = load(tmp_path / "m.mwz")
    assert model.gamma_ == 1.0
    assert model._engine.plan.center == []
    labels = (MORE[:, 0] > 0).astype(int)
    if how == "learn_one":
        with pytest.warns(UserWarning, match="first batch only"):
            model.learn_one(MORE[0], labels[0])
        assert model.ids_.tolist() == [120]
        return
    getattr(model, how)(MORE, labels)
    fresh = ExactSVC().fit(MORE, labels)
    assert model.gamma_ == fresh.gamma_
    assert apart(model, fresh, MORE) < 1e-9
    assert model.ids_.min() == 120  # ids are not used again


def test_forgetting_all_rows_but_keeping_gamma() -> None:
    model = ExactSVC().fit(X, Y)
    before = model.gamma_
    model.forget(model.ids_, gamma="keep").partial_fit(MORE, (MORE[:, 0] > 0).astype(int))
    assert model.gamma_ == before


@pytest.mark.parametrize("weights", [3, np.zeros((2, 2)), np.array([np.nan]), ["a"]])
def test_weights_of_a_basis_without_ids_are_checked(weights: Any) -> None:
    model = ExactSVC().fit(X, Y)
    state = model.forget(model.ids_)._stored_state()
    with pytest.raises(ValueError, match="_basis_weights must"):
        ExactSVC._check_state({**state, "_basis_weights": weights})


def test_forgetting_all_rows_of_balanced_classes() -> None:
    model = ExactSVC(class_weight="balanced").fit(X, Y)
    model.forget(model.ids_)
    labels = (MORE[:, 0] > 3).astype(int)
    assert (
        apart(
            model.partial_fit(MORE, labels),
            ExactSVC(class_weight="balanced").fit(MORE, labels),
            MORE,
        )
        < 1e-9
    )


def test_forgetting_all_rows_of_one_class() -> None:
    model = ExactOneClassSVM(nu=0.2).fit(X)
    model.forget(model.ids_).partial_fit(MORE)
    assert apart(model, ExactOneClassSVM(nu=0.2).fit(MORE), MORE) < 1e-9


@pytest.mark.parametrize("given", [{"gamma": "scale"}, {"class_weight": "balanced"}])
def test_parameters_set_later_do_not_change_an_exact_model(given: dict[str, Any]) -> None:
    model = ExactSVC(gamma=1.0).fit(X, Y).set_params(**given).forget([0])
    assert apart(model, ExactSVC(gamma=1.0).fit(X[1:], Y[1:])) < 1e-9


def test_gamma_follows_the_rows_that_it_was_computed_from() -> None:
    model = ExactSVC().fit(X, Y).set_params(gamma=1.0).forget(range(60))
    assert model.gamma_ == pytest.approx(ExactSVC().fit(X[60:], Y[60:]).gamma_, rel=1e-12)


# -- penalties -------------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [np.inf, 1e99])
@pytest.mark.parametrize("given", [{}, {"class_weight": {0: 1.0, 1: 10.0}}])
def test_weights_outlast_a_hard_margin(C: float, given: dict[str, Any]) -> None:
    weights = RANDOM.uniform(0.1, 3, len(X))
    y = (X[:, 0] > 0).astype(int)
    hard = ExactSVC(C=C, gamma=0.5, **given).fit(X, y, sample_weight=weights)
    assert (
        apart(hard.set_C(1.0), ExactSVC(gamma=0.5, **given).fit(X, y, sample_weight=weights)) < 1e-8
    )


def test_an_exact_model_has_one_penalty() -> None:
    model = ExactSVC(C=1, gamma=0.5).fit(X[:60], Y[:60]).set_params(C=5.0)
    model.partial_fit(X[60:], Y[60:]).set_C(10.0)
    assert apart(model, ExactSVC(C=10, gamma=0.5).fit(X, Y)) < 1e-8


@pytest.mark.parametrize("how", ["partial_fit", "learn_many"])
def test_a_stream_learns_with_the_penalty_of_the_moment(how: str) -> None:
    model = OnlineSVC(C=1, gamma=0.5, random_state=0).fit(X[:60], Y[:60]).set_params(C=100.0)
    assert np.abs(getattr(model, how)(X[60:90], Y[60:90]).dual_coef_).max() > 1


# -- input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["10", "9"])
def test_labels_of_another_type_are_unknown(label: str) -> None:
    model = OnlineSVC(gamma=1.0).partial_fit(X, np.arange(120) % 30, classes=np.arange(30))
    with pytest.raises(ValueError, match=f"unknown labels: '{label}'"):
        model.partial_fit(X[:2], np.array([label, label]))


@pytest.mark.parametrize(("axis", "value"), [("row", 10**8), ("row", -1), ("col", 3), ("col", -7)])
def test_coordinates_beyond_the_shape(axis: str, value: int) -> None:
    matrix = sp.coo_matrix(np.ones((20, 3)))
    getattr(matrix, axis)[3] = value
    for act in (
        lambda: OnlineSVC().fit(matrix, np.arange(20) % 2),
        lambda: OnlineSVC().fit(X, Y).predict(matrix),
    ):
        with pytest.raises(
            ValueError, match=f"entry 3 has the (row|column) {value}, expected 0 to"
        ):
            act()


def test_widths_and_degrees_that_would_take_for_ever() -> None:
    wide = sp.csr_matrix((np.ones(4), ([0, 1, 2, 3], [0, 1, 2**31 - 2, 3])), shape=(4, 2**31 - 1))
    with pytest.raises(ValueError, match="at most 268435456 are supported"):
        OnlineSVC(gamma=1.0).fit(wide, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="degree must be an integer from 1 to 1000"):
        OnlineSVC(kernel="poly", degree=10**6).fit(X, Y)


def test_an_id_names_one_example() -> None:
    model = OnlineSVC(gamma=1.0).partial_fit(X, Y, classes=[0, 1])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="the id 500 is given twice"):
        model.partial_fit(X[:2], Y[:2], ids=[500, 500])
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_bytes_in_another_order() -> None:
    model, other = (OnlineSVC(gamma=1.0, random_state=0).fit(X, Y) for _ in range(2))
    assert apart(model.learn_one(X[0].astype(">f8"), 0), other.learn_one(X[0], 0)) == 0


def test_a_label_that_is_a_list() -> None:
    with pytest.raises(ValueError, match="expected one label per row"):
        OnlineSVC(gamma=1.0).fit(X, Y).learn_one(X[0], [0])


# -- results ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_a_model_that_says_the_same_of_all_rows_warns(kernel: str) -> None:
    constant = np.column_stack([X, np.full(len(X), 1e6)])
    with pytest.warns(ConvergenceWarning, match="constant decision function"):
        OnlineSVC(C=1e12, kernel=kernel, random_state=0).fit(constant, Y)


def test_rows_that_are_all_the_same_do_not_warn() -> None:
    OnlineSVC(gamma=1.0).fit(np.ones((20, 2)), np.arange(20) % 2)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such directory.*nowhere"):
        save(OnlineSVC(), tmp_path / "nowhere" / "m.mwz")


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("kind", [OnlineSVC, ExactSVC], ids=str)
def test_rows_of_weight_zero_count_as_rows(kind: Any, kernel: str, tmp_path: Path) -> None:
    """Their ids are theirs: with a precomputed kernel, ids are the columns of later rows."""
    X, y = blobs(60, 0, 2)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    rows, params = (K, {"kernel": kernel}) if kernel == "precomputed" else (X, {"gamma": 0.5})
    weights = np.ones(60)
    weights[28:30] = 0.0
    whole, cut = kind(**params), kind(**params)
    whole.partial_fit(rows, y, classes=[0, 1], sample_weight=weights)
    cut.partial_fit(rows[:30], y[:30], classes=[0, 1], sample_weight=weights[:30])
    cut.partial_fit(rows[30:], y[30:], sample_weight=weights[30:])
    np.testing.assert_array_equal(cut.support_, whole.support_)
    np.testing.assert_array_equal(cut.decision_function(rows), whole.decision_function(rows))
    save(cut, tmp_path / "model.mwz")
    assert load(tmp_path / "model.mwz").support_.tolist() == whole.support_.tolist()
    last = np.where(np.arange(60) < 58, 1.0, 0.0)
    assert kind(**params).fit(rows, y, sample_weight=last)._engine.native.next_id == 60

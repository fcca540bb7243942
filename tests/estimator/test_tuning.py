"""OnlineSVCCV: what it is given, what it returns, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GroupKFold, LeaveOneGroupOut, PredefinedSplit, StratifiedKFold

from marginwise import ExactSVC, OnlineSVC, OnlineSVCCV, load, save
from marginwise._tuning.rounds import rounds_of, some_rows
from tests.support import blobs, rings

SMALL: dict[str, Any] = {"Cs": [1.0, 10.0], "gammas": [0.5, 2.0], "cv": 3, "random_state": 0}


def fitted(**settings: Any) -> OnlineSVCCV:
    X, y = rings(200, 0, noise=0.3)
    return OnlineSVCCV(**{**SMALL, **settings}).fit(X, y)


def test_it_is_the_fitted_model() -> None:
    X, y = rings(200, 0, noise=0.3)
    model = fitted()
    plain = OnlineSVC(C=model.C_, gamma=model.gamma_, random_state=0).fit(X, y)
    assert (model.decision_function(X) == plain.decision_function(X)).all()
    assert isinstance(model, OnlineSVC)
    assert not hasattr(clone(model), "C_")
    more, labels = rings(50, 1)
    model.partial_fit(more, labels)
    plain.partial_fit(more, labels)
    assert (model.decision_function(X) == plain.decision_function(X)).all()


def test_numbers_of_values_make_a_grid_around_the_scale_of_the_data() -> None:
    X, y = rings(120, 0, noise=0.3)
    model = OnlineSVCCV(cv=2).fit(X, y)
    Cs = np.unique(model.cv_results_["param_C"].data)
    gammas = np.unique(model.cv_results_["param_gamma"].data)
    assert Cs == pytest.approx(8 * 4.0 ** np.arange(-3, 4))
    assert gammas == pytest.approx(4.0 ** np.arange(-2, 3) / (X.shape[1] * X.var()))
    assert len(model.cv_results_["params"]) == 35


def test_results_have_the_form_of_a_grid_search() -> None:
    from sklearn.model_selection import GridSearchCV

    X, y = rings(200, 0, noise=0.3)
    grid = {"C": SMALL["Cs"], "gamma": SMALL["gammas"]}
    theirs = GridSearchCV(OnlineSVC(), grid, cv=3).fit(X, y).cv_results_
    ours = fitted().cv_results_
    assert ours.keys() == theirs.keys()
    for name, values in theirs.items():
        assert np.shape(ours[name]) == np.shape(values), name
    best = np.argmax(ours["mean_test_score"])
    assert ours["rank_test_score"][best] == 1
    assert fitted().best_index_ == best


def test_results_may_be_changed() -> None:
    model = fitted()
    before = model.C_, model.gamma_, model.best_score_, model.decision_oof_
    for name, values in model.cv_results_.items():
        if name != "params":
            values[:] = 99
    model.decision_oof_[:] = 99
    assert (model.C_, model.gamma_, model.best_score_) == before[:3]
    assert np.array_equal(model.decision_oof_, before[3])


@pytest.mark.parametrize("kernel", ["linear", "cosine", "precomputed"])
def test_kernels_without_gamma_have_none_in_the_results(kernel: str) -> None:
    X, y = rings(120, 0, noise=0.3)
    X = X @ X.T if kernel == "precomputed" else X
    model = OnlineSVCCV(**{**SMALL, "kernel": kernel}).fit(X, y)
    assert "param_gamma" not in model.cv_results_
    assert model.cv_results_["params"] == [{"C": 1.0}, {"C": 10.0}]
    assert not hasattr(model, "gamma_")


def test_halving_ends_with_all_rows_and_few_pairs() -> None:
    X, y = rings(3000, 0, noise=0.3)
    model = OnlineSVCCV(Cs=4, gammas=4, cv=3, search="halving", random_state=0).fit(X, y)
    results = model.cv_results_
    assert np.unique(results["n_resources"]).tolist() == [333, 1000, 3000]
    assert np.bincount(results["iter"]).tolist() == [16, 6, 2]
    last = results["iter"] == 2
    assert last[model.best_index_]
    assert model.best_score_ == results["mean_test_score"][last].max()
    assert results["rank_test_score"][model.best_index_] == 1
    again = OnlineSVCCV(Cs=4, gammas=4, cv=3, search="halving", random_state=0).fit(X, y)
    assert (again.cv_results_["mean_test_score"] == results["mean_test_score"]).all()


def test_progress_counts_the_fits_of_all_rounds(caplog: pytest.LogCaptureFixture) -> None:
    X, y = rings(1000, 0, noise=0.3)
    model = OnlineSVCCV(Cs=2, gammas=2, cv=3, search="halving", verbose=1, random_state=0)
    with caplog.at_level("INFO", "marginwise"):
        model.fit(X, y)
    assert np.bincount(model.cv_results_["iter"]).tolist() == [4, 2]
    assert "18 of 18 fits" in caplog.text


def test_halving_keeps_rare_classes() -> None:
    X, y = rings(3000, 0, noise=0.3)
    y[:12] = 2
    model = OnlineSVCCV(Cs=4, gammas=4, cv=3, search="halving", random_state=0).fit(X, y)
    assert np.unique(model.cv_results_["n_resources"]).tolist() == [333, 1000, 3000]
    labels = np.repeat([0, 1, 2, 3], [9000, 900, 90, 5]).astype(np.int32)
    rows = some_rows(labels, 1000, 20, np.random.RandomState(0))
    assert len(np.unique(rows)) == 1000
    drawn = np.bincount(labels[rows])
    assert drawn[2:].tolist() == [20, 5]
    assert drawn[0] == pytest.approx(10 * drawn[1], rel=0.2)


def test_rounds() -> None:
    assert rounds_of(35, 20_000, 200) == [740, 2222, 6666, 20_000]
    assert rounds_of(35, 500, 200) == [500]
    assert rounds_of(1, 500, 200) == [500]
    assert rounds_of(9, 20, 200) == [20]


@pytest.mark.parametrize("classes", [2, 4])
def test_a_file_keeps_what_was_found(classes: int, tmp_path: Path) -> None:
    X, y = blobs(120, 0, classes=classes)
    cv = StratifiedKFold(3)
    model = OnlineSVCCV(**{**SMALL, "cv": cv}).fit(X, y)
    save(model, tmp_path / "model.mwz")
    back = load(tmp_path / "model.mwz")
    assert (back.C_, back.gamma_, back.best_score_) == (model.C_, model.gamma_, model.best_score_)
    assert np.array_equal(back.decision_oof_, model.decision_oof_)
    assert (back.decision_function(X) == model.decision_function(X)).all()
    assert back.cv is None
    assert back.fit(X, y).C_ == OnlineSVCCV(**{**SMALL, "cv": 5}).fit(X, y).C_


@pytest.mark.parametrize("Cs", [[1, 10], (1.0, 10.0), range(1, 3), np.array([1.0, 2.0]), 2])
def test_files_hold_values_of_any_sequence(Cs: Any, tmp_path: Path) -> None:
    model = fitted(Cs=Cs)
    save(model, tmp_path / "model.mwz")
    back = load(tmp_path / "model.mwz")
    assert back.C_ == model.C_
    assert np.array_equal(back.Cs, Cs)
    assert np.array_equal(model.Cs, Cs)


def test_threads_change_nothing() -> None:
    X, y = blobs(300, 0, classes=4)
    one, two = (OnlineSVCCV(**SMALL, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert (one.cv_results_["mean_test_score"] == two.cv_results_["mean_test_score"]).all()
    assert np.array_equal(one.decision_oof_, two.decision_oof_)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"Cs": []}, "Cs must be"),
        ({"Cs": 0}, "Cs must be"),
        ({"Cs": [1.0, -1.0]}, "Cs must be"),
        ({"Cs": [1.0, 1.0]}, "different positive numbers"),
        ({"Cs": "many"}, "Cs must be"),
        ({"Cs": ["1", "10"]}, "Cs must be"),
        ({"Cs": [[1.0], [1.0, 2.0]]}, "Cs must be"),
        ({"Cs": [True]}, "Cs must be"),
        ({"gammas": [np.nan]}, "gammas must be"),
        ({"gammas": [[1.0]]}, "gammas must be"),
        ({"cv": 1}, "cv must be"),
        ({"cv": "five"}, "cv must be"),
        ({"search": "random"}, "search must be"),
        ({"scoring": 3}, "scoring must be"),
        ({"scoring": "neg_log_loss"}, "needs probabilities"),
        ({"scoring": "no_such_score"}, "no_such_score"),
        ({"cv": []}, "cv yields no split"),
        ({"cv": [([0, 1, 500], [2, 3])]}, "split 0 of cv has no usable train indices"),
        ({"cv": [(range(100), [])]}, "split 0 of cv has no usable test indices"),
        ({"cv": [3, 4]}, "pairs of train and test indices"),
        ({"cv": [([0, 1], [2], [3])]}, "pairs of train and test indices"),
        ({"cv": GroupKFold(3)}, r"splitter.split\(X, y, groups\)"),
        ({"cv": 201}, "cv could not split the rows: .*201"),
        ({"search": "halving", "cv": [(range(150), range(150, 200))]}, "search='halving' splits"),
        (
            {"search": "halving", "cv": PredefinedSplit(np.arange(200) % 2)},
            "search='halving' splits",
        ),
    ],
)
def test_bad_settings_are_refused_before_any_work(
    settings: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*_: Any) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr("marginwise._tuning.search.run_round", work)
    with pytest.raises(ValueError, match=message):
        fitted(**settings)


def test_a_split_without_a_class_is_named() -> None:
    X, y = blobs(90, 0, classes=3)
    groups = y.copy()
    names = np.array(["ant", "bee", "cat"])[y]
    splits = list(LeaveOneGroupOut().split(X, y, groups))
    with pytest.raises(ValueError, match="split 0 of cv leaves no row of class 'ant'"):
        OnlineSVCCV(**{**SMALL, "cv": splits}).fit(X, names)


def test_a_split_of_rows_of_weight_zero_is_named() -> None:
    X, y = rings(90, 0)
    cv = [(range(60), range(60, 90)), (range(30, 90), range(30))]
    weights = np.repeat([0.0, 1.0], [30, 60])
    with pytest.raises(ValueError, match="all test rows of split 1 of cv have weight zero"):
        OnlineSVCCV(**{**SMALL, "cv": cv}).fit(X, y, weights)


def test_an_unfitted_search_has_no_model() -> None:
    X, y = rings(50, 0)
    model = OnlineSVCCV()
    for attribute in ("C_", "gamma_", "best_score_", "cv_results_", "decision_oof_"):
        assert not hasattr(model, attribute)
    with pytest.raises(NotFittedError):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, np.zeros(len(y)))


def test_a_search_that_is_interrupted_leaves_the_estimator_as_it_was() -> None:
    X, y = rings(200, 0, noise=0.3)
    model = fitted()
    before = model.C_, model.decision_function(X)
    calls = 0

    def score(held_out: Any, X: Any, y: Any) -> float:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise KeyboardInterrupt
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        model.set_params(scoring=score).fit(X, y)
    assert before[0] == model.C_
    assert (model.decision_function(X) == before[1]).all()


def scored_by_turns(scores: list[float]) -> Any:
    """A scoring function that returns one score after the other."""
    turns = iter(scores)
    return lambda held_out, X, y: next(turns)


def test_pairs_whose_score_is_nan_are_not_chosen() -> None:
    # By gamma, then by fold, then by C.
    scores = [np.nan, 0.5, 0.9, 0.5, 0.9, 0.5, *np.repeat([0.4, 0.6], 3)]
    with pytest.warns(UserWarning, match="NaN for 1 of 4 pairs of C and gamma"):
        model = fitted(scoring=scored_by_turns(scores))
    results = model.cv_results_
    assert np.flatnonzero(np.isnan(results["mean_test_score"])).tolist() == [0]
    assert results["rank_test_score"][0] == 4
    assert results["rank_test_score"][model.best_index_] == 1
    assert model.best_score_ == pytest.approx(1.6 / 3)
    assert np.isfinite(model.decision_oof_).all()


def test_a_score_that_is_never_defined_is_refused() -> None:
    with pytest.raises(ValueError, match="is NaN for every pair of C and gamma"):
        fitted(scoring=lambda held_out, X, y: np.nan)


def test_a_score_of_other_rows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"scoring passes 5 rows to the model, but .* the 67 rows"):
        fitted(scoring=lambda held_out, X, y: held_out.predict(X[:5]).mean())


def test_scores_may_be_infinite() -> None:
    model = fitted(scoring=lambda held_out, X, y: -np.inf)
    assert model.best_index_ == 0
    assert np.isfinite(model.decision_oof_).all()


def test_an_exact_model_takes_the_c_of_least_leave_one_out_error() -> None:
    X, y = rings(60, 0, noise=0.6)
    Cs = [30.0, 0.05, 1.0]
    result = ExactSVC(gamma=1.0).fit(X, y).tune(Cs)
    assert result.Cs.tolist() == sorted(Cs)
    for C, error in zip(result.Cs, result.errors, strict=True):
        assert error == ExactSVC(C=C, gamma=1.0).fit(X, y).leave_one_out().error
    assert result.Cs[np.argmin(result.errors)] == result.C


def test_a_tuned_exact_model_is_the_one_fitted_with_that_c() -> None:
    X, y = rings(60, 0, noise=0.6)
    model = ExactSVC(C=5.0, gamma=1.0).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="Cs must be a list of different positive numbers"):
        model.tune([1.0, 0.0])
    with pytest.raises(ValueError, match="Cs must be a list"):
        model.tune(5)  # type: ignore[arg-type]
    assert (model.decision_function(X) == before).all()
    C = model.tune([0.2, 2.0]).C
    assert C == model.C
    other = ExactSVC(C=C, gamma=1.0).fit(X, y)
    assert np.allclose(model.decision_function(X), other.decision_function(X), atol=1e-8)
    with pytest.raises(NotFittedError):
        ExactSVC().tune([1.0])


def test_models_that_cannot_be_solved_end_the_search_with_a_warning() -> None:
    rng = np.random.default_rng(0)
    X = 80 * rng.normal(size=(16, 2)) + 1000
    y = np.tile([0, 1], 8)
    model = OnlineSVCCV(Cs=[1e4], kernel="linear", cv=2)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    assert any("models of the search at a violation" in str(w.message) for w in caught)
    assert np.isfinite(model.decision_oof_).all()

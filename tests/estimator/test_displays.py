"""Displays: what is drawn, which searches and classifiers they take, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from marginwise import OnlineSVC, OnlineSVCCV
from marginwise._extras import install
from marginwise.inspect import MarginDisplay, TuningDisplay, find_label_errors
from tests.support import rings

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")


def legend(display: Any) -> list[str]:
    found = display.ax_.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


def counts(display: MarginDisplay) -> list[int]:
    """Rows in the bars of the three parts, which are stacked on each other."""
    return [round(sum(patch.get_height() for patch in bar)) for bar in display.bars_]


# -- MarginDisplay ---------------------------------------------------------------------------------


def test_margins_are_counted_by_part() -> None:
    margin = [-1.5, -0.01, 0.0, 0.5, 0.99, 1.0, 1.7, 2.0]
    display = MarginDisplay(margin)
    assert display.plot() is display
    assert counts(display) == [2, 3, 3]
    assert legend(display) == [
        "boundary, 0",
        "margin, ±1",
        "misclassified, 25.0 %",
        "inside the margin, 37.5 %",
        "beyond the margin, 37.5 %",
    ]
    assert [line.get_xdata()[0] for line in display.ax_.lines] == [0, 1, -1]
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_title() == ""


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.01, 1.0, 37.0])
@pytest.mark.parametrize("bins", [5, 50])
def test_edges_meet_the_boundary_and_the_margin(scale: float, bins: int) -> None:
    margin = scale * np.linspace(-2, 2, 101)
    display = MarginDisplay(margin).plot(bins=bins)
    starts = np.array([patch.get_x() for patch in display.bars_[0]])
    assert np.isclose(starts, 0).any()
    assert starts[0] <= margin.min()
    if np.diff(starts)[0] <= 1:
        assert np.isclose(starts, 1).any()
    assert sum(counts(display)) == 101


def test_margins_of_two_classes(seed: int) -> None:
    X, y = rings(200, seed, noise=0.1)
    labels = np.array(["in", "out"])[y]
    model = OnlineSVC(gamma=1.0, random_state=seed).fit(X[:100], labels[:100])
    display = MarginDisplay.from_estimator(model, X, labels)
    np.testing.assert_allclose(display.margin, np.where(y == 1, 1, -1) * model.decision_function(X))
    assert counts(display)[0] == (model.predict(X) != labels).sum()
    assert display.ax_.get_xlabel() == "margin, y f(x)"
    assert display.ax_.get_title() == "OnlineSVC"


@pytest.mark.parametrize("model", [OnlineSVC(C=10), SVC(C=10), LogisticRegression(max_iter=1000)])
def test_margins_of_several_classes(model: Any) -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    piped = make_pipeline(StandardScaler(), model).fit(X, y)
    display = MarginDisplay.from_estimator(piped, X, y, name="flowers", bins=20)
    assert counts(display)[0] == (piped.predict(X) != y).sum()
    assert display.ax_.get_xlabel() == "margin of the true class"
    assert display.ax_.get_title() == "flowers"


def test_margins_out_of_fold_and_on_given_axes() -> None:
    import matplotlib.pyplot as plt

    X, y = load_iris(return_X_y=True)
    found = find_label_errors(OnlineSVC(C=10), X, y, random_state=0)
    _, ax = plt.subplots()
    display = MarginDisplay.from_predictions(y, found.decision, ax=ax, color=["r", "g", "b"])
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.margin, found.margin)
    assert display.bars_[2][0].get_facecolor()[:3] == (0, 0, 1)


def test_classes_that_do_not_occur_must_be_named() -> None:
    f = np.array([[2.0, 0.0, -1.0], [0.0, 3.0, 1.0]])
    with pytest.raises(ValueError, match="If y lacks a class, pass classes"):
        MarginDisplay.from_predictions(["a", "b"], f)
    display = MarginDisplay.from_predictions(["a", "b"], f, classes=["a", "b", "c"])
    assert np.asarray(display.margin).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("y", "decision", "said"),
    [
        ([0, 1, 1], [1.0, 2.0], "decision has 2 rows, but y has 3 labels"),
        ([0, 1], np.zeros((2, 2)), r"decision has shape \(2, 2\) for the classes \[0, 1\]"),
        ([0, 1], [1.0, np.inf], "margin is inf at row 1"),
        ([], [], r"decision has shape \(0,\)"),
    ],
)
def test_bad_predictions_are_named(y: Any, decision: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        MarginDisplay.from_predictions(y, decision)


def test_bad_margins_and_models_are_named(seed: int) -> None:
    X, y = rings(40, seed)
    model = OnlineSVC().fit(X, y)
    with pytest.raises(ValueError, match=r"margin has shape \(2, 1\)"):
        MarginDisplay([[1.0], [2.0]]).plot()
    with pytest.raises(ValueError, match="bins must be an integer of at least 1, got 0"):
        MarginDisplay([1.0]).plot(bins=0)
    with pytest.raises(ValueError, match=r"y has the label 2 at row 1, .* \[0, 1\]"):
        MarginDisplay.from_estimator(model, X[:2], [1, 2])
    with pytest.raises(TypeError, match="KNeighborsClassifier has no decision_function"):
        MarginDisplay.from_estimator(KNeighborsClassifier().fit(X, y), X, y)
    with pytest.raises(NotFittedError):
        MarginDisplay.from_estimator(OnlineSVC(), X, y)


# -- TuningDisplay ---------------------------------------------------------------------------------

GRID = {"C": [10.0, 0.1, 1.0], "gamma": [1.0, 0.01]}


def searched(results: dict[str, Any], **more: Any) -> Any:
    """A fitted search that has these results."""

    class Search(BaseEstimator):  # type: ignore[misc]
        def fit(self) -> None: ...

    search = Search()
    vars(search).update({"cv_results_": results, **more})
    return search


def cells(display: TuningDisplay) -> list[tuple[float, ...]]:
    """Places of the cells that are hatched."""
    found = [patch for patch in display.ax_.patches if patch.get_hatch() and patch.get_width()]
    return sorted((patch.get_x() + 0.5, patch.get_y() + 0.5) for patch in found)


@pytest.mark.parametrize("prefix", ["", "onlinesvc__"])
def test_a_grid_is_a_heat_map(prefix: str, seed: int) -> None:
    X, y = rings(80, seed)
    model = OnlineSVC(random_state=0)
    model = make_pipeline(StandardScaler(), model) if prefix else model
    grid = {prefix + name: values for name, values in GRID.items()}
    search = GridSearchCV(model, grid, cv=3).fit(X, y)
    display = TuningDisplay.from_estimator(search)
    ax = display.ax_
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("C", "gamma")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "1", "10"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0.01", "1"]
    drawn = display.image_.get_array()
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        C, gamma = params[f"{prefix}C"], params[f"{prefix}gamma"]
        assert drawn[[0.01, 1.0].index(gamma), [0.1, 1.0, 10.0].index(C)] == score
    C, gamma = (search.best_params_[prefix + name] for name in ("C", "gamma"))
    assert legend(display) == [f"chosen: C = {C:g}, gamma = {gamma:g}"]
    (frame,) = ax.patches
    assert frame.get_xy() == ([0.1, 1.0, 10.0].index(C) - 0.5, [0.01, 1.0].index(gamma) - 0.5)
    assert sorted(text.get_text() for text in ax.texts) == sorted(
        f"{score:.3f}" for score in search.cv_results_["mean_test_score"]
    )
    assert display.figure_.axes[-1].get_ylabel() == "mean test score"


@pytest.mark.parametrize("histtype", ["step", "stepfilled", "barstacked"])
def test_margins_in_other_kinds_of_histograms(histtype: str) -> None:
    display = MarginDisplay([-1.5, 0.5, 0.99, 2.0]).plot(histtype=histtype)
    assert sorted(legend(display))[-3:] == [
        "inside the margin, 50.0 %",
        "margin, ±1",
        "misclassified, 25.0 %",
    ]
    assert len(legend(display)) == 5


def test_our_search_without_gamma_is_a_curve() -> None:
    X, y = rings(120, 0, noise=0.3)
    search = OnlineSVCCV(Cs=[1.0, 10.0], kernel="linear", cv=3).fit(X, y)
    display = TuningDisplay.from_estimator(search)
    assert display.gammas is None
    assert display.ax_.get_xlabel() == "C"
    assert legend(display) == [f"chosen: C = {search.C_:g}"]


def test_values_and_colour_bar_may_be_left_out() -> None:
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    display = TuningDisplay(np.ones((2, 2)), Cs=[1, 2], gammas=[1, 2])
    display.plot(ax=ax, include_values=False, colorbar=False, cmap="Greys", vmin=0)
    assert display.ax_ is ax
    assert not ax.texts
    assert display.figure_.axes == [ax]
    assert display.image_.cmap.name == "Greys"
    assert display.image_.norm.vmin == 0
    assert legend(display) == []
    written = TuningDisplay([[0.123]], Cs=[1], gammas=[1]).plot(values_format=".1%")
    assert [text.get_text() for text in written.ax_.texts] == ["12.3%"]
    many = TuningDisplay(np.ones((9, 9)), Cs=range(9), gammas=range(9)).plot()
    assert not many.ax_.texts


@pytest.mark.filterwarnings("ignore:One or more of the test scores")
def test_halving_shows_last_scores_and_hatches_what_was_dropped(seed: int) -> None:
    X, y = rings(200, seed)
    model = OnlineSVC(random_state=0)
    search = HalvingGridSearchCV(model, GRID, cv=3, factor=2, random_state=seed).fit(X, y)
    display = TuningDisplay.from_estimator(search)
    results = search.cv_results_
    Cs, gammas, last = [0.1, 1.0, 10.0], [0.01, 1.0], max(results["iter"])
    dropped = []
    for i, C in enumerate(Cs):
        for j, gamma in enumerate(gammas):
            its = [k for k, p in enumerate(results["params"]) if (p["C"], p["gamma"]) == (C, gamma)]
            assert display.image_.get_array()[j, i] == results["mean_test_score"][its[-1]]
            if results["iter"][its[-1]] < last:
                dropped.append((i, j))
    assert cells(display) == dropped != []
    assert "dropped early" in legend(display)


def test_missing_scores() -> None:
    """A pair with a NaN at last was dropped; one that has no score at all is a blank cell."""
    nan = np.nan
    results = {
        "param_C": [1, 1, 2, 2, 1],
        "param_gamma": [1, 2, 1, 2, 1],
        "iter": [0, 0, 0, 0, 1],
        "mean_test_score": [0.1, 0.2, nan, 0.4, nan],
    }
    display = TuningDisplay.from_estimator(searched(results))
    assert display.image_.get_array().tolist() == [[0.1, None], [0.2, 0.4]]
    assert cells(display) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert legend(display) == ["dropped early"], "nothing was kept, and nothing chosen"
    results["mean_test_score"][-1] = 0.3
    display = TuningDisplay.from_estimator(searched(results))
    assert cells(display) == [(0, 1), (1, 0), (1, 1)]
    assert legend(display)[-1] == "chosen: C = 1, gamma = 1", "0.4 was of fewer rows"


def test_other_parameters_count_by_their_best() -> None:
    results = {
        "param_C": [1, 1, 2, 2],
        "param_gamma": np.ma.masked_array([1, 1, 1, 0], mask=[0, 0, 0, 1]),
        "param_kernel": ["rbf", "poly", "rbf", "linear"],
        "mean_test_score": [0.5, 0.7, 0.6, 0.9],
    }
    display = TuningDisplay.from_estimator(searched(results, best_index_=2))
    assert display.image_.get_array().tolist() == [[0.7, 0.6]]
    assert legend(display) == ["chosen: C = 2, gamma = 1"]
    masked = TuningDisplay.from_estimator(searched(results, best_index_=3))
    assert legend(masked) == [], "the best candidate has no gamma"


@pytest.mark.parametrize("name", ["C", "gamma"])
def test_one_parameter_is_a_curve(name: str, seed: int) -> None:
    X, y = rings(80, seed)
    search = GridSearchCV(OnlineSVC(random_state=0), {name: [10, 0.1, 1]}, cv=3).fit(X, y)
    display = TuningDisplay.from_estimator(search, linewidth=5)
    curve, chosen = display.ax_.lines
    results = search.cv_results_
    order = [1, 2, 0]
    assert curve.get_xdata().tolist() == [0.1, 1, 10]
    np.testing.assert_array_equal(curve.get_ydata(), results["mean_test_score"][order])
    assert curve.get_linewidth() == 5
    assert chosen.get_xdata().tolist() == [search.best_params_[name]]
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_xlabel() == name
    band = display.ax_.collections[0].get_paths()[0].vertices
    high = (results["mean_test_score"] + results["std_test_score"]).max()
    assert band[:, 1].max() == pytest.approx(high)
    assert display.image_ is None


def test_names_come_after_numbers_and_dropped_points_are_hollow() -> None:
    results = {
        "param_gamma": ["scale", 10, 0.1, 10],
        "iter": [0, 0, 0, 1],
        "mean_test_auc": [0.5, 0.6, 0.7, 0.8],
    }
    display = TuningDisplay.from_estimator(searched(results, best_index_=3), metric="auc")
    ax = display.ax_
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0.1", "10", "scale"]
    curve, hollow, chosen = ax.lines
    assert curve.get_ydata().tolist() == [0.7, 0.8, 0.5]
    assert hollow.get_xdata().tolist() == [0, 2]
    assert hollow.get_markerfacecolor() == "white"
    assert chosen.get_xdata().tolist() == [1]
    assert ax.get_ylabel() == "mean test auc"


def test_zero_needs_a_linear_axis() -> None:
    assert TuningDisplay([1, 2], gammas=[0, 1]).plot().ax_.get_xscale() == "linear"


@pytest.mark.parametrize(
    ("results", "said"),
    [
        ({"param_C": [1], "mean_test_auc": [1.0]}, r"no 'mean_test_score'; .* one of \['auc'\]"),
        ({"param_k": [1], "mean_test_score": [1.0]}, r"neither C nor gamma .* \['param_k'\]"),
        (
            {"param_a__C": [1], "param_b__C": [1], "mean_test_score": [1.0]},
            "several parameters named C, 'param_b__C' among them",
        ),
    ],
)
def test_bad_results_are_named(results: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TuningDisplay.from_estimator(searched(results))


def test_searches_that_are_none_are_named(seed: int) -> None:
    X, y = rings(40, seed)
    with pytest.raises(TypeError, match="search is of type SimpleNamespace"):
        TuningDisplay.from_estimator(SimpleNamespace())
    with pytest.raises(TypeError, match="OnlineSVC has no cv_results_"):
        TuningDisplay.from_estimator(OnlineSVC().fit(X, y))
    with pytest.raises(NotFittedError):
        TuningDisplay.from_estimator(GridSearchCV(OnlineSVC(), GRID))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, r"scores has shape \(2, 2\) for the values of no parameter"),
        ({"Cs": [1, 2]}, r"scores has shape \(2, 2\) .*; expected \(2,\)"),
        ({"Cs": [1, 2], "gammas": [1, 2], "dropped": [True]}, r"dropped has shape \(1,\)"),
        ({"Cs": [1, 2], "gammas": [1, 2], "deviations": [1.0]}, r"deviations has shape \(1,\)"),
        ({"Cs": [1, 2], "gammas": [1, 2], "best": (0, 2)}, r"best is \(0, 2\)"),
        ({"Cs": [1, 2], "gammas": [1, 2], "best": (0,)}, r"best is \(0,\)"),
    ],
)
def test_bad_tables_are_named(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        TuningDisplay(np.zeros((2, 2)), **given).plot()


# -- without matplotlib ----------------------------------------------------------------------------


@pytest.mark.slow
def test_displays_are_made_without_matplotlib_and_name_the_extra() -> None:
    code = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
from marginwise.inspect import MarginDisplay, TuningDisplay
for display in (MarginDisplay([1.0]), TuningDisplay([1.0], Cs=[1])):
    try:
        display.plot()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(install("plot")) == 2

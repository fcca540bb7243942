"""Pictures of active learning: what is drawn, and what is said where it cannot be."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import SGDClassifier

from marginwise import OnlineSVC
from marginwise._extras import install
from marginwise.active import ActiveLearner
from marginwise.active.plot import STROKES, learning_curves, margin_history
from tests.support import rings

matplotlib = pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def _no_window(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")


def line(ax: Any, k: int) -> np.ndarray:
    return np.column_stack([ax.lines[k].get_xdata(), ax.lines[k].get_ydata()])


# -- learning curves -----------------------------------------------------------------------------


@pytest.mark.slow
def test_median_and_band_over_runs() -> None:
    runs = [([1, 3], [value, 2 * value]) for value in (0.0, 1.0, 2.0, 3.0, 10.0)]
    ax = learning_curves({"active": runs}, band=(0.25, 0.75), ylabel="error")
    np.testing.assert_allclose(line(ax, 0), [[1, 2], [3, 4]])
    low, high = (f(ax.collections[0].get_paths()[0].vertices, axis=0) for f in (np.min, np.max))
    np.testing.assert_allclose([low, high], [[1, 1], [3, 6]])  # quartiles 1 and 3, then 2 and 6
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("labels", "error")
    legend = ax.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["active"]
    assert legend.get_title().get_text() == "median of 5 runs, 25–75 % band"


def test_runs_are_joined_where_all_of_them_reach() -> None:
    ax = learning_curves({"a": [([1, 3, 9], [1, 3, 9]), ([2, 4], [2, 4])]})
    np.testing.assert_allclose(line(ax, 0), [[2, 2], [3, 3], [4, 4]])


def test_strategies_differ_in_colour_and_in_stroke() -> None:
    ax = learning_curves({name: [([1, 2], [1, 2])] for name in "abcdef"})
    assert len({drawn.get_color() for drawn in ax.lines}) == 6
    assert len({str(stroke) for stroke in STROKES}) == 6
    assert not ax.collections  # one run has no band
    assert ax.get_legend().get_title().get_text() == ""


def test_axes_that_are_given_are_drawn_on() -> None:
    import matplotlib.pyplot as plt

    _, mine = plt.subplots()
    ax = learning_curves({"a": [([1], [1.0]), ([1], [2.0])]}, ax=mine, band=None)
    assert ax is mine
    assert not ax.collections
    assert ax.get_legend().get_title().get_text() == "median of 2 runs"


@pytest.mark.parametrize(
    ("curves", "band", "said"),
    [
        ({}, None, "curves is empty"),
        ({"a": []}, None, "no runs of 'a'"),
        ({"a": [([1], [1.0])]}, (0.9, 0.1), "band must be two quantiles"),
        ({"a": [([1], [1.0])]}, (0.1, 1.1), "band must be two quantiles"),
        ({"a": [([1, 2], [1.0])]}, None, "run 0 of 'a' must have one value"),
        ({"a": [([2, 2], [1.0, 2.0])]}, None, "ascending numbers of labels"),
        ({"a": [([1], [1.0]), ([2], [1.0])]}, None, "no common number of labels"),
    ],
)
def test_bad_curves_are_named(curves: Any, band: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        learning_curves(curves, band=band)


# -- history -------------------------------------------------------------------------------------


def test_history_shows_distances_and_support_vectors(seed: int) -> None:
    X, y = rings(200, seed, noise=0.1)
    learner = ActiveLearner(OnlineSVC(C=10, gamma=1.0), X, random_state=seed)
    learner.run(lambda row: y[row], max_labels=30)
    ax = margin_history(learner)
    steps = learner.history_
    points = [(k, abs(s["score"])) for k, s in enumerate(steps, 1) if s["score"] is not None]
    np.testing.assert_allclose(line(ax, 0), points)
    right = ax.figure.axes[-1]
    assert right is not ax
    np.testing.assert_array_equal(line(right, 0)[:, 1], [s["support_vectors"] for s in steps])
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["row asked about", "margin, |f| = 1", "support vectors (right)"]


def test_history_of_several_classes_shows_half_the_lead(seed: int) -> None:
    X, y = load_iris(return_X_y=True)
    learner = ActiveLearner(OnlineSVC(C=10, gamma=0.1), X, random_state=seed)
    learner.run(lambda row: y[row], max_labels=30)
    drawn = line(margin_history(learner), 0)
    best = np.sort(learner.history_[-1]["score"])
    assert drawn[-1] == pytest.approx([30, (best[-1] - best[-2]) / 2])


def test_history_without_support_vectors_has_one_axis(seed: int) -> None:
    X, y = rings(100, seed, noise=0.1)
    learner = ActiveLearner(SGDClassifier(random_state=seed), X, random_state=seed)
    learner.run(lambda row: y[row], max_labels=10)
    ax = margin_history(learner)
    assert ax.figure.axes == [ax]


def test_history_must_have_begun() -> None:
    learner = ActiveLearner(OnlineSVC(), [[0.0], [1.0]], random_state=0)
    with pytest.raises(ValueError, match="no history to plot"):
        margin_history(learner)


# -- without matplotlib --------------------------------------------------------------------------


@pytest.mark.slow
def test_the_extra_is_named_where_matplotlib_is_absent() -> None:
    code = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
from marginwise.active.plot import learning_curves
try:
    learning_curves({"a": [([1], [1.0])]})
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert install("plot") in done.stdout

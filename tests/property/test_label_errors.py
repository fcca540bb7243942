"""Laws of find_label_errors: names of classes and the order of rows and features do not matter."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC

from marginwise.inspect import find_label_errors
from tests.support import blobs

FOLDS = [(np.flatnonzero(np.arange(60) % 3 != k), np.arange(k, 60, 3)) for k in range(3)]
MODEL = SVC(gamma=0.5, tol=1e-8)


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_the_order_of_rows_and_features_does_not_matter(seed: int, classes: int) -> None:
    X, y = blobs(60, seed, classes=classes)
    one = find_label_errors(MODEL, X, y, cv=FOLDS, rounds=1)
    order = np.random.default_rng(seed).permutation(60)
    place = np.argsort(order)
    moved = [(np.sort(place[train]), place[test]) for train, test in FOLDS]
    other = find_label_errors(MODEL, X[order][:, ::-1], y[order], cv=moved, rounds=1)
    np.testing.assert_allclose(other.probability, one.probability[order], atol=1e-3)
    np.testing.assert_allclose(other.margin, one.margin[order], atol=1e-5)


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.sampled_from([2, 3]))
def test_names_of_classes_do_not_matter(seed: int, classes: int) -> None:
    X, y = blobs(60, seed, classes=classes)
    names = np.array(["ant", "bee", "cat"])
    one, other = (find_label_errors(MODEL, X, labels, cv=FOLDS) for labels in (y, names[y]))
    np.testing.assert_array_equal(other.order, one.order)
    np.testing.assert_array_equal(other.suggested, names[one.suggested])
    np.testing.assert_array_equal(other.is_suspect, one.is_suspect)


@settings(max_examples=6)
@given(st.integers(0, 10**6), st.floats(0.1, 3.0))
def test_suspects_grow_with_the_threshold(seed: int, threshold: float) -> None:
    X, y = blobs(60, seed, classes=3)
    few, many = (
        find_label_errors(MODEL, X, y, cv=FOLDS, rounds=1, threshold=each)
        for each in (threshold, 1.5 * threshold)
    )
    assert not (few.is_suspect & ~many.is_suspect).any()
    assert (few.suggested[few.is_suspect] != y[few.is_suspect]).all()
    assert sorted(few.order.tolist()) == list(range(60))
    assert (np.diff(few.probability[few.order]) >= 0).all()

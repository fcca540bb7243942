"""Compression worked by hand: projections of two or three vectors, one Newton step, sizes.

Points lie on a line, and gamma is log 2: K(x, y) = 2^-(x - y)^2, so that neighbours have the kernel
value 1/2 and the outer ones of three 1/16.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from marginwise import OnlineSVC
from marginwise._compression.basis import Expansion, Vectors, expansion_of
from marginwise._compression.features import span_of
from marginwise._compression.ladder import climb, held_out, sizes_up_to
from marginwise._compression.primal import Rows, minimise

E = np.eye(3)


@pytest.fixture
def model() -> OnlineSVC:
    return OnlineSVC(C=10.0, gamma=math.log(2)).fit([[0.0], [1.0], [2.0]], [0, 1, 0])


def vectors(*points: float) -> Vectors:
    return Vectors(np.array(points)[:, None], np.zeros(len(points), dtype=np.int32))


def test_a_vector_is_projected_onto_its_neighbours(model: OnlineSVC) -> None:
    span = span_of(model._engine, vectors(0.0, 2.0))
    third = Expansion(vectors(1.0), np.array([[1.0]]), np.zeros(1))
    weights = span.project(third)
    # beta (1 + 1/16) = 1/2 by symmetry, so both are 8/17; |P w|^2 = 2 * 8/17 * 1/2.
    assert span.expansion(weights, np.zeros(1)).weights == pytest.approx(np.full((1, 2), 8 / 17))
    assert np.square(weights).sum() == pytest.approx(8 / 17)


def test_three_vectors_are_projected_onto_two(model: OnlineSVC) -> None:
    full = Expansion(vectors(0.0, 1.0, 2.0), np.array([[3.0, -2.0, 1.0]]), np.zeros(1))
    span = span_of(model._engine, vectors(0.0, 2.0))
    found = span.expansion(span.project(full), np.zeros(1))
    # Those of the vectors that stay, and 8/17 of the third at each.
    place = np.argsort(found.vectors.X[:, 0])
    assert found.weights[:, place] == pytest.approx(np.array([[3 - 16 / 17, 1 - 16 / 17]]))


def test_orthogonal_vectors_keep_their_coefficients() -> None:
    model = OnlineSVC(C=10.0, kernel="linear").fit(E, [0, 1, 1])
    full = model.dual_coef_[0]
    small = model.compress(max_vectors=2)
    assert small.n_vectors_ == 2
    kept = small.support_vectors_.argmax(axis=1)
    assert small.dual_coef_[0] == pytest.approx(full[kept], rel=1e-6)
    assert small.intercept_ == pytest.approx(model.intercept_)


def test_vectors_that_depend_on_others_are_left_out(model: OnlineSVC) -> None:
    assert len(span_of(model._engine, vectors(0.0, 1.0, 0.0, 1.0)).vectors) == 2
    plane = OnlineSVC(kernel="linear", C=10.0).fit([[1, 0], [0, 1], [1, 2], [3, 1]], [0, 1, 0, 1])
    rows = Vectors(np.array([[1.0, 0], [0, 1], [1, 2], [3, 1]]), np.zeros(4, dtype=np.int32))
    assert len(span_of(plane._engine, rows).vectors) == 2


def test_one_newton_step_of_two_rows() -> None:
    # x = +1 with y = 1 and x = -1 with y = -1: by symmetry b = 0, and w minimises
    # w^2 / 2 + 2 * C (1 - w)^2 / 2, so w = 2 C / (1 + 2 C).
    rows = Rows(
        np.array([[1.0], [-1.0]], dtype=np.float32),
        [slice(0, 2)],
        np.array([1.0, -1.0]),
        np.array([3.0, 3.0]),
    )
    w, b = minimise(rows, np.zeros(1), 0.0, biased=True)
    assert w == pytest.approx([6 / 7])
    assert b == pytest.approx(0.0, abs=1e-6)


def test_without_a_bias_it_stays() -> None:
    # One row x = 1, y = 1 with C = 1: w = C / (1 + C); with a bias w = 0 and b = 1.
    rows = Rows(np.ones((1, 1), dtype=np.float32), [slice(0, 1)], np.ones(1), np.ones(1))
    w, b = minimise(rows, np.zeros(1), 0.0, biased=False)
    assert (w[0], b) == (pytest.approx(0.5), 0.0)
    w, b = minimise(rows, np.zeros(1), 0.0, biased=True)
    assert (w[0], b) == (pytest.approx(0.0, abs=1e-6), pytest.approx(1.0))


def test_the_expansion_is_that_of_the_model(model: OnlineSVC) -> None:
    full = expansion_of(model._engine)
    assert full.weights == pytest.approx(model.dual_coef_)
    assert np.allclose(full.vectors.X, model.support_vectors_)
    assert full.vectors.labels.tolist() == [0, 1, 0]


def test_sizes_grow_by_the_root_of_two() -> None:
    assert sizes_up_to(64) == [8, 11, 16, 23, 32, 45, 64]
    assert sizes_up_to(8) == [8]
    assert sizes_up_to(3) == [3]


def test_a_fifth_of_each_class_is_held_out() -> None:
    labels = np.array([0] * 10 + [1] * 14 + [2] * 4, dtype=np.int32)
    assert np.bincount(labels[held_out(labels)], minlength=3).tolist() == [2, 2, 0]
    with pytest.raises(ValueError, match="needs 5 rows or more of some class"):
        held_out(np.array([0, 1, 0, 1], dtype=np.int32))


def test_the_smallest_size_within_the_increase_is_chosen() -> None:
    errors = {8: 0.3, 11: 0.21, 16: 0.15, 23: 0.12, 32: 0.11}
    tried: list[int] = []

    def error_of(size: int) -> float:
        tried.append(size)
        return errors[size]

    size, curve = climb(32, 0.1, 0.05, error_of, all_=False)
    assert size == 16
    assert tried == [8, 11, 16]
    assert curve.errors.tolist() == [0.3, 0.21, 0.15]
    size, curve = climb(32, 0.1, 0.05, error_of, all_=True)
    assert size == 16
    assert curve.sizes.tolist() == list(errors)
    assert climb(32, 0.1, 0.001, error_of, all_=False)[0] == 32
    assert climb(32, 0.1, None, error_of, all_=False)[0] == 32

"""The support vector machine in the coordinates of a span, fitted by Newton's method.

It minimizes |w|^2 / 2 + sum of C max(0, 1 - y f(x))^2 / 2 with f(x) = w.x + b. The squared hinge
loss is smooth, so a few Newton steps reach the minimum. A step uses only the rows within the margin
and solves a linear system whose size is the number of these rows or of the coordinates, whichever
is smaller.

If the targets y are values instead of labels, the loss is C (y - f(x))^2 / 2.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from marginwise._arrays import Float
from marginwise._compression.kernel import Single

MOST_STEPS = 50
MOST_HALVINGS = 30
TOL = 1e-5  # relative decrease of the objective at which Newton's method stops
ENOUGH = 1e-4  # fraction of the predicted decrease at which a step is accepted
MOST_SINGLE = 1e5  # largest trace of a Hessian in single precision, which must resolve the added 1
MOST_COST = 1e6  # of a hard margin, if kernel values are about 1


@dataclass
class Rows:
    """Rows of one binary problem: parts of all coordinates, with targets and costs.

    The parts are slices, so problems share the coordinates without copying them.
    """

    coordinates: Single
    parts: list[slice]
    targets: Float
    costs: Float
    valued: bool = False  # whether targets are values that f is to equal, instead of labels

    def __post_init__(self) -> None:
        self.costs = np.minimum(self.costs, MOST_COST)
        ends = np.cumsum([0, *(part.stop - part.start for part in self.parts)])
        self._places = [slice(a, b) for a, b in itertools.pairwise(ends.tolist())]

    def errors(self, f: Float) -> Float:
        """Return targets minus f; 0 for rows without loss."""
        errors = self.targets - f
        return errors if self.valued else np.where(self.targets * errors > 0, errors, 0.0)

    def times(self, w: Float) -> Float:
        """Return w.x of the rows."""
        single = w.astype(np.float32)
        products = [self.coordinates[part] @ single for part in self.parts]
        return np.concatenate(products).astype(np.float64)

    def summed(self, weights: Float) -> Float:
        """Return the weighted sum of the rows."""
        single = weights.astype(np.float32)
        sums = [
            single[place] @ self.coordinates[part]
            for part, place in zip(self.parts, self._places, strict=True)
        ]
        return np.asarray(np.sum(sums, axis=0), dtype=np.float64)

    def some(self, chosen: Any) -> Single:
        """Return the rows for which `chosen` is true."""
        rows = [
            self.coordinates[part][chosen[place]]
            for part, place in zip(self.parts, self._places, strict=True)
        ]
        return np.concatenate(rows)


@dataclass
class Point:
    """Current point of the minimization."""

    w: Float
    b: float
    f: Float  # of the rows
    objective: float


def minimise(rows: Rows, w: Float, b: float, *, biased: bool) -> tuple[Float, float]:
    """Return w and b at the minimum, given a starting point; without a bias, b is constant."""
    point = _point(rows, w, b, rows.times(w) + b)
    for _ in range(MOST_STEPS):
        before = point.objective
        point, promised = _step(rows, point, biased)
        if promised <= TOL * before or before - point.objective <= TOL * before:
            break
    return point.w, point.b


def _point(rows: Rows, w: Float, b: float, f: Float) -> Point:
    return Point(w, b, f, float(w @ w + rows.costs @ rows.errors(f) ** 2) / 2)


def _step(rows: Rows, point: Point, biased: bool) -> tuple[Point, float]:
    """Take a Newton step; return the new point and the predicted decrease."""
    errors = rows.errors(point.f)
    inside, pull = errors != 0, -rows.costs * errors
    gradient, slope = point.w + rows.summed(pull), float(pull.sum())
    direction, rise = _direction(rows.some(inside), rows.costs[inside], gradient, slope, biased)
    promised = -float(direction @ gradient + rise * slope)
    change = rows.times(direction) + rise
    size = 1.0
    for _ in range(MOST_HALVINGS):
        there = _point(
            rows, point.w + size * direction, point.b + size * rise, point.f + size * change
        )
        if there.objective <= point.objective - ENOUGH * size * promised:
            return there, promised
        size /= 2
    return point, promised


def _direction(
    active: Single, costs: Float, gradient: Float, slope: float, biased: bool
) -> tuple[Float, float]:
    """Solve H (direction, rise) = -(gradient, slope), H the Hessian of the rows `active`."""
    cross = (costs.astype(np.float32) @ active).astype(np.float64)
    solved = _inverse_times(active, costs, np.column_stack([gradient, cross]))
    curvature = float(costs.sum()) - float(cross @ solved[:, 1])
    if not biased or not curvature > TOL * TOL * float(costs.sum()):
        return -solved[:, 0], 0.0
    rise = (float(cross @ solved[:, 0]) - slope) / curvature
    return -solved[:, 0] - rise * solved[:, 1], rise


def _inverse_times(active: Any, costs: Float, right: Float) -> Float:
    """Return (I + A' C A)^-1 times some columns, for the rows A and the diagonal C of costs."""
    count, width = active.shape
    if count == 0:
        return right
    if costs @ np.einsum("ij,ij->i", active, active) > MOST_SINGLE:
        active = active.astype(np.float64)
    if count >= width:
        scaled = active * np.sqrt(costs).astype(active.dtype)[:, None]
        matrix = (scaled.T @ scaled).astype(np.float64)
        matrix[np.diag_indices(width)] += 1.0
        return np.asarray(cho_solve(cho_factor(matrix, overwrite_a=True), right))
    # By Woodbury's identity: I - A' (C^-1 + A A')^-1 A.
    matrix = (active @ active.T).astype(np.float64)
    matrix[np.diag_indices(count)] += 1.0 / costs
    inner = cho_solve(cho_factor(matrix, overwrite_a=True), active @ right)
    return np.asarray(right - active.T @ inner)

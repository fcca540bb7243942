"""Coordinates in the span of a few vectors in the feature space of the kernel (Nyström)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack, solve_triangular

from marginwise._arrays import Float, Ints
from marginwise._compression.basis import Expansion, Vectors
from marginwise._compression.kernel import KernelBlocks, Single
from marginwise._engine.engine import Engine

# Vectors whose squared distance from the span of the others, relative to the longest vector, is
# below this limit are left out: single precision cannot distinguish it from 0.
DEPENDENT = 1e-6


@dataclass
class Span:
    """The span of some vectors, with orthonormal coordinates.

    With the Cholesky factor L of the kernel matrix of the vectors, the coordinates of a row are its
    kernel values times the transposed inverse of L. For rows within the span, inner products of
    coordinates equal kernel values. A vector w in coordinates has the expansion coefficients
    ``inverse @ w``.

    Parameters
    ----------
    engine : Engine
        Has the kernel.
    vectors : Vectors
        Linearly independent spanning vectors.
    inverse : ndarray of shape (n_vectors, n_vectors)
        Transposed inverse of the factor.
    """

    engine: Engine
    vectors: Vectors
    inverse: Float

    def __post_init__(self) -> None:
        self._blocks = KernelBlocks(self.engine, self.vectors.X)

    def coordinates(self, X: Any, order: Ints) -> Single:
        """Return the coordinates of rows `order` of X."""
        out = np.empty((len(order), len(self.vectors)), dtype=np.float32)
        inverse = self.inverse.astype(np.float32)
        for part, values in self._blocks.each(X, order):
            np.matmul(values, inverse, out=out[part])
        return out

    def project(self, model: Expansion) -> Float:
        """Return the projection of w of each problem onto the span, one row per problem."""
        members = model.vectors
        sums = np.zeros((len(model.weights), len(self.vectors)))
        for part, values in self._blocks.each(members.X, np.arange(len(members), dtype=np.int64)):
            sums += model.weights[:, part] @ values
        projected: Float = sums @ self.inverse
        return projected

    def expansion(self, weights: Float, intercept: Float) -> Expansion:
        """Return the expansion over the vectors that has these coordinates."""
        return Expansion(self.vectors, weights @ self.inverse.T, intercept)


def span_of(engine: Engine, vectors: Vectors) -> Span:
    """Return the span of vectors, without those that depend linearly on others.

    Raises ValueError unless K(x, x) is positive for at least one vector.
    """
    kernel = KernelBlocks(engine, vectors.X).square()
    tolerance = DEPENDENT * float(np.diagonal(kernel).max())
    if not tolerance > 0:
        raise ValueError(
            "compress needs a kernel with K(x, x) > 0 for some support vector; use a kernel that "
            "is positive semi-definite, such as 'rbf'."
        )
    factor, pivots, rank, _ = lapack.dpstrf(kernel, lower=1, tol=tolerance)
    kept = np.asarray(pivots[:rank], dtype=np.int64) - 1
    lower = np.tril(factor[:rank, :rank])
    inverse = solve_triangular(lower, np.eye(rank), lower=True, trans=0).T
    return Span(engine, vectors.take(kept), np.ascontiguousarray(inverse))

"""The choice of the vectors of a compressed model.

The candidates are the members of the model. If the kernel is a function of distances and features
are dense, the k-means centres of each class represent the members better than any subset of them.
Otherwise, centres are meaningless to the kernel or would not be sparse, and members are sampled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances_argmin

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import take_rows
from marginwise._engine.engine import Engine

ROUNDS = 10  # of k-means; more rounds hardly improve models
MOST_CANDIDATES = 20_000  # maximum number of members to choose from
SEED = 0  # fixed, so that equal models are compressed equally


@dataclass
class Vectors:
    """Vectors of an expansion: features in the caller's units, and their classes."""

    X: Any
    labels: Labels

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, places: Ints) -> Vectors:
        return Vectors(take_rows(self.X, places), self.labels[places])


@dataclass
class Expansion:
    """Vectors and coefficients of a model, in the units of its engine; one row per problem."""

    vectors: Vectors
    weights: Float
    intercept: Float


def expansion_of(engine: Engine) -> Expansion:
    """Return the expansion of a model over its members with nonzero coefficients."""
    state, weights = engine.state(), engine.native.weights()
    counts = np.flatnonzero((weights != 0).any(axis=0))
    vectors = Vectors(engine.features_of(state), state["labels"]).take(counts)
    return Expansion(vectors, weights[:, counts], engine.bias)


@dataclass
class Candidates:
    """Members of a model from which vectors or centres are chosen.

    Parameters
    ----------
    members : Vectors
        The members, in random order, with the classes that the model predicts.
    masses : ndarray of shape (n_members,)
        Weight of each member in the model.
    centred : bool
        Whether to use centres instead of members.
    """

    members: Vectors
    masses: Float
    centred: bool

    def choose(self, size: int, *, weighted: bool) -> Vectors:
        """Return `size` vectors, or all members if there are fewer.

        Parameters
        ----------
        size : int
            Number of vectors.
        weighted : bool
            Whether members with larger weights attract the centres more.
        """
        if size >= len(self.members) or not self.centred:
            return self.members.take(np.arange(min(size, len(self.members))))
        masses = self.masses if weighted else np.ones(len(self.members))
        chosen = [
            _centres(self.members.take(own), masses[own], share)
            for own, share in _shares(self.members.labels, size)
            if share > 0
        ]
        X = np.concatenate([part.X for part in chosen])
        return Vectors(X, np.concatenate([part.labels for part in chosen]))


def candidates_of(
    engine: Engine, model: Expansion, classes_of: Callable[[Any], Labels]
) -> Candidates:
    """Return the candidates for vectors; `classes_of` predicts the classes of rows.

    The centres of a class represent the members that the model assigns to it. Mislabelled members
    lie within other classes, which would otherwise be covered twice.
    """
    order = np.random.default_rng(SEED).permutation(len(model.vectors))[:MOST_CANDIDATES]
    members, masses = model.vectors.take(order), np.abs(model.weights[:, order]).sum(axis=0)
    centred = engine.plan.kernel == "rbf" and not sp.issparse(members.X) and len(order) > 0
    if centred:
        members = Vectors(members.X, classes_of(members.X))
    return Candidates(members, masses, centred)


def _shares(labels: Labels, size: int) -> list[tuple[Ints, int]]:
    """Return the members of each class, and the number of vectors that represent them."""
    ends = np.cumsum(np.bincount(labels)) * size // len(labels)
    shares = np.diff(ends, prepend=0)
    return [(np.flatnonzero(labels == c), int(share)) for c, share in enumerate(shares)]


def _centres(members: Vectors, masses: Float, count: int) -> Vectors:
    """Run k-means, starting from the first members."""
    offset = members.X.mean(axis=0)  # distances of features far from 0 lose digits
    X = members.X - offset
    centres = X[:count]
    for _ in range(ROUNDS):
        nearest = pairwise_distances_argmin(X, centres)
        places = (nearest, np.arange(len(members)))
        groups = sp.csr_array((masses, places), shape=(count, len(members)))
        sums = np.bincount(nearest, masses, minlength=count)[:, None]
        moved = (groups @ X) / np.where(sums > 0, sums, 1.0)
        centres = np.where(sums > 0, moved, centres)
    return Vectors(centres + offset, members.labels[:count])

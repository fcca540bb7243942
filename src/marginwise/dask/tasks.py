"""Training tasks on workers: pure functions of a piece of rows, a model snapshot and a seed.

The last arguments `held` of a task contain the rows: a block of features and a block of labels, or
a data source.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import canonical, check_finite, plain
from marginwise._engine.plan import signs
from marginwise._training.loop import missed_by_row
from marginwise._training.sift import Flags, Sieve, Single, Sketch, Tally, choose_centres
from marginwise.dask.plan import Piece
from marginwise.dask.snapshot import Snapshot
from marginwise.dask.versions import check_version


@dataclass(frozen=True)
class Rules:
    """Rules by which all rounds of a run evaluate rows.

    Parameters
    ----------
    classes : ndarray
        The labels, sorted.
    features : int
        Number of features.
    problems : int
        Number of binary problems.
    pairs : bool
        Whether problems are pairs of classes.
    rule : str
        The selection rule.
    pool_size : int
        Number of rows per pool of the selection rule.
    loss : float
        Fraction of the rows inside a margin that the sketch may miss; 0 uses no sketch.
    seed : int
        Seed of the random sample.
    sampled : int
        One in `sampled` rows, on average, is returned regardless of its score.
    version : str
        Version of marginwise on the driver.
    """

    classes: NDArray[Any]
    features: int
    problems: int
    pairs: bool
    rule: str
    pool_size: int
    loss: float
    seed: int
    sampled: int
    version: str

    @property
    def sieve(self) -> Sieve:
        """The sieve that scores and selects rows."""
        return Sieve(self.rule, self.pool_size, self.loss, self.seed)

    def encode(self, y: NDArray[Any]) -> Labels:
        """Return the class index of each label, -1 for unknown labels."""
        at = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        return np.where(self.classes[at] == y, at, -1).astype(np.int32)

    def signs(self, labels: Labels) -> Float:
        """Return +1 or -1 for each row and problem, 0 if the problem does not use the class."""
        return signs(labels, self.problems, self.pairs)


@dataclass
class Picks:
    """The rows of a piece that are worth learning, and a random sample of the others.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n, features)
        Features of the rows.
    labels : ndarray of int32
        Class index of each row.
    ids : ndarray of int64
        Ids of the rows.
    wanted : ndarray of shape (n, problems)
        Whether each problem should learn each row.
    sampled : ndarray of bool
        Whether each row belongs to the random sample of all rows.
    tally : Tally
        Counts of sifting.
    read_seconds, score_seconds : float
        Time spent on reading and on scoring rows.
    """

    X: Any
    labels: Labels
    ids: Ints
    wanted: Flags
    sampled: NDArray[np.bool_]
    tally: Tally
    read_seconds: float = 0.0
    score_seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.ids)


# -- rows --------------------------------------------------------------------------------------


def features_of(x: Any, rows: Ints | slice = slice(None)) -> Any:
    """Return rows of a block as an array of floats or a CSR matrix."""
    if hasattr(x, "iloc"):
        single = all(str(kind) == "float32" for kind in x.dtypes)
        some = x.iloc[rows].to_numpy(dtype=np.float32 if single else np.float64)
        return np.ascontiguousarray(some)
    some = sp.csr_array(x)[rows] if sp.issparse(x) else np.asarray(x)[rows]
    if some.dtype not in (np.float32, np.float64):
        some = some.astype(np.float64)
    return canonical(some)


def labels_of(y: Any) -> NDArray[Any]:
    """Return the labels of a block as an array."""
    return np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)


def read_piece(piece: Piece, rules: Rules, *held: Any) -> tuple[Any, Labels, Ints]:
    """Return features, classes and ids of the rows of a piece."""
    check_version(rules.version)
    if piece.ids is not None:
        X, labels = _read_source(piece.ids, rules, held[0])
        return X, labels, piece.first + piece.ids
    x, y = held
    order, y = piece.order(), labels_of(y)
    rows = order[piece.start : piece.stop]
    if piece.per_class:
        every = rules.encode(y[order])
        first = [
            np.flatnonzero(every == label)[: piece.per_class] for label in np.unique(every).tolist()
        ]
        rows = order[np.union1d(np.concatenate(first), np.arange(piece.start, piece.stop))]
    return features_of(x, rows), rules.encode(y[rows]), piece.first + rows


def _read_source(ids: Ints, rules: Rules, source: Any) -> tuple[Any, Labels]:
    """Read rows of a source and validate them. The census has already validated blocks."""
    X, y = source.read(ids)
    X, y = features_of(X), labels_of(y)
    if X.shape != (len(ids), rules.features) or len(y) != len(ids):
        raise ValueError(
            f"the source returned features of shape {X.shape} and {len(y)} labels for {len(ids)} "
            f"rows of {rules.features} features, the first of which is row {int(ids[0])}."
        )
    check_finite(X, ids)
    labels = rules.encode(y)
    if (labels < 0).any():
        at = int(np.argmax(labels < 0))
        raise ValueError(
            f"row {int(ids[at])} of the source has the label {plain(y[at])!r}, which is unknown; "
            f"the known classes are {plain(rules.classes)}."
        )
    return X, labels


def take_rows(x: Any, rows: Ints | None) -> Any:
    """Return rows of a block without conversion, or all rows if `rows` is None."""
    if rows is None:
        return x
    if hasattr(x, "iloc"):
        return x.iloc[rows]
    return (sp.csr_array(x) if sp.issparse(x) else x)[rows]


# -- evaluation --------------------------------------------------------------------------------


def sift(piece: Piece, rules: Rules, snapshot: Snapshot | None, *held: Any) -> Picks:
    """Evaluate the rows of a piece; return those that are worth learning."""
    began = time.perf_counter()
    X, labels, ids = read_piece(piece, rules, *held)
    read = time.perf_counter()
    signed = rules.signs(labels)
    tally = Tally(rows=len(ids), pairs=signed.size)
    rng = np.random.default_rng([rules.seed, piece.block + 1, *ids[:1].tolist()])
    sampled = rng.integers(rules.sampled, size=len(ids)) == 0
    if snapshot is None:
        wanted = (signed != 0).astype(np.uint8)
    else:
        scores = _scores(snapshot, rules.sieve, X, signed, sampled, tally)
        wanted = _choose(snapshot, rules, scores, signed, ids)
        tally.inside = int((scores < snapshot.margin).sum())
    tally.wanted = int(wanted.sum())
    kept = np.flatnonzero(wanted.any(axis=1) | sampled)
    return Picks(
        X=canonical(X[kept]),
        labels=labels[kept],
        ids=ids[kept],
        wanted=wanted[kept],
        sampled=sampled[kept],
        tally=tally,
        read_seconds=read - began,
        score_seconds=time.perf_counter() - read,
    )


def _choose(snapshot: Snapshot, rules: Rules, scores: Single, signed: Float, ids: Ints) -> Flags:
    """Return which problems should learn which rows."""
    sieve, margin = rules.sieve, snapshot.margin
    wanted = np.zeros(scores.shape, dtype=np.uint8)
    for c in range(scores.shape[1]):
        if not np.isfinite(margin[c]):  # learn all rows until scores exist
            wanted[:, c] = signed[:, c] != 0
        elif rules.rule == "random":
            wanted[:, c] = scores[:, c] < 1  # the driver's windows would reject others
        else:
            wanted[sieve.picks(scores[:, c], margin[c]), c] = 1
    counts = _counts_in(snapshot, ids)
    return wanted & ~counts


def _scores(
    snapshot: Snapshot,
    sieve: Sieve,
    X: Any,
    signed: Float,
    sampled: NDArray[np.bool_],
    tally: Tally,
) -> Single:
    """Return the scores of all rows and problems, inf if the sketch places them far away."""
    judge = snapshot.judge
    batch = judge.engine.batch(X)
    rows = np.arange(len(signed), dtype=np.int64)
    if snapshot.sketch is None:
        tally.asked += signed.size
        return sieve.score(judge.values(batch, rows), signed)
    asked = sieve.score(judge.rough_values(batch, rows), signed) < snapshot.sketch.reach
    audited = sampled[:, np.newaxis] & ~asked & (signed != 0)
    f = judge.values_where(batch, asked | audited)
    scores = np.where(np.isinf(f), np.inf, sieve.score(f, signed)).astype(np.float32)
    tally.asked += int(asked.sum())
    tally.audited += int(audited.sum())
    tally.wrong += int((audited & (scores < snapshot.margin)).sum())
    return scores


def _counts_in(snapshot: Snapshot, ids: Ints) -> NDArray[np.bool_]:
    """Return the problems in which each row is already a support vector."""
    found = np.zeros((len(ids), len(snapshot.margin)), dtype=bool)
    if len(snapshot.ids):
        at = np.minimum(np.searchsorted(snapshot.ids, ids), len(snapshot.ids) - 1)
        known = np.flatnonzero(snapshot.ids[at] == ids)
        found[known] = (snapshot.coefficients[:, at[known]] != 0).T
    return found


# -- the sketch and the audit ------------------------------------------------------------------


def take_labelled(piece: Piece, rules: Rules, *held: Any) -> tuple[Any, Labels]:
    """Return features and classes of the rows of a piece."""
    X, labels, _ = read_piece(piece, rules, *held)
    return X, labels


def draw_sketch(
    rules: Rules, snapshot: Snapshot, inserted: int, parts: Sequence[tuple[Any, Labels]]
) -> Sketch:
    """Fit a sketch to the decision values of some rows.

    Parameters
    ----------
    rules : Rules
        Rules by which rows are evaluated.
    snapshot : Snapshot
        The model.
    inserted : int
        Number of insertions into the model so far; also part of the seed of the centres.
    parts : sequence of tuple
        Features and classes of the rows.
    """
    judge = snapshot.judge
    rng = np.random.default_rng([rules.seed, inserted, 1])
    centres = judge.vectors[choose_centres(len(snapshot.ids), rng)]
    X = stacked([X for X, _ in parts])
    signed = rules.signs(np.concatenate([labels for _, labels in parts]))
    batch, rows = judge.engine.batch(X), np.arange(len(signed), dtype=np.int64)
    f = judge.values(batch, rows)
    values = judge.engine.native.cross_values(judge.pack(centres), batch, rows)
    fitted = rules.sieve.fit_sketch(values, f, signed, snapshot.margin)
    return Sketch(centres, *fitted, inserted=inserted)


def audit(piece: Piece, rules: Rules, snapshot: Snapshot, *held: Any) -> Float:
    """Add up the hinge loss of rows in the problems of which they are not support vectors.

    Returns
    -------
    sums : ndarray of shape (2, classes)
        Number of rows of each class, and the loss that counts for them.
    """
    X, labels, ids = read_piece(piece, rules, *held)
    signed = rules.signs(labels)
    judge = snapshot.judge
    rows = np.arange(len(ids), dtype=np.int64)
    margins = signed * judge.values(judge.engine.batch(X), rows)
    fresh = (signed != 0) & ~_counts_in(snapshot, ids)
    loss = missed_by_row(np.where(fresh, np.maximum(0, 1 - margins), 0), signed)
    most = len(rules.classes)
    return np.array([np.bincount(labels, minlength=most), np.bincount(labels, loss, most)])


def stacked(parts: Sequence[Any]) -> Any:
    """Return rows of several blocks as one array, CSR matrix or data frame."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    if any(sp.issparse(part) for part in parts):
        return sp.csr_array(sp.vstack(parts, format="csr"))
    return np.concatenate(parts)

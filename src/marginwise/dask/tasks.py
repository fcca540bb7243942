"""What runs on workers: pure functions of the rows of a block, a snapshot and a seed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import canonical
from marginwise._engine.plan import signs
from marginwise._training.sift import Flags, Sieve, Single, Tally
from marginwise.dask.plan import Piece
from marginwise.dask.snapshot import Snapshot

SAMPLED = 64  # one of so many rows travels whatever the model thinks of it


@dataclass(frozen=True)
class Rules:
    """How rows are judged, in all rounds of a run.

    Parameters
    ----------
    classes : ndarray
        The labels, sorted.
    problems : int
        The number of binary problems.
    pairs : bool
        Whether problems are pairs of classes.
    rule : str
        The rule of selection.
    pool_size : int
        The rows of its pools.
    loss : float
        The share of rows inside a margin that the sketch may hide.
    seed : int
        Decides which rows are sampled.
    """

    classes: NDArray[Any]
    problems: int
    pairs: bool
    rule: str
    pool_size: int
    loss: float
    seed: int

    def encode(self, y: NDArray[Any]) -> Labels:
        """Return labels as numbers of classes; -1 where they are unknown."""
        at = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        return np.where(self.classes[at] == y, at, -1).astype(np.int32)


@dataclass
class Picks:
    """The rows of a piece that are worth learning, and a random sample of the others.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n, features)
        Their features.
    labels : ndarray of int32
        Their classes, by number.
    ids : ndarray of int64
        Their ids.
    wanted : ndarray of shape (n, problems)
        The problems that should learn them.
    sampled : ndarray of bool
        Which of them are in the random sample of all rows.
    tally : Tally
        What was counted.
    read_seconds, score_seconds : float
        The time that it took to read the rows, and to judge them.
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


# -- rows of blocks ----------------------------------------------------------------------------


def features_of(x: Any, rows: Ints | slice = slice(None)) -> Any:
    """Return rows of a block as an array of floats or a CSR matrix."""
    if hasattr(x, "iloc"):
        single = all(str(kind) == "float32" for kind in x.dtypes)
        some = x.iloc[rows].to_numpy(dtype=np.float32 if single else np.float64)
        return np.ascontiguousarray(some)
    if sp.issparse(x):
        some = sp.csr_array(x)[rows]
    else:
        some = np.asarray(x)[rows]
    if some.dtype not in (np.float32, np.float64):
        some = some.astype(np.float64)
    return canonical(some)


def labels_of(y: Any) -> NDArray[Any]:
    """Return the labels of a block as an array."""
    return np.asarray(y.to_numpy() if hasattr(y, "to_numpy") else y)


def rows_of(piece: Piece, y: Any, rules: Rules) -> tuple[Ints, Labels]:
    """Return the rows of a piece, by their place in the block, and their classes."""
    order, y = piece.order(), labels_of(y)
    rows = order[piece.start : piece.stop]
    if piece.per_class:
        every = rules.encode(y[order])
        first = [
            np.flatnonzero(every == label)[: piece.per_class] for label in np.unique(every).tolist()
        ]
        rows = order[np.union1d(np.concatenate(first), np.arange(piece.start, piece.stop))]
    return rows, rules.encode(y[rows])


# -- judging -----------------------------------------------------------------------------------


def sift_block(piece: Piece, rules: Rules, snapshot: Snapshot | None, x: Any, y: Any) -> Picks:
    """Judge rows of a block; return those that are worth learning."""
    began = time.perf_counter()
    rows, labels = rows_of(piece, y, rules)
    X = features_of(x, rows)
    return _sift(piece, rules, snapshot, X, labels, piece.first + rows, began)


def sift_source(piece: Piece, rules: Rules, snapshot: Snapshot | None, source: Any) -> Picks:
    """Judge rows of a source; return those that are worth learning."""
    began = time.perf_counter()
    assert piece.ids is not None
    X, y = source.read(piece.ids)
    labels = rules.encode(labels_of(y))
    return _sift(piece, rules, snapshot, features_of(X), labels, piece.first + piece.ids, began)


def _sift(
    piece: Piece,
    rules: Rules,
    snapshot: Snapshot | None,
    X: Any,
    labels: Labels,
    ids: Ints,
    began: float,
) -> Picks:
    read = time.perf_counter()
    signed = signs(labels, rules.problems, rules.pairs)
    tally = Tally(rows=len(ids), pairs=signed.size)
    if snapshot is None:
        wanted = (signed != 0).astype(np.uint8)
        tally.wanted = int(wanted.sum())
        sampled = np.zeros(len(ids), dtype=bool)
    else:
        rng = np.random.default_rng([rules.seed, piece.block + 1, int(ids[0]) if len(ids) else 0])
        sampled = rng.integers(SAMPLED, size=len(ids)) == 0
        wanted = judge(snapshot, rules, X, signed, ids, sampled, tally)
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


def judge(
    snapshot: Snapshot,
    rules: Rules,
    X: Any,
    signed: Float,
    ids: Ints,
    sampled: NDArray[np.bool_],
    tally: Tally,
) -> Flags:
    """Return which problems should learn which rows."""
    sieve = Sieve(rules.rule, rules.pool_size, rules.loss, rules.seed)
    scores = _scores(snapshot, sieve, X, signed, sampled, tally)
    margin = snapshot.margin
    wanted = np.zeros(scores.shape, dtype=np.uint8)
    for c in range(scores.shape[1]):
        if np.isfinite(margin[c]):
            wanted[sieve.picks(scores[:, c], margin[c]), c] = 1
        else:  # problems that cannot judge learn all
            wanted[:, c] = signed[:, c] != 0
    _leave_out_members(snapshot, ids, wanted)
    tally.inside += int((scores < margin).sum())
    tally.wanted += int(wanted.sum())
    return wanted


def _scores(
    snapshot: Snapshot,
    sieve: Sieve,
    X: Any,
    signed: Float,
    sampled: NDArray[np.bool_],
    tally: Tally,
) -> Single:
    """Return the scores of all pairs, infinite for those that are far."""
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


def _leave_out_members(snapshot: Snapshot, ids: Ints, wanted: Flags) -> None:
    """Unset the flags of support vectors in the problems that they count in already."""
    if len(snapshot.ids) == 0:
        return
    at = np.minimum(np.searchsorted(snapshot.ids, ids), len(snapshot.ids) - 1)
    known = np.flatnonzero(snapshot.ids[at] == ids)
    wanted[known] &= (snapshot.coefficients[:, at[known]] == 0).T


# -- rows as they are --------------------------------------------------------------------------


def take_rows(x: Any, rows: Ints | None) -> Any:
    """Return rows of a block as they are, all of them if `rows` is None."""
    if hasattr(x, "iloc"):
        return x if rows is None else x.iloc[rows]
    return x if rows is None else x[rows]


def take_labels(y: Any) -> NDArray[Any]:
    """Return the labels of a block."""
    return labels_of(y)

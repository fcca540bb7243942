"""Learning on the driver: the picked rows of each round, in the order of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Ints, Labels
from marginwise._core import Batch
from marginwise._engine.engine import Engine
from marginwise._training.loop import (
    SLICE_SECONDS,
    ArrayFeed,
    EveryRow,
    LookAhead,
    Step,
    Trainer,
)
from marginwise._training.sift import Flags, Tally
from marginwise.dask.plan import Round
from marginwise.dask.tasks import Picks, stacked


def joined(picks: Sequence[Picks]) -> Picks:
    """Concatenate the picks of several pieces; of rows with the same id, keep the first."""
    ids = np.concatenate([one.ids for one in picks])
    _, first = np.unique(ids, return_index=True)
    kept = np.sort(first)
    filled = [one.X for one in picks if len(one)] or [picks[0].X]
    return Picks(
        X=stacked(filled)[kept] if len(kept) < len(ids) else stacked(filled),
        labels=np.concatenate([one.labels for one in picks])[kept],
        ids=ids[kept],
        wanted=np.concatenate([one.wanted for one in picks])[kept],
        sampled=np.concatenate([one.sampled for one in picks])[kept],
        tally=Tally(),
    )


class Wanted(EveryRow):
    """Learns each row in the problems that want it.

    Parameters
    ----------
    wanted : ndarray of shape (rows, problems)
        Whether each problem wants each row.
    """

    def __init__(self, wanted: Flags) -> None:
        self._wanted = wanted

    def choose(self, engine: Engine, batch: Batch, rows: Ints) -> Ints:
        """Return the rows that some problem wants."""
        chosen = np.flatnonzero(self._wanted.any(axis=1)).astype(np.int64)
        self._wanted = np.ascontiguousarray(self._wanted[chosen])
        return chosen

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> int:
        """Learn rows for one time slice; return the number of rows that were learned."""
        wanted = self._wanted[len(self._wanted) - len(rows) :]
        return engine.native.learn_wanted(batch, rows, wanted, SLICE_SECONDS)


def learn_round(model: Any, current: Round, picks: Picks, rule: str) -> None:
    """Learn the picked rows of a round, and finish the model if the round ends a stage.

    With random selection, rows are learned as by `fit`: in windows, worst violators first, scored
    with the current model. With other selection rules, each row is learned in the problems that
    want it.

    Parameters
    ----------
    model : KernelClassifier
        The estimator that is trained.
    current : Round
        The round.
    picks : Picks
        Rows that were picked in the round.
    rule : str
        The selection rule.
    """
    trainer: Trainer = replace(model._trainer, verbose=0)
    finish = current.finish and trainer.finish_at_end
    native = model._engine.native
    native.count_since_finish(native.since_finish + max(len(current) - len(picks), 0))
    if len(picks) == 0:
        if finish:
            trainer.finish()
        return
    costs = model._penalties()[picks.labels]
    batch = model._new_rows(picks.X, picks.labels, costs, picks.ids)
    _foresee(model._engine, batch, picks.sampled)
    chooser: EveryRow = _chooser(rule, picks.labels, picks.wanted)
    rows = np.arange(len(picks), dtype=np.int64)
    step = Step(rows, finish, look_again=True, fresh=current.epoch == 0)
    trainer.train(ArrayFeed(batch, picks.ids), [step], chooser, total=len(rows), in_chunks=True)


def _chooser(rule: str, labels: Labels, wanted: Flags) -> EveryRow:
    return LookAhead(labels) if rule == "random" else Wanted(wanted)


def _foresee(engine: Engine, batch: Batch, sampled: NDArray[np.bool_]) -> None:
    """Record decision values of the random sample only: picked rows would bias them."""
    if engine.plan.foresees and batch.weighed:
        engine.native.foresee(batch, np.flatnonzero(sampled).astype(np.int64))
    batch.drop_weights()

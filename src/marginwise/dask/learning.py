"""What the driver learns of a round: the picked rows, in the order of the plan."""

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
    """Return what was picked of several pieces as one; of several rows with one id, the first."""
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
    """Learns rows in the problems that want them.

    Parameters
    ----------
    wanted : ndarray of shape (rows, problems)
        Which problems those are.
    """

    def __init__(self, wanted: Flags) -> None:
        self._wanted = wanted

    def choose(self, engine: Engine, batch: Batch, rows: Ints) -> Ints:
        """Return the rows that some problem wants."""
        chosen = np.flatnonzero(self._wanted.any(axis=1)).astype(np.int64)
        self._wanted = np.ascontiguousarray(self._wanted[chosen])
        return chosen

    def learn(self, engine: Engine, batch: Batch, rows: Ints) -> int:
        """Learn rows for a slice of time; return how many are done."""
        wanted = self._wanted[len(self._wanted) - len(rows) :]
        return engine.native.learn_wanted(batch, rows, wanted, SLICE_SECONDS)


def learn_round(model: Any, current: Round, picks: Picks, rule: str) -> None:
    """Learn the picked rows of a round, and finish the model if a stage ends with it.

    Rows that are chosen at random are learned as by `fit`: in windows, those that violate worst
    first, judged by the model as it is now. Rows of other rules of selection are learned in the
    problems that want them.

    Parameters
    ----------
    model : KernelClassifier
        The estimator that learns.
    current : Round
        The round.
    picks : Picks
        What was picked of it.
    rule : str
        The rule of selection.
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
    """Note decision values of the random sample: rows that were picked are not a fair one."""
    if engine.plan.foresees and batch.weighed:
        engine.native.foresee(batch, np.flatnonzero(sampled).astype(np.int64))
    batch.drop_weights()

"""Checkpoints: files from which an interrupted run on a cluster continues.

A checkpoint is written after the results of a round have arrived and before they are learned. At
that point, the model equals the snapshot that evaluates the next round, so that the file contains
the model and the picked rows, but no snapshot.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginwise._checks import Rule, boolean, current, integer, obey
from marginwise._files.format import estimator_class, guarded, unpack, write_state
from marginwise._training.checkpoint import FREE, Checkpoint
from marginwise._training.sift import Sieve, Sketch, Tally
from marginwise.dask.tasks import Picks

KIND = "DaskCheckpoint"
OWN_FREE = (*FREE, "client")  # parameters that do not change the model
_PARTS = {"estimator", "parameters", "source", "sift", "course", "picks", "sketch", "model"}
_COURSE: dict[str, Rule] = {
    "seed": integer(0, 2**32 - 1),
    "epoch": integer(0),
    "round": integer(0),
    "done": boolean(),
}


@dataclass
class Standing:
    """Position of a run. Together with the model, it suffices to continue without a difference.

    Parameters
    ----------
    seed : int
        Seed of the run.
    epoch, round : int
        Current pass, and the round of it to learn next.
    picks : Picks
        Rows that workers picked in that round.
    sketch : Sketch or None
        Coarse approximation of the model.
    done : bool, default=False
        Whether the run is complete.
    """

    seed: int
    epoch: int
    round: int
    picks: Picks
    sketch: Sketch | None
    done: bool = False


class RoundCheckpoint(Checkpoint):
    """A file from which an interrupted run on a cluster continues.

    Parameters
    ----------
    path : str or path-like
        The file.
    minutes : float
        Interval between checkpoints, in minutes.
    estimator : DaskClassifier
        The estimator that is trained.
    source : str
        Digest of the training rows.
    sift : float
        The argument `sift` of `fit`.
    """

    _standing: Standing

    def __init__(
        self,
        path: str | os.PathLike[str],
        minutes: float,
        estimator: Any,
        source: str,
        sift: float,
    ) -> None:
        self.path = Path(path)
        folder = self.path.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK) or self.path.is_dir():
            raise OSError(f"{self.path} cannot be a checkpoint: no file can be written there.")
        self._minutes = minutes
        self._estimator = estimator
        self._source = source
        self._sift = float(sift)
        self._warned = False
        self.due = time.monotonic() + 60 * minutes

    def write_standing(self, standing: Standing, *, last: bool) -> OSError | None:
        """Write the checkpoint; if the last one of a run fails, return the error."""
        self._standing = standing
        return self.write(None, None, last=last)  # type: ignore[arg-type]

    def _write(self, course: Any, sieve: Any) -> None:
        standing, local = self._standing, self._estimator.to_local()
        state = {
            "estimator": type(local).__name__,
            "parameters": self._parameters(),
            "source": self._source,
            "sift": self._sift,
            "course": {name: getattr(standing, name) for name in _COURSE},
            "picks": _picks_state(standing.picks),
            "sketch": {} if standing.sketch is None else dict(vars(standing.sketch)),
            "model": local._stored_state(),
        }
        write_state(self.path, KIND, state)

    def _parameters(self) -> dict[str, Any]:
        parameters = super()._parameters()
        return {name: value for name, value in parameters.items() if name not in OWN_FREE}

    def read_standing(self) -> Standing | None:
        """Restore the model and return the position of the run, or None if there is no file.

        Raises ModelFileError, naming the difference, if the file belongs to another run.
        """
        if not self.path.exists():
            return None
        found: Standing = guarded(self.path, lambda data: self._continued(_unpacked(data)))
        return found

    def _continued(self, state: dict[str, Any]) -> Standing:
        self._refuse_other(state)
        if not np.array_equal(state["model"]["classes_"], self._estimator.classes_):
            raise ValueError("it is of a run over other classes")
        self._take_over(state["model"])
        sketch = Sketch(**state["sketch"]) if state["sketch"] else None
        picks = _picks(state["picks"], state["model"])
        return Standing(picks=picks, sketch=sketch, **state["course"])

    def _refuse_other(self, state: dict[str, Any]) -> None:
        """Raise if a checkpoint belongs to another estimator, other rows or another `sift`."""
        name = self._estimator._local.__name__
        if state["estimator"] != name:
            self._refuse(f"it was made by a Dask{state['estimator']}, and this is a Dask{name}")
        for key, value in self._parameters().items():
            was = state["parameters"].get(key)
            if was != value:
                self._refuse(f"it was made with {key}={was!r}, and this run has {value!r}")
        if state["source"] != self._source:
            self._refuse("it is of a run over other rows, labels or blocks")
        if state["sift"] != self._sift:
            self._refuse(f"it was made with sift={state['sift']}, and this run has {self._sift}")


# -- validation of files -----------------------------------------------------------------------


def _picks_state(picks: Picks) -> dict[str, Any]:
    state: dict[str, Any] = {
        "labels": picks.labels,
        "ids": picks.ids,
        "wanted": picks.wanted,
        "sampled": picks.sampled.astype(np.uint8),
    }
    if not sp.issparse(picks.X):
        return {**state, "X": picks.X}
    lists = sp.csr_array(picks.X)
    indices, indptr = lists.indices.astype(np.int32), lists.indptr.astype(np.int64)
    return {**state, "data": lists.data, "indices": indices, "indptr": indptr}


def _picks(state: Any, model: dict[str, Any]) -> Picks:
    """Return the picked rows of a state; raise if they do not fit the model."""
    plan, classes = model["_machine"]["plan"], len(model["classes_"])
    names = {"labels", "ids", "wanted", "sampled"}
    lists = isinstance(state, dict) and "X" not in state
    names |= {"data", "indices", "indptr"} if lists else {"X"}
    if not isinstance(state, dict) or state.keys() != names:
        raise ValueError("it does not hold the rows that were picked")
    if not all(isinstance(array, np.ndarray) for array in state.values()):
        raise ValueError("the rows that were picked are not arrays")
    n, features = len(state["ids"]), model["n_features_in_"]
    if lists:
        parts = state["data"], state["indices"], state["indptr"]
        X = sp.csr_array(parts, shape=(n, features))
        X.check_format(full_check=True)
    else:
        X = state["X"]
    labels, values = state["labels"], X.data if lists else X
    fits = (
        X.shape == (n, features)
        and values.dtype in (np.float32, np.float64)
        and bool(np.isfinite(values).all())
        and labels.shape == (n,)
        and labels.dtype == np.int32
        and (n == 0 or (labels.min() >= 0 and labels.max() < classes))
        and state["ids"].dtype == np.int64
        and len(np.unique(state["ids"])) == n
        and state["wanted"].shape == (n, plan["problems"])
        and state["wanted"].dtype == np.uint8
        and state["sampled"].shape == (n,)
    )
    if not fits:
        raise ValueError("the rows that were picked do not fit the model")
    sampled = state["sampled"].astype(bool)
    return Picks(X, labels, state["ids"], state["wanted"], sampled, Tally())


def _unpacked(data: bytes) -> dict[str, Any]:
    """Return the parts of a checkpoint, checked as far as possible without the run."""
    _, state = unpack(data, [KIND])
    if state.keys() != _PARTS:
        raise ValueError(f"its parts are not those expected: {min(set(state) ^ _PARTS)!r:.40}")
    kind = estimator_class(state["estimator"])
    if not isinstance(state["model"], dict) or not isinstance(state["parameters"], dict):
        raise ValueError("it does not hold a model with its parameters")
    state["model"] = current(state["model"], kind)
    course = state["course"]
    if not isinstance(course, dict) or course.keys() != _COURSE.keys():
        raise ValueError("it does not state where the run stood")
    obey(_COURSE, course)
    kind._check_state(state["model"])
    if "_machine" not in state["model"]:
        raise ValueError("it does not hold a model that was learning")
    tally = dict.fromkeys(vars(Tally()), 0)
    Sieve.check({"loss": 0.0, "tally": tally, "sketch": state["sketch"]}, state["model"])
    return state

"""Checkpoints: files from which an interrupted run continues."""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from marginwise._checks import Rule, current, integer, non_negative, obey
from marginwise._engine.memory import AUTO
from marginwise._files.format import (
    ModelFileError,
    estimator_class,
    estimators,
    guarded,
    pack,
    unpack,
    write_state,
)
from marginwise._training.sift import Sieve
from marginwise._training.sources import Source, sample_rows
from marginwise._warn import warn

FREE = ("n_jobs", "verbose", "cache_size")  # parameters that do not change the model
KIND = "Checkpoint"


class LastCheckpointError(OSError):
    """The last checkpoint of a run could not be written, but the model has learned all rows."""


@dataclass
class Course:
    """Position of a run. Together with the model, it suffices to continue without a difference."""

    seed: int  # of the orders
    first: int  # id of row 0
    epoch: int = 0
    stage: int = 0
    done: int = 0  # rows of the stage
    seconds: float = 0.0  # spent so far


class Checkpoint:
    """A file from which an interrupted run continues.

    Parameters
    ----------
    path : str or path-like
        The file.
    minutes : float
        Interval between checkpoints, in minutes.
    estimator : KernelClassifier
        The model that learns.
    source : Source
        The source it learns from.
    ends : list of int
        The ids at which the stages of the source end.
    note : mapping or None
        Information that the caller stores in the file; see `read_note`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        minutes: float,
        estimator: Any,
        source: Source,
        ends: list[int],
        note: Mapping[str, Any] | None,
    ) -> None:
        name = type(estimator).__name__
        if name not in estimators() or callable(estimator.kernel):
            raise ValueError(
                f"this {name} cannot have a checkpoint: only estimators of marginwise with a "
                "kernel of its own have files."
            )
        self.path = Path(path)
        folder = self.path.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK) or self.path.is_dir():
            raise OSError(f"{self.path} cannot be a checkpoint: no file can be written there.")
        self._minutes = minutes
        self._estimator = estimator
        self._source = fingerprint(source, ends[-1])
        self._ends = ends
        self._note = None if note is None else dict(note)
        pack(KIND, {"note": self._note})  # raises if files do not support it
        self.due = time.monotonic() + 60 * minutes  # when to write again
        self._warned = False

    def write(self, course: Course, sieve: Sieve | None, *, last: bool) -> OSError | None:
        """Write the checkpoint; if the last one of a run fails, return the error.

        A full disk must not end a run. Training continues with a warning, and the next attempt
        follows when the next checkpoint is due.
        """
        try:
            self._write(course, sieve)
        except Exception as error:
            if last:
                return self._lost(error)
            if not self._warned:
                self._warned = True
                warn(
                    f"the checkpoint {self.path} could not be written: {_reason(error)}. Learning "
                    "continues, and the next attempt follows when a checkpoint is due again.",
                    RuntimeWarning,
                )
        self.due = time.monotonic() + 60 * self._minutes
        return None

    def _lost(self, cause: Exception) -> OSError:
        message = (
            f"the last checkpoint could not be written: {_reason(cause)}. The model has learned "
            "all rows and is kept: save it to another place"
        )
        number = getattr(cause, "errno", None) or errno.EIO
        error = LastCheckpointError(number, message, str(self.path))
        error.__cause__ = cause
        return error

    def _write(self, course: Course, sieve: Sieve | None) -> None:
        state = {
            "estimator": type(self._estimator).__name__,
            "parameters": self._parameters(),
            "source": self._source,
            "course": asdict(course),
            "sieve": None if sieve is None else sieve.state(),
            "model": self._estimator._stored_state(),
        }
        if self._note is not None:
            state["note"] = self._note
        write_state(self.path, KIND, state)

    def read(self, sieve: Sieve | None) -> Course | None:
        """Restore model and sieve; return the course, or None if there is no file.

        Raises ModelFileError, naming the difference, if the file belongs to another run.
        """
        if not self.path.exists():
            return None
        course: Course = guarded(self.path, lambda data: self._restored(_unpacked(data), sieve))
        return course

    def _restored(self, state: dict[str, Any], sieve: Sieve | None) -> Course:
        self._refuse_another(state, sieve)
        course = Course(**state["course"])
        if not self._within(course):
            raise ValueError("it stands beyond the source")
        if not np.array_equal(state["model"]["classes_"], self._estimator.classes_):
            raise ValueError("it is of a run over other classes")
        self._take_over(state["model"])
        if sieve is not None:
            sieve.restore(state["sieve"])
        return course

    def _take_over(self, state: dict[str, Any]) -> None:
        """Copy the stored state to the estimator, except its parameters."""
        model = self._estimator
        own = model.get_params(deep=False)
        auto = model.cache_size == "auto"
        plan = state["_machine"]["plan"]
        plan["cache_bytes"] = AUTO if auto else int(model.cache_size * 2**20)
        model.__dict__.clear()
        model.__setstate__({**state, **own})

    def _within(self, course: Course) -> bool:
        """Return whether a course is valid for the source."""
        ends = [0, *self._ends]
        stage = course.stage
        begun = stage < len(self._ends) and course.done <= ends[stage + 1] - ends[stage]
        counted = max(self._estimator.epochs, 1)
        return begun and course.epoch < counted and course.first + self._ends[-1] <= 2**63

    def _parameters(self) -> dict[str, Any]:
        parameters = self._estimator.get_params(deep=False)
        if isinstance(parameters.get("random_state"), np.random.RandomState):
            parameters["random_state"] = None  # the run has its own seed
        return {name: value for name, value in parameters.items() if name not in FREE}

    def _refuse_another(self, state: dict[str, Any], sieve: Sieve | None) -> None:
        """Raise if a checkpoint belongs to another estimator, source or training procedure."""
        name = type(self._estimator).__name__
        if state["estimator"] != name:
            self._refuse(f"it was made by {state['estimator']}, and this is {name}")
        for key, value in self._parameters().items():
            was = state["parameters"].get(key)
            if was != value:
                self._refuse(f"it was made with {key}={was!r}, and this {name} has {value!r}")
        if state["source"] != self._source:
            self._refuse("it is of a run over another source: other examples, labels or variants")
        was_sifted = state["sieve"] and state["sieve"]["loss"]
        is_sifted = sieve and sieve.loss
        if was_sifted != is_sifted:
            self._refuse(f"it was made with sift={was_sifted}, and this run has {is_sifted}")

    def _refuse(self, reason: str) -> None:
        raise ModelFileError(f"{self.path} cannot be continued: {reason}.")


def _reason(error: Exception) -> str:
    """Return what went wrong, without the name of a temporary file."""
    return str(getattr(error, "strerror", None) or error).rstrip(".") or type(error).__name__


def fingerprint(source: Source, n: int) -> str:
    """Return a digest that identifies a source: its own, or one of some of its rows."""
    if hasattr(source, "fingerprint"):
        return str(source.fingerprint())
    X, y = source.read(sample_rows(source, n, 2000))
    dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    digest = hashlib.sha256(f"{n} {dense.shape} {dense.dtype}".encode())
    digest.update(np.ascontiguousarray(dense).data)
    digest.update(repr(np.asarray(y).tolist()).encode())
    return digest.hexdigest()


def read_note(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the note in a checkpoint; empty if the run had none.

    Parameters
    ----------
    path : str or path-like
        The checkpoint.

    Returns
    -------
    note : dict
        The `note` that was passed to `learn_from`.
    """
    note: dict[str, Any] = guarded(path, lambda data: _unpacked(data).get("note", {}))
    return note


# -- what a file must satisfy ------------------------------------------------------------------

_PARTS = {"estimator", "parameters", "source", "course", "sieve", "model"}
_COURSE: dict[str, Rule] = {
    **dict.fromkeys(("epoch", "stage", "done"), integer(0)),
    "first": integer(0, 2**63 - 1),
    "seed": integer(0, 2**32 - 1),
    "seconds": non_negative(),
}


def _unpacked(data: bytes) -> dict[str, Any]:
    """Return the parts of a checkpoint, checked as far as possible without the run."""
    _, state = unpack(data, [KIND])
    if state.keys() - {"note"} != _PARTS:
        other = min((set(state) - {"note"}) ^ _PARTS)
        raise ValueError(f"its parts are not those expected: {other!r:.40}")
    if not isinstance(state.get("note", {}), dict):
        raise ValueError("its note is not a dict")
    kind = estimator_class(state["estimator"])
    for part in ("model", "parameters"):
        state[part] = current(state[part], kind) if isinstance(state[part], dict) else state[part]
    course = state["course"]
    if not isinstance(course, dict) or course.keys() != _COURSE.keys():
        raise ValueError("it does not state where the run stood")
    obey(_COURSE, course)
    kind._check_state(state["model"])
    parameters, model = state["parameters"], state["model"]
    if not isinstance(parameters, dict) or "_machine" not in model:
        raise ValueError("it does not hold a model that was learning, with its parameters")
    for name in parameters.keys() & (model.keys() - {"random_state"}):
        if parameters[name] != model[name]:
            raise ValueError(f"its model has another {name} than it states")
    if state["sieve"] is not None:
        Sieve.check(state["sieve"], state["model"])
    return state

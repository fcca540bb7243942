"""Files of active learners.

A file contains the log of answers. Loading replays the log, which gives the same model. The scores
of the whole pool are also stored, because they are sums whose last bits depend on the time of their
computation.
"""

from __future__ import annotations

import os
from itertools import repeat
from typing import Any

import numpy as np

from marginwise._checks import check_params, current
from marginwise._files.format import (
    LEARNER_FORMAT,
    estimator_class,
    estimators,
    guarded,
    pack,
    unpack,
    write_file,
)
from marginwise.active.answers import PURPOSES
from marginwise.active.choose import model_for
from marginwise.active.learner import ActiveLearner
from marginwise.active.log import Event, check_log
from marginwise.active.models import is_fitted
from marginwise.active.own import OwnModel
from marginwise.active.questions import STRATEGIES
from marginwise.active.raw_pool import pool_for
from marginwise.active.stopping import RULES
from marginwise.active.verdict import StoppingRule, Verdict

NAME = "ActiveLearner"
OTHER = "it belongs to another pool than X_pool"
KINDS = ("teach", "skip", "finish", "correct", "withdraw")  # "withdraw" is a correction to None
MOST_SEED = 2**31 - 1
KEYS = {
    "estimator",
    "parameters",
    "pool",
    "strategy",
    "pool_size",
    "stop",
    "classes",
    "noted",
    "seed",
    "verbose",
    "log",
    "asked",
    "seconds",
    "verdict",
    "scores",
    "sizes",
    "foreseen",
}
LATER = {"sizes", "foreseen"}  # missing in files before format 6


def save_learner(learner: ActiveLearner, path: str | os.PathLike[str]) -> None:
    """Write a learner to a file."""
    given = learner._model.given
    name = type(given).__name__
    ours = name in estimators() and type(given) is estimator_class(name)
    named = ours and not is_fitted(given) and not callable(given.kernel)
    model = learner._model
    state = {
        "estimator": name if named else None,
        "parameters": given.get_params(deep=False) if named else None,
        "pool": learner._pool.fingerprint(),
        "strategy": None if callable(learner.strategy) else learner.strategy,
        "pool_size": learner.pool_size,
        "stop": _rule_as_dict(learner.stop),
        "classes": learner._given,
        "noted": _noted_as_dict(learner._noted),
        "seed": learner._seed,
        "verbose": learner.verbose,
        "log": _log_as_dict(learner._log),
        "asked": _asked_as_dict(learner._scores_asked, learner._audited),
        "sizes": [learner._pool.first, learner._pool.n],
        "foreseen": _foreseen_as_dict(learner._foreseen),
        "seconds": np.array([step["seconds"] for step in learner.history_], dtype=np.float64),
        "verdict": _verdict_as_list(learner),
        "scores": model.kept_state if isinstance(model, OwnModel) else None,
    }
    write_file(path, pack(NAME, state, LEARNER_FORMAT))


def load_learner(
    kind: type[ActiveLearner], path: Any, X_pool: Any, estimator: Any, strategy: Any
) -> ActiveLearner:
    """Read a learner from a file."""
    # Before reading the file, so that errors in the arguments are not attributed to the file.
    pool = pool_for(X_pool, estimator)
    if estimator is not None:
        model_for(estimator, pool)
    learner: ActiveLearner = guarded(
        path, lambda data: _restored(kind, data, X_pool, estimator, strategy)
    )
    return learner


def _restored(
    kind: type[ActiveLearner], data: bytes, X_pool: Any, estimator: Any, strategy: Any
) -> ActiveLearner:
    _, state = unpack(data, [NAME])
    if state.keys() != KEYS and state.keys() != KEYS - LATER:
        odd = min(set(state) ^ KEYS)
        raise ValueError(f"its parts are not those expected: {odd!r:.40}")
    if strategy is None and state["strategy"] not in STRATEGIES:
        raise ValueError(
            "its strategy is a function, which files do not contain: pass it as strategy"
        )
    noted = _noted_from_dict(state["noted"], X_pool)
    learner = kind(
        _estimator(state, estimator),
        X_pool,
        strategy=state["strategy"] if strategy is None else strategy,
        pool_size=state["pool_size"],
        stop=_rule_from_dict(state["stop"]),
        classes=state["classes"],
        y_pool=noted,
        verbose=state["verbose"],
    )
    first, n = _sizes(state, learner._pool.n)
    if learner._pool.fingerprint(n) != state["pool"]:
        raise ValueError(OTHER)
    learner._pool.first = first
    _go_through(learner, state)
    if state["scores"] is not None and learner._pool.n == n:  # else the pool was extended
        model = learner._model
        if not isinstance(model, OwnModel) or not model.ready:
            raise ValueError("it has scores of the pool, but no model")
        model.restore_kept(state["scores"])
    return learner


def _sizes(state: dict[str, Any], n: int) -> tuple[int, int]:
    """Return the initial and the final number of rows of the pool."""
    if "sizes" not in state:
        return n, n
    first, last = (_natural(size, 2**62) for size in state["sizes"])
    if not 1 <= first <= last <= n:
        raise ValueError(OTHER)
    return first, last


def _estimator(state: dict[str, Any], given: Any) -> Any:
    if state["estimator"] is None or given is not None:
        if given is None:
            raise ValueError(
                "its estimator is not an unfitted one of marginwise, and files contain no foreign "
                "code: pass it as estimator"
            )
        return given
    kind = estimator_class(state["estimator"])
    found = kind(**current(state["parameters"], kind))
    check_params(found, found._rules)
    return found


def _go_through(learner: ActiveLearner, state: dict[str, Any]) -> None:
    """Replay the log and restore the remaining state."""
    learner._seed = _natural(state["seed"], MOST_SEED)
    learner._scores_asked, learner._audited = _asked_from_dict(state["asked"])
    learner._foreseen = _foreseen_from_dict(state.get("foreseen"))
    log = _log_from_dict(state["log"])
    if "purposes" not in state["log"]:
        for event in log:
            event.purposes = [learner._purpose(row) for row in event.rows if event.labels]
    check_log(log, learner._pool.n, learner._given)
    learner._begin()
    learner._rebuild(log)
    for step, seconds in zip(learner.history_, state["seconds"].tolist(), strict=True):
        step["seconds"] = seconds
    if len(state["seconds"]):
        learner._started -= float(state["seconds"][-1])
    if state["verdict"] is not None:
        stop, reason = state["verdict"]
        learner._verdict = len(learner._log), learner._rule, Verdict(bool(stop), str(reason))


def _natural(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r:.40} is not an integer from 0 to {most}")
    return value


# -- labels, rules and logs as plain values --------------------------------------------------------


def _rule_as_dict(rule: StoppingRule | str | None) -> Any:
    if rule is None or isinstance(rule, str):
        return rule
    name = type(rule).__name__
    if RULES.get(name) is not type(rule):
        raise ValueError(
            f"a learner with the stopping rule {rule!r} cannot be saved: files contain the rules "
            f"of marginwise only. Set learner.stop to None or to one of {', '.join(RULES)}."
        )
    values = rule.values()
    if "rules" in values:
        values["rules"] = [_rule_as_dict(part) for part in values["rules"]]
    return {"rule": name, **values}


def _rule_from_dict(said: Any) -> Any:
    if said is None or isinstance(said, str):
        return said
    values = dict(said)
    name = values.pop("rule")
    if name not in RULES:
        raise ValueError(f"it has an unknown stopping rule {name!r:.40}")
    if "rules" in values:
        values["rules"] = tuple(_rule_from_dict(part) for part in values["rules"])
    return RULES[name](**values)


def _verdict_as_list(learner: ActiveLearner) -> list[Any] | None:
    """Return the verdict at the end of `run` if it is still valid."""
    kept = learner._verdict
    holds = kept is not None and kept[:2] == (len(learner._log), learner._rule)
    return list(kept[2]) if kept is not None and holds else None


def _noted_as_dict(noted: Any) -> dict[str, Any] | None:
    if noted is None:
        return None
    rows = np.flatnonzero([label is not None for label in noted.tolist()])
    labels = noted[rows].tolist()
    return {"n": len(noted), "rows": rows, "labels": np.array(labels) if labels else None}


def _noted_from_dict(said: dict[str, Any] | None, X_pool: Any) -> Any:
    if said is None:
        return None
    n = X_pool.shape[0] if hasattr(X_pool, "shape") else len(X_pool)
    if said["n"] > n:
        raise ValueError(OTHER)
    noted = np.empty(n, dtype=object)
    if said["labels"] is not None:
        noted[said["rows"]] = said["labels"].tolist()
    return noted


def _log_as_dict(log: list[Event]) -> dict[str, Any]:
    kinds = ["withdraw" if e.kind == "correct" and e.labels == [None] else e.kind for e in log]
    labels = [label for event in log for label in event.labels if label is not None]
    purposes = [PURPOSES.index(why) for event in log for why in event.purposes]
    return {
        "kinds": np.array([KINDS.index(kind) for kind in kinds], dtype=np.uint8),
        "counts": np.array([len(event.rows) for event in log], dtype=np.int64),
        "rows": np.array([row for event in log for row in event.rows], dtype=np.int64),
        "labels": np.array(labels) if labels else None,
        "purposes": np.array(purposes, dtype=np.uint8),
    }


def _log_from_dict(said: dict[str, Any]) -> list[Event]:
    kinds, counts = said["kinds"].tolist(), said["counts"].tolist()
    most = len(said["rows"])
    rows = iter(said["rows"].tolist())
    labels = iter([] if said["labels"] is None else said["labels"].tolist())
    purposes = iter(said["purposes"].tolist()) if "purposes" in said else repeat(0)
    log = []
    for kind, count in zip(kinds, counts, strict=True):
        event = Event(KINDS[kind], [next(rows) for _ in range(_natural(count, most))])
        if event.kind in ("teach", "correct"):
            event.labels = [next(labels) for _ in event.rows]
        if event.kind == "teach":
            event.purposes = [PURPOSES[next(purposes)] for _ in event.rows]
        if event.kind == "withdraw":
            event = Event("correct", event.rows, [None])
        log.append(event)
    parts = (rows, labels, purposes if "purposes" in said else iter(()))
    if any(next(part, None) is not None for part in parts):
        raise ValueError("its log has more rows or labels than events")
    return log


def _foreseen_as_dict(foreseen: dict[int, Any]) -> dict[str, Any] | None:
    if not foreseen:
        return None
    rows = np.array(list(foreseen), dtype=np.int64)
    return {"rows": rows, "labels": np.array(list(foreseen.values()))}


def _foreseen_from_dict(said: dict[str, Any] | None) -> dict[int, Any]:
    return (
        {}
        if said is None
        else dict(zip(said["rows"].tolist(), said["labels"].tolist(), strict=True))
    )


def _asked_as_dict(asked: dict[int, Any], audited: set[int]) -> dict[str, Any]:
    width = max((np.size(score) for score in asked.values() if score is not None), default=1)
    scores = np.full((len(asked), width), np.nan)
    for k, score in enumerate(asked.values()):
        if score is not None:
            scores[k, : np.size(score)] = score
    rows = {"rows": np.array(list(asked), dtype=np.int64), "scores": scores}
    return {**rows, "audited": np.array(sorted(audited), dtype=np.int64)}


def _asked_from_dict(said: dict[str, Any]) -> tuple[dict[int, Any], set[int]]:
    def value(score: Any) -> Any:
        known = score[~np.isnan(score)]
        return None if not len(known) else float(known[0]) if len(known) == 1 else known.tolist()

    scores = said["scores"]
    asked = {row: value(scores[k]) for k, row in enumerate(said["rows"].tolist())}
    return asked, set(said["audited"].tolist() if "audited" in said else ())

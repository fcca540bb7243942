"""Scores of a search as a table by C and gamma."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float

WANTED = ("C", "gamma")


@dataclass(frozen=True, eq=False)
class Table:
    """Scores by the values of one or two parameters.

    Parameters
    ----------
    names
        Searched parameters among C and gamma.
    values
        Sorted values of each parameter.
    scores
        Mean test scores, with one axis per parameter; NaN for missing scores.
    deviations
        Standard deviations over the folds.
    dropped
        Whether the search eliminated the values early.
    best
        Index of the selected values.
    """

    names: list[str]
    values: list[list[Any]]
    scores: Float
    deviations: Float
    dropped: NDArray[np.bool_]
    best: tuple[int, ...] | None


@dataclass
class _Cell:
    """Last score of a candidate, and whether the search eliminated it early."""

    score: float = np.nan
    deviation: float = 0.0
    dropped: bool = False


def scores_of(search: Any, metric: str) -> Table:
    """Return the scores of a fitted search by C and gamma.

    A candidate of a halving search has one row per iteration, and its last score is used. It was
    eliminated if other candidates have later iterations, or if its last score is missing.
    """
    results = _results(search)
    scores = _column(results, f"mean_test_{metric}")
    columns = _parameters(results)
    names = [name for name in WANTED if name in columns]
    rows = [k for k in range(len(scores)) if all(_is_set(columns[name][k]) for name in names)]
    values = [sorted({columns[name][k] for k in rows}, key=_by_size) for name in names]
    place = {
        k: tuple(each.index(columns[name][k]) for name, each in zip(names, values, strict=True))
        for k in rows
    }
    cells = _cells(results, metric, scores, place)
    shape = tuple(len(each) for each in values)
    filled: dict[str, NDArray[Any]] = {
        name: np.array([getattr(cells.get(at, _Cell()), name) for at in np.ndindex(shape)])
        for name in ("score", "deviation", "dropped")
    }
    score, deviation, dropped = (array.reshape(shape) for array in filled.values())
    best = _best(search, place, score, dropped)
    return Table(names, values, score, deviation, dropped, best)


def _results(search: Any) -> dict[str, Any]:
    if not hasattr(search, "fit"):
        raise TypeError(
            f"search is of type {type(search).__name__}; expected a fitted search such as "
            "GridSearchCV. Pass the search itself, not its results."
        )
    check_is_fitted(search)
    if not hasattr(search, "cv_results_"):
        raise TypeError(
            f"{type(search).__name__} has no cv_results_; TuningDisplay needs a fitted search such "
            "as GridSearchCV."
        )
    results: dict[str, Any] = search.cv_results_
    return results


def _column(results: dict[str, Any], name: str) -> Float:
    if name not in results:
        known = [key[len("mean_test_") :] for key in results if key.startswith("mean_test_")]
        raise ValueError(
            f"cv_results_ has no {name!r}; expected metric to be one of {known}. Pass one of them "
            "as metric."
        )
    return np.asarray(results[name], dtype=np.float64)


def _parameters(results: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the values of C and gamma in each row, by parameter name without prefix."""
    found: dict[str, list[Any]] = {}
    for key, values in results.items():
        name = key.removeprefix("param_").rpartition("__")[2]
        if not key.startswith("param_") or name not in WANTED:
            continue
        if name in found:
            raise ValueError(
                f"cv_results_ has several parameters named {name}, {key!r} among them; expected "
                "one. Search for the parameters of one estimator."
            )
        found[name] = list(values)
    if not found:
        searched = [key for key in results if key.startswith("param_")]
        raise ValueError(
            f"the search has neither C nor gamma among its parameters {searched}; expected one of "
            "them or both. Plot other parameters with ValidationCurveDisplay of scikit-learn."
        )
    return found


def _is_set(value: Any) -> bool:
    """Return whether a candidate has a value, which is not always the case for lists of grids."""
    return value is not np.ma.masked and value is not None


def _by_size(value: Any) -> tuple[int, Any]:
    """Sort key: numbers by size, then names such as "scale"."""
    return (1, value) if isinstance(value, str) else (0, value)


def _cells(
    results: dict[str, Any], metric: str, scores: Float, place: dict[int, tuple[int, ...]]
) -> dict[tuple[int, ...], _Cell]:
    """Return the cell of the best candidate for each pair of values."""
    deviations = np.asarray(results.get(f"std_test_{metric}", np.zeros(len(scores))), np.float64)
    rounds = np.asarray(results.get("iter", np.zeros(len(scores))), dtype=np.int64)
    searched = [values for key, values in results.items() if key.startswith("param_")]
    candidates: dict[tuple[str, ...], list[int]] = {}
    for k in sorted(place, key=lambda k: rounds[k]):
        candidates.setdefault(tuple(str(values[k]) for values in searched), []).append(k)
    cells: dict[tuple[int, ...], _Cell] = {}
    for rows in candidates.values():
        scored = [k for k in rows if np.isfinite(scores[k])]
        early = rounds[rows[-1]] < rounds.max() or not np.isfinite(scores[rows[-1]])
        cell = _Cell(dropped=bool(early))
        if scored:
            cell.score, cell.deviation = float(scores[scored[-1]]), float(deviations[scored[-1]])
        before = cells.get(place[rows[0]])
        if before is None or _rank(cell) > _rank(before):
            cells[place[rows[0]]] = cell
    return cells


def _rank(cell: _Cell) -> tuple[bool, bool, float]:
    """Sort key of candidates: those that were not eliminated rank higher, then larger scores."""
    known = np.isfinite(cell.score)
    return bool(known), not cell.dropped, cell.score if known else 0.0


def _best(
    search: Any, place: dict[int, tuple[int, ...]], scores: Any, dropped: Any
) -> tuple[int, ...] | None:
    """Return the index that the search selected, or the index of the best score."""
    chosen = getattr(search, "best_index_", None)
    if chosen is not None:
        return place.get(int(chosen))
    kept = np.where(dropped | ~np.isfinite(scores), -np.inf, scores)
    if not np.isfinite(kept).any():
        return None
    where = np.unravel_index(int(np.argmax(kept)), kept.shape)
    return tuple(int(k) for k in where)

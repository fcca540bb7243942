"""Results of a search, in the form of scikit-learn's `GridSearchCV`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import rankdata

from marginwise._files.engine_state import check_array, require_names
from marginwise._tuning.rounds import Round, mean_scores

BY_PAIR = ("C", "gamma")
BY_FOLD = ("scores", "fit_seconds", "score_seconds")
COUNTS = ("iteration", "rows")


def joined(rounds: list[Round]) -> dict[str, Any]:
    """Return all rounds as named arrays, which can be stored."""
    found: dict[str, Any] = {
        name: np.concatenate([getattr(result, name) for result in rounds])
        for name in (*BY_PAIR, *BY_FOLD)
    }
    sizes = [len(result.C) for result in rounds]
    found["iteration"] = np.repeat(np.arange(len(rounds), dtype=np.int64), sizes)
    found["rows"] = np.repeat(np.array([r.rows for r in rounds], dtype=np.int64), sizes)
    found["best"] = sum(sizes[:-1]) + rounds[-1].best
    found["oof"] = rounds[-1].oof
    return found


def cv_results(found: Mapping[str, Any], names: tuple[str, ...], halving: bool) -> dict[str, Any]:
    """Return the table of a search over parameters `names`, one row per pair and round."""
    scores = found["scores"]
    table: dict[str, Any] = {}
    for name in ("fit", "score"):
        seconds = found[f"{name}_seconds"]
        table[f"mean_{name}_time"] = seconds.mean(axis=1)
        table[f"std_{name}_time"] = seconds.std(axis=1)
    for name in names:
        table[f"param_{name}"] = np.ma.MaskedArray(found[name].copy(), mask=False)
    pairs = zip(*(found[name].tolist() for name in names), strict=True)
    table["params"] = [dict(zip(names, values, strict=True)) for values in pairs]
    for fold in range(scores.shape[1]):
        table[f"split{fold}_test_score"] = scores[:, fold].copy()
    table["mean_test_score"] = scores.mean(axis=1)
    table["std_test_score"] = scores.std(axis=1)
    if halving:
        table["iter"] = found["iteration"].copy()
        table["n_resources"] = found["rows"].copy()
    # Later rounds, which use more rows, rank before earlier ones.
    means = mean_scores(scores)
    order = np.lexsort((-means, -found["iteration"]))
    places = np.empty(len(order))
    keys = np.stack([-found["iteration"], -means])[:, order]
    places[order] = np.cumsum(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)])
    table["rank_test_score"] = rankdata(places, method="min").astype(np.int32)
    return table


def check_search(found: Any) -> None:
    """Raise ValueError unless arrays from a file are valid results of a search."""
    if not isinstance(found, dict):
        raise ValueError("_search must be a dict")
    require_names({*BY_PAIR, *BY_FOLD, *COUNTS, "best", "oof"}, set(found), "_search")
    scores, oof = found["scores"], found["oof"]
    if not (isinstance(scores, np.ndarray) and scores.ndim == 2 and min(scores.shape) >= 1):
        raise ValueError("_search: scores must be pairs by folds")
    if not (isinstance(oof, np.ndarray) and oof.ndim == 2 and oof.dtype == np.float64):
        raise ValueError("_search: oof must be rows by problems")
    pairs = len(scores)
    for name in BY_FOLD:
        check_array(name, found[name], "float64", scores.shape)
    for name in BY_PAIR:
        check_array(name, found[name], "float64", (pairs,))
        if not (np.isfinite(found[name]) & (found[name] > 0)).all():
            raise ValueError(f"_search: {name} must be finite and above 0")
    for name in COUNTS:
        check_array(name, found[name], "int64", (pairs,))
    if type(found["best"]) is not int or not 0 <= found["best"] < pairs:
        raise ValueError("_search: best must be one of the pairs")

"""Curves of errors and support vectors against the examples that a selection has learned."""

from __future__ import annotations

from typing import Any

from reproduce.bordes2005.lasvm import measured
from reproduce.experiment import Results, Table, Values
from reproduce.rows import cell

LABELS = {
    "random": "RANDOM",
    "gradient": "GRADIENT",
    "active": "ACTIVE",
    "autoactive": "AUTOACTIVE",
}


def model_after(rows: int, selection: str, split: Any, seed: int, params: dict[str, Any]) -> Any:
    """Return a model that has learned so many rows, finished."""
    import numpy as np

    from marginwise import OnlineSVC

    if selection == "random":
        order = np.random.default_rng(seed).permutation(len(split.y))[:rows]
        model = OnlineSVC(**params, reprocess_when="each", random_state=seed)
        model.partial_fit(split.X[order], split.y[order], classes=np.unique(split.y))
        return model.finish()
    model = OnlineSVC(**params, selection=selection, stop=rows, random_state=seed)
    return model.fit(split.X, split.y)


def curve(
    counts: list[int], selection: str, split: Any, seed: int, params: dict[str, Any]
) -> Values:
    """Measure a selection at several numbers of examples, each learned from the start."""
    from reproduce.measures import timed

    model_after(min(counts), selection, split, seed, params)  # so that no point pays for imports
    found: dict[str, list[float]] = {"examples": [], "error": [], "support_vectors": [], "cpu": []}
    for rows in counts:
        model, seconds = timed(lambda n=rows: model_after(n, selection, split, seed, params))
        one = measured(model, split, seconds)
        found["examples"].append(rows)
        found["error"].append(one["error"])
        found["support_vectors"].append(one["support_vectors"])
        found["cpu"].append(seconds["cpu"])
    return found


def solution(split: Any, seed: int, params: dict[str, Any]) -> Values:
    """Measure the SVM solution, which LIBSVM computes in the paper."""
    from marginwise import OnlineSVC
    from reproduce.measures import timed

    model = OnlineSVC(**params, epochs="converge", random_state=seed)
    _, seconds = timed(lambda: model.fit(split.X, split.y))
    return measured(model, split, seconds)


def ends(results: Results, cases: dict[str, str], title: str = "") -> Table:
    """Return the best and the last point of each curve."""
    rows = []
    for case, label in cases.items():
        at, errors, vectors, seconds = (
            results.curve(case, name) for name in ("examples", "error", "support_vectors", "cpu")
        )
        if errors:
            best = min(range(len(errors)), key=errors.__getitem__)
            for k, words in ((best, "smallest error"), (len(errors) - 1, "last point")):
                counts = [f"{at[k]:,.0f}", cell(errors[k]), f"{vectors[k]:,.0f}"]
                rows.append([f"{label}, {words}", *counts, f"{seconds[k]:.1f}"])
        elif case in results:
            values = (results.mean(case, *p) for p in (("error",), ("support_vectors",)))
            error, count = values
            cpu = results.median(case, "fit", "cpu")
            rows.append([label, "all", cell(error), cell(count, "{:,.0f}"), cell(cpu, "{:.1f}")])
    return Table(["", "examples", "error, %", "support vectors", "CPU seconds"], rows, title)

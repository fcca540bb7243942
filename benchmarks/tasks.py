"""The tasks of a worker process. Arguments and results are plain values."""

from __future__ import annotations

import gc
import hashlib
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import memory
import numpy as np
import scipy.sparse as sp
from contestants import CONTESTANTS
from datasets import Split, load
from numpy.typing import NDArray
from sklearn.base import clone

MEGABYTE = 2**20


@dataclass(frozen=True)
class Setting:
    """Settings that the parent process passes to every worker."""

    folder: str
    seed: int
    threads: int
    quick: bool


def timed(function: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    value = function()
    return value, {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def percent(wrong: NDArray[np.bool_]) -> float:
    return 100 * float(np.mean(wrong))


# -- fit and predict -----------------------------------------------------------------------------


def fit(
    setting: Setting,
    *,
    data: str,
    contestant: str,
    form: str,
    params: dict[str, Any],
    extras: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Time `fit` and `predict`; measure error, size and memory of the model."""
    split = load(data, setting.folder, form=form, seed=setting.seed, quick=setting.quick)
    model = CONTESTANTS[contestant](params, setting.threads, setting.seed)
    warm_up(clone(model), split)
    gc.collect()
    memory.forget_peak()
    before = memory.resident()
    _, fit_seconds = timed(partial(model.fit, split.X, split.y))
    growth = memory.peak() - before
    labels, predict_seconds = timed(partial(model.predict, split.X_test))
    result = {
        "fit": fit_seconds,
        "predict": predict_seconds,
        "error": percent(labels != split.y_test),
        "support_vectors": len(getattr(model, "support_", ())),
        "growth_mb": growth / MEGABYTE,
        "dense_mb": 4 * split.X.shape[0] * split.X.shape[1] / MEGABYTE,
        "rows": [split.X.shape[0], split.X_test.shape[0]],
    }
    if contestant == "OnlineSVC":
        result |= {"stats": model.stats_, "fingerprint": fingerprint(model)}
    for extra in extras:
        result |= EXTRAS[extra](model, split)
    return result


def warm_up(model: Any, split: Split, rows_per_class: int = 20) -> None:
    """Learn a few rows, so that loading libraries is not timed."""
    rows = np.concatenate(
        [np.flatnonzero(split.y == label)[:rows_per_class] for label in np.unique(split.y)]
    )
    model.fit(split.X[rows], split.y[rows]).predict(split.X[rows])


def fingerprint(model: Any) -> str:
    """Return a hash that is the same for bit-identical models."""
    digest = hashlib.sha256(np.ascontiguousarray(model.support_).tobytes())
    digest.update(np.ascontiguousarray(model.dual_coef_).tobytes())
    digest.update(np.ascontiguousarray(model.intercept_).tobytes())
    return digest.hexdigest()


def floor(model: Any, split: Split, rows: int = 2048, members: int = 4096) -> dict[str, Any]:
    """Time the bare product of the kernel values of the fit, a lower bound on its time."""
    from marginwise import _core

    if not hasattr(_core, "product_seconds"):
        return {"floor_seconds": None}
    block, held = (_dense32(split.X[k]) for k in (slice(rows), model.support_[:members]))
    values = len(block) * len(held)
    per_value = {
        name: min(_core.product_seconds(block, held, model.gamma, lists) for _ in range(3)) / values
        for name, lists in (("dense", False), ("zero-skipping", True))
    }
    evaluations = model.stats_["kernel_evaluations"]
    return {
        "floor_seconds": evaluations * min(per_value.values()),
        "nanoseconds_per_value": {name: 1e9 * seconds for name, seconds in per_value.items()},
    }


def _dense32(X: Any) -> NDArray[np.float32]:
    return np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=np.float32)


def batches(model: Any, split: Split) -> dict[str, Any]:
    """Measure how much decision values depend on the batch of a row."""
    whole = model.decision_function(split.X_test)
    n = len(whole)
    picks = np.random.default_rng(0).permutation(n)
    cuts = [picks[k : k + 1] for k in range(20)]
    cuts += [picks[:size] for size in (2, 7, 33, 257, 1000) if size <= n]
    gaps = [np.abs(model.decision_function(split.X_test[cut]) - whole[cut]).max() for cut in cuts]
    return {"batch_gap": float(max(gaps))}


EXTRAS: dict[str, Callable[[Any, Split], dict[str, Any]]] = {"floor": floor, "batches": batches}


# -- features with an offset or another scale -----------------------------------------------------

OFFSET = 1e4
SCALES = (1e-3, 1e3, 1e6)


def offset(setting: Setting, *, data: str, params: dict[str, Any]) -> dict[str, Any]:
    """Compare predictions of models on shifted and scaled features with those on plain ones."""
    split = load(data, setting.folder, seed=setting.seed, quick=setting.quick)
    poly = {**params, "C": 1.0, "kernel": "poly", "degree": 3, "coef0": 1.0}
    shares = _scaled_shares(setting, split, params, "rbf") | _scaled_shares(
        setting, split, poly, "poly"
    )
    plain = _predictions(setting, split, params)
    moved = Split(split.X + OFFSET, split.y, split.X_test + OFFSET, split.y_test)
    shares["rbf + 1e4"] = percent(_predictions(setting, moved, params) == plain)
    return {"equal_percent": shares, "test_rows": len(split.y_test)}


def _scaled_shares(
    setting: Setting, split: Split, params: dict[str, Any], kernel: str
) -> dict[str, float]:
    plain = _predictions(setting, split, params)
    shares = {}
    for scale in SCALES:
        scaled = Split(split.X * scale, split.y, split.X_test * scale, split.y_test)
        matched = {**params, "gamma": params["gamma"] / scale**2}
        equal = _predictions(setting, scaled, matched) == plain
        shares[f"{kernel} x {scale:g}"] = percent(equal)
    return shares


def _predictions(setting: Setting, split: Split, params: dict[str, Any]) -> NDArray[Any]:
    model = CONTESTANTS["OnlineSVC"](params, setting.threads, setting.seed)
    labels: NDArray[Any] = model.fit(split.X, split.y).predict(split.X_test)
    return labels


# -- convergence ----------------------------------------------------------------------------------

SVC_TOL, OUR_TOL = 1e-6, 1e-5
UNCHANGED = 1e-7
MOST_EPOCHS = 64


def converge(
    setting: Setting, *, data: str, params: dict[str, Any], rows: int | None = None
) -> dict[str, Any]:
    """Double the epochs until the dual objective stops changing; compare it with SVC's.

    Both objectives are computed from the coefficients in double precision. The result also has the
    model's own value, from kernel values in single precision.
    """
    split = load(data, setting.folder, form="dense64", quick=setting.quick)
    X, y = split.X[:rows], split.y[:rows]
    signs = np.where(y == y.max(), 1.0, -1.0)
    peer = CONTESTANTS["SVC"]({**params, "tol": SVC_TOL}, 1, 0)
    _, peer_seconds = timed(partial(peer.fit, X, y))
    optimum = dual_objective(peer, X, signs)
    path: list[dict[str, float]] = []
    epochs = 1
    while epochs <= (4 if setting.quick else MOST_EPOCHS):
        ours = {**params, "tol": OUR_TOL, "epochs": epochs}
        model = CONTESTANTS["OnlineSVC"](ours, setting.threads, setting.seed)
        _, seconds = timed(partial(model.fit, X, y))
        dual = dual_objective(model, X, signs)
        path.append({"epochs": epochs, "dual": dual, "wall": seconds["wall"]})
        if len(path) > 1 and abs(dual - path[-2]["dual"]) < UNCHANGED * abs(dual):
            break
        epochs *= 2
    return {
        "shortfall": abs(optimum - path[-1]["dual"]) / abs(optimum),
        "svc_dual": optimum,
        "dual_objective": float(model.dual_objective()),
        "path": path,
        "svc_seconds": peer_seconds,
    }


def dual_objective(model: Any, X: NDArray[np.float64], signs: NDArray[np.float64]) -> float:
    """Return W(alpha) from the coefficients, with kernel values in double precision."""
    from sklearn.metrics.pairwise import rbf_kernel

    alpha = np.asarray(model.dual_coef_).ravel()
    members = X[model.support_]
    norm = alpha @ rbf_kernel(members, gamma=model.gamma) @ alpha
    return float(alpha @ signs[model.support_] - norm / 2)


# -- one example at a time ------------------------------------------------------------------------


def learn_one(
    setting: Setting, *, params: dict[str, Any], noise: float, start: int, calls: int
) -> dict[str, Any]:
    """Time single calls of `learn_one` on a stream of two crescents."""
    from sklearn.datasets import make_moons

    calls = calls // 10 if setting.quick else calls
    X, y = make_moons(start + calls, noise=noise, random_state=setting.seed)
    model = CONTESTANTS["OnlineSVC"](params, setting.threads, setting.seed)
    model.partial_fit(X[:start], y[:start], classes=[0, 1])
    first = model.stats_["members"]
    clock, learn = time.perf_counter_ns, model.learn_one
    times = []
    for x, label in zip(X[start:], y[start:].tolist(), strict=True):
        before = clock()
        learn(x, label)
        times.append((clock() - before) / 1000)
    deciles = statistics.quantiles(times, n=10)
    return {
        "microseconds": statistics.median(times),
        "mean_microseconds": statistics.mean(times),
        "decile_microseconds": [deciles[0], deciles[-1]],
        "members": [first, model.stats_["members"]],
        "calls": calls,
    }


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "fit": fit,
    "offset": offset,
    "converge": converge,
    "learn_one": learn_one,
}

"""Fit OnlineSVC and SVC to one problem, and compare their errors on the same test rows."""

from __future__ import annotations

import base64
import hashlib
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from contestants import CONTESTANTS, has_intelex
from datasets import Split
from numpy.typing import NDArray

INTELEX_ROWS = 20_000  # larger training sets are left to scikit-learn-intelex, if it is installed

Wrong = NDArray[np.bool_]


@dataclass
class Problem:
    """Training and test rows with the parameters of both estimators."""

    split: Split
    params: dict[str, Any]
    weights: NDArray[np.float64] | None = None
    kernel: Callable[[Any, Any], Any] | None = None  # a kernel that SVC lacks
    max_iter: int = -1  # of SVC; -1 sets no limit
    seconds: float = 0.0  # CPU time after which OnlineSVC is given up; 0 sets no limit
    about: str = ""

    def digest(self) -> str:
        """Hash everything that the result of SVC depends on."""
        about = (sorted(self.params.items()), self.max_iter)
        digest = hashlib.sha256(repr(about).encode())
        split = self.split
        parts: list[Any] = [split.X, split.y, split.X_test, split.y_test, self.weights]
        for part in parts:
            arrays = (part.data, part.indices, part.indptr) if sp.issparse(part) else (part,)
            for array in arrays:
                digest.update(np.ascontiguousarray(array).tobytes() if array is not None else b"-")
        return digest.hexdigest()


# -- fits ----------------------------------------------------------------------------------------


def fit_svc(problem: Problem) -> dict[str, Any]:
    """Fit SVC; its result can be used again as long as the digest of the problem is the same."""
    split, params = problem.split, {**problem.params, "max_iter": problem.max_iter}
    by = "intelex" if has_intelex() and len(split.y) > INTELEX_ROWS else "SVC"
    X, X_test = split.X, split.X_test
    if problem.kernel is not None:
        params["kernel"] = "precomputed"
        X, X_test = problem.kernel(X, X), problem.kernel(X_test, X)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `converged` has the information
        model = CONTESTANTS[by](params, 1, 0).fit(X, split.y, sample_weight=problem.weights)
        wrong = model.predict(X_test) != split.y_test
    return {
        "digest": problem.digest(),
        "by": by,
        "converged": not model.fit_status_,
        "cpu": round(time.process_time() - began, 3),
        **stored(wrong),
    }


def fit_ours(problem: Problem, seed: int) -> dict[str, Any]:
    """Fit OnlineSVC with its defaults; its warnings are part of the result."""
    split = problem.split
    began = time.process_time()
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        model = CONTESTANTS["OnlineSVC"](problem.params, 1, seed)
        try:
            with at_most(problem.seconds):
                model.fit(split.X, split.y, sample_weight=problem.weights)
            wrong = model.predict(split.X_test) != split.y_test
        except (ValueError, TimeoutError) as error:
            return {"seed": seed, "failed": str(error)}
    return {
        "seed": seed,
        "cpu": round(time.process_time() - began, 3),
        "warnings": sorted({f"{w.category.__name__}: {w.message}" for w in issued}),
        **stored(wrong),
    }


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after seconds of CPU time, where systems have such alarms; 0: never."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"OnlineSVC was not fitted after {seconds:g} s of CPU time.")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def stored(wrong: Wrong) -> dict[str, Any]:
    """Return the error in percent, and which rows are wrong as packed bits."""
    bits = base64.b64encode(np.packbits(wrong).tobytes()).decode()
    return {"error": 100 * float(np.mean(wrong)), "test_rows": len(wrong), "wrong": bits}


def wrong_rows(result: dict[str, Any]) -> Wrong:
    packed = np.frombuffer(base64.b64decode(result["wrong"]), dtype=np.uint8)
    return np.unpackbits(packed, count=result["test_rows"]).astype(bool)


# -- differences ---------------------------------------------------------------------------------


@dataclass
class Difference:
    """By how many percentage points the error of OnlineSVC exceeds SVC's, and its standard error.

    The test rows on which exactly one model is wrong determine the standard error, as in McNemar's
    test.
    """

    points: float
    error: float

    @property
    def clearly_worse(self) -> bool:
        """Whether OnlineSVC is worse by more than a point, which chance does not explain."""
        return self.points > max(1.0, 2 * self.error)


def difference(ours: dict[str, Any], svc: dict[str, Any]) -> Difference:
    apart = wrong_rows(ours).astype(float) - wrong_rows(svc)
    return Difference(100 * float(apart.mean()), 100 * float(apart.std()) / len(apart) ** 0.5)


def averaged(several: list[Difference]) -> Difference:
    """Average over seeds.

    Seeds may share their test rows, so that the error that these rows cause is averaged, not
    divided by the root of the number of seeds. The spread of the seeds is added to it.
    """
    points = np.array([one.points for one in several])
    rows = float(np.mean([one.error for one in several]))
    seeds = float(points.std(ddof=1)) / len(points) ** 0.5 if len(points) > 1 else 0.0
    return Difference(float(points.mean()), (rows**2 + seeds**2) ** 0.5)


def overall(groups: list[list[Difference]]) -> Difference:
    """Average over all differences of groups, of which only the groups are independent."""
    mean = float(np.mean([one.points for group in groups for one in group]))
    total = sum(map(len, groups))
    sums = [sum(one.points - mean for one in group) for group in groups]
    spread = float(np.sum(np.square(sums))) * len(sums) / max(len(sums) - 1, 1)
    return Difference(mean, spread**0.5 / total)

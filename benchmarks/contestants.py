"""The contestants, each limited to a number of threads."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

CACHE = 2000  # megabytes for kernel rows, the same for every contestant

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)


def environment(threads: int) -> dict[str, str]:
    """Return an environment that limits a process to a number of threads."""
    return {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))}


def has_intelex() -> bool:
    return find_spec("sklearnex") is not None and find_spec("daal4py") is not None


def online(params: dict[str, Any], threads: int, seed: int) -> Any:
    from marginwise import OnlineSVC

    return OnlineSVC(**{"cache_size": CACHE, **params}, n_jobs=threads, random_state=seed)


def gap(params: dict[str, Any], threads: int, seed: int) -> Any:
    from marginwise import GapSVC

    return GapSVC(**{"cache_size": CACHE, **params}, n_jobs=threads, random_state=seed)


def svc(params: dict[str, Any], threads: int, seed: int) -> Any:
    """Return SVC, which has neither threads nor, without probabilities, randomness."""
    from sklearn.svm import SVC

    return SVC(**{"cache_size": CACHE, **params})


def intelex(params: dict[str, Any], threads: int, seed: int) -> Any:
    """Return SVC of scikit-learn-intelex; daal4py sets the threads once per process."""
    import daal4py

    daal4py.daalinit(threads)
    from sklearnex.svm import SVC

    return SVC(**{"cache_size": CACHE, **params})


def nystroem(params: dict[str, Any], threads: int, seed: int) -> Any:
    """Return Nystroem and LinearSVC, the usual choice for large sets in scikit-learn."""
    from sklearn.kernel_approximation import Nystroem
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    basis = Nystroem(gamma=params["gamma"], n_components=params["n_components"], random_state=seed)
    return make_pipeline(basis, LinearSVC(C=1.0, random_state=seed))


CONTESTANTS = {
    "OnlineSVC": online,
    "GapSVC": gap,
    "SVC": svc,
    "intelex": intelex,
    "Nystroem": nystroem,
}

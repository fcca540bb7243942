"""What the experiments of this paper share: its data sets, and LASVM row by row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from reproduce.experiment import Case, Results, Values

NOISE = 0.1

# Parameters of figure 7. The paper does not state how features are scaled; figure07.py compares
# variants: Waveform is standardised, class 1 against the others; USPS's γ is divided by its 256
# pixels from 0 to 1; MNIST's γ holds for pixels from -1 to 1, which is 4γ for pixels from 0 to 1.
SETS: dict[str, dict[str, Any]] = {
    "Waveform": {"C": 1, "gamma": 0.05, "files": ["waveform_uci.npz"]},
    "Banana": {"C": 316, "gamma": 0.5, "files": ["banana.npz"]},
    "Reuters": {"C": 1, "gamma": 1.0, "files": ["reuters_moneyfx_lasvm.npz"]},
    "USPS": {"pooled": True, "C": 1000, "gamma": 2 / 256, "files": ["usps.npz"]},
    "USPS+N": {"pooled": True, "C": 10, "gamma": 2 / 256, "files": ["usps.npz"]},
    "Adult": {"C": 100, "gamma": 0.005, "files": ["a9a.npz"]},
    "Forest": {"C": 3, "gamma": 1.0, "files": ["covtype_subset.npz"]},
}
FOREST_ROWS = 10_000  # of training; as many are tested
MNIST_C, MNIST_GAMMA = 1000, 0.02


def data_set(name: str, data: Path, seed: int, quick: bool) -> Any:
    """Load a set of figure 7; artificial and pooled sets are divided by seed."""
    import numpy as np

    from benchmarks.datasets import _drawn, standardised
    from reproduce.measures import load, noisy, redrawn

    if name == "Waveform":
        with np.load(data / "waveform_uci.npz") as archive:
            X, y = archive["X"].astype(np.float64), (archive["y"] == 1).astype(np.int64)
        sizes = (1000, 250) if quick else (4000, 1000)
        return standardised(_drawn(X[: sum(sizes)], y[: sum(sizes)], *sizes, seed))
    if name == "Forest":
        split = load("covtype2", data, seed=seed, quick=quick)
        split.X, split.y = split.X[:FOREST_ROWS], split.y[:FOREST_ROWS]
        split.X_test, split.y_test = split.X_test[:FOREST_ROWS], split.y_test[:FOREST_ROWS]
        return split
    if name in ("Reuters", "Adult"):
        known = {"Reuters": "reuters", "Adult": "a9a"}[name]
        return load(known, data, seed=seed, quick=quick, form="csr64")
    if name == "Banana":
        return load("banana", data, seed=seed, quick=quick)
    split = load("usps0", data, seed=seed, quick=quick)
    split.X, split.X_test = (split.X + 1) / 2, (split.X_test + 1) / 2
    split = redrawn(split, seed)
    split.y = noisy(split.y, NOISE, seed) if name == "USPS+N" else split.y
    return split


def digit(data: Path, label: int, quick: bool, rows: int = 60_000) -> Any:
    """Load MNIST, one digit against the others, pixels from 0 to 1."""
    import numpy as np

    from reproduce.measures import load

    split = load("mnist10", data, quick=quick, form="dense32")
    split.X, split.y = split.X[:rows], (split.y[:rows] == label).astype(np.int64)
    split.y_test = (split.y_test == label).astype(np.int64)
    return split


def one_pass(split: Any, seed: int, **params: Any) -> tuple[Any, dict[str, float]]:
    """Learn all rows once, one by one in random order, without the finishing step."""
    import numpy as np

    from marginwise import OnlineSVC
    from reproduce.measures import timed

    order = np.random.default_rng(seed).permutation(len(split.y))
    model = OnlineSVC(**params, reprocess_when="each")
    X, y = split.X[order], split.y[order]
    return timed(lambda: model.partial_fit(X, y, classes=np.unique(split.y)))


def measured(model: Any, split: Any, seconds: dict[str, float]) -> Values:
    """Return the error, the support vectors and the time of a model."""
    from reproduce.measures import error

    found = {
        "error": error(model, split.X_test, split.y_test),
        "support_vectors": len(model.support_),
        "fit": seconds,
    }
    if hasattr(model, "stats_"):
        found["kernel_evaluations"] = model.stats_["kernel_evaluations"]
    return found


def with_files(case: Case, files: list[str]) -> Case:
    return {**case, "files": files}


def at_best(results: Results, case: str) -> float | None:
    """Return the smallest error along the mean curve of a case."""
    return min(results.curve(case, "error"), default=None)

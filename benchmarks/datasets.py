"""The data sets of the benchmarks: training and test parts in the format of each contestant."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

QUICK_TRAIN, QUICK_TEST = 2000, 500


@dataclass
class Split:
    """Training and test rows with their labels."""

    X: Any
    y: NDArray[np.int64]
    X_test: Any
    y_test: NDArray[np.int64]


Archive = Any  # what numpy.load returns for a .npz file


def _drawn(X: Any, y: Any, train: int, test: int, seed: int) -> Split:
    """Draw a training and a test part; smaller sets are divided in the same proportion."""
    order = np.random.default_rng(seed).permutation(len(y))
    share = min(1.0, len(y) / (train + test))
    train, test = int(train * share), int(test * share)
    fit, check = order[:train], order[train : train + test]
    return Split(X[fit], y[fit], X[check], y[check])


def _csr(archive: Archive, part: str) -> Any:
    names = (f"X_{part}_data", f"X_{part}_indices", f"X_{part}_indptr")
    return sp.csr_matrix(
        tuple(archive[name] for name in names), shape=tuple(archive[f"X_{part}_shape"])
    )


def _sparse(archive: Archive, seed: int) -> Split:
    train, test = _csr(archive, "train"), _csr(archive, "test")
    return Split(train, archive["y_train"], test, archive["y_test"])


def _mnist(archive: Archive, seed: int) -> Split:
    X, X_test = (archive[f"X_{part}"].astype(np.float32) for part in ("train", "test"))
    X /= 255
    X_test /= 255
    return Split(X, archive["y_train"], X_test, archive["y_test"])


def _mnist8(archive: Archive, seed: int) -> Split:
    split = _mnist(archive, seed)
    split.y, split.y_test = ((y == 8).astype(np.int64) for y in (split.y, split.y_test))
    return split


NOISE = 0.1  # fraction of wrong labels


def _mnist8_noise(archive: Archive, seed: int) -> Split:
    """Flip a tenth of the training labels; test labels are unchanged."""
    split = _mnist8(archive, seed)
    # A separate seed, because the plain one draws the rows of quick runs and of splits.
    order = np.random.default_rng((seed, 1)).permutation(len(split.y))
    turned = order[: round(NOISE * len(order))]
    split.y[turned] = 1 - split.y[turned]
    return split


def _usps0(archive: Archive, seed: int) -> Split:
    """Class 0 against the rest, pixels from -1 to 1 as in the original files."""
    parts = ("train", "test")
    X, X_test = (2 * archive[f"X_{part}"] - 1 for part in parts)
    y, y_test = ((archive[f"y_{part}"] == 0).astype(np.int64) for part in parts)
    return Split(X, y, X_test, y_test)


def _banana(archive: Archive, seed: int) -> Split:
    return _drawn(archive["X"], archive["y"], 4000, 1300, seed)


def _waveform(archive: Archive, seed: int) -> Split:
    """Class 0 against the rest, the binary problem of [wang2009]."""
    return _drawn(archive["X"], (archive["y"] == archive["y"].min()).astype(int), 4000, 1000, seed)


def standardised(split: Split) -> Split:
    """Standardise columns by mean and standard deviation of the training rows."""
    mean, scale = split.X.mean(axis=0), split.X.std(axis=0)
    scale[scale == 0] = 1
    split.X, split.X_test = (split.X - mean) / scale, (split.X_test - mean) / scale
    return split


def _covtype2(archive: Archive, seed: int) -> Split:
    """Class 2 against the rest, 40,000 rows, columns standardised."""
    y = (archive["y"] == 2).astype(np.int64)
    return standardised(_drawn(archive["X"].astype(np.float64), y, 40_000, 20_000, seed))


def _classes(archive: Archive, seed: int) -> Split:
    """All classes of a set with a canonical split, columns standardised."""
    X, X_test = (archive[f"X_{part}"].astype(np.float64) for part in ("train", "test"))
    return standardised(Split(X, archive["y_train"], X_test, archive["y_test"]))


def _kdd(archive: Archive, seed: int) -> Split:
    """Attacks against normal connections: logarithms of counts, standardised, and indicators."""
    counts = np.log1p(np.abs(archive["X_num_train"]))
    codes = archive["X_cat_train"]
    levels = [len(archive[f"{name}_levels"]) for name in ("protocol", "service", "flag")]
    indicators = [np.eye(n, dtype=np.float32)[codes[:, k]] for k, n in enumerate(levels)]
    attack = (archive["y_train"] != list(archive["classes"]).index("normal.")).astype(np.int64)
    features = standardised(_drawn(counts, attack, 200_000, 20_000, seed))
    others = _drawn(np.hstack(indicators), attack, 200_000, 20_000, seed)
    features.X, features.X_test = (
        np.hstack(parts) for parts in ((features.X, others.X), (features.X_test, others.X_test))
    )
    return features


def _checkerboard(archive: Archive, seed: int) -> Split:
    """Give 15 % of the training rows the other colour of a board of 4 x 4 squares."""
    rng = np.random.default_rng(seed)
    X, X_test = 4 * rng.random((50_000, 2)), 4 * rng.random((20_000, 2))
    y, y_test = (np.floor(x).sum(axis=1).astype(np.int64) % 2 for x in (X, X_test))
    return Split(X, np.where(rng.random(len(y)) < 0.15, 1 - y, y), X_test, y_test)


def _digits(archive: Archive, seed: int) -> Split:
    """Odd against even digits of scikit-learn's bundled set, pixels from 0 to 1."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return _drawn(X / 16, y % 2, 1500, 297, seed)


@dataclass(frozen=True)
class Source:
    """A file of the data folder, or None for generated and bundled sets, and its reader."""

    file: str | None
    read: Callable[[Archive, int], Split]


SOURCES = {
    "mnist8": Source("mnist.npz", _mnist8),
    "mnist8_noise": Source("mnist.npz", _mnist8_noise),
    "mnist10": Source("mnist.npz", _mnist),
    "a9a": Source("a9a.npz", _sparse),
    "reuters": Source("reuters_moneyfx_lasvm.npz", _sparse),
    "banana": Source("banana.npz", _banana),
    "waveform": Source("waveform_uci.npz", _waveform),
    "usps0": Source("usps.npz", _usps0),
    "digits": Source(None, _digits),
    "covtype2": Source("covtype_subset.npz", _covtype2),
    "letter": Source("letter.npz", _classes),
    "satimage": Source("satimage.npz", _classes),
    "checkerboard": Source(None, _checkerboard),
    "kdd": Source("kddcup99_10pct.npz", _kdd),
}


def _cast(X: Any, form: str) -> Any:
    """Convert features to "dense32", "dense64" or "csr64"."""
    dtype = np.float32 if form.endswith("32") else np.float64
    if form.startswith("csr"):
        return sp.csr_matrix(X, dtype=dtype)
    dense = X.toarray() if sp.issparse(X) else X
    return np.ascontiguousarray(dense, dtype=dtype)


def _first(X: Any, y: Any, rows: int) -> tuple[Any, Any]:
    """Return random rows, the same ones in every call."""
    if len(y) <= rows:
        return X, y
    kept = np.sort(np.random.default_rng(0).permutation(len(y))[:rows])
    return X[kept], y[kept]


def load(
    name: str, folder: str, *, form: str = "dense64", seed: int = 0, quick: bool = False
) -> Split:
    """Load a data set; `seed` draws the split of sets that have no canonical one."""
    source = SOURCES[name]
    archive = None if source.file is None else np.load(Path(folder) / source.file)
    split = source.read(archive, seed)
    if quick:
        split.X, split.y = _first(split.X, split.y, QUICK_TRAIN)
        split.X_test, split.y_test = _first(split.X_test, split.y_test, QUICK_TEST)
    split.X, split.X_test = _cast(split.X, form), _cast(split.X_test, form)
    return split


def files_of(names: Iterable[str]) -> list[str]:
    """Return the files of the named data sets."""
    return sorted({file for name in names if (file := SOURCES[name].file) is not None})


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""The available data sets of [ertekin2007], with C and gamma from its table 2.

The paper does not say how it scaled features. We chose the scaling by cross-validation on the
training rows: the one that comes closest to the paper's column Batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.datasets import Archive, Split, _csr

QUICK_ROWS = {"train": (250, 50), "test": (150, 30)}  # negatives and positives


@dataclass(frozen=True)
class DataSet:
    """A set of two classes, 1 the rare one, and how it is learned."""

    file: str
    read: Callable[[Archive, int], Split]
    features: str
    C: float
    gamma: float
    seeds: int = 10
    departs: str = ""  # known reasons why results differ from the paper's

    def load(self, folder: Path, seed: int, *, quick: bool) -> Split:
        """Read the rows; `seed` draws the parts where there is no canonical split."""
        split = self.read(np.load(folder / self.file), seed)
        if quick:
            split.X, split.y = _few(split.X, split.y, *QUICK_ROWS["train"])
            split.X_test, split.y_test = _few(split.X_test, split.y_test, *QUICK_ROWS["test"])
        return split


def _few(X: Any, y: Any, *counts: int) -> tuple[Any, Any]:
    rows = [np.flatnonzero(y == label)[:count] for label, count in enumerate(counts)]
    kept = np.sort(np.concatenate(rows))
    return X[kept], y[kept]


def _canonical(
    archive: Archive, label: int, divisor: float = 1.0, dtype: Any = np.float64
) -> Split:
    """Take one class against the rest in the parts of the file, features divided by a number."""
    X, X_test = (archive[f"X_{part}"].astype(dtype) for part in ("train", "test"))
    X /= divisor
    X_test /= divisor
    y, y_test = ((archive[f"y_{part}"] == label).astype(np.int64) for part in ("train", "test"))
    return Split(X, y, X_test, y_test)


def _drawn(X: Any, y: Any, test: int, seed: int) -> Split:
    """Draw a test part with its share of the positives, as the counts of table 2 have it."""
    from sklearn.model_selection import train_test_split

    X, X_test, y, y_test = train_test_split(X, y, test_size=test, stratify=y, random_state=seed)
    return Split(X, y, X_test, y_test)


def _reuters(archive: Archive, seed: int, *, topic: str) -> Split:
    column = archive["topics"].tolist().index(topic)
    y, y_test = (archive[f"Y_{part}"][:, column].astype(np.int64) for part in ("train", "test"))
    return Split(_csr(archive, "train"), y, _csr(archive, "test"), y_test)


def _abalone(archive: Archive, seed: int) -> Split:
    from sklearn.preprocessing import StandardScaler

    split = _drawn(archive["X"].astype(np.float64), (archive["y"] == 7).astype(np.int64), 418, seed)
    scaler = StandardScaler().fit(split.X)
    split.X, split.X_test = scaler.transform(split.X), scaler.transform(split.X_test)
    return split


def _letter(archive: Archive, seed: int) -> Split:
    whole = _canonical(archive, label=0)
    X, y = np.concatenate([whole.X, whole.X_test]), np.concatenate([whole.y, whole.y_test])
    return _drawn(X, y, 2000, seed)


def _satimage(archive: Archive, seed: int) -> Split:
    return _canonical(archive, label=4)


def _usps(archive: Archive, seed: int) -> Split:
    return _canonical(archive, label=0, divisor=16)


def _mnist(archive: Archive, seed: int) -> Split:
    return _canonical(archive, label=8, divisor=255, dtype=np.float32)


def _adult(archive: Archive, seed: int) -> Split:
    y, y_test = ((archive[f"y_{part}"] > 0).astype(np.int64) for part in ("train", "test"))
    return Split(_csr(archive, "train"), y, _csr(archive, "test"), y_test)


def _waveform(archive: Archive, seed: int) -> Split:
    X, y = archive["X"].astype(np.float64), (archive["y"] == archive["y"].min()).astype(np.int64)
    return _drawn(X, y, 1000, seed)


def thinned(split: Split, ratio: float, seed: int) -> Split:
    """Remove random positives from the training rows until the classes have a given ratio."""
    positives = np.flatnonzero(split.y == 1)
    kept = round((len(split.y) - len(positives)) / ratio)
    order = np.random.default_rng((seed, 3)).permutation(positives)
    rows = np.sort(np.concatenate([np.flatnonzero(split.y == 0), order[:kept]]))
    return Split(split.X[rows], split.y[rows], split.X_test, split.y_test)


def _topic(topic: str, C: float, gamma: float) -> DataSet:
    return DataSet(
        "reuters21578_r90_tfidf.npz",
        partial(_reuters, topic=topic),
        "tf-idf, unit length",
        C,
        gamma,
        departs="the training documents and the number of test positives are the paper's, but the "
        "features are our own: 10,176 words instead of 8,315.",
    )


SETS = {
    # Corn and trade are not in table 2. They get what wheat, the topic nearest to corn, and
    # money-fx, the one nearest to trade, have there: three of the six listed have just this.
    "corn": _topic("corn", 1, 0.5),
    "crude": _topic("crude", 2, 1),
    "grain": _topic("grain", 2, 1),
    "interest": _topic("interest", 1, 2),
    "money-fx": _topic("money-fx", 1, 0.5),
    "ship": _topic("ship", 1, 0.5),
    "trade": _topic("trade", 1, 0.5),
    "wheat": _topic("wheat", 1, 0.5),
    # The paper's 100.0 very likely come from a feature that reveals the label: it counts 9
    # features, but there are 8 and the rings, which are the label (7 rings: 391 of 4177 rows, 90 %
    # of them are 352). With the rings as a feature we get 100.0, too. We leave them out, so only
    # the methods can be compared with each other. No scaling suits this C and gamma well;
    # standardised features rank best in cross-validation (AUC 62 %, others 43 to 46 %).
    "abalone-7": DataSet(
        "abalone.npz",
        _abalone,
        "sex in 3 columns, standardised",
        100,
        0.01,
        departs="the paper's 100 % can be reached only if the number of rings, which is the label, "
        "is among the features. We leave it out.",
    ),
    # As in the file, from 0 to 15: cross-validation gives g-means 99.0 % and SV-/SV+ 1.5, as in
    # the paper; scaled to [0, 1], to [-1, 1] or standardised it is 92 to 94 %.
    "letter-A": DataSet(
        "letter.npz",
        _letter,
        "raw",
        10,
        0.01,
    ),
    # As in the file, up to 157: cross-validation gives g-means 78 %; scaled to [0, 1], to [-1, 1]
    # or standardised, no row is ever called positive.
    "satimage-4": DataSet("satimage.npz", _satimage, "raw", 50, 0.001),
    # Digit 0, as in [bordes2005]: of the ten digits it alone is near the paper's 1232 positives
    # (1194 in the canonical split), and the paper's PRBEP are 314, 315 and 316 of 320 test rows:
    # 1232 + 320 are all zeros but one. Pixels from 0 to 1, divided by the root of their number:
    # cross-validation gives g-means 99.2 % and SV-/SV+ 1.5, and all rows 248 support vectors,
    # where [bordes2005, fig. 8] has 236 and 201. On undivided pixels this gamma makes every row a
    # support vector; rows of unit length are no worse in PRBEP, but give 445 support vectors.
    "usps-0": DataSet(
        "usps.npz",
        _usps,
        "pixels from 0 to 1/16",
        1000,
        2,
        departs="the paper seems to use another split. Ours is the canonical one, whose test rows "
        "are harder than its training rows.",
    ),
    # From 0 to 1, the usual scale of this C and gamma: on held-out training rows PRBEP is 96.6 %,
    # with pixels from -1 to 1 it is 92.7 %, with rows of unit length 91.7 %.
    "mnist-8": DataSet("mnist.npz", _mnist, "pixels from 0 to 1", 1000, 0.02, seeds=3),
}

# Sets of figures 5 to 7. The paper gives no C and gamma for them: these are those of [bordes2005].
MORE = {
    "adult": DataSet("a9a.npz", _adult, "0 and 1", 100, 0.005),
    "waveform": DataSet("waveform_uci.npz", _waveform, "raw", 1, 0.05),
}

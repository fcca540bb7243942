"""Manifest of LIBSVM model files, with information that their format cannot represent."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._arrays import Float
from marginwise._checks import MOST_FEATURES, MOST_ID, is_integer, is_real
from marginwise._estimator.imported import Solution
from marginwise.data.errors import DataError
from marginwise.exchange.libsvm_text import ModelText, parse

FORMAT, VERSION = "marginwise-libsvm", 1
LABEL_TYPES = (str, int, float, bool)

Part = tuple[str, bytes, dict[str, Any]]  # name and content of a file, and its manifest entries


def describe(model: Any, features: int, parts: list[Part], ovr: bool) -> bytes:
    """Return the content of a manifest.

    Parameters
    ----------
    model : classifier
        The model.
    features : int
        Number of features.
    parts : list of tuple
        Files of the model; several files are in the order of the classes.
    ovr : bool
        Whether each file contains the model of one class against the rest.
    """
    files = [
        {"file": name, "sha256": hashlib.sha256(content).hexdigest(), **said}
        for name, content, said in parts
    ]
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "multiclass": "ovr" if ovr else "ovo",
        "classes": model.classes_.tolist(),
        "n_features": features,
        "files": files,
    }
    return (json.dumps(manifest, indent=1) + "\n").encode()


def check_names(classes: NDArray[Any]) -> None:
    """Raise unless class labels can be written to a manifest."""
    for label in classes.tolist():
        if not isinstance(label, LABEL_TYPES):
            raise ValueError(
                f"the class label {label!r:.40} is of type {type(label).__name__}; to_libsvm "
                "writes labels that are strings or numbers. Encode the labels before fitting."
            )


class Manifest:
    """Validated content of a manifest.

    Parameters
    ----------
    data : bytes
        Content of the manifest.
    path : Path
        Path of the manifest. The model files are in the same folder.
    """

    def __init__(self, data: bytes, path: Path) -> None:
        self.path, self.name = path, os.fspath(path)
        said = self._parsed(data)
        if said.get("format") != FORMAT:
            self._refuse(1, f"expected the format {FORMAT!r}, got {said.get('format')!r:.40}")
        if said.get("version") != VERSION:
            self._refuse(1, f"expected version {VERSION}, got {said.get('version')!r:.40}")
        self.ovr = self._one_of(said, "multiclass", ("ovr", "ovo")) == "ovr"
        self.features = self._integer(said, "n_features", 1, MOST_FEATURES)
        self.classes = self._labels(said.get("classes"))
        self.files = self._list(said, "files", len(self.classes) if self.ovr else 1)

    # -- checks --------------------------------------------------------------------------------

    def _refuse(self, line: int, expected: str) -> Any:
        raise DataError(f"{self.name}:{line}: {expected}.")

    def _parsed(self, data: bytes) -> dict[str, Any]:
        try:
            said = json.loads(data)
        except json.JSONDecodeError as error:
            self._refuse(error.lineno, f"expected JSON: {error.msg}")
        except (ValueError, RecursionError):
            self._refuse(1, "expected JSON, in UTF-8")
        if not isinstance(said, dict):
            self._refuse(1, "expected a JSON object")
        return said  # type: ignore[no-any-return]

    def _one_of(self, said: Mapping[str, Any], key: str, options: tuple[str, ...]) -> Any:
        if not isinstance(said.get(key), str) or said[key] not in options:
            self._refuse(1, f"expected {key!r} to be one of {', '.join(options)}")
        return said[key]

    def _integer(self, said: Mapping[str, Any], key: str, least: int, most: int) -> int:
        value = said.get(key)
        if not is_integer(value) or not least <= value <= most:  # type: ignore[operator]
            self._refuse(1, f"expected {key!r} to be an integer from {least} to {most}")
        return int(value)  # type: ignore[arg-type]

    def _list(self, said: Mapping[str, Any], key: str, length: int) -> list[Any]:
        value = said.get(key)
        if not isinstance(value, list) or len(value) != length:
            self._refuse(1, f"expected {key!r} to be a list of {length}")
        return value  # type: ignore[return-value]

    def _labels(self, labels: Any) -> NDArray[Any]:
        """Return the class labels: two or more of one type, distinct and in ascending order."""
        fits = isinstance(labels, list) and len(labels) >= 2
        if not fits or len({type(label) for label in labels}) > 1:
            self._refuse(1, "expected 'classes' to be two labels of one type or more")
        known = isinstance(labels[0], LABEL_TYPES) and (
            isinstance(labels[0], str | bool) or all(map(is_real, labels))
        )
        if not known or any(a >= b for a, b in pairwise(labels)):
            self._refuse(1, "expected 'classes' in order: different strings or finite numbers")
        try:
            classes = np.array(labels)
        except (ValueError, OverflowError):
            classes = np.array(None)
        if classes.dtype.kind not in "biufU":
            self._refuse(1, "expected 'classes' to be strings or numbers of 64 bits")
        return classes

    # -- files ---------------------------------------------------------------------------------

    def _text(self, k: int, read: Any) -> ModelText:
        """Return the content of file k of the manifest; `read` reads a path."""
        said = self.files[k] if isinstance(self.files[k], dict) else {}
        file, digest = said.get("file"), said.get("sha256")
        if not isinstance(file, str) or Path(file).name != file or not file.isprintable():
            self._refuse(1, "expected 'file' to be the name of a file beside the manifest")
        path = self.path.parent / str(file)
        data = read(path)
        if hashlib.sha256(data).hexdigest() != digest:
            raise DataError(f"{path}:1: expected the content that {self.name} describes by sha256.")
        return parse(data, os.fspath(path), self.features)

    def single(self, read: Any) -> ModelText:
        """Return the only file, whose labels are class indices."""
        text = self._text(0, read)
        if sorted(text.labels) != list(range(len(self.classes))):
            self._refuse(1, f"expected labels from 0 to {len(self.classes) - 1} in the file")
        return text

    def one_vs_rest(self, read: Any) -> tuple[ModelText, Solution]:
        """Return the first file, and the joint solution of all files."""
        texts = [self._text(k, read) for k in range(len(self.files))]
        for k, text in enumerate(texts):
            if text.labels != [1, -1] or text.kernel != texts[0].kernel:
                self._refuse(1, f"expected file {k} to have labels 1 and -1, and the same kernel")
        ids = [self._ids(k, len(text.coefficients)) for k, text in enumerate(texts)]
        labels = np.concatenate([self._classes_of(k, text) for k, text in enumerate(texts)])
        X = sp.vstack([text.X for text in texts], format="csr")
        known, first, member = np.unique(
            np.concatenate(ids), return_index=True, return_inverse=True
        )
        if abs(X - X[first[member]]).max() > 0 or (labels != labels[first[member]]).any():
            self._refuse(1, "expected support vectors of one id to be the same in all files")
        alpha = np.zeros((len(texts), len(known)))
        starts = np.cumsum([0, *map(len, ids)])
        for k, text in enumerate(texts):
            alpha[k, member[starts[k] : starts[k + 1]]] = text.coefficients[:, 0]
        intercept: Float = -np.concatenate([text.rho for text in texts])
        return texts[0], Solution(X[first], known, labels[first], alpha, intercept)

    def _ids(self, k: int, n: int) -> NDArray[np.int64]:
        ids = self._list(self.files[k], "ids", n)
        if not all(is_integer(i) and 0 <= i < MOST_ID for i in ids) or len(set(ids)) < n:
            self._refuse(1, f"expected 'ids' of file {k} to be different integers from 0")
        return np.array(ids, dtype=np.int64)

    def _classes_of(self, k: int, text: ModelText) -> NDArray[np.int32]:
        """Return the classes of the support vectors of file k: class k, then the others."""
        counts = self._list(self.files[k], "n_support", len(self.classes))
        fits = all(is_integer(n) and n >= 0 for n in counts)
        if not fits or [counts[k], sum(counts) - counts[k]] != text.counts:
            self._refuse(1, f"expected 'n_support' of file {k} to add up to nr_sv")
        order = own_class_first(k, len(counts))
        return np.repeat(order, np.array(counts)[order]).astype(np.int32)


def own_class_first(k: int, classes: int) -> NDArray[np.int64]:
    """Return the order of the classes in the file of class k against the rest."""
    return np.array([k, *(c for c in range(classes) if c != k)])

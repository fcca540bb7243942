"""Reading and writing of the text of LIBSVM model files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp

from marginwise._arrays import Float, Ints
from marginwise._checks import MOST_DEGREE, MOST_FEATURES
from marginwise.data.errors import DataError

# LIBSVM's and our names of kernels, and the parameters of each kernel in files.
KERNELS = {"linear": "linear", "polynomial": "poly", "rbf": "rbf", "sigmoid": "sigmoid"}
NAMES = {ours: theirs for theirs, ours in KERNELS.items()}
PARAMETERS = {
    "linear": (),
    "poly": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
}
CLASSIFIERS, ONE_CLASS = ("c_svc", "nu_svc"), "one_class"
REGRESSION = ("epsilon_svr", "nu_svr")
PROBABILITIES = ("probA", "probB", "prob_density_marks")
# Limits that keep a small file from allocating much memory: a constant plus a multiple of the size.
FREE_FEATURES = 2**20
FEATURES_PER_BYTE = 64
FREE_BYTES = 2**28
BLOW_UP = 64
LARGEST = 1e30  # of numbers other than features, because some models use single precision
BYTES_PER_PLACE = 48  # of the state of a model per coefficient: coefficient, gradients, ranks

Entry = tuple[int, list[Any]]  # line number and values of a header entry


@dataclass
class ModelText:
    """Content of a LIBSVM model file.

    Parameters
    ----------
    kind : str
        Type of the model: "c_svc", "nu_svc" or "one_class".
    kernel : dict
        Kernel and its parameters, under the names of this package.
    labels : list of int
        Class labels in the order of the file; empty for a one-class model.
    counts : list of int
        Number of support vectors of each class.
    rho : ndarray of shape (n_pairs,)
        Constants to subtract from the decision values of the pairs of classes.
    coefficients : ndarray of shape (n_vectors, max(n_classes - 1, 1))
        Coefficients in the layout of the file.
    X : csr_array of shape (n_vectors, n_features)
        The support vectors.
    first_line : int, default=0
        Line number of the first support vector.
    ignored : tuple of str, default=()
        Header entries that are ignored.
    """

    kind: str
    kernel: dict[str, Any]
    labels: list[int]
    counts: list[int]
    rho: Float
    coefficients: Float
    X: Any
    first_line: int = 0
    ignored: tuple[str, ...] = ()


def refuse(name: str, line: int, expected: str) -> NoReturn:
    """Raise the error for an invalid line."""
    raise DataError(f"{name}:{line}: {expected}.")


# -- reading -----------------------------------------------------------------------------------


def parse(data: bytes, name: str, n_features: int | None = None) -> ModelText:
    """Parse the content of a model file.

    Parameters
    ----------
    data : bytes
        The content.
    name : str
        Name of the file, for messages.
    n_features : int, default=None
        Number of features; by default, the largest index.
    """
    lines = data.split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    header = _header(lines, name)
    last, _ = header["SV"]
    kind, kernel = _kind(header, name), _kernel(header, name)
    labels, counts, rho = _classes(header, name, kind)
    total = sum(counts)
    if len(lines) - last != total:
        what = f"expected {total} support vectors after SV, as total_sv says, got "
        refuse(name, min(len(lines), last + total) + 1, f"{what}{len(lines) - last}")
    columns = max(len(labels) - 1, 1)
    needed = BYTES_PER_PLACE * total * len(rho)
    if needed > FREE_BYTES + BLOW_UP * len(data):
        refuse(name, last, f"{total} support vectors in {len(rho)} pairs of classes are too many")
    body = _Body(name, last, columns, n_features, FREE_FEATURES + FEATURES_PER_BYTE * len(data))
    coefficients, X = body.read(lines[last:])
    ignored = tuple(entry for entry in PROBABILITIES if entry in header)
    return ModelText(kind, kernel, labels, counts, rho, coefficients, X, last + 1, ignored)


def _header(lines: list[bytes], name: str) -> dict[str, Entry]:
    """Return the entries of the header; the entry "SV" has the number of its last line."""
    header: dict[str, Entry] = {}
    for number, line in enumerate(lines, 1):
        tokens = _text(line, name, number).split()
        if not tokens:
            continue
        entry, values = tokens[0], tokens[1:]
        if entry == "SV" and not values:
            header["SV"] = number, []
            return header
        if entry not in ENTRIES:
            expected = f"expected one of {', '.join(ENTRIES)}, or SV alone"
            refuse(name, number, f"{expected}, got {line[:40].decode('ascii')!r}")
        if entry in header:
            refuse(name, number, f"expected each entry once, got {entry!r} again")
        convert, expected = ENTRIES[entry]
        try:
            found = [convert(value) for value in values]
        except ValueError:
            found = []
        if not found or (entry not in LISTS and len(found) > 1):
            refuse(
                name, number, f"expected {entry!r} and {expected}, got {' '.join(values)[:40]!r}"
            )
        header[entry] = number, found
    refuse(name, len(lines), "expected the line 'SV' after the header; the file ends before it")


def _text(line: bytes, name: str, number: int) -> str:
    try:
        return line.decode("ascii")
    except UnicodeDecodeError:
        refuse(name, number, "expected plain ASCII text")


def _number(token: str) -> float:
    value = float(token)
    if "_" in token or not abs(value) <= LARGEST:
        raise ValueError(token)
    return value


def _integer(token: str) -> int:
    value = int(token)
    if "_" in token or abs(value) >= 2**31:
        raise ValueError(token)
    return value


def _word(token: str) -> str:
    return token


ENTRIES: dict[str, tuple[Callable[[str], Any], str]] = {
    "svm_type": (_word, "a type of model"),
    "kernel_type": (_word, "the name of a kernel"),
    "degree": (_integer, "an integer"),
    "gamma": (_number, "a number"),
    "coef0": (_number, "a number"),
    "nr_class": (_integer, "an integer"),
    "total_sv": (_integer, "an integer"),
    "rho": (_number, "a number for each pair of classes"),
    "label": (_integer, "an integer for each class"),
    "nr_sv": (_integer, "a count for each class"),
    "probA": (_number, "numbers"),
    "probB": (_number, "numbers"),
    "prob_density_marks": (_number, "numbers"),
}
LISTS = ("rho", "label", "nr_sv", *PROBABILITIES)


def _entry(header: dict[str, Entry], entry: str, name: str) -> Entry:
    if entry not in header:
        refuse(name, header["SV"][0], f"expected the entry {entry!r} before SV")
    return header[entry]


def _kind(header: dict[str, Entry], name: str) -> str:
    line, (kind,) = _entry(header, "svm_type", name)
    known = (*CLASSIFIERS, ONE_CLASS)
    if kind in REGRESSION:
        refuse(name, line, f"{kind} is a model for regression; expected one of {', '.join(known)}")
    if kind not in known:
        refuse(name, line, f"expected svm_type to be one of {', '.join(known)}, got {kind[:40]!r}")
    return str(kind)


def _kernel(header: dict[str, Entry], name: str) -> dict[str, Any]:
    line, (kernel,) = _entry(header, "kernel_type", name)
    if kernel == "precomputed":
        refuse(name, line, "the kernel is 'precomputed': the file has no support vectors to read")
    if kernel not in KERNELS:
        expected = f"expected kernel_type to be one of {', '.join(KERNELS)}"
        refuse(name, line, f"{expected}, got {kernel[:40]!r}")
    found: dict[str, Any] = {"kernel": KERNELS[kernel]}
    for parameter in PARAMETERS[KERNELS[kernel]]:
        line, (value,) = _entry(header, parameter, name)
        if parameter == "gamma" and not value > 0:
            refuse(name, line, f"expected gamma above 0, got {value:g}")
        if parameter == "degree" and not 1 <= value <= MOST_DEGREE:
            refuse(name, line, f"expected a degree from 1 to {MOST_DEGREE}, got {value}")
        found[parameter] = value
    return found


def _classes(header: dict[str, Entry], name: str, kind: str) -> tuple[list[int], list[int], Float]:
    """Return labels, numbers of support vectors and constants, after checking their consistency."""
    line, (classes,) = _entry(header, "nr_class", name)
    if classes < 2 or (kind == ONE_CLASS and classes != 2):
        expected = "2" if kind == ONE_CLASS else "2 or more"
        refuse(name, line, f"expected nr_class to be {expected}, got {classes}")
    pairs = classes * (classes - 1) // 2
    line, rho = _entry(header, "rho", name)
    if len(rho) != pairs:
        refuse(name, line, f"expected rho to have {pairs} numbers, got {len(rho)}")
    line, (total,) = _entry(header, "total_sv", name)
    if total < 1:
        refuse(name, line, f"expected total_sv to be 1 or more, got {total}")
    if kind == ONE_CLASS:
        return [], [total], np.array(rho)
    line, labels = _entry(header, "label", name)
    if len(labels) != classes or len(set(labels)) != classes:
        refuse(name, line, f"expected {classes} different labels, got {len(set(labels))}")
    line, counts = _entry(header, "nr_sv", name)
    if len(counts) != classes or min(counts) < 0 or sum(counts) != total:
        expected = f"expected {classes} counts that add up to total_sv, {total}"
        refuse(name, line, f"{expected}, got {' '.join(map(str, counts))[:80]}")
    return labels, counts, np.array(rho)


@dataclass
class _Body:
    """Parser of the lines of support vectors.

    Parameters
    ----------
    name : str
        Name of the file, for messages.
    before : int
        Number of lines before the first support vector.
    columns : int
        Number of coefficients at the beginning of each line.
    n_features : int or None
        Number of features, if it is known.
    most : int
        Maximum number of features if it is unknown.
    """

    name: str
    before: int
    columns: int
    n_features: int | None
    most: int

    def read(self, lines: list[bytes]) -> tuple[Float, Any]:
        """Return coefficients and support vectors."""
        coefficients: list[float] = []
        indices: list[int] = []
        values: list[float] = []
        indptr = [0]
        for number, line in enumerate(lines, self.before + 1):
            text = _text(line, self.name, number)
            tokens = text.split()
            try:
                if "_" in text:
                    raise ValueError(text)
                coefficients += map(float, tokens[: self.columns])
                for token in tokens[self.columns :]:
                    index, value = token.split(":")
                    indices.append(int(index))
                    values.append(float(value))
            except ValueError:
                self._refuse_token(tokens, number)
            if len(tokens) < self.columns:
                refuse(self.name, number, f"expected {self._coefficients}, got {len(tokens)}")
            self._check_indices(indices[indptr[-1] :], number)
            indptr.append(len(indices))
        return self._arrays(coefficients, indices, values, indptr)

    @property
    def _coefficients(self) -> str:
        return f"{self.columns} coefficient{'' if self.columns == 1 else 's'}"

    def _refuse_token(self, tokens: list[str], number: int) -> NoReturn:
        """Raise the error for the first invalid token."""
        for k, token in enumerate(tokens):
            index, colon, value = token.partition(":")
            try:
                _number(value if k >= self.columns else token)
                if k >= self.columns and (not colon or "_" in index or int(index) < 0):
                    raise ValueError(token)
            except ValueError:
                what = "index:value" if k >= self.columns else self._coefficients
                refuse(self.name, number, f"expected {what}, got {token[:40]!r}")
        refuse(self.name, number, "expected coefficients, then index:value")

    def _check_indices(self, indices: list[int], number: int) -> None:
        """Raise unless the indices of a line are ascending and at least 1."""
        if not indices:
            return
        if indices[0] < 1:
            refuse(self.name, number, f"expected indices from 1, got {indices[0]}")
        if any(a >= b for a, b in pairwise(indices)):
            refuse(self.name, number, "expected indices in ascending order, each once")
        most = min(self.most, MOST_FEATURES) if self.n_features is None else self.n_features
        if indices[-1] > most:
            what = f"expected indices up to {most}, got {str(indices[-1])[:40]}"
            hint = "" if self.n_features else "; pass n_features if there are so many"
            refuse(self.name, number, what + hint)

    def _arrays(
        self, coefficients: list[float], indices: list[int], values: list[float], indptr: list[int]
    ) -> tuple[Float, Any]:
        starts = np.array(indptr, dtype=np.int64)
        found, data = np.array(coefficients).reshape(-1, self.columns), np.array(values)
        bad = np.searchsorted(starts, np.flatnonzero(~np.isfinite(data)), side="right") - 1
        large = ~(np.abs(found) <= LARGEST).all(axis=1)
        bad = np.concatenate([bad, np.flatnonzero(large)])
        if bad.size:
            expected = f"expected finite numbers, and coefficients up to {LARGEST:g}"
            refuse(self.name, self.before + 1 + int(bad.min()), expected)
        columns = np.array(indices, dtype=np.int64) - 1
        width = self.n_features or (int(columns.max()) + 1 if columns.size else 1)
        X = sp.csr_array((data, columns, starts), shape=(len(found), width))
        X.eliminate_zeros()
        return found, X


# -- writing -----------------------------------------------------------------------------------


def formatted(model: ModelText) -> bytes:
    """Return the content of a model file.

    Numbers have 17 significant digits, which represent doubles exactly. The first support vector
    includes the last feature even if it is 0, because the format does not store the number of
    features otherwise.
    """
    kernel = model.kernel["kernel"]
    lines = [f"svm_type {model.kind}", f"kernel_type {NAMES[kernel]}"]
    lines += [f"{name} {_digits(model.kernel[name])}" for name in PARAMETERS[kernel]]
    lines += [f"nr_class {max(len(model.labels), 2)}", f"total_sv {len(model.coefficients)}"]
    lines.append("rho " + " ".join(map(_digits, model.rho)))
    if model.kind != ONE_CLASS:
        lines.append("label " + " ".join(map(str, model.labels)))
        lines.append("nr_sv " + " ".join(map(str, model.counts)))
    text = "\n".join([*lines, "SV", *_vectors(model.coefficients, sp.csr_array(model.X))])
    return f"{text}\n".encode("ascii")


def _digits(value: Any) -> str:
    return str(value) if isinstance(value, int) else f"{float(value):.17g}"


def _vectors(coefficients: Float, X: Any) -> Iterator[str]:
    width, starts = X.shape[1], X.indptr.tolist()
    X.sort_indices()
    for k, own in enumerate(coefficients.tolist()):
        part = slice(starts[k], starts[k + 1])
        indices: Ints = X.indices[part]
        tokens = [f"{value:.17g}" for value in own]
        tokens += [
            f"{index + 1}:{value:.17g}"
            for index, value in zip(indices.tolist(), X.data[part].tolist(), strict=True)
        ]
        if k == 0 and (len(indices) == 0 or indices[-1] + 1 < width):
            tokens.append(f"{width}:0")
        yield " ".join(tokens)

"""Writing svmlight (LIBSVM) text files."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from marginwise._files.disk import replace_file


def write_svmlight(
    X: Any, y: ArrayLike, path: str | os.PathLike[str], *, zero_based: bool = False
) -> None:
    """Write rows to an svmlight (LIBSVM) text file.

    Values are rounded to float32 and written with nine digits, so that :class:`SvmlightSource`
    reads the same values. An existing file is replaced only when the new file is complete.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_rows, n_features)
        Features. Zeros are not written.
    y : array-like of shape (n_rows,)
        Numeric labels.
    path : str or path-like
        Destination. An existing file is replaced.
    zero_based : bool, default=False
        Whether the first feature has index 0 instead of 1.

    See Also
    --------
    SvmlightSource : Data source of svmlight files.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from marginwise.data import write_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rows.svm")
    ...     write_svmlight([[0.0, 0.5], [1.0, 0.0]], [1, -1], path)
    ...     print(path.read_text())
    1 2:0.5
    -1 1:1
    """
    with np.errstate(over="ignore"):  # infinite values are refused below
        rows = sp.csr_array(X, dtype=np.float32, copy=True)
    labels, n = np.asarray(y), rows.shape[0]
    if labels.shape != (n,) or labels.dtype.kind not in "iufb":
        raise ValueError(
            f"y must have one number per row of X, which has {n}; got {labels.dtype} of shape "
            f"{labels.shape}."
        )
    if not (np.isfinite(rows.data).all() and np.isfinite(labels).all()):
        raise ValueError(
            "X or y has values that are NaN or outside the range of float32, which the format "
            "cannot hold. Impute or scale them."
        )
    rows.sum_duplicates()
    rows.eliminate_zeros()
    replace_file(path, lambda file: _write(file, rows, labels, 0 if zero_based else 1))


def _write(file: BinaryIO, rows: Any, labels: NDArray[Any], base: int) -> None:
    label = "%.17g" if labels.dtype.kind == "f" else "%d"
    for r, y in enumerate(labels.tolist()):
        stored = slice(rows.indptr[r], rows.indptr[r + 1])
        numbers = [y] * (1 + 2 * (stored.stop - stored.start))
        numbers[1::2] = (rows.indices[stored] + base).tolist()
        numbers[2::2] = rows.data[stored].tolist()
        form = label + " %d:%.9g" * (len(numbers) // 2) + "\n"
        file.write((form % tuple(numbers)).encode())

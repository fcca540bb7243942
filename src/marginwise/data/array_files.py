"""Files of arrays: .npy and .npz."""

from __future__ import annotations

import errno
import lzma
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise.data.errors import DataError

PREFIXES = ("X", "X_train")
PARTS = ("data", "indices", "indptr", "shape")
# Errors that NumPy and zipfile raise for a damaged file; OSError with EINVAL is an invalid seek.
DAMAGE = (
    *(ValueError, TypeError, KeyError, IndexError, EOFError, OSError, SyntaxError, MemoryError),
    *(OverflowError, NotImplementedError, RuntimeError, RecursionError, struct.error),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError),
)


def read_npy(path: Path) -> NDArray[Any]:
    """Return the array in a .npy file, memory-mapped."""
    try:
        array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except DAMAGE as error:
        raise _damaged(path, ".npy", error) from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path}: expected an array in a .npy file.")
    return array


def read_npz(path: Path, labelled: bool) -> tuple[Any, Any, list[str] | None]:
    """Return the features, labels and feature names in a .npz file.

    Parameters
    ----------
    path : Path
        The file.
    labelled : bool
        Whether to read labels.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            names = list(archive.files)
            prefix = _prefix(path, names)
            X = _features(path, archive, prefix)
            label = f"y{prefix[1:]}"
            if labelled and label not in names:
                raise DataError(
                    f"{path}: the labels {label!r} are missing; the file has {_listed(names)}."
                )
            y = archive[label] if labelled else None
            known = archive["feature_names"].tolist() if "feature_names" in names else None
    except DataError:
        raise
    except DAMAGE as error:
        raise _damaged(path, ".npz", error) from error
    if known is None or X.ndim != 2 or len(known) != X.shape[1]:
        return X, y, None
    return X, y, [str(name) for name in known]


def _prefix(path: Path, names: list[str]) -> str:
    """Return the prefix of the names of the feature arrays."""
    for prefix in PREFIXES:
        if prefix in names or all(f"{prefix}_{part}" in names for part in PARTS):
            return prefix
    raise DataError(
        f"{path}: expected the array X or X_train, or the parts of a CSR matrix such as "
        f"X_train_data; the file has {_listed(names)}."
    )


def _listed(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:20]) or "nothing"


def _features(path: Path, archive: Any, prefix: str) -> Any:
    if prefix in archive.files:
        mapped = _mapped(path, f"{prefix}.npy")
        return archive[prefix] if mapped is None else mapped
    data, indices, indptr, shape = (archive[f"{prefix}_{part}"] for part in PARTS)
    made = sp.csr_array((data, indices, indptr), shape=tuple(int(size) for size in shape))
    made.check_format(full_check=True)
    return made


def _mapped(path: Path, member: str) -> NDArray[Any] | None:
    """Return a member of an archive as a memory map; None if it is compressed."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        entry = archive.getinfo(member)
        if entry.compress_type != zipfile.ZIP_STORED:
            return None
        file.seek(entry.header_offset + 26)  # two lengths in the local header
        lengths = np.frombuffer(file.read(4), dtype="<u2")
        file.seek(entry.header_offset + 30 + int(lengths.sum()))
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            return None
        shape, fortran, dtype = read(file)
        if dtype.hasobject or 0 in shape:
            return None
        order: Any = "F" if fortran else "C"
        return np.memmap(path, dtype, "r", offset=file.tell(), shape=shape, order=order)


def _damaged(path: Path, kind: str, error: Exception) -> Exception:
    """Return the error for an unreadable file: the original error if the disk caused it."""
    if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
        return error
    fault = " ".join(str(error).split()) or type(error).__name__
    return DataError(
        f"{path}: the file is damaged or truncated ({fault:.200}); expected a complete {kind} file "
        "of numbers. Copy it again, or write it with numpy.save or numpy.savez."
    )

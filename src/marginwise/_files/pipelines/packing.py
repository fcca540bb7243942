"""Representation of arrays in model files: object arrays, lists of arrays, memory layouts.

Unpacking does not trust its input; every failure is a ValueError.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_TYPES = 255  # maximum number of types of the arrays in a list
# A wide type, so that objects take at most a few times the size of the file, even if all are None.
CODE = "int32"
OBJECTS: tuple[type, ...] = (
    NoneType,
    bool,
    int,
    float,
    str,
    np.bool_,
    np.int64,
    np.float64,
    np.str_,
)


def require(holds: Any, message: str) -> None:
    if not holds:
        raise ValueError(message)


def mapping(plain: Any, *keys: str) -> list[Any]:
    """Return the values of a dict with exactly these keys."""
    require(isinstance(plain, dict) and plain.keys() == set(keys), f"has no {', '.join(keys)}")
    return [plain[key] for key in keys]


def pack_array(value: NDArray[Any]) -> Any:
    """Return an array as plain values.

    The memory layout (contiguous rows or columns, gaps between them) is preserved, because matrix
    products would otherwise round differently.
    """
    if value.dtype.hasobject:
        return pack_objects(value)
    if value.ndim != 2 or value.flags.c_contiguous:
        return value
    transposed = value.strides[0] < value.strides[1]
    rows = value.T if transposed else value
    gap = 0 if rows.flags.c_contiguous else _most_gap(rows.shape[1])
    if rows.strides[1] == rows.itemsize:
        gap = min(rows.strides[0] // rows.itemsize - rows.shape[1], gap)
    return {"rows": np.ascontiguousarray(rows), "transposed": transposed, "gap": gap}


def _most_gap(size: int) -> int:
    """Return the largest gap between rows; a larger one would only waste memory."""
    return size + 1


def unpack_array(plain: Any) -> Any:
    if isinstance(plain, np.ndarray):
        return plain
    if not isinstance(plain, dict) or "rows" not in plain:
        return unpack_objects(plain)
    rows, transposed, gap = mapping(plain, "rows", "transposed", "gap")
    require(isinstance(rows, np.ndarray) and rows.ndim == 2, "must be an array")
    require(type(transposed) is bool and type(gap) is int, "must be an array")
    require(0 <= gap <= _most_gap(rows.shape[1]), "must be an array with small gaps")
    if gap:
        spaced = np.zeros((rows.shape[0], rows.shape[1] + gap), dtype=rows.dtype)
        spaced[:, : rows.shape[1]] = rows
        rows = spaced[:, : rows.shape[1]]
    return rows.T if transposed else rows


def pack_objects(value: NDArray[Any]) -> dict[str, Any]:
    """Return an array of Python objects as arrays: their types, numbers and strings."""
    require(value.ndim == 1, "is an array of objects of 2 dimensions")
    items = value.tolist()
    for item in items:
        known = type(item) in OBJECTS
        require(known, f"contains a {type(item).__name__}, which model files cannot hold")
    codes = [OBJECTS.index(type(item)) for item in items]
    whole = [int(x) for x in items if isinstance(x, bool | np.bool_ | int | np.int64)]
    floats = [float(x) for x in items if isinstance(x, float)]
    words = [str(x) for x in items if isinstance(x, str)]
    require(all(abs(x) < 2**63 for x in whole), "contains an integer of more than 64 bits")
    return {
        "codes": np.array(codes, dtype=CODE),
        "whole": np.array(whole, dtype=np.int64),
        "floats": np.array(floats, dtype=np.float64),
        "words": objects(words),
    }


def unpack_objects(plain: Any) -> NDArray[Any]:
    codes, whole, floats, words = mapping(plain, "codes", "whole", "floats", "words")
    for part, name in ((codes, CODE), (whole, "int64"), (floats, "float64"), (words, "object")):
        fits = isinstance(part, np.ndarray) and part.dtype == name and part.ndim == 1
        require(fits, "must be an array of objects")
    known = not codes.size or (codes.min() >= 0 and codes.max() < len(OBJECTS))
    require(known, "contains objects of unknown type")
    require(all(type(word) is str for word in words), "contains words that are not strings")
    numbers = [np.nan if x != x else x for x in floats.tolist()]
    return objects(_drawn(codes.tolist(), whole.tolist(), numbers, words.tolist()))


def _drawn(codes: list[int], *sources: list[Any]) -> list[Any]:
    """Return objects of the given types, created from numbers and strings that must all be used."""
    whole, floats, strings = (iter(source) for source in sources)
    nothing = object()
    items: list[Any] = []
    for kind in (OBJECTS[code] for code in codes):
        if kind is NoneType:
            items.append(None)
            continue
        source = strings if issubclass(kind, str) else floats if issubclass(kind, float) else whole
        value = next(source, nothing)
        require(value is not nothing, "contains too few values")
        require(kind not in (bool, np.bool_) or value in (0, 1), "contains invalid booleans")
        items.append(value if type(value) is kind else kind(value))
    left = any(next(source, nothing) is not nothing for source in (whole, floats, strings))
    require(not left, "contains too many values")
    return items


def objects(items: list[Any]) -> NDArray[Any]:
    made = np.empty(len(items), dtype=object)
    made[:] = items
    return made


def pack_list(parts: list[Any]) -> dict[str, Any]:
    """Combine a list of arrays, some of them None, into a few arrays; the list may be long."""
    kinds = ["" if part is None else part.dtype.str for part in parts]
    known = sorted(set(kinds))
    require(len(known) <= MOST_TYPES, f"has arrays of {len(known)} types")
    return {
        "kinds": known,
        "which": np.array([known.index(kind) for kind in kinds], dtype=np.uint8),
        "sizes": np.array([0 if part is None else len(part) for part in parts], dtype=np.int64),
        "parts": [
            pack_array(np.concatenate([p for p in parts if p is not None and p.dtype.str == kind]))
            for kind in known
            if kind
        ],
    }


def unpack_list(plain: Any) -> list[Any]:
    known, which, sizes, parts = mapping(plain, "kinds", "which", "sizes", "parts")
    require(isinstance(known, list) and isinstance(parts, list), "must be a list of arrays")
    for part, name in ((which, "uint8"), (sizes, "int64")):
        fits = isinstance(part, np.ndarray) and part.dtype == name and part.ndim == 1
        require(fits, "must be a list of arrays")
    require(len(which) == len(sizes) and (sizes >= 0).all(), "must be a list of arrays")
    require(not which.size or which.max() < len(known), "has arrays of unknown type")
    require(len(set(known)) == len(known), "has types twice")
    found: list[Any] = [None] * len(which)
    left = iter([unpack_array(part) for part in parts])
    for number, kind in enumerate(known):
        places = np.flatnonzero(which == number)
        if kind == "":
            require(not sizes[places].any(), "has arrays of no type")
            continue
        whole = next(left, np.zeros((0, 0)))
        require(whole.dtype.str == kind and whole.ndim == 1, "has arrays of another type")
        ends = np.concatenate([[0], np.cumsum(sizes[places].astype(object))]).tolist()
        require(ends[-1] == len(whole), "has arrays of another size")
        for k, place in enumerate(places.tolist()):
            found[place] = whole[ends[k] : ends[k + 1]].copy()
    require(next(left, None) is None, "has too many arrays")
    return found

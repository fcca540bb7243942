"""Kinds of lists and dicts, which may be long."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginwise._checks import Rule
from marginwise._files.pipelines.kinds import Kind, Nested, array
from marginwise._files.pipelines.packing import (
    mapping,
    objects,
    pack_array,
    pack_list,
    pack_objects,
    require,
    unpack_array,
    unpack_list,
    unpack_objects,
)


def each(rule: Rule) -> Kind:
    """Return the kind of lists of small values, each of which satisfies a rule."""
    test, text = rule

    def encode(value: Any, _: Nested) -> Any:
        if type(value) is not list or not all(test(one) for one in value):
            raise kind.wrong(value)
        return pack_objects(objects(value))

    def decode(plain: Any, _: Nested) -> Any:
        value = unpack_objects(plain).tolist()
        if not all(test(one) for one in value):
            raise kind.wrong(value)
        return value

    kind = Kind(f"a list, each of it {text}", encode, decode)
    return kind


def words() -> Kind:
    """Return the kind of lists of strings, which may be long."""

    def encode(value: Any, _: Nested) -> Any:
        if type(value) is not list or not all(type(word) is str for word in value):
            raise kind.wrong(value)
        return objects(value)

    def decode(plain: Any, _: Nested) -> Any:
        require(isinstance(plain, np.ndarray) and plain.dtype == object, f"must be {kind.text}")
        found = plain.tolist()
        require(all(type(word) is str for word in found), f"must be {kind.text}")
        return found

    kind = Kind("a list of strings", encode, decode)
    return kind


def names(side: str = "n_features_in_") -> Kind:
    """Return the kind of arrays of strings: one per feature."""
    inner = array("object", sides=(side,))

    def decode(plain: Any, nested: Nested) -> Any:
        value = inner.decode(plain, nested)
        require(all(type(word) is str for word in value), "must be strings")
        return value

    return Kind("an array of strings", inner.encode, decode, inner.sides)


def arrays(*types: str, in_array: bool = False, gaps: bool = False) -> Kind:
    """Return the kind of lists of one-dimensional arrays.

    Parameters
    ----------
    *types : str
        Names of types, as for `array`.
    in_array : bool, default=False
        Whether the arrays are in an object array instead of a list.
    gaps : bool, default=False
        Whether elements may be None.
    """
    inner = array(*types, sides=("",), missing=True)

    def encode(value: Any, nested: Nested) -> Any:
        if type(value) is not (np.ndarray if in_array else list):
            raise kind.wrong(value)
        for one in value:
            if not (gaps and one is None):
                inner.encode(one, nested)
        return pack_list(list(value))

    def decode(plain: Any, nested: Nested) -> Any:
        found = unpack_list(plain)
        for one in found:
            if not (gaps and one is None):
                inner.decode(pack_array(one), nested)
        return objects(found) if in_array else found

    kind = Kind(f"a list of arrays of {' or '.join(types)}", encode, decode)
    return kind


def sequence() -> Kind:
    """Return the kind of lists, tuples and arrays of numbers, strings or other small values."""

    def encode(value: Any, _: Nested) -> Any:
        if type(value) in (list, tuple):
            return {type(value).__name__: pack_objects(objects(list(value)))}
        if type(value) is np.ndarray and value.ndim == 1:
            return {"array": pack_array(value)}
        raise kind.wrong(value)

    def decode(plain: Any, _: Nested) -> Any:
        require(isinstance(plain, dict) and len(plain) == 1, f"must be {kind.text}")
        ((tag, inner),) = plain.items()
        require(tag in ("list", "tuple", "array"), f"must be {kind.text}")
        if tag == "array":
            found = unpack_array(inner)
            require(found.ndim == 1, f"must be {kind.text}")
            return found
        items = unpack_objects(inner).tolist()
        return items if tag == "list" else tuple(items)

    kind = Kind("a list or an array", encode, decode)
    return kind


def sequences() -> Kind:
    """Return the kind of lists of lists and arrays."""

    def encode(value: Any, _: Nested) -> Any:
        fits = type(value) is list and all(type(one) in (list, np.ndarray) for one in value)
        if not fits or any(np.ndim(one) != 1 for one in value):
            raise kind.wrong(value)
        parts = [one if isinstance(one, np.ndarray) else objects(one) for one in value]
        listed = [isinstance(one, list) for one in value]
        return {"parts": pack_list(parts), "listed": np.array(listed, dtype=bool)}

    def decode(plain: Any, _: Nested) -> Any:
        inner, listed = mapping(plain, "parts", "listed")
        parts = unpack_list(inner)
        fits = isinstance(listed, np.ndarray) and listed.dtype == bool
        require(fits and listed.shape == (len(parts),), f"must be {kind.text}")
        require(all(part is not None for part in parts), f"must be {kind.text}")
        pairs = zip(parts, listed.tolist(), strict=True)
        return [part.tolist() if is_list else part for part, is_list in pairs]

    kind = Kind("a list of lists or arrays", encode, decode)
    return kind


def vocabulary() -> Kind:
    """Return the kind of dicts from words to column numbers, which may be large."""

    def encode(value: Any, _: Nested) -> Any:
        if type(value) is not dict or not all(type(word) is str for word in value):
            raise kind.wrong(value)
        types = {type(place) for place in value.values()}
        require(types in ({int}, {np.int64}), "must have numbers of one type")
        places = [*value.values()]
        require(max(places) < 2**63 and min(places) >= 0, "must number its words")
        return {
            "words": objects(list(value)),
            "places": np.array(places, dtype=np.int64),
            "numpy": types == {np.int64},
        }

    def decode(plain: Any, _: Nested) -> Any:
        found, places, scalars = mapping(plain, "words", "places", "numpy")
        for part, name in ((found, "object"), (places, "int64")):
            fits = isinstance(part, np.ndarray) and part.dtype == name and part.ndim == 1
            require(fits, f"must be {kind.text}")
        require(len(found) == len(places) and type(scalars) is bool, f"must be {kind.text}")
        require(all(type(word) is str for word in found), f"must be {kind.text}")
        table = dict(zip(found.tolist(), places if scalars else places.tolist(), strict=True))
        require(len(table) == len(places), "has a word twice")
        return table

    kind = Kind("a dict from words to numbers", encode, decode)
    return kind

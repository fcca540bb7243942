"""Kinds of values of transformers: how they are checked and represented in model files.

A `Kind` has two functions. `encode` converts a value to the plain values of `values.py`. `decode`
is its inverse and does not trust its input. Both raise a ValueError that states what was expected.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from marginwise._checks import Rule
from marginwise._files.pipelines.packing import (
    mapping,
    pack_array,
    require,
    unpack_array,
)
from marginwise._files.values import SCALARS

FLOATING = ("float16", "float32", "float64")
WHOLE = tuple(name for name in SCALARS if "int" in name)
_PYTHON_TYPES = {"bool": bool, "float": float, "int": int, "object": object}


class RefusedError(ValueError):
    """Error raised if files do not support a part of a pipeline, with a complete message."""


class Nested(Protocol):
    """Encodes and decodes nested estimators, and knows their widths.

    Attributes
    ----------
    here : tuple of int
        Installed version of scikit-learn.
    """

    here: tuple[int, int]

    def encode(self, estimator: Any, where: str) -> Any: ...

    def decode(self, plain: Any, where: str) -> Any: ...

    def expects(self, estimator: Any) -> int | None: ...

    def gives(self, estimator: Any, width: int | None) -> int | None: ...

    def is_model(self, estimator: Any) -> bool: ...


@dataclass(frozen=True)
class Kind:
    """A kind of values.

    Parameters
    ----------
    text : str
        Description of the expected values.
    encode, decode : callable
        Functions of a value and a `Nested` that return the value in the other representation.
    sides : tuple of str
        Parameters or attributes that define the shape of an array.
    """

    text: str
    encode: Callable[[Any, Nested], Any]
    decode: Callable[[Any, Nested], Any]
    sides: tuple[str, ...] = ()

    def wrong(self, value: Any) -> ValueError:
        if callable(value) and not isinstance(value, type):
            name = getattr(value, "__name__", type(value).__name__)
            return ValueError(f"is the function {name}, and files contain no code")
        return ValueError(f"must be {self.text}, not {value!r:.60}")


# -- scalars -----------------------------------------------------------------------------------


def scalar(rule: Rule) -> Kind:
    """Return the kind of plain values that satisfy a rule, or that are NaN."""
    test, text = rule

    def encode(value: Any, _: Nested) -> Any:
        if not test(value):
            raise kind.wrong(value)
        if type(value) in (float, np.float64) and value != value:
            return {"nan": type(value).__name__}
        return value

    def decode(plain: Any, _: Nested) -> Any:
        value = plain
        if isinstance(plain, dict):
            (name,) = mapping(plain, "nan")
            require(name in ("float", "float64"), f"must be {text}")
            value = np.nan if name == "float" else np.float64(np.nan)
        if not test(value):
            raise kind.wrong(value)
        return value

    kind = Kind(text, encode, decode)
    return kind


def nan() -> Rule:
    return lambda v: isinstance(v, float) and v != v, "NaN"


def any_of(*kinds: Kind) -> Kind:
    """Return the kind of values that have one of several kinds."""

    def through(way: str) -> Callable[[Any, Nested], Any]:
        def convert(value: Any, nested: Nested) -> Any:
            for one in kinds:
                try:
                    return getattr(one, way)(value, nested)
                except RefusedError:
                    raise
                except (ValueError, TypeError):
                    continue
            raise kind.wrong(value)

        return convert

    text = " or ".join(one.text for one in kinds)
    sides = next((one.sides for one in kinds if one.sides), ())
    kind = Kind(text, through("encode"), through("decode"), sides)
    return kind


def pair(rule: Rule) -> Kind:
    """Return the kind of tuples of two values, the first not above the second."""
    test, text = rule

    def holds(v: Any) -> bool:
        return type(v) is tuple and len(v) == 2 and all(test(x) for x in v) and bool(v[0] <= v[1])

    return scalar((holds, f"a tuple of two in ascending order, each {text}"))


def dtype() -> Kind:
    """Return the kind of NumPy types: ``np.float64``, ``float``, ``"float64"`` or a dtype."""

    def encode(value: Any, _: Nested) -> Any:
        if isinstance(value, type):
            known = _PYTHON_TYPES.get(value.__name__) is value
            if known or _is_type_name(value.__name__, value):
                return {"type": value.__name__}
        elif isinstance(value, np.dtype) and value.name in (*SCALARS, "object"):
            return {"dtype": value.name}
        elif isinstance(value, str) and value in SCALARS:
            return value
        raise kind.wrong(value)

    def decode(plain: Any, _: Nested) -> Any:
        if isinstance(plain, str) and plain in SCALARS:
            return plain
        require(isinstance(plain, dict) and len(plain) == 1, f"must be {kind.text}")
        ((tag, name),) = plain.items()
        require(isinstance(name, str), f"must be {kind.text}")
        if tag == "dtype" and name in (*SCALARS, "object"):
            return np.dtype(name)
        if tag == "type" and name in _PYTHON_TYPES:
            return _PYTHON_TYPES[name]
        if tag == "type" and name in SCALARS:
            return np.dtype(name).type
        raise kind.wrong(plain)

    kind = Kind("a NumPy type of numbers", encode, decode)
    return kind


def _is_type_name(name: str, kind: type) -> bool:
    return name in SCALARS and np.dtype(name).type is kind


# -- arrays ------------------------------------------------------------------------------------


def array(*types: str, sides: tuple[str, ...], missing: bool = False) -> Kind:
    """Return the kind of arrays of the given types.

    Parameters
    ----------
    *types : str
        Names of types: elements of `SCALARS`, ``"str"`` for strings of any width, or ``"object"``.
    sides : tuple of str
        Parameters or attributes that define the shape; an empty name allows any length.
    missing : bool, default=False
        Whether floats may be NaN. They are never infinite.
    """

    def check(value: Any) -> Any:
        name = "str" if getattr(value, "dtype", np.dtype(bool)).kind == "U" else None
        fits = type(value) is np.ndarray and value.ndim == len(sides)
        require(fits and (name or value.dtype.name) in types, f"must be {kind.text}")
        if value.dtype.kind == "f":
            fine = np.isfinite(value) | (missing & np.isnan(value))
            require(fine.all(), "must be finite")
        return value

    kind = Kind(
        f"an array of {len(sides)} dimensions of {' or '.join(types)}",
        lambda value, _: pack_array(check(value)),
        lambda plain, _: check(unpack_array(plain)),
        sides,
    )
    return kind


# -- estimators and functions --------------------------------------------------------------------


def estimator(*classes: str) -> Kind:
    """Return the kind of nested estimators of some classes."""

    def encode(value: Any, nested: Nested) -> Any:
        if type(value).__name__ not in classes:
            raise kind.wrong(value)
        return nested.encode(value, "")

    def decode(plain: Any, nested: Nested) -> Any:
        require(isinstance(plain, dict) and plain.get("class") in classes, f"must be {kind.text}")
        return nested.decode(plain, "")

    kind = Kind(" or ".join(f"a {name}" for name in classes), encode, decode)
    return kind


def estimators_of(*classes: str) -> Kind:
    """Return the kind of lists of nested estimators of some classes."""
    inner = estimator(*classes)

    def encode(value: Any, nested: Nested) -> Any:
        if type(value) is not list:
            raise kind.wrong(value)
        return [inner.encode(one, nested) for one in value]

    def decode(plain: Any, nested: Nested) -> Any:
        if type(plain) is not list:
            raise kind.wrong(plain)
        return [inner.decode(one, nested) for one in plain]

    kind = Kind(f"a list of {' or '.join(classes)}", encode, decode)
    return kind


def function(module: str, *known: str) -> Kind:
    """Return the kind of functions of a module, restricted to an explicit list."""

    def encode(value: Any, _: Nested) -> Any:
        name = getattr(value, "__name__", None)
        if name not in known or getattr(importlib.import_module(module), name) is not value:
            raise kind.wrong(value)
        return name

    def decode(plain: Any, _: Nested) -> Any:
        if not isinstance(plain, str) or plain not in known:
            raise kind.wrong(plain)
        return getattr(importlib.import_module(module), plain)

    kind = Kind(f"one of the functions {', '.join(known)} of {module}", encode, decode)
    return kind

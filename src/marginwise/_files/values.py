"""Python values as JSON and arrays. Each of the few supported types has one representation.

JSON's own values represent themselves. Everything else is an object with one key, the name of its
type: ``{"tuple": [1, 2]}``, ``{"items": [[1, 0.5], [2, 2.0]]}`` (a dict), ``{"array": "classes_"}``
(a member of the file).
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
Part = bytes | memoryview  # of a member of a file

KINDS = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1")
SCALARS = tuple(np.dtype(kind).name for kind in KINDS)
LARGEST_INTEGER = 2**1023  # all smaller integers are finite as floats
TWISTER = 624  # number of words in the state of a RandomState

_HEADER = re.compile(
    rb"\{'descr': '[<|]([a-zA-Z])(\d{1,9})', 'fortran_order': False, "
    rb"'shape': \((\d{1,18},(?: \d{1,18})?)\), \} *\n"
)
_MAGIC = b"\x93NUMPY\x01\x00"


# -- states ------------------------------------------------------------------------------------


def encode_state(state: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Part]]]:
    """Return a state as JSON, and its arrays as members of a file."""
    arrays: Arrays = {}
    encoded = {key: encode(value, key, arrays) for key, value in state.items()}
    return encoded, {f"{key}.npy": write_npy(array) for key, array in arrays.items()}


def decode_state(encoded: Mapping[str, Any], members: Mapping[str, memoryview]) -> dict[str, Any]:
    """Invert `encode_state`; the values are not checked."""
    arrays = {name.removesuffix(".npy"): read_npy(part) for name, part in members.items()}
    state = {key: decode(value, arrays) for key, value in encoded.items()}
    if arrays:
        raise ValueError(f"unexpected member {min(arrays)}.npy")
    return state


# -- values ------------------------------------------------------------------------------------


def encode(value: Any, name: str, arrays: Arrays) -> Any:
    """Return a value as JSON; add its arrays to `arrays`, under names that begin with `name`.

    Raises a ValueError with the `name` of a value whose type files do not support.
    """
    if isinstance(value, float) and value == math.inf:  # C of a hard margin
        return {"infinity": type(value).__name__}
    if isinstance(value, np.generic):
        return _encode_scalar(value, name)
    encoder = _ENCODERS.get(type(value))
    if encoder is None:
        raise ValueError(f"{name} is a {type(value).__name__}, which model files cannot hold")
    return encoder(value, name, arrays)


def decode(value: Any, arrays: Arrays) -> Any:
    """Invert `encode`; the arrays that it needs are removed from `arrays`."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return _checked(value, "a number")
    if isinstance(value, list):
        return [decode(item, arrays) for item in value]
    tag = next(iter(value), None)
    if len(value) != 1 or tag not in _DECODERS:
        raise ValueError(f"it holds a value of unknown type {tag!r:.40}")
    return _DECODERS[tag](value[tag], arrays)


def _checked(value: Any, name: str) -> Any:
    """Return a number; raise unless it is finite as a float."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} is {value}; only finite numbers can be held")
    if isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
        raise ValueError(f"{name} is an integer of 1024 bits or more")
    return value


def _encode_scalar(value: Any, name: str) -> Any:
    if isinstance(value, np.str_):
        return {"scalar": ["str", str(value)]}
    if value.dtype.name not in SCALARS:
        raise ValueError(f"{name} is a {type(value).__name__}, which model files cannot hold")
    return {"scalar": [value.dtype.name, _checked(value.item(), name)]}


def _decode_scalar(content: Any, _: Arrays) -> Any:
    kind, value = content
    if kind == "str" and isinstance(value, str):
        return np.str_(value)
    if kind not in SCALARS or not isinstance(value, bool | int | float):
        raise ValueError(f"unknown scalar {kind!r:.40}")
    with np.errstate(over="ignore"):
        scalar = np.dtype(kind).type(_checked(value, kind))
    if type(scalar.item()) is not type(value) or scalar.item() != value:
        raise ValueError(f"{value} is no {kind}")
    return scalar


def _encode_list(value: list[Any], name: str, arrays: Arrays) -> Any:
    if value and all(type(item) is float for item in value):
        arrays[name] = np.array([_checked(item, name) for item in value])
        return {"floats": name}
    return [encode(item, f"{name}.{k}", arrays) for k, item in enumerate(value)]


def _encode_tuple(value: tuple[Any, ...], name: str, arrays: Arrays) -> Any:
    return {"tuple": [encode(item, f"{name}.{k}", arrays) for k, item in enumerate(value)]}


def _decode_infinity(content: Any, arrays: Arrays) -> float:
    if content not in ("float", "float64"):
        raise ValueError(f"it holds an infinity of unknown type {content!r:.40}")
    return math.inf if content == "float" else np.float64(math.inf)


def _decode_floats(content: Any, arrays: Arrays) -> list[float]:
    array = _taken(content, arrays, "float64")
    if not array.size or not np.isfinite(array).all():
        raise ValueError(f"{content} holds numbers that are not finite, or none")
    values: list[float] = array.tolist()
    return values


def _encode_dict(value: dict[Any, Any], name: str, arrays: Arrays) -> Any:
    if all(type(key) is str for key in value):
        return {"dict": {key: encode(v, f"{name}.{key}", arrays) for key, v in value.items()}}
    keys = [_encode_key(key, name) for key in value]
    values = [encode(v, f"{name}.{k}", arrays) for k, v in enumerate(value.values())]
    return {"items": [list(item) for item in zip(keys, values, strict=True)]}


def _encode_key(key: Any, name: str) -> Any:
    if not isinstance(key, np.generic | bool | int | float | str | NoneType):
        raise ValueError(f"{name} has a {type(key).__name__} for a key, which files cannot hold")
    return encode(key, f"a key of {name}", {})


def _decode_items(content: Any, arrays: Arrays) -> dict[Any, Any]:
    return {decode(key, {}): decode(value, arrays) for key, value in content}


# -- arrays ------------------------------------------------------------------------------------


def _encode_array(value: NDArray[Any], name: str, arrays: Arrays) -> Any:
    if value.dtype.hasobject:
        return _encode_objects(value, name, arrays)
    if value.dtype.str[1:] not in KINDS and value.dtype.kind != "U":
        raise ValueError(f"{name} is an array of {value.dtype}, which model files cannot hold")
    if value.ndim not in (1, 2):
        raise ValueError(f"{name} is an array of {value.ndim} dimensions, not of 1 or 2")
    arrays[name] = value
    return {"array": name}


def _encode_objects(value: NDArray[Any], name: str, arrays: Arrays) -> Any:
    """Encode a list of Python objects: strings as one text, other values as JSON."""
    if value.ndim != 1:
        raise ValueError(f"{name} is an array of objects of {value.ndim} dimensions, not of 1")
    items = value.tolist()
    if items and all(type(item) is str for item in items):
        words = [item.encode("utf-8", "surrogatepass") for item in items]
        arrays[f"{name}.text"] = np.frombuffer(b"".join(words), dtype=np.uint8)
        arrays[f"{name}.ends"] = np.cumsum([len(word) for word in words], dtype=np.int64)
        return {"strings": name}
    for item in items:
        if type(item) not in (bool, int, float, str):
            raise ValueError(f"{name} holds a {type(item).__name__}, which files cannot hold")
    return {"objects": [encode(item, name, arrays) for item in items]}


def _decode_strings(content: Any, arrays: Arrays) -> NDArray[Any]:
    text = _taken(f"{content}.text", arrays, "uint8").tobytes()
    ends = _taken(f"{content}.ends", arrays, "int64")
    starts = np.concatenate([[0], ends[:-1]])
    if not ends.size or (ends < starts).any() or ends[-1] != len(text):
        raise ValueError(f"the strings of {content} do not fit their text")
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    return _objects([text[a:b].decode("utf-8", "surrogatepass") for a, b in spans])


def _decode_objects(content: Any, _: Arrays) -> NDArray[Any]:
    if any(not isinstance(item, bool | int | float | str) for item in content):
        raise ValueError("an array of objects holds something else than values")
    return _objects([decode(item, {}) for item in content])


def _objects(items: list[Any]) -> NDArray[Any]:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _taken(name: Any, arrays: Arrays, dtype: str) -> NDArray[Any]:
    """Remove and return a one-dimensional array of a known type."""
    array = arrays.pop(name)
    if array.dtype != dtype or array.ndim != 1:
        raise ValueError(f"{name} must be a list of {dtype}")
    return array


# -- random states -----------------------------------------------------------------------------


def _encode_random(value: np.random.RandomState, name: str, arrays: Arrays) -> Any:
    state: Any = value.get_state(legacy=False)
    if state["bit_generator"] != "MT19937":
        raise ValueError(f"{name} draws from {state['bit_generator']}; files hold MT19937 only")
    arrays[name] = state["state"]["key"]
    gauss = _checked(float(state["gauss"]), name)
    return {"RandomState": [name, int(state["state"]["pos"]), int(state["has_gauss"]), gauss]}


def _decode_random(content: Any, arrays: Arrays) -> np.random.RandomState:
    name, position, has_gauss, gauss = content
    key = _taken(name, arrays, "uint32")
    if len(key) != TWISTER or type(position) is not int or not 0 <= position <= TWISTER:
        raise ValueError(f"{name} is not the state of a RandomState")
    if type(has_gauss) is not int or has_gauss not in (0, 1) or type(gauss) is not float:
        raise ValueError(f"{name} is not the state of a RandomState")
    random = np.random.RandomState()
    random.set_state(("MT19937", key, position, has_gauss, _checked(gauss, name)))
    return random


Encoder = Callable[[Any, str, Arrays], Any]
Decoder = Callable[[Any, Arrays], Any]

_ENCODERS: dict[type, Encoder] = {
    NoneType: lambda value, name, arrays: value,
    bool: lambda value, name, arrays: value,
    str: lambda value, name, arrays: value,
    int: lambda value, name, arrays: _checked(value, name),
    float: lambda value, name, arrays: _checked(value, name),
    list: _encode_list,
    tuple: _encode_tuple,
    dict: _encode_dict,
    np.ndarray: _encode_array,
    np.random.RandomState: _encode_random,
}
_DECODERS: dict[str, Decoder] = {
    "scalar": _decode_scalar,
    "infinity": _decode_infinity,
    "floats": _decode_floats,
    "tuple": lambda content, arrays: tuple(decode(value, arrays) for value in content),
    "dict": lambda content, arrays: {k: decode(v, arrays) for k, v in content.items()},
    "items": _decode_items,
    "array": lambda content, arrays: arrays.pop(content),
    "strings": _decode_strings,
    "objects": _decode_objects,
    "RandomState": _decode_random,
}


# -- .npy --------------------------------------------------------------------------------------


def write_npy(array: NDArray[Any]) -> list[bytes | memoryview]:
    """Return an array as the parts of a `.npy` file, little-endian and in C order."""
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": little.dtype.str, "fortran_order": False, "shape": little.shape}
    )
    return [header.getvalue(), little.reshape(-1).view(np.uint8).data]


def read_npy(data: memoryview) -> NDArray[Any]:
    """Return a copy of the array in a `.npy` file of the kind that `write_npy` writes.

    The header is matched, not evaluated, and must match the size of the content.
    """
    start = 10 + int.from_bytes(data[8:10], "little")
    header = _HEADER.fullmatch(data[10:start])
    if data[:8] != _MAGIC or header is None:
        raise ValueError("a member is no .npy file of a known kind")
    letter, width = header[1].decode(), int(header[2])
    if f"{letter}{width}" not in KINDS and (letter != "U" or width == 0):
        raise ValueError(f"a member is an array of {letter}{width}")
    shape = tuple(int(size) for size in header[3].rstrip(b",").split(b","))
    size = width * (4 if letter == "U" else 1)
    if math.prod(shape) * size != len(data) - start:
        raise ValueError("a member is not as large as its shape says")
    array = np.frombuffer(data[start:], dtype=f"<{letter}{width}").reshape(shape)
    _check_bits(array, letter)
    return array.astype(array.dtype.newbyteorder("="))


def _check_bits(array: NDArray[Any], letter: str) -> None:
    """Raise ValueError unless the bytes of bools and characters are valid."""
    bits = array.reshape(-1)
    if letter == "b" and (bits.view(np.uint8) > 1).any():
        raise ValueError("a member holds bytes that are no bools")
    if letter == "U" and (bits.view("<u4") > 0x10FFFF).any():
        raise ValueError("a member holds words that are no characters")

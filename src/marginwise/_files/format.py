"""The format of model files: a zip of `.npy` members and one JSON member, with a checksum."""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from marginwise._files.archive import (
    ENDING,
    MOST_MEMBERS,
    check_ending,
    read_members,
    write_members,
)
from marginwise._files.disk import read_file, replace_file
from marginwise._files.values import Part, decode_state, encode_state

# Files of later formats are refused; files of earlier formats remain readable. A file is written in
# the earliest format that can represent its content, so that earlier versions can read it.
FORMAT = 4
PIPELINE_FORMAT = 5
LEARNER_FORMAT = 6
LATEST_FORMAT = 6
DOCUMENT = "model.json"
MOST_JSON = 1 << 20  # bytes; everything large is in arrays
KEYS = {"format", "marginwise", "class", "sha256", "state"}


class ModelFileError(ValueError):
    """Error raised if a model file cannot be loaded."""


def write_file(path: str | os.PathLike[str], members: Mapping[str, list[Part]]) -> None:
    """Write an archive of these members, replacing an existing file."""
    replace_file(path, functools.partial(write_members, members))


def write_state(path: str | os.PathLike[str], name: str, state: Mapping[str, Any]) -> None:
    """Write a file with the state of a `name`, replacing an existing file."""
    write_file(path, pack(name, state))


def guarded(path: str | os.PathLike[str], restore: Callable[[bytes], Any]) -> Any:
    """Read a file and convert its content; raise ModelFileError if anything is wrong with it."""
    try:
        data = read_file(path, check_ending, ENDING)
    except OSError:
        raise
    except Exception as error:
        raise _unloadable(path, error) from error
    try:
        return restore(data)
    except ModelFileError:
        raise
    except Exception as error:
        raise _unloadable(path, error) from error


def _unloadable(path: str | os.PathLike[str], error: Exception) -> ModelFileError:
    reason = str(error).rstrip(".")
    if type(error) is not ValueError:
        reason = f"it is damaged ({type(error).__name__}: {reason})"
    return ModelFileError(f"{os.fspath(path)} cannot be loaded: {reason}.")


def pack(name: str, state: Mapping[str, Any], number: int = FORMAT) -> dict[str, list[Part]]:
    """Return the members of a file with the state of a `name`, in the format `number`."""
    try:
        encoded, members = encode_state(state)
    except ValueError as error:
        raise ValueError(f"this {name} cannot be saved: {error}.") from error
    document = {
        "format": number,
        "marginwise": version("marginwise"),
        "class": name,
        "state": encoded,
    }
    document["sha256"] = _digest(document, members)
    # In a fixed order, so that equal models have equal files.
    text = json.dumps(document, allow_nan=False, sort_keys=True).encode()
    if len(text) > MOST_JSON:
        raise ValueError(f"this {name} cannot be saved: its parameters take {len(text)} bytes.")
    if len(members) >= MOST_MEMBERS:
        raise ValueError(
            f"this {name} cannot be saved: it has {len(members)} arrays, and files hold fewer than "
            f"{MOST_MEMBERS}."
        )
    return {DOCUMENT: [text], **dict(sorted(members.items()))}


def unpack(data: bytes, known: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Invert `pack` if the name is a known one; the values are not checked."""
    members = read_members(data)
    document = _read_document(members, tuple(known))
    parts = {name: [content] for name, content in members.items()}
    if _digest(document, parts) != document["sha256"]:
        raise ValueError("its content does not have the checksum that it was saved with")
    return document["class"], decode_state(document["state"], members)


def _read_document(members: dict[str, memoryview], known: Sequence[str]) -> dict[str, Any]:
    """Extract the JSON from the members, and check its structure and version."""
    if DOCUMENT not in members:
        raise ValueError(f"there is no {DOCUMENT} in it")
    text = members.pop(DOCUMENT)
    if len(text) > MOST_JSON:
        raise ValueError(f"{DOCUMENT} is too large")
    document = json.loads(bytes(text))
    if not isinstance(document, dict) or type(document.get("format")) is not int:
        raise ValueError(f"{DOCUMENT} has no format number")
    _check_format(document["format"], document.get("marginwise"))
    if document.keys() != KEYS or not isinstance(document["state"], dict):
        raise ValueError(f"{DOCUMENT} does not have the keys {', '.join(sorted(KEYS))}")
    if not isinstance(document["class"], str) or document["class"] not in known:
        listed = ", ".join(known)
        raise ValueError(f"it holds a {document['class']!r:.40}, not one of {listed}")
    return document


def _check_format(number: int, writer: object) -> None:
    if number > LATEST_FORMAT:
        raise ValueError(
            f"it has format {number} and this is marginwise {version('marginwise')}, which reads "
            f"formats up to {LATEST_FORMAT}; marginwise {writer!s:.20} or newer is needed"
        )
    if number < 1:
        raise ValueError(f"{number} is not a format number")


def _digest(document: Mapping[str, Any], members: Mapping[str, Sequence[Part]]) -> str:
    """Return the SHA-256 of all members, without the digest that the JSON contains."""
    said = {key: value for key, value in document.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for name in sorted(members):
        digest.update(f"\n{name}\n".encode())
        for part in members[name]:
            digest.update(part)
    return digest.hexdigest()


def estimators() -> dict[str, Any]:
    """Return the estimators that files can contain, by name: the public ones."""
    package = importlib.import_module("marginwise")
    public = {name: getattr(package, name) for name in package.__all__}
    return {name: kind for name, kind in public.items() if hasattr(kind, "_algorithm")}


def estimator_class(name: str) -> Any:
    """Return the class of an estimator that files can contain."""
    known = estimators()
    if name not in known:
        raise ValueError(f"it holds a {name!r:.40}, not one of {', '.join(known)}")
    return known[name]

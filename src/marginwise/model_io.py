"""Model files: a zip of `.npy` members and one JSON member, no pickle anywhere.

A file holds the state of one estimator, random state and a format version included: a model that
is loaded goes on as if it had never been stopped. Loading trusts nothing. The size of everything
is known before memory is asked for, and the state is checked in full before the native core,
which believes what it is given, sees any of it.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from marginwise._archive import ENDING, Part, check_ending, read_members, write_members
from marginwise._callbacks import without_notes
from marginwise._codec import decode, encode, read_npy, write_npy
from marginwise._disk import read_file, replace_file
from marginwise._state import check_classifier, check_one_class

FORMAT = 3  # a file of a later format is refused, one of an earlier format stays readable
DOCUMENT = "model.json"
MOST_JSON = 1 << 20  # bytes; all that can be large is in arrays
KEYS = {"format", "marginwise", "class", "sha256", "state"}

Check = Callable[[Any, dict[str, Any]], None]

# The estimators that have files: module, and what a state of theirs must satisfy.
ESTIMATORS: dict[str, tuple[str, Check]] = {
    "OnlineSVC": ("marginwise.online", check_classifier),
    "GapSVC": ("marginwise.gap", check_classifier),
    "TrackingSVC": ("marginwise.tracking", check_classifier),
    "ExactRampSVC": ("marginwise.exact_ramp", check_classifier),
    "ExactSVC": ("marginwise.exact", check_classifier),
    "ExactOneClassSVM": ("marginwise.one_class", check_one_class),
    "KernelPerceptron": ("marginwise.perceptron", check_classifier),
}


class ModelFileError(ValueError):
    """The content of a file is not a model that can be loaded; the message says why."""


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model, fitted or not, to a file that `load` reads back.

    The file is replaced as a whole: whatever goes wrong, an old file of that name stays as it was.
    Its permissions are kept. Temporary files of processes that were killed while they saved to the
    same folder are removed.

    Parameters
    ----------
    model
        An estimator of this package. Its kernel must not be a Python function.
    path
        Where to; the usual suffix is ``.mwz``.

    Raises
    ------
    OSError
        If the file cannot be written, or if the path is a directory, a device or a FIFO.
    """
    write_file(path, _describe(model))


def write_file(path: str | os.PathLike[str], members: Mapping[str, list[Part]]) -> None:
    """Replace a file by an archive of these members."""
    replace_file(path, lambda handle: write_members(handle, members))


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    estimator
        The model: it predicts, and goes on learning, exactly as the one that was saved.

    Raises
    ------
    ModelFileError
        If the content is anything else than a model in order. The file may come from anywhere:
        nothing in it is executed, and it cannot ask for more memory than a few times its size.
    OSError
        If there is no such file, or it cannot be read or is not a regular file.
    """
    return guarded(path, _restore)


def guarded(path: str | os.PathLike[str], restore: Callable[[bytes], Any]) -> Any:
    """Return what is made of a file's content; whatever is wrong with it is a ModelFileError."""
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


def _describe(model: Any) -> dict[str, list[Part]]:
    """Return the members of a model's file."""
    name = type(model).__name__
    if name not in ESTIMATORS or type(model) is not _class_named(name):
        raise ValueError(f"a {name} cannot be saved; what can is: {', '.join(ESTIMATORS)}.")
    if callable(model.kernel):
        raise ValueError(
            f"this {name} cannot be saved: its kernel is a Python function, and files hold no "
            "code. Use kernel='precomputed', or pickle the model."
        )
    state = without_notes(model.__getstate__())
    members = pack(name, state)
    try:
        ESTIMATORS[name][1](type(model), state)
    except ValueError as error:
        raise ValueError(f"this {name} cannot be saved: {error}.") from error
    return members


def pack(name: str, state: Mapping[str, Any]) -> dict[str, list[Part]]:
    """Return the members of a file that holds the state of a `name`."""
    arrays: dict[str, Any] = {}
    try:
        encoded = {key: encode(value, key, arrays) for key, value in state.items()}
    except ValueError as error:
        raise ValueError(f"this {name} cannot be saved: {error}.") from error
    members = {f"{key}.npy": write_npy(array) for key, array in arrays.items()}
    document = {
        "format": FORMAT,
        "marginwise": version("marginwise"),
        "class": name,
        "state": encoded,
    }
    document["sha256"] = _digest(document, members)
    text = json.dumps(document, allow_nan=False).encode()
    if len(text) > MOST_JSON:
        raise ValueError(f"this {name} cannot be saved: its parameters take {len(text)} bytes.")
    return {DOCUMENT: [text], **members}


def _restore(data: bytes) -> Any:
    """Return the model in a file's content; raise ValueError, or anything, if there is none."""
    name, state = unpack(data, ESTIMATORS)
    kind = _class_named(name)
    ESTIMATORS[name][1](kind, state)
    model = kind.__new__(kind)
    model.__setstate__(state)
    return model


def unpack(data: bytes, known: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return what `pack` was given, if it is one of the known names; its values are unchecked."""
    members = read_members(data)
    document = _read_document(members, tuple(known))
    parts = {name: [content] for name, content in members.items()}
    if _digest(document, parts) != document["sha256"]:
        raise ValueError("its content does not have the checksum that it was saved with")
    arrays = {name.removesuffix(".npy"): read_npy(part) for name, part in members.items()}
    state = {key: decode(value, arrays) for key, value in document["state"].items()}
    if arrays:
        raise ValueError(f"unexpected member {min(arrays)}.npy")
    return document["class"], state


def _read_document(members: dict[str, memoryview], known: Sequence[str]) -> dict[str, Any]:
    """Take the JSON out of the members, and check its outline and version."""
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
    if number > FORMAT:
        raise ValueError(
            f"it has format {number} and this is marginwise {version('marginwise')}, which reads "
            f"formats up to {FORMAT}; marginwise {writer!s:.20} or newer is needed"
        )
    if number < 1:
        raise ValueError(f"{number} is no format number")


def _digest(document: Mapping[str, Any], members: Mapping[str, Sequence[Part]]) -> str:
    """Return the SHA-256 of all members but the JSON, and of what the JSON says but for this."""
    said = {key: value for key, value in document.items() if key != "sha256"}
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    for name in sorted(members):
        digest.update(f"\n{name}\n".encode())
        for part in members[name]:
            digest.update(part)
    return digest.hexdigest()


def estimator_class(name: str) -> Any:
    """Return the class of an estimator that has files."""
    if name not in ESTIMATORS:
        raise ValueError(f"it holds a {name!r:.40}, not one of {', '.join(ESTIMATORS)}")
    return _class_named(name)


def _class_named(name: str) -> Any:
    return getattr(importlib.import_module(ESTIMATORS[name][0]), name)

"""Digests of models."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from marginwise._files.archive import read_members
from marginwise._files.format import DOCUMENT, guarded
from marginwise._files.values import read_npy
from marginwise.model_io import _describe

# Ranks of rows in each problem. They are consecutive in a loaded model, but have gaps in memory
# after rows were forgotten. Only their order is part of the model.
PLACES = "_machine.rank.npy"


def model_digest(model: Any) -> str:
    """Compute the SHA-256 digest of a model.

    The digest covers the class, the parameters and the complete fitted state. It does not depend on
    the time, on the version of marginwise or on whether the model was saved and loaded. The digest
    of a file is computed from the stored content, so it does not change if a later version of
    marginwise uses another file format.

    Parameters
    ----------
    model : estimator, str or path-like
        Model that can be saved, or the path of a model file.

    Returns
    -------
    digest : str
        Digest as 64 hexadecimal digits.

    Raises
    ------
    ValueError
        If the model cannot be saved.
    ModelFileError
        If the file is not a model file.

    See Also
    --------
    verify_receipt : Verify that a model is the result of a removal.

    Examples
    --------
    >>> from marginwise import ExactSVC
    >>> from marginwise.removal import model_digest
    >>> model = ExactSVC(gamma=1.0).fit([[0.0], [1.0]], [0, 1])
    >>> other = ExactSVC(gamma=1.0).fit([[0.0], [1.0]], [0, 1])
    >>> model_digest(model) == model_digest(other)
    True
    >>> model_digest(model) == model_digest(other.forget([1]))
    False
    """
    if isinstance(model, str | os.PathLike):
        digest: str = guarded(model, lambda data: _digest(read_members(data)))
        return digest
    parts = _describe(model)
    return _digest({name: memoryview(b"".join(part)) for name, part in parts.items()})


def _digest(members: Mapping[str, memoryview]) -> str:
    """Return the SHA-256 of the class, the state and the arrays of a file."""
    document = json.loads(bytes(members[DOCUMENT]))
    content = {name: document[name] for name in ("class", "state")}
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode())
    for name in sorted(set(members) - {DOCUMENT}):
        array = read_npy(members[name])
        if name.endswith(PLACES):
            array = _ordered(array)
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        # Not the bytes of the member, because the padding of its header may change.
        digest.update(f"\n{name} {little.dtype.str} {little.shape}\n".encode())
        digest.update(little.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _ordered(rank: Any) -> Any:
    """Return the ranks of each problem, numbered consecutively in the same order."""
    order = np.argsort(np.argsort(rank, axis=-1, kind="stable"), axis=-1, kind="stable")
    closed = (rank < 0).sum(axis=-1, keepdims=True)
    return np.where(rank >= 0, order - closed, -1)

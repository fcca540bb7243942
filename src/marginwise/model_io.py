"""Model files: a zip of `.npy` members and one JSON member, no pickle anywhere.

A file holds the state of one estimator, random state and a format version included: a model that
is loaded continues as if it had never been stopped. Loading trusts nothing. The size of everything
is known before memory is asked for, and the state is checked in full before the native core,
which believes what it is given, sees any of it.
"""

from __future__ import annotations

import os
from typing import Any

from marginwise._checks import current
from marginwise._files.format import (
    ModelFileError,
    estimator_class,
    estimators,
    guarded,
    pack,
    unpack,
    write_file,
)
from marginwise._files.values import Part

__all__ = ["ModelFileError", "load", "save"]


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


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    estimator
        The model: it predicts, and continues to learn, exactly as the one that was saved.

    Raises
    ------
    ModelFileError
        If the content is anything else than a model in order. The file may come from anywhere:
        nothing in it is executed, and it cannot ask for more memory than a few times its size.
    OSError
        If there is no such file, or it cannot be read or is not a regular file.
    """
    return guarded(path, _restore)


def _describe(model: Any) -> dict[str, list[Part]]:
    """Return the members of a model's file."""
    name = type(model).__name__
    known = estimators()
    if known.get(name) is not type(model):
        raise ValueError(f"a {name} cannot be saved; what can is: {', '.join(known)}.")
    if callable(model.kernel):
        raise ValueError(
            f"this {name} cannot be saved: its kernel is a Python function, and files hold no "
            "code. Use kernel='precomputed', or pickle the model."
        )
    state = model._stored_state()
    members = pack(name, state)
    try:
        model._check_state(state)
    except ValueError as error:
        raise ValueError(f"this {name} cannot be saved: {error}.") from error
    return members


def _restore(data: bytes) -> Any:
    """Return the model in a file's content; raise ValueError, or anything, if there is none."""
    name, state = unpack(data, estimators())
    kind, state = estimator_class(name), current(state)
    kind._check_state(state)
    model = kind.__new__(kind)
    model.__setstate__(state)
    return model

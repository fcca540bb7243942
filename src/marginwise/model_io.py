"""Model files: a zip of `.npy` members and one JSON member, without pickle.

A file contains the state of one estimator, including its random state and a format version, so that
training of a loaded model continues as if it had never been interrupted. A file can also contain a
scikit-learn pipeline whose transformers belong to an explicit list of classes. Loading does not
trust the file: sizes are known before memory is allocated, and the state is fully validated before
it reaches the native core, which does not check it again.
"""

from __future__ import annotations

import os
from typing import Any

from marginwise._checks import current
from marginwise._files.format import (
    PIPELINE_FORMAT,
    ModelFileError,
    estimator_class,
    estimators,
    guarded,
    pack,
    unpack,
    write_file,
)
from marginwise._files.pipelines.codec import (
    PIPELINE,
    describe_pipeline,
    is_pipeline,
    restore_pipeline,
)
from marginwise._files.values import Part

__all__ = ["ModelFileError", "load", "save"]


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Save a model to a file.

    The file can be read by :func:`load`. It is replaced atomically: if saving fails, an existing
    file with the same name is kept. Permissions of an existing file are preserved. Temporary files
    left behind by processes that were killed while saving are removed from the folder.

    Parameters
    ----------
    model : estimator or Pipeline
        Estimator of this package, or a scikit-learn `Pipeline` that ends in one, fitted or not. The
        kernel must not be a Python function. The other steps of a pipeline must belong to the
        supported classes: common preprocessing of scikit-learn, without user-defined functions.
    path : str or path-like
        Destination. The usual suffix is ``.mwz``.

    Raises
    ------
    ValueError
        If the model is not an estimator of this package, its kernel is a Python function, or a step
        of a pipeline is not supported. The message names the unsupported part.
    OSError
        If the file cannot be written, or if the path is a directory, a device or a FIFO.

    See Also
    --------
    load : Load a model from a file.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginwise import OnlineSVC, load, save
    >>> model = OnlineSVC(gamma=1.0, random_state=0).fit([[0.0], [1.0]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, os.path.join(folder, "model.mwz"))
    ...     load(os.path.join(folder, "model.mwz")).predict([[0.9]])
    array([1])
    """
    write_file(path, _describe(model))


def load(path: str | os.PathLike[str]) -> Any:
    """Load a model from a file.

    The file must have been written by :func:`save`. It may come from an untrusted source: nothing
    in it is executed, and loading uses at most a few times as much memory as the size of the file,
    or about fifteen times for the vocabulary and categories of a pipeline.

    Parameters
    ----------
    path : str or path-like
        File to load.

    Returns
    -------
    model : estimator or Pipeline
        Loaded model. It predicts and continues to learn exactly like the saved model.

    Raises
    ------
    ModelFileError
        If the content is not a valid model.
    OSError
        If the file does not exist, cannot be read or is not a regular file.

    See Also
    --------
    save : Save a model to a file.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginwise import ExactSVC, load, save
    >>> model = ExactSVC(gamma=1.0).fit([[0.0], [1.0]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, os.path.join(folder, "model.mwz"))
    ...     load(os.path.join(folder, "model.mwz")).forget([1]).ids_.tolist()
    [0]
    """
    return guarded(path, _restore)


def _describe(model: Any) -> dict[str, list[Part]]:
    """Return the members of a model file."""
    name = type(model).__name__
    known = estimators()
    if known.get(name) is not type(model):
        if is_pipeline(model):
            return _describe_pipeline(model)
        expected = ", ".join(known)
        local = (
            " Save the estimator returned by its to_local() method."
            if hasattr(model, "to_local")
            else ""
        )
        raise ValueError(
            f"a {name} cannot be saved; expected one of {expected}, or a Pipeline that ends in "
            f"one.{local}"
        )
    if callable(model.kernel):
        raise ValueError(
            f"this {name} cannot be saved: its kernel is a Python function, and files contain no "
            "code. Use kernel='precomputed', or pickle the model."
        )
    state = model._stored_state()
    members = pack(name, state)
    try:
        model._check_state(state)
    except ValueError as error:
        raise ValueError(f"this {name} cannot be saved: {error}.") from error
    return members


def _describe_pipeline(model: Any) -> dict[str, list[Part]]:
    """Return the members of a pipeline file."""
    try:
        state = describe_pipeline(model)
    except ValueError as error:
        raise ValueError(
            f"this {PIPELINE} cannot be saved: {error}. Change that part, or pickle the pipeline."
        ) from error
    return pack(PIPELINE, state, PIPELINE_FORMAT)


def _restore(data: bytes) -> Any:
    """Return the model in the content of a file; raise any error if it is invalid."""
    name, state = unpack(data, [*estimators(), PIPELINE])
    if name == PIPELINE:
        return restore_pipeline(state)
    kind = estimator_class(name)
    state = current(state, kind)
    kind._check_state(state)
    model = kind.__new__(kind)
    model.__setstate__(state)
    return model

"""Crash-safe removal of rows from model files.

The removal takes four steps, whose order makes it safe:

1. Lock the log, load the model, remove the rows in memory and create the receipt.
2. Write the line "begun" with the receipt to the log, and flush it to disk.
3. Replace the model file atomically, and flush it to disk.
4. Write the line "done".

A crash before step 2 leaves the old model and the old log. A crash after step 2 leaves the old
model and a line "begun" whose `digest_before` is the digest of the file: the removal did not take
place and has to be repeated. A crash after step 3 leaves the new model and a line "begun" whose
`digest_after` is the digest of the file: the removal took place. Therefore, there is never a new
model without a receipt, and never a line "done" with the old model. The next removal from the same
file compares the digests, writes the missing line and issues a warning.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from numpy.typing import ArrayLike

from marginwise._warn import warn
from marginwise.model_io import load, save
from marginwise.removal.chain import LogEntry, unfinished
from marginwise.removal.digest import model_digest
from marginwise.removal.log import LogWriter, RemovalLog, sync_folder
from marginwise.removal.receipt import Receipt
from marginwise.removal.remove import final_step, remove, rows_to_remove

StrPath = str | os.PathLike[str]


class RemovalWarning(UserWarning):
    """Warning about an earlier removal from a file that was interrupted."""


def _reached(step: str) -> None:
    """Do nothing; tests replace this function to kill the process between two steps."""


def remove_from_file(
    path: StrPath,
    *,
    ids: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    log: StrPath | RemovalLog | None = None,
    salt: str | None = None,
    compare: bool = False,
    gamma: Literal["recompute", "keep"] = "recompute",
    allow_local: bool = False,
    as_text: bool = False,
) -> Receipt:
    """Remove rows from a model file and log the removal.

    The file is replaced atomically between two entries of the log. A crash at any time leaves
    either the old model, or the new model with its receipt in the log. If an earlier removal from
    this file was interrupted, the log is completed first, and a warning reports whether that
    removal took place.

    Parameters
    ----------
    path : str or path-like
        Path of the file of an exact model, or of a pipeline that ends in one.
    ids : array-like of int, default=None
        Ids of the rows to remove. Pass either `ids` or `groups`.
    groups : array-like of str or int, default=None
        Groups whose rows to remove.
    log : str, path-like or RemovalLog, default=None
        Removal log. None uses the path of the model with ``.removals.jsonl`` appended.
    salt : str, default=None
        Text that is hashed together with each id and group; see `remove`.
    compare : bool, default=False
        Whether to fit a model from scratch to the remaining rows and report the differences in the
        receipt.
    gamma : {"recompute", "keep"}, default="recompute"
        Whether to recompute gamma, centre and class weights; see `remove`.
    allow_local : bool, default=False
        Whether to remove rows although the solution may not be unique; see `remove`.
    as_text : bool, default=False
        Whether `ids` or `groups` are strings, such as lines of a text file, that must be converted
        to integers if the model uses integers.

    Returns
    -------
    receipt : Receipt
        Receipt of the removal, which is also written to the log.

    Raises
    ------
    KeyError
        If an id or a group is not stored; neither the file nor the log changes.
    ValueError
        If the removal is not possible; see `remove`. Neither the file nor the log changes.
    ModelFileError
        If the file is not a model file.
    RemovalLogError
        If the log was altered or ends in a torn line.

    See Also
    --------
    remove : Remove rows from a model in memory.
    RemovalLog : Read and check the log.

    Examples
    --------
    >>> import os, tempfile
    >>> from marginwise import ExactSVC, save
    >>> from marginwise.removal import RemovalLog, remove_from_file, verify_receipt
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> model = ExactSVC(gamma=1.0).fit(X, y, groups=["ann", "bob", "cem", "ann"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.mwz")
    ...     save(model, path)
    ...     receipt = remove_from_file(path, groups=["ann"])
    ...     verify_receipt(receipt, path), list(RemovalLog(path + ".removals.jsonl")) == [receipt]
    (True, True)
    """
    journal = log if isinstance(log, RemovalLog) else RemovalLog(log or default_log(path))
    os.stat(path)  # do not create a log for a missing file, or for a removal that is refused
    if not os.path.exists(journal.path):
        model = load(path)
        chosen = _converted(model, ids, groups) if as_text else (ids, groups)
        rows_to_remove(final_step(model), *chosen, salt=salt, gamma=gamma, allow_local=allow_local)
    with journal.writing() as writer:
        _complete(writer, path)
        seen = _identity(path)
        model = load(path)
        if as_text:
            ids, groups = _converted(model, ids, groups)
        receipt = remove(
            model,
            ids=ids,
            groups=groups,
            salt=salt,
            compare=compare,
            gamma=gamma,
            allow_local=allow_local,
        )
        _reached("removed")
        if _identity(path) != seen:
            raise OSError(
                f"{os.fspath(path)} was replaced by another process while rows were removed from "
                "it; the file was not changed. Repeat the removal."
            )
        begun = writer.write("begun", receipt=receipt, model=Path(path).name)
        _reached("begun")
        try:
            save(model, path)
            sync_folder(path)
            _reached("replaced")
        except BaseException:  # including Ctrl-C
            _close(writer, begun, path)
            raise
        writer.write("done", closes=begun.line, model=begun.model)
        _reached("done")
    return receipt


def default_log(path: StrPath) -> str:
    """Return the default path of the log of a model file."""
    return f"{os.fspath(path)}.removals.jsonl"


def _identity(path: StrPath) -> tuple[int, int, int]:
    """Return values that change if a file is replaced or modified."""
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns, status.st_size


def _complete(writer: LogWriter, path: StrPath) -> None:
    """Log the outcome of interrupted removals from this file, and warn."""
    for entry in unfinished(list(writer.entries)):
        if entry.model != Path(path).name:
            continue
        what = _close(writer, entry, path)
        warn(
            f"the removal that line {entry.line} of the log began at {entry.time} was interrupted: "
            f"{what}",
            RemovalWarning,
        )


def _close(writer: LogWriter, begun: LogEntry, path: StrPath) -> str:
    """Log whether a removal that was begun took place; return a description of the outcome."""
    receipt = begun.receipt
    digests = {model_digest(path), model_digest(load(path))}  # they differ for earlier formats
    took_place = receipt is not None and receipt.digest_after in digests
    writer.write("done" if took_place else "abandoned", closes=begun.line, model=begun.model)
    if took_place:
        return "it took place, and the log now states so."
    if receipt is not None and receipt.digest_before in digests:
        return "it did not take place, and the rows are still stored. Repeat it."
    return "the file has since been replaced by another model, which may store the rows. Repeat it."


def _converted(model: Any, ids: Any, groups: Any) -> tuple[Any, Any]:
    """Convert ids and groups from text to the type that the model stores."""
    if ids is not None:
        return _integers("ids", ids), groups
    table = final_step(model).__dict__.get("_groups")
    if groups is None or table is None or table["names"].dtype.kind == "O":
        return ids, groups
    return ids, _integers("groups", groups)


def _integers(what: str, words: Any) -> list[int]:
    numbers = []
    for k, word in enumerate(words):
        try:
            numbers.append(int(word))
        except ValueError:
            raise ValueError(
                f"{what}[{k}] is {word!r:.40}, but the {what} of this model are integers. Pass "
                "integers."
            ) from None
    return numbers

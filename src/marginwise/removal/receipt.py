"""Receipts of removals and their verification."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from marginwise.removal.digest import model_digest

FORMAT = 1
NUMBERS = ("format", "rows_removed", "rows_left", "support_vectors_before", "support_vectors_after")
TEXTS = ("marginwise", "time", "estimator", "by", "gamma", "digest_before", "digest_after")
HASHES = ("row_hashes", "group_hashes")


@dataclass(frozen=True, kw_only=True)
class Receipt:
    """Receipt of a removal.

    Instances are returned by :func:`remove`. A receipt contains hashes instead of ids, groups and
    features. Anyone who has the salt can recognise ids and groups by guessing them. If receipts are
    given to others, pass a secret `salt` to `remove`.

    Parameters
    ----------
    format : int
        Version of the receipt format, currently 1.
    marginwise : str
        Version of marginwise that removed the rows.
    time : str
        Time of the removal in UTC (ISO 8601).
    estimator : str
        Class of the model.
    by : str
        Whether rows were selected by "ids" or by "groups".
    salt : str or None
        Random text that was hashed together with each id and group. None if `salt` was passed to
        `remove`, in which case it is not stored.
    row_hashes : tuple of str
        SHA-256 of the salt followed by the id, for each removed row, sorted.
    group_hashes : tuple of str
        SHA-256 of the salt followed by the group, for each removed group, sorted. Empty if rows
        were selected by ids.
    rows_removed : int
        Number of rows that were removed.
    rows_left : int
        Number of rows that the model still stores.
    support_vectors_before : int
        Number of support vectors before the removal.
    support_vectors_after : int
        Number of support vectors after the removal.
    digest_before : str
        SHA-256 of the model before the removal; see `model_digest`.
    digest_after : str
        SHA-256 of the model after the removal.
    violation : float
        Largest violation of the optimality conditions over the remaining rows, relative to the
        margin. It is computed only from the coefficients and kernel values and is about 1e-12 or
        less for an exact solution.
    gamma : str
        Value of the parameter `gamma` of `remove`: "recompute" or "keep".
    dependents : dict
        Other values that depended on the removed rows, before and after the removal.
    comparison : dict or None
        Differences from a model fitted from scratch to the remaining rows, if requested.
    unique : bool, default=None
        Whether the solution for the remaining rows is known to be unique, and thus the one of a
        model that was never trained on the removed rows. If False, the model is one of possibly
        several local solutions, and the choice may still depend on the removed rows. None in
        receipts of earlier versions, which do not state it.

    See Also
    --------
    remove : Remove rows and return a receipt.
    verify_receipt : Check a receipt against a model.
    RemovalLog : Append-only log of receipts.

    Examples
    --------
    >>> from marginwise import ExactSVC
    >>> from marginwise.removal import Receipt, remove
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> model = ExactSVC(gamma=1.0).fit(X, y, groups=["ann", "bob", "cem", "ann"])
    >>> receipt = remove(model, groups=["ann"])
    >>> receipt.rows_removed, receipt.rows_left
    (2, 2)
    >>> receipt.covers("ann"), receipt.covers("bob")
    (True, False)
    >>> Receipt.from_json(receipt.to_json()) == receipt
    True
    """

    format: int
    marginwise: str
    time: str
    estimator: str
    by: str
    salt: str | None
    row_hashes: tuple[str, ...]
    group_hashes: tuple[str, ...]
    rows_removed: int
    rows_left: int
    support_vectors_before: int
    support_vectors_after: int
    digest_before: str
    digest_after: str
    violation: float
    gamma: str
    dependents: dict[str, Any]
    comparison: dict[str, float] | None
    unique: bool | None = None

    def covers(self, name: int | str, salt: str | None = None) -> bool:
        """Return whether an id or group was removed.

        Parameters
        ----------
        name : int or str
            Group if rows were selected by groups, otherwise the id of a row.
        salt : str, default=None
            Salt that was passed to `remove`. None uses the salt stored in the receipt.

        Returns
        -------
        covered : bool
            Whether the rows of this group, or the row of this id, were removed.

        Raises
        ------
        ValueError
            If neither the receipt nor the call provides a salt.
        """
        used = self.salt if salt is None else salt
        if used is None:
            raise ValueError(
                "this receipt does not contain its salt, because the salt was passed to remove. "
                "Pass the same salt to covers."
            )
        wanted = salted_hash(used, name)
        return wanted in (self.group_hashes if self.by == "groups" else self.row_hashes)

    def to_json(self, *, indent: int | None = 2) -> str:
        """Return the receipt as JSON.

        Parameters
        ----------
        indent : int or None, default=2
            Number of spaces for indentation. None writes a single line.

        Returns
        -------
        text : str
            A JSON object with the fields of the receipt.
        """
        return json.dumps(asdict(self), indent=indent, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Create a receipt from the output of `to_json`.

        Parameters
        ----------
        text : str
            A JSON object.

        Returns
        -------
        receipt : Receipt
            The receipt.

        Raises
        ------
        ValueError
            If the text is not a receipt.
        """
        try:
            content = json.loads(text, parse_constant=refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"the text is not a receipt: it is not valid JSON ({error}). Pass what "
                "Receipt.to_json returned."
            ) from error
        return cls.from_dict(content)

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Create a receipt from a dictionary.

        Parameters
        ----------
        content : dict
            The fields of the receipt, as `json.loads` returns them.

        Returns
        -------
        receipt : Receipt
            The receipt.

        Raises
        ------
        ValueError
            If fields are missing, unknown or of another type.
        """
        fault = _fault(content)
        if fault:
            raise ValueError(
                f"this is not a receipt of format {FORMAT}: {fault}. Pass what Receipt.to_json "
                "returned."
            )
        return cls(**{**content, **{name: tuple(content[name]) for name in HASHES}})


def _fault(content: Any) -> str | None:
    """Return a description of the first error in the content of a receipt, or None."""
    if not isinstance(content, dict):
        return f"expected a JSON object, got a {type(content).__name__}"
    if content.get("format") != FORMAT:
        return f"its format is {content.get('format')!r:.40}"
    names = {field.name for field in fields(Receipt)}
    for name in sorted((names ^ set(content)) - {"unique"}):  # earlier receipts lack it
        return f"{name} is {'missing' if name in names else 'unknown'}"
    expected: dict[str, tuple[type, ...]] = {
        **dict.fromkeys(NUMBERS, (int,)),
        **dict.fromkeys(TEXTS, (str,)),
        **dict.fromkeys(HASHES, (list, tuple)),
        "salt": (str, type(None)),
        "violation": (int, float),
        "dependents": (dict,),
        "comparison": (dict, type(None)),
    }
    for name, kinds in expected.items():
        if not isinstance(content[name], kinds) or isinstance(content[name], bool):
            return f"{name} is {content[name]!r:.40}"
    if not isinstance(content.get("unique"), bool | None):
        return f"unique is {content['unique']!r:.40}"
    if not abs(content["violation"]) <= sys.float_info.max:
        return f"violation is {content['violation']!r:.40}"
    for name in HASHES:
        if not all(isinstance(value, str) for value in content[name]):
            return f"{name} must be strings"
    return None


def refuse_constant(name: str) -> float:
    """Raise for NaN and infinities, which Python accepts although they are not valid JSON."""
    raise ValueError(f"{name} is not a number")


def salted_hash(salt: str, name: int | str) -> str:
    """Return the SHA-256 of a salt followed by an id or a group, in UTF-8."""
    return hashlib.sha256(f"{salt}{name}".encode("utf-8", "surrogatepass")).hexdigest()


def salted_hashes(salt: str, names: Iterable[int | str]) -> tuple[str, ...]:
    """Return the distinct hashes of names, sorted so that they do not reveal the order."""
    return tuple(sorted({salted_hash(salt, name) for name in names}))


def verify_receipt(receipt: Any, model: Any) -> bool:
    """Verify that a model is the result of a removal.

    The verification fails if the model has learned or forgotten rows since the removal. Verify the
    receipt of the last removal, or a copy of the model that was archived with the receipt.

    Parameters
    ----------
    receipt : Receipt
        Receipt of the removal.
    model : estimator, str or path-like
        Model, or path of its file.

    Returns
    -------
    verified : bool
        Whether the digest of the model equals `digest_after`.

    See Also
    --------
    model_digest : Compute the digest of a model.

    Examples
    --------
    >>> from marginwise import ExactSVC
    >>> from marginwise.removal import remove, verify_receipt
    >>> model = ExactSVC(gamma=1.0).fit([[-1.0], [1.0], [2.0]], [0, 1, 1])
    >>> receipt = remove(model, ids=[2])
    >>> verify_receipt(receipt, model), verify_receipt(receipt, model.partial_fit([[3.0]], [1]))
    (True, False)
    """
    if not isinstance(receipt, Receipt):
        kind = type(receipt).__name__
        raise TypeError(f"receipt is a {kind}; expected a Receipt. Use Receipt.from_json.")
    return receipt.digest_after == model_digest(model)

"""Groups of stored rows, such as customers.

A model has one table, `_groups`: the ids of the stored rows that have a group, in ascending order,
and their groups. The table is replaced, never changed in place, because drafts and other threads
share it. Lookups consider stored rows only, so that entries of evicted rows have no effect. Such
entries are dropped at the end of a call and are never saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from marginwise._arrays import Ints
from marginwise._checks import is_integer, plain
from marginwise._estimator.base import KernelModel
from marginwise._files.engine_state import check_array

KINDS = {"i": "integers", "O": "strings"}
LARGEST = np.iinfo(np.int64)


class GroupTable(TypedDict):
    """Ids of stored rows in ascending order, and their groups: int64, or strings as objects."""

    ids: Ints
    names: NDArray[Any]


# -- validation --------------------------------------------------------------------------------


def check_groups(groups: Any, rows: int | None = None) -> NDArray[Any]:
    """Return groups as an array of int64, or of strings as objects.

    Parameters
    ----------
    groups
        One group per row, or any number of groups.
    rows
        Number of rows; None allows any number of groups.
    """
    # For a list with integers and strings, NumPy would convert the integers to strings.
    given = groups if hasattr(groups, "dtype") else np.array(groups, dtype=object)
    given = np.asarray(given)
    if rows is None and given.ndim == 0:
        given = given.reshape(1)
    if given.ndim != 1 or (rows is not None and len(given) != rows):
        expected = "a list of groups" if rows is None else f"one group for each of {rows} rows"
        raise ValueError(
            f"groups has shape {given.shape}; expected {expected}. Pass strings or integers."
        )
    items = given.tolist()
    kind = _kind_of(items)
    if kind == "O":
        names = np.empty(len(items), dtype=object)
        names[:] = [str(item) for item in items]
        return names
    return np.array(items, dtype=np.int64)


def _kind_of(items: list[Any]) -> str:
    """Return "O" for strings and "i" for integers; raise for other or mixed types."""
    for k, item in enumerate(items):
        if not (isinstance(item, str) or is_integer(item)):
            raise ValueError(
                f"groups[{k}] is {plain(item)!r:.80}; expected a string or an integer. Pass rows "
                "without a group in a separate call."
            )
        if isinstance(item, str) != isinstance(items[0], str):
            raise ValueError(
                f"groups[0] is {plain(items[0])!r} and groups[{k}] is {plain(item)!r}; expected "
                "either strings or integers. Convert them to one kind."
            )
        if is_integer(item) and not LARGEST.min <= item <= LARGEST.max:
            raise ValueError(f"groups[{k}] is {item}; expected a 64-bit integer. Use strings.")
    return "O" if items and isinstance(items[0], str) else "i"


def check_group_table(table: Any) -> None:
    """Raise ValueError unless a value from a file is a table of groups."""
    if not isinstance(table, Mapping) or set(table) != {"ids", "names"}:
        raise ValueError("_groups must be a dict of ids and names")
    ids, names = table["ids"], table["names"]
    check_array("the ids of _groups", ids, "int64", (np.size(ids),))
    if not (ids[:-1] < ids[1:]).all():
        raise ValueError("the ids of _groups must be in order and different")
    kind = "object" if isinstance(names, np.ndarray) and names.dtype.kind == "O" else "int64"
    check_array("the names of _groups", names, kind, (len(ids),))
    if kind == "object" and not all(type(name) is str for name in names):
        raise ValueError("the names of _groups must be strings or integers")


# -- storage -----------------------------------------------------------------------------------


class Grouped(KernelModel):
    """Base of the estimators that store groups and can be empty."""

    _groups: GroupTable

    @property
    def groups_(self) -> NDArray[np.object_]:
        """Groups of the stored rows, in the order of `ids_`.

        None for rows without a group. Only available if `groups` was passed.
        """
        model = self._now()
        model._fitted()
        table = model.__dict__.get("_groups")
        if table is None:
            raise AttributeError(
                f"this {type(self).__name__} has no groups_: it was trained without groups. Pass "
                "groups to fit or partial_fit."
            )
        ids = model.ids_
        groups = np.full(len(ids), None, dtype=object)
        known = np.isin(ids, table["ids"])
        groups[known] = table["names"][np.searchsorted(table["ids"], ids[known])]
        return groups

    @property
    def is_empty_(self) -> bool:
        """Whether all rows have been forgotten. An empty model cannot predict."""
        return self._fitted().native.size == 0

    def _require_rows(self) -> None:
        """Raise if the model is empty."""
        if self._engine.native.size == 0:
            raise NotFittedError(
                f"this {type(self).__name__} is empty, because all rows were forgotten. Call fit "
                "or partial_fit."
            )

    def _check_groups(self, groups: Any, rows: int) -> NDArray[Any] | None:
        return None if groups is None else check_groups(groups, rows)

    def _note_groups(self, names: Ints, groups: NDArray[Any] | None) -> None:
        table = self._held_groups()
        if groups is None:
            if table is not None and np.isin(names, table["ids"]).any():
                self._groups = _without(table, names)
            return
        # If a call fails, rows that were learned in place remain in the engine. Because a row and
        # its group must be stored together, the estimator uses a clone until the call succeeds.
        self._step_aside()
        if table is None or len(table["ids"]) == 0:
            table = {"ids": np.empty(0, dtype=np.int64), "names": groups[:0]}
        elif table["names"].dtype != groups.dtype and len(groups):
            raise ValueError(
                f"groups are {KINDS[groups.dtype.kind]}, but those of the stored rows are "
                f"{KINDS[table['names'].dtype.kind]}. Convert them to the same kind."
            )
        ids, places = np.unique(np.concatenate([table["ids"], names]), return_index=True)
        joined = np.concatenate([table["names"], groups])
        self._groups = {"ids": ids, "names": joined[places]}

    def _ids_of_groups(self, groups: ArrayLike) -> Ints:
        """Return the ids of the stored rows of groups; raise KeyError if a group has none."""
        wanted = set(check_groups(groups).tolist())
        table = self._held_groups()
        names = [] if table is None else table["names"].tolist()
        unknown = sorted(wanted - set(names), key=str)
        if unknown:
            listed = ", ".join(repr(name) for name in unknown[:5])
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise KeyError(
                f"groups without stored rows: {listed}{more}{self._hint(table)}. No row was "
                "forgotten. Pass groups from groups_."
            )
        chosen = np.array([name in wanted for name in names], dtype=bool)
        return np.empty(0, dtype=np.int64) if table is None else table["ids"][chosen]

    @staticmethod
    def _hint(table: GroupTable | None) -> str:
        if table is None or len(table["ids"]) == 0:
            return ", because no stored row has a group"
        return f" (the groups of this model are {KINDS[table['names'].dtype.kind]})"

    def _held_groups(self) -> GroupTable | None:
        """Return the table of the currently stored rows."""
        table = self.__dict__.get("_groups")
        if table is None or "_engine" not in self.__dict__:
            return None
        held = self._engine.native.holds(table["ids"]).astype(bool)
        return table if held.all() else _only(table, held)

    def _drop_groups(self, names: Ints) -> None:
        if "_groups" in self.__dict__:
            self._groups = _without(self._groups, names)

    def _tidy(self) -> None:
        # Without a window, only `forget` removes rows, and it also drops their groups.
        if "_groups" in self.__dict__ and self._engine.plan.settings["window"]:
            self._groups = self._held_groups()  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if "_groups" in state:
            machine = state["_machine"]
            stored = machine["ids"][(machine["rank"] >= 0).any(axis=0)]
            table: GroupTable = state["_groups"]
            state["_groups"] = _only(table, np.isin(table["ids"], stored))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        table = self._held_groups()
        if table is not None:
            # joblib may load arrays as memory maps.
            self._groups = {"ids": np.asarray(table["ids"]), "names": np.asarray(table["names"])}


def _only(table: GroupTable, held: NDArray[np.bool_]) -> GroupTable:
    return {"ids": table["ids"][held], "names": table["names"][held]}


def _without(table: GroupTable, names: Ints) -> GroupTable:
    return _only(table, ~np.isin(table["ids"], names))

"""``finish``, which is a parameter and a method."""

from __future__ import annotations

from typing import Any


class FinishSwitch:
    """Let ``finish`` be both a parameter and a method.

    Assigning sets the parameter, which is what ``get_params`` returns; reading gives an object
    that is as true as the parameter and that finishes the model when it is called.
    """

    def __get__(self, estimator: Any, owner: type) -> Any:
        return self if estimator is None else _Finish(estimator)

    def __set__(self, estimator: Any, value: bool) -> None:
        estimator.__dict__["finish"] = value


class _Finish:
    def __init__(self, estimator: Any) -> None:
        self._estimator = estimator

    def __call__(self) -> Any:
        """Settle the examples held: REPROCESS until none violates by more than `tol`."""
        return self._estimator._finish_now()

    def __bool__(self) -> bool:
        return bool(self._estimator.__dict__["finish"])

    def __eq__(self, other: object) -> bool:
        return bool(self) == other

    def __hash__(self) -> int:
        return hash(bool(self))

    def __repr__(self) -> str:
        return repr(bool(self))

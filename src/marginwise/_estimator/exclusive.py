"""Objects that one thread at a time may change."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self, TypeVar, cast

from marginwise._core import Turn

_Method = TypeVar("_Method", bound=Callable[..., Any])


class Exclusive:
    """Base of objects whose `alone` methods wait for each other, whichever thread calls them."""

    __slots__ = ("_turn",)  # not in __dict__: it belongs to the object, not to its state
    _turn: Turn

    def __new__(cls, *_: Any, **__: Any) -> Self:
        self = super().__new__(cls)
        self._turn = Turn()
        return self


def alone(method: _Method) -> _Method:
    """Let a method wait until no other thread is in such a method of the same object."""

    @functools.wraps(method)
    def wrapper(self: Exclusive, /, *args: Any, **kwargs: Any) -> Any:
        return self._turn.run(method, self, *args, **kwargs)

    return cast(_Method, wrapper)


def alone_once(method: _Method) -> _Method:
    """Let a method wait likewise, and refuse to be called from such a method in its own thread."""

    @functools.wraps(method)
    def wrapper(self: Exclusive, /, *args: Any, **kwargs: Any) -> Any:
        refuse_reentry(self)
        return self._turn.run(method, self, *args, **kwargs)

    return cast(_Method, wrapper)


def refuse_reentry(model: Exclusive) -> None:
    """Raise if the call that trains a model is the one that runs here."""
    if model._turn.mine:
        raise RuntimeError(
            f"this {type(model).__name__} is being trained by the call that runs here. A kernel "
            "function must compute kernel values from its two blocks alone; a callback must use "
            "the model that it is given."
        )

"""scikit-learn's callbacks, which exist since 1.9: `fit` is a task with one subtask per epoch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from marginwise._params import is_integer

try:
    from sklearn import callback as _sklearn
except ImportError:  # scikit-learn before 1.9
    _sklearn = None


_Base: Any = object if _sklearn is None else _sklearn.CallbackSupportMixin


class CallbackSupportMixin(_Base):  # type: ignore[misc]
    """Adds `set_callbacks` if scikit-learn has callbacks."""


Fit = TypeVar("Fit", bound=Callable[..., Any])
Item = TypeVar("Item")

# What scikit-learn notes in an estimator for its callbacks; not part of the model.
NOTES = (
    "_skl_callbacks",
    "_skl_callbacks_to_teardown",
    "_callback_fit_ctx",
    "_parent_callback_ctx",
)


def as_task(fit: Fit) -> Fit:
    """Decorate `fit` so that callbacks are set up, told of the task, and torn down."""
    if _sklearn is None:
        return fit

    @functools.wraps(fit)
    def fit_as_task(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if not _has_callbacks(estimator):
            return fit(estimator, X, y, sample_weight)
        about = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
        task = estimator._init_callback_context(max_subtasks=_count_epochs(estimator))
        task.call_on_fit_task_begin(estimator=estimator, **about)
        fit(estimator, X, y, sample_weight)
        task.call_on_fit_task_end(estimator=estimator, **about, reconstruction_attributes={})
        return estimator

    decorated: Fit = _sklearn.with_callbacks(fit_as_task)
    return decorated


def epochs(
    estimator: Any, orders: Iterable[Item], X: Any, y: Any, sample_weight: Any
) -> Iterator[Item]:
    """Give the orders of the epochs, each as a subtask of `fit`; a callback may end them."""
    task = estimator.__dict__.get("_callback_fit_ctx")
    if task is None:
        yield from orders
        return
    about = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
    for order in orders:
        epoch = task.subcontext(task_name="epoch")
        epoch.call_on_fit_task_begin(estimator=estimator, **about)
        yield order
        # An estimator copies its model when it is copied: there is nothing to reconstruct.
        if epoch.call_on_fit_task_end(estimator=estimator, **about, reconstruction_attributes={}):
            return


def _count_epochs(estimator: Any) -> int | None:
    """Return the number of epochs, or None if it is not known beforehand."""
    known = estimator._selection == "random" and is_integer(estimator.epochs)
    return int(estimator.epochs) if known else None


def _has_callbacks(estimator: Any) -> bool:
    return any(note in estimator.__dict__ for note in NOTES)

"""Callbacks of scikit-learn 1.9 and later: `fit` has one subtask per epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from marginwise._checks import is_integer

try:
    from sklearn import callback as _sklearn
except ImportError:  # scikit-learn before 1.9
    _sklearn = None


_Base: Any = object if _sklearn is None else _sklearn.CallbackSupportMixin


class CallbackSupportMixin(_Base):  # type: ignore[misc]
    """Add `set_callbacks` if scikit-learn supports callbacks."""


Item = TypeVar("Item")
Fit = TypeVar("Fit", bound=Callable[..., Any])

# Attributes that scikit-learn sets for its callbacks. They are not part of the model.
NOTES = frozenset(
    {
        "_skl_callbacks",
        "_skl_callbacks_to_teardown",
        "_callback_fit_ctx",
        "_parent_callback_ctx",
    }
)


def with_callbacks(fit: Fit) -> Fit:
    """Decorate `fit` to tear down callbacks when it returns or raises."""
    return fit if _sklearn is None else _sklearn.with_callbacks(fit)


def fit_as_task(estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any) -> Any:
    """Fit an estimator as a task that its callbacks are notified of."""
    about = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}
    task = estimator._init_callback_context(max_subtasks=_count_epochs(estimator))
    task.call_on_fit_task_begin(estimator=estimator, **about)
    estimator._fit(X, y, sample_weight, groups)
    task.call_on_fit_task_end(estimator=estimator, **about, reconstruction_attributes={})
    return estimator


def epochs_as_subtasks(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> Callable[[Iterable[Item]], Iterator[Item]] | None:
    """Return a function that makes epochs subtasks of `fit`, or None without callbacks."""
    task = estimator.__dict__.get("_callback_fit_ctx")
    if task is None:
        return None
    about = {"X": X, "y": y, "metadata": {"sample_weight": sample_weight}}

    def subtasks(epochs: Iterable[Item]) -> Iterator[Item]:
        for item in epochs:
            epoch = task.subcontext(task_name="epoch")
            epoch.call_on_fit_task_begin(estimator=estimator, **about)
            yield item
            # No attributes to reconstruct, because a copy of an estimator includes its model.
            end = epoch.call_on_fit_task_end
            if end(estimator=estimator, **about, reconstruction_attributes={}):
                return

    return subtasks


def _count_epochs(estimator: Any) -> int | None:
    """Return the number of epochs, or None if it is not known in advance."""
    known = getattr(estimator, "selection", "random") == "random" and is_integer(estimator.epochs)
    return int(estimator.epochs) if known else None

"""Base class of learners that update single coefficients and have no bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from marginwise._checks import Rule, boolean
from marginwise._engine.engine import HISTORY
from marginwise._engine.plan import centre_for
from marginwise._estimator.classifier import KernelClassifier
from marginwise._files.engine_state import check_array, require_names
from marginwise._warn import warn

HISTORY_TYPES = dict(zip(HISTORY, ("float64", "int64", "int64"), strict=True))
SAME_EVERYWHERE = ("rbf", "tanimoto")  # K(x, x) is 1
OF_PRODUCTS = ("linear", "poly", "sigmoid")
OFF_CENTRE = 1.0  # ratio of |mean|^2 to the variance above which a missing bias matters


class BiasFreeClassifier(KernelClassifier):
    """Base class of the classifiers without a bias.

    f(x) is a weighted sum of kernel values without a constant term, so decision boundaries pass
    through the origin of the feature space of the kernel. This has no effect on local kernels.
    Features should be centred for kernels that are functions of the inner product.
    """

    center: bool

    _rules: ClassVar[dict[str, Rule]] = {**KernelClassifier._rules, "center": boolean()}

    @property
    def history_(self) -> dict[str, NDArray[Any]]:
        """Values recorded after each row with ``record=True``.

        "gap" is the duality gap over the stored examples, "members" is their number, and
        "kernel_evaluations" counts the kernel values computed so far. Arrays have one column per
        class for more than two classes.
        """
        if not hasattr(self, "record"):
            raise AttributeError(f"{type(self).__name__} does not record history_.")
        engine = self._fitted()
        if not engine.plan.record:
            raise AttributeError(
                "history_ was not recorded. Set record=True and train the model again."
            )
        history = dict(zip(HISTORY, engine.records, strict=True))
        return {name: v[:, 0] if v.shape[1] == 1 else v for name, v in history.items()}

    _own_state = frozenset({"_history"})

    @classmethod
    def _check_own_state(cls, state: Mapping[str, Any], problems: int) -> None:
        if "_history" not in state:
            return
        history = state["_history"]
        if not isinstance(history, dict):
            raise ValueError("_history must be a dict")
        require_names(HISTORY, history, "parts of _history")
        rows = np.shape(history["gap"])[0]
        for name, dtype in HISTORY_TYPES.items():
            check_array(name, history[name], dtype, (rows, problems))

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        history = state.pop("_history", None)
        super().__setstate__(state)
        if history is not None:
            self._engine.set_records(*(history[name] for name in HISTORY))

    # -- parts ---------------------------------------------------------------------------------

    def _centre(self, X: Any, kernel: str, *, streaming: bool) -> list[float]:
        if kernel == "rbf":
            return centre_for(X, kernel, streaming=streaming)
        if not self.center:
            self._warn_off_centre(X, kernel)
            return []
        if sp.issparse(X) or kernel == "callable":
            what = "sparse features" if sp.issparse(X) else "a callable kernel"
            raise ValueError(
                f"center=True is not supported with {what}. Set center=False, and use an "
                "estimator with a bias (OnlineSVC or ExactSVC) or kernel='rbf', which needs none."
            )
        mean: list[float] = X.mean(axis=0, dtype=np.float64).tolist()
        return mean

    def _warn_off_centre(self, X: Any, kernel: str) -> None:
        """Warn if the missing bias will degrade the model."""
        if kernel not in OF_PRODUCTS or sp.issparse(X) or X.shape[0] < 2:
            return
        mean, variance = X.mean(axis=0, dtype=np.float64), X.var(axis=0, dtype=np.float64)
        if mean @ mean > OFF_CENTRE * variance.sum():
            warn(
                f"{type(self).__name__} has no bias and the features are not centred: with "
                f"kernel={kernel!r}, all decision boundaries pass through the origin. Set "
                "center=True or standardize the features."
            )

    def _check_batch(self, batch: Any) -> None:
        if self._engine.plan.kernel in SAME_EVERYWHERE:
            return
        squares = self._engine.diagonal(batch)
        row = int(np.argmin(squares)) if len(squares) else 0
        if len(squares) and not squares[row] > 0:
            where = " after centring" if self._engine.plan.center else ""
            raise ValueError(
                f"the kernel of row {row} with itself{where} is {squares[row]:.3g}; "
                f"{type(self).__name__} requires K(x, x) > 0. Remove the row or use another "
                "kernel."
            )

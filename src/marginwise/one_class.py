"""ExactOneClassSVM: what is normal, exact after every row learned and every row forgotten."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float, Ints
from marginwise._checks import (
    Rule,
    check_features,
    check_ids,
    check_params,
    check_square,
    check_weights,
    either,
    none,
    positive,
    share,
    take_rows,
)
from marginwise._engine.engine import HARD_COST
from marginwise._engine.exact import ExactEngine
from marginwise._estimator.base import on_draft
from marginwise._estimator.exact import ExactModel
from marginwise._files.state import check_one_class

ON_SPHERE = 1e-12  # relative to the terms that add up: what rounding cannot tell from 0


class ExactOneClassSVM(OutlierMixin, ExactModel):  # type: ignore[misc]
    """The smallest sphere around most of the rows, exact at any time [laskov2006, section 3].

    Rows are added with `partial_fit` and taken back with `forget`. Where K(x, x) is the same for
    all rows, as with "rbf", the sphere separates what scikit-learn's ``OneClassSVM`` of the same
    ``nu`` separates, and `decision_function` is the same, to rounding.

    Parameters
    ----------
    nu
        About the share of the rows that may lie outside: an upper bound of it, and a lower bound of
        the share of support vectors.
    C
        The bound of each coefficient, where they add up to 1, instead of `nu`: a fixed cost of
        lying outside. It needs 1 / C rows or more; with fewer, all coefficients are at C and only
        the order of the scores has a meaning.
    kernel
        "linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed" (X is the matrix of
        kernel values), or a function that is given two blocks of rows and returns the matrix of
        kernel values between them. It should be positive semi-definite.
    gamma
        Scale of the "rbf", "poly" and "sigmoid" kernels: a number, "scale" for
        1 / (n_features * weighted variance of X), or "auto" for 1 / n_features.
    degree
        Degree of the "poly" kernel.
    coef0
        Constant of the "poly" and "sigmoid" kernels.
    window
        How many rows are held at most; None holds all. Before one more is learned, another is
        forgotten.
    evict
        Which row makes room in the window: the "oldest", or the "lightest", of least weight in the
        model (the oldest of several).
    record
        Whether to keep `path_`.
    cache_size
        Megabytes for kernel rows. Smaller is slower, with the same result.
    n_jobs
        Threads; None for 1, or what ``joblib.parallel_config`` sets; -1 for one per processor that
        the process may use. The model is the same for any number.
    verbose
        1 shows a progress bar on terminals and in notebooks; elsewhere it logs a line every few
        seconds (logger ``marginwise``, level INFO), or writes it to stderr if logging is not
        configured.

    Attributes
    ----------
    n_features_in_
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise import ExactOneClassSVM
    >>> X = np.random.RandomState(0).normal(size=(200, 2))
    >>> model = ExactOneClassSVM(nu=0.1, gamma=0.5).fit(X)
    >>> model.predict([[0.0, 0.0], [4.0, 4.0]])
    array([ 1, -1])
    >>> model = model.partial_fit([[4.0, 4.0]]).forget([0, 1])
    >>> len(model.ids_)
    199
    """

    _rules: ClassVar[dict[str, Rule]] = {
        **ExactModel._rules,
        "nu": share(),
        "C": either(none(), positive()),
    }

    def __init__(
        self,
        *,
        nu: float = 0.1,
        C: float | None = None,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        window: int | None = None,
        evict: Literal["lightest", "oldest"] = "oldest",
        record: bool = False,
        cache_size: float = 2000,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.nu = nu
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.window = window
        self.evict = evict
        self.record = record
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- learning ------------------------------------------------------------------------------

    @on_draft
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from nothing.

        Parameters
        ----------
        X
            Rows: dense, CSR, a data frame, or the square matrix of kernel values where
            ``kernel="precomputed"``.
        y
            Ignored.
        sample_weight
            Scales the bound of each row's coefficient; rows of weight zero are left out.
        """
        check_params(self)
        X, _ = check_features(self, X, reset=True)
        check_square(self, X)
        weights = check_weights(sample_weight, X.shape[0])
        names = np.arange(X.shape[0], dtype=np.int64)
        self._start(X, weights, streaming=False)
        self._learn(X, weights, names)
        return self

    @on_draft
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows, in the order given.

        Parameters
        ----------
        X
            Rows to learn. How a stream is cut into calls does not change the model, except for
            ``gamma="scale"``, which is computed from the first call.
        y
            Ignored.
        sample_weight
            Scales the bound of each row's coefficient; rows of weight zero are left out.
        ids
            Integers that name the rows in `support_` and `ids_`; by default, the running count.
        """
        check_params(self)
        first = not hasattr(self, "_engine")
        X, _ = check_features(self, X, reset=first)
        weights = check_weights(sample_weight, X.shape[0])
        names = check_ids(ids, X.shape[0], 0 if first else self._engine.native.next_id)
        if first:
            self._start(X, weights, streaming=True)
        elif self._starts_over:
            kept = np.flatnonzero(weights > 0)
            ones = np.ones(len(kept), dtype=np.int32)
            self._begin_again(take_rows(X, kept), weights[kept], ones)
        self._learn(X, weights, names)
        return self

    def _start(self, X: Any, weights: Float, *, streaming: bool) -> None:
        self._square = 1.0
        rows = np.flatnonzero(weights > 0)
        self._engine = self._make_engine(take_rows(X, rows), weights[rows], streaming=streaming)

    def _learn(self, X: Any, weights: Float, names: Ints) -> None:
        kept = np.flatnonzero(weights > 0)
        if len(kept) < len(weights):
            X, weights, names = take_rows(X, kept), weights[kept], names[kept]
        costs = weights * (1.0 if self.C is None else min(float(self.C), HARD_COST))
        labels = np.ones(len(names), dtype=np.int32)
        self._learn_rows(self._labelled(X, labels, costs, names), names)

    def _check_batch(self, batch: Any) -> None:
        if self.kernel != "precomputed":
            return
        squares = self._engine.diagonal(batch)
        if self._engine.native.next_id == 0:
            self._square = float(squares[0])
        if not np.allclose(squares, self._square, rtol=1e-9, atol=0):
            row = int(np.argmax(np.abs(squares - self._square)))
            raise ValueError(
                f"the kernel of row {row} with itself is {squares[row]:.6g}, that of others "
                f"{self._square:.6g}; with kernel='precomputed' they must be the same, for the "
                "sphere needs those of rows to be judged, too. Normalise the kernel."
            )

    # -- predicting ----------------------------------------------------------------------------

    def score_samples(self, X: Any) -> Float:
        """Return how normal each row is: larger is more.

        It is the sum of ``alpha K(x_i, x)``, less half the sum of alpha times ``K(x, x) - 1``.
        """
        return self._values(X, lambda inside, offset: inside + offset)

    def decision_function(self, X: Any) -> Float:
        """Return `score_samples` less `offset_`: positive inside the sphere, 0 on it.

        A row's value does not depend on the rows it is given with.
        """
        return self._values(X, lambda inside, _: inside)

    def _values(self, X: Any, value: Callable[[Float, float], Float]) -> Float:
        """Return what `value` makes of the signed distances of rows and of the offset."""
        model = self._now()
        check_is_fitted(model)
        X, _ = check_features(model, X, reset=False)
        rows = model._augmented(X, None)

        def read(engine: ExactEngine) -> Float:
            batch = engine.batch(rows)
            squares = model._square if model.kernel == "precomputed" else engine.diagonal(batch)
            total = engine.total
            inside: Float = engine.native.decision(batch)[:, 0] - total / 2 * squares
            rounding = ON_SPHERE * (total * squares + abs(engine.native.bias()[0]))
            inside = np.where(np.abs(inside) <= rounding, 0.0, inside)
            return value(inside, float(total / 2 - engine.native.bias()[0]))

        values: Float = model._engine.at_once(read)
        return values

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Return 1 for rows inside, on the sphere included, and -1 for the others."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    # -- looking inside ------------------------------------------------------------------------

    @property
    def offset_(self) -> float:
        """What `score_samples` is on the sphere, so that `decision_function` is 0 there."""
        engine: Any = self._fitted()
        offset: float = engine.at_once(lambda e: float(e.total / 2 - e.native.bias()[0]))
        return offset

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """The number of support vectors."""
        return np.array([len(self.support_)], dtype=np.int32)

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        check_one_class(cls, state)

    def _settings(self) -> dict[str, Any]:
        nu = float(self.nu) if self.C is None else 0.0
        return {"sphere": True, "nu": nu, **self._window_settings()}

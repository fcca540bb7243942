"""ExactOneClassSVM: novelty detection, exact after every row learned or forgotten."""

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
    take_rows,
)
from marginwise._engine.engine import HARD_COST
from marginwise._engine.exact import ExactEngine
from marginwise._estimator.base import on_draft
from marginwise._estimator.exact import ExactModel
from marginwise._estimator.unchecked import rows_to_predict
from marginwise._files.state import check_one_class

ON_SPHERE = 1e-12  # decision values below this fraction of their terms are rounding errors


class ExactOneClassSVM(OutlierMixin, ExactModel):  # type: ignore[misc]
    """Novelty detector that is exact after every row learned or forgotten.

    The model is the smallest sphere in the feature space of the kernel that contains most of the
    rows [laskov2006]_, [tax1999]_. `partial_fit` adds rows and `forget` removes them. If ``K(x,
    x)`` is the same for all rows, as with "rbf", the model equals :class:`sklearn.svm.OneClassSVM`
    with the same `nu`, and the decision functions agree up to rounding.

    Parameters
    ----------
    nu : float, default=0.1
        Upper bound on the fraction of rows outside the sphere and lower bound on the fraction of
        support vectors. Ignored if `C` is given.
    C : float, default=None
        Upper bound of each coefficient, where the coefficients sum to 1. If given, it replaces `nu`
        by a fixed cost of rows outside the sphere. The model needs at least ``1 / C`` rows; with
        fewer rows, all coefficients equal C and only the order of the scores is meaningful.
    kernel : {"linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed"} \
        or callable, default="rbf"
        Kernel function. With "precomputed", `X` is the matrix of kernel values. A callable is
        called with two arrays of rows and returns the matrix of kernel values between them. The
        kernel should be positive semi-definite.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the "rbf", "poly" and "sigmoid" kernels. "scale" uses ``1 / (n_features *
        X.var())``, where the variance takes sample weights into account; "auto" uses ``1 /
        n_features``.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant term of the "poly" and "sigmoid" kernels.
    window : int, default=None
        Maximum number of stored rows. When it is reached, learning a row first forgets another one,
        which `evict` determines. None stores all rows.
    evict : {"lightest", "oldest"}, default="oldest"
        Row to forget when the window is full. "oldest" follows drifting data. "lightest" is the row
        with the smallest coefficient, or the oldest of several.
    record : bool, default=False
        Whether to record `path_` while training.
    cache_size : float or "auto", default="auto"
        Size of the kernel cache, in megabytes. It affects the training time but not the model.
        "auto" allows a quarter of the memory available when the first model is fitted, at most 8
        GB. Memory is allocated only when it is needed.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a ``joblib.parallel_config`` context. -1 means
        using all processors available to the process. The model does not depend on the number of
        threads.
    verbose : int, default=0
        If positive, show a progress bar in terminals and notebooks. Elsewhere, log a line every few
        seconds to the logger ``marginwise`` at level INFO, or write it to stderr if logging is not
        configured.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (1, n_SV)
        Coefficients of the support vectors.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit. Only defined if `X` has feature names that are all
        strings.
    gamma_ : float
        Value used for `gamma`. Only available with the "rbf", "poly" and "sigmoid" kernels.
    groups_ : ndarray of shape (n_stored,), dtype=object
        Groups of the stored rows, in the order of `ids_`. None for rows without a group. Only
        available if `groups` was passed.
    ids_ : ndarray of shape (n_stored,)
        Ids of all rows stored in the model, including those that are not support vectors.
    intercept_ : ndarray of shape (1,)
        Bias of the underlying optimization problem. `offset_` is the threshold of the scores.
    is_empty_ : bool
        Whether all rows have been forgotten. An empty model cannot predict.
    n_features_in_ : int
        Number of features seen during fit.
    n_iter_ : int
        Number of segments of the solution path followed so far.
    n_support_ : ndarray of shape (1,), dtype=int32
        Number of support vectors.
    offset_ : float
        Score of rows on the sphere: ``decision_function(X) = score_samples(X) - offset_``.
    path_ : structured ndarray of shape (n_migrations,)
        Transitions of rows between the sets of the solution path, in order. Only available with
        ``record=True``. Fields: "cause" is the id of the row that was learned or forgotten (the
        first one if there were several) or -1 for a change of C; "id" is the row that moved;
        "problem" is the index of the binary problem; "source" and "target" are the sets: "idle"
        (not a support vector), "free" (on the margin), "bounded" (at its upper bound) and "gone"
        (forgotten).
    stats_ : dict
        Diagnostics: counters of the work done so far, seconds spent in each phase, and the
        instruction set and precision in use.
    support_ : ndarray of shape (n_SV,)
        Ids of the support vectors. After `fit`, ids are row indices of `X`.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_SV, n_features)
        Support vectors: an array of objects if the rows are objects. Empty with
        ``kernel="precomputed"``.

    See Also
    --------
    ExactSVC : Exact solution after every row learned or forgotten.
    sklearn.svm.OneClassSVM : Batch solver, based on LIBSVM.

    References
    ----------
    .. [laskov2006] P. Laskov, C. Gehl, S. Krüger and K.-R. Müller, "Incremental Support Vector
       Learning: Analysis, Implementation and Applications", Journal of Machine Learning Research 7,
       2006.
    .. [tax1999] D. Tax and R. Duin, "Data Domain Description by Support Vectors", ESANN, 1999.

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
        "nu": positive(1),
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
        cache_size: float | Literal["auto"] = "auto",
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
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model from scratch, row by row in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows. With ``kernel="precomputed"``, the square matrix of kernel values.
        y : Ignored, default=None
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that multiply the upper bound of each coefficient. Rows of weight zero are
            ignored. With None, all rows have weight 1.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a customer, as strings or integers. `forget` can remove all
            rows of a group. With None, rows have no group.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        check_params(self)
        X, _ = check_features(self, X, reset=True)
        check_square(self, X)
        weights = check_weights(sample_weight, X.shape[0])
        names = np.arange(X.shape[0], dtype=np.int64)
        groups = self._check_groups(groups, X.shape[0])
        self._start(X, weights, streaming=False)
        self._learn(X, weights, names, groups)
        self._engine.native.reserve_ids(X.shape[0])
        return self

    @on_draft
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Learn more rows in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to learn. The model does not depend on how a stream is divided into calls, except
            that the first call determines the value of ``gamma="scale"``.
        y : Ignored, default=None
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that multiply the upper bound of each coefficient. Rows of weight zero are
            ignored. With None, all rows have weight 1.
        ids : array-like of int of shape (n_samples,), default=None
            Ids of the rows, which `support_` and `ids_` refer to. By default, rows are numbered
            consecutively.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a customer, as strings or integers. `forget` can remove all
            rows of a group. With None, rows have no group.

        Returns
        -------
        self : object
            The updated estimator.
        """
        check_params(self)
        first = not hasattr(self, "_engine")
        X, _ = check_features(self, X, reset=first)
        weights = check_weights(sample_weight, X.shape[0])
        following = 0 if first else self._engine.native.next_id
        names = check_ids(ids, X.shape[0], following)
        groups = self._check_groups(groups, X.shape[0])
        if first:
            self._start(X, weights, streaming=True)
        elif self._starts_over:
            kept = np.flatnonzero(weights > 0)
            ones = np.ones(len(kept), dtype=np.int32)
            self._begin_again(take_rows(X, kept), weights[kept], ones)
        self._learn(X, weights, names, groups)
        if ids is None:  # rows of weight zero also get ids
            self._engine.native.reserve_ids(following + X.shape[0])
        return self

    def _start(self, X: Any, weights: Float, *, streaming: bool) -> None:
        self._square = 1.0
        rows = np.flatnonzero(weights > 0)
        self._engine = self._make_engine(take_rows(X, rows), weights[rows], streaming=streaming)

    def _learn(self, X: Any, weights: Float, names: Ints, groups: NDArray[Any] | None) -> None:
        kept = np.flatnonzero(weights > 0)
        if len(kept) < len(weights):
            X, weights, names = take_rows(X, kept), weights[kept], names[kept]
        self._note_groups(names, None if groups is None else groups[kept])
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
                f"K(x, x) is {squares[row]:.6g} for row {row} and {self._square:.6g} for others; "
                "with kernel='precomputed' it must be equal for all rows, because predictions use "
                "the same value. Normalise the kernel."
            )

    # -- predicting ----------------------------------------------------------------------------

    def score_samples(self, X: Any) -> Float:
        """Compute the unshifted score of each row.

        Larger scores are more normal. The score is the sum of ``alpha_i K(x_i, x)`` over the
        support vectors, minus half the sum of the coefficients times ``K(x, x) - 1``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Unshifted scores.
        """
        return self._values(X, lambda inside, offset: inside + offset)

    def decision_function(self, X: Any) -> Float:
        """Compute the signed distance of each row to the sphere, up to scale.

        The value is positive inside the sphere, 0 on it and negative outside. It equals
        `score_samples` minus `offset_` and does not depend on the other rows of the call.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Decision values.
        """
        return self._values(X, lambda inside, _: inside)

    def _values(self, X: Any, value: Callable[[Float, float], Float]) -> Float:
        """Apply `value` to the signed distances of rows and to the offset."""
        model = self._now()
        check_is_fitted(model)
        model._require_rows()
        X, _ = check_features(model, X, reset=False)
        return model._values_of(X, value)

    def _values_of(self, X: Any, value: Callable[[Float, float], Float]) -> Float:
        """Apply `value` to rows that were already validated."""
        rows = self._augmented(X, None)

        def read(engine: ExactEngine) -> Float:
            batch = engine.batch(rows)
            squares = self._square if self.kernel == "precomputed" else engine.diagonal(batch)
            total = engine.total
            inside: Float = engine.native.decision(batch)[:, 0] - total / 2 * squares
            rounding = ON_SPHERE * (total * squares + abs(engine.native.bias()[0]))
            inside = np.where(np.abs(inside) <= rounding, 0.0, inside)
            return value(inside, float(total / 2 - engine.native.bias()[0]))

        values: Float = self._engine.at_once(read)
        return values

    def predict(self, X: Any) -> NDArray[np.int64]:
        """Predict whether each row is an inlier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            1 for rows inside or on the sphere, -1 for rows outside.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def predict_one(self, x: ArrayLike) -> int:
        """Predict whether a single dense row is an inlier, with few checks.

        The result equals that of `predict`, in a fraction of the time. The method checks that the
        number of features is right and that their values are finite, but not their names.

        Parameters
        ----------
        x : array-like of shape (n_features,)
            Row to classify.

        Returns
        -------
        label : int
            1 if the row is inside or on the sphere, -1 otherwise.
        """
        if "_objects" in self.__dict__:
            return int(self.predict([x])[0])
        return int(self.predict_many(np.asarray(x)[np.newaxis])[0])

    def predict_many(self, X: ArrayLike) -> NDArray[np.int64]:
        """Predict whether dense rows are inliers, with few checks.

        Use this method instead of `predict` for small batches, where input validation would
        dominate the cost. It checks that the number of features is right and that their values are
        finite, but not their names.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to classify.

        Returns
        -------
        y_pred : ndarray of shape (n_samples,)
            1 for rows inside or on the sphere, -1 for rows outside.
        """
        model = self._now()
        if "_engine" not in model.__dict__:
            model._fitted()  # raises NotFittedError
        model._require_rows()
        if "_objects" in model.__dict__:
            return model.predict(X)
        rows = rows_to_predict(X, model.n_features_in_)
        return np.where(model._values_of(rows, lambda inside, _: inside) >= 0, 1, -1)

    # -- attributes ----------------------------------------------------------------------------

    @property
    def offset_(self) -> float:
        """Score of rows on the sphere: ``decision_function(X) = score_samples(X) - offset_``."""
        engine: Any = self._fitted()
        offset: float = engine.at_once(lambda e: float(e.total / 2 - e.native.bias()[0]))
        return offset

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors, as an array of shape (1,)."""
        return np.array([len(self.support_)], dtype=np.int32)

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        check_one_class(cls, state)

    def _settings(self) -> dict[str, Any]:
        nu = float(self.nu) if self.C is None else 0.0
        return {"sphere": True, "nu": nu, **self._window_settings()}

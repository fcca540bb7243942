"""ExactSVC: the exact solution after every row learned and every row forgotten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float
from marginwise._checks import Rule, check_arguments, check_params
from marginwise._engine.engine import HARD_COST
from marginwise._engine.foresight import Foresight
from marginwise._estimator.base import on_draft
from marginwise._estimator.classifier import KernelClassifier
from marginwise._estimator.exact import ExactModel
from marginwise._estimator.exact_results import LeaveOneOut, TuningPath
from marginwise._tuning.grid import list_rule


class ExactSVC(ExactModel, KernelClassifier):
    """Support vector classifier that is exact after every row learned or forgotten.

    At any time, the model equals the SVM solution for the stored rows up to rounding [laskov2006]_;
    for two classes, this is the solution of :class:`sklearn.svm.SVC`. `partial_fit` adds rows and
    `forget` removes them. `leave_one_out` predicts each row with the model that was not trained on
    it, at the cost of a few steps per support vector.

    All rows are stored. The training cost grows with the number of support vectors times the number
    of rows, so the estimator suits data sets of up to tens of thousands of rows.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the hinge loss. Larger values regularize less and fit the training rows more
        closely. ``inf`` requests a hard margin and requires separable classes.
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
        Maximum number of rows that each binary problem stores. When it is reached, learning a row
        first forgets another one, which `evict` determines. None stores all rows.
    evict : {"lightest", "oldest"}, default="lightest"
        Row to forget when the window is full. "lightest" is the row with the smallest coefficient,
        or the oldest of several, as in the paper. "oldest" follows drifting data.
    record : bool, default=False
        Whether to record `path_` while training.
    calibration : {"sigmoid", "isotonic"} or None, default=None
        Calibration curve that `predict_proba` uses to map decision values to probabilities. It is
        fitted to the leave-one-out decision values of the stored rows, which are computed by the
        first call of `predict_proba` after the model changed. With None, `predict_proba` is not
        available.
    cache_size : float or "auto", default="auto"
        Size of the kernel cache, in megabytes. It affects the training time but not the model.
        "auto" allows a quarter of the memory available when the first model is fitted, at most 8
        GB. Memory is allocated only when it is needed.
    class_weight : dict or "balanced", default=None
        Weights that multiply C for each class. Classes missing from the dict have weight 1.
        "balanced" uses ``n_samples / (n_classes * np.bincount(y))`` and requires the first training
        call to be `fit`, which sees all labels. With None, all classes have weight 1.
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
    calibration_ : CalibrationReport
        How the probabilities were estimated, see :class:`marginwise.calibration.CalibrationReport`.
        Only available if `calibration` is set.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    coef_ : ndarray of shape (n_problems, n_features)
        Feature weights. Only available with ``kernel="linear"``.
    dual_coef_ : ndarray of shape (n_problems, n_SV)
        Signed coefficients of the support vectors. There is one binary problem for two classes and
        one per class (one-vs-rest) for more.
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
    intercept_ : ndarray of shape (n_problems,)
        Constant term of each decision function.
    is_empty_ : bool
        Whether all rows have been forgotten. An empty model cannot predict.
    n_features_in_ : int
        Number of features seen during fit.
    n_iter_ : int
        Number of segments of the solution path followed so far, over all binary problems.
    n_support_ : ndarray of shape (n_classes,), dtype=int32
        Number of support vectors of each class.
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
    ExactOneClassSVM : Novelty detection with the same exact updates.
    OnlineSVC : Fast online classifier; the default choice.
    LeaveOneOut : Result of `leave_one_out`.
    sklearn.svm.SVC : Batch solver for the same problem, based on LIBSVM.

    References
    ----------
    .. [laskov2006] P. Laskov, C. Gehl, S. Krüger and K.-R. Müller, "Incremental Support Vector
       Learning: Analysis, Implementation and Applications", Journal of Machine Learning Research 7,
       2006.

    Examples
    --------
    Forgetting rows gives the model that was never trained on them:

    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import ExactSVC
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> model = ExactSVC(C=10, gamma=1.0).fit(X, y).forget(range(100, 150))
    >>> rest = np.r_[0:100, 150:300]
    >>> other = ExactSVC(C=10, gamma=1.0).fit(X[rest], y[rest])
    >>> bool(np.allclose(model.decision_function(X), other.decision_function(X), atol=1e-9))
    True
    >>> round(model.leave_one_out().error, 3)
    0.02
    """

    _rules: ClassVar[dict[str, Rule]] = {
        **ExactModel._rules,
        **{
            name: rule
            for name, rule in KernelClassifier._rules.items()
            if name not in ("epochs", "shuffle")
        },
    }
    epochs = 1  # more epochs have no effect
    shuffle = False
    random_state = None

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        window: int | None = None,
        evict: Literal["lightest", "oldest"] = "lightest",
        record: bool = False,
        calibration: Literal["sigmoid", "isotonic"] | None = None,
        cache_size: float | Literal["auto"] = "auto",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.window = window
        self.evict = evict
        self.record = record
        self.calibration = calibration
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the model from scratch, row by row in the given order.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training rows. With ``kernel="precomputed"``, the square matrix of kernel values.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that multiply C for each row. Rows of weight zero are ignored. With None, all
            rows have weight 1.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a customer, as strings or integers. `forget` can remove all
            rows of a group. With None, rows have no group.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        return super().fit(X, y, sample_weight, groups)

    def _binary_values(self, X: Any) -> Float:
        check_is_fitted(self)
        self._require_rows()
        return super()._binary_values(X)

    def leave_one_out(self) -> LeaveOneOut:
        """Predict each stored example with the model that was not trained on it.

        Only support vectors require computation: each one is forgotten and learned again on a copy
        of the model, which itself does not change.

        Returns
        -------
        result : LeaveOneOut
            Leave-one-out error, decision values and ids.
        """
        decision, state, some = self._left_out()
        decision, labels = decision[some], state["labels"][some]
        best = decision[:, 0] > 0 if decision.shape[1] == 1 else decision.argmax(axis=1)
        error = float(np.mean(best.astype(np.int32) != labels)) if len(labels) else 0.0
        scores = decision[:, 0].copy() if decision.shape[1] == 1 else decision
        return LeaveOneOut(error, scores, state["ids"][some])

    def _left_out(self) -> tuple[Float, dict[str, Any], NDArray[np.bool_]]:
        """Return leave-one-out decision values, the state, and a mask of the stored examples."""
        engine: Any = self._fitted().clone()
        self._require_rows()
        decision = engine.native.leave_one_out()
        state = engine.state()
        held = state["rank"] >= 0
        some = held.any(axis=0)
        if not held[:, some].all():  # with a window, a problem may lack rows
            said = engine.decision(engine.features_of(state))
            decision = np.where(held.T, decision, said)
        return decision, state, some

    def _is_calibrated(self) -> bool:
        return "_engine" in self.__dict__

    def _foreseen(self) -> Foresight:
        """Return leave-one-out decision values, which do not depend on forgotten rows.

        Rows that only some binary problems store, because of a window, count in these problems.
        """
        decision, state, _ = self._left_out()
        labels = state["labels"]
        weights = state["costs"] / self._engine.costs(self._penalties())[labels]
        signed = self._engine.signs(labels) * weights[:, np.newaxis] * (state["rank"] >= 0).T
        return Foresight.held_out(decision, signed)

    def tune(self, Cs: ArrayLike) -> TuningPath:
        """Choose C by the leave-one-out error of the stored examples.

        The method follows the solution path from one value of C to the next instead of fitting a
        model for each value. Afterwards, the model has the value with the smallest error, or the
        smallest C if several values tie.

        Parameters
        ----------
        Cs : array-like of float
            Positive values of C to try.

        Returns
        -------
        result : TuningPath
            Values of C in ascending order, their leave-one-out errors, and the selected value.
        """
        check_is_fitted(self)
        check_arguments({"Cs": list_rule()}, Cs=Cs)
        values = np.sort(np.asarray(Cs, dtype=np.float64))
        errors = np.empty(len(values))
        self._take_best(values, errors)
        return TuningPath(values, errors, float(self.C))

    @on_draft
    def _take_best(self, values: Float, errors: Float) -> Self:
        """Fill `errors` for ascending values of C, then set C to the best value."""
        self._step_aside()
        for k, value in enumerate(values.tolist()):
            self._follow_C(value)
            errors[k] = self.leave_one_out().error
        self._follow_C(float(values[np.argmin(errors)]))
        return self

    @on_draft
    def set_C(self, value: float) -> Self:  # noqa: N802
        """Change C by following the solution path.

        This is much faster than fitting the model again.

        Parameters
        ----------
        value : float
            New value of C, which may be infinite. Sample and class weights are kept.

        Returns
        -------
        self : object
            The updated estimator.
        """
        check_is_fitted(self)
        self.C = value
        check_params(self, {"C": self._rules["C"]})
        self._step_aside()
        self._follow_C(value)
        return self

    def _follow_C(self, value: float) -> None:  # noqa: N802
        before = min(float((self._costs / self._balance)[0]), HARD_COST)
        self.C = value
        self._engine.scale_costs(min(float(value), HARD_COST) / before)
        self._costs = float(value) * self._balance

    def _start(self, X: Any, classes: ArrayLike | None) -> None:
        super()._start(X, classes)
        self.__dict__.pop("_basis_weights", None)  # a sample with unknown ids

    def _update_costs(self) -> None:
        """Do nothing, because only `set_C` changes the C of an exact solution."""

    def _balances(self) -> bool:
        return isinstance(self.class_weight, str)

    def _rebalanced(self, labels: NDArray[np.int32]) -> Float | None:
        counts = np.bincount(labels, minlength=len(self.classes_))
        present = counts > 0
        balance = self._balance.copy()  # weights of classes without rows are irrelevant
        balance[present] = len(labels) / (present.sum() * counts[present])
        return None if np.array_equal(balance, self._balance) else balance

    def _settings(self) -> dict[str, Any]:
        return {"sphere": False, "nu": 0.0, **self._window_settings()}

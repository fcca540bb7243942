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

    At any time, the model equals the solution of :class:`sklearn.svm.SVC` up to rounding
    [laskov2006]_. Rows are added with `partial_fit` and removed with `forget`; `leave_one_out`
    predicts each row with the model that was not trained on it, at the cost of a few steps per
    support vector. All rows are stored, and the cost grows with the number of support vectors times
    the number of rows, which suits data sets of up to tens of thousands of rows.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the hinge loss. Larger values fit the training rows more closely; ``inf``
        requests a hard margin and requires separable classes.
    kernel : {"linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed"} \
        or callable, default="rbf"
        Kernel function. With "precomputed", X is the matrix of kernel values. A callable receives
        two blocks of rows and returns the matrix of kernel values between them. It should be
        positive semi-definite.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the "rbf", "poly" and "sigmoid" kernels. "scale" uses 1 / (n_features *
        weighted variance of X), "auto" uses 1 / n_features.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant term of the "poly" and "sigmoid" kernels.
    window : int, default=None
        Maximum number of rows stored by each binary problem. Before another row is learned, one is
        forgotten. None stores all rows.
    evict : {"lightest", "oldest"}, default="lightest"
        Which row to forget when the window is full: the "lightest", which has the smallest weight
        in the model (the oldest of several), as in the paper, or the "oldest", which follows
        drifting data.
    record : bool, default=False
        Whether to record `path_`.
    calibration : {"sigmoid", "isotonic"} or None, default=None
        Form of the curve by which `predict_proba` turns decision values into probabilities. The
        curve is fitted to the leave-one-out decision values of the stored examples, which are
        computed when probabilities are first asked for after a change. None gives no
        probabilities.
    cache_size : float or "auto", default="auto"
        Memory for kernel rows, in megabytes. The model does not depend on it; too little makes
        fitting slower. "auto" allows a quarter of the memory that is available when the first
        model is fitted, at most 8 GB. Memory is taken only as rows are needed.
    class_weight : dict or "balanced", default=None
        Factors of C for each class; classes missing from the dict have weight 1. "balanced" uses
        ``n_samples / (n_classes * np.bincount(y))``, and the model must then be started with `fit`,
        which sees all labels. None gives every class the weight 1.
    n_jobs : int, default=None
        Number of threads. None means 1, unless set by ``joblib.parallel_config``; -1 uses every
        processor available to the process. The model does not depend on it.
    verbose : int, default=0
        If positive, show a progress bar on terminals and in notebooks. Elsewhere, log a line every
        few seconds (logger ``marginwise``, level INFO), or write it to stderr if logging is not
        configured.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    coef_ : ndarray of shape (n_problems, n_features)
        Feature weights. Only available with ``kernel="linear"``.
    dual_coef_ : ndarray of shape (n_problems, n_SV)
        Signed coefficients of the support vectors. There is one binary problem for two classes,
        otherwise one per class.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit. Only defined if `X` has feature names that are all
        strings.
    gamma_ : float
        Value used for `gamma`. Only available with the "rbf", "poly" and "sigmoid" kernels.
    groups_ : ndarray of shape (n_stored,), dtype=object
        Groups of the stored examples, in the order of `ids_`; None for those without a group. Only
        available if groups were given.
    ids_ : ndarray of shape (n_stored,)
        Ids of all examples stored in the model, support vectors or not.
    intercept_ : ndarray of shape (n_problems,)
        Constant term of each decision function.
    is_empty_ : bool
        Whether the last row was forgotten. An empty model does not predict.
    n_features_in_ : int
        Number of features seen during fit.
    n_iter_ : int
        Number of segments of the solution path followed so far, over all binary problems.
    n_support_ : ndarray of shape (n_classes,), dtype=int32
        Number of support vectors of each class.
    path_ : structured ndarray of shape (n_migrations,)
        Moves of examples between the sets of the solution path, in order. Only available with
        ``record=True``. Fields: "cause", the id of the example that was learned or forgotten (the
        first of several), or -1 for a change of C; "id", the example that moved; "problem", the
        number of the binary problem; "source" and "target", the sets: "idle" (not a support
        vector), "free" (on the margin), "bounded" (at its bound) and "gone" (forgotten).
    stats_ : dict
        Counters of the work done so far, seconds by phase, and how values are computed.
    support_ : ndarray of shape (n_SV,)
        Ids of the support vectors. After `fit`, ids are row numbers.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_SV, n_features)
        Support vectors. If rows are objects, this is an array of objects; with
        ``kernel="precomputed"`` it is empty.

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
    Forget some rows, and have the model that never saw them:

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
    epochs = 1  # more would change nothing
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
            Factors of C for each row. Rows of weight zero are ignored.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as a customer: strings or integers. `forget` removes all rows of
            a group. None gives the rows no group.

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

        Examples that are not support vectors need no computation. Each support vector is unlearned
        and learned back. The model does not change.

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
        """Return leave-one-out decision values of all members, their state, and who is stored."""
        engine: Any = self._fitted().clone()
        self._require_rows()
        decision = engine.native.leave_one_out()
        state = engine.state()
        held = state["rank"] >= 0
        some = held.any(axis=0)
        if not held[:, some].all():  # a window: rows that a problem does not store
            said = engine.decision(engine.features_of(state))
            decision = np.where(held.T, decision, said)
        return decision, state, some

    def _is_calibrated(self) -> bool:
        return "_engine" in self.__dict__

    def _foreseen(self) -> Foresight:
        """Return leave-one-out decision values, in which forgotten rows leave no trace.

        Rows that a window holds in some problems only count in those.
        """
        decision, state, _ = self._left_out()
        labels = state["labels"]
        weights = state["costs"] / self._engine.costs(self._penalties())[labels]
        signed = self._engine.signs(labels) * weights[:, np.newaxis] * (state["rank"] >= 0).T
        return Foresight.held_out(decision, signed)

    def tune(self, Cs: ArrayLike) -> TuningPath:
        """Choose C by the leave-one-out error of the stored examples.

        The solution is followed from one value of C to the next, so that no model is fitted again.
        The model then has the value with the least error, the smallest of equals.

        Parameters
        ----------
        Cs : array-like of float
            Values to try.

        Returns
        -------
        result : TuningPath
            The values in ascending order, their errors, and the value that was chosen.
        """
        check_is_fitted(self)
        check_arguments({"Cs": list_rule()}, Cs=Cs)
        values = np.sort(np.asarray(Cs, dtype=np.float64))
        errors = np.empty(len(values))
        self._take_best(values, errors)
        return TuningPath(values, errors, float(self.C))

    @on_draft
    def _take_best(self, values: Float, errors: Float) -> Self:
        """Write the errors for ascending values of C, and end at the best of them."""
        self._step_aside()
        for k, value in enumerate(values.tolist()):
            self._follow_C(value)
            errors[k] = self.leave_one_out().error
        self._follow_C(float(values[np.argmin(errors)]))
        return self

    @on_draft
    def set_C(self, value: float) -> Self:  # noqa: N802
        """Change C by following the solution path, which is much faster than fitting again.

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
        self.__dict__.pop("_basis_weights", None)  # a sample of a source, whose ids are not known

    def _update_costs(self) -> None:
        """Leave the penalty as it is: one solution has one C, which `set_C` changes."""

    def _balances(self) -> bool:
        return isinstance(self.class_weight, str)

    def _rebalanced(self, labels: NDArray[np.int32]) -> Float | None:
        counts = np.bincount(labels, minlength=len(self.classes_))
        present = counts > 0
        balance = self._balance.copy()  # of a class without rows, the weight does not matter
        balance[present] = len(labels) / (present.sum() * counts[present])
        return None if np.array_equal(balance, self._balance) else balance

    def _settings(self) -> dict[str, Any]:
        return {"sphere": False, "nu": 0.0, **self._window_settings()}

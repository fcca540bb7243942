"""Creation of models from a fitted `SVC` of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from marginwise._arrays import Float, Labels
from marginwise._checks import check_features, check_params, check_weights, plain, take_rows
from marginwise._engine.plan import paired, resolve_gamma
from marginwise._estimator.imported import Solution, take_over

KERNELS = ("linear", "rbf", "poly", "sigmoid")
FITTED = ("support_", "support_vectors_", "dual_coef_", "intercept_", "n_support_", "classes_")
SHARED = ("C", "kernel", "degree", "coef0", "tol", "class_weight")  # parameters of both
SAME = 1e-6  # relative difference of features that were stored in single precision
ROUNDING = 1e-6  # relative amount by which a coefficient may exceed its bound


class FromSVC:
    """Mixin that adds `from_svc` to `OnlineSVC`."""

    @classmethod
    def from_svc(cls, svc: Any, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Create a model from a fitted :class:`sklearn.svm.SVC`.

        The new model has the decision function of the `SVC` in every binary problem, and
        `partial_fit` continues training from there. It stores the support vectors, whose ids are
        row indices of `X`. Other rows are not stored. If later rows could turn them into support
        vectors, pass them to `partial_fit` again with their row indices as `ids`.

        Parameters
        ----------
        svc : sklearn.svm.SVC
            Fitted classifier with the kernel "linear", "rbf", "poly" or "sigmoid". The `SVC` of
            scikit-learn-intelex is also supported.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows of the `SVC`, in the same order.
        y : array-like of shape (n_samples,)
            Class labels of the rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights that the `SVC` was fitted with.

        Returns
        -------
        model : OnlineSVC
            Fitted model with the parameters `C`, `kernel`, `degree`, `coef0`, `tol` and
            `class_weight` of the `SVC`, its value of gamma, and ``multiclass="ovo"``.

        Raises
        ------
        TypeError
            If `svc` is not an `SVC`.
        NotFittedError
            If the `SVC` is not fitted.
        ValueError
            If the kernel is not supported, or if the `SVC` was fitted to other rows, labels or
            weights.

        Notes
        -----
        With more than two classes, predictions may differ from those of the `SVC` if several
        classes win the same number of pairs. This package breaks ties by the decision values; `SVC`
        predicts the first class unless `break_ties` is set. Probability estimates are not imported.

        Examples
        --------
        >>> from sklearn.datasets import make_moons
        >>> from sklearn.svm import SVC
        >>> from marginwise import OnlineSVC
        >>> X, y = make_moons(500, noise=0.2, random_state=0)
        >>> svc = SVC(C=10, gamma=1.0).fit(X[:300], y[:300])
        >>> model = OnlineSVC.from_svc(svc, X[:300], y[:300])
        >>> bool((abs(model.decision_function(X) - svc.decision_function(X)) < 1e-5).all())
        True
        >>> model.partial_fit(X[300:400], y[300:400]).finish().score(X[400:], y[400:])
        0.99
        """
        kind: Any = cls
        _require_svc(kind, svc)
        shared = {name: getattr(svc, name) for name in SHARED}
        model = kind(**shared, gamma=_gamma(svc, X), multiclass="ovo")
        check_params(model)
        X, y = check_features(model, X, y, reset=True)
        y = np.asarray(y)
        weights = check_weights(sample_weight, X.shape[0])
        labels = _check_same_rows(svc, X, y)
        _take_classes(model, svc)
        model._weighs = bool((weights != 1).any())
        model._engine = model._make_engine(X, weights, streaming=False)
        solution = _solution(svc, X, labels)
        costs = (weights * model._penalties()[labels])[solution.ids]
        _check_solution(svc, solution, model._engine.signs(solution.labels).T, costs)
        take_over(model, solution, costs, X.shape[0])
        model._begin_reservoir()
        return model  # type: ignore[no-any-return]


def _require_svc(cls: Any, svc: Any) -> None:
    """Raise unless `svc` is a fitted `SVC` and the class supports `from_svc`."""
    if "C" not in cls._get_param_names():
        raise TypeError(
            f"{cls.__name__} selects C by cross-validation and cannot continue from an SVC with a "
            "given C. Use OnlineSVC.from_svc."
        )
    name = type(svc).__name__
    if all(hasattr(svc, attribute) for attribute in SHARED) and not hasattr(svc, "support_"):
        raise NotFittedError(
            f"this {name} is not fitted: it has no attribute support_. Call fit first."
        )
    absent = [attribute for attribute in (*SHARED, *FITTED) if not hasattr(svc, attribute)]
    if absent or svc.C == 0:  # NuSVC has C=0
        raise TypeError(
            f"from_svc expects a fitted sklearn.svm.SVC, got {name}, which has no "
            f"{absent[0] if absent else 'C'}."
        )
    if not isinstance(svc.kernel, str) or svc.kernel not in KERNELS:
        kernel = repr(svc.kernel) if isinstance(svc.kernel, str) else "a function"
        raise ValueError(
            f"from_svc supports the kernels {', '.join(KERNELS)}; this {name} has kernel={kernel}."
        )


def _gamma(svc: Any, X: Any) -> Any:
    """Return the value of gamma that an `SVC` uses."""
    if not isinstance(svc.gamma, str) or svc.kernel == "linear":
        return svc.gamma
    if getattr(svc, "_gamma", 0) > 0:
        return float(svc._gamma)
    rows = X if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    return resolve_gamma(svc.gamma, rows, np.ones(rows.shape[0]))


def _check_same_rows(svc: Any, X: Any, y: NDArray[Any]) -> Labels:
    """Raise unless rows and labels are the training data of an `SVC`; encode labels."""
    name, width = type(svc).__name__, svc.support_vectors_.shape[1]
    rows = np.asarray(svc.support_)
    fitted = getattr(svc, "shape_fit_", X.shape)[0]
    if X.shape[1] != width or X.shape[0] != fitted or (len(rows) and rows.max() >= X.shape[0]):
        raise ValueError(
            f"this {name} was fitted to {fitted} rows of {width} features, got X of shape "
            f"{X.shape}. Pass the rows that it was fitted to."
        )
    own, there = take_rows(X, rows), svc.support_vectors_
    either = sp.csr_array if sp.issparse(own) or sp.issparse(there) else np.asarray
    own, there = either(own, dtype=np.float64), either(there, dtype=np.float64)
    differs = abs(own - there) > SAME * abs(there)
    if differs.sum():
        first = int(rows[np.asarray(differs.sum(axis=1)).ravel().argmax()])
        raise ValueError(
            f"row {first} of X differs from the corresponding support vector of the {name}. Pass "
            "the rows that it was fitted to, in the same order."
        )
    classes, labels = np.unique(y, return_inverse=True)
    if not np.array_equal(classes, svc.classes_):
        raise ValueError(
            f"y has the classes {plain(classes)}, but the {name} was fitted with "
            f"{plain(svc.classes_)}. Pass the labels that it was fitted to."
        )
    return labels.astype(np.int32)


def _take_classes(model: Any, svc: Any) -> None:
    """Set the classes and the class weights of a model to those of an `SVC`."""
    model._grows = False
    model.classes_ = np.asarray(svc.classes_)
    model._index = {label: k for k, label in enumerate(model.classes_.tolist())}
    weights = getattr(svc, "class_weight_", None)
    ones = np.ones(len(model.classes_))
    model._balance = ones if weights is None else np.array(weights, dtype=np.float64)
    model._costs = float(model.C) * model._balance


def _solution(svc: Any, X: Any, labels: Labels) -> Solution:
    """Return the support vectors and coefficients of an `SVC`, pair by pair."""
    rows = np.asarray(svc.support_, dtype=np.int64)
    coefficients = svc.dual_coef_
    coefficients = coefficients.toarray() if sp.issparse(coefficients) else coefficients
    coefficients = np.asarray(coefficients, dtype=np.float64)
    intercept = np.asarray(svc.intercept_, dtype=np.float64)
    if len(svc.classes_) > 2:
        coefficients, intercept = by_pair(coefficients, labels[rows]), -intercept
    own = take_rows(X, rows).astype(np.float64)
    return Solution(own, rows, labels[rows], coefficients, intercept.copy()).without_idle()


def by_pair(coefficients: Float, labels: Labels) -> Float:
    """Convert coefficients from the layout of LIBSVM to one row per pair of classes.

    Parameters
    ----------
    coefficients : ndarray of shape (n_classes - 1, n)
        For a vector of class i, row j - 1 contains the coefficient for the pair (i, j) if i < j,
        and row j contains the one for the pair (j, i) otherwise. The first class of a pair is the
        positive one.
    labels : ndarray of shape (n,)
        Class index of each vector.

    Returns
    -------
    alpha : ndarray of shape (n_pairs, n)
        Coefficients of each pair; the second class of a pair is the positive one.
    """
    classes = len(coefficients) + 1
    alpha = np.zeros((classes * (classes - 1) // 2, len(labels)))
    for c, (a, b) in enumerate(zip(*paired(len(alpha)), strict=True)):
        alpha[c] -= np.where(labels == a, coefficients[b - 1], 0.0)
        alpha[c] -= np.where(labels == b, coefficients[a], 0.0)
    return alpha


def _check_solution(svc: Any, solution: Solution, signs: Float, costs: Float) -> None:
    """Raise unless coefficients have the signs of their labels and are within their bounds."""
    counts = np.bincount(solution.labels, minlength=len(svc.classes_))
    if (signs * solution.alpha < 0).any() or (counts > svc.n_support_).any():
        raise ValueError(
            f"y differs from the labels that the {type(svc).__name__} was fitted to: the labels "
            "of some support vectors have the wrong sign. Pass the labels of its training rows, "
            "in the same order."
        )
    beyond = np.abs(solution.alpha) > costs * (1 + ROUNDING)
    if beyond.any():
        raise ValueError(
            f"a coefficient is {np.abs(solution.alpha[beyond]).max():.6g}, above C={svc.C:g} times "
            "the weights of its class and its row. Pass the sample_weight that the SVC was fitted "
            "with."
        )

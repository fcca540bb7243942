"""KernelPerceptron: kernel perceptrons as baselines and for fast streams."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from marginwise._algorithm import ENDLESS, USUAL, Algorithm
from marginwise._checks import (
    Rule,
    boolean,
    count,
    either,
    integer,
    non_negative,
    none,
    one_of,
)
from marginwise._estimator.bias_free import BiasFreeClassifier


def _check_examples(state: Mapping[str, Any]) -> None:
    """Raise if the number of examples seen is less than the number stored."""
    held = (state["rank"] >= 0).sum(axis=1)
    if (state["notes"][:, 0] < held).any():
        raise ValueError("notes must count at least the stored examples")


ALGORITHM = Algorithm(
    name="perceptron",
    settings={
        "margin": non_negative(),
        "budget": count(),
        "average": boolean(),
        "aggressive": boolean(),
    },
    counts=1,
    boxes=frozenset({USUAL, ENDLESS}),  # USUAL without a coefficient
    check=_check_examples,
)


class KernelPerceptron(BiasFreeClassifier):
    """Kernel perceptron: plain, averaged, on a budget, or passive-aggressive.

    Each misclassified row becomes a support vector, and no other coefficient changes [bordes2005]_.
    This is the simplest and cheapest estimator of the package. Mislabelled rows severely degrade
    the plain and the budgeted perceptron; ``average=True`` makes the perceptron robust to them. The
    decision function has no bias.

    Parameters
    ----------
    C : float, default=1.0
        Step size: an update adds C to the absolute coefficient of a row, or at most C with
        ``update="pa"``. With ``update="perceptron"`` and ``margin=0``, C only scales f(x) and does
        not change predictions.
    kernel : {"linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed"} \
        or callable, default="rbf"
        Kernel function. With "precomputed", `X` is the matrix of kernel values. A callable is
        called with two arrays of rows and returns the matrix of kernel values between them. ``K(x,
        x)`` must be positive for every row.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the "rbf", "poly" and "sigmoid" kernels. "scale" uses ``1 / (n_features *
        X.var())``, where the variance takes sample weights into account; "auto" uses ``1 /
        n_features``.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant term of the "poly" and "sigmoid" kernels.
    budget : int, default=None
        Maximum number of support vectors of each binary problem (one problem per class for more
        than two classes). When it is exceeded, the support vector that is classified best without
        its own contribution is removed. None sets no limit.
    margin : float, default=0.0
        Rows with ``y f(x)`` less than or equal to `margin` are learned. With ``update="pa"``, an
        update gives the row this margin, and 0 means a margin of 1.
    average : bool, default=False
        Whether to predict with the average of the models after each row. Not supported with
        `budget`.
    update : {"perceptron", "pa"}, default="perceptron"
        Update rule. "perceptron" adds ``C * y`` to the coefficient of the row. "pa"
        (passive-aggressive I [crammer2006]_) takes the step that gives the row its margin, at most
        C.
    epochs : int, default=1
        Number of passes of `fit` over the rows.
    center : bool, default=False
        Whether to subtract the mean from dense features. Centering compensates for the missing bias
        with kernels that are functions of the inner product. Not supported with sparse features or
        with callable or precomputed kernels.
    calibration : {"sigmoid", "isotonic"} or None, default=None
        Calibration curve that `predict_proba` uses to map decision values to probabilities. It is
        fitted to decision values computed before the model learned the row: those of the later half
        of the rows. "isotonic" needs a few thousand rows to outperform "sigmoid". With None,
        `predict_proba` is not available.
    cache_size : float or "auto", default="auto"
        Size of the kernel cache, in megabytes. It affects the training time but not the model.
        "auto" allows a quarter of the memory available when the first model is fitted, at most 8
        GB. Memory is allocated only when it is needed.
    class_weight : dict or "balanced", default=None
        Weights that multiply C for each class. Classes missing from the dict have weight 1.
        "balanced" uses ``n_samples / (n_classes * np.bincount(y))`` and requires the first training
        call to be `fit`, which sees all labels. With None, all classes have weight 1.
    shuffle : bool, default=True
        Whether `fit` visits the rows in random order.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a ``joblib.parallel_config`` context. -1 means
        using all processors available to the process. The model does not depend on the number of
        threads.
    random_state : int, RandomState instance or None, default=None
        Seed for the order in which rows are visited.
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
    ids_ : ndarray of shape (n_stored,)
        Ids of all rows stored in the model, including those that are not support vectors.
    intercept_ : ndarray of shape (n_problems,)
        Constant term of each decision function: 0, except with ``kernel="linear"`` and
        ``center=True``.
    n_features_in_ : int
        Number of features seen during fit.
    n_iter_ : int
        Number of optimization steps so far, over all binary problems.
    n_support_ : ndarray of shape (n_classes,), dtype=int32
        Number of support vectors of each class.
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
    OnlineSVC : Fast online classifier; the default choice.
    GapSVC : Online classifier that is robust to mislabelled rows.
    sklearn.linear_model.Perceptron : Linear perceptron.

    References
    ----------
    .. [bordes2005] A. Bordes, S. Ertekin, J. Weston and L. Bottou, "Fast Kernel Classifiers with
       Online and Active Learning", Journal of Machine Learning Research 6, 2005.
    .. [crammer2006] K. Crammer, O. Dekel, J. Keshet, S. Shalev-Shwartz and Y. Singer, "Online
       Passive-Aggressive Algorithms", Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import KernelPerceptron
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = KernelPerceptron(gamma=1.0, average=True, random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:])
    1.0
    """

    _algorithm = ALGORITHM
    _rules: ClassVar[dict[str, Rule]] = {
        **BiasFreeClassifier._rules,
        "budget": either(none(), integer(1)),
        "margin": non_negative(),
        "average": boolean(),
        "update": one_of("perceptron", "pa"),
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        budget: int | None = None,
        margin: float = 0.0,
        average: bool = False,
        update: Literal["perceptron", "pa"] = "perceptron",
        epochs: int = 1,
        center: bool = False,
        calibration: Literal["sigmoid", "isotonic"] | None = None,
        cache_size: float | Literal["auto"] = "auto",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        shuffle: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.budget = budget
        self.margin = margin
        self.average = average
        self.update = update
        self.epochs = epochs
        self.center = center
        self.calibration = calibration
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _conflict(self) -> str | None:
        if self.average and self.budget is not None:
            return (
                "average=True cannot be combined with a budget, because it stores every row that "
                "was ever a support vector. Set average=False or budget=None."
            )
        if self.update == "perceptron" and math.isinf(self.C):
            return (
                "C is infinite, but update='perceptron' adds C to coefficients and requires a "
                "finite value. Set C to a finite value or use update='pa'."
            )
        return None

    def _settings(self) -> dict[str, Any]:
        aggressive = self.update == "pa"
        return {
            "margin": 1.0 if aggressive and self.margin == 0 else float(self.margin),
            "budget": 0 if self.budget is None else int(self.budget),
            "average": bool(self.average),
            "aggressive": aggressive,
        }

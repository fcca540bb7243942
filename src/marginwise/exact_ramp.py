"""ExactRampSVC: the ramp-loss SVM, solved after every row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from marginwise._algorithm import SHUT, USUAL, Algorithm
from marginwise._arrays import Float
from marginwise._checks import Rule, count, either, integer, none, positive
from marginwise._engine.engine import Engine
from marginwise._engine.suspects import SUSPECTS, check_suspects, suspect_sizes
from marginwise._estimator.attributes import SuspectAttributes, scalar_or_array, squared_norms
from marginwise._estimator.bias_free import BiasFreeClassifier

RAMP = -1.0  # value of y f(x) below which the ramp loss is constant

ALGORITHM = Algorithm(
    name="exact_ramp",
    settings={"tol": positive(), "max_idle": count(-1)},
    boxes=frozenset({USUAL, SHUT}),
    solves=True,
    arrays=SUSPECTS,
    sizes=suspect_sizes,
    check=partial(check_suspects, ramp=RAMP),
)


class ExactRampSVC(SuspectAttributes, BiasFreeClassifier):
    """Ramp-loss support vector classifier that is solved after every row.

    The ramp loss is bounded, so badly misclassified rows do not become support vectors: all support
    vectors satisfy ``-1 <= y f(x) <= 1`` [wang2009]_. After each row, the model is a fixed point of
    the ramp-loss problem over all rows seen so far, as if it had been trained on all of them at
    once. The decision function has no bias.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the ramp loss. Larger values regularize less and fit the training rows more
        closely. ``inf`` requests a hard margin.
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
    tol : float, default=1e-3
        Tolerance of the optimality conditions. Coefficients of examples that violate the conditions
        by less are not changed.
    max_idle : int, default=None
        Maximum number of non-support vectors to store. Those nearest to the boundary are kept. None
        stores all rows. A few hundred make training on long streams much faster and hardly change
        the model.
    epochs : int, default=1
        Number of passes of `fit` over the rows. More than one pass only affects rows that were
        dropped because of `max_idle`.
    center : bool, default=False
        Whether to subtract the mean from dense features. Centering compensates for the missing bias
        with kernels that are functions of the inner product. Not supported with sparse features or
        with callable or precomputed kernels.
    calibration : {"sigmoid", "isotonic"} or None, default=None
        Calibration curve that `predict_proba` uses to map decision values to probabilities. It is
        fitted to the decision values of rows without their own influence on the model. A model that
        starts with `partial_fit` or `learn_from` stores up to 1,000 rows for this purpose.
        "isotonic" needs a few thousand rows to outperform "sigmoid". With None, `predict_proba` is
        not available.
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
    suspects_ : structured ndarray of shape (n_suspects,)
        Rows whose labels are probably wrong because ``y f(x) < -1``, sorted by ascending ``y
        f(x)``. Fields: "id", "label" and "value", which is ``y f(x)``. The current model evaluates
        stored rows; the other rows were evaluated when `max_idle` caused them to be dropped.

    See Also
    --------
    GapSVC : Online classifier that is robust to mislabelled rows.
    OnlineSVC : Fast online classifier; the default choice.
    marginwise.active.ActiveLearner : Select the rows of a pool to label.

    References
    ----------
    .. [wang2009] Z. Wang and S. Vucetic, "Fast Online Training of Ramp Loss Support Vector
       Machines", IEEE International Conference on Data Mining, 2009.

    Examples
    --------
    Request labels only for rows that can change the model:

    >>> from sklearn.datasets import make_moons
    >>> from marginwise import ExactRampSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = ExactRampSVC(gamma=1.0).partial_fit(X[:50], y[:50], classes=[0, 1])
    >>> asked = 0
    >>> for k in range(50, 400):
    ...     if model.wants(X[k : k + 1])[0]:
    ...         model = model.partial_fit(X[k : k + 1], y[k : k + 1])
    ...         asked += 1
    >>> asked < 350 / 2
    True
    >>> model.score(X[400:], y[400:])
    0.96

    Find a flipped label:

    >>> y[7] = 1 - y[7]
    >>> model = ExactRampSVC(gamma=1.0, random_state=0).fit(X, y)
    >>> int(model.suspects_["id"][0])
    7
    """

    _algorithm = ALGORITHM
    _rules: ClassVar[dict[str, Rule]] = {
        **BiasFreeClassifier._rules,
        "tol": positive(),
        "max_idle": either(none(), integer(0)),
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        max_idle: int | None = None,
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
        self.tol = tol
        self.max_idle = max_idle
        self.epochs = epochs
        self.center = center
        self.calibration = calibration
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def wants(self, X: Any) -> NDArray[np.bool_]:
        """Return which rows are inside the margin and therefore worth labelling.

        Passing only rows with ``abs(f(x)) <= 1`` to `partial_fit` is the algorithm OnlineASVM^R of
        [wang2009]. With more than two classes, a row is inside the margin if this holds for any
        binary problem.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Unlabelled rows.

        Returns
        -------
        wanted : ndarray of shape (n_samples,), dtype=bool
            Whether to request the label of each row.
        """
        scores = self.decision_function(X)
        inside = np.abs(scores.reshape(len(scores), -1)) <= 1
        return np.asarray(inside.any(axis=1))

    def ramp_objective(self) -> float | Float:
        """Return the ramp-loss objective over the stored rows.

        The objective is ``|w|^2 / 2`` plus the sum of ``C * min(2, max(0, 1 - y f(x)))``.

        Returns
        -------
        objective : float or ndarray of shape (n_classes,)
            Value of the objective; one per class if there are more than two classes.
        """
        return scalar_or_array(self._fitted().at_once(self._ramp_objective))

    def _ramp_objective(self, engine: Engine) -> Float:
        state = engine.state()
        distances = engine.signs(state["labels"]).T * state["g"]  # 1 - y f(x)
        costs = state["costs"] / engine.plan.unit
        losses = np.clip(distances, 0.0, 2.0) * costs * (state["rank"] >= 0)
        return np.asarray(squared_norms(engine) / 2 + losses.sum(axis=1))

    def _settings(self) -> dict[str, Any]:
        return {
            "tol": float(self.tol),
            "max_idle": -1 if self.max_idle is None else int(self.max_idle),
        }

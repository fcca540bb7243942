"""TrackingSVC: incremental SVM with a guaranteed distance to the solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import check_random_state

from marginwise._algorithm import Algorithm
from marginwise._arrays import Float
from marginwise._checks import MOST_STEPS, Rule, boolean, count, integer, one_of
from marginwise._engine.engine import Engine
from marginwise._estimator.attributes import scalar_or_array
from marginwise._estimator.bias_free import BiasFreeClassifier
from marginwise._estimator.streams import SELECTION_RULES
from marginwise._warn import warn_unconverged

FAR = 0.4  # normalised gap above which a warning is issued; the gap of w = 0 is 1

ALGORITHM = Algorithm(
    name="tracking",
    settings={
        "steps": count(1, MOST_STEPS),
        "process": boolean(),
        "average": boolean(),
        "support_only": boolean(),
        "seed": count(0, 2**32 - 1),
    },
    counts=2,
    numbers=1,
)


class TrackingSVC(BiasFreeClassifier):
    """Support vector classifier with a bound on its distance to the optimum.

    After each row, the classifier optimizes the coefficients of a few examples sampled from all
    rows seen so far [usunier2010]_. For any order of the rows, the model stays, on average, within
    a known distance of the SVM solution for the rows seen so far. The decision function has no
    bias.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the hinge loss. Larger values regularize less and fit the training rows more
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
    steps : int, default=10
        Number of examples sampled after each row (K in the paper), at most 1,000,000.
    process : bool, default=True
        Whether to optimize the coefficient of the new row before those of the sampled examples
        (algorithm 2 of the paper) or only those of the sampled examples (algorithm 1).
    average : bool, default=True
        Whether to predict with the average of the models after each of the last `steps` steps. The
        guarantee applies to this average. Training continues from the last model.
    gradients : {"all", "support"}, default="all"
        Rows to store. "all" stores every row seen, as the guarantee requires. "support" stores only
        support vectors, which is much cheaper, and drops rows whose coefficient becomes 0.
    epochs : int, default=1
        Number of passes of `fit` over the rows.
    selection : {"random", "gradient", "active", "autoactive"}, default="random"
        Strategy that `fit` uses to select the rows to learn, as in :class:`OnlineSVC`.
    pool_size : int or None, default=50
        Number of rows that "gradient" and "active" sample for each selection. None compares all
        remaining rows each time and stops when no row is left inside the margin.
    center : bool, default=False
        Whether to subtract the mean from dense features. Centering compensates for the missing bias
        with kernels that are functions of the inner product. Not supported with sparse features or
        with callable or precomputed kernels.
    record : bool, default=False
        Whether to record `history_` while training.
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
        Seed for the order in which rows are visited and for sampling examples.
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
    history_ : dict of ndarray
        Values after each row: "gap" is the duality gap over the stored examples, "members" is the
        number of stored examples, and "kernel_evaluations" counts kernel values computed so far.
        Each array has shape (n_rows,), or (n_rows, n_classes) for more than two classes. Only
        available with ``record=True``.
    bound_ : float or ndarray of shape (n_classes,)
        Upper bound on the mean normalised distance to the optimum, from theorem 2 or 3 of the
        paper. Not available with ``average=False`` or ``gradients="support"``, to which the
        theorems do not apply.
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
    normalised_gap_ : float or ndarray of shape (n_classes,)
        Duality gap over the stored examples, divided by the sum of their C. It is computed from the
        current coefficients, not from their average. One value per class for more than two classes.
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
    ExactSVC : Exact solution after every row learned or forgotten.

    References
    ----------
    .. [usunier2010] N. Usunier, A. Bordes and L. Bottou, "Guarantees for Approximate Incremental
       SVMs", AISTATS, 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import TrackingSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = TrackingSVC(gamma=1.0, random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:])
    0.96
    >>> bool(model.normalised_gap_ < model.bound_)
    True
    """

    _algorithm = ALGORITHM
    _rules: ClassVar[dict[str, Rule]] = {
        **BiasFreeClassifier._rules,
        **SELECTION_RULES,
        "record": boolean(),
        "steps": integer(1, MOST_STEPS),
        "process": boolean(),
        "average": boolean(),
        "gradients": one_of("all", "support"),
    }

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        steps: int = 10,
        process: bool = True,
        average: bool = True,
        gradients: Literal["all", "support"] = "all",
        epochs: int = 1,
        selection: Literal["random", "gradient", "active", "autoactive"] = "random",
        pool_size: int | None = 50,
        center: bool = False,
        record: bool = False,
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
        self.steps = steps
        self.process = process
        self.average = average
        self.gradients = gradients
        self.epochs = epochs
        self.selection = selection
        self.pool_size = pool_size
        self.center = center
        self.record = record
        self.calibration = calibration
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def normalised_gap_(self) -> float | Float:
        """Duality gap over the stored examples, divided by the sum of their C.

        It is computed from the current coefficients, not from their average.
        """
        return scalar_or_array(self._fitted().at_once(self._normalised_gap))

    @property
    def bound_(self) -> float | Float:
        """Upper bound on the mean normalised distance to the optimum.

        The bound follows from theorem 2 or 3 of [usunier2010]. The theorems involve the unknown
        optimum of the dual; it is replaced by the current primal value, which is at least as large.
        Kernels with K(x, x) > 1 are scaled down as the theorems require.

        Not available with ``average=False`` or ``gradients="support"``, to which the theorems do
        not apply.
        """
        engine = self._fitted()
        self._check_bounded(engine)
        return scalar_or_array(engine.at_once(self._bound))

    def _bound(self, engine: Engine) -> Float:
        primal, total = engine.duality_gap + engine.objective, engine.penalty
        state = engine.state()
        _, known, gained = state["notes"].T
        largest = engine.diagonal(engine.batch(engine.features_of(state))).max(initial=0.0)
        gained = gained / engine.plan.unit
        x = np.maximum(primal - gained, 0.0) / (self.steps * np.maximum(known, 1))
        mean_C = total / np.maximum((state["rank"] >= 0).sum(axis=1), 1)
        return np.asarray(np.sqrt(2 * largest * x) + x / mean_C)

    @staticmethod
    def _check_bounded(engine: Engine) -> None:
        """Raise unless one of the theorems applies to the model."""
        settings = engine.plan.settings
        if not settings["average"]:
            raise AttributeError(
                "bound_ is not available with average=False: the theorems bound the averaged "
                "model, not the last one. Use average=True."
            )
        if settings["support_only"]:
            raise AttributeError(
                "bound_ is not available with gradients='support': the theorems require the "
                "gradients of all rows seen. Use gradients='all'."
            )

    @staticmethod
    def _normalised_gap(engine: Engine) -> Float:
        return engine.duality_gap / engine.penalty

    def _warn_if_far(self) -> None:
        worst = float(np.max(self._normalised_gap(self._engine)))
        if worst > FAR:
            warn_unconverged(
                f"TrackingSVC has a normalised gap of {worst:.3g}: the mean hinge loss may be that "
                "much above the loss of the solution. Raise steps or epochs, lower C, or scale the "
                "features."
            )

    def _conflict(self) -> str | None:
        if self.gradients == "support" and not self.process:
            return (
                "gradients='support' needs process=True, because an example that is not processed "
                "never becomes a support vector. Set process=True or gradients='all'."
            )
        return None

    def _settings(self) -> dict[str, Any]:
        return {
            "steps": int(self.steps),
            "process": bool(self.process),
            "average": bool(self.average),
            "support_only": self.gradients == "support",
            "seed": int(check_random_state(self.random_state).randint(2**31 - 1)),
        }

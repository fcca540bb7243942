"""GapSVC: online SVM controlled by the duality gap, with outlier-robust losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from marginwise._algorithm import SHIFTED, USUAL, Algorithm
from marginwise._checks import (
    MOST_BUDGET,
    Rule,
    below,
    boolean,
    count,
    either,
    integer,
    none,
    one_of,
    positive,
)
from marginwise._engine.suspects import SUSPECTS, check_suspects, suspect_sizes
from marginwise._estimator.attributes import SuspectAttributes
from marginwise._estimator.bias_free import BiasFreeClassifier
from marginwise._estimator.finishing import FinishingMixin
from marginwise._estimator.streams import SELECTION_RULES

LOSSES = ("hinge", "ramp", "filter")


def _check(state: Mapping[str, Any]) -> None:
    settings = state["plan"]["settings"]
    hinge = LOSSES[settings["loss"]] == "hinge"
    check_suspects(state, -np.inf if hinge else settings["ramp"])


ALGORITHM = Algorithm(
    name="gap",
    settings={
        "tol": positive(),
        "loss": count(0, 2),
        "ramp": below(1),
        "clean_every": count(),
        "max_idle": count(),
    },
    counts=3,
    numbers=3,
    boxes=frozenset({USUAL, SHIFTED}),
    budgeted=True,
    solves=True,
    arrays=SUSPECTS,
    sizes=suspect_sizes,
    check=_check,
)


class GapSVC(SuspectAttributes, FinishingMixin, BiasFreeClassifier):
    """Support vector classifier that stays small on mislabelled data.

    After each row, the classifier optimizes until the duality gap over the stored examples reaches
    its target, so that the model is accurate at any time [ertekin2011]_. ``loss="ramp"`` bounds the
    loss of badly misclassified rows; ``loss="filter"`` does not learn them at all. With either
    loss, the model stays small and accurate even if a tenth or a third of the labels are wrong. The
    decision function has no bias.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the loss. Larger values regularize less and fit the training rows more closely.
        ``inf`` requests a hard margin.
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
        Tolerance of the optimality conditions: the coefficient of an example that violates them by
        less is not changed.
    loss : {"hinge", "ramp", "filter"}, default="hinge"
        Loss function.

        - "hinge" is LASVM-G.
        - "ramp" is LASVM-NC: rows with y f(x) < `ramp` are treated as mislabelled.
        - "filter" is LASVM-I: only rows with `ramp` <= y f(x) <= 1 are learned.
    ramp : float, default=-1.0
        Value of y f(x) below which the ramp loss is constant. It must be less than 1.
    clean_every : int or None, default=300
        Number of rows between removals of non-support vectors. None stores every row, which is FULL
        SVM in the paper.
    max_idle : int, default=100
        Maximum number of non-support vectors that each removal keeps. Those nearest to the margin
        are kept.
    finish_at_end : bool, default=True
        Whether `fit` calls `finish` after each epoch, which solves the problem for the stored
        examples. The paper has no such step.
    epochs : int, default=1
        Number of passes of `fit` over the rows.
    selection : {"random", "gradient", "active", "autoactive"}, default="random"
        Strategy that `fit` uses to select the rows to learn, as in :class:`OnlineSVC`.
    pool_size : int or None, default=50
        Number of rows that "gradient" and "active" sample for each selection. None compares all
        remaining rows each time and stops when no row is left inside the margin.
    budget : int or None, default=None
        Maximum number of stored examples, from 2 to 16,384. When it is exceeded, the least
        important examples are removed and their contribution is projected onto the remaining ones,
        as in :class:`OnlineSVC`. Only rows that violate the margin by more than 0.35 are learned.
        None sets no limit.
    center : bool, default=False
        Whether to subtract the mean from dense features. Centering compensates for the missing bias
        with kernels that are functions of the inner product. Not supported with sparse features or
        with callable or precomputed kernels.
    record : bool, default=False
        Whether to record `history_` while training.
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
    history_ : dict of ndarray
        Values after each row: "gap" is the duality gap over the stored examples, "members" is the
        number of stored examples, and "kernel_evaluations" counts kernel values computed so far.
        Each array has shape (n_rows,), or (n_rows, n_classes) for more than two classes. Only
        available with ``record=True``.
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
        Rows whose labels are probably wrong because ``y f(x)`` is less than `ramp`, sorted by
        ascending ``y f(x)``. Fields: "id", "label" and "value", which is ``y f(x)``. The current
        model evaluates stored rows; the other rows were evaluated when they were last visited or
        dropped. Not available with ``loss="hinge"``.

    See Also
    --------
    OnlineSVC : Fast online classifier; the default choice.
    ExactRampSVC : Ramp-loss classifier that is solved after every row.
    TrackingSVC : Online classifier with a bound on its distance to the optimum.

    References
    ----------
    .. [ertekin2011] S. Ertekin, L. Bottou and C. L. Giles, "Ignorance is Bliss: Non-Convex Online
       Support Vector Machines", IEEE Transactions on Pattern Analysis and Machine Intelligence
       33(2), 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import GapSVC
    >>> X, y = make_moons(3000, noise=0.2, random_state=0)
    >>> wrong = np.random.RandomState(0).rand(2000) < 0.2
    >>> noisy = np.where(wrong, 1 - y[:2000], y[:2000])
    >>> hinge = GapSVC(gamma=1.0, random_state=0).fit(X[:2000], noisy)
    >>> ramp = GapSVC(gamma=1.0, loss="ramp", random_state=0).fit(X[:2000], noisy)
    >>> len(ramp.support_) < len(hinge.support_) / 2
    True
    >>> print(f"{ramp.score(X[2000:], y[2000:]):.2f}")
    0.96

    List the rows that look mislabelled, and check how many of them are:

    >>> found = ramp.suspects_["id"]
    >>> print(f"{len(found)} rows, {wrong[found].mean():.0%}")
    318 rows, 99%
    """

    _algorithm = ALGORITHM
    _rules: ClassVar[dict[str, Rule]] = {
        **BiasFreeClassifier._rules,
        **SELECTION_RULES,
        "record": boolean(),
        "tol": positive(),
        "loss": one_of(*LOSSES),
        "ramp": below(1),
        "clean_every": either(none(), integer(1)),
        "max_idle": integer(0),
        "finish_at_end": boolean(),
        "budget": either(none(), integer(2, MOST_BUDGET)),
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
        loss: Literal["hinge", "ramp", "filter"] = "hinge",
        ramp: float = -1.0,
        clean_every: int | None = 300,
        max_idle: int = 100,
        finish_at_end: bool = True,
        epochs: int = 1,
        selection: Literal["random", "gradient", "active", "autoactive"] = "random",
        pool_size: int | None = 50,
        budget: int | None = None,
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
        self.tol = tol
        self.loss = loss
        self.ramp = ramp
        self.clean_every = clean_every
        self.max_idle = max_idle
        self.finish_at_end = finish_at_end
        self.epochs = epochs
        self.selection = selection
        self.pool_size = pool_size
        self.budget = budget
        self.center = center
        self.record = record
        self.calibration = calibration
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _conflict(self) -> str | None:
        if self.clean_every is None and self.budget is not None:
            return (
                "clean_every=None keeps every row, which no budget can limit. Set clean_every to "
                "an integer, or budget=None."
            )
        return None

    @property
    def suspects_(self) -> NDArray[np.void]:
        """Rows whose labels are probably wrong; see the attributes of the class."""
        if LOSSES[self._fitted().plan.settings["loss"]] == "hinge":
            raise AttributeError(
                "suspects_ is not available with loss='hinge': it requires loss='ramp' or "
                "loss='filter'. Fit the model with one of these losses."
            )
        return super().suspects_

    def _settings(self) -> dict[str, Any]:
        return {
            "tol": float(self.tol),
            "loss": LOSSES.index(self.loss),
            "ramp": float(self.ramp),
            "clean_every": 0 if self.clean_every is None else int(self.clean_every),
            "max_idle": int(self.max_idle),
        }

"""GapSVC: as many steps as the duality gap requires, and losses that ignore outliers."""

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
    arrays=SUSPECTS,
    sizes=suspect_sizes,
    check=_check,
)


class GapSVC(SuspectAttributes, FinishingMixin, BiasFreeClassifier):
    """Support vector classifier that stays small on mislabelled data.

    After each row, the classifier takes as many optimization steps as bring the duality gap over
    the stored examples within its target, so that the model is accurate at any time [ertekin2011]_.
    With ``loss="ramp"``, the loss of badly misclassified rows is bounded; with ``loss="filter"``,
    such rows are not learned at all. The model then stays small and accurate even if a tenth or a
    third of the labels are wrong. The decision function has no bias.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the loss. Larger values fit the training rows more closely; ``inf`` requests a
        hard margin.
    kernel : {"linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed"} \
        or callable, default="rbf"
        Kernel function. With "precomputed", X is the matrix of kernel values. A callable receives
        two blocks of rows and returns the matrix of kernel values between them. K(x, x) must be
        positive for every row.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the "rbf", "poly" and "sigmoid" kernels. "scale" uses 1 / (n_features *
        weighted variance of X), "auto" uses 1 / n_features.
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
        - "ramp" is LASVM-NC: a row found with y f(x) < `ramp` is assumed to be mislabelled.
        - "filter" is LASVM-I: only rows with `ramp` <= y f(x) <= 1 are learned.
    ramp : float, default=-1.0
        Value of y f(x) below which the ramp loss is constant. It must be less than 1.
    clean_every : int or None, default=300
        Number of rows between removals of non-support vectors. None never removes them, so that
        every row is kept; this is FULL SVM.
    max_idle : int, default=100
        Number of non-support vectors that a removal keeps: those nearest to the margin.
    finish_at_end : bool, default=True
        Whether `fit` calls `finish` after each epoch, which solves the problem for the stored
        examples. The paper does not.
    epochs : int, default=1
        Number of passes of `fit` over the rows.
    selection : {"random", "gradient", "active", "autoactive"}, default="random"
        Strategy by which `fit` chooses the rows to learn, as in :class:`OnlineSVC`.
    pool_size : int or None, default=50
        Number of rows that "gradient" and "active" sample for each choice. None searches all rows
        each time, until no row is left inside the margin.
    budget : int or None, default=None
        If given, the model never stores more than this many examples, at most 16,384: where it
        would, those that matter least leave, and what they contributed is projected onto the
        others, as in :class:`OnlineSVC`. Rows are then learned only if they violate the margin by
        more than 0.35. None stores as many examples as are needed.
    center : bool, default=False
        Whether to subtract the mean from dense features, which compensates for the missing bias
        with kernels that are functions of the inner product. Not available for sparse features or
        for callable or precomputed kernels.
    record : bool, default=False
        Whether to record `history_` after each row.
    calibration : {"sigmoid", "isotonic"} or None, default=None
        Form of the curve by which `predict_proba` turns decision values into probabilities. The
        curve is fitted to decision values of rows that the model had not learned yet: of a stream,
        the latest ones; of `fit` with up to 1,000 rows, those of a 5-fold cross-validation.
        "isotonic" needs a few thousand rows to be better than "sigmoid". None gives no
        probabilities.
    cache_size : float or "auto", default="auto"
        Memory for kernel rows, in megabytes. The model does not depend on it; too little makes
        fitting slower. "auto" allows a quarter of the memory that is available when the first
        model is fitted, at most 8 GB. Memory is taken only as rows are needed.
    class_weight : dict or "balanced", default=None
        Factors of C for each class; classes missing from the dict have weight 1. "balanced" uses
        ``n_samples / (n_classes * np.bincount(y))``, and the model must then be started with `fit`,
        which sees all labels. None gives every class the weight 1.
    shuffle : bool, default=True
        Whether `fit` visits the rows in random order.
    n_jobs : int, default=None
        Number of threads. None means 1, unless set by ``joblib.parallel_config``; -1 uses every
        processor available to the process. The model does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed for the order in which rows are visited.
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
    history_ : dict of ndarray
        Values after each row: "gap", the duality gap over the stored examples; "members", their
        number; "kernel_evaluations", the count so far. Each array has shape (n_rows,), or (n_rows,
        n_classes) for more than two classes. Only available with ``record=True``.
    ids_ : ndarray of shape (n_stored,)
        Ids of all examples stored in the model, support vectors or not.
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
        Counters of the work done so far, seconds by phase, and how values are computed.
    support_ : ndarray of shape (n_SV,)
        Ids of the support vectors. After `fit`, ids are row numbers.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_SV, n_features)
        Support vectors. If rows are objects, this is an array of objects; with
        ``kernel="precomputed"`` it is empty.
    suspects_ : structured ndarray of shape (n_suspects,)
        Rows whose labels look wrong, because y f(x) < `ramp`, the least value first: "id", "label"
        and "value", which is y f(x). Stored rows are judged by the current model; the others were
        judged when they were last visited or dropped. Not available with ``loss="hinge"``.

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

    Which labels look wrong, and how many of them are:

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
        """Rows whose labels look wrong; see the attributes of the class."""
        if LOSSES[self._fitted().plan.settings["loss"]] == "hinge":
            raise AttributeError(
                "suspects_ is available only with loss='ramp' or loss='filter'; here loss is "
                "'hinge'."
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

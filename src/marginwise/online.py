"""OnlineSVC: support vector classification in one pass, by LASVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from marginwise._algorithm import Algorithm
from marginwise._checks import (
    MOST_BUDGET,
    MOST_REPROCESS,
    Rule,
    boolean,
    count,
    either,
    integer,
    non_negative,
    none,
    one_of,
    one_value,
    positive,
)
from marginwise._engine.given import GivenBias
from marginwise._estimator.classifier import KernelClassifier
from marginwise._estimator.finishing import FinishingMixin
from marginwise._estimator.from_svc import FromSVC
from marginwise._estimator.streams import LABEL_FREE, SELECTION_RULES
from marginwise._training.reservoir import Reservoir
from marginwise._warn import warn_unconverged

SEMI_DEFINITE = ("linear", "rbf", "cosine", "tanimoto")  # positive semi-definite kernels

ALGORITHM = Algorithm(
    name="lasvm",
    settings={
        "tol": positive(),
        "reprocess": count(-1, MOST_REPROCESS),
        "reprocess_each": boolean(),
        "delta_max": either(non_negative(), one_value(-1)),
    },
    counts=1,
    biased=True,
    pairs=True,
    budgeted=True,
    solves=True,
)


def is_rule(value: Any) -> bool:
    """Return whether a value is a stopping rule."""
    return callable(getattr(value, "check", None)) and not isinstance(value, type)


class OnlineSVC(FromSVC, FinishingMixin, KernelClassifier):
    """Support vector classifier that learns one example at a time.

    This estimator implements LASVM [bordes2005]_. A single pass over the data usually gives a model
    about as accurate as the SVM solution in a fraction of the training time. ``epochs="converge"``
    trains until the SVM solution is reached. With more than two classes, the binary problems are
    trained together and share their kernel values.

    `fit` looks ahead: it evaluates a window of rows at a time and learns those that violate the
    optimality conditions, in order of decreasing violation. `partial_fit` and `learn_from` learn
    the rows one by one, so the model does not depend on how a stream is divided into calls.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of the hinge loss. Larger values regularize less and fit the training rows more
        closely. ``inf`` requests a hard margin.
    kernel : {"linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed"} \
        or callable, default="rbf"
        Kernel function. With "precomputed", `X` is the matrix of kernel values. A callable is
        called with two arrays of rows and returns the matrix of kernel values between them.
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the "rbf", "poly" and "sigmoid" kernels. "scale" uses ``1 / (n_features *
        X.var())``, where the variance takes sample weights into account; "auto" uses ``1 /
        n_features``.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant term of the "poly" and "sigmoid" kernels.
    tol : float, default=1e-3
        Tolerance of the optimality conditions. Pairs of examples that violate the conditions by
        less are not optimized. Smaller values give more exact models and take longer.
    epochs : int or "converge", default=1
        Number of passes of `fit` over the rows. After the last pass, `fit` revisits rows that are
        not stored as long as at least a tenth of them violate the optimality conditions, which
        happens with noisy labels. "converge" continues until no row violates the conditions by more
        than `tol`, the stopping criterion of :class:`sklearn.svm.SVC`. Binary problems of up to
        4,096 rows, or 2,560 rows if there are several problems, are always solved to convergence.
    selection : {"random", "gradient", "active", "autoactive"}, default="random"
        Strategy that `fit` uses to select the rows to learn.

        - "random" learns every row, in random order.
        - "gradient" samples `pool_size` unseen rows and learns the most misclassified one.
        - "active" samples `pool_size` unseen rows and learns the one nearest to the boundary.
        - "autoactive" samples rows until five fall inside the margin (at most 100) and learns the
          one nearest to the boundary.

        "active" and "autoactive" do not use the labels to select rows. They give smaller models and
        avoid mislabelled rows far from the boundary. Each pass evaluates every row once. A model
        learns at least 1,000 rows as long as any remain inside its margin.
    pool_size : int or None, default=50
        Number of rows that "gradient" and "active" sample for each selection. None compares all
        remaining rows each time and stops when no row is left inside the margin.
    stop : int, stopping rule or None, default=None
        Number of rows to learn, or a stopping rule such as
        :class:`marginwise.active.SupportVectorPlateau`. If given, `fit` samples `pool_size` rows
        for each row that it learns and returns the others to the pool, so that each selection is
        made among all rows not yet learned, as in [bordes2005]_ and [ertekin2007]_. With None, each
        pass evaluates every row once. Rules that draw rows at random, such as
        :class:`marginwise.active.ErrorAudit`, are not supported. Model files do not store stopping
        rules.
    reprocess : int or "gap", default=1
        Number of REPROCESS steps after each processed row, at most 10^9. "gap" continues until the
        duality gap over the stored examples reaches its target [ertekin2011]_. More steps make each
        row more expensive and intermediate models more exact. `fit` looks ahead only if the value
        is 1.
    reprocess_when : {"processed", "each"}, default="processed"
        When to take REPROCESS steps: after rows that changed the model ("processed") or after every
        row ("each").
    finish_at_end : bool, default=True
        Whether `fit` calls `finish` after each epoch, which solves the problem for the stored
        examples.
    finish_every : int, default=None
        Number of rows between additional calls of `finish`. None does not call `finish` between
        rows.
    delta_max : float, default=None
        If given, continue REPROCESS steps after each row until no pair of examples violates the
        optimality conditions by more than this value.
    replay : int, default=0
        Size of a reservoir for streams that are not in random order. 0 disables it. The reservoir
        is a uniform sample of all rows seen. After every 64 rows, `partial_fit` learns 64 rows of
        the reservoir again, and `finish` learns all of them again. The C of a sampled row is
        increased to represent the rows that were not sampled. The model and its files contain the
        rows of the reservoir.
    budget : int or None, default=None
        Maximum number of stored examples, from 2 to 16,384. When it is exceeded, the least
        important examples are removed and their contribution is projected onto the remaining ones
        [wang2012]_. Memory and time per row are then bounded regardless of the length of the
        stream. Only rows that violate the margin by more than 0.35 are learned, and `fit` does not
        look ahead. None sets no limit.
    multiclass : {"auto", "ovr", "ovo"}, default="auto"
        Decomposition of problems with more than two classes into binary problems.

        - "ovo" (one-vs-one) separates each pair of classes, as :class:`sklearn.svm.SVC` does.
        - "ovr" (one-vs-rest) separates each class from all others.
        - "auto" uses "ovo" for up to 50 classes, and in `fit` for more if the number of pairs of
          classes times that of rows is at most 50 million, as for 100 classes and 10,000 rows. With
          a `budget`, or if `reprocess`, `reprocess_when`, `finish_at_end`, `finish_every` or
          `delta_max` differ from their defaults, it uses "ovo" for up to 32 classes. Otherwise, it
          uses "ovr", also if `selection` is not "random", if `replay` is positive, or if
          `partial_fit` is called without `classes`.
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
        Whether `fit` visits the rows in random order. Use False only if the rows already are in
        random order.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a ``joblib.parallel_config`` context. -1 means
        using all processors available to the process. The model does not depend on the number of
        threads.
    random_state : int, RandomState instance or None, default=None
        Seed for the order in which rows are visited. Small problems, which are solved to
        convergence, do not depend on it.
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
        Signed coefficients of the support vectors. There is one binary problem for two classes. For
        more classes, there is one per class (one-vs-rest) or one per pair of classes (one-vs-one),
        in the order (0, 1), (0, 2), ...; the second class of a pair is the positive one.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit. Only defined if `X` has feature names that are all
        strings.
    gamma_ : float
        Value used for `gamma`. Only available with the "rbf", "poly" and "sigmoid" kernels.
    ids_ : ndarray of shape (n_stored,)
        Ids of all rows stored in the model, including those that are not support vectors.
    intercept_ : ndarray of shape (n_problems,)
        Constant term of each decision function.
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
    GapSVC : Online classifier that is robust to mislabelled rows.
    TrackingSVC : Online classifier with a bound on its distance to the optimum.
    ExactSVC : Exact solution after every row learned or forgotten.
    marginwise.active.ActiveLearner : Select the rows of a pool to label.
    sklearn.svm.SVC : Batch solver for the same problem, based on LIBSVM.

    References
    ----------
    .. [bordes2005] A. Bordes, S. Ertekin, J. Weston and L. Bottou, "Fast Kernel Classifiers with
       Online and Active Learning", Journal of Machine Learning Research 6, 2005.
    .. [ertekin2011] S. Ertekin, L. Bottou and C. L. Giles, "Ignorance is Bliss: Non-Convex Online
       Support Vector Machines", IEEE Transactions on Pattern Analysis and Machine Intelligence
       33(2), 2011.
    .. [ertekin2007] S. Ertekin, J. Huang, L. Bottou and C. L. Giles, "Learning on the Border:
       Active Learning in Imbalanced Data Classification", CIKM, 2007.
    .. [wang2012] Z. Wang, K. Crammer and S. Vucetic, "Breaking the Curse of Kernelization: Budgeted
       Stochastic Gradient Descent for Large-Scale SVM Training", Journal of Machine Learning
       Research 13, 2012.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = OnlineSVC(C=10, gamma=1.0, random_state=0).fit(X[:400], y[:400])
    >>> model.score(X[400:], y[400:])
    0.99
    >>> model.partial_fit(X[400:], y[400:]).predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])
    """

    _algorithm = ALGORITHM
    _rules: ClassVar[dict[str, Rule]] = {
        **KernelClassifier._rules,
        **SELECTION_RULES,
        "tol": positive(),
        "epochs": either(integer(1), one_of("converge")),
        "stop": either(none(), integer(1), (is_rule, "a stopping rule")),
        "reprocess": either(integer(0, MOST_REPROCESS), one_of("gap")),
        "reprocess_when": one_of("processed", "each"),
        "finish_at_end": boolean(),
        "finish_every": either(none(), integer(1)),
        "delta_max": either(none(), non_negative()),
        "replay": integer(0),
        "budget": either(none(), integer(2, MOST_BUDGET)),
        "multiclass": one_of("auto", "ovr", "ovo"),
    }

    _seeds_per_class = 5
    _may_grow = True
    _own_state = frozenset({"_reservoir", "_grows", "_given_bias"})

    @classmethod
    def _check_own_state(cls, state: Mapping[str, Any], problems: int) -> None:
        if state.get("_grows", True) is not True:
            raise ValueError("_grows must be True")
        if "_given_bias" in state:
            GivenBias.check(state["_given_bias"])
        if "_reservoir" in state:
            features, classes = state["n_features_in_"], len(state["classes_"])
            Reservoir.check(state["_reservoir"], features, classes)

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        epochs: int | Literal["converge"] = 1,
        selection: Literal["random", "gradient", "active", "autoactive"] = "random",
        pool_size: int | None = 50,
        stop: Any = None,
        reprocess: int | Literal["gap"] = 1,
        reprocess_when: Literal["processed", "each"] = "processed",
        finish_at_end: bool = True,
        finish_every: int | None = None,
        delta_max: float | None = None,
        replay: int = 0,
        budget: int | None = None,
        multiclass: Literal["auto", "ovr", "ovo"] = "auto",
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
        self.epochs = epochs
        self.selection = selection
        self.pool_size = pool_size
        self.stop = stop
        self.reprocess = reprocess
        self.reprocess_when = reprocess_when
        self.finish_at_end = finish_at_end
        self.finish_every = finish_every
        self.delta_max = delta_max
        self.replay = replay
        self.budget = budget
        self.multiclass = multiclass
        self.calibration = calibration
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _warn_if_far(self) -> None:
        plan = self._engine.plan
        known = plan.kernel in SEMI_DEFINITE or (plan.kernel == "poly" and plan.coef0 >= 0)
        if not known or plan.budget:  # inherited coefficients have no bound
            return
        # With a positive semi-definite kernel, the dual objective is at most the sum of C.
        dual, most = self._engine.native.objective(), self._engine.native.penalty()
        if not (dual > 1.01 * most).any():
            return
        worst = int(np.argmax(dual / most))
        dual, most = dual / plan.unit, most / plan.unit
        warn_unconverged(
            f"{type(self).__name__} reached a dual objective of {dual[worst]:.3g}, above the sum "
            f"of C over its examples, {most[worst]:.3g}: as stored in single precision, the kernel "
            "is not positive semi-definite, and the model is not the solution. Centre or scale "
            "the features, or use ExactSVC."
        )

    def _conflict(self) -> str | None:
        if self.epochs == "converge" and self.selection != "random":
            return (
                "epochs='converge' learns every row that violates the optimality conditions, and "
                "cannot be combined with a selection of rows. Set selection='random', or epochs to "
                "an integer."
            )
        if self.epochs == "converge" and self.stop is not None:
            return (
                "epochs='converge' ends when no row violates the optimality conditions, but a "
                "stopping rule was given. Set stop=None, or epochs to an integer."
            )
        if getattr(self.stop, "draws_rows", False):
            return (
                f"stop={self.stop!r} needs the labels of rows drawn at random, but fit learns the "
                "rows that it selects. Use ActiveLearner with this rule, or another rule, such as "
                "SupportVectorPlateau()."
            )
        if self.epochs == "converge" and self.budget is not None:
            return (
                "epochs='converge' needs all support vectors of the solution, but a budget was "
                "given. Set budget=None, or epochs to an integer."
            )
        if self.multiclass == "ovo" and self.selection in LABEL_FREE:
            return (
                "selection='active' and 'autoactive' choose rows without looking at labels, but "
                "multiclass='ovo' needs the label of a row to know the pairs that it belongs to. "
                "Set multiclass='ovr', or selection to 'random' or 'gradient'."
            )
        return None

    def _settings(self) -> dict[str, Any]:
        return {
            "tol": float(self.tol),
            "reprocess": -1 if self.reprocess == "gap" else int(self.reprocess),
            "reprocess_each": self.reprocess_when == "each",
            "delta_max": -1.0 if self.delta_max is None else float(self.delta_max),
        }

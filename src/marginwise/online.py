"""OnlineSVC: support vector classification in one pass, by LASVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from marginwise._algorithm import Algorithm
from marginwise._checks import (
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
from marginwise._estimator.classifier import KernelClassifier
from marginwise._estimator.finishing import FinishingMixin
from marginwise._estimator.streams import SELECTION_RULES
from marginwise._warn import warn_unconverged

SEMI_DEFINITE = ("linear", "rbf", "cosine", "tanimoto")  # kernels, for all features

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
)


class OnlineSVC(FinishingMixin, KernelClassifier):
    """Support vector classifier that learns one example at a time [bordes2005].

    One pass over the data gives a model about as good as the SVM solution, in a fraction of the
    time; more epochs converge to it. Several classes are learned one-vs-rest from one stream, with
    kernel values computed once for all.

    Parameters
    ----------
    C
        Penalty of the hinge loss. Larger fits the training rows more closely; ``inf`` asks
        for a hard margin.
    kernel
        "linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed" (X is the matrix of
        kernel values), or a function that is given two blocks of rows and returns the matrix of
        kernel values between them.
    gamma
        Scale of the "rbf", "poly" and "sigmoid" kernels: a number, "scale" for
        1 / (n_features * weighted variance of X), or "auto" for 1 / n_features.
    degree
        Degree of the "poly" kernel.
    coef0
        Constant of the "poly" and "sigmoid" kernels.
    tol
        Violation below which a pair of examples is left alone. Smaller is more exact and slower.
    epochs
        Passes of `fit` over the rows. One is nearly as accurate as many.
    selection
        Which rows `fit` learns. "random" learns them all, in random order. The others sample a few
        that are unseen and learn the best of them: "gradient" the most misclassified, "active" the
        nearest to the boundary, "autoactive" the nearest too, of as many as bring five within the
        margin, 100 at most. The last two look at no label before they have chosen; they give
        smaller models, and are not misled by wrong labels far from the boundary. A pass looks at
        each row once, and a model learns 1,000 rows at least while any are left in its margin.
    pool_size
        Rows that "gradient" and "active" choose among; None looks at all rows each time, until
        none is left in the margin.
    reprocess
        Optimisation steps after a row is taken in: a number, or "gap" for as many as bring the
        duality gap over the examples held within its target [ertekin2011]. More make each row
        costlier and the model between rows more exact. At most 10^9.
    reprocess_when
        "processed" takes those steps after rows that changed the model, "each" after all rows.
    finish_at_end
        Whether `fit` calls `finish` after each epoch, which solves the problem for the examples
        held.
    finish_every
        Call `finish` after every so many rows, too.
    delta_max
        Where given, take further steps after a row until no pair violates by more than this.
    cache_size
        Megabytes for kernel rows. Smaller is slower, with the same result.
    class_weight
        Factors of C per class: a dict, or "balanced" for n / (n_classes * count).
    shuffle
        Whether `fit` takes the rows in random order. Turn off only for rows in random order.
    n_jobs
        Threads; None for 1, or what ``joblib.parallel_config`` sets; -1 for one per processor that
        the process may use. The model is the same for any number.
    random_state
        Seed of the order of rows.
    verbose
        1 shows a progress bar on terminals and in notebooks; elsewhere it logs a line every few
        seconds (logger ``marginwise``, level INFO), or writes it to stderr if logging is not
        configured.

    Attributes
    ----------
    classes_
        The labels, sorted.
    n_features_in_
        Number of features.

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
        "reprocess": either(integer(0, MOST_REPROCESS), one_of("gap")),
        "reprocess_when": one_of("processed", "each"),
        "finish_at_end": boolean(),
        "finish_every": either(none(), integer(1)),
        "delta_max": either(none(), non_negative()),
    }
    _seeds_per_class = 5

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        epochs: int = 1,
        selection: Literal["random", "gradient", "active", "autoactive"] = "random",
        pool_size: int | None = 50,
        reprocess: int | Literal["gap"] = 1,
        reprocess_when: Literal["processed", "each"] = "processed",
        finish_at_end: bool = True,
        finish_every: int | None = None,
        delta_max: float | None = None,
        cache_size: float = 500,
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
        self.reprocess = reprocess
        self.reprocess_when = reprocess_when
        self.finish_at_end = finish_at_end
        self.finish_every = finish_every
        self.delta_max = delta_max
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _warn_if_far(self) -> None:
        plan = self._engine.plan
        known = plan.kernel in SEMI_DEFINITE or (plan.kernel == "poly" and plan.coef0 >= 0)
        if not known:
            return
        # No positive semi-definite kernel allows a dual objective above the sum of C.
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

    def _settings(self) -> dict[str, Any]:
        return {
            "tol": float(self.tol),
            "reprocess": -1 if self.reprocess == "gap" else int(self.reprocess),
            "reprocess_each": self.reprocess_when == "each",
            "delta_max": -1.0 if self.delta_max is None else float(self.delta_max),
        }

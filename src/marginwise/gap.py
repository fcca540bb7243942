"""GapSVC: as many steps as the duality gap asks for, and losses that let outliers be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from marginwise._algorithm import SHIFTED, USUAL, Algorithm
from marginwise._checks import Rule, below, boolean, count, either, integer, none, one_of, positive
from marginwise._estimator.bias_free import BiasFreeClassifier
from marginwise._estimator.finishing import FinishingMixin
from marginwise._estimator.streams import SELECTION_RULES

LOSSES = ("hinge", "ramp", "filter")

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
)


class GapSVC(FinishingMixin, BiasFreeClassifier):
    """Support vector classifier that wrong labels do not swell [ertekin2011].

    After each row it takes as many optimisation steps as bring the duality gap over the examples
    held within its target, so that the model is good at any time. With ``loss="ramp"`` rows that
    are misclassified by far count no more than a fixed loss, with ``loss="filter"`` they are not
    learned at all: the model stays small and accurate where a tenth or a third of the labels is
    wrong. It has no bias.

    Parameters
    ----------
    C
        Penalty of the loss. Larger fits the training rows more closely; ``inf`` asks
        for a hard margin.
    kernel
        "linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed" (X is the matrix of
        kernel values), or a function that is given two blocks of rows and returns the matrix of
        kernel values between them. K(x, x) must be above 0 for every row.
    gamma
        Scale of the "rbf", "poly" and "sigmoid" kernels: a number, "scale" for
        1 / (n_features * weighted variance of X), or "auto" for 1 / n_features.
    degree
        Degree of the "poly" kernel.
    coef0
        Constant of the "poly" and "sigmoid" kernels.
    tol
        Violation below which an example is left alone.
    loss
        "hinge" is LASVM-G. "ramp" is LASVM-NC: a row that is found with y f(x) < `ramp` is held to
        have a wrong label. "filter" is LASVM-I: only rows with `ramp` <= y f(x) <= 1 are learned.
    ramp
        Where the ramp ends; below 1.
    clean_every
        Number of rows between removals of non-support vectors. None never removes them, which
        is FULL SVM: every row stays.
    max_idle
        How many non-support vectors stay then, those nearest to the margin.
    finish_at_end
        Whether `fit` calls `finish` after each epoch, which solves the problem for the examples
        held. The paper does not.
    epochs
        Passes of `fit` over the rows.
    selection
        Which rows `fit` learns: "random", "gradient", "active" or "autoactive", as in `OnlineSVC`.
    pool_size
        Rows that "gradient" and "active" choose among; None looks at all rows each time.
    center
        Whether dense features are measured from their mean, which stands in for the missing bias
        where the kernel is a function of x.y.
    record
        Whether to keep, after each row, what `history_` tells.
    cache_size
        Megabytes for kernel rows. Smaller is slower, with the same result.
    class_weight
        Factors of C per class: a dict, or "balanced" for n / (n_classes * count).
    shuffle
        Whether `fit` takes the rows in random order.
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
        center: bool = False,
        record: bool = False,
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
        self.loss = loss
        self.ramp = ramp
        self.clean_every = clean_every
        self.max_idle = max_idle
        self.finish_at_end = finish_at_end
        self.epochs = epochs
        self.selection = selection
        self.pool_size = pool_size
        self.center = center
        self.record = record
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _settings(self) -> dict[str, Any]:
        return {
            "tol": float(self.tol),
            "loss": LOSSES.index(self.loss),
            "ramp": float(self.ramp),
            "clean_every": 0 if self.clean_every is None else int(self.clean_every),
            "max_idle": int(self.max_idle),
        }

"""TrackingSVC: a few steps a row that follow the sequence of SVM solutions, with a guarantee."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.utils import check_random_state

from marginwise._algorithm import Algorithm
from marginwise._arrays import Float
from marginwise._checks import MOST_STEPS, Conflict, Rule, boolean, count, integer, one_of
from marginwise._engine.engine import Engine
from marginwise._estimator.attributes import scalar_or_array
from marginwise._estimator.bias_free import BiasFreeClassifier
from marginwise._estimator.streams import SELECTION_RULES
from marginwise._warn import warn_unconverged

FAR = 0.4  # a normalised gap: w = 0 has 1

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
    """Support vector classifier whose distance to the optimum is bounded all along [usunier2010].

    After each row it improves the coefficients of a few examples picked at random among all that
    were seen. However the rows are chosen, the model then stays, on average, within a known
    distance of the SVM solution for the rows so far. It has no bias.

    Parameters
    ----------
    C
        Penalty of the hinge loss. Larger fits the training rows more closely; ``inf`` asks
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
    steps
        Examples that are picked after each row (K in the paper), at most 1,000,000.
    process
        Whether the row itself is learned first: algorithm 2. Algorithm 1 only picks.
    average
        Whether the model that predicts is the mean of those after each of the last `steps` picks,
        which the guarantee is for; learning continues from the last of them.
    gradients
        "all" keeps every row seen, as the guarantee asks. "support" keeps support vectors alone,
        which is much cheaper; a row whose coefficient becomes 0 is forgotten.
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
        Seed of the order of rows, and of the picks.
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

    _conflicts: ClassVar[tuple[Conflict, ...]] = (
        (
            lambda model: model.gradients == "support" and not model.process,
            "gradients='support' needs process=True, because an example that is not processed "
            "never becomes a support vector.",
        ),
    )

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
        self.steps = steps
        self.process = process
        self.average = average
        self.gradients = gradients
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

    @property
    def normalised_gap_(self) -> float | Float:
        """Primal minus dual over the examples held, divided by the sum of their C.

        It is that of the coefficients that learning continues with, before they are averaged.
        """
        return scalar_or_array(self._fitted().at_once(self._normalised_gap))

    @property
    def bound_(self) -> float | Float:
        """What theorem 2 or 3 bounds the mean of the normalised distance to the optimum by.

        The optimum of the dual, which the theorems know, is replaced by the primal value at hand,
        which is above it. Kernels with K(x, x) > 1 are scaled down as the theorems ask.

        Not available with ``average=False`` or ``gradients="support"``, which no theorem covers.
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

    def _settings(self) -> dict[str, Any]:
        return {
            "steps": int(self.steps),
            "process": bool(self.process),
            "average": bool(self.average),
            "support_only": self.gradients == "support",
            "seed": int(check_random_state(self.random_state).randint(2**31 - 1)),
        }

"""ExactRampSVC: the ramp-loss SVM, solved after every row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from marginwise._algorithm import SHUT, USUAL, Algorithm
from marginwise._arrays import Float
from marginwise._checks import Rule, count, either, integer, none, positive
from marginwise._engine.engine import Engine
from marginwise._estimator.attributes import scalar_or_array, squared_norms
from marginwise._estimator.bias_free import BiasFreeClassifier

ALGORITHM = Algorithm(
    name="exact_ramp",
    settings={"tol": positive(), "max_idle": count(-1)},
    boxes=frozenset({USUAL, SHUT}),
)


class ExactRampSVC(BiasFreeClassifier):
    """Ramp-loss support vector classifier that is solved after every row [wang2009].

    A row that is misclassified by far costs no more than a fixed loss, and no such row is a support
    vector: all of them lie where -1 <= y f(x) <= 1. After each row the model is a fixed point of
    the ramp-loss problem over all rows so far, as if it had been trained on them at once. It has no
    bias.

    Parameters
    ----------
    C
        Penalty of the ramp loss. Larger fits the training rows more closely; ``inf`` asks
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
    max_idle
        How many rows that are no support vectors are kept, the nearest to the boundary; None keeps
        all. A few hundred make a long stream much faster and change little.
    epochs
        Passes of `fit` over the rows. A second one matters only to rows that `max_idle` dropped.
    center
        Whether dense features are measured from their mean, which stands in for the missing bias
        where the kernel is a function of x.y.
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
    Ask for the labels of those rows only that can matter:

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
        self.max_idle = max_idle
        self.epochs = epochs
        self.center = center
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def wants(self, X: Any) -> NDArray[np.bool_]:
        """Tell for which rows a label is worth asking: those with |f(x)| <= 1 in some problem.

        With `partial_fit` of these rows alone it is OnlineASVM^R.
        """
        scores = self.decision_function(X)
        inside = np.abs(scores.reshape(len(scores), -1)) <= 1
        return np.asarray(inside.any(axis=1))

    def ramp_objective(self) -> float | Float:
        """Return what is minimised over the rows held; one value per class where there are several.

        It is half of |w|^2 plus the sum of C min(2, max(0, 1 - y f(x))).
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

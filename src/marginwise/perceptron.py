"""KernelPerceptron: the perceptron and its kin, as baselines and for the fastest streams."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from marginwise._algorithm import ENDLESS, USUAL, Algorithm
from marginwise._checks import (
    Conflict,
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
    """Raise if a perceptron, whose averages are divided by their number, saw too few examples."""
    held = (state["rank"] >= 0).sum(axis=1)
    if (state["notes"][:, 0] < held).any():
        raise ValueError("notes must count the examples that are held")


ALGORITHM = Algorithm(
    name="perceptron",
    settings={
        "margin": non_negative(),
        "budget": count(),
        "average": boolean(),
        "aggressive": boolean(),
    },
    counts=1,
    boxes=frozenset({USUAL, ENDLESS}),  # usual where there is none
    check=_check_examples,
)


class KernelPerceptron(BiasFreeClassifier):
    """Kernel perceptron: plain, averaged, on a budget, or passive-aggressive [bordes2005].

    A row that is classified wrong becomes a support vector, and that is all: no other coefficient
    changes. It is the simplest of the kernel machines here. Wrong labels ruin the plain one, and
    the one on a budget; with ``average=True`` it stands them well. It has no bias.

    Parameters
    ----------
    C
        What the coefficient of a row grows by; its largest growth where ``update="pa"``. With
        "perceptron" and no margin it scales f(x) and changes no prediction.
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
    budget
        Most support vectors of a binary problem, of which there is one a class where there are
        several; None for any number. Beyond it the one leaves that is classified best without
        itself.
    margin
        Rows with y f(x) <= `margin` are learned. For "pa" it is the margin that a row is given, 0
        standing for 1.
    average
        Whether the model that predicts is the mean of those after each row. Not with a budget.
    update
        "perceptron" adds C y to the coefficient of a row, "pa" as much as gives the row its margin,
        C at most (passive-aggressive I).
    epochs
        Passes of `fit` over the rows.
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

    _conflicts: ClassVar[tuple[Conflict, ...]] = (
        (
            lambda model: model.average and model.budget is not None,
            "average=True keeps every row that was ever a support vector, and so cannot hold to "
            "a budget; choose one of them.",
        ),
        (
            lambda model: model.update == "perceptron" and math.isinf(model.C),
            "coefficients grow by C, which must be finite; C=inf needs update='pa'.",
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
        budget: int | None = None,
        margin: float = 0.0,
        average: bool = False,
        update: Literal["perceptron", "pa"] = "perceptron",
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
        self.budget = budget
        self.margin = margin
        self.average = average
        self.update = update
        self.epochs = epochs
        self.center = center
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _settings(self) -> dict[str, Any]:
        aggressive = self.update == "pa"
        return {
            "margin": 1.0 if aggressive and self.margin == 0 else float(self.margin),
            "budget": 0 if self.budget is None else int(self.budget),
            "average": bool(self.average),
            "aggressive": aggressive,
        }

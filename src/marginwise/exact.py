"""ExactSVC: the exact solution after every row learned and every row forgotten."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float, Ints
from marginwise._checks import Rule, check_params
from marginwise._engine.engine import HARD_COST
from marginwise._estimator.base import on_draft
from marginwise._estimator.classifier import KernelClassifier
from marginwise._estimator.exact import ExactModel


@dataclass(frozen=True)
class LeaveOneOut:
    """What a model says of each example that it holds, had it not learned it.

    Parameters
    ----------
    error
        The share of the examples that the model without them would misclassify.
    decision
        Each example's decision value without it, shaped as `decision_function` returns them.
    ids
        The examples, in the order of `decision`.
    """

    error: float
    decision: Float
    ids: Ints


class ExactSVC(ExactModel, KernelClassifier):
    """Support vector classifier that is exact after every row, learned or forgotten [laskov2006].

    It is the solution of scikit-learn's ``SVC``, to rounding, at any time: rows are added with
    `partial_fit` and taken back with `forget`, and what a model without each row would say costs a
    few steps a support vector (`leave_one_out`). All rows are kept, and time grows with the number
    of support vectors times rows: up to some ten thousands of rows.

    Parameters
    ----------
    C
        Penalty of the hinge loss. Larger fits the training rows more closely; infinity demands
        that all of them are classified with a margin, and needs classes that can be separated.
    kernel
        "linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed" (X is the matrix of
        kernel values), or a function that is given two blocks of rows and returns the matrix of
        kernel values between them. It should be positive semi-definite.
    gamma
        Scale of the "rbf", "poly" and "sigmoid" kernels: a number, "scale" for
        1 / (n_features * weighted variance of X), or "auto" for 1 / n_features.
    degree
        Degree of the "poly" kernel.
    coef0
        Constant of the "poly" and "sigmoid" kernels.
    window
        How many rows each binary problem holds at most; None holds all. Before one more is learned,
        another is forgotten.
    evict
        Which row makes room in the window: the "lightest", of least weight in the model (the oldest
        of several), as in the paper, or the "oldest", which follows drifting data.
    record
        Whether to keep `path_`.
    cache_size
        Megabytes for kernel rows. Smaller is slower, with the same result.
    class_weight
        Factors of C per class: a dict, or "balanced" for n / (n_classes * count).
    n_jobs
        Threads; None for 1, or what ``joblib.parallel_config`` sets; -1 for one per processor that
        the process may use. The model is the same for any number.
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
    Forget some rows, and have the model that never saw them:

    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import ExactSVC
    >>> X, y = make_moons(300, noise=0.2, random_state=0)
    >>> model = ExactSVC(C=10, gamma=1.0).fit(X, y).forget(range(100, 150))
    >>> rest = np.r_[0:100, 150:300]
    >>> other = ExactSVC(C=10, gamma=1.0).fit(X[rest], y[rest])
    >>> bool(np.allclose(model.decision_function(X), other.decision_function(X), atol=1e-9))
    True
    >>> round(model.leave_one_out().error, 3)
    0.02
    """

    _rules: ClassVar[dict[str, Rule]] = {
        **ExactModel._rules,
        **{
            name: rule
            for name, rule in KernelClassifier._rules.items()
            if name not in ("epochs", "shuffle")
        },
    }
    epochs = 1  # more would change nothing
    shuffle = False
    random_state = None

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: Literal["scale", "auto"] | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        window: int | None = None,
        evict: Literal["lightest", "oldest"] = "lightest",
        record: bool = False,
        cache_size: float = 2000,
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.window = window
        self.evict = evict
        self.record = record
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from nothing, row by row in the order given.

        Parameters
        ----------
        X
            Training rows: dense, CSR, a data frame, or the square matrix of kernel values where
            ``kernel="precomputed"``.
        y
            Their labels.
        sample_weight
            Scales C row by row; rows of weight zero are left out.
        """
        return super().fit(X, y, sample_weight)

    def leave_one_out(self) -> LeaveOneOut:
        """Return what the model would say of each example that it holds without having learned it.

        A row that is no support vector costs nothing; a support vector is unlearned and learned
        back. The model is as it was.
        """
        engine: Any = self._fitted().clone()
        decision = engine.native.leave_one_out()
        state = engine.state()
        held = state["rank"] >= 0
        some = held.any(axis=0)
        if not held[
            :, some
        ].all():  # a window: a problem says of rows it does not hold what it says
            said = engine.decision(engine.features_of(state))
            decision = np.where(held.T, decision, said)
        decision, labels = decision[some], state["labels"][some]
        best = decision[:, 0] > 0 if decision.shape[1] == 1 else decision.argmax(axis=1)
        error = float(np.mean(best.astype(np.int32) != labels)) if len(labels) else 0.0
        scores = decision[:, 0].copy() if decision.shape[1] == 1 else decision
        return LeaveOneOut(error, scores, state["ids"][some])

    @on_draft
    def set_C(self, value: float) -> Self:  # noqa: N802
        """Change C, and follow the solution there; much less work than fitting again.

        Parameters
        ----------
        value
            The new C, which may be infinity. Weights of rows and classes stay.
        """
        check_is_fitted(self)
        self.C = value
        check_params(self, {"C": self._rules["C"]})
        before = min(float((self._costs / self._balance)[0]), HARD_COST)
        self._step_aside()
        self._engine.scale_costs(min(float(value), HARD_COST) / before)
        self._costs = float(value) * self._balance
        return self

    def _start(self, X: Any, classes: ArrayLike | None) -> None:
        super()._start(X, classes)
        self.__dict__.pop("_basis_weights", None)  # a sample of a source, whose ids are not known

    def _update_costs(self) -> None:
        """Leave the penalty as it is: one solution has one C, which `set_C` changes."""

    def _balances(self) -> bool:
        return isinstance(self.class_weight, str)

    def _rebalanced(self, labels: NDArray[np.int32]) -> Float | None:
        counts = np.bincount(labels, minlength=len(self.classes_))
        present = counts > 0
        balance = self._balance.copy()  # of a class without rows, the weight does not matter
        balance[present] = len(labels) / (present.sum() * counts[present])
        return None if np.array_equal(balance, self._balance) else balance

    def _settings(self) -> dict[str, Any]:
        return {"sphere": False, "nu": 0.0, **self._window_settings()}

"""Construction of models from LIBSVM model files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginwise._arrays import Float
from marginwise._checks import check_params, take_rows
from marginwise._compression.basis import Expansion, Vectors
from marginwise._engine.engine import Engine
from marginwise._engine.plan import check_range
from marginwise._estimator.compressed import CompressedSVC
from marginwise._estimator.from_svc import by_pair
from marginwise._estimator.imported import Solution, bias_of, precise, take_over
from marginwise.data.errors import DataError
from marginwise.exchange.libsvm_layout import in_order
from marginwise.exchange.libsvm_text import ONE_CLASS, ModelText
from marginwise.online import OnlineSVC

# Relative tolerances for coefficients that were written with 6 digits.
BALANCED = 1e-6  # of a sum of coefficients that should be 0
BEYOND = 1e-6  # by which a coefficient may exceed its bound
FEW = 64  # support vectors whose decision values must be finite
DENSE_ABOVE = 0.25  # fraction of nonzero values above which rows are stored densely


def solution_in(text: ModelText) -> tuple[NDArray[np.int64], Solution]:
    """Return the class labels of a file, sorted, and its solution."""
    n = len(text.coefficients)
    ids = np.arange(n, dtype=np.int64)
    if text.kind == ONE_CLASS:
        ones = np.ones(n, dtype=np.int32)
        return np.array([-1, 1]), Solution(text.X, ids, ones, text.coefficients.T, -text.rho)
    there = np.repeat(np.arange(len(text.labels)), text.counts).astype(np.int32)
    classes, order = np.unique(text.labels, return_inverse=True)
    alpha, intercept = in_order(by_pair(text.coefficients.T, there), text.rho, order)
    labels = order[there].astype(np.int32)
    return classes, Solution(text.X, ids, labels, alpha, intercept)


@dataclass
class Imported:
    """Solution read from a file, from which a model is created.

    Parameters
    ----------
    text : ModelText
        The file, or the first of several.
    name : str
        Name of the file, for messages.
    classes : ndarray
        Class labels, sorted.
    solution : Solution
        Support vectors and coefficients.
    ovr : bool, default=False
        Whether the binary problems are one-vs-rest.
    """

    text: ModelText
    name: str
    classes: NDArray[Any]
    solution: Solution
    ovr: bool = False

    def model(self, C: float | None, class_weight: Mapping[Any, float] | None) -> Any:
        """Return the model: an `OnlineSVC` if it can be trained, a `CompressedSVC` otherwise."""
        model = OnlineSVC(
            C=1.0 if C is None else C,
            class_weight=class_weight,
            multiclass="ovr" if self.ovr else "ovo",
            **self.text.kernel,
        )
        check_params(model)
        model._grows = False
        model._set_classes(self.classes, None)
        with np.errstate(all="ignore"):
            try:
                return self._made(model, C)
            except DataError:
                raise
            except (ValueError, OverflowError) as error:
                raise DataError(f"{self.name}:{self.text.first_line}: {error}") from error

    def _made(self, model: Any, C: float | None) -> Any:
        X = self.solution.X
        if X.nnz > DENSE_ABOVE * X.shape[0] * X.shape[1]:
            X = X.toarray()
        solution = replace(self.solution, X=X).without_idle()
        model.n_features_in_ = X.shape[1]
        engine = model._make_engine(X, np.ones(X.shape[0]), streaming=False)
        check_range(engine.plan, X)
        why = self._not_a_solution(engine, solution)
        if why and C is not None:
            raise DataError(
                f"{self.name}:{self.text.first_line}: expected the solution of a support vector "
                f"classifier, but {why}. Leave C out for a model that predicts only."
            )
        if why:
            return fixed(model, engine, solution)
        model._engine = engine
        balance = model._balance[solution.labels]
        if C is None:
            model.C = float((np.abs(solution.alpha) / balance).max())
            model._set_classes(self.classes, None)
        self._check_bounds(solution, model.C * balance, model.C)
        take_over(model, solution, model.C * balance, len(self.solution))
        model._begin_reservoir()
        return model

    def _not_a_solution(self, engine: Engine, solution: Solution) -> str:
        """Return why coefficients do not solve a dual problem with a bias; empty if they may."""
        if self.text.kind == ONE_CLASS:
            return "it is a one-class model"
        if len(solution) == 0:
            return "all coefficients are 0"
        if (engine.signs(solution.labels).T * solution.alpha < 0).any():
            return "coefficients have signs that are not those of their classes"
        sums, sizes = solution.alpha.sum(axis=1), np.abs(solution.alpha).sum(axis=1)
        if (np.abs(sums) > BALANCED * sizes).any():
            return "coefficients of a pair of classes do not add up to 0"
        return ""

    def _check_bounds(self, solution: Solution, costs: Float, C: float) -> None:
        size = np.abs(solution.alpha).max(axis=0)
        if (size > costs * (1 + BEYOND)).any():
            raise DataError(
                f"{self.name}:{self.text.first_line}: expected coefficients up to C={C:g} times "
                f"the weight of their class, got {size[size > costs].max():.6g}. Pass the C and "
                "the class_weight that it was trained with."
            )


def fixed(model: OnlineSVC, engine: Engine, solution: Solution) -> CompressedSVC:
    """Return a model with arbitrary coefficients, which can predict but not learn."""
    plan = engine.plan
    if plan.center and plan.kernel == "linear":  # centring requires coefficients that sum to 0
        engine = Engine(replace(plan, center=[], double=True), None, None)
    engine = precise(engine, solution)
    found = Expansion(
        Vectors(solution.X, solution.labels),
        np.ascontiguousarray(solution.alpha * plan.unit),
        bias_of(engine, solution),
    )
    made = CompressedSVC._from_expansion(model, engine, found, len(solution))
    made._check_state(made._stored_state())
    some = take_rows(solution.X, np.arange(min(len(solution), FEW)))
    if not np.isfinite(made._score(some)).all():
        raise ValueError("its decision values are beyond the range of numbers; scale the features")
    return made

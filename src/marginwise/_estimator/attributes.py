"""Fitted attributes, and errors for attributes that are not available."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import check_features
from marginwise._engine.engine import Engine
from marginwise._engine.plan import WITH_GAMMA


def scalar_or_array(values: Float) -> float | Float:
    """Return a scalar for a single binary problem, otherwise the array."""
    return float(values[0]) if len(values) == 1 else values


class SolverAttributes:
    """Fitted attributes of all estimators."""

    @property
    def support_(self: Any) -> Ints:
        """Ids of the support vectors. After `fit`, ids are row indices of `X`."""
        engine: Engine = self._fitted()
        return engine.coefficients[0]

    @property
    def ids_(self: Any) -> Ints:
        """Ids of all rows stored in the model, including non-support vectors."""
        state = self._fitted().state()
        ids: Ints = state["ids"][(state["rank"] >= 0).any(axis=0)]
        return ids

    @property
    def support_vectors_(self: Any) -> Any:
        """Support vectors.

        An array of objects if the rows are objects. Empty with ``kernel="precomputed"``.
        """
        model = self._now()
        if model.kernel == "precomputed":
            model._fitted()
            return np.empty((0, 0))
        vectors = model._fitted().at_once(
            lambda engine: engine.features_of(engine.state())[(engine.weights != 0).any(axis=0)]
        )
        objects = model.__dict__.get("_objects")
        return vectors if objects is None else objects.block(vectors)

    @property
    def dual_coef_(self: Any) -> Float:
        """Signed coefficients of the support vectors, one row per binary problem."""
        engine: Engine = self._fitted()
        return engine.coefficients[2]

    @property
    def intercept_(self: Any) -> Float:
        """Constant term of each decision function; 0 if the algorithm has no bias."""
        engine: Engine = self._fitted()
        return engine.bias

    @property
    def stats_(self: Any) -> dict[str, Any]:
        """Counters of the work done so far, seconds per phase, and precision in use."""
        engine: Engine = self._fitted()
        return engine.stats

    def dual_objective(self: Any) -> float | Float:
        """Compute the dual objective over the stored examples.

        Returns
        -------
        objective : float or ndarray of shape (n_problems,)
            Value of the dual objective, one per binary problem for more than two classes.
        """
        return scalar_or_array(self._fitted().objective)

    @property
    def gamma_(self: Any) -> float:
        """Value used for `gamma`. Only available with the "rbf", "poly" and "sigmoid" kernels."""
        plan = self._fitted().plan
        if plan.kernel not in WITH_GAMMA:
            raise AttributeError(
                f"gamma_ is not available: kernel={self._kernel_name()} does not use gamma. Only "
                "the kernels 'rbf', 'poly' and 'sigmoid' use it."
            )
        return float(plan.gamma)

    @property
    def n_iter_(self: Any) -> int:
        """Number of optimization steps so far, over all binary problems.

        A step changes the coefficients of one or two examples (PROCESS and REPROCESS in
        `OnlineSVC`) or, in the exact estimators, follows one segment of the solution path.
        """
        counters = self._fitted().counters
        return int(counters["process"] + counters["reprocess"])

    def _kernel_name(self: Any) -> str:
        kernel: Any = getattr(self, "kernel", None)
        return repr(kernel) if isinstance(kernel, str) else "a function"


class ClassifierAttributes(SolverAttributes):
    """Fitted attributes of the classifiers."""

    @property
    def coef_(self: Any) -> Float:
        """Feature weights of each binary problem, with the linear kernel only.

        ``X @ coef_.T + intercept_`` are the decision values of the binary problems. The array is
        dense, even if the rows were sparse, and read-only.
        """
        engine: Engine = self._fitted()
        if engine.plan.kernel != "linear":
            raise AttributeError(
                f"coef_ is not available with kernel={self._kernel_name()}: only kernel='linear' "
                "has feature weights. Use dual_coef_ and support_vectors_."
            )
        weights = engine.at_once(_linear_weights)
        weights.flags.writeable = False  # a change would have no effect on the model
        return weights

    @property
    def intercept_(self: Any) -> Float:
        """Constant term of each decision function.

        It is 0 for estimators without a bias, except with a linear kernel and ``center=True``.
        """
        engine: Engine = self._fitted()
        if engine.plan.kernel != "linear" or not engine.plan.center:
            return engine.bias
        return engine.at_once(_linear_offset)

    @property
    def n_support_(self: Any) -> NDArray[np.int32]:
        """Number of support vectors of each class."""
        model = self._now()
        _, labels, _ = model._fitted().coefficients
        return np.bincount(labels, minlength=len(model.classes_)).astype(np.int32)

    def duality_gap(self: Any, X: Any, y: Any) -> float | Float:
        """Compute the duality gap, with the loss summed over the given rows.

        The duality gap is the primal minus the dual objective. Over the whole training set, it
        bounds the distance of the dual objective to the optimum.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that the loss is summed over.
        y : array-like of shape (n_samples,)
            Class labels.

        Returns
        -------
        gap : float or ndarray of shape (n_problems,)
            Duality gap, one value per binary problem for more than two classes.
        """
        model = self._now()
        check_is_fitted(model)
        X, y = check_features(model, X, y, reset=False)
        labels = model._encode(np.asarray(y))
        gap: Float = model._engine.at_once(lambda engine: _duality_gap(model, engine, X, labels))
        return scalar_or_array(gap)


class SuspectAttributes:
    """Fitted attributes of the ramp-loss classifiers."""

    @property
    def suspects_(self: Any) -> NDArray[np.void]:
        """Rows whose labels are probably wrong, sorted by ascending ``y f(x)``.

        These are the rows whose ``y f(x)`` is below the ramp. The structured array has the fields
        "id", "label" (the class label in the training data) and "value" (``y f(x)``, the minimum
        over the binary problems). The current model evaluates stored rows; the other rows were
        evaluated when they were last visited or dropped.
        """
        model = self._now()
        ids, labels, values = model._fitted().native.suspects()
        order = np.lexsort((ids, values))
        _, first = np.unique(ids[order], return_index=True)
        order = order[np.sort(first)]
        kinds = [("id", np.int64), ("label", model.classes_.dtype), ("value", np.float64)]
        suspects = np.empty(len(order), dtype=kinds)
        suspects["id"], suspects["value"] = ids[order], values[order]
        suspects["label"] = model.classes_[labels[order]]
        return suspects


def _linear_weights(engine: Engine) -> Float:
    """Return the sums of coefficients times (centred) features."""
    state = engine.state()
    # Rows in the caller's units, but before features_of adds the centre back.
    if engine.plan.center:
        rows = state["X"].astype(np.float64) / engine.plan.scale
    else:
        rows = engine.features_of(state)
    weights: Float = engine.weights @ rows
    return weights


def _linear_offset(engine: Engine) -> Float:
    """Return b - w.c, because f(x) = w.(x - c) + b for the centre c."""
    offset: Float = engine.bias - _linear_weights(engine) @ np.asarray(engine.plan.center)
    return offset


def _duality_gap(model: Any, engine: Engine, X: Any, labels: Labels) -> Float:
    """Return primal minus dual objective of each binary problem."""
    scores = engine.decision(model._augmented(X, None))
    signs = engine.signs(labels)
    losses = model._penalties()[labels] @ np.maximum(0.0, np.abs(signs) - signs * scores)
    return np.asarray(squared_norms(engine) / 2 + losses - engine.objective)


def squared_norms(engine: Engine) -> Float:
    """Return |w|^2 of each binary problem."""
    state, weights = engine.state(), engine.weights
    if (weights * engine.plan.unit == state["alpha"]).all():
        values: Float = engine.signs(state["labels"]).T - state["g"]
    else:  # averaged coefficients, for which no gradient is stored
        values = engine.decision(engine.features_of(state)).T
    return np.asarray((weights * values).sum(axis=1))

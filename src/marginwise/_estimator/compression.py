"""Compression of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import (
    Rule,
    boolean,
    check_arguments,
    check_features,
    check_weights,
    either,
    integer,
    non_negative,
    none,
    take_rows,
)
from marginwise._compression.basis import SEED, Expansion, Vectors, candidates_of, expansion_of
from marginwise._compression.ladder import Curve, climb, held_out, sizes_up_to
from marginwise._compression.refit import Training, project, refit
from marginwise._engine.engine import Engine
from marginwise._engine.foresight import MOST_KEPT
from marginwise._engine.plan import NATIVE, WITH_GAMMA
from marginwise._estimator.attributes import squared_norms
from marginwise._estimator.compressed import CompressedSVC
from marginwise._warn import warn

COST_OF_VALUES = 10.0  # C of rows whose targets are values, if kernel values are about 1
DEFAULT_INCREASE = 0.001  # accepted increase of the error: a tenth of a percentage point
FOLDS = 5  # for the calibration of compressed models
MOST_VECTORS = 4096  # default limit, because time is cubic and memory quadratic in the number
NEAR = 0.01  # accepted squared distance from the model, relative to |w|^2, if no rows are given
SAME = 1e-6  # relative difference of costs that is rounding


class Compressible:
    """Mixin of classifiers that can be compressed."""

    _compress_rules: ClassVar[dict[str, Rule]] = {
        "max_vectors": either(none(), integer(1)),
        "max_error_increase": either(none(), non_negative()),
        "curve": boolean(),
    }

    def compress(
        self: Any,
        X: Any = None,
        y: Any = None,
        *,
        max_vectors: int | None = None,
        max_error_increase: float | None = None,
        curve: bool = False,
        sample_weight: ArrayLike | None = None,
    ) -> CompressedSVC:
        """Approximate the model with fewer vectors.

        The compressed model is a kernel expansion over few vectors, which all binary problems
        share: the k-means centres of the support vectors if the kernel is "rbf" and the features
        are dense, otherwise a random sample of the support vectors. If `X` and `y` are given, the
        coefficients minimize the squared hinge loss on these rows, with the C and the class weights
        of this model. Otherwise, they minimize the distance to this model in the feature space of
        the kernel, which needs many more vectors for the same error.

        If this model was fitted with sample weights and `sample_weight` is None, the labels without
        these weights would give another model. The coefficients are then fitted to the decision
        values of this model at the rows instead of to `y`.

        This model does not change.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            Rows to fit the coefficients to, preferably the training rows of this model.
        y : array-like of shape (n_samples,), default=None
            Class labels of the rows.
        max_vectors : int, default=None
            Maximum number of vectors. Without `max_error_increase`, the compressed model has this
            number of vectors, or fewer if some are linearly dependent. None means the number of
            support vectors of this model, at most 4,096.
        max_error_increase : float, default=None
            Accepted increase of the error as a fraction of the rows; 0.001 is a tenth of a
            percentage point. The method selects the smallest number of vectors that stays within it
            on a held-out fifth of the rows, and fits a similar model to the other rows for this
            purpose. If both `max_vectors` and `max_error_increase` are None, 0.001 is used if `X`
            and `y` are given. Otherwise, the method selects the smallest number of vectors for
            which the squared distance to this model is at most a hundredth of its squared norm.
        curve : bool, default=False
            Whether `error_curve_` contains the held-out errors of all sizes up to `max_vectors`. If
            False, it contains only the sizes needed for the selection.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights that multiply C for each row of `X`, as in `fit`, and that weight held-out
            errors. Pass the weights that this model was fitted with. With None, all rows have
            weight 1 if this model was fitted without weights. Otherwise, decision values of this
            model replace the labels, and held-out errors count the rows that the compressed model
            and this model classify differently.

        Returns
        -------
        compressed : CompressedSVC
            Compressed model; this model does not change. If no size is within the accepted increase
            of the error, the compressed model has `max_vectors` vectors and a warning reports its
            error.
        """
        model = self._now()
        rules = Compressible._compress_rules
        check_arguments(rules, max_vectors=max_vectors, max_error_increase=max_error_increase)
        check_arguments(rules, curve=curve)
        check_is_fitted(model)
        _check_combination(model, X, y, max_error_increase, curve)
        if X is None and sample_weight is not None:
            raise ValueError("sample_weight needs the rows that it belongs to. Pass X and y.")
        if X is not None:
            X, y = check_features(model, X, y, reset=False)
            model._encode(np.asarray(y))
        source = Source(model, model._engine.clone())
        if X is None:
            return source.projected(max_vectors)
        rows = source.rows(X, np.asarray(y), sample_weight)
        if max_vectors is None and max_error_increase is None:
            max_error_increase = DEFAULT_INCREASE
        largest = max(source.size, 1)  # a model that has learned nothing yet has no vectors
        most = min(MOST_VECTORS if max_vectors is None else max_vectors, largest)
        if max_error_increase is None and not curve:
            return source.refitted(rows, most)
        return source.chosen(rows, most, max_error_increase, curve)

    def _twin(self: Any) -> Any:
        """Return an unfitted estimator with the same settings."""
        twin = clone(self)
        if self._engine.plan.kernel in WITH_GAMMA:
            twin.set_params(gamma=self._engine.plan.gamma)
        return twin


def _check_combination(
    model: Any, X: Any, y: Any, max_error_increase: float | None, curve: bool
) -> None:
    if model.kernel not in NATIVE:
        kind = "kernel='precomputed'" if model.kernel == "precomputed" else "a callable kernel"
        raise ValueError(
            f"compress does not support {kind}, because it requires a built-in kernel on feature "
            f"vectors. Use one of {', '.join(NATIVE)}."
        )
    if (X is None) != (y is None):
        raise ValueError("compress got only one of X and y. Pass both, or neither.")
    if X is None and (max_error_increase is not None or curve):
        what = "curve" if max_error_increase is None else "max_error_increase"
        raise ValueError(f"{what} needs rows to compute errors on. Pass X and y.")


@dataclass
class Rows:
    """Rows to fit a compressed model to.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n, features)
        The rows.
    y : ndarray of shape (n,)
        Their classes.
    weights : ndarray of shape (n,) or None
        Their weights. None if `y` and the targets are the predictions of the model.
    """

    X: Any
    y: NDArray[Any]
    weights: Float | None

    def take(self, places: Ints) -> Rows:
        weights = None if self.weights is None else self.weights[places]
        return Rows(take_rows(self.X, places), self.y[places], weights)


class Source:
    """Model to compress, with its engine, which must not change in the meantime."""

    def __init__(self, model: Any, engine: Engine) -> None:
        self.model, self.engine = model, engine
        self.full = expansion_of(engine)
        self.size = len(self.full.vectors)
        self.candidates = candidates_of(engine, self.full, self._classes_of)

    def _classes_of(self, X: Any) -> Labels:
        """Return the class indices that the model predicts."""
        scores = self.model._shaped(self.model._score(X))
        best = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(best, dtype=np.int32)

    def rows(self, X: Any, y: NDArray[Any], sample_weight: ArrayLike | None) -> Rows:
        """Return validated rows of positive weight, or with the predictions of the model."""
        if sample_weight is None and self._has_weights():
            return Rows(X, self.model._labels(self.engine.decision(X)), None)
        weights = check_weights(sample_weight, X.shape[0])
        rows = Rows(X, y, weights)
        return rows if weights.all() else rows.take(np.flatnonzero(weights))

    def _has_weights(self) -> bool:
        """Return whether rows had weights, or several values of C, when they were learned.

        Models of earlier versions do not record weights, but store the costs of their members. A
        budget limits these costs.
        """
        if self.model._weighs or self.engine.plan.budget:
            return bool(self.model._weighs)
        state = self.engine.state()
        held = (state["rank"] >= 0).any(axis=0)
        usual = self.engine.costs(self.model._penalties())[state["labels"][held]]
        return not np.allclose(state["costs"][held], usual, rtol=SAME, atol=0.0)

    def projected(self, max_vectors: int | None) -> CompressedSVC:
        """Return the compressed model that is nearest in feature space."""
        norms = squared_norms(self.engine) * self.engine.plan.unit
        sizes = sizes_up_to(min(self.size, MOST_VECTORS)) if max_vectors is None else [max_vectors]
        for size in sizes:
            if size >= self.size:
                break
            vectors = self.candidates.choose(size, weighted=True)
            found, within = project(self.engine, self.full, vectors)
            if max_vectors is not None or (norms - within <= NEAR * norms).all():
                return self._made(found)
        return self._made(self.full)

    def refitted(self, rows: Rows, size: int) -> CompressedSVC:
        """Return the compressed model of a given size, fitted to rows."""
        if size >= self.size:
            return self._made(self.full)
        training = self._training(rows)
        vectors = self.candidates.choose(size, weighted=False)
        verbose = int(self.model.verbose)
        made = self._made(refit(self.engine, self.full, vectors, training, verbose))
        if made.calibration is not None and rows.weights is not None:
            signed = self.engine.signs(training.labels) * rows.weights[:, np.newaxis]
            made._foresee(self._held_out(vectors, training), signed)
        return made

    def _training(self, rows: Rows) -> Training:
        labels = self.model._encode(rows.y)
        if rows.weights is None:
            costs = np.full(len(labels), COST_OF_VALUES)
            return Training(rows.X, labels, costs, self.engine.decision(rows.X))
        return Training(
            rows.X, labels, self.engine.costs(rows.weights * self.model._penalties()[labels])
        )

    def _held_out(self, vectors: Vectors, training: Training) -> Float:
        """Return out-of-fold decision values of rows.

        Decision values of rows that the coefficients are fitted to would make probabilities
        overconfident, and those of the original model do not reflect the errors of compression.
        Values are NaN for rows that are not needed.
        """
        n = len(training.labels)
        fold = np.random.default_rng(SEED).permutation(n) % FOLDS
        f = np.full((n, self.engine.plan.problems), np.nan)
        for k in range(min(FOLDS, -(-FOLDS * MOST_KEPT // n))):
            rest, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if len(rest) > 0 and len(held) > 0:
                found = refit(self.engine, self.full, vectors, training.take(rest), 0)
                f[held] = self._made(found)._score(take_rows(training.X, held))
        return f

    def chosen(self, rows: Rows, most: int, increase: float | None, curve: bool) -> CompressedSVC:
        """Return the smallest model within the accepted error on held-out rows."""
        out = held_out(self.model._encode(rows.y))
        rest, check = rows.take(np.flatnonzero(~out)), rows.take(np.flatnonzero(out))
        source = self._without_held_out(rest)

        def error_of(model: Any) -> float:
            return float(np.average(model.predict(check.X) != check.y, weights=check.weights))

        size, tried = climb(
            most,
            error_of(source.model),
            increase,
            lambda size: error_of(source.refitted(rest, size)),
            all_=curve,
        )
        if size < self.size:  # otherwise, the result is the full model
            _warn_if_beyond(size, increase, tried)
        compressed = self.refitted(rows, size)
        compressed._note(size, tried)
        return compressed

    def _without_held_out(self, rest: Rows) -> Source:
        """Return a similar model of the other rows, or this one if its predictions are expected."""
        if rest.weights is None:
            return self
        twin = self.model._twin().set_params(calibration=None)
        twin.fit(rest.X, rest.y, sample_weight=rest.weights)
        return Source(twin, twin._engine)

    def _made(self, found: Expansion) -> CompressedSVC:
        return CompressedSVC._from_expansion(self.model, self.engine, found, self.size)


def _warn_if_beyond(size: int, increase: float | None, tried: Curve) -> None:
    more = float(tried.errors[-1]) - tried.full
    if increase is not None and size == tried.sizes[-1] and more > increase:
        warn(
            f"with {size} vectors, the error on held-out rows exceeds that of the full model by "
            f"{more:.4f}, more than max_error_increase={increase:g}. Increase max_vectors."
        )

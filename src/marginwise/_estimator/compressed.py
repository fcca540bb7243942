"""CompressedSVC: a model with fewer support vectors."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError

from marginwise._algorithm import ENDLESS, Algorithm
from marginwise._arrays import Float
from marginwise._checks import Rule
from marginwise._compression.basis import Expansion
from marginwise._compression.kernel import KernelBlocks
from marginwise._compression.ladder import Curve
from marginwise._engine.engine import COUNTERS, Engine
from marginwise._engine.features import stored_features
from marginwise._engine.foresight import Foresight
from marginwise._estimator.attributes import ClassifierAttributes
from marginwise._estimator.prediction import Predictor
from marginwise._files.state import check_compressed

ALGORITHM = Algorithm(
    name="fixed", settings={}, boxes=frozenset({ENDLESS}), pairs=True, shared=True
)


def _absent(name: str) -> Any:
    """Return a property that raises an error, for an attribute that compressed models lack."""

    def get(self: Any) -> NoReturn:
        raise AttributeError(
            f"CompressedSVC has no attribute {name}, because its vectors are not training rows "
            f"and it is not the solution of an SVM problem. Use {name} of the original model."
        )

    return property(get, doc=f"Not available; use `{name}` of the original model.")


class CompressedSVC(ClassifierAttributes, ClassifierMixin, Predictor):  # type: ignore[misc]
    """Compressed classifier with few support vectors.

    Instances are returned by the `compress` method of the classifiers, such as
    :meth:`OnlineSVC.compress`. A compressed model predicts, and can be saved, loaded and pickled,
    like any other classifier of this package. It cannot be trained and has no parameters, so a
    clone is empty. The prediction time is proportional to the number of vectors.

    Attributes
    ----------
    calibration_ : CalibrationReport
        How the probabilities were estimated, see :class:`marginwise.calibration.CalibrationReport`.
        Only available if `calibration` is set.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    coef_ : ndarray of shape (n_problems, n_features)
        Feature weights. Only available with ``kernel="linear"``.
    dual_coef_ : ndarray of shape (n_problems, n_vectors_)
        Coefficients of the vectors, with one row per binary problem of the original model. All
        binary problems share the vectors.
    error_curve_ : dict or None
        Errors on held-out rows if they determined the number of vectors, otherwise None. The arrays
        "n_vectors" and "error" contain the error for each number of vectors, "full_error" is the
        error of a model that is not compressed, and "chosen" is the selected number of vectors.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features. Only defined if the original model has feature names.
    full_n_vectors_ : int
        Number of support vectors of the original model.
    gamma_ : float
        Value used for `gamma`. Only available with the "rbf", "poly" and "sigmoid" kernels.
    intercept_ : ndarray of shape (n_problems,)
        Constant term of each decision function.
    n_features_in_ : int
        Number of features.
    n_support_ : ndarray of shape (n_classes,), dtype=int32
        Number of vectors of each class. A k-means centre belongs to the class of the majority of
        the support vectors in its cluster.
    n_vectors_ : int
        Number of vectors.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_vectors_, n_features)
        The vectors: support vectors of the original model, or their k-means centres.

    See Also
    --------
    OnlineSVC : Online classifier that can be compressed.
    marginwise.inspect.CompressionDisplay : Plot the error against the number of vectors.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> X, y = make_moons(2000, noise=0.2, random_state=0)
    >>> model = OnlineSVC(C=10, gamma=2.0, random_state=0).fit(X[:1000], y[:1000])
    >>> small = model.compress(X[:1000], y[:1000], max_vectors=20)
    >>> small.n_vectors_
    20
    >>> bool(small.score(X[1000:], y[1000:]) > 0.96)
    True
    """

    _algorithm = ALGORITHM
    _rules: ClassVar[dict[str, Rule]] = {}
    _own_state = frozenset({"calibration"})
    _to_calibrate = (
        "Set calibration='sigmoid' or 'isotonic' in the original classifier, fit it again and "
        "compress it again."
    )

    n_jobs: int | None
    _intercept: Float
    _full_size: int
    _weighted: bool
    _curve: dict[str, Any] | None

    def __init__(self) -> None:
        pass

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        engine = self.__dict__.get("_engine")
        return "rbf" if engine is None else str(engine.plan.kernel)

    def fit(self, X: Any, y: Any = None) -> None:
        """Raise an error, because a compressed model cannot be trained.

        Parameters
        ----------
        X : array-like
            Not used.
        y : array-like, default=None
            Not used.
        """
        raise NotImplementedError(
            "a CompressedSVC cannot be trained. Fit another classifier, for example OnlineSVC, "
            "and call its compress method."
        )

    # -- fitted attributes ---------------------------------------------------------------------

    @property
    def n_vectors_(self) -> int:
        """Number of vectors."""
        return int(self._fitted().native.size)

    @property
    def full_n_vectors_(self) -> int:
        """Number of support vectors of the original model."""
        self._fitted()
        return self._full_size

    @property
    def error_curve_(self) -> dict[str, Any] | None:
        """Errors on held-out rows for each number of vectors, or None."""
        self._fitted()
        return self._curve

    @property
    def intercept_(self) -> Float:
        """Constant term of each decision function."""
        model = self._now()
        offset: Float = super().intercept_
        return offset + model._intercept

    support_ = _absent("support_")
    ids_ = _absent("ids_")
    n_iter_ = _absent("n_iter_")
    stats_ = _absent("stats_")
    dual_objective = _absent("dual_objective")
    duality_gap = _absent("duality_gap")

    # -- prediction and state ------------------------------------------------------------------

    def _fitted(self) -> Engine:
        if "_engine" not in self.__dict__:
            raise NotFittedError(
                "this CompressedSVC is empty. Call the compress method of a fitted classifier to "
                "create one."
            )
        return super()._fitted()

    def _binary_values(self, X: Any) -> Float:
        self._fitted()
        return super()._binary_values(X)

    def _score(self, X: Any) -> Float:
        scores = super()._score(X)
        scores += self._intercept
        return scores

    @classmethod
    def _check_state(cls, state: dict[str, Any]) -> None:
        check_compressed(cls, state)

    # -- construction --------------------------------------------------------------------------

    @classmethod
    def _from_expansion(cls, model: Any, engine: Engine, found: Expansion, size: int) -> Self:
        """Create a compressed model from an expansion."""
        self = cls()
        self.classes_ = model.classes_
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        self.n_jobs = model.n_jobs
        self._intercept = np.ascontiguousarray(found.intercept, dtype=np.float64)
        self._full_size = size
        self._weighted = model._is_weighted
        self._curve = None
        calibrated = model.calibration is not None and model._is_calibrated()
        if calibrated:
            self.calibration = model.calibration
        self._engine = Engine.from_state(_machine(engine, found, calibrated), None, model.n_jobs)
        if calibrated:
            model._foreseen().give(self._engine.native)
        return self

    def _foresee(self, f: Float, signs: Float) -> None:
        """Calibrate on decision values of held-out rows.

        Binary problems with held-out rows of only one class keep the calibration data of the
        original model.
        """
        native = self._engine.native
        Foresight.held_out(f, signs).completed(Foresight.of(native)).give(native)

    @property
    def _is_weighted(self) -> bool:
        return self._weighted

    def _note(self, chosen: int, curve: Curve) -> None:
        self._curve = {
            "n_vectors": curve.sizes,
            "error": curve.errors,
            "full_error": curve.full,
            "chosen": chosen,
        }


def _machine(engine: Engine, found: Expansion, calibrated: bool) -> dict[str, Any]:
    """Return the state of an engine whose members are the vectors of an expansion."""
    plan = replace(engine.plan, algorithm=ALGORITHM.name, settings={}, record=False, budget=0)
    plan = replace(plan, foresees=calibrated)
    size, problems = len(found.vectors), plan.problems
    shape = (problems, size)
    g = np.where(engine.signs(found.vectors.labels).T > 0, 1.0, -1.0)
    if size:
        rows = np.arange(size, dtype=np.int64)
        for part, values in KernelBlocks(engine, found.vectors.X).each(found.vectors.X, rows):
            g[:, part] -= found.weights @ values.T
    return {
        "plan": asdict(plan),
        **stored_features(plan, found.vectors.X),
        "ids": np.arange(size, dtype=np.int64),
        "labels": found.vectors.labels,
        "costs": np.ones(size),
        "alpha": found.weights,
        "g": g,
        "rank": np.tile(np.arange(size, dtype=np.int64), (problems, 1)),
        "box": np.full(shape, ENDLESS, dtype=np.uint8),
        "trail": np.zeros(shape),
        "inherited": np.zeros(shape),
        "notes": np.zeros((problems, 0)),
        "counters": np.zeros(len(COUNTERS), dtype=np.int64),
    }

"""OnlineSVCCV: an OnlineSVC that selects C and gamma by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from marginwise._arrays import Float
from marginwise._checks import Rule, check_fit, either, integer, is_integer, none, one_of
from marginwise._engine.plan import WITH_GAMMA
from marginwise._estimator.base import on_draft
from marginwise._estimator.pairs import votes
from marginwise._tuning.grid import is_list, values_rule
from marginwise._tuning.results import BY_PAIR, check_search, cv_results
from marginwise._tuning.search import OF_SEARCH, Search
from marginwise.online import OnlineSVC


def _splits(cv: Any) -> bool:
    return not isinstance(cv, str | bytes) and (hasattr(cv, "split") or hasattr(cv, "__iter__"))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


class OnlineSVCCV(OnlineSVC):
    """Online support vector classifier that selects C and gamma by cross-validation.

    `fit` searches a grid of values and refits the model on all rows with the best pair. The fitted
    estimator supports all methods of :class:`OnlineSVC`.

    The candidates of a search share computations. All folds and all values of C for one gamma use
    the same kernel matrix, all values of gamma use the same dot products, and each value of C
    starts from the solution for the previous one. The candidates satisfy the optimality conditions
    up to a violation of 0.05. Candidates are fitted separately if they cannot share kernel values:
    with a callable or precomputed kernel, with `selection` other than "random", with `budget`, or
    with more than 100,000 rows.

    Parameters
    ----------
    Cs : int or array-like of float, default=7
        Values of C to try, or their number. A number requests a logarithmic grid around 8 in which
        each value is 4 times the previous one.
    gammas : int or array-like of float, default=5
        Values of gamma to try, or their number. A number requests a logarithmic grid around ``1 /
        (n_features * X.var())`` in which each value is 4 times the previous one. Ignored by kernels
        other than "rbf", "poly" and "sigmoid", for which only C is searched.
    cv : int, splitter, iterable or None, default=5
        Cross-validation strategy: the number of stratified folds, a scikit-learn splitter, or an
        iterable of train and test indices. None means 5 folds. Rows of weight zero are not part of
        any fold. Model files store `cv` only if it is an integer.
    scoring : str, callable or None, default=None
        Score to maximize: the name of a scikit-learn scorer or a callable. None uses the accuracy.
        Sample weights are used if the scorer supports `sample_weight`. Model files do not store
        callables.
    search : {"grid", "halving"}, default="grid"
        Search strategy. "grid" evaluates every pair of C and gamma on all rows. "halving" starts
        with few rows, keeps the best third of the pairs after each round, and triples the number of
        rows; the last round uses all rows.
    kernel : {"linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed"} \
        or callable, default="rbf"
        Kernel function. With "precomputed", `X` is the matrix of kernel values. A callable is
        called with two arrays of rows and returns the matrix of kernel values between them.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant term of the "poly" and "sigmoid" kernels.
    tol : float, default=1e-3
        Tolerance of the optimality conditions. Pairs of examples that violate the conditions by
        less are not optimized. Smaller values give more exact models and take longer.
    epochs : int or "converge", default=1
        Number of passes of `fit` over the rows. After the last pass, `fit` revisits rows that are
        not stored as long as at least a tenth of them violate the optimality conditions, which
        happens with noisy labels. "converge" continues until no row violates the conditions by more
        than `tol`, the stopping criterion of :class:`sklearn.svm.SVC`. Binary problems of up to
        4,096 rows, or 2,560 rows if there are several problems, are always solved to convergence.
    selection : {"random", "gradient", "active", "autoactive"}, default="random"
        Strategy that `fit` uses to select the rows to learn.

        - "random" learns every row, in random order.
        - "gradient" samples `pool_size` unseen rows and learns the most misclassified one.
        - "active" samples `pool_size` unseen rows and learns the one nearest to the boundary.
        - "autoactive" samples rows until five fall inside the margin (at most 100) and learns the
          one nearest to the boundary.

        "active" and "autoactive" do not use the labels to select rows. They give smaller models and
        avoid mislabelled rows far from the boundary. Each pass evaluates every row once. A model
        learns at least 1,000 rows as long as any remain inside its margin.
    pool_size : int or None, default=50
        Number of rows that "gradient" and "active" sample for each selection. None compares all
        remaining rows each time and stops when no row is left inside the margin.
    stop : int, stopping rule or None, default=None
        Number of rows to learn, or a stopping rule such as
        :class:`marginwise.active.SupportVectorPlateau`. If given, `fit` samples `pool_size` rows
        for each row that it learns and returns the others to the pool, so that each selection is
        made among all rows not yet learned, as in [bordes2005]_ and [ertekin2007]_. With None, each
        pass evaluates every row once. Rules that draw rows at random, such as
        :class:`marginwise.active.ErrorAudit`, are not supported. Model files do not store stopping
        rules.
    reprocess : int or "gap", default=1
        Number of REPROCESS steps after each processed row, at most 10^9. "gap" continues until the
        duality gap over the stored examples reaches its target [ertekin2011]_. More steps make each
        row more expensive and intermediate models more exact. `fit` looks ahead only if the value
        is 1.
    reprocess_when : {"processed", "each"}, default="processed"
        When to take REPROCESS steps: after rows that changed the model ("processed") or after every
        row ("each").
    finish_at_end : bool, default=True
        Whether `fit` calls `finish` after each epoch, which solves the problem for the stored
        examples.
    finish_every : int, default=None
        Number of rows between additional calls of `finish`. None does not call `finish` between
        rows.
    delta_max : float, default=None
        If given, continue REPROCESS steps after each row until no pair of examples violates the
        optimality conditions by more than this value.
    replay : int, default=0
        Size of a reservoir for streams that are not in random order. 0 disables it. The reservoir
        is a uniform sample of all rows seen. After every 64 rows, `partial_fit` learns 64 rows of
        the reservoir again, and `finish` learns all of them again. The C of a sampled row is
        increased to represent the rows that were not sampled. The model and its files contain the
        rows of the reservoir.
    budget : int or None, default=None
        Maximum number of stored examples, from 2 to 16,384. When it is exceeded, the least
        important examples are removed and their contribution is projected onto the remaining ones
        [wang2012]_. Memory and time per row are then bounded regardless of the length of the
        stream. Only rows that violate the margin by more than 0.35 are learned, and `fit` does not
        look ahead. None sets no limit.
    multiclass : {"auto", "ovr", "ovo"}, default="auto"
        Decomposition of problems with more than two classes into binary problems.

        - "ovo" (one-vs-one) separates each pair of classes, as :class:`sklearn.svm.SVC` does.
        - "ovr" (one-vs-rest) separates each class from all others.
        - "auto" uses "ovo" for up to 50 classes, and in `fit` for more if the number of pairs of
          classes times that of rows is at most 50 million, as for 100 classes and 10,000 rows. With
          a `budget`, or if `reprocess`, `reprocess_when`, `finish_at_end`, `finish_every` or
          `delta_max` differ from their defaults, it uses "ovo" for up to 32 classes. Otherwise, it
          uses "ovr", also if `selection` is not "random", if `replay` is positive, or if
          `partial_fit` is called without `classes`.
    calibration : {"sigmoid", "isotonic"} or None, default=None
        Calibration curve that `predict_proba` uses to map decision values to probabilities. It is
        fitted to the out-of-fold decision values of the selected pair and updated by `partial_fit`.
        With None, `predict_proba` is not available.
    cache_size : float or "auto", default="auto"
        Size of the kernel cache, in megabytes. It affects the training time but not the model.
        "auto" allows a quarter of the memory available when the first model is fitted, at most 8
        GB. Memory is allocated only when it is needed.
    class_weight : dict or "balanced", default=None
        Weights that multiply C for each class. Classes missing from the dict have weight 1.
        "balanced" uses ``n_samples / (n_classes * np.bincount(y))`` and requires the first training
        call to be `fit`, which sees all labels. With None, all classes have weight 1.
    shuffle : bool, default=True
        Whether `fit` visits the rows in random order. Use False only if the rows already are in
        random order.
    n_jobs : int, default=None
        Number of threads. None means 1 unless in a ``joblib.parallel_config`` context. -1 means
        using all processors available to the process. The model does not depend on the number of
        threads.
    random_state : int, RandomState instance or None, default=None
        Seed for the order in which rows are visited. Small problems, which are solved to
        convergence, do not depend on it. ``search="halving"`` also uses it to sample rows.
    verbose : int, default=0
        If positive, show a progress bar in terminals and notebooks. Elsewhere, log a line every few
        seconds to the logger ``marginwise`` at level INFO, or write it to stderr if logging is not
        configured.

    Attributes
    ----------
    best_index_ : int
        Index of the selected pair in the arrays of `cv_results_`.
    best_score_ : float
        Mean cross-validated score of the selected pair.
    C_ : float
        Selected value of C.
    calibration_ : CalibrationReport
        How the probabilities were estimated, see :class:`marginwise.calibration.CalibrationReport`.
        Only available if `calibration` is set.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    coef_ : ndarray of shape (n_problems, n_features)
        Feature weights. Only available with ``kernel="linear"``.
    cv_results_ : dict
        Scores of each pair on each fold, in the format of
        :class:`~sklearn.model_selection.GridSearchCV`. With ``search="halving"``, also "iter" and
        "n_resources", as in :class:`~sklearn.model_selection.HalvingGridSearchCV`.
    decision_oof_ : ndarray of shape (n_samples, n_classes)
        Out-of-fold decision values for the selected pair: each row is scored by a model that was
        not trained on it. The shape is (n_samples,) for two classes. NaN for rows that were never
        held out or have weight zero.
    dual_coef_ : ndarray of shape (n_problems, n_SV)
        Signed coefficients of the support vectors. There is one binary problem for two classes. For
        more classes, there is one per class (one-vs-rest) or one per pair of classes (one-vs-one),
        in the order (0, 1), (0, 2), ...; the second class of a pair is the positive one.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit. Only defined if `X` has feature names that are all
        strings.
    gamma_ : float
        Selected value of gamma. Only available with the "rbf", "poly" and "sigmoid" kernels.
    ids_ : ndarray of shape (n_stored,)
        Ids of all rows stored in the model, including those that are not support vectors.
    intercept_ : ndarray of shape (n_problems,)
        Constant term of each decision function.
    n_features_in_ : int
        Number of features seen during fit.
    n_iter_ : int
        Number of optimization steps so far, over all binary problems.
    n_support_ : ndarray of shape (n_classes,), dtype=int32
        Number of support vectors of each class.
    stats_ : dict
        Diagnostics: counters of the work done so far, seconds spent in each phase, and the
        instruction set and precision in use.
    support_ : ndarray of shape (n_SV,)
        Ids of the support vectors. After `fit`, ids are row indices of `X`.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_SV, n_features)
        Support vectors: an array of objects if the rows are objects. Empty with
        ``kernel="precomputed"``.

    See Also
    --------
    OnlineSVC : Online classifier for given values of C and gamma.
    marginwise.inspect.TuningDisplay : Heat map of the scores.
    sklearn.model_selection.GridSearchCV : Search over the parameters of any estimator.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVCCV
    >>> X, y = make_moons(500, noise=0.2, random_state=0)
    >>> model = OnlineSVCCV(Cs=5, gammas=3, random_state=0).fit(X[:400], y[:400])
    >>> model.C_, round(model.gamma_, 3)
    (2.0, 3.76)
    >>> model.score(X[400:], y[400:])
    0.98
    """

    _rules: ClassVar[dict[str, Rule]] = {
        **{name: rule for name, rule in OnlineSVC._rules.items() if name not in ("C", "gamma")},
        "Cs": values_rule(),
        "gammas": values_rule(),
        "cv": either(none(), integer(2), (_splits, "a splitter or an iterable of splits")),
        "scoring": either(none(), (_is_text, "the name of a score"), (callable, "a function")),
        "search": one_of("grid", "halving"),
    }
    _own_state = frozenset({*OnlineSVC._own_state, "_search"})
    _starts_with_fit = True

    def __init__(
        self,
        *,
        Cs: int | ArrayLike = 7,
        gammas: int | ArrayLike = 5,
        cv: Any = 5,
        scoring: str | Callable[..., float] | None = None,
        search: Literal["grid", "halving"] = "grid",
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-3,
        epochs: int | Literal["converge"] = 1,
        selection: Literal["random", "gradient", "active", "autoactive"] = "random",
        pool_size: int | None = 50,
        stop: Any = None,
        reprocess: int | Literal["gap"] = 1,
        reprocess_when: Literal["processed", "each"] = "processed",
        finish_at_end: bool = True,
        finish_every: int | None = None,
        delta_max: float | None = None,
        replay: int = 0,
        budget: int | None = None,
        multiclass: Literal["auto", "ovr", "ovo"] = "auto",
        calibration: Literal["sigmoid", "isotonic"] | None = None,
        cache_size: float | Literal["auto"] = "auto",
        class_weight: Mapping[Any, float] | Literal["balanced"] | None = None,
        shuffle: bool = True,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.search = search
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.epochs = epochs
        self.selection = selection
        self.pool_size = pool_size
        self.stop = stop
        self.reprocess = reprocess
        self.reprocess_when = reprocess_when
        self.finish_at_end = finish_at_end
        self.finish_every = finish_every
        self.delta_max = delta_max
        self.replay = replay
        self.budget = budget
        self.multiclass = multiclass
        self.calibration = calibration
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.shuffle = shuffle
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def C(self) -> float:  # type: ignore[override]  # noqa: N802
        """Selected value of C, under the parameter name of `OnlineSVC`."""
        return self.C_

    @property
    def gamma(self) -> float:  # type: ignore[override]
        """Selected value of gamma, under the parameter name of `OnlineSVC`."""
        return float(self._found("gamma")[self.best_index_])

    # -- results -------------------------------------------------------------------------------

    def _found(self, name: str) -> Any:
        if "_search" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} has not chosen C and gamma yet. Call 'fit' first."
            )
        return self._search[name]

    @property
    def C_(self) -> float:  # noqa: N802
        """Selected value of C."""
        return float(self._found("C")[self.best_index_])

    @property
    def best_index_(self) -> int:
        """Index of the selected pair in the arrays of `cv_results_`."""
        return int(self._found("best"))

    @property
    def best_score_(self) -> float:
        """Mean cross-validated score of the selected pair."""
        return float(self._found("scores")[self.best_index_].mean())

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores of each pair on each fold, in the format of `GridSearchCV`."""
        with_gamma = self._fitted().plan.kernel in WITH_GAMMA
        names = BY_PAIR if with_gamma else ("C",)
        return cv_results(self._search, names, halving=self.search == "halving")

    @property
    def decision_oof_(self) -> Float:
        """Out-of-fold decision values for the selected pair, in the order of the rows."""
        oof: Float = self._found("oof")
        if self._engine.plan.pairs:
            scores = votes(oof)
            scores[np.isnan(oof).any(axis=1)] = np.nan
            return scores
        return oof[:, 0].copy() if oof.shape[1] == 1 else oof.copy()

    # -- the search ----------------------------------------------------------------------------

    @on_draft
    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Self:
        self._check_groups(groups, 0)
        rows, targets, weights, kept, total = check_fit(self, X, y, sample_weight)
        if self.kernel == "precomputed":
            rows = rows[:, kept]
        places = np.full(total, -1, dtype=np.int64)
        places[kept] = np.arange(len(kept))
        found = Search(self, OnlineSVC, rows, targets, weights, places).run()
        oof = np.full((total, found["oof"].shape[1]), np.nan)
        oof[kept] = found["oof"]
        self._search = {**found, "oof": oof}
        fit_found: Any = OnlineSVC._fit
        fit_found.__wrapped__(self, X, y, sample_weight)
        return self

    def _twin(self) -> OnlineSVC:
        given = self.get_params(deep=False)
        plain = {name: value for name, value in given.items() if name not in OF_SEARCH}
        return OnlineSVC(**plain, C=self.C_, gamma=self.gamma)

    def _stored_state(self) -> dict[str, Any]:
        state = super()._stored_state()
        if not (state["cv"] is None or is_integer(state["cv"])):
            state["cv"] = None
        if callable(state["scoring"]):
            state["scoring"] = None
        for name in ("Cs", "gammas"):
            if is_list(state[name]):  # files contain lists, but any sequence is allowed
                state[name] = np.asarray(state[name], dtype=np.float64).tolist()
        return state

    @classmethod
    def _check_own_state(cls, state: Mapping[str, Any], problems: int) -> None:
        super()._check_own_state(state, problems)
        if "_search" not in state:
            raise ValueError("attributes: _search is missing")
        check_search(state["_search"])

"""`OnlineSVCCV`: an `OnlineSVC` that chooses C and gamma by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import Rule, check_fit, either, integer, is_integer, none, one_of
from marginwise._engine.foresight import Foresight
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
    """`OnlineSVC` that chooses C and gamma by cross-validation.

    `fit` searches a grid of values, refits the best pair on all rows, and is then a fitted
    `OnlineSVC` with all its methods. Models of a search share their kernel values: all folds and
    all values of C of one gamma use one kernel matrix, and all values of gamma use its dot
    products. Each value of C starts from the solution of the one before. The models are those of a
    loop over `OnlineSVC`, up to a violation of 0.05 of the optimality conditions. Where models
    cannot share kernel values, because of a callable or precomputed kernel, a selection of rows, a
    budget or more than 100,000 rows, the search fits them one by one.

    Parameters
    ----------
    Cs : int or array-like of float, default=7
        Values of the penalty C to try: a number of values on a logarithmic grid around 8, each 4
        times the one before, or the values themselves.
    gammas : int or array-like of float, default=5
        Values of gamma to try: a number of values around ``1 / (n_features * X.var())``, each 4
        times the one before, or the values themselves. Kernels other than "rbf", "poly" and
        "sigmoid" do not use gamma, and the search is then over C alone.
    cv : int, splitter, iterable or None, default=5
        How to split the rows: the number of stratified folds, a scikit-learn splitter, or pairs of
        train and test indices. None means 5. Rows of weight zero are left out of all parts. Only a
        number is part of model files.
    scoring : str, callable or None, default=None
        Score to maximize, as in scikit-learn. None is the accuracy. Rows count by their weights if
        the score supports `sample_weight`. A function is not part of model files.
    search : {"grid", "halving"}, default="grid"
        "grid" tries every pair of C and gamma on all rows. "halving" starts with few rows; after
        each round, the best third of the pairs continues with three times as many rows, and the
        last round has all rows.
    kernel : {"linear", "rbf", "poly", "sigmoid", "cosine", "tanimoto", "precomputed"} \
        or callable, default="rbf"
        Kernel function. With "precomputed", X is the matrix of kernel values. A callable receives
        two blocks of rows and returns the matrix of kernel values between them.
    degree : int, default=3
        Degree of the "poly" kernel.
    coef0 : float, default=0.0
        Constant term of the "poly" and "sigmoid" kernels.
    tol : float, default=1e-3
        Tolerance of the optimality conditions: pairs of examples that violate them by less are not
        optimized. Smaller values are more exact and slower.
    epochs : int or "converge", default=1
        Number of passes of `fit` over the rows. After the last one, rows that are not stored are
        examined again as long as a tenth of them violate the optimality conditions, which is the
        case with noisy labels. "converge" continues until no row violates the conditions by more
        than `tol`: the solution of `SVC`, by the same criterion. Problems of up to 4,096 rows, or
        2,560 each where there are several, are solved exactly in any case.
    selection : {"random", "gradient", "active", "autoactive"}, default="random"
        Strategy by which `fit` chooses the rows to learn.

        - "random" learns every row, in random order.
        - "gradient" samples `pool_size` unseen rows and learns the most misclassified one.
        - "active" samples `pool_size` unseen rows and learns the one nearest to the boundary.
        - "autoactive" samples rows until five fall inside the margin (at most 100) and learns the
          one nearest to the boundary.

        "active" and "autoactive" choose without looking at labels. They give smaller models and
        avoid mislabelled rows far from the boundary. Each pass examines every row once, and a model
        learns at least 1,000 rows as long as any remain inside its margin.
    pool_size : int or None, default=50
        Number of rows that "gradient" and "active" sample for each choice. None searches all rows
        each time, until no row is left inside the margin.
    stop : int, stopping rule or None, default=None
        If given, `fit` samples `pool_size` rows for each one that it learns and puts the others
        back, until it has learned this many rows or a rule of :mod:`marginwise.active`, such as
        `SupportVectorPlateau`, is met. Each choice is then made among all rows that were not
        learned, as in [bordes2005]_ and [ertekin2007]_. None makes passes that examine every row
        once. A rule is not part of model files.
    reprocess : int or "gap", default=1
        Number of REPROCESS steps after a row has been processed, at most 10^9. "gap" takes as many
        steps as bring the duality gap over the stored examples within its target [ertekin2011]_.
        More steps make each row more expensive and the intermediate models more exact. With other
        values than 1, `fit` does not look ahead.
    reprocess_when : {"processed", "each"}, default="processed"
        Whether to take these steps only after rows that changed the model ("processed") or after
        every row ("each").
    finish_at_end : bool, default=True
        Whether `fit` calls `finish` after each epoch, which solves the problem for the stored
        examples.
    finish_every : int, default=None
        If given, also call `finish` each time this many rows have been learned.
    delta_max : float, default=None
        If given, continue the steps after a row until no pair violates the optimality conditions by
        more than this.
    replay : int, default=0
        Number of rows in a reservoir, for streams that are not in random order. The reservoir is a
        uniform sample of all rows seen; after every 64 rows of `partial_fit`, 64 of its rows are
        learned again, and `finish` learns all of them again. A row of the reservoir stands for
        those that were not kept, and its C is larger accordingly. Models with a reservoir, and
        their files, contain these rows.
    budget : int or None, default=None
        If given, the model never stores more than this many examples, at most 16,384: where it
        would, those that matter least leave, and what they contributed is projected onto the
        others [wang2012]_. Rows are then learned only if they violate the margin by more than 0.35,
        and `fit` does not look ahead. Memory and time per row stay bounded, however long a stream
        is. None stores as many examples as are needed.
    multiclass : {"auto", "ovr", "ovo"}, default="auto"
        Binary problems that more than two classes are divided into. All of them learn from one
        stream and share their kernel values.

        - "ovo" separates each class from each other class, as `SVC` does.
        - "ovr" separates each class from all others.
        - "auto" is "ovo" for up to 32 classes, beyond which pairs become too many, and "ovr"
          otherwise. It is also "ovr" where `selection` is not "random", with `replay`, and where
          `partial_fit` is to find the classes by itself.
    calibration : {"sigmoid", "isotonic"} or None, default=None
        Form of the curve by which `predict_proba` turns decision values into probabilities. The
        curve is fitted to the out-of-fold decision values of the chosen pair, and then follows the
        rows that `partial_fit` learns. None gives no probabilities.
    cache_size : float or "auto", default="auto"
        Memory for kernel rows, in megabytes. The model does not depend on it; too little makes
        fitting slower. "auto" allows a quarter of the memory that is available when the first
        model is fitted, at most 8 GB. Memory is taken only as rows are needed.
    class_weight : dict or "balanced", default=None
        Factors of C for each class; classes missing from the dict have weight 1. "balanced" uses
        ``n_samples / (n_classes * np.bincount(y))``, and the model must then be started with `fit`,
        which sees all labels. None gives every class the weight 1.
    shuffle : bool, default=True
        Whether `fit` visits the rows in random order. Set to False only if the rows already are in
        random order.
    n_jobs : int, default=None
        Number of threads. None means 1, unless set by ``joblib.parallel_config``; -1 uses every
        processor available to the process. The model does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed for the order in which rows are visited. Small problems, which are solved as a whole,
        do not depend on it. "halving" also draws rows with it.
    verbose : int, default=0
        If positive, show a progress bar on terminals and in notebooks. Elsewhere, log a line every
        few seconds (logger ``marginwise``, level INFO), or write it to stderr if logging is not
        configured.

    Attributes
    ----------
    best_index_ : int
        Row of `cv_results_` with the chosen pair.
    best_score_ : float
        Mean score of the chosen pair over the folds.
    C_ : float
        Value chosen for C.
    classes_ : ndarray of shape (n_classes,)
        Class labels, sorted.
    coef_ : ndarray of shape (n_problems, n_features)
        Feature weights. Only available with ``kernel="linear"``.
    cv_results_ : dict
        What each pair reached on each fold, in the form of
        :class:`~sklearn.model_selection.GridSearchCV`; with ``search="halving"`` also `iter` and
        `n_resources`, as in :class:`~sklearn.model_selection.HalvingGridSearchCV`.
    decision_oof_ : ndarray of shape (n_samples, n_classes)
        Out-of-fold decision values for the chosen pair, in the order of the rows: each row is
        scored by a model that did not see it. Of shape (n_samples,) with two classes. NaN for rows
        that were never held out or have weight zero.
    dual_coef_ : ndarray of shape (n_problems, n_SV)
        Signed coefficients of the support vectors. There is one binary problem for two classes,
        otherwise one per class or, with ``multiclass="ovo"``, one per pair of classes, in the order
        (0, 1), (0, 2), ...; the second class of a pair is the positive one.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during fit. Only defined if `X` has feature names that are all
        strings.
    gamma_ : float
        Value chosen for gamma. Only available with the "rbf", "poly" and "sigmoid" kernels.
    ids_ : ndarray of shape (n_stored,)
        Ids of all examples stored in the model, support vectors or not.
    intercept_ : ndarray of shape (n_problems,)
        Constant term of each decision function.
    n_features_in_ : int
        Number of features seen during fit.
    n_iter_ : int
        Number of optimization steps so far, over all binary problems.
    n_support_ : ndarray of shape (n_classes,), dtype=int32
        Number of support vectors of each class.
    stats_ : dict
        Counters of the work done so far, seconds by phase, and how values are computed.
    support_ : ndarray of shape (n_SV,)
        Ids of the support vectors. After `fit`, ids are row numbers.
    support_vectors_ : {ndarray, CSR matrix} of shape (n_SV, n_features)
        Support vectors. If rows are objects, this is an array of objects; with
        ``kernel="precomputed"`` it is empty.

    See Also
    --------
    OnlineSVC : The same for given values of C and gamma.
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
        """The penalty that was chosen, under its name in `OnlineSVC`."""
        return self.C_

    @property
    def gamma(self) -> float:  # type: ignore[override]
        """The gamma that was chosen, under its name in `OnlineSVC`."""
        return float(self._found("gamma")[self.best_index_])

    # -- what was found ------------------------------------------------------------------------

    def _found(self, name: str) -> Any:
        if "_search" not in self.__dict__:
            raise NotFittedError(
                f"This {type(self).__name__} has not chosen C and gamma yet. Call 'fit' first."
            )
        return self._search[name]

    @property
    def C_(self) -> float:  # noqa: N802
        """Value chosen for C."""
        return float(self._found("C")[self.best_index_])

    @property
    def best_index_(self) -> int:
        """Row of `cv_results_` with the chosen pair."""
        return int(self._found("best"))

    @property
    def best_score_(self) -> float:
        """Mean score of the chosen pair over the folds."""
        return float(self._found("scores")[self.best_index_].mean())

    @property
    def cv_results_(self) -> dict[str, Any]:
        """What each pair reached on each fold, in the form of `GridSearchCV`."""
        with_gamma = self._fitted().plan.kernel in WITH_GAMMA
        names = BY_PAIR if with_gamma else ("C",)
        return cv_results(self._search, names, halving=self.search == "halving")

    @property
    def decision_oof_(self) -> Float:
        """Out-of-fold decision values for the chosen pair, in the order of the rows."""
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

    def _calibrates_in_folds(self, n: int) -> bool:
        return True

    def _foresee_in_folds(self, X: Any, labels: Labels, weights: Float, ids: Ints) -> None:
        """Note the out-of-fold decision values of the chosen pair."""
        signed = self._engine.signs(labels) * weights[:, np.newaxis]
        Foresight.held_out(self._found("oof")[ids], signed).give(self._engine.native)

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
            if is_list(state[name]):  # any sequence: files hold lists
                state[name] = np.asarray(state[name], dtype=np.float64).tolist()
        return state

    @classmethod
    def _check_own_state(cls, state: Mapping[str, Any], problems: int) -> None:
        super()._check_own_state(state, problems)
        if "_search" not in state:
            raise ValueError("attributes: _search is missing")
        check_search(state["_search"])

"""The search for C and gamma: all pairs, or successive halving."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight

from marginwise._arrays import Float, Ints, Labels
from marginwise._checks import take_rows
from marginwise._engine.engine import HARD_COST
from marginwise._engine.foresight import Foresight
from marginwise._engine.plan import NATIVE, pairs_classes, signs
from marginwise._estimator.classifier import number_classes
from marginwise._estimator.foreseeing import fold_numbers
from marginwise._estimator.pairs import votes
from marginwise._tuning.folds import Fold, make_folds, splits_any_rows
from marginwise._tuning.grid import CENTRAL_C, gammas_for, values_around
from marginwise._tuning.plain import PlainModels
from marginwise._tuning.results import joined
from marginwise._tuning.rounds import (
    LEAST_ROWS,
    HeldOut,
    Models,
    Round,
    pairs_in_all,
    predicted,
    rounds_of,
    run_round,
    some_rows,
    survivors,
)
from marginwise._tuning.shared import TOL, SharedModels
from marginwise._warn import warn, warn_unconverged
from marginwise.calibration import Calibrator
from marginwise.progress import Progress

MOST_SHARED = 100_000  # rows of a problem whose models share a kernel matrix
OF_SEARCH = ("Cs", "gammas", "cv", "scoring", "search")


class Search:
    """A search for the C and gamma of an estimator.

    Parameters
    ----------
    model : OnlineSVCCV
        The estimator.
    kind : type
        Class of the models, which has C and gamma as parameters.
    X, y, weights : array-like
        Validated rows, their labels and their weights, all of which are positive. A precomputed
        kernel has one column for each of these rows.
    places : ndarray of int
        Position of each row of `fit` among these rows; -1 for rows with weight 0.
    """

    def __init__(
        self, model: Any, kind: type, X: Any, y: Any, weights: Float, places: Ints
    ) -> None:
        self.model, self.kind, self.X, self.y, self.weights = model, kind, X, y, weights
        self.places = places
        self.classes, self.labels = number_classes(y)
        self.pairs = len(self.classes) > 2 and pairs_classes(model, len(self.classes), len(y))
        Cs = values_around(model.Cs, CENTRAL_C)
        gammas = gammas_for(model.gammas, model.kernel, X, weights)
        self.candidates = [(C, gamma) for C in Cs.tolist() for gamma in gammas.tolist()]
        self.scorer = self._checked_scorer()
        if model.search == "halving" and not splits_any_rows(model.cv):
            raise ValueError(
                "search='halving' splits a part of the rows in each round, but cv has certain "
                "splits of all rows. Pass a number of folds or a splitter, or use search='grid'."
            )

    def run(self) -> dict[str, Any]:
        """Run the search; return its results as named arrays."""
        n, pairs, rounds = len(self.labels), self.candidates, []
        rng = check_random_state(self.model.random_state)
        sizes, folds = [n], self._folds(np.arange(n))
        of_class = 2 * len(folds)
        if self.model.search == "halving":
            sizes = rounds_of(len(pairs), n, max(LEAST_ROWS, of_class * len(self.classes)))
        fits = pairs_in_all(len(pairs), len(sizes)) * len(folds)
        with Progress(fits, int(self.model.verbose), unit="fit") as progress:
            for size in sizes:
                rows = some_rows(self.labels, size, of_class, rng)
                rounds.append(self._round(rows, folds, pairs, progress))
                self._check_scores(rounds[-1].scores)
                pairs = survivors(rounds[-1])
        self._warn_if_far(max(result.violation for result in rounds))
        return joined(rounds)

    def _check_scores(self, scores: Float) -> None:
        """Raise ValueError if no pair has a score on all folds; warn if some pairs do not."""
        lacking = np.isnan(scores).any(axis=1)
        name, reason = f"scoring={self.model.scoring!r}", "for a fold without one of the classes"
        if lacking.all():
            raise ValueError(
                f"{name} is NaN for every pair of C and gamma on some fold, as scores that are "
                f"not defined {reason}. Choose another score, or folds with rows of all classes."
            )
        if lacking.any():
            warn(
                f"{name} is NaN for {lacking.sum()} of {len(scores)} pairs of C and gamma on some "
                f"fold, as scores that are not defined {reason}. These pairs are not chosen."
            )

    def _warn_if_far(self, violation: float) -> None:
        if violation > self._tol:
            warn_unconverged(
                f"{type(self.model).__name__} stopped models of the search at a violation of "
                f"{violation:.3g}, above {self._tol:g}: the limit of steps was reached, and their "
                "scores are not exact. Scale the features, or leave out the largest values of C."
            )

    @property
    def _tol(self) -> float:
        return max(TOL, float(self.model.tol))

    def _folds(self, rows: Ints) -> list[Fold]:
        cv, some, y = self.model.cv, self.X[rows], self.y[rows]
        places = np.arange(len(rows)) if splits_any_rows(cv) else self.places
        return make_folds(cv, some, y, self.labels[rows], self.classes, places)

    def _round(
        self, rows: Ints, folds: list[Fold], pairs: list[tuple[float, float]], progress: Progress
    ) -> Round:
        if len(rows) < len(self.labels):
            folds = self._folds(rows)
        X, y, weights = take_rows(self.X, rows), self.y[rows], self.weights[rows]
        weighs = (weights != 1).any() and _accepts_weights(self.scorer)

        def score(decision: Float, fold: Fold) -> float:
            scores, test = self._shaped(decision), fold.test
            if self.scorer is None:
                hits = predicted(self.classes, scores) == y[test]
                return float(np.average(hits, weights=weights[test]))
            given = {"sample_weight": weights[test]} if weighs else {}
            held_out = HeldOut(
                self.classes, scores, lambda: self._probabilities(decision, rows[test])
            )
            return float(self.scorer(held_out, take_rows(X, test), y[test], **given))

        models = self._models(X, rows, folds, max(gamma for _, gamma in pairs))
        return run_round(models, pairs, len(rows), score, progress.count)

    def _shaped(self, decision: Float) -> Float:
        """Return values of binary problems in the shape of `decision_function`."""
        if self.pairs:
            return votes(decision)
        return decision[:, 0] if decision.shape[1] == 1 else decision

    # -- models --------------------------------------------------------------------------------

    def _models(self, X: Any, rows: Ints, folds: list[Fold], largest: float) -> Models:
        labels, weights = self.labels[rows], self.weights[rows]
        if not self._shares_values(labels):
            square = self.model.kernel == "precomputed"
            X = X[:, rows] if square else X
            return PlainModels(self._make, X, self.y[rows], weights, folds, square)
        template = self._make(1.0, largest)
        template.classes_ = self.classes
        engine = template._make_engine(X, weights, streaming=False)
        penalties = np.zeros((len(folds), len(rows)))
        for k, fold in enumerate(folds):
            penalties[k, fold.train] = self._penalties(labels, weights, fold.train)
        return SharedModels(engine, X, labels, penalties, folds, self._tol)

    def _make(self, C: float, gamma: float) -> Any:
        """Return an unfitted estimator for a pair."""
        given = self.model.get_params(deep=False)
        plain = {name: value for name, value in given.items() if name not in OF_SEARCH}
        plain["multiclass"] = "ovo" if self.pairs else "ovr"  # for a part of the rows as for all
        return self.kind(**{**plain, "calibration": None, "verbose": 0}, C=C, gamma=gamma)

    def _shares_values(self, labels: Labels) -> bool:
        """Return whether models are solutions that do not depend on the order of rows."""
        model = self.model
        counts = np.sort(np.bincount(labels))
        largest = int(counts[-2:].sum()) if self.pairs else len(labels)
        solved = model.selection == "random" and model.finish_at_end
        bounded = model.stop is not None or model.budget is not None
        native = isinstance(model.kernel, str) and model.kernel in NATIVE
        return native and solved and not bounded and largest <= MOST_SHARED

    def _penalties(self, labels: Labels, weights: Float, train: Ints) -> Float:
        """Return the factors of C of the rows that a model is fitted on."""
        balance = compute_class_weight(
            self.model.class_weight, classes=self.classes, y=self.classes[labels[train]]
        )
        factors: Float = np.minimum(balance[labels[train]] * weights[train], HARD_COST)
        return factors

    # -- scores --------------------------------------------------------------------------------

    def _checked_scorer(self) -> Callable[..., float] | None:
        scoring = self.model.scoring
        if scoring is None:
            return None
        scorer: Any = check_scoring(self.model, scoring=scoring)
        method = getattr(scorer, "_response_method", "")
        if method == "predict_proba" and self.model.calibration is None:
            raise ValueError(
                f"scoring={scoring!r} needs probabilities, but calibration is None. Set "
                "calibration='sigmoid' or 'isotonic', or choose a score of predictions or decision "
                "values, such as 'accuracy' or 'roc_auc'."
            )
        return scorer  # type: ignore[no-any-return]

    def _probabilities(self, decision: Float, rows: Ints) -> Float:
        """Return probabilities of classes for held-out rows; each half calibrates the other."""
        labels, problems = self.labels[rows], decision.shape[1]
        signed = signs(labels, problems, self.pairs) * self.weights[rows, np.newaxis]
        half, out = fold_numbers(labels, 2), np.empty((len(labels), len(self.classes)))
        for k in (0, 1):
            columns = Foresight.held_out(decision[half != k], signed[half != k]).columns
            calibrator = Calibrator.fit(
                str(self.model.calibration),
                columns,
                pairs=self.pairs,
                shifted=self.model.class_weight is not None,
            )
            out[half == k] = calibrator.probabilities(decision[half == k])
        return out


def _accepts_weights(scorer: Callable[..., float] | None) -> bool:
    """Return whether a scorer accepts sample weights."""
    function = getattr(scorer, "_score_func", scorer)  # attribute of scikit-learn's scorers
    return function is not None and "sample_weight" in signature(function).parameters

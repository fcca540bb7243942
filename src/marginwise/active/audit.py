"""Default stopping rule: audits of the model on randomly drawn rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from scipy.stats import beta

from marginwise.active.answers import AUDIT
from marginwise.active.verdict import Changed, Progressing, StoppingRule, require

# A model is accepted if it makes less than this fraction of the errors of a constant prediction.
WORTH = 2 / 3
MOST_AUDITS = 3  # from this audit on, a model is accepted even otherwise
LEAST = 64  # minimum number of labels before the first audit
# From MANY labels on, the limit for the first audit is at least LARGE_CHANGE.
MANY, LARGE_CHANGE = 256, 0.05
# Fractions of the error and of the rare predictions below which changes are considered small.
OF_ERROR, OF_RARE = 1 / 3, 1 / 5


class Audit(NamedTuple):
    """Result of an audit.

    Parameters
    ----------
    number : int
        Number of the audit, starting with 1.
    end : int
        Number of labels given when the audit ended.
    rows, errors : int
        Number of rows drawn, and number of rows that the model misclassified.
    constant : int
        Number of rows that a constant prediction would have misclassified.
    bound : float
        Upper confidence bound on the error.
    """

    number: int
    end: int
    rows: int
    errors: int
    constant: int
    bound: float


@dataclass(frozen=True)
class ErrorAudit(StoppingRule):
    """Stop when further labels change little, and bound the error.

    When the second half of the labels has changed few predictions, the next questions form an
    audit: rows are drawn at random from the unseen rows, and each row is predicted before its label
    is learned. The limit for starting an audit is the fraction `change` of the predictions. The
    limit is lower for rare classes: at most a fifth of the fraction of predictions other than the
    most common one. It is higher after an earlier audit: at least a third of the error found there,
    because predictions keep changing without improving if classes overlap.

    The rule stops after an audit if the error is below the target, or if predictions still change
    little and the model is clearly better than a constant prediction. Otherwise, for example
    because the model has seen too few rows of a rare class, learning continues and another audit
    follows. From the third audit on, the comparison with a constant prediction no longer prevents a
    stop, but the reason reports it.

    The error bound is the exact binomial confidence limit of one audit. The size of an audit is
    fixed in advance, and the k-th audit uses the error probability ``(1 - confidence) / (k (k +
    1))``, so that all bounds hold simultaneously with the stated confidence for any number of
    audits. The bound applies to the average model during the audit and to rows drawn from the same
    distribution as the pool, excluding skipped rows.

    Parameters
    ----------
    target : float, default=None
        Target error. If given, an audit also takes place each time the number of labels has
        doubled. None stops when further labels change little.
    change : float, default=0.02
        Maximum fraction of predictions that the second half of the labels may have changed. It
        bounds the improvement of the error due to these labels.
    confidence : float, default=0.95
        Probability that all reported error bounds hold.
    rows : int, default=59
        Number of rows per audit.

    See Also
    --------
    MarginExhausted : Stop when no unseen row lies inside the margin.
    MaxLabels : Stop after a number of labels.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import ActiveLearner, OnlineSVC
    >>> from marginwise.active import ErrorAudit
    >>> X, y = make_moons(3000, noise=0.1, random_state=0)
    >>> learner = ActiveLearner(OnlineSVC(C=10, gamma=1.0), X, stop=ErrorAudit(), random_state=0)
    >>> learner.run(lambda row: y[row]).should_stop().stop
    True
    """

    target: float | None = None
    change: float = 0.02
    confidence: float = 0.95
    rows: int = 59

    def __post_init__(self) -> None:
        for name in ("target", "change", "confidence"):
            value = getattr(self, name)
            allowed = name == "target" and value is None
            require(
                allowed or 0 < value < 1,
                f"{name} must be between 0 and 1, both excluded, got {value!r}.",
            )
        require(self.rows >= 1, f"rows must be 1 or more, got {self.rows!r}.")

    def check(self, learner: Progressing) -> bool:
        """Return whether the last audit allows to stop.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.

        Returns
        -------
        stop : bool
            Whether to stop.
        """
        for audit in self.audits(learner.history_):
            reason = self._passed(audit, learner)
            if reason:
                return self.answer(True, f"{self._said(audit)} {reason}")
        return self.answer(False, self._outlook(learner))

    def audits(self, history: Any) -> list[Audit]:
        """Return the results of all completed audits.

        Parameters
        ----------
        history : list of dict
            `history_` of a learner.

        Returns
        -------
        audits : list of Audit
            Audits in chronological order.
        """
        drawn = [k for k, step in enumerate(history) if is_audited(step)]
        found = []
        for number in range(1, len(drawn) // self.rows + 1):
            places = drawn[(number - 1) * self.rows : number * self.rows]
            steps = [history[k] for k in places]
            errors = sum(step["predicted"] != step["label"] for step in steps)
            constant = self.rows - max(Counter(step["label"] for step in steps).values())
            risk = (1 - self.confidence) / (number * (number + 1))
            bound = 1.0
            if errors < self.rows:
                bound = float(beta.ppf(1 - risk, errors + 1, self.rows - errors))
            found.append(Audit(number, places[-1] + 1, self.rows, errors, constant, bound))
        return found

    def wants_audit(self, learner: Progressing, pending: int) -> int:
        """Return how many of the next questions must be drawn at random.

        Parameters
        ----------
        learner : ActiveLearner
            The active learner.
        pending : int
            Number of audit rows that `ask` returned and that are not answered yet.

        Returns
        -------
        rows : int
            Number of rows.
        """
        drawn = sum(is_audited(step) for step in learner.history_) + pending
        if drawn % self.rows:
            return self.rows - drawn % self.rows
        return self.rows if not pending and self._is_due(learner) else 0

    def _is_due(self, learner: Progressing) -> bool:
        labels, audits = len(learner.history_), self.audits(learner.history_)
        if (
            labels < LEAST
            or not learner.has_model_
            or any(self._passed(a, learner) for a in audits)
        ):
            return False
        last = audits[-1].end if audits else 0
        if self.target is not None and labels >= 2 * last:
            return True
        changed = learner.changed_predictions()
        if changed is None or changed.labels <= last:
            return False
        return changed.share <= self._limit_to_begin(changed, audits, labels)

    def _limit_to_begin(self, changed: Changed, audits: list[Audit], labels: int) -> float:
        """Return the fraction of changed predictions below which an audit begins."""
        limit = self._limit(changed, audits[-1] if audits else None)
        return max(limit, LARGE_CHANGE) if labels >= MANY and not audits else limit

    def _limit(self, changed: Changed, audit: Audit | None) -> float:
        """Return the largest accepted fraction of changed predictions."""
        error = 0.0 if audit is None else audit.errors / audit.rows
        return max(min(self.change, OF_RARE * changed.rare), OF_ERROR * error)

    def _passed(self, audit: Audit, learner: Progressing) -> str:
        """Return the reason to stop after an audit, or an empty string."""
        if self.target is not None and audit.bound <= self.target:
            return f"This reaches the target of {self.target:.2%}."
        changed = learner.changed_predictions(audit.end)
        if changed is None or changed.share > self._limit(changed, audit):
            return ""
        better = audit.errors < WORTH * audit.constant
        if not better and audit.number < MOST_AUDITS:
            return ""
        right = audit.rows - audit.constant
        plain = f" A constant prediction would have been correct for {right:,} of these rows."
        return (
            f"From {changed.before:,} labels to {changed.labels:,}, {changed.share:.2%} of the "
            f"predictions changed, so further labels would change little.{'' if better else plain}"
        )

    def _said(self, audit: Audit) -> str:
        return (
            f"of {audit.rows:,} rows drawn at random, the model predicted "
            f"{audit.rows - audit.errors:,} correctly: with {self.confidence:.0%} confidence, its "
            f"error on rows like them is below {audit.bound:.1%}."
        )

    def _outlook(self, learner: Progressing) -> str:
        """Return the reason not to stop."""
        drawn = sum(is_audited(step) for step in learner.history_)
        if drawn % self.rows:
            return (
                f"an audit is in progress: {drawn % self.rows} of {self.rows} rows were answered."
            )
        labels, changed = len(learner.history_), learner.changed_predictions()
        if labels < LEAST or changed is None:
            return f"only {labels:,} labels were given, too few to compare models."
        audits = self.audits(learner.history_)
        limit = self._limit_to_begin(changed, audits, labels)
        return (
            f"from {changed.before:,} labels to {changed.labels:,}, {changed.share:.2%} of the "
            f"predictions changed; an audit begins when it is {limit:.2%} or less."
        )


def is_audited(step: dict[str, Any]) -> bool:
    """Return whether a label belongs to an audit."""
    return step["purpose"] == AUDIT and step["predicted"] is not None

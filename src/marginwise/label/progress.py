"""Progress of a session: counts, speed, curves, estimates and the verdict.

All values are computed on demand from the answers and the model, and cached until either of them
changes. An answer waits only for the counts and, every few answers, for the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from marginwise.active import closeness
from marginwise.active.recall import (
    Estimate,
    Evidence,
    binomial_bounds,
    estimate,
    expected_relevant,
    verdict,
)
from marginwise.label.agreement import agreements
from marginwise.label.answered import Answered
from marginwise.label.events import Event
from marginwise.label.items import Items
from marginwise.label.model import LabelModel
from marginwise.label.queue import Queue, Settings

WINDOW = 50  # answers over which the accuracy of predictions is averaged
POINTS = 300  # maximum number of points of a curve
SAMPLED = 1000  # unseen items in the sample for the margin
EVERY = 5  # answers between two verdicts


class Measures:
    """Measures of the progress of a session.

    Parameters
    ----------
    items : Items
        Items to label.
    settings : Settings
        Settings of the session.
    model : LabelModel
        The model.
    answered : Answered
        The answers.
    queue : Queue
        The queue, which defines the order of random questions.
    """

    def __init__(
        self,
        items: Items,
        settings: Settings,
        model: LabelModel,
        answered: Answered,
        queue: Queue,
    ) -> None:
        self._items, self._settings, self._model = items, settings, model
        self._answered, self._queue = answered, queue
        self._stop: dict[str, Any] | None = None
        self._stop_at = -1  # number of answers at the latest verdict
        self._kept: tuple[int, dict[str, Any]] | None = None

    def summary(self) -> dict[str, Any]:
        """Return counts, speed and the latest verdict, which is at most a few answers old."""
        answered = self._answered
        counts = {label: answered.counts[label] for label in self._settings.labels}
        return {
            "answered": sum(counts.values()),
            "skipped": answered.skipped,
            "flagged": len(answered.flagged),
            "left": len(self._items) - len(answered.counting),
            "counts": counts,
            "per_hour": answered.per_hour(self._settings.annotator),
            "stop": self._verdict(EVERY),
        }

    def progress(self) -> dict[str, Any]:
        """Return all curves and estimates."""
        seq = self._answered.answers.seq
        if self._kept is None or self._kept[0] != seq:
            self._kept = seq, self._measured()
        return self._kept[1]

    def _measured(self) -> dict[str, Any]:
        summary = self.summary()
        return {
            **self._curves(),
            "holdout": self._holdout(),
            "margin": self._margin(),
            "counts": summary["counts"],
            "per_hour": summary["per_hour"],
            "stop": self._verdict(1),
            "review": self._review(),
            "agreement": self._agreement(),
        }

    # -- the verdict -------------------------------------------------------------------------------

    def _verdict(self, every: int) -> dict[str, Any]:
        """Return whether to stop, and why; update the verdict after every few answers."""
        number = len(self._answered.counting)
        if self._stop is None or abs(number - self._stop_at) >= every:
            stop, reason = self._decided()
            self._stop, self._stop_at = {"stop": stop, "reason": reason}, number
        return self._stop

    def _decided(self) -> tuple[bool, str]:
        if self._settings.goal == "find":
            evidence = self._evidence()
            return verdict(estimate(evidence), evidence)
        found = self._model.learner.should_stop()
        return bool(found.stop), found.reason

    # -- curves ------------------------------------------------------------------------------------

    def _learned(self) -> list[Event]:
        """Return the labels that the model has learned, in order."""
        row, holds, labels = self._items.row, self._model.holds, self._settings.labels
        return [e for e in self._answered.counting if e.label in labels and holds(row(e.item))]

    def _curves(self) -> dict[str, Any]:
        """Return curves of the accuracy before learning and of the number of support vectors.

        The accuracy is that of the predictions for the last 50 answers, made before the items were
        learned. The strategy selects items that are hard to predict, so this accuracy is lower
        than the accuracy on all items.
        """
        right: list[bool] = []
        accuracy: list[float | None] = []
        for event in self._learned():
            if event.score is not None and event.purpose not in ("browse", "import"):
                right.append(self._model.named(event.score) == event.label)
            last = right[-WINDOW:]
            accuracy.append(sum(last) / len(last) if last else None)
        counts = self._model.learner.support_counts_
        points = thinned(min(len(accuracy), len(counts)))
        return {
            "answers": [k + 1 for k in points],
            "prequential": [accuracy[k] for k in points],
            "support_vectors": [counts[k] for k in points],
        }

    def _holdout(self) -> list[list[float]] | None:
        """Return the error on held-out items, with bounds, by number of labels."""
        if self._settings.holdout <= 0:
            return None
        given = self._held_answers(self._model.held)
        points = []
        for version, predicted in self._model.foreseen:
            pairs = [(predicted[k], y) for k, y in enumerate(given[: len(predicted)]) if y]
            points.append([version, *_error(pairs)] if pairs else None)
        rows = [int(row) for row, y in zip(self._model.held, given, strict=True) if y]
        if rows and self._model.ready:
            now = zip(self._model.predict(np.array(rows)), filter(None, given), strict=True)
            points.append([self._model.version, *_error(list(now))])
        found = [point for point in points if point is not None]
        return [found[k] for k in thinned(len(found))]

    def _held_answers(self, rows: Sequence[int] | Any) -> list[str | None]:
        found = [self._answered.answers.answer(self._items.ids[int(row)]) for row in rows]
        return [None if answer is None else answer.label for answer in found]

    def _margin(self) -> dict[str, Any] | None:
        """Estimate the fraction of unseen items inside the margin from a sample."""
        learner = self._model.learner
        if not learner.has_model_ or not learner.n_unseen_:
            return None
        rows = learner.sample_unseen(SAMPLED)
        inside = int(np.count_nonzero(closeness(learner.decision_values(rows)) < 1))
        low, high = binomial_bounds(inside, len(rows))
        if len(rows) == learner.n_unseen_:  # the sample is complete
            low = high = inside / len(rows)
        return {"share": inside / len(rows), "low": low, "high": high, "sampled": len(rows)}

    # -- finding -----------------------------------------------------------------------------------

    def _review(self) -> dict[str, Any] | None:
        """Return the numbers of found and remaining relevant items, for the goal "find"."""
        if self._settings.goal != "find":
            return None
        evidence = self._evidence()
        found: Estimate = estimate(evidence)
        curve, hits = [], 0
        for seen, event in enumerate(self._answered.counting, 1):
            hits += event.label == self._settings.labels[0]
            curve.append([seen, hits])
        return {
            "found": evidence.found,
            "seen": evidence.seen,
            "recall": found.recall,
            "low": found.low,
            "high": found.high,
            "unseen": found.unseen,
            "unseen_low": found.unseen_low,
            "unseen_high": found.unseen_high,
            "curve": [curve[k] for k in thinned(len(curve))],
        }

    def _evidence(self) -> Evidence:
        """Collect the evidence about the items that can be learned."""
        wanted, row = self._settings.labels[0], self._items.row
        seen = [e for e in self._answered.counting if self._model.holds(row(e.item))]
        draws = [event for event in seen if event.purpose == "random"]
        relevant = {row(event.item): event.label == wanted for event in seen}
        order = self._queue.audits()
        sample = max((self._queue.audit_places[row(event.item)] + 1 for event in draws), default=0)
        first = order[:sample].tolist()
        known = [relevant[place] for place in first if place in relevant]
        # Random questions become rare after the first hit, so that hit is not a random draw.
        started = any(event.label == wanted for event in draws)
        return Evidence(
            items=len(self._model.pool),
            seen=len(seen),
            found=sum(relevant.values()),
            sample=len(known) - started,
            sample_found=sum(known) - started,
            draws=[event.label == wanted for event in draws],
            expected=self._expected(seen),
        )

    def _expected(self, seen: list[Event]) -> float | None:
        if not self._model.ready:
            return None
        wanted = self._settings.labels[0]
        scored = [event for event in seen if event.score is not None]
        values = self._model.toward(wanted, np.array([event.score for event in scored]))
        unseen = self._model.scores(wanted)[self._model.unseen()]
        return expected_relevant(values, [event.label == wanted for event in scored], unseen)

    # -- annotators --------------------------------------------------------------------------------

    def _agreement(self) -> dict[str, Any] | None:
        """Return how well this annotator agrees with the others on shared items."""
        own = self._settings.annotator
        pairs = [pair for pair in agreements(self._answered.answers) if own in (pair.one, pair.two)]
        if not pairs:
            return None
        most = max(pairs, key=lambda pair: pair.items)
        return {"kappa": most.kappa, "items": most.items, "agree": most.agree}


def thinned(n: int) -> list[int]:
    """Return at most 300 of n positions, evenly spaced, including the last one."""
    if n <= POINTS:
        return list(range(n))
    return sorted({round(k) for k in np.linspace(0, n - 1, POINTS)})


def _error(pairs: Sequence[tuple[str, str | None]]) -> tuple[float, float, float]:
    """Return the fraction of pairs that differ, with bounds."""
    wrong = sum(one != other for one, other in pairs)
    return (wrong / len(pairs), *binomial_bounds(wrong, len(pairs)))

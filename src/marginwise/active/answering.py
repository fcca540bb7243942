"""Answers of an active learner: teach, skip, correct, undo, extend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from marginwise._estimator.base import alone
from marginwise.active.answers import (
    AUDIT,
    GIVEN,
    STRATEGY,
    check_labels,
    check_purposes,
    noted_labels,
    plain_answers,
    row_numbers,
)
from marginwise.active.log import Event
from marginwise.active.pool import TAUGHT, UNSEEN, unchanged_on_error
from marginwise.active.questions import Questions
from marginwise.active.verdict import StoppingRule, Verdict


class Answering(Questions):
    """Mixin with the methods that record answers."""

    # The verdict at the end of `run`, with the length of the log and the rule for which it holds.
    _verdict: tuple[int, StoppingRule | None, Verdict] | None

    @alone
    def teach(self, rows: int | ArrayLike, labels: Any, *, purpose: str | None = None) -> Self:
        """Learn the labels of one or several rows.

        Parameters
        ----------
        rows : int or array-like of int
            Row indices. Rows need not have been returned by `ask`.
        labels : label or array-like of labels
            One label per row.
        purpose : {"strategy", "audit", "given"}, default=None
            Purpose of the questions. By default, the purpose recorded by `ask`, or "given" for rows
            that `ask` did not return. Pass it only to repeat the answers of another learner. Use
            "audit" only for rows that were drawn at random.

        Returns
        -------
        self : object
            The updated learner.
        """
        numbers = row_numbers(rows, self._pool.n)
        answers = plain_answers(labels, numbers)
        taught = numbers[self._pool.status[numbers] == TAUGHT]
        if len(taught):
            raise ValueError(
                f"row {taught[0]} was already taught as {self._label_of(int(taught[0]))!r}. Call "
                "correct(row, label) to change an answer."
            )
        check_labels(answers, self._given, self._classes)
        whys = [self._purpose(row) if purpose is None else purpose for row in numbers.tolist()]
        self._do(Event("teach", numbers.tolist(), answers, check_purposes(whys)))
        return self

    def _purpose(self, row: int) -> str:
        if row in self._audited:
            return AUDIT
        return STRATEGY if row in self._scores_asked else GIVEN

    @alone
    def skip(self, rows: int | ArrayLike) -> Self:
        """Skip one or several rows.

        Parameters
        ----------
        rows : int or array-like of int
            Row indices.

        Returns
        -------
        self : object
            The learner.
        """
        numbers = row_numbers(rows, self._pool.n)
        gone = numbers[self._pool.status[numbers] != UNSEEN]
        if len(gone):
            raise ValueError(
                f"row {gone[0]} was already taught or skipped and cannot be skipped; pass unseen "
                "rows only, or change an answer with correct(row, None)."
            )
        self._do(Event("skip", numbers.tolist()))
        return self

    @alone
    def correct(self, row: int, label: Any) -> Self:
        """Change an earlier answer.

        The model and the next question are then as if the new answer had been given at that time.
        `undo` restores the previous answer.

        Parameters
        ----------
        row : int
            Index of a row that was taught or skipped.
        label : label or None
            Correct label, or None if the row should have been skipped.

        Returns
        -------
        self : object
            The updated learner. Its model does not depend on the previous answer.
        """
        numbers = row_numbers(row, self._pool.n)
        if len(numbers) != 1:
            raise ValueError(f"correct changes one answer at a time, got {len(numbers)} rows.")
        number = int(numbers[0])
        if self._pool.status[number] == UNSEEN:
            raise ValueError(
                f"row {number} was neither taught nor skipped, so there is no answer to correct; "
                "use teach(row, label)."
            )
        answer = None
        if label is not None:
            answer = plain_answers(label, numbers)[0]
            others = [step["label"] for step in self.history_ if step["row"] != number]
            check_labels([answer], self._given, np.array(others) if others else np.empty(0))
        with self._all_or_nothing():
            self._rebuild([*self._log, Event("correct", [number], [answer])])
        return self

    @alone
    def undo(self) -> list[int]:
        """Undo the last `teach`, `skip` or `correct`.

        The model is restored to its earlier state, and `ask` returns the same rows as at that time.
        Repeated calls undo earlier answers, back to the first one.

        Returns
        -------
        rows : list of int
            Row indices of the undone answer. Empty if there is nothing to undo.
        """
        taken: list[int] = []
        with self._all_or_nothing():
            log = list(self._log)
            while log and log[-1].kind == "finish":
                log.pop()
            if log:
                taken = log.pop().rows
            self._rebuild(log)
        return list(taken)

    @alone
    def replay(
        self,
        rows: ArrayLike,
        labels: Sequence[Any],
        purposes: Sequence[str] | None = None,
    ) -> Self:
        """Replace all answers by the given ones.

        The learner is then in the same state as if these answers had been taught and skipped one by
        one. A common prefix with the current answers is not learned again. Use this method to
        restore a learner from answers stored elsewhere, and to synchronize it with changes there.

        Parameters
        ----------
        rows : array-like of int of shape (n_answers,)
            Row indices in the order of the answers, without duplicates.
        labels : sequence of length n_answers
            Label of each row, or None for skipped rows.
        purposes : sequence of str of length n_answers, default=None
            Purpose of each question, as in `history_`. By default, as in `teach`.

        Returns
        -------
        self : object
            The learner.
        """
        numbers = row_numbers(rows, self._pool.n) if np.size(rows) else np.empty(0, np.int64)
        if len(labels) != len(numbers) or len(purposes or labels) != len(numbers):
            also = "" if purposes is None else f" and {len(purposes)} purposes"
            raise ValueError(
                f"got {len(numbers)} rows, {len(labels)} labels{also}; pass one for each row."
            )
        given = [k for k, label in enumerate(labels) if label is not None]
        answers = plain_answers([labels[k] for k in given], numbers[given]) if given else []
        known = np.empty(0) if self._given is None else self._given
        check_labels(answers, self._given, known)
        whys = purposes or [self._purpose(row) for row in numbers.tolist()]
        log = [Event("skip", [row]) for row in numbers.tolist()]
        for k, answer in zip(given, answers, strict=True):
            log[k] = Event("teach", log[k].rows, [answer], check_purposes([whys[k]]))
        with self._all_or_nothing():
            self._rebuild(log)
        return self

    @alone
    def extend(self, X_new: Any, y_new: Any = None) -> Self:
        """Append rows to the pool.

        The indices of the new rows follow those of the existing rows. The model does not change,
        and values derived from the initial rows, such as ``gamma="scale"``, are not recomputed. If
        the estimator cannot process a row, for example because a text is missing, no row is added.

        Parameters
        ----------
        X_new : {array-like, sparse matrix} of shape (n_new, n_features), or source
            Rows of the same kind as the pool.
        y_new : array-like of shape (n_new,), default=None
            Noisy labels of these rows, as in `y_pool`.

        Returns
        -------
        self : object
            The updated learner.
        """
        if getattr(self.estimator_, "kernel", None) == "precomputed":
            raise ValueError(
                "a pool of precomputed kernel values cannot be extended, because each new row "
                "would also need a column. Create a new learner with the larger matrix."
            )
        pool = self._pool.extended(X_new)
        noted = noted_labels(y_new, pool.n - self._pool.n)
        if noted is not None or self._noted is not None:
            none = (np.full(n, None) for n in (self._pool.n, pool.n - self._pool.n))
            pair = zip((self._noted, noted), none, strict=True)
            noted = np.concatenate([empty if one is None else one for one, empty in pair])
        with unchanged_on_error(self._pool):
            self._pool.__dict__.update(pool.__dict__)  # in place, because models refer to this pool
            self._model.admit()
        self._noted = noted
        self._drawn = None
        self._verdict = None
        return self

    @alone
    def finish(self) -> Self:
        """Finish the model if the estimator supports it.

        Finishing solves the problem for the stored examples. `run` finishes the model at the end.
        Call this method before using the model if labels were taught one by one.

        Returns
        -------
        self : object
            The learner.
        """
        if self.has_model_:
            self._do(Event("finish", [], []))
        return self

"""ActiveLearner: ask for the labels that matter, learn them at once, know when to stop.

The log of answers is the truth. The model, the state of the pool and the history follow from it,
so that answers can be taken back, and a learner that is loaded is the one that was saved. What is
asked next is a function of the log, the pool and the seed: asking twice gives the same question.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from marginwise._arrays import Float, Ints
from marginwise._estimator.base import Exclusive, alone
from marginwise._training.loop import READ
from marginwise.active.answers import (
    check_inside,
    check_labels,
    checked_classes,
    contains,
    noted_labels,
    places_of,
    plain_answers,
    positive_integer,
    row_numbers,
)
from marginwise.active.batch import different_rows
from marginwise.active.models import Model, model_for
from marginwise.active.pool import SKIPPED, TAUGHT, UNSEEN, Pool
from marginwise.active.scores import (
    MOST_SAMPLED,
    autoactive_size,
    by_function,
    closeness,
    disagreement,
    least_positive,
)
from marginwise.active.stopping import StoppingRule
from marginwise.progress import Progress

STRATEGIES = ("random", "gradient", "active", "autoactive", "near_boundary", "largest_positive")
WHOLE_POOL = ("near_boundary", "largest_positive")


class Verdict(NamedTuple):
    """Whether to stop, which is what it is worth as a condition, and why.

    Parameters
    ----------
    stop
        Whether to stop.
    reason
        Why, or why not, in one sentence.
    """

    stop: bool
    reason: str

    def __bool__(self) -> bool:
        return self.stop

    def __str__(self) -> str:
        return self.reason


@dataclass
class Event:
    """A line of the log: "teach", "skip" or "finish", the rows, and the labels of "teach"."""

    kind: str
    rows: list[int]
    labels: list[Any]


class _Draw(NamedTuple):
    """Rows that may be asked next, in the order in which they were drawn, and their scores."""

    rows: Ints
    scores: Float | None


class ActiveLearner(Exclusive):
    """Learn from a pool of unlabelled rows by asking for the labels that matter most.

    Parameters
    ----------
    estimator
        An estimator of this package, or any scikit-learn classifier with `partial_fit` and
        `decision_function`. It is copied; a fitted one is gone on with.
    X_pool
        The rows: array, CSR matrix, memory map, data frame, or a source of rows (an object with
        ``__len__`` and ``read(rows)``).
    strategy
        "active" asks for the row nearest to the boundary among `pool_size` sampled ones,
        "autoactive" among as many as bring five within the margin, 100 at most
        [bordes2005, section 4]. "near_boundary" and "largest_positive" search the whole pool for
        the row nearest to the boundary, or the surest positive [laskov2006, 6.2]. "gradient" asks
        for the row whose noted label (`y_pool`) the model contradicts most; where no label is
        noted the worst case over both labels counts, which is "active". "random" asks for any row.
        A function is given decision values, ``(n,)`` or ``(n, n_classes)``, and returns a number
        for each; the row with the largest is asked.
    pool_size
        Rows sampled for a question; see `pool_size_for`. None searches the whole pool.
    stop
        When `should_stop` says so: a rule, or several combined by ``|`` and ``&``.
    classes
        All labels that may come. Without it they are learned as they come, and the model is built
        again when a class is met for the first time.
    y_pool
        Labels that are noted already and may be wrong, None or NaN where there is none; only
        "gradient" looks at them.
    random_state
        Seed of the sampling.
    verbose
        1 shows a progress bar during `run`, or logs a line every few seconds where there is
        neither a terminal nor a notebook.

    Attributes
    ----------
    estimator_
        The model, which has learned every answer.
    history_
        One dict a label: "row", "label", whether it was "asked", the decision "score" it had then
        (a list for several classes), and "support_vectors" and "seconds" after it was learned.
    support_counts_
        Support vectors after each label: 0 without a model, None where they are not counted.
    counts_
        How many rows were "taught", "skipped" and, of those taught, never "asked".

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import OnlineSVC
    >>> from marginwise.active import ActiveLearner, MarginExhausted
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> learner = ActiveLearner(OnlineSVC(C=10, gamma=1.0), X, stop=MarginExhausted(),
    ...                         random_state=0)
    >>> learner.run(lambda row: y[row], max_labels=100).estimator_.score(X, y)
    1.0
    """

    def __init__(
        self,
        estimator: Any,
        X_pool: Any,
        *,
        strategy: str | Callable[[Float], Any] = "active",
        pool_size: int | None = 59,
        stop: StoppingRule | None = None,
        classes: ArrayLike | None = None,
        y_pool: Any = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        if not callable(strategy) and strategy not in STRATEGIES:
            listed = ", ".join(repr(name) for name in STRATEGIES)
            raise ValueError(f"strategy must be {listed} or a function, got {strategy!r}.")
        whole = isinstance(pool_size, int | np.integer) and pool_size >= 1
        if pool_size is not None and (isinstance(pool_size, bool) or not whole):
            raise ValueError(f"pool_size must be an integer from 1 on, or None, got {pool_size!r}.")
        if stop is not None and not isinstance(stop, StoppingRule):
            raise TypeError(f"stop must be a stopping rule, got {stop!r}.")
        self.strategy = strategy
        self.pool_size = None if pool_size is None else int(pool_size)
        self.stop = stop
        self.verbose = verbose
        self._pool = Pool(X_pool)
        self._model: Model = model_for(estimator, self._pool)
        self._given = None if classes is None else checked_classes(classes)
        self._seed = int(check_random_state(random_state).randint(2**31))
        self._noted = noted_labels(y_pool, self._pool.n)
        self._log: list[Event] = []
        self._scores_asked: dict[int, Any] = {}
        self._drawn: tuple[int, _Draw] | None = None
        # What `run` ended with, and the log and rule that it goes with.
        self._verdict: tuple[int, StoppingRule | None, Verdict] | None = None
        self._started = time.perf_counter()
        self._begin()

    # -- asking ----------------------------------------------------------------------------------

    @alone
    def ask(self, n: int | None = None) -> int | Ints:
        """Return the row to label next, or n of them, of which no two are near-duplicates.

        Asking again gives the same rows until something is taught, skipped or taken back. An
        exhausted pool gives an empty array, a pool with too few different rows fewer than n.

        Parameters
        ----------
        n
            How many rows; without it one, as an integer.
        """
        wanted = 1 if n is None else positive_integer(n, "n")
        draw = self._draw(wanted)
        order = self._order(draw, wanted)
        if wanted > 1 and len(order) > 1:
            order = self._different(draw, order, wanted)
        places = order[:wanted]
        for place in places.tolist():
            score = None if draw.scores is None else draw.scores[place].tolist()
            self._scores_asked[int(draw.rows[place])] = score
        rows = draw.rows[places]
        return int(rows[0]) if n is None and len(rows) else rows

    def _different(self, draw: _Draw, order: Ints, wanted: int) -> Ints:
        """Return the first places in order whose rows are no near-duplicates of each other."""
        found = order[:0]
        for most in (max(16 * wanted, 256), len(order)):  # mostly the first will do
            best = order[:most]
            found = best[different_rows(self._pool.take(draw.rows[best]), wanted)]
            if len(found) == wanted:
                break
        return found

    def _order(self, draw: _Draw, wanted: int) -> Ints:
        """Return the places of drawn rows, the best to ask about first; one if one is wanted."""
        if draw.scores is None or self.strategy == "random":
            return np.arange(len(draw.rows), dtype=np.int64)
        if callable(self.strategy):
            values = by_function(self.strategy)(draw.scores)
        elif self.strategy == "largest_positive":
            values = least_positive(draw.scores)
        elif self.strategy == "gradient" and self._noted is not None:
            noted = self._noted[draw.rows]
            values = disagreement(draw.scores, places_of(noted, self.estimator_.classes_))
        else:
            values = closeness(draw.scores)
            if self._explores and len(values) and values.min() >= 1 + max(self._model.delta, 0) / 2:
                return np.arange(len(values), dtype=np.int64)
        if wanted == 1:
            return np.array([values.argmin()] if len(values) else [], dtype=np.int64)
        return np.argsort(values, kind="stable").astype(np.int64)

    @property
    def _explores(self) -> bool:
        """Whether any row is as good as another once no sampled one lies within the margin.

        The nearest of those outside would teach nothing new, while a part of a class that no
        label has shown yet is found by chance alone.
        """
        sampled = self.strategy in ("active", "autoactive", "gradient")
        return sampled and self.pool_size is not None

    def _draw(self, n: int) -> _Draw:
        """Draw the rows of which the next n are asked; kept until the log changes."""
        if self._drawn is None or self._drawn[0] != n:
            self._drawn = n, self._fresh_draw(n)
        return self._drawn[1]

    def _fresh_draw(self, n: int) -> _Draw:
        pool, rng = self._pool, self._rng(0)
        if pool.n_unseen == 0:
            return _Draw(np.empty(0, dtype=np.int64), None)
        if not self.has_model_ or self.strategy == "random":
            return _Draw(pool.sample(n if n == 1 else 16 * n, rng), None)
        if self.strategy in WHOLE_POOL or self.pool_size is None:
            rows = pool.unseen()
            return _Draw(rows, self.decision_values(rows))
        each = MOST_SAMPLED if self.strategy == "autoactive" else self.pool_size
        rows = pool.sample(n * each, rng)
        scores = self.decision_values(rows)
        if self.strategy == "autoactive" and n == 1:
            size = autoactive_size(scores, self._model.delta)
            rows, scores = rows[:size], scores[:size]
        return _Draw(rows, scores)

    def _rng(self, purpose: int) -> np.random.Generator:
        key = np.array([2 * self._seed + purpose, len(self._log)], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=key))

    # -- answering -------------------------------------------------------------------------------

    @alone
    def teach(self, rows: int | ArrayLike, labels: Any) -> ActiveLearner:
        """Learn the label of a row, or of several, before it returns.

        Parameters
        ----------
        rows
            Row number, or several. They need not have been asked about.
        labels
            The label, or one for each row.
        """
        numbers = row_numbers(rows, self._pool.n)
        answers = plain_answers(labels, numbers)
        taught = numbers[self._pool.status[numbers] == TAUGHT]
        if len(taught):
            raise ValueError(
                f"row {taught[0]} was taught before, as {self._label_of(int(taught[0]))!r}; to "
                "change an answer take it back by undo()."
            )
        check_labels(answers, self._given, self._classes)
        self._do(Event("teach", numbers.tolist(), answers))
        return self

    @alone
    def skip(self, rows: int | ArrayLike) -> ActiveLearner:
        """Pass over a row, or several: they are not asked about again, but may be taught.

        Parameters
        ----------
        rows
            Row number, or several.
        """
        numbers = row_numbers(rows, self._pool.n)
        gone = numbers[self._pool.status[numbers] != UNSEEN]
        if len(gone):
            raise ValueError(f"row {gone[0]} was taught or skipped before; it cannot be skipped.")
        self._do(Event("skip", numbers.tolist(), []))
        return self

    @alone
    def undo(self) -> list[int]:
        """Take back the last `teach` or `skip`; return its rows, an empty list if there is none.

        The model is as if they had never been taught, and `ask` asks what it asked then.
        """
        taken: list[int] = []
        with self._all_or_nothing():
            log = list(self._log)
            while log and log[-1].kind == "finish":
                log.pop()
            if log:
                taken = log.pop().rows
            self._replay(log)
        return list(taken)

    def run(
        self,
        oracle: Callable[[int], Any],
        max_labels: int | None = None,
        *,
        batch: int = 1,
    ) -> ActiveLearner:
        """Ask an oracle until the stopping rule is met, the pool is exhausted or labels run out.

        What was taught stays taught whatever the oracle raises. At the end the model is finished,
        where it can be.

        Parameters
        ----------
        oracle
            Function that is given a row number and returns the label, or None to skip the row.
        max_labels
            Most labels to ask for in this call.
        batch
            Rows to choose at a time.
        """
        positive_integer(batch, "batch")
        left = (
            self._pool.n_unseen
            if max_labels is None
            else positive_integer(max_labels, "max_labels")
        )
        before = len(self.history_)
        verdict = Verdict(False, "")
        with Progress(left, self.verbose) as progress:
            while (given := len(self.history_) - before) < left:
                verdict = self.should_stop()
                if verdict:
                    break
                rows = np.atleast_1d(self.ask(min(batch, left - given) if batch > 1 else None))
                for row in rows.tolist():
                    self._answer(row, oracle(row))
                progress.learned(len(self.history_) - before - given, self._size(), 0.0)
        if len(self.history_) > before:
            self.finish()
        self._verdict = (len(self._log), self.stop, verdict) if verdict else None
        return self

    @alone
    def _answer(self, row: int, label: Any) -> None:
        """Take the answer of an oracle, unless another thread was quicker."""
        if self._pool.status[row] != UNSEEN:
            return
        self.skip(row) if label is None else self.teach(row, label)

    @alone
    def finish(self) -> ActiveLearner:
        """Finish the model, if it can be: it is then as exact as the labels allow.

        `run` ends with it; call it before the model is used if labels were taught one by one.
        """
        if self.has_model_:
            self._do(Event("finish", [], []))
        return self

    # -- knowing when to stop --------------------------------------------------------------------

    @alone
    def should_stop(self) -> Verdict:
        """Return whether to stop, true or false as a condition, with the `reason` in a sentence."""
        if self._pool.n_unseen == 0:
            return Verdict(True, f"all {self._pool.n:,} rows of the pool were taught or skipped.")
        if self._verdict is not None and self._verdict[:2] == (len(self._log), self.stop):
            return self._verdict[2]  # finishing moves the model a little, not what is known
        if self.stop is None:
            return Verdict(False, f"{self._pool.n_unseen:,} rows are unseen and no rule was given.")
        stop = self.stop.check(self)
        return Verdict(stop, self.stop.reason)

    # -- looking inside --------------------------------------------------------------------------

    @property
    def estimator_(self) -> Any:
        """The model."""
        return self._model.estimator

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels known so far, sorted."""
        return self._classes

    @property
    def has_model_(self) -> bool:
        """Whether rows can be told apart: two classes were taught, or the estimator was fitted."""
        return self._model.ready and (self._model.warm or len(self._met) >= 2)

    @property
    def n_pool_(self) -> int:
        """Rows of the pool."""
        return self._pool.n

    @property
    def n_unseen_(self) -> int:
        """Rows that were neither taught nor skipped."""
        return self._pool.n_unseen

    @property
    def counts_(self) -> dict[str, int]:
        """How many rows were taught, skipped, and taught without having been asked about."""
        return {
            "taught": len(self.history_),
            "skipped": int(np.count_nonzero(self._pool.status == SKIPPED)),
            "unasked": sum(not step["asked"] for step in self.history_),
        }

    @alone
    def decision_values(self, rows: ArrayLike | None = None) -> Float:
        """Return the decision values of rows of the pool, all of them by default.

        Parameters
        ----------
        rows
            Row numbers.
        """
        if not self.has_model_:
            raise ValueError("there is no model yet: labels of two classes must be taught first.")
        numbers = None if rows is None else np.asarray(rows, dtype=np.int64)
        if numbers is not None:
            check_inside(numbers, self._pool.n)
        most = self._pool.n if numbers is None else len(numbers)
        if self._pool.in_memory and 2 * most > self._pool.n:
            scores = self._model.all_scores()
            return scores if numbers is None else scores[numbers]
        if numbers is None:
            return self._model.all_scores()
        parts = [numbers[k : k + READ] for k in range(0, max(len(numbers), 1), READ)]
        return np.concatenate([self._model.scores(part) for part in parts])

    @alone
    def candidate_values(self) -> Float:
        """Return the decision values of the rows among which the next question is chosen."""
        draw = self._draw(1)
        return np.empty(0) if draw.scores is None else draw.scores

    @alone
    def sample_unseen(self, size: int) -> Ints:
        """Return unseen rows, drawn at random but the same until the log changes.

        Parameters
        ----------
        size
            How many; all of them where there are no more.
        """
        return self._pool.sample(size, self._rng(1))

    # -- files -----------------------------------------------------------------------------------

    @alone
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the learner, without its pool, to a file that `load` reads back.

        Parameters
        ----------
        path
            Where to; the usual suffix is ``.mwz``.
        """
        from marginwise.active.files import save_learner

        save_learner(self, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        X_pool: Any,
        *,
        estimator: Any = None,
        strategy: Callable[[Float], Any] | None = None,
    ) -> ActiveLearner:
        """Read a learner that `save` wrote; it continues as if it had never been stopped.

        Parameters
        ----------
        path
            The file.
        X_pool
            The same pool; another one is refused.
        estimator
            What the learner was made with, where that is not an unfitted estimator of this
            package: files hold no foreign code.
        strategy
            The strategy, where that is a function.
        """
        from marginwise.active.files import load_learner

        learner = load_learner(cls, path, X_pool, estimator, strategy)
        assert isinstance(learner, cls)
        return learner

    @alone
    def __getstate__(self) -> dict[str, Any]:
        # What other threads may change while it is written is copied.
        state = {k: list(v) if isinstance(v, list) else v for k, v in self.__dict__.items()}
        parts = {"_met": set(self._met), "_pool": self._pool.copy(), "_model": self._model.copy()}
        return {**state, **parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # -- the log ---------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Be as before the first answer."""
        self.history_: list[dict[str, Any]] = []
        self.support_counts_: list[int | None] = []
        self._met: set[Any] = set()  # labels taught
        self._pool.status[:] = UNSEEN
        self._pool.n_unseen = self._pool.n
        self._drawn = None
        self._verdict = None
        self._classes = np.empty(0) if self._given is None else self._given
        self._model = self._model.blank()
        if self._model.warm and not len(self._classes):
            self._classes = self._model.estimator.classes_
        if len(self._classes) >= 2:
            self._model.start(self._classes)

    def _do(self, event: Event) -> None:
        """Carry out an event and log it; if it fails, or is interrupted, nothing has happened."""
        try:
            self._carry_out(event)
        except KeyboardInterrupt:
            # Errors leave a model as it was; Ctrl-C may leave it with half of an answer.
            with self._all_or_nothing():
                self._replay(self._log)
            raise

    @contextlib.contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Put the learner back if what is tried fails; models are replaced there, not changed."""
        before = dict(self.__dict__)
        status, unseen = self._pool.status.copy(), self._pool.n_unseen
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            self._pool.status[:] = status
            self._pool.n_unseen = unseen
            raise

    def _carry_out(self, event: Event) -> None:
        if event.kind == "teach":
            self._learn(event)
        elif event.kind == "skip":
            self._pool.mark(np.array(event.rows), SKIPPED)
        else:
            self._model.finish()
        self._log.append(event)
        self._drawn = None

    def _learn(self, event: Event) -> None:
        rows = np.array(event.rows, dtype=np.int64)
        known = self._classes
        self._pool.require(rows)
        new = [label for label in event.labels if not contains(known, label)]
        if new:
            self._grow_classes(new, event)
        elif len(known) >= 2:
            self._model.learn(rows, np.array(event.labels, dtype=known.dtype))
        self._pool.mark(rows, TAUGHT)
        self._record(event)

    def _grow_classes(self, new: list[Any], event: Event) -> None:
        """Build the model again with more classes from all answers, these included."""
        before = self._classes
        classes = np.unique(np.array([*before.tolist(), *new]))
        if len(classes) >= 2:
            answers = [past for past in self._log if past.kind == "teach"] + [event]
            rows = np.array([row for past in answers for row in past.rows], dtype=np.int64)
            labels = np.array([y for past in answers for y in past.labels], dtype=classes.dtype)
            model = self._model.blank()
            model.start(classes)
            model.learn(rows, labels)
            self._model = model
        self._classes = classes

    def _record(self, event: Event) -> None:
        self._met.update(event.labels)
        counts = self._model.support_counts() if self.has_model_ else np.zeros(1)
        support = None if counts is None else int(counts.sum())
        # Within a batch the model was as it had been before.
        before = self.support_counts_[-1] if self.support_counts_ else 0
        self.support_counts_ += [before] * (len(event.rows) - 1) + [support]
        for row, label in zip(event.rows, event.labels, strict=True):
            self.history_.append(
                {
                    "row": row,
                    "label": label,
                    "asked": row in self._scores_asked,
                    "score": self._scores_asked.get(row),
                    "support_vectors": support,
                    "seconds": time.perf_counter() - self._started,
                }
            )

    def _replay(self, log: list[Event]) -> None:
        """Be what a log says."""
        times = [step["seconds"] for step in self.history_]
        self._log = []
        self._begin()
        for event in log:
            self._carry_out(event)
        for step, seconds in zip(self.history_, times, strict=False):
            step["seconds"] = seconds

    def _label_of(self, row: int) -> Any:
        return next(step["label"] for step in self.history_ if step["row"] == row)

    def _size(self) -> int:
        return self.history_[-1]["support_vectors"] or 0 if self.history_ else 0

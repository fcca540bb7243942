"""ActiveLearner: pool-based active learning with stopping rules."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from marginwise._arrays import Float
from marginwise._estimator.base import alone
from marginwise.active.answering import Answering
from marginwise.active.answers import checked_classes, noted_labels, positive_integer
from marginwise.active.choose import model_for
from marginwise.active.marks import Marks
from marginwise.active.pool import UNSEEN
from marginwise.active.questions import AUTO, STRATEGIES, PoolExhaustedError
from marginwise.active.raw_pool import pool_for
from marginwise.active.verdict import StoppingRule, Verdict
from marginwise.progress import Progress


class ActiveLearner(Answering):
    """Pool-based active learner.

    An active learner trains a classifier on a pool of unlabelled rows by requesting the most
    informative labels. `ask` returns the row to label next, `teach` learns its label, and
    `should_stop` evaluates the stopping rule. `run` repeats these steps with a labelling function.

    Parameters
    ----------
    estimator : estimator
        Classifier of this package, or any other classifier with `decision_function` or
        `predict_proba`. The learner uses a copy. A classifier with `partial_fit` learns
        incrementally, and training of a fitted one continues. A classifier without `partial_fit` is
        fitted again to all answers and must be passed unfitted. The transformers of a `Pipeline`
        are fitted to the pool once, unless they require labels.
    X_pool : {array-like, sparse matrix} of shape (n_rows, n_features), or source
        Unlabelled rows: an array, CSR matrix, memory map or data frame, or an object with
        ``__len__`` and ``read(rows)``. For pipelines, any input of the first step, such as a list
        of texts.
    strategy : {"random", "gradient", "active", "autoactive", "near_boundary", \
        "largest_positive"} or callable, default="active"
        Query strategy.

        - "active" samples `pool_size` rows and queries the one nearest to the boundary
          [bordes2005]_.
        - "autoactive" samples rows until five fall inside the margin (at most 100) and queries the
          one nearest to the boundary [bordes2005]_.
        - "near_boundary" queries the row of the whole pool that is nearest to the boundary.
        - "largest_positive" queries the most confident positive of the whole pool [laskov2006]_.
        - "gradient" samples `pool_size` rows and queries the one whose noisy label (`y_pool`)
          disagrees most with the model. Rows without a noisy label are ranked as by "active", which
          is the worst case over both labels.
        - "random" queries a random row.
        - A callable receives decision values of shape (n,) or (n, n_classes) and returns one number
          per row. The row with the largest number is queried.
    pool_size : int or None, default=59
        Number of rows sampled for each query; see :func:`pool_size_for`. None compares all rows of
        the pool.
    stop : StoppingRule, "auto", "audit" or None, default="auto"
        Stopping rule that `should_stop` evaluates. Rules can be combined with ``|`` and ``&``.

        - "auto" means ``TargetRecall()`` if the strategy is "largest_positive" and there are two
          classes, and ``ErrorAudit()`` otherwise. Both rules draw some queries at random. If
          positives are rare, ``TargetRecall()`` asks about nearly the whole pool.
        - "audit" means ``ErrorAudit()`` with any strategy.
        - None stops only when the pool is exhausted.
    classes : array-like, default=None
        All labels that can occur. By default, the learner discovers labels as they are taught and
        rebuilds the model whenever a new class appears.
    y_pool : array-like of shape (n_rows,), default=None
        Existing labels that may be wrong, with None or NaN for rows without a label. Only the
        strategy "gradient" uses them.
    random_state : int, RandomState instance or None, default=None
        Seed for sampling rows.
    verbose : int, default=0
        If positive, `run` shows a progress bar in terminals and notebooks, and logs a line every
        few seconds elsewhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels known so far, sorted.
    counts_ : dict of int
        Number of rows "taught", "skipped" and "unasked" (taught, but never returned by `ask`).
    estimator_ : estimator
        Model trained on all answers.
    has_model_ : bool
        Whether the model can score rows, because two classes were taught or the estimator was
        passed fitted.
    history_ : list of dict
        One entry per label with the keys "row", "label", "asked" (whether `ask` returned the row),
        "purpose" ("strategy", "audit" for rows drawn at random, or "given" for rows not returned by
        `ask`), "score" (the decision value when the row was queried, a list for more than two
        classes), "predicted" (the prediction for an audit row before it was learned),
        "support_vectors" (their number after learning the label) and "seconds".
    n_pool_ : int
        Number of rows in the pool.
    n_unseen_ : int
        Number of rows that were neither taught nor skipped.
    support_counts_ : list of int
        Number of support vectors after each label: 0 without a model, None if the estimator does
        not report it.

    See Also
    --------
    ErrorAudit : Stop when further labels change little, and bound the error.
    TargetRecall : Stop when most rows of the positive class were found.
    MarginExhausted : Stop when no unseen row lies inside the margin.
    SupportVectorPlateau : Stop when the number of support vectors is stable.
    MarginRule : Decide which rows of a stream to label.

    References
    ----------
    .. [bordes2005] A. Bordes, S. Ertekin, J. Weston and L. Bottou, "Fast Kernel Classifiers with
       Online and Active Learning", Journal of Machine Learning Research 6, 2005.
    .. [laskov2006] P. Laskov, C. Gehl, S. Krüger and K.-R. Müller, "Incremental Support Vector
       Learning: Analysis, Implementation and Applications", Journal of Machine Learning Research 7,
       2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import ActiveLearner, OnlineSVC
    >>> X, y = make_moons(2000, noise=0.1, random_state=0)
    >>> learner = ActiveLearner(OnlineSVC(C=10, gamma=1.0), X, random_state=0)
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
        stop: StoppingRule | str | None = AUTO,
        classes: ArrayLike | None = None,
        y_pool: Any = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        _check_options(strategy, pool_size)
        self.strategy = strategy
        self.pool_size = None if pool_size is None else int(pool_size)
        self.stop = stop
        self.verbose = verbose
        self._pool = pool_for(X_pool, estimator)
        self._model = model_for(estimator, self._pool)
        self._given = None if classes is None else checked_classes(classes)
        self._seed = int(check_random_state(random_state).randint(2**31))
        self._noted = noted_labels(y_pool, self._pool.n)
        self._log = []
        self._course = []
        self._scores_asked = {}
        self._audited = set()
        self._foreseen = {}
        self._started = time.perf_counter()
        self._begin()

    def _begin(self) -> None:
        self._verdict = None
        super()._begin()

    def run(
        self,
        oracle: Callable[[int], Any],
        max_labels: int | None = None,
        *,
        batch: int = 1,
    ) -> ActiveLearner:
        """Query an oracle until the stopping rule is met.

        The method also stops when the pool is exhausted or after `max_labels` labels. If the oracle
        raises an exception, the labels taught so far are kept. At the end, the model is finished if
        the estimator supports it.

        Parameters
        ----------
        oracle : callable
            Function that receives a row index and returns its label, or None to skip the row.
        max_labels : int, default=None
            Maximum number of labels to request in this call. None sets no limit.
        batch : int, default=1
            Number of rows to select at a time.

        Returns
        -------
        self : object
            The learner.
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
                for row in self._next_rows(min(batch, left - given) if batch > 1 else None):
                    self._answer(row, oracle(row))
                progress.learned(len(self.history_) - before - given, self._size(), 0.0)
        if len(self.history_) > before:
            self.finish()
        self._verdict = (len(self._log), self._rule, verdict) if verdict else None
        return self

    def _next_rows(self, batch: int | None) -> list[int]:
        """Return the next rows to query, possibly none."""
        if batch is not None:
            return [int(row) for row in self.ask(batch)]
        with contextlib.suppress(PoolExhaustedError):
            return [self.ask()]
        return []

    @alone
    def _answer(self, row: int, label: Any) -> None:
        """Record the answer of an oracle unless the row was already answered."""
        if self._pool.status[row] != UNSEEN:
            return
        self.skip(row) if label is None else self.teach(row, label)

    def _size(self) -> int:
        return self.history_[-1]["support_vectors"] or 0 if self.history_ else 0

    @alone
    def should_stop(self) -> Verdict:
        """Evaluate the stopping rule.

        Returns
        -------
        verdict : Verdict
            Whether to stop, usable as a condition, with the `reason` in one sentence.
        """
        if self._pool.n_unseen == 0:
            return Verdict(True, f"all {self._pool.n:,} rows of the pool were taught or skipped.")
        rule = self._rule
        if self._verdict is not None and self._verdict[:2] == (len(self._log), rule):
            return self._verdict[2]  # still valid, although `run` has finished the model since
        if rule is None:
            return Verdict(
                False, f"{self._pool.n_unseen:,} rows are unseen and there is no stopping rule."
            )
        stop = rule.check(self)
        return Verdict(stop, rule.reason)

    # -- files -----------------------------------------------------------------------------------

    @alone
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the learner, without its pool, to a file.

        Parameters
        ----------
        path : str or path-like
            Destination. The usual suffix is ``.mwz``.
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
        """Load a learner from a file written by `save`.

        Parameters
        ----------
        path : str or path-like
            File to load.
        X_pool : {array-like, sparse matrix} of shape (n_rows, n_features), or source
            Pool of the saved learner. A different pool raises an error.
        estimator : estimator, default=None
            Estimator that the learner was created with. Required unless it was an unfitted
            estimator of this package, because files do not contain code of other packages.
        strategy : callable, default=None
            Strategy of the learner. Required if it is a callable.

        Returns
        -------
        learner : ActiveLearner
            The learner.
        """
        from marginwise.active.files import load_learner

        learner = load_learner(cls, path, X_pool, estimator, strategy)
        assert isinstance(learner, cls)
        return learner

    @alone
    def __getstate__(self) -> dict[str, Any]:
        # Copies, because other threads may change the state while it is pickled.
        state = {k: list(v) if isinstance(v, list) else v for k, v in self.__dict__.items()}
        model = self._model.copy(cached=self._model)
        model.pool = self._pool.copy()
        copies = {"_met": set(self._met), "_audited": set(self._audited)}
        return {**state, **copies, "_pool": model.pool, "_model": model, "_marks": Marks({})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _check_options(strategy: Any, pool_size: Any) -> None:
    if not callable(strategy) and strategy not in STRATEGIES:
        listed = ", ".join(repr(name) for name in STRATEGIES)
        raise ValueError(f"strategy must be {listed} or a function, got {strategy!r}.")
    whole = isinstance(pool_size, int | np.integer) and pool_size >= 1
    if pool_size is not None and (isinstance(pool_size, bool) or not whole):
        raise ValueError(f"pool_size must be an integer of at least 1 or None, got {pool_size!r}.")

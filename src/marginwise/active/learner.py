"""ActiveLearner: ask for the labels that matter, learn them at once, know when to stop."""

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
from marginwise.active.audit import ErrorAudit
from marginwise.active.choose import model_for
from marginwise.active.marks import Marks
from marginwise.active.pool import UNSEEN
from marginwise.active.questions import STRATEGIES, PoolExhaustedError
from marginwise.active.raw_pool import pool_for
from marginwise.active.verdict import StoppingRule, Verdict
from marginwise.progress import Progress


class ActiveLearner(Answering):
    """Learn from a pool of unlabelled rows by asking for the labels that matter most.

    `ask` returns the row to label next, `teach` learns its label, and `should_stop` reports whether
    further labels are worth their cost. `run` does all three with a labelling function.

    Parameters
    ----------
    estimator : estimator
        Classifier of this package, or any other with `decision_function` or `predict_proba`. It is
        copied. A fitted one with `partial_fit` continues to learn; one without is fitted again to
        all answers. The transformers of a `Pipeline` are fitted to the pool once, unless they need
        labels.
    X_pool : {array-like, sparse matrix} of shape (n_rows, n_features), or source
        Unlabelled rows: an array, CSR matrix, memory map or data frame, or an object with
        ``__len__`` and ``read(rows)``. For pipelines, whatever their first step reads, such as a
        list of texts.
    strategy : {"random", "gradient", "active", "autoactive", "near_boundary", \
        "largest_positive"} or callable, default="active"
        Which row to ask about.

        - "active" samples `pool_size` rows and asks for the one nearest to the boundary
          [bordes2005]_.
        - "autoactive" samples rows until five fall inside the margin (at most 100) and asks for the
          one nearest to the boundary [bordes2005]_.
        - "near_boundary" searches the whole pool for the row nearest to the boundary.
        - "largest_positive" searches the whole pool for the most confident positive [laskov2006]_.
        - "gradient" samples `pool_size` rows and asks for the one whose noted label (`y_pool`) the
          model contradicts most. A row without a noted label is ranked as by "active", which is
          the worst case over both labels.
        - "random" asks for any row.
        - A callable receives decision values of shape (n,) or (n, n_classes) and returns one number
          per row. The row with the largest number is asked.
    pool_size : int or None, default=59
        Number of rows sampled for a question; see :func:`pool_size_for`. None searches the whole
        pool.
    stop : StoppingRule, "audit" or None, default="audit"
        Rule that `should_stop` evaluates. Rules are combined with ``|`` and ``&``. "audit" is
        ``ErrorAudit()``, which draws some questions at random; None asks for labels as long as
        there are rows.
    classes : array-like, default=None
        All labels that may occur. By default, labels are discovered as they are taught, and the
        model is built again whenever a new class appears.
    y_pool : array-like of shape (n_rows,), default=None
        Labels that are already noted and may be wrong; None or NaN where there is none. Only
        "gradient" uses them.
    random_state : int, RandomState instance or None, default=None
        Seed of the sampling.
    verbose : int, default=0
        If positive, `run` shows a progress bar on terminals and in notebooks, and logs a line every
        few seconds elsewhere.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels known so far, sorted.
    counts_ : dict of int
        Number of rows "taught", "skipped", and "unasked": taught but never asked about.
    estimator_ : estimator
        Model that has learned every answer.
    has_model_ : bool
        Whether rows can be scored: two classes were taught, or the estimator was fitted.
    history_ : list of dict
        One entry per label: "row", "label", whether it was "asked", the "purpose" ("strategy",
        "audit" if it was drawn at random, or "given" if it was not asked about), the decision
        "score" it had when it was asked about (a list for more than two classes), what was
        "predicted" before a row of an audit was learned, and "support_vectors" and "seconds" after
        it was learned.
    n_pool_ : int
        Number of rows in the pool.
    n_unseen_ : int
        Number of rows that were neither taught nor skipped.
    support_counts_ : list of int
        Number of support vectors after each label: 0 without a model, None if the estimator does
        not count them.

    See Also
    --------
    ErrorAudit : Stop when further labels change little, and say how large the error is.
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
        stop: StoppingRule | str | None = "audit",
        classes: ArrayLike | None = None,
        y_pool: Any = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        rule: Any = ErrorAudit() if isinstance(stop, str) and stop == "audit" else stop
        _check_options(strategy, pool_size, rule)
        self.strategy = strategy
        self.pool_size = None if pool_size is None else int(pool_size)
        self.stop = rule
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
        """Ask an oracle until the stopping rule is met, the pool is exhausted or labels run out.

        If the oracle raises, the labels taught so far are kept. At the end, the model is finished
        if the estimator supports it.

        Parameters
        ----------
        oracle : callable
            Function that receives a row number and returns its label, or None to skip the row.
        max_labels : int, default=None
            Maximum number of labels to ask for in this call. None sets no limit.
        batch : int, default=1
            Number of rows to choose at a time.

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
        self._verdict = (len(self._log), self.stop, verdict) if verdict else None
        return self

    def _next_rows(self, batch: int | None) -> list[int]:
        """Return the rows to ask an oracle about; none if another thread took the last."""
        if batch is not None:
            return [int(row) for row in self.ask(batch)]
        with contextlib.suppress(PoolExhaustedError):
            return [self.ask()]
        return []

    @alone
    def _answer(self, row: int, label: Any) -> None:
        """Carry out the answer of an oracle, unless another thread answered before."""
        if self._pool.status[row] != UNSEEN:
            return
        self.skip(row) if label is None else self.teach(row, label)

    def _size(self) -> int:
        return self.history_[-1]["support_vectors"] or 0 if self.history_ else 0

    @alone
    def should_stop(self) -> Verdict:
        """Return whether to stop, and why.

        Returns
        -------
        verdict : Verdict
            True or false as a condition, with the `reason` in one sentence.
        """
        if self._pool.n_unseen == 0:
            return Verdict(True, f"all {self._pool.n:,} rows of the pool were taught or skipped.")
        if self._verdict is not None and self._verdict[:2] == (len(self._log), self.stop):
            return self._verdict[2]  # finishing moves the model a little, not what is known
        if self.stop is None:
            return Verdict(False, f"{self._pool.n_unseen:,} rows are unseen and no rule was given.")
        stop = self.stop.check(self)
        return Verdict(stop, self.stop.reason)

    # -- files -----------------------------------------------------------------------------------

    @alone
    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the learner, without its pool, to a file that `load` reads back.

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
        """Load a learner that `save` wrote; it continues as if it had never been stopped.

        Parameters
        ----------
        path : str or path-like
            File to load.
        X_pool : {array-like, sparse matrix} of shape (n_rows, n_features), or source
            The same pool; another one is refused.
        estimator : estimator, default=None
            Estimator that the learner was created with. Required unless it was an unfitted
            estimator of this package, because files contain no foreign code.
        strategy : callable, default=None
            Strategy of the learner, if it is a function.

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
        # What other threads may change while it is written is copied.
        state = {k: list(v) if isinstance(v, list) else v for k, v in self.__dict__.items()}
        model = self._model.copy(cached=self._model)
        model.pool = self._pool.copy()
        copies = {"_met": set(self._met), "_audited": set(self._audited)}
        return {**state, **copies, "_pool": model.pool, "_model": model, "_marks": Marks({})}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _check_options(strategy: Any, pool_size: Any, stop: Any) -> None:
    if not callable(strategy) and strategy not in STRATEGIES:
        listed = ", ".join(repr(name) for name in STRATEGIES)
        raise ValueError(f"strategy must be {listed} or a function, got {strategy!r}.")
    whole = isinstance(pool_size, int | np.integer) and pool_size >= 1
    if pool_size is not None and (isinstance(pool_size, bool) or not whole):
        raise ValueError(f"pool_size must be an integer from 1 on, or None, got {pool_size!r}.")
    if stop is not None and not isinstance(stop, StoppingRule):
        raise TypeError(
            "stop must be a stopping rule, such as MarginExhausted() or MaxLabels(100), 'audit' or "
            f"None, got {stop!r}."
        )

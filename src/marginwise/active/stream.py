"""Active learning on streams: decide which labels to request."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from marginwise.active.scores import closeness

Bools = NDArray[np.bool_]


class MarginRule:
    """Request labels for the rows of a stream that lie inside the margin.

    This is the query rule of OnlineASVM^R [wang2009]_, ``abs(f) <= 1``. For more than two classes,
    the rule uses half the lead of the best class. As long as the model is not fitted, all labels
    are requested.

    Parameters
    ----------
    estimator : estimator
        Classifier with `decision_function`. It may be trained between calls.
    margin : float, default=1.0
        Half-width of the margin. Smaller values request fewer labels.

    Attributes
    ----------
    n_seen_ : int
        Number of rows that have arrived.
    n_asked_ : int
        Number of rows whose label was requested.

    See Also
    --------
    BudgetRule : Limit the fraction of rows whose label is requested.
    ExactRampSVC.wants : Method of one estimator with the same rule.
    ActiveLearner : Active learning from a pool.

    References
    ----------
    .. [wang2009] Z. Wang and S. Vucetic, "Fast Online Training of Ramp Loss Support Vector
       Machines", IEEE International Conference on Data Mining, 2009.

    Examples
    --------
    >>> from marginwise import OnlineSVC
    >>> from marginwise.active import MarginRule
    >>> model = OnlineSVC(kernel="linear", C=10).fit([[-1.0], [1.0]], [0, 1])
    >>> MarginRule(model).wants([[0.2], [3.0]])
    array([ True, False])
    """

    def __init__(self, estimator: Any, margin: float = 1.0) -> None:
        if not margin > 0:
            raise ValueError(f"margin must be above 0, got {margin!r}.")
        self.estimator = estimator
        self.margin = margin
        self.n_seen_ = 0
        self.n_asked_ = 0

    def wants(self, X: Any) -> Bools:
        """Return which of the arriving rows to label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            Rows in the order of arrival. They are added to `n_seen_`.

        Returns
        -------
        wanted : ndarray of shape (n_rows,), dtype=bool
            Whether to request the label of each row.
        """
        try:
            values = getattr(self.estimator, "_distances", self.estimator.decision_function)
            distance = closeness(np.asarray(values(X)))
        except NotFittedError:
            distance = np.zeros(X.shape[0] if hasattr(X, "shape") else len(X))
        wanted = self._decide(distance)
        self.n_seen_ += len(wanted)
        self.n_asked_ += int(wanted.sum())
        return wanted

    def _decide(self, distance: NDArray[np.float64]) -> Bools:
        return distance <= self.margin


class BudgetRule(MarginRule):
    """Request labels for at most a fraction of the rows of a stream.

    The rule requests the labels of rows within an adaptive distance of the boundary. This width
    shrinks after each request and grows after each row without a request, so that the budget is
    spent on the rows nearest to the boundary.

    Parameters
    ----------
    estimator : estimator
        Classifier with `decision_function`. It may be trained between calls.
    budget : float, default=0.1
        Maximum fraction of rows whose label is requested, exceeded by at most one row.
    margin : float, default=1.0
        Initial width around the boundary.
    step : float, default=0.01
        Speed at which the width adapts.

    Attributes
    ----------
    n_seen_ : int
        Number of rows that have arrived.
    n_asked_ : int
        Number of rows whose label was requested.
    width_ : float
        Current width around the boundary.

    See Also
    --------
    MarginRule : Request labels of all rows inside the margin.

    Examples
    --------
    >>> import numpy as np
    >>> from marginwise import OnlineSVC
    >>> from marginwise.active import BudgetRule
    >>> model = OnlineSVC(kernel="linear", C=10).fit([[-1.0], [1.0]], [0, 1])
    >>> rule = BudgetRule(model, budget=0.2)
    >>> int(rule.wants(np.linspace(-1, 1, 50)[:, None]).sum())
    10
    """

    def __init__(
        self, estimator: Any, budget: float = 0.1, *, margin: float = 1.0, step: float = 0.01
    ) -> None:
        super().__init__(estimator, margin)
        for name, value in (("budget", budget), ("step", step)):
            if not 0 < value < 1:
                raise ValueError(f"{name} must be between 0 and 1, both excluded, got {value!r}.")
        self.budget = budget
        self.step = step
        self.width_ = margin

    def _decide(self, distance: NDArray[np.float64]) -> Bools:
        wanted = np.zeros(len(distance), dtype=bool)
        spent = self.n_asked_
        for k, d in enumerate(distance):
            earned = self.budget * (self.n_seen_ + k + 1)
            if spent < earned and d <= self.width_:
                wanted[k] = True
                spent += 1
                self.width_ *= 1 - self.step
            elif d > self.width_:
                # With this ratio of steps, the width is stationary if the budget is just spent.
                self.width_ *= 1 + self.step * self.budget / (1 - self.budget)
        return wanted

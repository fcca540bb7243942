"""Results of ExactSVC: leave-one-out decision values and errors per C."""

from __future__ import annotations

from dataclasses import dataclass

from marginwise._arrays import Float, Ints


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out decision values of an exact classifier.

    Parameters
    ----------
    error : float
        Leave-one-out error: the fraction of the stored rows that are misclassified by the model
        trained without them.
    decision : ndarray of shape (n_stored,) or (n_stored, n_classes)
        Decision value of each row under the model that was not trained on it.
    ids : ndarray of shape (n_stored,)
        Ids of the rows, in the order of `decision`.

    See Also
    --------
    ExactSVC.leave_one_out : Compute leave-one-out predictions.

    Examples
    --------
    >>> from marginwise import ExactSVC
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1]
    >>> result = ExactSVC(kernel="linear", C=10).fit(X, y).leave_one_out()
    >>> result.error
    0.0
    """

    error: float
    decision: Float
    ids: Ints


@dataclass(frozen=True)
class TuningPath:
    """Leave-one-out errors of an exact classifier for several values of C.

    Parameters
    ----------
    Cs : ndarray of shape (n_values,)
        Values of C in ascending order.
    errors : ndarray of shape (n_values,)
        Leave-one-out error for each value.
    C : float
        Selected value of C.

    See Also
    --------
    ExactSVC.tune : Select C by the leave-one-out error.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from marginwise import ExactSVC
    >>> X, y = make_moons(100, noise=0.3, random_state=0)
    >>> result = ExactSVC(gamma=1.0).fit(X, y).tune([0.1, 1.0, 10.0])
    >>> result.errors.round(2).tolist(), result.C
    ([0.12, 0.07, 0.04], 10.0)
    """

    Cs: Float
    errors: Float
    C: float

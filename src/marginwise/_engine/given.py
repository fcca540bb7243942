"""The bias of a solution that was computed elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginwise._arrays import Float


@dataclass(frozen=True)
class GivenBias:
    """Biases that stand for those that the core would choose, until the model learns.

    The core computes the bias of a problem from the gradients of its members. The members of an
    imported model are its support vectors alone, so that the bias with which it was solved may be
    another point of the same interval. A problem keeps the bias that it was given as long as the
    core's own is the one that it was then, which ends with the first step.

    Parameters
    ----------
    own : ndarray of shape (problems,)
        What the core computed when the model was imported.
    given : ndarray of shape (problems,)
        What is used in its place.
    """

    own: Float
    given: Float

    def __call__(self, own: Float) -> Float:
        """Return the bias of each problem, where the core computes `own`."""
        bias: Float = np.where(own == self.own, self.given, own)
        return bias

    def state(self) -> Float:
        return np.stack([self.own, self.given])

    @classmethod
    def from_state(cls, state: Any, problems: int) -> GivenBias:
        """Return what had this state; raise ValueError if it is not one of so many problems."""
        cls.check(state)
        if state.shape[1] != problems:
            raise ValueError("_given_bias must have a column per problem")
        return cls(*np.asarray(state))

    @staticmethod
    def check(state: Any) -> None:
        """Raise ValueError unless the part of a state can be of some number of problems."""
        fits = isinstance(state, np.ndarray) and state.dtype == np.float64 and state.ndim == 2
        if not fits or len(state) != 2 or not np.isfinite(state).all():
            raise ValueError("_given_bias must be two rows of finite numbers")

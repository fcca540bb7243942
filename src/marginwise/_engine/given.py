"""The bias of a solution that was computed elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginwise._arrays import Float


@dataclass(frozen=True)
class GivenBias:
    """Imported biases, used instead of the core's until the model learns.

    The core computes the bias of a problem from the gradients of its members. The only members of
    an imported model are its support vectors, so the bias of the original solution may be another
    point of the same interval. A problem keeps its imported bias until its first optimization step
    changes the bias that the core computes.

    Parameters
    ----------
    own : ndarray of shape (problems,)
        Biases that the core computed when the model was imported.
    given : ndarray of shape (problems,)
        Imported biases.
    """

    own: Float
    given: Float

    def __call__(self, own: Float) -> Float:
        """Return the bias of each problem, given the biases that the core computes now."""
        bias: Float = np.where(own == self.own, self.given, own)
        return bias

    def state(self) -> Float:
        return np.stack([self.own, self.given])

    @classmethod
    def from_state(cls, state: Any, problems: int) -> GivenBias:
        """Restore from a state; raise ValueError if it does not match the number of problems."""
        cls.check(state)
        if state.shape[1] != problems:
            raise ValueError("_given_bias must have a column per problem")
        return cls(*np.asarray(state))

    @staticmethod
    def check(state: Any) -> None:
        """Raise ValueError unless this part of a state is valid for some number of problems."""
        fits = isinstance(state, np.ndarray) and state.dtype == np.float64 and state.ndim == 2
        if not fits or len(state) != 2 or not np.isfinite(state).all():
            raise ValueError("_given_bias must be two rows of finite numbers")

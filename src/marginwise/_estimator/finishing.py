"""Finishing: bringing a model that a stream left unfinished to the solution for its examples."""

from __future__ import annotations

from typing import Self

from sklearn.utils.validation import check_is_fitted

from marginwise._estimator.base import KernelModel
from marginwise._estimator.exclusive import alone_once
from marginwise._training.loop import finish_only


class FinishingMixin(KernelModel):
    """Adds `finish` to estimators whose learning leaves violating pairs behind."""

    finish_at_end: bool

    @alone_once
    def finish(self) -> Self:
        """Solve the problem for the examples held: REPROCESS until no pair violates by `tol`.

        Returns
        -------
        self : object
            The finished model.
        """
        check_is_fitted(self)
        draft = self._draft()
        self._step_aside()
        finish_only(draft._trainer)
        draft._report()
        self._take(draft)
        return self

    @property
    def _finishes(self) -> bool:
        return bool(self.finish_at_end)

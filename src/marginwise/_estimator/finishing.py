"""Finishing: bringing a model that a stream left unfinished to the solution for its examples."""

from __future__ import annotations

from typing import Self

from sklearn.utils.validation import check_is_fitted

from marginwise._estimator.base import KernelModel, on_draft


class FinishingMixin(KernelModel):
    """Mixin that adds `finish` to estimators whose learning leaves violating pairs."""

    @on_draft
    def finish(self) -> Self:
        """Solve the problem for the stored examples: REPROCESS until no pair violates by `tol`.

        With `replay`, all rows of the reservoir are learned again before.

        Returns
        -------
        self : object
            The finished estimator.
        """
        check_is_fitted(self)
        self._step_aside()
        self._settle()
        return self

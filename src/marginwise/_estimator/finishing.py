"""Mixin for `finish`, which solves the problem for the stored examples."""

from __future__ import annotations

from typing import Self

from sklearn.utils.validation import check_is_fitted

from marginwise._estimator.base import KernelModel, on_draft


class FinishingMixin(KernelModel):
    """Mixin that adds the `finish` method."""

    @on_draft
    def finish(self) -> Self:
        """Solve the SVM problem for the stored examples.

        REPROCESS steps are taken until no pair violates the optimality conditions by more than
        `tol`. With `replay`, all rows of the reservoir are learned again first.

        Returns
        -------
        self : object
            The updated estimator.
        """
        check_is_fitted(self)
        self._step_aside()
        self._settle()
        return self

"""What the claims of this paper share."""

from __future__ import annotations

from reproduce.experiment import NOT_TESTABLE, Verdict, judged

DEPENDS = (
    "The paper does not describe its draw: the claim holds if attacks are drawn by type, a setting "
    "chosen because it leads to the behaviour in the paper, but not if they are drawn by record."
)


def because(holds: bool | None, reason: str) -> str:
    """Return the reason if a claim was tested and does not hold."""
    return reason if holds is False else ""


def judged_on_both(types: bool | None, records: bool | None) -> Verdict:
    """Return the verdict of a claim that must hold however attacks are drawn."""
    return judged(types) if types == records else NOT_TESTABLE

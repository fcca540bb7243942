"""What the claims of this paper share."""

from __future__ import annotations


def because(holds: bool | None, reason: str) -> str:
    """Return the reason if a claim was tested and does not hold."""
    return reason if holds is False else ""

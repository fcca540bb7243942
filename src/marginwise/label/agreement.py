"""Items that several annotators label, and how often they agree."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from marginwise.label.events import Answers

BYTES = 8  # of the hash that is mapped to a number from 0 to 1


@dataclass(frozen=True)
class Agreement:
    """Agreement between two annotators.

    Parameters
    ----------
    one, two : str
        Names of the annotators.
    items : int
        Number of items that both labelled, without skipped items.
    agree : float
        Fraction of these items with the same label.
    kappa : float or None
        Cohen's kappa, the agreement corrected for chance. None if both annotators gave the same
        single label to all items, because kappa is not defined in that case.
    """

    one: str
    two: str
    items: int
    agree: float
    kappa: float | None


def share_of(seed: int, purpose: str, item: str) -> float:
    """Return a number from 0 to 1 that depends only on an item, a purpose and a seed.

    The items whose number is below 0.1 are a random tenth of all items. The selection is the same
    in every process and does not depend on the number and order of the items. A larger fraction
    contains the smaller ones. Selections for different purposes are independent.
    """
    digest = hashlib.blake2b(f"{purpose}:{seed}:{item}".encode(), digest_size=BYTES).digest()
    return int.from_bytes(digest, "big") / 2.0 ** (8 * BYTES)


def is_shared(item: str, overlap: float, seed: int) -> bool:
    """Return whether every annotator is asked about an item."""
    return share_of(seed, "overlap", item) < overlap


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of pairs of labels, or None if it is not defined.

    Kappa is not defined without pairs, or if the agreement expected by chance is 1.
    """
    n = len(pairs)
    first, second = (Counter(labels) for labels in zip(*pairs, strict=True)) if pairs else ({}, {})
    by_chance = sum(count * second[label] for label, count in first.items())  # times n^2
    if by_chance == n * n:
        return None
    observed = sum(a == b for a, b in pairs)
    return (observed * n - by_chance) / (n * n - by_chance)


def agreements(answers: Answers) -> list[Agreement]:
    """Return the agreement of each pair of annotators who labelled items in common."""
    labels = {
        name: {event.item: event.label for event in answers.effective(name) if event.label}
        for name in answers.annotators()
    }
    found = []
    for one, two in itertools.combinations(labels, 2):
        shared = [item for item in labels[one] if item in labels[two]]
        pairs = [(labels[one][item], labels[two][item]) for item in shared]
        if pairs:
            agree = sum(a == b for a, b in pairs) / len(pairs)
            found.append(Agreement(one, two, len(pairs), agree, cohen_kappa(pairs)))
    return found

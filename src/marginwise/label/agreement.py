"""Items that several annotators label, and how often they agree."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from marginwise.label.events import Answers

BYTES = 8  # of a hash that is compared with a share


@dataclass(frozen=True)
class Agreement:
    """How often two annotators gave the same label.

    Parameters
    ----------
    one, two : str
        The annotators.
    items : int
        Number of items that both labelled; skipped ones do not count.
    agree : float
        Share of them with the same label.
    kappa : float or None
        Cohen's kappa, the agreement beyond that of chance; None if both gave one and the same
        label throughout, where chance alone agrees always.
    """

    one: str
    two: str
    items: int
    agree: float
    kappa: float | None


def share_of(seed: int, purpose: str, item: str) -> float:
    """Return a number from 0 to 1 that depends on an item, a purpose and a seed alone.

    Items whose number is below 0.1 are a tenth of all, the same in every process, whatever the
    number and order of the items; a larger share contains the smaller ones. Items that are chosen
    for different purposes are chosen independently.
    """
    digest = hashlib.blake2b(f"{purpose}:{seed}:{item}".encode(), digest_size=BYTES).digest()
    return int.from_bytes(digest, "big") / 2.0 ** (8 * BYTES)


def is_shared(item: str, overlap: float, seed: int) -> bool:
    """Return whether an item is one that every annotator is asked about."""
    return share_of(seed, "overlap", item) < overlap


def cohen_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa of pairs of labels; None where it is not defined.

    That is without pairs, or if chance alone would always agree.
    """
    n = len(pairs)
    first, second = (Counter(labels) for labels in zip(*pairs, strict=True)) if pairs else ({}, {})
    by_chance = sum(count * second[label] for label, count in first.items())  # times n^2
    if by_chance == n * n:
        return None
    observed = sum(a == b for a, b in pairs)
    return (observed * n - by_chance) / (n * n - by_chance)


def agreements(answers: Answers) -> list[Agreement]:
    """Return the agreement of each two annotators who labelled some of the same items."""
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

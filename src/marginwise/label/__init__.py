"""Labels given by people: what they answered, stored so that nothing is lost."""

from marginwise.label.events import KINDS, PURPOSES, Answer, Answers, Event
from marginwise.label.opening import StoreError
from marginwise.label.store import ItemSet, LabelStore

__all__ = [
    "KINDS",
    "PURPOSES",
    "Answer",
    "Answers",
    "Event",
    "ItemSet",
    "LabelStore",
    "StoreError",
]

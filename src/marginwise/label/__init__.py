"""Storage of the labels of annotators."""

from marginwise.label.events import KINDS as KINDS
from marginwise.label.events import PURPOSES as PURPOSES
from marginwise.label.events import Answer as Answer
from marginwise.label.events import Answers as Answers
from marginwise.label.events import Event as Event
from marginwise.label.opening import StoreError as StoreError
from marginwise.label.store import ItemSet as ItemSet
from marginwise.label.store import LabelStore as LabelStore

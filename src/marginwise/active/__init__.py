"""Active learning: query strategies, stopping rules and stream rules."""

from marginwise.active.audit import ErrorAudit
from marginwise.active.learner import ActiveLearner
from marginwise.active.questions import STRATEGIES, PoolExhaustedError
from marginwise.active.recall import TargetRecall
from marginwise.active.scores import closeness, pool_size_for
from marginwise.active.stopping import MarginExhausted, MaxLabels, SupportVectorPlateau
from marginwise.active.stream import BudgetRule, MarginRule
from marginwise.active.verdict import AllOf, AnyOf, StoppingRule, Verdict

__all__ = [
    "STRATEGIES",
    "ActiveLearner",
    "AllOf",
    "AnyOf",
    "BudgetRule",
    "ErrorAudit",
    "MarginExhausted",
    "MarginRule",
    "MaxLabels",
    "PoolExhaustedError",
    "StoppingRule",
    "SupportVectorPlateau",
    "TargetRecall",
    "Verdict",
    "closeness",
    "pool_size_for",
]

"""The estimators that take Dask collections."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any, ClassVar, Self, TypeVar

from numpy.typing import ArrayLike

from marginwise._checks import Rule, integer
from marginwise._estimator.classifier import KernelClassifier
from marginwise.dask.training import Call, DaskTraining
from marginwise.gap import GapSVC
from marginwise.online import OnlineSVC

OWN = ("client", "sift_rounds", "round_rows")  # parameters
FITTED = ("rounds_",)  # attributes
_Class = TypeVar("_Class", bound=type)

_PARAMETERS = """\
    client : distributed.Client or None, default=None
        Connection to the cluster. None uses the current client; if there is none, a `LocalCluster`
        is started for the call and closed after it.
    sift_rounds : int, default=1
        Number of passes over the data in which rows are sifted. More passes find rows that the
        model passed over while it was young.
    round_rows : int, default=16384
        Number of rows that are judged by one state of the model. Workers share them, up to 2,048
        rows each: with many workers, use a multiple of that per worker. The model depends on it.
"""


def parameters_of(local: type) -> Callable[[_Class], _Class]:
    """Let a class have the parameters of its local counterpart besides its own."""

    def complete(kind: _Class) -> _Class:
        inherited = list(inspect.signature(local).parameters.values())
        own = [p for p in inspect.signature(kind).parameters.values() if p.name in OWN]
        me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        kind.__init__.__signature__ = inspect.Signature([me, *inherited, *own])
        summary, _, examples = (kind.__doc__ or "").partition("    Examples\n")
        described = inspect.getdoc(local) or ""
        kind.__doc__ = _joined(summary, described, examples)
        return kind

    return complete


def _joined(summary: str, described: str, examples: str) -> str:
    """Return a docstring that has the parameters and attributes of another."""
    indented = "\n".join(f"    {line}" if line else line for line in described.splitlines())
    start = indented.index("    Parameters\n")
    middle = indented.index("    Attributes\n")
    end = indented.index("    See Also\n")
    parameters = indented[start:middle].rstrip("\n") + "\n" + _PARAMETERS
    attributes = indented[middle:end].rstrip("\n")
    rounds = (
        "    rounds_ : list of dict\n        What each round of the last call has cost, in seconds, and what was "
        "counted.\n"
    )
    attributes = f"{attributes}\n{rounds}"
    references = indented[indented.index("    References\n") : indented.index("    Examples\n")]
    return (
        f"{summary.rstrip()}\n\n{parameters}\n{attributes}\n{references.rstrip()}\n\n"
        f"    Examples\n{examples}"
    )


class DaskClassifier(DaskTraining):
    """Base of the estimators that take Dask collections."""

    _local: ClassVar[type[KernelClassifier]]
    _own_rules: ClassVar[dict[str, Rule]] = {
        "sift_rounds": integer(1),
        "round_rows": integer(1),
    }

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sift: float = 0.0,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_minutes: float = 10.0,
    ) -> Self:
        return self._fit_blocks(X, y, Call(sift, checkpoint, checkpoint_minutes))

    def fit_source(
        self,
        source: Any,
        classes: ArrayLike | None = None,
        *,
        sift: float = 0.0,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_minutes: float = 10.0,
    ) -> Self:
        return self._fit_from(source, classes, Call(sift, checkpoint, checkpoint_minutes))

    def to_local(self) -> Any:
        """Return the ordinary estimator, which does not need a cluster.

        Returns
        -------
        model : OnlineSVC or GapSVC
            Independent copy of the model.
        """
        model = self._now()
        local = self._local.__new__(self._local)
        local.__dict__ = {
            name: value
            for name, value in model.__dict__.items()
            if name not in OWN and name not in FITTED
        }
        if "_engine" in local.__dict__:
            local._engine = local._engine.clone()
        return local

    def __sklearn_clone__(self) -> Self:
        twin = self._copy()
        twin.client = None
        made: Self = super(DaskClassifier, twin).__sklearn_clone__()
        made.client = self.client  # a connection cannot be copied
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}


@parameters_of(OnlineSVC)
class DaskOnlineSVC(DaskClassifier, OnlineSVC):
    """`OnlineSVC` that learns from Dask collections.

    Examples
    --------
    """

    _local = OnlineSVC
    _rules: ClassVar[dict[str, Rule]] = {**OnlineSVC._rules, **DaskClassifier._own_rules}

    def __init__(
        self,
        *,
        client: Any = None,
        sift_rounds: int = 1,
        round_rows: int = 16384,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.client = client
        self.sift_rounds = sift_rounds
        self.round_rows = round_rows


@parameters_of(GapSVC)
class DaskGapSVC(DaskClassifier, GapSVC):
    """`GapSVC` that learns from Dask collections.

    Examples
    --------
    """

    _local = GapSVC
    _rules: ClassVar[dict[str, Rule]] = {**GapSVC._rules, **DaskClassifier._own_rules}

    def __init__(
        self,
        *,
        client: Any = None,
        sift_rounds: int = 1,
        round_rows: int = 16384,
        **parameters: Any,
    ) -> None:
        super().__init__(**parameters)
        self.client = client
        self.sift_rounds = sift_rounds
        self.round_rows = round_rows

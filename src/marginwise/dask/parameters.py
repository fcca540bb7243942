"""Parameters and docstrings of estimators that extend a local counterpart."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

OWN = ("client", "sift_rounds", "round_rows")
_Class = TypeVar("_Class", bound=type)

_PARAMETERS = """\
client : distributed.Client, str or None, default=None
    Connection to the cluster, or the address of its scheduler. None uses the current client or, if
    there is none, starts a `LocalCluster` with one worker per processor for the duration of the
    call. Pickled copies have None.
sift_rounds : int, default=1
    Number of passes over the data. More passes find rows that early models rejected. Up to three
    additional passes follow as long as an audit shows that many rows were missed.
round_rows : int, default=16384
    Number of rows that are evaluated with the same snapshot of the model. Workers process them in
    tasks of up to 2,048 rows, so use at least 2,048 per worker. The model depends on this value."""

_ATTRIBUTES = """\
rounds_ : list of dict
    Cost of each round of the last training call: numbers of rows evaluated and returned, stored
    examples, bytes of the snapshot, seconds that workers spent reading and scoring rows ("read",
    "score", and "slowest" for the longest task), seconds that the client process spent waiting,
    learning and taking the snapshot ("wait", "learn", "ship"), seconds in which another thread
    published it ("publish"), and counts of sifting ("tally")."""

_REFERENCE = """\
.. [agarwal2013] A. Agarwal, L. Bottou, M. Dudík and J. Langford, "Para-active learning",
   arXiv:1310.8243, 2013."""


def extends(local: type) -> Callable[[_Class], _Class]:
    """Decorate a class to inherit the parameters of its local counterpart."""

    def extend(kind: _Class) -> _Class:
        initialize: Any = vars(kind)["__init__"]
        own = [p for p in inspect.signature(initialize).parameters.values() if p.name in OWN]
        inherited = inspect.signature(local).parameters.values()
        me = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        initialize.__signature__ = inspect.Signature([me, *inherited, *own])
        kind.__doc__ = _described(inspect.getdoc(kind) or "", inspect.getdoc(local) or "")
        return kind

    return extend


def _described(own: str, inherited: str) -> str:
    """Return a docstring with the parameters, attributes and references of another."""
    text, _, rest = own.partition("See Also\n--------\n")
    seen, _, examples = rest.partition("Examples\n--------\n")
    sections = [
        text.rstrip(),
        f"{_section(inherited, 'Parameters')}\n{_PARAMETERS}",
        f"{_section(inherited, 'Attributes')}\n{_ATTRIBUTES}",
        f"See Also\n--------\n{seen.rstrip()}",
        f"{_section(inherited, 'References')}\n{_REFERENCE}",
        f"Examples\n--------\n{examples.rstrip()}",
    ]
    return "\n\n".join(sections) + "\n"


def _section(text: str, title: str) -> str:
    """Return a section of a docstring, with its title."""
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if line == title)
    ends = (k for k in range(start + 2, len(lines)) if lines[k].startswith("---"))
    end = next(ends, len(lines) + 1) - 1
    return "\n".join(lines[start:end]).rstrip()

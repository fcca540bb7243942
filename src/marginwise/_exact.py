"""What the exact estimators share: forgetting, the window, the path, and what they warn of."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from marginwise._exclusive import alone_once
from marginwise._input import Ints
from marginwise._machine import Machine
from marginwise._model import KernelModel
from marginwise._params import Rule, boolean, either, integer, none, one_of

SETS = ("idle", "free", "bounded", "gone")  # as the core numbers them
MIGRATION = np.dtype(
    [("cause", "i8"), ("id", "i8"), ("problem", "i4"), ("source", "U7"), ("target", "U7")]
)


class ExactModel(KernelModel):
    """Base of the estimators whose model is the exact solution after every call."""

    window: int | None
    evict: Literal["lightest", "oldest"]
    record: bool

    _algorithm = "exact"
    _trusting = False
    _rules: ClassVar[dict[str, Rule]] = {
        **KernelModel._rules,
        "window": either(none(), integer(2)),
        "evict": one_of("lightest", "oldest"),
        "record": boolean(),
    }

    @alone_once
    def forget(self, ids: ArrayLike) -> Self:
        """Forget examples: the model becomes the one that never saw them.

        All of them are forgotten, or, if one is unknown, none.

        Parameters
        ----------
        ids
            Ids of examples that the model holds (`ids_`): row numbers after `fit`.

        Raises
        ------
        KeyError
            If an id is not held; the model is as it was.
        """
        check_is_fitted(self)
        names = np.atleast_1d(np.asarray(ids))
        if names.ndim != 1 or (names.size and names.dtype.kind not in "iu"):
            raise ValueError(f"ids must be integers, got {names.dtype} of shape {names.shape}.")
        names = np.unique(names)
        self._check_held(names)
        draft = self._draft()
        self._step_aside()
        draft._machine.forget(names.astype(np.int64))
        draft._report()
        self._take(draft)
        return self

    def _check_held(self, names: NDArray[Any]) -> None:
        """Raise unless examples of all these ids are held."""
        known = names <= np.iinfo(np.int64).max  # others cannot be
        known[known] = self._machine.holds(names[known].astype(np.int64))
        unknown = names[~known]
        if unknown.size:
            listed = ", ".join(str(name) for name in unknown[:5].tolist())
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise KeyError(f"no example of id {listed}{more} is held; nothing was forgotten.")

    @property
    def path_(self) -> NDArray[Any]:
        """The migrations that learning and forgetting caused, in their order (``record=True``).

        An array with the fields "cause", the id of the example that was learned or forgotten, the
        first of several, or -1 for `set_C`;
        "id", that of the example that went from one set to another; "problem", the number of the
        class where there are several; "source" and "target", the sets: "idle" (no support vector),
        "free" (on the margin), "bounded" (at its bound), "gone" (forgotten).
        """
        machine = self._fitted()
        if not machine.plan.record:
            raise AttributeError("path_ is kept with record=True only.")
        steps = machine.path
        path = np.empty(len(steps), dtype=MIGRATION)
        path["cause"], path["id"], path["problem"] = steps[:, :3].T
        names = np.array(SETS)
        path["source"], path["target"] = names[steps[:, 3]], names[steps[:, 4]]
        return path

    def _report(self) -> None:
        machine = self.__dict__.get("_machine")
        if machine is None:
            return
        resolved, violation = machine.take_resolved(), machine.unsolved
        if violation > 0:
            message = (
                f"the model is not the solution: its conditions are violated by {violation:.2g} of "
                "the margin, because kernel values are too large or too different for double "
                "precision. Scale the features, limit outliers, or lower C."
            )
        elif resolved == 0:
            return
        elif machine.indefinite:
            message = (
                "the kernel is not positive semi-definite, so that there is no path to follow; "
                "the problem was solved by pairs of coordinates instead."
            )
        else:
            message = (
                "the path from one solution to the next could not be followed; the problem was "
                "solved by pairs of coordinates instead, and the conditions of the solution hold."
            )
        warnings.warn(f"{type(self).__name__}: {message}", ConvergenceWarning, stacklevel=4)

    def _check_names(self, names: Ints) -> None:
        known, counts = np.unique(names, return_counts=True)
        twice = known[counts > 1]
        held = names[self._machine.holds(names)]
        if twice.size or held.size:
            name = int((twice if twice.size else held)[0])
            what = "given twice" if twice.size else "learned already"
            raise ValueError(
                f"the example of id {name} is {what}; forget it first, or give the row an id of "
                "its own."
            )

    def _window_settings(self) -> dict[str, Any]:
        return {
            "window": 0 if self.window is None else int(self.window),
            "oldest": self.evict == "oldest",
            "screen": True,
        }

    @staticmethod
    def _machine_state(machine: Machine) -> dict[str, Any]:
        state = KernelModel._machine_state(machine)
        if machine.plan.record:
            state["_steps"] = machine.path
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        steps = state.pop("_steps", None)
        super().__setstate__(state)
        if steps is not None:
            self._machine.set_path(steps)

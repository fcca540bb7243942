"""Training progress: a bar in terminals and notebooks, log lines elsewhere."""

from __future__ import annotations

import functools
import logging
import sys
import time
import warnings
from types import TracebackType
from typing import Any, Protocol

EVERY = 5.0  # seconds between log lines
LOGGER = logging.getLogger("marginwise")


class _Display(Protocol):
    """Display of the progress of training."""

    def learned(self, rows: int, members: int, delta: float) -> None: ...

    def count(self, units: int) -> None: ...

    def finishing(self, delta: float) -> None: ...

    def close(self) -> None: ...


class Progress:
    """Show rows per second, stored examples and the violation δ during training.

    In terminals and notebooks, this is a progress bar. Elsewhere, a line is logged every few
    seconds and at the end (logger ``marginwise``, level INFO), or written to stderr if logging is
    not configured.

    Parameters
    ----------
    total : int
        Number of rows to learn.
    verbose : int
        Whether to show progress; 0 shows nothing.
    done : int, default=0
        Number of rows learned earlier, which the estimate of the remaining time ignores.
    unit : str, default="row"
        Name of the units that are counted.
    """

    def __init__(self, total: int, verbose: int, done: int = 0, unit: str = "row") -> None:
        self._display: _Display | None = None
        if verbose:
            shows_bar = in_notebook() or (sys.stderr is not None and sys.stderr.isatty())
            self._display = (_Bar if shows_bar else _Lines)(total, done, unit)

    def learned(self, examples: int, members: int, delta: float) -> None:
        """Count rows and show the state of the model after them.

        Parameters
        ----------
        examples : int
            Number of rows learned since the last call.
        members : int
            Number of examples stored in the model.
        delta : float
            Largest violation of the optimality conditions.
        """
        if self._display is not None:
            self._display.learned(examples, members, delta)

    def count(self, units: int) -> None:
        """Count units that have no state to show.

        Parameters
        ----------
        units : int
            Number of units since the last call.
        """
        if self._display is not None:
            self._display.count(units)

    def finishing(self, delta: float) -> None:
        """Show the remaining violation while the model is finished.

        Parameters
        ----------
        delta : float
            Largest violation of the optimality conditions.
        """
        if self._display is not None:
            self._display.finishing(delta)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._display is not None:
            self._display.close()


def in_notebook() -> bool:
    """Return whether the code runs in a Jupyter kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


@functools.cache
def _bar_class() -> Any:
    """Return the tqdm widget in notebooks with ipywidgets, the plain bar elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm warns if ipywidgets is absent
        from tqdm.auto import tqdm
    return tqdm


class _Bar:
    def __init__(self, total: int, done: int, unit: str) -> None:
        name = "example" if unit == "row" else unit
        self._bar: Any = _bar_class()(
            total=total, initial=done, unit=name, unit_scale=True, file=sys.stderr
        )

    def learned(self, rows: int, members: int, delta: float) -> None:
        self._bar.set_postfix_str(f"members {members}, δ {delta:.3g}", refresh=False)
        self._bar.update(rows)

    def count(self, units: int) -> None:
        self._bar.update(units)

    def finishing(self, delta: float) -> None:
        self._bar.set_postfix_str(f"finishing, δ {delta:.3g}", refresh=True)

    def close(self) -> None:
        self._bar.close()


class _Lines:
    def __init__(self, total: int, done: int, unit: str) -> None:
        self._total, self._unit = total, f"{unit}s"
        self._before = self._done = done
        self._state = ""
        self._started = self._shown = time.monotonic()

    def learned(self, rows: int, members: int, delta: float) -> None:
        self._done += rows
        self._state = f", {members} members, violation {delta:.3g}"
        self._show_if_due("")

    def count(self, units: int) -> None:
        self._done += units
        self._show_if_due("")

    def finishing(self, delta: float) -> None:
        self._state = f", violation {delta:.3g}"
        self._show_if_due("finishing: ")

    def close(self) -> None:
        seconds = time.monotonic() - self._started
        log(f"{self._rows()}{self._state}, {seconds:.1f} s")

    def _show_if_due(self, prefix: str) -> None:
        if time.monotonic() - self._shown < EVERY:
            return
        self._shown = time.monotonic()
        left = (self._total - self._done) / max(self._rate(), 1e-9)
        ending = f", {left:.0f} s left" if 0 < left < 1e9 else ""
        log(f"{prefix}{self._rows()}{self._state}{ending}")

    def _rows(self) -> str:
        if not self._total:  # finishing only
            return "all rows"
        rate = f"{self._rate():.0f} {self._unit}/s"
        return f"{self._done} of {self._total} {self._unit}, {rate}"

    def _rate(self) -> float:
        return (self._done - self._before) / max(time.monotonic() - self._started, 1e-9)


def log(line: str) -> None:
    """Log a line, or write it to stderr if logging is not configured."""
    if LOGGER.hasHandlers():
        LOGGER.info(line)
    elif LOGGER.level <= logging.INFO and sys.stderr is not None:
        sys.stderr.write(f"marginwise: {line}\n")
        sys.stderr.flush()

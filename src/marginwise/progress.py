"""A progress bar on stderr, on a terminal only."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any

from tqdm import tqdm


class Progress:
    """Show examples/s, members and δ while a model learns; silent unless asked and on a terminal.

    Parameters
    ----------
    total
        Examples to come.
    verbose
        0 shows nothing.
    done
        Examples that were learned before, which do not count for the time left.
    """

    def __init__(self, total: int, verbose: int, done: int = 0) -> None:
        silent = not verbose or not sys.stderr.isatty()
        self._bar: Any = tqdm(
            total=total,
            initial=done,
            disable=silent,
            unit="example",
            unit_scale=True,
            file=sys.stderr,
        )

    def learned(self, examples: int, members: int, delta: float) -> None:
        """Count examples, and show the state of the model after them."""
        self._bar.set_postfix_str(f"members {members}, δ {delta:.3g}", refresh=False)
        self._bar.update(examples)

    def finishing(self, delta: float) -> None:
        """Show how far finishing has come."""
        self._bar.set_postfix_str(f"finishing, δ {delta:.3g}", refresh=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.close()

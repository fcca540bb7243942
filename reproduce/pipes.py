"""Standard output that is closed early, as by `| head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def until_closed(main: Callable[[], int]) -> int:
    """Call a command; if nobody reads its output any more, end it without a traceback."""
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # What is still in the buffer goes nowhere when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status

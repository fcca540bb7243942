"""Standard output that is closed early, as by `| head`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable


def until_closed(main: Callable[[], int]) -> int:
    """Call a command; if its output is closed, end it without a traceback."""
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # Discard what Python would write from the buffer at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status

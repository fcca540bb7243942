"""Run `python -m reproduce`."""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # before NumPy is imported

from reproduce.command import main  # noqa: E402
from reproduce.pipes import until_closed  # noqa: E402

if __name__ == "__main__":
    raise SystemExit(until_closed(main))

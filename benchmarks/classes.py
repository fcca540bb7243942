"""Time and memory of a fit with thousands of classes of one row each.

    python benchmarks/classes.py                 1,000, 2,000 and 4,000 classes
    python benchmarks/classes.py 10000           takes minutes and several gigabytes

Each number of classes runs in its own process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

import memory
import numpy as np


def measure(classes: int) -> None:
    """Fit, and print CPU seconds, members and peak memory."""
    from marginwise import OnlineSVC

    X = np.random.default_rng(0).normal(size=(classes, 8))
    began = time.process_time()
    model = OnlineSVC(gamma=0.1, n_jobs=1, random_state=0).fit(X, np.arange(classes))
    seconds, held = time.process_time() - began, memory.peak() / 2**30
    print(f"{classes:8,} classes {seconds:8.1f} s {len(model.ids_):8,} members {held:6.2f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("classes", nargs="*", type=int, default=[1000, 2000, 4000])
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for classes in options.classes:
        if options.worker:
            measure(classes)
        else:
            subprocess.run([sys.executable, __file__, "--worker", str(classes)], check=True)


if __name__ == "__main__":
    main()

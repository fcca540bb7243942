"""Time and memory of a fit with very many classes, each of one row.

    python benchmarks/classes.py                 1,000, 2,000 and 4,000 classes
    python benchmarks/classes.py 10000           minutes, and some gigabytes

Each number of classes runs in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import time

import memory
import numpy as np


def measure(classes: int) -> None:
    """Fit, and print processor seconds, members and the most memory held."""
    from marginwise import OnlineSVC

    X = np.random.default_rng(0).normal(size=(classes, 8))
    began = time.process_time()
    model = OnlineSVC(gamma=0.1, n_jobs=1, random_state=0).fit(X, np.arange(classes))
    seconds, held = time.process_time() - began, memory.peak() / 2**30
    print(f"{classes:8,} classes {seconds:8.1f} s {len(model.ids_):8,} members {held:6.2f} GB")


def main() -> None:
    if "--worker" in sys.argv:
        measure(int(sys.argv[-1]))
        return
    for classes in [int(given) for given in sys.argv[1:]] or [1000, 2000, 4000]:
        subprocess.run([sys.executable, __file__, "--worker", str(classes)], check=True)


if __name__ == "__main__":
    main()

"""Compare the errors of DaskOnlineSVC and OnlineSVC.fit on sets of `gap_to_svc.py`.

    python benchmarks/dask_accuracy.py                   all sets, some minutes
    python benchmarks/dask_accuracy.py --only rare10     one set

A training set has ten blocks, and each of three seeds draws its rows. Differences are those of the
errors on the same test rows, averaged over the seeds. With the first seed, one and three workers
are compared with two: they must give the same model.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import scipy.sparse as sp
from cache import data_folder
from dask_training import close, cluster, digest
from gap_sets import SETS, SetCase
from paired import Problem, averaged, difference, stored
from report import heading, table, write

HERE = Path(__file__).resolve().parent
SEEDS, BLOCKS = 3, 10
ROWS = {
    "rare10": 20_000,
    "rare2": 20_000,
    "drift": 20_000,
    "a9a": 20_000,
    "covtype2": 20_000,
    "checkerboard": 20_000,
    "kdd": 20_000,
    "mnist8": 20_000,
    "mnist10": 10_000,
    "usps10_dense": 5_000,
}


def fit_on_dask(problem: Problem, seed: int, client: Any) -> Any:
    import dask.array as da

    from marginwise.dask import DaskOnlineSVC

    X, y = problem.split.X, problem.split.y
    size, sparse = -(-len(y) // BLOCKS), sp.issparse(X)
    blocks = da.from_array(X.toarray() if sparse else X, chunks=(size, X.shape[1]))
    model = DaskOnlineSVC(client=client, random_state=seed, **problem.params)
    return model.fit(
        blocks.map_blocks(sp.csr_matrix) if sparse else blocks, da.from_array(y, chunks=size)
    )


def result(model: Any, problem: Problem) -> dict[str, Any]:
    return stored(model.predict(problem.split.X_test) != problem.split.y_test)


def compare(name: str, folder: str, clients: dict[int, Any]) -> dict[str, Any]:
    """Return the mean difference of a set, and whether the workers matter."""
    from marginwise import OnlineSVC

    found, digests = [], set()
    for seed in range(SEEDS):
        problem = SetCase(name, ROWS[name], seed, (seed,)).problem(folder)
        split = problem.split
        alone = OnlineSVC(random_state=seed, **problem.params).fit(split.X, split.y)
        spread = fit_on_dask(problem, seed, clients[2])
        found.append((result(spread.to_local(), problem), result(alone, problem)))
        if seed == 0:
            others = (fit_on_dask(problem, seed, clients[workers]) for workers in (1, 3))
            digests = {digest(model) for model in (spread, *others)}
    mean = averaged([difference(*pair) for pair in found])
    return {
        "rows": ROWS[name],
        "fit": sum(alone["error"] for _, alone in found) / SEEDS,
        "dask": sum(spread["error"] for spread, _ in found) / SEEDS,
        "difference": mean.points,
        "standard_error": mean.error,
        "same_model": len(digests) == 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="SET")
    add("--out", type=Path, default=HERE / "results" / "dask_accuracy.json")
    options = parser.parse_args()
    files = sorted({options.data / file for name in options.only if (file := SETS[name].file)})
    clients = {workers: cluster(workers) for workers in (1, 2, 3)}
    sets = {}
    for name in options.only:
        sets[name] = compare(name, str(options.data), clients)
        write(options.out, {**heading(HERE.parent, files), "sets": sets})
    for client in clients.values():
        close(client)
    columns = ("set", "rows", "fit, %", "Dask, %", "difference", "1, 2 and 3 workers")
    lines = [
        [
            name,
            f"{one['rows']:,}",
            f"{one['fit']:.2f}",
            f"{one['dask']:.2f}",
            f"{one['difference']:+.3f} ± {one['standard_error']:.3f}",
            "the same model" if one["same_model"] else "different models",
        ]
        for name, one in sets.items()
    ]
    print(table(columns, lines))


if __name__ == "__main__":
    main()

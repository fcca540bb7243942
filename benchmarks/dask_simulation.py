"""Simulate the speed-up of training on Dask by the number of workers, with measured times.

    python benchmarks/dask_simulation.py measure                 all works, 1 and 2 workers
    python benchmarks/dask_simulation.py measure --only digits   one work, 1 and 2 workers
    python benchmarks/dask_simulation.py rounds                  rounds of several sizes
    python benchmarks/dask_simulation.py predict                 2 to 256 workers; table and picture
    python benchmarks/dask_simulation.py page                    update docs/guide/dask.md

measure  Trains `DaskOnlineSVC` on a `LocalCluster` of single-threaded workers and records the costs
         of the rounds. The rounds of the run with one worker are simulated with one and two
         workers, which share the cores of this machine with the driver, and compared with the runs.
rounds   Measures the fraction of rows that are returned and the test error, for rounds of 16,384
         and 65,536 rows.
predict  Simulates rounds with the costs of the second half of a run, on clusters where each process
         has its own core, for several fractions of returned rows. Rounds have 2,048 rows per
         worker, but at least 16,384 rows, and at most those of a stage of the source.

Results are stored in `results/dask_simulation.json`.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from cache import data_folder
from dask_costs import NETWORKS, SHARES, WORKERS, Costs, checked, predictions
from dask_service import FILES, TITLES, Row, count_returned, in_process, measure
from report import filled, heading, table, write

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "dask_simulation.json"
PICTURE = HERE.parent / "docs" / "images" / "dask_speedup.png"
PAGE = HERE.parent / "docs" / "guide" / "dask.md"
ROUND_ROWS = (16_384, 65_536)


# -- tables ----------------------------------------------------------------------------------------


def show_check(checks: list[Row]) -> list[list[str]]:
    return [
        [
            TITLES[one["work"]],
            str(one["workers"]),
            f"{one['call']:.1f}",
            f"{one['measured']:.1f}",
            f"{one['simulated']:.1f}",
            f"{100 * one['deviation']:+.0f} %",
        ]
        for one in checks
    ]


def show_costs(works: Row) -> list[list[str]]:
    shown = []
    for name, found in works.items():
        cost = Costs(**found["costs"])
        shown.append(
            [
                TITLES[name],
                f"{cost.members:,}",
                f"{1e6 * cost.row:,.0f}",
                f"{100 * cost.share:.1f} %",
                f"{1e6 * cost.learn:,.0f}",
                f"{cost.snapshot / 2**20:.1f}",
                f"{cost.balance(cost.share):.1f}",
            ]
        )
    return shown


def show_curves(works: Row, network: str) -> list[list[str]]:
    shown = []
    for name, found in works.items():
        own = found["costs"]["share"]
        for one in found["curves"]:
            if one["network"] != network:
                continue
            measured = " (measured)" if one["share"] == own else ""
            cells = [
                f"{at['speed_up']:.1f}" for at in one["curve"] if at["workers"] in SHOWN_WORKERS
            ]
            shown.append([TITLES[name], f"{100 * one['share']:.1f} %{measured}", *cells])
    return shown


SHOWN_WORKERS = (2, 4, 8, 16, 64, 256)
CHECK = ("work", "workers", "whole call, s", "rounds, s", "simulated rounds, s", "deviation")
COSTS = (
    *("work", "members", "µs per row", "returned", "µs per returned row"),
    *("snapshot, MB", "workers for one driver"),
)
ROUNDS = ("work", "rows of a round", "returned", "members", "test error")
CURVES = ("work", "returned", *(f"{n} workers" for n in SHOWN_WORKERS))


def markdown(header: tuple[str, ...], rows: list[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


def show_rounds(found: list[Row]) -> list[list[str]]:
    return [
        [
            TITLES[one["work"]],
            f"{one['round_rows']:,}",
            f"{100 * one['share']:.1f} %",
            f"{one['members']:,}",
            f"{one['error']:.2f} %",
        ]
        for one in found
    ]


def write_page(report: Row, page: Path) -> None:
    """Write the stored figures into a page."""
    text = page.read_text(encoding="utf-8")
    text = filled(text, "check", markdown(CHECK, show_check(report["check"])))
    text = filled(text, "costs", markdown(COSTS, show_costs(report["works"])))
    text = filled(text, "rounds", markdown(ROUNDS, show_rounds(report["rounds"])))
    curves = markdown(CURVES, show_curves(report["works"], "10 Gbit/s"))
    page.write_text(filled(text, "speed-up", curves), encoding="utf-8")


# -- the picture -----------------------------------------------------------------------------------


def draw(works: Row, path: Path) -> None:
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(works), 6.4), layout="constrained", facecolor="white")
    axes = figure.subplots(2, len(works), sharex=True, sharey="row", squeeze=False)
    colours = colormaps["viridis"]
    for k, (name, found) in enumerate(works.items()):
        curves = [one for one in found["curves"] if one["network"] == "10 Gbit/s"]
        for one in sorted(curves, key=lambda one: one["share"]):
            own = one["share"] == found["costs"]["share"]
            style: Row = {"color": "crimson", "linewidth": 2.4, "marker": "o", "markersize": 4}
            if not own:
                shade = SHARES.index(one["share"]) / (len(SHARES) - 1)
                style = {"color": colours(0.8 * shade), "marker": "."}
            label = f"{100 * one['share']:.3g} %" + (", as measured" if own else "")
            n = [at["workers"] for at in one["curve"]]
            axes[0, k].plot(n, [at["speed_up"] for at in one["curve"]], label=label, **style)
            axes[1, k].plot(n, [100 * at["driver"] for at in one["curve"]], **style)
        axes[0, k].plot(WORKERS, WORKERS, color="0.6", linestyle=":", label="one per worker")
        axes[0, k].set(title=TITLES[name], xscale="log", yscale="log")
        axes[0, k].legend(title="rows returned", frameon=False, fontsize=8, title_fontsize=8)
        axes[1, k].set(xlabel="workers", ylim=(0, 104))
    axes[0, 0].set_ylabel("speed-up over one worker")
    axes[1, 0].set_ylabel("driver busy, % of the time")
    for one in axes.flat:
        one.set_xticks(WORKERS, [str(n) for n in WORKERS])
        one.minorticks_off()
        one.grid(alpha=0.3)
    axes[0, 0].set_yticks(WORKERS, [str(n) for n in WORKERS])
    figure.savefig(path, dpi=90)


# -- the command -----------------------------------------------------------------------------------


def measured(options: argparse.Namespace, report: Row) -> Row:
    """Measure works with one and two workers; return the report with these runs."""
    runs = [run for run in report.get("runs", []) if run["work"] not in options.only]
    for name in options.only:
        for workers in (1, 2):
            load = os.getloadavg()[0]
            run = in_process(measure, name, str(options.data), options.variants, workers)
            runs.append({**run, "load_before": load})
            print(
                f"{name}, {workers} workers: {run['seconds']:.1f} s, error {run['error']:.2f} %; "
                f"CPU {run['cpu']:.1f} s, of other programs {run['cpu_of_others']:.1f} s"
            )
    order = list(TITLES)
    runs.sort(key=lambda run: (order.index(run["work"]), run["workers"]))
    names = [name for name in TITLES if any(run["work"] == name for run in runs)]
    files = [Path(options.data) / FILES[name] for name in names]
    kept = {"rounds": report.get("rounds", [])}
    return {**heading(HERE.parent, files), "check": [], "works": {}, **kept, "runs": runs}


def round_sizes(options: argparse.Namespace) -> list[Row]:
    """Measure the fraction of rows that are returned, for rounds of several sizes."""
    data, variants = str(options.data), options.variants
    return [
        in_process(count_returned, name, data, variants, rows)
        for name in options.only
        for rows in ROUND_ROWS
    ]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("part", choices=["measure", "rounds", "predict", "page"])
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--only", nargs="+", choices=TITLES, default=list(TITLES))
    add("--variants", type=int, default=3, help="of each digit")
    add("--out", type=Path, default=RESULTS)
    add("--picture", type=Path, default=PICTURE)
    add("--page", type=Path, default=PAGE)
    return parser.parse_args()


def main() -> None:
    options = parse()
    report = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.part == "measure":
        report = measured(options, report)
        write(options.out, report)
    if options.part == "rounds":
        report["rounds"] = round_sizes(options)
        print(table(ROUNDS, show_rounds(report["rounds"])))
        write(options.out, report)
    elif options.part == "page":
        write_page(report, options.page)
    else:
        predict(report, options)


def predict(report: Row, options: argparse.Namespace) -> None:
    """Compare runs with the simulation, and predict them for larger clusters."""
    runs, cores = report["runs"], report["machine"]["cores"]
    alone = {run["work"]: run for run in runs if run["workers"] == 1}
    report["check"] = [
        one
        for name in alone
        for one in checked([run for run in runs if run["work"] == name], cores)
    ]
    print(table(CHECK, show_check(report["check"])))
    report["works"] = {name: predictions(run) for name, run in alone.items()}
    write(options.out, report)
    print(table(COSTS, show_costs(report["works"])))
    for network in NETWORKS:
        print(f"\nspeed-up over one worker, {network}")
        print(table(CURVES, show_curves(report["works"], network)))
    draw(report["works"], options.picture)


if __name__ == "__main__":
    main()

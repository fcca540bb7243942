"""How training on Dask speeds up with workers: measured service times in a simulation.

    python benchmarks/dask_simulation.py measure                 all works, 1 and 2 workers
    python benchmarks/dask_simulation.py measure --only digits   one work, 1 and 2 workers
    python benchmarks/dask_simulation.py predict                 2 to 256 workers; table and picture
    python benchmarks/dask_simulation.py page                    the figures of docs/dask.md

measure  `DaskOnlineSVC` on a `LocalCluster` (processes, one thread each) notes what rounds cost.
         The rounds of the run with one worker are simulated with one and with two workers, which
         share the cores of this machine with the driver, and compared with the real runs.
predict  Rounds of the cost of the second half of a run are simulated on clusters where each
         process has its own core, for several shares of rows that are returned. Rounds have 2,048
         rows per worker, 16,384 at least, and not more than a stage of a source.

Results are stored in `results/dask_simulation.json`.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from cache import data_folder
from dask_model import Network, Outcome, Round, simulate
from dask_service import FILES, TITLES, Row, in_process, measure
from report import filled, heading, table, write

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "dask_simulation.json"
PICTURE = HERE.parent / "docs" / "images" / "dask_speedup.png"
PAGE = HERE.parent / "docs" / "dask.md"
PIECE = 2048  # rows of a task, as in marginwise.dask
LEAST_PIECES = 8
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
STAGES = {"digits": 60_000}  # a VirtualSet has a stage for each variant of all images
SIMULATED = 40  # rounds of a prediction
NETWORKS = {"10 Gbit/s": Network(1.25e9, 0.0005), "1 Gbit/s": Network(1.25e8, 0.0005)}


# -- replaying a run -------------------------------------------------------------------------------


def replayed(run: Row) -> list[Round]:
    """Return the rounds of a run, with the costs that it noted."""
    probes, rounds = run["probes"], []
    for one in run["rounds"]:
        tasks = max(1, -(-one["rows"] // _piece(run["round_rows"])))
        work, unpack = one["read"] + one["score"], probes["unpack_byte"] * one["bytes"]
        unpack = min(unpack, work / 2)
        each = (work - unpack) / tasks
        answers = one["returned"] * run["row_bytes"]
        rounds.append(Round((each,) * tasks, one["learn"], one["ship"], unpack, answers=answers))
    return rounds


def _piece(round_rows: int) -> int:
    return min(PIECE, -(-round_rows // LEAST_PIECES))


def besides(run: Row) -> float:
    """Return the seconds of a run outside of its rounds: looking at blocks, and the audit."""
    rounds = sum(one["wait"] + one["learn"] + one["ship"] for one in run["rounds"])
    return float(run["seconds"] - rounds)


def checked(runs: list[Row], cores: int) -> list[Row]:
    """Compare runs with the simulation, whose costs are those of the run with one worker."""
    base = next(run for run in runs if run["workers"] == 1)
    probes, rounds = base["probes"], replayed(base)
    # What the driver needs to send a snapshot is part of the time that it noted.
    network = Network(1 / probes["gather_byte"], hops=1)
    found = []
    for run in runs:
        outcome = simulate(
            rounds, run["workers"], network=network, cores=cores, dispatch=probes["dispatch"]
        )
        seconds = outcome.seconds + besides(base)
        found.append(
            {
                "work": run["work"],
                "workers": run["workers"],
                "measured": run["seconds"],
                "simulated": seconds,
                "deviation": seconds / run["seconds"] - 1,
            }
        )
    return found


# -- predictions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """What rows cost in the second half of a run, in seconds and bytes.

    Parameters
    ----------
    row : float
        Seconds in which a worker reads and scores a row.
    learn : float
        Seconds in which the driver learns a row that is returned.
    share : float
        Share of the rows that are returned.
    ship : float
        Seconds in which the driver prepares a snapshot.
    submit, dispatch : float
        Seconds per task of the driver and of the scheduler.
    unpack : float
        Seconds in which a worker unpacks a snapshot.
    snapshot, row_bytes : float
        Bytes of a snapshot, and of a row.
    gather_byte : float
        Seconds of the driver per byte that is returned.
    members : int
        Members of the model.
    stage : int or None
        Rows of a stage of the source, which are the most of a round.
    """

    row: float
    learn: float
    share: float
    ship: float
    submit: float
    dispatch: float
    unpack: float
    snapshot: float
    row_bytes: float
    gather_byte: float
    members: int
    stage: int | None

    def driver(self, share: float) -> float:
        """Return the seconds of the driver per row of the data."""
        return share * (self.learn + self.gather_byte * self.row_bytes)

    def balance(self, share: float) -> float:
        """Return the number of workers that keep the driver busy."""
        return self.row / self.driver(share)


def costs(run: Row) -> Costs:
    """Return the costs of the second half of a run."""
    probes = run["probes"]
    rounds = [one for one in run["rounds"] if one["bytes"] and one["epoch"] == 0]
    steady = rounds[len(rounds) // 2 :]
    shipped = [one["ship"] for one in steady if one["ship"]]  # nothing follows the last rounds
    total = {
        name: sum(one[name] for one in steady)
        for name in ("rows", "returned", "read", "score", "learn", "bytes")
    }
    snapshot = total["bytes"] / len(steady)
    unpack = probes["unpack_byte"] * snapshot
    tasks = max(1, round(total["rows"] / len(steady) / _piece(run["round_rows"])))
    work = total["read"] + total["score"] - unpack * len(steady)
    return Costs(
        row=max(work, 0.0) / total["rows"],
        learn=total["learn"] / total["returned"],
        share=total["returned"] / total["rows"],
        ship=max(sum(shipped) / len(shipped) - tasks * probes["submit"], 0.0),
        submit=probes["submit"],
        dispatch=probes["dispatch"],
        unpack=unpack,
        snapshot=snapshot,
        row_bytes=run["row_bytes"],
        gather_byte=probes["gather_byte"],
        members=steady[-1]["members"],
        stage=STAGES.get(run["work"]),
    )


def steady_rounds(cost: Costs, share: float, workers: int) -> tuple[list[Round], int]:
    """Return rounds of a model that does not grow, and the rows of each."""
    tasks = max(LEAST_PIECES, workers)
    if cost.stage is not None:
        tasks = min(tasks, cost.stage // PIECE)
    rows = tasks * PIECE
    one = Round(
        tasks=(PIECE * cost.row,) * tasks,
        learn=rows * cost.driver(share),
        ship=cost.ship + tasks * cost.submit,
        unpack=cost.unpack,
        snapshot=cost.snapshot,
        answers=rows * share * cost.row_bytes,
    )
    return [one] * SIMULATED, rows


def predicted(cost: Costs, share: float, network: Network) -> list[Row]:
    """Return speed-up over one worker and the utilisation of the driver, by workers."""
    found: list[Row] = []
    for workers in WORKERS:
        rounds, rows = steady_rounds(cost, share, workers)
        outcome: Outcome = simulate(rounds, workers, network=network, dispatch=cost.dispatch)
        speed = SIMULATED * rows / outcome.seconds
        first = found[0]["rows_per_second"] if found else speed
        found.append(
            {
                "workers": workers,
                "rows_per_second": speed,
                "speed_up": speed / first,
                "driver": outcome.utilisation,
            }
        )
    return found


def predictions(run: Row) -> Row:
    """Return the predictions of a work, for its own share of rows and for others."""
    cost = costs(run)
    curves = [
        {
            "share": share,
            "network": name,
            "balance": cost.balance(share),
            "curve": predicted(cost, share, network),
        }
        for name, network in NETWORKS.items()
        for share in (cost.share, *SHARES)
    ]
    return {"costs": asdict(cost), "curves": curves}


# -- tables ----------------------------------------------------------------------------------------


def show_check(checks: list[Row]) -> list[list[str]]:
    return [
        [
            TITLES[one["work"]],
            str(one["workers"]),
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
CHECK = ("work", "workers", "measured, s", "simulated, s", "deviation")
COSTS = (
    *("work", "members", "µs per row", "returned", "µs per returned row"),
    *("snapshot, MB", "workers for one driver"),
)
CURVES = ("work", "returned", *(f"{n} workers" for n in SHOWN_WORKERS))


def markdown(header: tuple[str, ...], rows: list[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *rows])


def write_page(report: Row, page: Path) -> None:
    """Write the stored figures into the page."""
    text = page.read_text(encoding="utf-8")
    text = filled(text, "check", markdown(CHECK, show_check(report["check"])))
    text = filled(text, "costs", markdown(COSTS, show_costs(report["works"])))
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
    """Measure works with one and two workers, and compare them with the simulation."""
    runs = [run for run in report.get("runs", []) if run["work"] not in options.only]
    for name in options.only:
        for workers in (1, 2):
            load = os.getloadavg()[0]
            run = in_process(measure, name, str(options.data), options.variants, workers)
            runs.append({**run, "load_before": load})
            print(f"{name}, {workers} workers: {run['seconds']:.1f} s, error {run['error']:.2f} %")
    order = list(TITLES)
    runs.sort(key=lambda run: (order.index(run["work"]), run["workers"]))
    names = [name for name in TITLES if any(run["work"] == name for run in runs)]
    files = [Path(options.data) / FILES[name] for name in names]
    cores = os.cpu_count() or 1
    check = [
        one
        for name in names
        for one in checked([run for run in runs if run["work"] == name], cores)
    ]
    return {**heading(HERE.parent, files), "check": check, "works": {}, "runs": runs}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("part", choices=["measure", "predict", "page"])
    add("--data", type=Path, default=data_folder(), help="folder of the data (or $MARGINWISE_DATA)")
    add("--only", nargs="+", choices=TITLES, default=list(TITLES))
    add("--variants", type=int, default=4, help="of each digit")
    add("--out", type=Path, default=RESULTS)
    add("--picture", type=Path, default=PICTURE)
    add("--page", type=Path, default=PAGE)
    return parser.parse_args()


def main() -> None:
    options = parse()
    report = json.loads(options.out.read_text()) if options.out.exists() else {}
    if options.part == "measure":
        report = measured(options, report)
        print(table(CHECK, show_check(report["check"])))
    if options.part != "page":
        alone = {run["work"]: run for run in report["runs"] if run["workers"] == 1}
        report["works"] = {name: predictions(run) for name, run in alone.items()}
        write(options.out, report)
        print(table(COSTS, show_costs(report["works"])))
        for network in NETWORKS:
            print(f"\nspeed-up over one worker, {network}")
            print(table(CURVES, show_curves(report["works"], network)))
        draw(report["works"], options.picture)
    else:
        write_page(report, options.page)


if __name__ == "__main__":
    main()

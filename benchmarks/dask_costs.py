"""Costs of runs on Dask: replay them in the simulation, and predict runs on larger clusters."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from dask_model import Network, Outcome, Round, simulate
from dask_service import Row

PIECE = 2048  # rows of a task, as in marginwise.dask
LEAST_PIECES = 8
WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)
STAGES = {"digits": 60_000}  # a VirtualSet has a stage for each variant of all images
SIMULATED = 40  # rounds of a prediction
NETWORKS = {"10 Gbit/s": Network(1.25e9, 0.0005), "1 Gbit/s": Network(1.25e8, 0.0005)}


# -- replaying a run -------------------------------------------------------------------------------


def replayed(run: Row) -> list[Round]:
    """Return the rounds of a run, with the costs that it recorded."""
    probes, rounds = run["probes"], []
    for one in run["rounds"]:
        tasks = max(1, -(-one["rows"] // _piece(run["round_rows"])))
        work, unpack = one["read"] + one["score"], probes["unpack_byte"] * one["bytes"]
        unpack = min(unpack, work / 2)
        each = (work - unpack) / tasks + probes["start"]
        answers = one["returned"] * run["row_bytes"]
        ship = one["ship"] + one["publish"]
        rounds.append(Round((each,) * tasks, one["learn"], ship, unpack, answers=answers))
    return rounds


def _piece(round_rows: int) -> int:
    return min(PIECE, -(-round_rows // LEAST_PIECES))


def in_rounds(run: Row) -> float:
    """Return the seconds of the rounds of a run, without inspecting blocks and auditing."""
    return float(sum(one["wait"] + one["learn"] + one["ship"] for one in run["rounds"]))


def checked(runs: list[Row], cores: int) -> list[Row]:
    """Compare runs with simulations, whose costs are those of the run with one worker."""
    base = next(run for run in runs if run["workers"] == 1)
    probes, rounds = base["probes"], replayed(base)
    # What the driver needs to send a snapshot is part of the time that it noted.
    network = Network(1 / probes["gather_byte"], hops=1)
    found = []
    for run in runs:
        outcome = simulate(
            rounds, run["workers"], network=network, cores=cores, dispatch=probes["dispatch"]
        )
        found.append(
            {
                "work": run["work"],
                "workers": run["workers"],
                "call": run["seconds"],
                "measured": in_rounds(run),
                "simulated": outcome.seconds,
                "deviation": outcome.seconds / in_rounds(run) - 1,
            }
        )
    return found


# -- predictions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """Costs of the second half of a run, in seconds and bytes.

    Parameters
    ----------
    row : float
        Seconds in which a worker reads and scores a row.
    learn : float
        Seconds in which the driver learns a row that is returned.
    share : float
        Fraction of the rows that are returned.
    ship : float
        Seconds in which the driver prepares a snapshot.
    submit, dispatch, start : float
        Overhead of a task in seconds: of the driver, of the scheduler and of the worker.
    unpack : float
        Seconds in which a worker unpacks a snapshot.
    snapshot, row_bytes : float
        Bytes of a snapshot, and of a row.
    gather_byte : float
        Seconds of the driver per byte that is returned.
    members : int
        Members of the model.
    stage : int or None
        Rows of a stage of the source, which limit the size of a round.
    """

    row: float
    learn: float
    share: float
    ship: float
    submit: float
    dispatch: float
    start: float
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
    # Nothing follows the last rounds.
    shipped = [one["ship"] + one["publish"] for one in steady if one["publish"]]
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
        start=probes["start"],
        unpack=unpack,
        snapshot=snapshot,
        row_bytes=run["row_bytes"],
        gather_byte=probes["gather_byte"],
        members=steady[-1]["members"],
        stage=STAGES.get(run["work"]),
    )


def steady_rounds(cost: Costs, share: float, workers: int) -> tuple[list[Round], int]:
    """Return rounds of a model of constant size, and the number of rows per round."""
    tasks = max(LEAST_PIECES, workers)
    if cost.stage is not None:
        tasks = min(tasks, cost.stage // PIECE)
    rows = tasks * PIECE
    one = Round(
        tasks=(PIECE * cost.row + cost.start,) * tasks,
        learn=rows * cost.driver(share),
        ship=cost.ship + tasks * cost.submit,
        unpack=cost.unpack,
        snapshot=cost.snapshot,
        answers=rows * share * cost.row_bytes,
    )
    return [one] * SIMULATED, rows


def predicted(cost: Costs, share: float, network: Network) -> list[Row]:
    """Return speed-up over one worker and utilisation of the driver by number of workers."""
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
    """Return the predictions of a work for its own fraction of returned rows and for others."""
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

"""The simulation of training on Dask: cases worked by hand, and limits that are known."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "dask_model.py"


def _module() -> Any:
    spec = importlib.util.spec_from_file_location("dask_model", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their annotations
    spec.loader.exec_module(module)
    return module


model = _module()
Network, Round, simulate = model.Network, model.Round, model.simulate
WORKERS = (1, 2, 3, 4, 8, 16)


def steady(rounds: int = 20, tasks: int = 16, learn: float = 0.5) -> list[Any]:
    return [Round((1.0,) * tasks, learn) for _ in range(rounds)]


def test_one_worker_and_a_driver_that_learns_at_once_take_the_sum_of_the_tasks() -> None:
    outcome = simulate([Round((1.0, 2.0), 0.0), Round((3.0,), 0.0), Round((4.0, 5.0), 0.0)], 1)
    assert outcome.seconds == outcome.workers == 15.0
    assert outcome.driver == 0.0


def test_two_rounds_by_hand() -> None:
    """Both rounds are submitted at 0: workers have 2, 3 | 4, and are done at 2, 3 and 6.

    The driver learns round 0 from 3 to 8, and round 1, which it finds complete, from 8 to 9.
    """
    outcome = simulate([Round((2.0, 3.0), 5.0), Round((4.0,), 1.0)], 2)
    assert outcome.seconds == 9.0
    assert outcome.waits == [3.0, 0.0]
    assert outcome.driver == 6.0
    assert outcome.utilisation == pytest.approx(6 / 9)


def test_a_third_round_waits_for_the_model_of_the_first() -> None:
    """One worker: round 0 until 1, round 1 until 2. The driver learns round 0 from 1 to 4, so that
    round 2 begins at 4; it learns round 1 until 7, and round 2 until 10."""
    outcome = simulate([Round((1.0,), 3.0)] * 3, 1)
    assert outcome.seconds == 10.0
    assert outcome.waits == [1.0, 0.0, 0.0]


def test_transfers_by_hand() -> None:
    """Round 0: task until 1, 10 bytes of answers at 10 per second in two hops until 3, learned
    until 4; the snapshot of 20 bytes needs 4 seconds, until 8, and is unpacked until 8.5. The task
    of round 2 ends at 9.5, but the driver is busy with round 1 from 8: answers until 10, learned
    until 11. Round 2: answers until 13, learned until 14."""
    network = Network(bandwidth=10.0)
    rounds = [Round((1.0,), 1.0, unpack=0.5 * (k == 2), snapshot=20, answers=10) for k in range(3)]
    outcome = simulate(rounds, 1, network=network)
    assert outcome.seconds == pytest.approx(14.0)


def test_snapshots_spread_from_those_who_have_them() -> None:
    """At 10 bytes per second, 3 workers at a time: the first serves 3 until 3, four serve 2 each
    until 5."""
    network = Network(bandwidth=10.0, fan_out=3)
    assert network.arrivals(1, 10) == [0.0]
    assert network.arrivals(12, 10) == [0.0, 3.0, 3.0, 3.0] + [5.0] * 8


def test_many_workers_and_a_free_network_leave_the_time_of_the_driver() -> None:
    rounds = steady(learn=7.0)
    outcome = simulate(rounds, 1000)
    # The first round has to be judged before anything is learned.
    assert outcome.seconds == pytest.approx(1.0 + 20 * 7.0)
    assert outcome.driver == pytest.approx(20 * 7.0)


@pytest.mark.parametrize("learn", [0.0, 0.2, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("network", [Network(), Network(1e6, 0.01)])
def test_speed_up_grows_with_workers_and_never_beyond_them(learn: float, network: Any) -> None:
    rounds = [Round((1.0,) * 16, learn, 0.1, 0.0, 1e4, 1e4) for _ in range(20)]
    times = [simulate(rounds, n, network=network).seconds for n in WORKERS]
    assert times == sorted(times, reverse=True)
    for n, seconds in zip(WORKERS, times, strict=True):
        assert times[0] / seconds <= n * (1 + 1e-9)
        assert seconds >= max(16 * 20 / n, 20 * learn)


def test_processes_share_cores() -> None:
    """Two workers with a task of 2 seconds each on one core: both end at 4, as one after the other.

    The driver then has the core to itself.
    """
    rounds = [Round((2.0, 2.0), 1.0)]
    assert simulate(rounds, 2, cores=1).seconds == 5.0
    assert simulate(rounds, 2, cores=2).seconds == 3.0
    assert simulate(rounds, 2).seconds == 3.0


def test_cores_that_suffice_change_nothing() -> None:
    rounds = steady(learn=3.0)
    assert simulate(rounds, 3, cores=4).seconds == simulate(rounds, 3).seconds
    assert simulate(rounds, 3, cores=2).seconds > simulate(rounds, 3).seconds


def test_the_scheduler_hands_out_one_task_at_a_time() -> None:
    rounds = [Round((1.0,) * 10, 0.0)]
    assert simulate(rounds, 10, dispatch=0.5).seconds == pytest.approx(9 * 0.5 + 1.0)


def test_each_worker_unpacks_a_snapshot_once() -> None:
    rounds = [Round((1.0,) * 4, 0.0, unpack=0.25) for _ in range(3)]
    assert simulate(rounds, 1).workers == pytest.approx(12 + 3 * 0.25)
    assert simulate(rounds, 2).workers == pytest.approx(12 + 3 * 2 * 0.25)
